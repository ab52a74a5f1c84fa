// Make elements. Text from runs and files is inserted as text, never as markup.

/**
 * An element.
 * @param {string} tag
 * @param {Object} [properties] of the element; `data` and `style` hold their own, names with "-" are attributes
 * @param {...(Node|string|null)} children
 */
export function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "data") Object.assign(made.dataset, value);
    else if (name === "style") for (const [key, one] of Object.entries(value)) made.style.setProperty(key, one);
    else if (name.includes("-") || name === "role") made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

export const byId = (id) => document.getElementById(id);

/** A button that does one thing. */
export const button = (label, onclick, properties = {}) => el("button", { type: "button", onclick, ...properties }, label);

/** Fill a <select> with (value, label) pairs. */
export function fillSelect(select, pairs) {
  select.replaceChildren(...pairs.map(([value, label]) => el("option", { value }, label)));
}

/** A share as a percentage; only exactly 0 and 1 are shown as 0 % and 100 %. */
export function percent(share) {
  if (share === 0 || share === 1) return `${share * 100}\u00a0%`;
  if (share < 0.001) return "<\u00a00.1\u00a0%";
  if (share > 0.999) return ">\u00a099.9\u00a0%";
  return `${(share * 100).toFixed(share < 0.1 || share > 0.99 ? 1 : 0)}\u00a0%`;
}

export const plural = (count, one, many = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

/** Text with visible line breaks and control characters. */
export function visible(text) {
  return text.replace(/\n/g, "⏎").replace(/[\u0000-\u001f]/g, (sign) => String.fromCharCode(0x2400 + sign.charCodeAt(0)));
}

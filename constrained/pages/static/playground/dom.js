// Small helps for building elements. Texts become text nodes, never HTML: they come from files and models.

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

/**
 * A new element.
 * @param {string} name
 * @param {object} [properties] `class`, `on` (event name -> listener), `data` and `aria`; others are set as properties
 * @param {...(Node|string|null|undefined)} children
 */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  const { class: className, on = {}, data = {}, aria = {}, ...others } = properties;
  if (className) made.className = className;
  Object.assign(made, others);
  Object.assign(made.dataset, data);
  for (const [event, listener] of Object.entries(on)) made.addEventListener(event, listener);
  for (const [key, value] of Object.entries(aria)) made.setAttribute(`aria-${key}`, value);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** A button that does one thing. */
export const button = (label, click, properties = {}) =>
  element("button", { type: "button", on: { click }, ...properties }, label);

/** Call `action` once nobody has called for `milliseconds`. */
export function debounced(action, milliseconds) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, milliseconds);
  };
}

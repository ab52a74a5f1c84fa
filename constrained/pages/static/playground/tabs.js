// The tabs beside the editor, and the keys.
import { byId } from "../dom.js";

const NAMES = ["graph", "text", "next", "run"];

/** @param {(name: string) => void} chosen  called with the view that is shown */
export function openTabs(chosen) {
  const tabs = NAMES.map((name) => byId(`tab-${name}`));
  tabs.forEach((tab, at) => {
    tab.addEventListener("click", () => show(NAMES[at], chosen));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const to = step ? (at + step + NAMES.length) % NAMES.length : { Home: 0, End: NAMES.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      tabs[to].focus();
      show(NAMES[to], chosen);
    });
  });
  const first = NAMES.find((name) => location.hash === `#${name}`);
  if (first) show(first, chosen);
}

/** Show one view. */
export function show(name, chosen = () => {}) {
  for (const other of NAMES) {
    const on = other === name;
    byId(other).hidden = !on;
    byId(`tab-${other}`).setAttribute("aria-selected", String(on));
    byId(`tab-${other}`).tabIndex = on ? 0 : -1;
  }
  history.replaceState(null, "", `#${name}`);
  chosen(name);
}

/**
 * Keys of the whole page.
 * @param {{save: function, run: function, focus: function, chosen: function}} actions
 */
export function openKeys(actions) {
  byId("help").addEventListener("click", () => byId("keys").showModal());
  document.addEventListener("keydown", (event) => {
    const control = event.ctrlKey || event.metaKey;
    if (control && event.key.toLowerCase() === "s") done(event, actions.save);
    else if (control && event.key === "Enter") done(event, actions.run);
    else if (event.altKey && event.code === "Digit0") done(event, actions.focus);
    else if (event.altKey && /^Digit[1-4]$/.test(event.code)) {
      done(event, () => {
        const name = NAMES[Number(event.code.slice(-1)) - 1];
        show(name, actions.chosen);
        byId(`tab-${name}`).focus();
      });
    } else if (event.key === "?" && !control && !event.target.closest("input, textarea, select, [contenteditable=true]")) {
      done(event, () => byId("keys").showModal());
    }
  }, { capture: true });
}

function done(event, action) {
  event.preventDefault();
  event.stopPropagation();
  action();
}

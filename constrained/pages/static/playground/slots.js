// The values of slots, as lines or as JSON.
import { byId, el } from "../dom.js";

const typed = new Map(); // slot -> what stands in its field, kept while a slot is gone from the text
let shown = [];

/**
 * The values of one field: null where there is nothing in it.
 * @throws {Error} it begins like JSON and is none, or not of lists
 */
export function parsed(text) {
  const trimmed = text.trim();
  if (!trimmed) return null;
  if (!/^[[{]/.test(trimmed)) return trimmed.split("\n").map((line) => line.trim()).filter(Boolean);
  return JSON.parse(trimmed);
}

/** The values to send: of the slots that the text has, those that can be read. */
export function slotValues() {
  const values = {};
  for (const slot of shown) {
    try {
      const value = parsed(typed.get(slot) ?? "");
      if (value !== null) values[slot] = value;
    } catch {
      // the field says so
    }
  }
  return values;
}

/** What is typed, to be kept. */
export const keptSlots = () => Object.fromEntries(typed);

/** Begin with what was kept. */
export function openSlots(kept) {
  typed.clear();
  for (const [slot, text] of Object.entries(kept)) typed.set(slot, text);
  shown = [];
  byId("slots").replaceChildren();
  byId("slots-box").hidden = true;
}

/** Show a field for each slot of the text. */
export function showSlots(slots, changed) {
  if (slots.join() === shown.join()) return;
  shown = slots;
  byId("slots-box").hidden = !slots.length;
  byId("slots").replaceChildren(...slots.map((slot) => field(slot, changed)));
}

function field(slot, changed) {
  const id = `slot-${slot}`;
  const problem = el("p", { className: "problem", id: `${id}-problem`, hidden: true });
  const area = el("textarea", { id, rows: 2, value: typed.get(slot) ?? "", placeholder: slot });
  area.setAttribute("aria-describedby", problem.id);
  area.setAttribute("spellcheck", "false");
  const read = () => {
    typed.set(slot, area.value);
    area.rows = Math.min(8, Math.max(2, area.value.split("\n").length));
    try {
      parsed(area.value);
      problem.hidden = true;
    } catch (error) {
      problem.hidden = false;
      problem.textContent = `This is not valid JSON: ${error.message}`;
    }
  };
  read();
  area.addEventListener("input", () => {
    read();
    changed();
  });
  return el("div", { className: "field slot" }, el("label", { htmlFor: id }, slot), area, problem);
}

// The action graph: the current place, the open actions, and the action taken.
import { byId, el } from "../dom.js";
import { data } from "./run.js";

const drawing = document.querySelector(".graph svg");
const names = (mark, key) => (mark.dataset[key] ?? "").split(" ");

byId("graph-name").textContent = data.knowledge ? `Action graph: ${data.knowledge.name}` : "Action graph";
if (drawing) {
  byId("legend").append(...legend());
  crop();
} else if (!data.knowledge) {
  byId("graph-said").textContent = "The run's file doesn't contain its action knowledge, and no shipped knowledge is the same.";
}

if (data.knowledge?.text) {
  byId("knowledge-text").textContent = data.knowledge.text;
  byId("knowledge").hidden = false;
}

/** Crop the picture to what is drawn, and limit its size. */
function crop() {
  const margin = 6;
  const most = 1.25;
  const { x, y, width, height } = drawing.getBBox();
  drawing.setAttribute("viewBox", [x - margin, y - margin, width + 2 * margin, height + 2 * margin].join(" "));
  drawing.style.maxWidth = `${Math.round(width * most)}px`;
}

function legend() {
  const sign = (name, words) => el("span", { className: `sign ${name}` }, words);
  return [sign("here", "here"), sign("open", "open"), sign("took", "taken"), sign("shut", "not open")];
}

/** Mark the graph for a step: { place, open, took }, all of them names of actions. */
export function markGraph(step) {
  byId("graph-said").textContent = graphWords(step);
  if (!drawing) return;
  const open = new Set(step?.open ?? []);
  const from = standsAt(step, open);
  for (const mark of drawing.querySelectorAll("rect, text, path, circle")) {
    mark.classList.remove("here", "open", "took");
    for (const one of marksOf(mark, { from, open, step })) mark.classList.add(one);
  }
  drawing.classList.toggle("marked", Boolean(step?.place));
}

function marksOf(mark, { from, open, step }) {
  if (!step?.place) return [];
  if (mark.dataset.place !== undefined) return mark.dataset.place === from ? ["here"] : [];
  const edge = mark.dataset.from !== undefined;
  const leaves = edge && names(mark, "from").includes(from);
  const label = mark.dataset.action;
  if (edge && label !== undefined) return leaves ? reached([label]) : []; // an action on an arrow between places
  if (edge) {
    const targets = mark.tagName === "path" && isPlaces ? onArrow(mark) : names(mark, "to");
    return leaves ? reached(targets) : [];
  }
  if (label === undefined) return [];
  const own = names(mark, "action");
  if (mark.classList.contains("row")) return own.includes(from) ? ["here"] : [];
  const marks = reached(own);
  if (own.includes(from)) marks.push("here");
  return marks;

  function reached(targets) {
    const found = targets.some((name) => open.has(name)) ? ["open"] : [];
    return targets.includes(step.took) ? [...found, "took"] : found;
  }
}

const isPlaces = Boolean(drawing?.querySelector("[data-place]"));

/** The actions that are written on an arrow between two places. */
function onArrow(arrow) {
  const { from, to } = arrow.dataset;
  const labels = drawing.querySelectorAll(`text[data-action]`);
  return [...labels]
    .filter((label) => label.dataset.from === from && label.dataset.to === to)
    .map((label) => label.dataset.action);
}

/** The box or row of the current place: the last action, or the place it led to, found by the open actions. */
function standsAt(step, open) {
  if (!isPlaces || !step?.place) return step?.place;
  const labels = [...drawing.querySelectorAll("text[data-from]")];
  const reached = labels.filter((label) => label.dataset.action === step.place).map((label) => label.dataset.to);
  const candidates = step.place === "start" ? ["start"] : [...new Set(reached)];
  const leaving = (place) =>
    labels.filter((label) => label.dataset.from === place).map((label) => label.dataset.action);
  const fits = (place) => {
    const out = leaving(place);
    const missing = [...open].filter((name) => !out.includes(name)).length;
    return missing * 100 + out.filter((name) => !open.has(name)).length;
  };
  return candidates.sort((a, b) => fits(a) - fits(b))[0];
}

/** The same in words, for those who can't see the picture. */
function graphWords(step) {
  if (!step?.place) return "";
  const before = step.place === "start" ? "At the start" : `After ${step.place}`;
  const open = step.open.length ? `open: ${step.open.join(", ")}` : "nothing was open";
  return `${before}, ${open}.${step.took ? ` Taken: ${step.took}.` : ""}`;
}

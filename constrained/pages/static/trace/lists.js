// The lists at the side with their filters: the tasks, and the places where model and knowledge disagree most.
import { byId, el, fillSelect, percent, plural, visible } from "../dom.js";
import { outcomeMark } from "./game.js";
import { byMass, counted, filtered, inWords } from "./odds.js";
import { data, tasks, written } from "./run.js";

const PAGE = 100;
const AROUND = 18;
const ORDERS = {
  file: ["as in the file", () => 0],
  most: ["most wanted, not allowed, first", (a, b) => b.most - a.most],
  wrong: ["most wrong actions first", (a, b) => b.wrong - a.wrong],
  steps: ["longest first", (a, b) => b.steps.length - a.steps.length],
  name: ["by name", (a, b) => a.name.localeCompare(b.name)],
};

let shownPlaces = PAGE;
let goTo = () => {};
let where = { task: 0, step: 0, token: null };

const least = () => Number(byId("least").value) / 100;
const words = () => byId("search").value.trim().toLowerCase();

/** The places that pass the filters, in the run's order. */
export function placesNow() {
  const task = byId("this-task").checked ? where.task : null;
  return filtered({ least: least(), why: byId("why").value, kind: byId("kind").value, task, words: words() });
}

/** The tasks that pass the filters, in the chosen order. */
export function tasksNow() {
  const state = byId("outcome").value;
  const left = tasks.filter(
    (task) =>
      (!state || (state === "not won" ? task.state !== "won" : task.state === state)) &&
      (!byId("only-odds").checked || task.most >= least()) &&
      (!byId("only-wrong").checked || task.wrong > 0) &&
      (!words() || searched(task).includes(words())),
  );
  return left.sort(ORDERS[byId("order").value][1]);
}

function searched(task) {
  task.searched ??= [task.name, task.task, ...task.steps.flatMap((step) => [step.action ?? "", step.thought ?? ""])]
    .join("\n")
    .toLowerCase();
  return task.searched;
}

/** Set the filters up; `choose(place)` goes to { task, step, token }. */
export function startLists(choose) {
  goTo = choose;
  const states = [...new Set(tasks.map((task) => task.state))];
  fillSelect(byId("outcome"), [
    ["", "any"],
    ...(states.length > 1 ? [["not won", "not won"]] : []),
    ...states.map((state) => [state, state]),
  ]);
  fillSelect(
    byId("order"),
    Object.entries(ORDERS).map(([value, [label]]) => [value, label]),
  );
  fillSelect(byId("why"), [
    ["", "any"],
    ...counted((place) => place.why).map(([why, count]) => [why, `${inWords(why)} (${count})`]),
  ]);
  fillSelect(byId("kind"), [
    ["", "anywhere"],
    ...counted((place) => [place.kind]).map(([kind, count]) => [kind, `${kind} (${count})`]),
  ]);
  byId("least").value = "5";
  for (const id of ["search", "least", "outcome", "only-odds", "only-wrong", "order", "why", "kind", "this-task"]) {
    byId(id).addEventListener("input", refilter);
  }
  byId("odds-more").addEventListener("click", () => {
    shownPlaces += PAGE;
    showPlaces();
  });
  byId("lists-toggle").addEventListener("click", () => {
    const open = byId("lists-body").classList.toggle("open");
    byId("lists-toggle").setAttribute("aria-expanded", String(open));
  });
  startTabs();
  refilter();
}

function startTabs() {
  const tabs = [byId("tab-tasks"), byId("tab-odds")];
  const select = (chosen, focus) => {
    for (const tab of tabs) {
      tab.setAttribute("aria-selected", String(tab === chosen));
      tab.tabIndex = tab === chosen ? 0 : -1;
      byId(tab.getAttribute("aria-controls")).hidden = tab !== chosen;
    }
    if (focus) chosen.focus();
  };
  for (const [index, tab] of tabs.entries()) {
    tab.addEventListener("click", () => select(tab, false));
    tab.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
      event.stopPropagation();
      select(tabs[1 - index], true);
    });
  }
}

function refilter() {
  shownPlaces = PAGE;
  byId("least-said").textContent = `${byId("least").value} %`;
  showTasks();
  showPlaces();
}

function showTasks() {
  const left = tasksNow();
  byId("tasks-count").textContent =
    left.length === tasks.length ? plural(left.length, "task") : `${left.length} of ${plural(tasks.length, "task")}`;
  byId("tasks").replaceChildren(...left.map(taskItem));
  markTask();
}

function taskItem(task) {
  const button = el(
    "button",
    { type: "button", className: "item", data: { task: task.index } },
    el("span", { className: "name" }, task.title),
    el(
      "span",
      { className: "facts" },
      outcomeMark(task),
      ` ${plural(task.steps.length, "step")}`,
      task.wrong ? ` · ${task.wrong} wrong` : "",
      data.run.masks ? ` · ${percent(task.most)}` : "",
    ),
  );
  button.addEventListener("click", () => goTo({ task: task.index, step: 0, token: null }));
  return el("li", {}, button);
}

function showPlaces() {
  const list = byMass(placesNow());
  byId("odds-count").textContent = list.length ? plural(list.length, "place") : "None with these filters.";
  byId("odds").replaceChildren(...list.slice(0, shownPlaces).map(placeItem));
  byId("odds-more").hidden = list.length <= shownPlaces;
  markPlace();
}

function placeItem(place) {
  const task = tasks[place.task];
  const mass = place.mass === null ? place.why[0] : percent(place.mass);
  const wanted = place.answer?.tokens[place.at].forbidden;
  const button = el(
    "button",
    { type: "button", className: "item", data: { place: `${place.task}/${place.step}/${place.token ?? ""}` } },
    el(
      "span",
      { className: "name" },
      el("strong", {}, mass),
      " ",
      place.answer ? context(place) : el("code", {}, place.said),
    ),
    wanted
      ? el(
          "span",
          { className: "facts" },
          "wanted ",
          el("code", {}, wanted.end ? "end of text" : visible(wanted.t)),
          ` ${percent(wanted.p)}`,
        )
      : null,
    el("span", { className: "facts" }, whyWords(place), `step ${place.step + 1}`),
    el("span", { className: "facts of" }, task.title),
  );
  button.addEventListener("click", () => goTo(place));
  return el("li", {}, button);
}

function whyWords({ why, mass }) {
  if (mass === null || !why.length) return "";
  return `${inWords(why.at(-1))} · `;
}

/** A token, after the text before it in its line. */
function context(place) {
  const before = written(place.answer, place.at).split("\n").at(-1);
  const token = place.answer.tokens[place.at];
  const start = before.length > AROUND ? "…" : "";
  return el("code", {}, start, visible(before.slice(-AROUND)), el("mark", {}, token.end ? "■" : visible(token.t)));
}

/** Mark the place that is shown in the lists. */
export function markLists(place) {
  const moved = place.task !== where.task;
  where = place;
  markTask();
  if (moved && byId("this-task").checked) showPlaces();
  else markPlace();
}

function markTask() {
  markOne(byId("tasks"), (item) => Number(item.dataset.task) === where.task);
}

function markPlace() {
  const now = `${where.task}/${where.step}/${where.token ?? ""}`;
  markOne(byId("odds"), (item) => item.dataset.place === now);
}

function markOne(list, isIt) {
  for (const item of list.querySelectorAll(".item")) {
    if (!isIt(item)) item.removeAttribute("aria-current");
    else if (!item.hasAttribute("aria-current")) {
      item.setAttribute("aria-current", "true");
      item.scrollIntoView({ block: "nearest" });
    }
  }
}

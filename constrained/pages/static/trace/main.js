// The trace page shows one place of the run, { task, step, token }; everything else follows from it.
import { byId, plural } from "../dom.js";
import { showStep, showTask, showToken } from "./game.js";
import { markGraph } from "./graph.js";
import { inspect } from "./inspector.js";
import { openHelp, startKeys } from "./keys.js";
import { markLists, placesNow, startLists, tasksNow } from "./lists.js";
import { neighbour } from "./odds.js";
import { data, tasks, tokensOf } from "./run.js";
import { runs } from "./tokens.js";

const PACE = 1400; // milliseconds for each step that is played

let here = { task: -1, step: -1, token: null };
let playing = null;

/** Show a place. */
function go(place, { focus = false, keep = false } = {}) {
  const before = here;
  const task = tasks[place.task];
  if (!task) return;
  here = { task: place.task, step: Math.max(0, Math.min(place.step, task.steps.length - 1)), token: place.token };
  const step = task.steps[here.step];
  if (here.token !== null && !(step && here.token < tokensOf(step).length)) here.token = null;
  const choose = (index, token) => go({ task: here.task, step: index, token }, { focus: token !== null });
  const moved = here.task !== before.task;
  if (moved) showTask(task, choose);
  if (moved || here.step !== before.step) {
    showStep(task, here.step, choose);
    markGraph(step);
  }
  inspect(step, here.token, closeToken); // first, for on a narrow screen it covers a part of the game
  showToken(here.step, here.token, { focus, scroll: before.task !== -1 });
  markLists(here);
  if (!keep) history.replaceState(null, "", fragment());
}

function closeToken() {
  const row = document.querySelector(".step[aria-current] .row");
  go({ ...here, token: null });
  row?.focus({ preventScroll: true });
}

const stepBy = (way) => go({ task: here.task, step: here.step + way, token: null });

function taskBy(way) {
  const order = tasksNow();
  const at = order.findIndex((task) => task.index === here.task);
  const next = order[at + way];
  if (next) go({ task: next.index, step: 0, token: null });
}

function oddsBy(way) {
  const next = neighbour(placesNow(), here, way);
  if (next) go(next, { focus: true });
  else byId("step-said").textContent = `No ${way > 0 ? "later" : "earlier"} place passes the filters`;
}

/** Arrow keys step through the game, or, within a line of tokens, from token to token. */
function arrow(way) {
  const inTokens = document.activeElement?.classList.contains("token") && here.token !== null;
  if (!inTokens) return stepBy(way);
  const starts = [];
  let first = 0;
  for (const answer of tasks[here.task].steps[here.step].answers.filter((one) => one.tokens)) {
    starts.push(...runs(answer.tokens).map((run) => first + run.at));
    first += answer.tokens.length;
  }
  const at = starts.findLastIndex((start) => start <= here.token);
  const next = starts[at + way];
  if (next !== undefined) go({ ...here, token: next }, { focus: true });
}

function play() {
  if (!tasks.length) return;
  const on = playing === null;
  byId("play").setAttribute("aria-pressed", String(on));
  byId("play").textContent = on ? "❚❚ Pause" : "▶ Play";
  if (!on) {
    clearInterval(playing);
    playing = null;
    return;
  }
  if (here.step >= tasks[here.task].steps.length - 1) go({ ...here, step: 0, token: null });
  playing = setInterval(() => {
    if (here.step >= tasks[here.task].steps.length - 1) play();
    else stepBy(1);
  }, PACE);
}

/** The address of a place within the page: #task/step/token, both figures from 1. */
function fragment() {
  const parts = [encodeURIComponent(tasks[here.task].name), here.step + 1];
  if (here.token !== null) parts.push(here.token + 1);
  return `#${parts.join("/")}`;
}

function placeOfFragment() {
  const [name, step, token] = location.hash.slice(1).split("/");
  const task = tasks.findIndex((one) => encodeURIComponent(one.name) === name);
  return { task: Math.max(task, 0), step: (Number(step) || 1) - 1, token: token ? (Number(token) || 1) - 1 : null };
}

function showHead() {
  const { run } = data;
  byId("file").textContent = data.file;
  const won = tasks.filter((task) => task.state === "won").length;
  const models = [...new Set(Object.values(run.models))].filter(Boolean).join(", ");
  const parts = [
    run.suite,
    run.strategy,
    run.masks ? (run.level ? `masks at level ${run.level}` : "masks on") : "masks off",
    models && `model ${models}`,
    run.knowledge && `knowledge ${run.knowledge}`,
    `${won} of ${plural(tasks.length, "task")} won`,
  ];
  byId("about").textContent = parts.filter(Boolean).join(" · ");
  const notes = [];
  if (data.left_out)
    notes.push(
      `${plural(data.left_out, "task")} of the file left out${data.too_large ? ", since the page would be too large" : ""}: choose with --task NAME or --most N.`,
    );
  if (!data.traced && tasks.length)
    notes.push(
      "Tokens were not recorded: constrained bench agents --trace, or constrained plan TASK --trace FILE.jsonl, records them.",
    );
  if (tasks.some((task) => task.state === "under way"))
    notes.push("Tasks under way have no end in the file: the run is still going, or was interrupted.");
  byId("notes").textContent = notes.join(" ");
  byId("notes").hidden = !notes.length;
}

const KEYS = [
  [["j", "ArrowRight"], "next step; on a token: next token", (event) => (event.key === "j" ? stepBy(1) : arrow(1))],
  [
    ["k", "ArrowLeft"],
    "previous step; on a token: previous token",
    (event) => (event.key === "k" ? stepBy(-1) : arrow(-1)),
  ],
  [["n"], "next token that the model wanted and the mask did not allow", () => oddsBy(1)],
  [["p"], "the previous one", () => oddsBy(-1)],
  [["]"], "next task in the list", () => taskBy(1)],
  [["["], "previous task", () => taskBy(-1)],
  [[" "], "play or pause", play],
  [["/"], "search", () => focusSearch()],
  [["?"], "this help", openHelp],
  [["Escape"], "leave the field, close the token", closeToken],
];

function focusSearch() {
  byId("lists-body").classList.add("open");
  byId("lists-toggle").setAttribute("aria-expanded", "true");
  byId("search").focus();
}

showHead();
startLists((place) => go(place, { focus: place.token !== null }));
startKeys(KEYS);
for (const [id, act] of [
  ["step-back", () => stepBy(-1)],
  ["step-on", () => stepBy(1)],
  ["play", play],
  ["odds-back", () => oddsBy(-1)],
  ["odds-on", () => oddsBy(1)],
]) {
  byId(id).addEventListener("click", act);
}
addEventListener("hashchange", () => go(placeOfFragment(), { keep: true }));
if (tasks.length) go(placeOfFragment(), { keep: true });
else byId("task-name").textContent = "No task is recorded yet";

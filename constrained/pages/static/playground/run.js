// A run of the model with the knowledge in the editor: the steps as they come, and their cost.
import { ask, listen, start } from "./api.js";
import { byId, el, percent } from "../dom.js";

const TASKS = {
  household: "heat an egg and put it in the fridge",
  household_form: "put a clean mug in the coffeemachine",
  hotpotqa: "Which is older, the Eiffel Tower or the Brooklyn Bridge?",
};
const HINTS = {
  household: "A household task becomes a game, made from the seed, and is played.",
  world:
    "The file's own world is played: its own goal, or the task, if that is a sentence of its goal lines. Without a model " +
    "named at the start, a search chooses the actions.",
  other: "There is no environment for this grammar: the plan is open-loop, nothing is executed.",
};

let stopping = null; // ends the run that is under way
let counts = null;

/** Fill the form. */
export function openRun(given) {
  for (const name of start.strategies) byId("strategy").append(new Option(name));
  byId("strategy").value = "knowagent";
  byId("steps").max = start.bounds.steps;
  byId("task").maxLength = start.bounds.task;
  byId("run-form").addEventListener("submit", (event) => {
    event.preventDefault();
    run(given());
  });
  byId("stop").addEventListener("click", stop);
}

/** Suggest a task for the document. */
export function offerTask(name) {
  byId("task").value = TASKS[name] ?? "";
  byId("task").placeholder = "What to do";
}

/** Show how tasks of this grammar are run. */
export function sayWhatRuns(played) {
  byId("run-hint").textContent = `${HINTS[played ?? "other"]} Model: ${start.model}.`;
  byId("task").required = played !== "world";
  byId("task").placeholder = played === "world" ? "The file's own goal" : "What to do";
}

/** Run, or stop the run. */
export function toggleRun() {
  if (stopping) stop();
  else byId("run-form").requestSubmit();
}

async function run(given) {
  if (stopping) return;
  stopping = new AbortController();
  counts = { steps: 0, invalid: 0, misordered: 0, pruned: 0, phase: "", masks: byId("masks").checked, began: performance.now() };
  byId("run-steps").replaceChildren();
  byId("figures").hidden = byId("trace").hidden = true;
  working(true);
  say("Loading the model ...");
  const question = {
    ...given,
    task: byId("task").value,
    strategy: byId("strategy").value,
    masks: byId("masks").checked,
    seed: Number(byId("seed").value),
    steps: byId("steps").value ? Number(byId("steps").value) : null,
  };
  const { signal } = stopping;
  await listen("run", question, take, signal);
  if (signal.aborted) say("Stopped.");
  byId("trace").hidden = !counts.steps;
  stopping = null;
  working(false);
}

function stop() {
  stopping?.abort();
  ask("stop");
}

function working(on) {
  byId("go").hidden = on;
  byId("stop").hidden = !on;
  byId("run").setAttribute("aria-busy", String(on));
}

function take(message) {
  if (message.error) say(`${message.error.message}${message.error.hint ? `: ${message.error.hint}` : ""}`, "bad");
  else if (message.start) begin(message.start);
  else if (message.step) add(message.step);
  else if (message.end) end(message.end);
}

function begin({ observation, note }) {
  say("Running ...");
  if (note) byId("run-steps").append(el("li", { className: "note" }, note));
  const room = observation.split("\n\n").filter((part) => part && !/^(-=|Your task)/.test(part)).join("\n");
  if (room) byId("run-steps").append(el("li", { className: "note" }, details("First observation", room)));
}

function add(step) {
  counts.steps += 1;
  counts.invalid += step.verdict === "invalid";
  counts.misordered += step.verdict === "misordered";
  counts.pruned += step.pruned_mass;
  const mass = step.max_pruned_mass;
  const phase = step.phase === counts.phase ? "" : step.phase;
  counts.phase = step.phase;
  const verdict = step.verdict === "ok" ? null : el("strong", { className: "verdict", title: step.reason }, step.verdict);
  byId("run-steps").append(
    el(
      "li",
      { className: `step ${step.verdict}` },
      el("span", { className: "number" }, String(step.n)),
      el(
        "div",
        {},
        phase && el("p", { className: "hint" }, phase),
        step.thought && el("p", { className: "thought" }, step.thought),
        el("p", { className: "action" }, el("code", {}, step.action), " ", verdict),
        step.verdict === "ok" ? null : el("p", { className: "reason" }, step.reason),
        step.observation && el("p", { className: "observation" }, step.observation),
      ),
      mass >= 0.0005 ? el("span", { className: "mass", title: "most probability outside the masks at one token" }, `${percent(mass)} outside`) : null,
    ),
  );
  figures();
}

function figures() {
  const { steps, invalid, misordered, pruned } = counts;
  byId("figures").hidden = false;
  byId("figures").replaceChildren(
    figure(steps, steps === 1 ? "step" : "steps"),
    figure(invalid, "invalid", invalid),
    figure(misordered, "misordered", misordered),
    counts.masks ? figure(percent(steps ? pruned / steps : 0), "outside the masks") : figure("no", "masks"),
  );
}

const details = (title, text) => el("details", {}, el("summary", {}, title), text);

function figure(value, label, bad = false) {
  return el("span", { className: bad ? "figure bad" : "figure" }, el("b", {}, String(value)), ` ${label}`);
}

function end({ success, steps, note, usage }) {
  const outcome = { true: "Solved", false: "Not solved", null: "Planned, nothing executed" }[success];
  const seconds = ((performance.now() - counts.began) / 1000).toFixed(1);
  const written = `${usage.completion_tokens} tokens written, ${usage.forced_tokens} of them forced`;
  say(`${outcome} in ${steps} steps, ${seconds} s: ${written}.${note ? ` ${note}` : ""}`, success ? "good" : success === false ? "bad" : "");
  if (!counts.steps) figures();
}

function say(text, kind = "") {
  byId("run-state").textContent = text;
  byId("run-state").className = `summary ${kind}`;
}

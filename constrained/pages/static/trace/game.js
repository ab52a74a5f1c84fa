// The game step by step: a row for each step, the current one with all details.
import { byId, el, percent, plural } from "../dom.js";
import { actionAnswer, data, mostRemoved, promptOf, textAt } from "./run.js";
import { TOLD, tokenLine } from "./tokens.js";

const SIGNS = { won: "✓", lost: "✗", failed: "⚠", planned: "◇", "under way": "…" };
const VERDICTS = new Map([
  ["ok", "✓ ok"],
  ["invalid", "✗ invalid"],
  ["misordered", "⇄ misordered"],
]);

/** The outcome of a task, as a sign and a word. */
export function outcomeMark(task) {
  return el("span", { className: `outcome ${task.state.replace(" ", "-")}` }, `${SIGNS[task.state]} ${task.state}`);
}

/** Show a task: its head, its profile and a row for each step; `choose(step, token)` goes to one. */
export function showTask(task, choose) {
  byId("task-name").textContent = task.title;
  byId("task-name").title = task.title;
  byId("task-id").textContent = task.title === task.name ? "" : task.name;
  byId("task-about").replaceChildren(outcomeMark(task), ` ${taskWords(task)}`);
  byId("profile").replaceChildren(...task.steps.map((step, index) => profileBar(step, index, choose)));
  const rows = [];
  let phase = "";
  let subgoal = "";
  for (const [index, step] of task.steps.entries()) {
    if ((step.phase ?? "") !== phase) rows.push(el("li", { className: "phase" }, (phase = step.phase ?? "")));
    if ((step.subgoal ?? "") !== subgoal) rows.push(el("li", { className: "subgoal" }, (subgoal = step.subgoal ?? "")));
    rows.push(stepRow(step, index, choose));
  }
  if (!rows.length) rows.push(el("li", { className: "faint" }, "No step is recorded."));
  byId("steps").replaceChildren(...rows);
}

function taskWords(task) {
  const words = [plural(task.steps.length, "step")];
  for (const verdict of ["invalid", "misordered"]) {
    const count = task.steps.filter((step) => step.verdict === verdict).length;
    if (count) words.push(`${count} ${verdict}`);
  }
  words.push(data.run.masks ? `at most ${percent(task.most)} of the probability of a token not allowed` : "masks off");
  for (const [name, value] of Object.entries(task.end?.outcome ?? {})) {
    if (name !== "success") words.push(`${name} ${Number(value.toPrecision(3))}`);
  }
  const usage = Object.values(task.end?.usage ?? {});
  const total = (what) => usage.reduce((sum, cost) => sum + (cost[what] ?? 0), 0);
  if (usage.length)
    words.push(`${plural(total("completion_tokens"), "token")} written, ${total("forced_tokens")} forced`);
  const note = task.end?.failure || task.end?.note;
  if (note) words.push(note);
  return `· ${words.join(" · ")}`;
}

function profileBar(step, index, choose) {
  const most = mostRemoved(step);
  const bar = el("span", {
    className: `bar-of-step${step.verdict === "ok" ? "" : " wrong"}`,
    title: `step ${index + 1}: at most ${percent(most)} wanted, not allowed`,
    style: { "--most": `${Math.round(most * 100)}%` },
    data: { step: index },
  });
  bar.addEventListener("click", () => choose(index, null));
  return bar;
}

function stepRow(step, index, choose) {
  const most = mostRemoved(step);
  const row = el(
    "button",
    { type: "button", className: "row", "aria-expanded": "false" },
    el("span", { className: "number" }, String(step.n)),
    el("code", { className: "action" }, step.action || "(no action)"),
    most >= TOLD ? el("span", { className: "most" }, percent(most)) : null,
    step.no_effect ? el("span", { className: "verdict none" }, "∅ no effect") : null,
    el("span", { className: `verdict ${step.verdict}` }, VERDICTS.get(step.verdict) ?? step.verdict ?? ""),
  );
  row.addEventListener("click", () => choose(index, null));
  return el("li", { className: "step", data: { step: index } }, row);
}

const rowOf = (index) => byId("steps").querySelector(`.step[data-step="${index}"]`);

/** Open the row of a step and close the one that was open. */
export function showStep(task, index, choose) {
  for (const open of byId("steps").querySelectorAll(".step[aria-current]")) {
    open.removeAttribute("aria-current");
    open.querySelector(".row").setAttribute("aria-expanded", "false");
    open.querySelector(".step-body").remove();
  }
  for (const bar of byId("profile").children) bar.classList.toggle("current", Number(bar.dataset.step) === index);
  byId("step-said").textContent = task.steps.length ? `Step ${index + 1} of ${task.steps.length}` : "";
  const row = rowOf(index);
  if (!row) return;
  row.setAttribute("aria-current", "step");
  row.querySelector(".row").setAttribute("aria-expanded", "true");
  row.append(stepBody(task, task.steps[index], index, choose));
}

function stepBody(task, step, index, choose) {
  const body = el("div", { className: "step-body" });
  let first = 0;
  for (const answer of step.answers) {
    if (step.answers.length > 1 || answer.role !== "policy") body.append(el("h3", {}, answer.role));
    if (answer.tokens) {
      body.append(tokenLine(answer, first, (token) => choose(index, token)));
      first += answer.tokens.length;
    } else body.append(el("pre", { className: "said" }, answer.text));
  }
  if (!step.answers.length && step.thought) body.append(el("p", {}, step.thought));
  if (step.reason)
    body.append(el("p", { className: `reason ${step.verdict}` }, el("strong", {}, "The knowledge: "), step.reason));
  if (step.observation !== undefined)
    body.append(el("h3", {}, "The environment answered"), el("p", { className: "observation" }, step.observation));
  body.append(...openThen(step), ...promptRead(task, step));
  return body;
}

function openThen(step) {
  if (!step.place) return [];
  const answer = actionAnswer(step);
  const names = step.open.map((name) =>
    el("li", { className: name === step.took ? "took" : "", title: definition(name) }, name),
  );
  const parts = [
    el("h3", {}, step.place === "start" ? "Open at the start" : `Open after ${step.place}`),
    names.length ? el("ul", { className: "names" }, ...names) : el("p", { className: "faint" }, "Nothing."),
  ];
  if (!answer)
    return [...parts, el("p", { className: "faint" }, "By the rules alone: the file doesn't say what was in view.")];
  if (answer.left_out)
    parts.push(
      el(
        "p",
        { className: "faint" },
        `${plural(answer.left_out, "action")} more admitted by the rules, but done before in the same situation or known to be useless.`,
      ),
    );
  if (answer.some.length) {
    const rest = (answer.choices ?? 0) - answer.some.length;
    parts.push(
      el(
        "details",
        {},
        el(
          "summary",
          {},
          `${answer.choices === null ? "Some of the" : answer.choices.toLocaleString("en")} concrete actions`,
        ),
        el(
          "ul",
          { className: "choices" },
          ...answer.some.map((at) =>
            el("li", { className: textAt(at) === step.action ? "took" : "" }, el("code", {}, textAt(at))),
          ),
          rest > 0 ? el("li", { className: "faint" }, `and ${rest} more`) : null,
        ),
      ),
    );
  }
  return parts;
}

function definition(name) {
  const known = data.knowledge?.definitions ?? {};
  return Object.hasOwn(known, name) ? known[name] : name;
}

function promptRead(task, step) {
  const read = step.answers.filter((answer) => answer.prompt);
  return read.map((answer) => {
    const text = el("pre", { className: "prompt" });
    const title = read.length > 1 ? `What the ${answer.role} had read` : "What the model had read";
    const details = el("details", {}, el("summary", {}, title), text);
    details.addEventListener("toggle", () => (text.textContent = details.open ? promptOf(task, answer) : ""));
    return details;
  });
}

/** Mark the chosen token, make it the one that Tab reaches, and scroll it into view. */
export function showToken(index, token, { focus, scroll }) {
  const body = rowOf(index)?.querySelector(".step-body");
  if (!body) return;
  const marks = [...body.querySelectorAll(".token")];
  const chosen = token === null ? undefined : marks.findLast((mark) => Number(mark.dataset.token) <= token);
  for (const mark of marks) {
    mark.classList.toggle("chosen", mark === chosen);
    mark.tabIndex = mark === (chosen ?? marks[0]) ? 0 : -1;
  }
  if (focus && chosen) chosen.focus({ preventScroll: true });
  if (scroll) (chosen ?? rowOf(index)).scrollIntoView({ block: "nearest" });
}

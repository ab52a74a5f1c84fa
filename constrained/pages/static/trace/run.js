// The data of the run, and what is computed from it.
import { byId } from "../dom.js";

export const data = JSON.parse(byId("data").textContent);
export const tasks = data.tasks;
export const textAt = (index) => (index === undefined ? "" : data.texts[index]);

for (const [index, task] of tasks.entries()) {
  task.index = index;
  task.wrong = task.steps.filter((step) => step.verdict !== "ok").length;
  task.most = Math.max(0, ...task.steps.map(mostRemoved));
  task.state = stateOf(task);
  task.title = task.task || task.name;
}

/** won, lost, failed (an error), planned (nothing was executed), or under way (the record has no end). */
function stateOf(task) {
  if (!task.end) return "under way";
  if (task.end.failure) return "failed";
  if (task.end.success) return "won";
  return task.steps.some((step) => step.observation !== undefined) || !task.steps.length ? "lost" : "planned";
}

/** The largest pruned mass at one token of a step. A text for several steps counts where it was written. */
export function mostRemoved(step) {
  if (!data.traced) return step.max_pruned;
  return tokensOf(step).reduce((most, { token }) => Math.max(most, token.pruned ?? 0), 0);
}

/**
 * The tokens of a step, one after another, whichever answer they are of.
 * @returns {{token: Object, answer: Object, at: number}[]} `at`: its place in its answer
 */
export function tokensOf(step) {
  return step.answers.flatMap((answer) => (answer.tokens ?? []).map((token, at) => ({ token, answer, at })));
}

/** What a token is part of: the action, the thought, or the text of a role. */
export function kindOf(answer, at) {
  if (answer.action_at !== null && at >= answer.action_at) return "action";
  return answer.role === "policy" ? "thought" : answer.role;
}

/** The text of an answer's action before its token `at`; null outside of the action. */
export function actionBefore(answer, step, at) {
  if (kindOf(answer, at) !== "action") return null;
  const before = written(answer, at);
  const begin = written(answer).lastIndexOf(step.action);
  return begin > before.length ? "" : before.slice(begin);
}

/** The concrete actions that were open and still fit the text before token `at`; null if they aren't known. */
export function stillOpen(answer, step, at) {
  const before = actionBefore(answer, step, at);
  if (before === null || !answer.choices || answer.some.length < answer.choices) return null;
  return answer.some.map(textAt).filter((choice) => choice.startsWith(before));
}

/** The text of an answer's tokens up to `end`. */
export function written(answer, end = answer.tokens.length) {
  return answer.tokens
    .slice(0, end)
    .map((token) => (token.end ? "" : token.t))
    .join("");
}

/** The prompt of an answer, which is stored as its difference from the previous prompt. */
export function promptOf(task, wanted) {
  let prompt = "";
  for (const step of task.steps) {
    for (const answer of step.answers) {
      if (answer.prompt) prompt = Array.from(prompt).slice(0, answer.prompt[0]).join("") + answer.prompt[1];
      if (answer === wanted) return prompt;
    }
  }
  return "";
}

/** The answer that contains the action of a step, else the last traced answer. */
export function actionAnswer(step) {
  const traced = step.answers.filter((answer) => answer.tokens);
  return traced.findLast((answer) => answer.action_at !== null) ?? traced.at(-1);
}

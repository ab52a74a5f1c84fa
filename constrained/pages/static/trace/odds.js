// Where model and knowledge disagree most: tokens with much pruned mass, and actions judged wrong.
import { data, kindOf, tasks, textAt } from "./run.js";

/** Tokens with less pruned mass than this are never listed. */
const NOTHING = 0.001;

/**
 * Every place of the run, in its order.
 * `mass` is null where an action was judged wrong; `token` is null where a whole step is meant.
 */
export const places = tasks.flatMap((task) => task.steps.flatMap((step, index) => ofStep(task, step, index)));

function ofStep(task, step, index) {
  const found = [];
  let number = 0;
  for (const answer of step.answers) {
    for (const [at, token] of (answer.tokens ?? []).entries()) {
      if ((token.pruned ?? 0) >= NOTHING) {
        found.push({ ...tokenPlace(answer, at, token), task: task.index, step: index, token: number });
      }
      number += 1;
    }
  }
  const whole = { task: task.index, step: index, token: null, answer: null };
  if (!data.traced && step.max_pruned >= NOTHING) {
    found.push({ ...whole, mass: step.max_pruned, kind: "step", why: [], said: step.action ?? "" });
  }
  if (step.verdict !== "ok") {
    found.push({ ...whole, mass: null, kind: "action", why: [step.verdict], said: step.action ?? "" });
  }
  return found;
}

function tokenPlace(answer, at, token) {
  const other = token.forbidden;
  const why = other?.kind === undefined ? [] : [textAt(other.kind), ruleOf(other)].filter(Boolean);
  return { answer, at, mass: token.pruned, kind: kindOf(answer, at), why, said: token.t };
}

/** The rule that forbade a token, with its place; empty where none did. */
function ruleOf(other) {
  return other.rule === undefined ? "" : `${textAt(other.rule)}, ${textAt(other.at)}`;
}

const KINDS = new Map([
  ["form", "form: the step format"],
  ["invalid", "form: no such action or argument"],
  ["misordered", "form: the order does not admit it here"],
  ["unfinished", "form: the action was unfinished"],
  ["not now", "state: it exists, but is not possible now"],
  ["not listed", "state: the environment does not list it now"],
  ["done before", "goal: done before, and nothing has changed"],
  ["of no use", "goal: it does not lead to the goal, or does not look useful"],
  ["too long", "too few tokens were left"],
]);

/** A kind of reason in words, the level of masks that forbids it first; a rule as it is. */
export const inWords = (why) => KINDS.get(why) ?? why;

/** The places that pass the filters, in the run's order. */
export function filtered({ least, why, kind, task, words }) {
  return places.filter(
    (place) =>
      (place.mass === null || place.mass >= least) &&
      (!why || place.why.includes(why)) &&
      (!kind || place.kind === kind) &&
      (task === null || place.task === task) &&
      (!words || wordsOf(place).includes(words)),
  );
}

function wordsOf(place) {
  const task = tasks[place.task];
  return `${task.name} ${task.task} ${task.steps[place.step].action}`.toLowerCase();
}

/** Wrong actions first, then by pruned mass. */
export const byMass = (places) => [...places].sort((a, b) => (b.mass ?? 2) - (a.mass ?? 2));

/** The values of all places with their counts, most frequent first. */
export function counted(valuesOf) {
  const counts = new Map();
  for (const value of places.flatMap(valuesOf)) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

/** The place of `list` that comes after `here` (or before, with `way` -1) in the run's order. */
export function neighbour(list, here, way) {
  const order = (place) => [place.task, place.step, place.token ?? -1];
  const now = order(here);
  const after = (place) => {
    const [a, b] = way > 0 ? [order(place), now] : [now, order(place)];
    return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
  };
  const rest = list.filter((place) => after(place) > 0);
  return way > 0 ? rest[0] : rest.at(-1);
}

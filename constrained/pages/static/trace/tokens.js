// The tokens of an answer as a line of marks: how sure the model was, what the mask removed, what was forced.
import { el, percent, visible } from "../dom.js";

const SURE = 0.9;
const LIKELY = 0.5;
/** Pruned mass from which a mark shows its figure. */
export const TOLD = 0.05;

/**
 * The marks of an answer's tokens.
 * @param {Object} answer with tokens
 * @param {number} first the number of its first token in the step
 * @param {(token: number) => void} choose
 */
export function tokenLine(answer, first, choose) {
  const line = el("div", { className: "tokens", role: "group", "aria-label": `Tokens of ${answer.role}` });
  const begun = answer.begun.split("\n").at(-1);
  if (begun)
    line.append(el("span", { className: "begun", title: "The prompt ends with this" }, visible(begun)));
  for (const run of runs(answer.tokens)) {
    const mark = run.forced ? forcedMark(run) : askedMark(run.tokens[0]);
    mark.dataset.token = first + run.at;
    mark.addEventListener("click", () => choose(first + run.at));
    const text = run.tokens.map((token) => token.t).join("");
    if (/^\n./s.test(text)) line.append(el("br"));
    line.append(mark);
    if (/\n$/.test(text)) line.append(el("br"));
  }
  return line;
}

/** The tokens in order; consecutive forced tokens are one run. */
export function runs(tokens) {
  const found = [];
  for (const [at, token] of tokens.entries()) {
    const last = found.at(-1);
    if (token.forced && last?.forced) last.tokens.push(token);
    else found.push({ at, forced: Boolean(token.forced), tokens: [token] });
  }
  return found;
}

const shownText = (token) => (token.end ? "■" : visible(token.t) || "∅");

function forcedMark({ tokens }) {
  const text = tokens.map(shownText).join("");
  const label = `${text}: ${tokens.length === 1 ? "forced" : `${tokens.length} tokens forced`}`;
  return el(
    "button",
    {
      type: "button",
      className: "token forced",
      tabIndex: -1,
      "aria-label": label,
      title: label,
      data: tokens.length > 1 ? { figure: tokens.length } : {},
    },
    text,
  );
}

function askedMark(token) {
  const sure = token.p >= SURE ? "sure" : token.p >= LIKELY ? "likely" : "unsure";
  const lost = Math.round(token.pruned * 100);
  const label = `${token.end ? "■, the end of the text" : visible(token.t)}: probability ${percent(token.p)}, not allowed ${percent(token.pruned)}`;
  return el(
    "button",
    {
      type: "button",
      className: `token ${sure}${token.pruned >= TOLD ? " lost" : ""}`,
      tabIndex: -1,
      "aria-label": label,
      title: label,
      style: { "--lost": `${lost}%` },
      data: token.pruned >= TOLD ? { figure: lost } : {},
    },
    shownText(token),
  );
}

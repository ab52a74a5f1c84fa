// One token: where the model's probability went, and which rules removed some of it.
import { byId, el, percent, plural, visible } from "../dom.js";
import { data, kindOf, stillOpen, textAt, tokensOf } from "./run.js";
import { inWords } from "./odds.js";
import { runs } from "./tokens.js";

const MOST_LISTED = 12;

/** Show token `number` of `step`; null: show how to choose one. */
export function inspect(step, number, close) {
  const box = byId("inspector");
  const found = number === null ? undefined : tokensOf(step ?? { answers: [] })[number];
  box.classList.toggle("filled", Boolean(found));
  const head = el("h2", { id: "inspector-name" }, "Token");
  if (!found) {
    box.replaceChildren(head, el("p", { className: "faint" }, invitation()));
    return;
  }
  const { token, answer, at } = found;
  const shut = el("button", { type: "button", className: "close", "aria-label": "Close the token" }, "×");
  shut.addEventListener("click", close);
  const where = `token ${at + 1} of ${answer.tokens.length} · ${kindOf(answer, at)} · ${answer.role}, ${answer.model}`;
  box.replaceChildren(
    el(
      "div",
      { className: "inspector-head" },
      head,
      el("code", { className: "big" }, token.end ? "end of text" : visible(token.t)),
      shut,
    ),
    el("p", { className: "faint" }, where),
    ...(token.forced ? forced(answer, step, at) : asked(token, answer, step, at)),
  );
  bringUp(box);
}

/** Scroll the side panel so that the token is visible, completely if it fits. */
function bringUp(box) {
  const margin = 12;
  const side = box.closest(".side");
  const least = box.offsetTop + box.offsetHeight - side.clientHeight + margin;
  side.scrollTop = Math.max(0, Math.min(least, box.offsetTop - margin));
}

function invitation() {
  if (!data.traced)
    return "This run has no recorded tokens. Run it again with --trace to see each token, and what the model wanted and the masks did not allow.";
  const next = data.run.masks ? "token that the model wanted and the mask did not allow" : "action that the knowledge judges wrong";
  return `Choose a token: click it, or press n for the next ${next}.`;
}

function forced(answer, step, at) {
  const run = runs(answer.tokens).find((one) => one.at <= at && at < one.at + one.tokens.length);
  const open = stillOpen(answer, step, run.at);
  const text = run.tokens.map((token) => (token.end ? "■" : visible(token.t))).join("");
  const why =
    open?.length === 1
      ? "only one action still fits the text so far"
      : open?.length
        ? `all ${open.length} actions that still fit continue this way`
        : "the step format and the knowledge leave one continuation";
  return [
    el(
      "p",
      {},
      el("strong", {}, "Forced. "),
      `The model was not asked for ${plural(run.tokens.length, "token")}: ${why}.`,
    ),
    el("pre", { className: "source" }, text),
    ...openList(open),
  ];
}

function asked(token, answer, step, at) {
  const shares = sharesOf(token);
  const parts = [bar(shares), shareTable(shares)];
  if (token.forbidden) parts.push(...forbidden(token.forbidden));
  else if (!data.run.masks) parts.push(el("p", { className: "faint" }, "Masks were off: every token was allowed."));
  return [...parts, ...openList(stillOpen(answer, step, at))];
}

/** The parts of the model's probability: [class, label, share] for each share above 0. */
function sharesOf(token) {
  const allowed = 1 - token.pruned;
  const other = token.forbidden?.p ?? 0;
  const quoted = (one) => (one.end ? "end of text" : `“${visible(one.t)}”`);
  return [
    ["this", `${quoted(token)}, written (${percent(token.p)} of what was allowed)`, token.p * allowed],
    ["allowed", "other tokens: allowed", (1 - token.p) * allowed],
    ["wanted", token.forbidden ? `${quoted(token.forbidden)}, wanted: not allowed` : "", other],
    ["removed", "other tokens: not allowed", Math.max(0, token.pruned - other)],
  ].filter(([, , share]) => share > 0);
}

function bar(shares) {
  const parts = shares.map(([name, , share]) =>
    el("span", { className: `share ${name}`, style: { "flex-grow": String(share) } }),
  );
  return el("div", { className: "bar", "aria-hidden": "true" }, ...parts);
}

function shareTable(shares) {
  const rows = shares.map(([name, label, share]) =>
    el(
      "tr",
      {},
      el("td", {}, el("span", { className: `share key ${name}` })),
      el("th", { scope: "row" }, label),
      el("td", { className: "figure" }, percent(share)),
    ),
  );
  return el(
    "table",
    { className: "shares" },
    el("caption", { className: "visually-hidden" }, "Where the model's probability went"),
    el("tbody", {}, ...rows),
  );
}

function forbidden(other) {
  if (other.reason === undefined) return [];
  return [
    el(
      "h3",
      {},
      "Why not ",
      el("code", {}, other.end ? "end of text" : visible(other.t)),
      `? ${inWords(textAt(other.kind))}`,
    ),
    el("p", {}, textAt(other.reason)),
    ...(other.rule === undefined
      ? []
      : [el("p", {}, "Rule ", el("code", {}, textAt(other.rule)), " at ", el("code", {}, textAt(other.at)))]),
    ...(other.line === undefined ? [] : [el("pre", { className: "source", tabIndex: 0 }, textAt(other.line))]),
  ];
}

function openList(open) {
  if (!open?.length) return [];
  const more = open.length - MOST_LISTED;
  return [
    el(
      "h3",
      {},
      `${plural(open.length, "action")} still fit what is written`.replace("1 action still fit", "1 action still fits"),
    ),
    el(
      "ul",
      { className: "choices" },
      ...open.slice(0, MOST_LISTED).map((choice) => el("li", {}, el("code", {}, choice))),
      more > 0 ? el("li", { className: "faint" }, `and ${more} more`) : null,
    ),
  ];
}

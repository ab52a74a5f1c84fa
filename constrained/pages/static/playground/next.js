// What may come next after a path: verdicts, expected items with their rules, bytes, tokens, and forced text.
import { button, byId, el, plural, visible } from "../dom.js";

const SIGN = { ok: "✓", complete: "✓", unfinished: "...", invalid: "✕", misordered: "✕" };
const BYTES_AT_ONCE = 3; // this many consecutive bytes are shown as a range

/**
 * Show an explanation.
 * @param {object} answer  of api/explain
 * @param {string} path  what was asked about
 * @param {{goTo: function, write: function}} actions  go to a spot of the grammar; write this as the path
 */
export function showExplanation(answer, path, actions) {
  byId("explanation").replaceChildren(...(answer.error ? [problem(answer.error)] : parts(answer, path, actions)));
}

/** Show that the text has errors. */
export function showStale(stale) {
  const answered = byId("explanation").childElementCount > 0;
  byId("explanation").classList.toggle("stale", stale);
  byId("next-state").hidden = !stale;
  byId("next-state").textContent = answered ? "This is from before the errors." : "Fix the errors to get an answer.";
}

function problem(error) {
  return el("p", { className: "problem" }, error.message, error.hint ? ` (${error.hint})` : "");
}

function parts(answer, path, actions) {
  const append = (text) => actions.write(path + text);
  return [
    steps(answer),
    answer.reason ? wrong(answer, path, actions) : following(answer, actions, append),
    expected(answer, actions, append),
    impossible(answer),
    forced(answer, append),
    bytes(answer.bytes, append),
    tokens(answer.tokens, append),
    answer.unbound.length
      ? el("p", { className: "hint" }, `Slots without values stand for themselves: ${answer.unbound.join(", ")}.`)
      : null,
  ].filter(Boolean);
}

function steps({ path, text, verdict }) {
  const all = [...path.map((step) => ["ok", step.text]), ...(text || !path.length ? [[verdict, text]] : [])];
  const rows = all.map(([said, words]) =>
    el(
      "li",
      { className: said },
      el("span", { className: "sign", "aria-hidden": "true" }, SIGN[said]),
      el("code", {}, shown(words) || "the start"),
      el("span", { className: "verdict" }, said),
    ),
  );
  return el("ol", { className: "verdicts", "aria-label": "Path, action by action" }, ...rows);
}

function wrong({ reason, meant, said_by: spot }, path, actions) {
  const offers = meant.map((text) => button(shown(text), () => actions.write(before(path) + text), { className: "chip" }));
  return section(
    "Why not",
    el("p", {}, reason),
    offers.length ? el("p", {}, "Did you mean ", ...offers, "?") : null,
    spot && spotLink(spot, actions),
  );
}

const before = (path) => path.slice(0, path.lastIndexOf("->") < 0 ? 0 : path.lastIndexOf("->") + 2);

function following({ text, follow, may_end: mayEnd, said_by: spot }, actions, append) {
  if (follow === null) return null;
  const end = mayEnd ? (follow.length ? "; or the path may end" : "The path is over.") : "";
  const words = follow.length ? follow.join(", ") + end : end || "Nothing may follow, and the path may not end.";
  const goOn = text && follow.length ? button("Continue: ->", () => append("->")) : null;
  return section("May follow", el("p", {}, words, " ", goOn), spot && spotLink(spot, actions));
}

function expected({ expected: items, expected_more: more }, actions, append) {
  if (!items.length || items.every((item) => item.kind === "end")) return null;
  const rows = items.map((item) =>
    el(
      "li",
      {},
      el("span", { className: `kind ${item.kind}` }, item.kind),
      el("code", {}, item.slot ? `${item.slot}: ${item.text}` : item.text),
      item.count > 1 ? el("span", { className: "hint" }, plural(item.count, "value")) : null,
      item.spot && spotLink(item.spot, actions),
    ),
  );
  const left = more ? el("p", { className: "hint" }, `and ${more} more`) : null;
  return section("Expected", el("ul", { className: "expected" }, ...rows), left);
}

/** Actions that the facts keep from being possible now, with what they need. */
function impossible({ impossible: found }) {
  const rows = Object.entries(found).map(([text, why]) => el("li", {}, el("code", {}, shown(text)), ` ${why}`));
  return rows.length ? section("Can't be done now", el("ul", {}, ...rows)) : null;
}

/** Where a rule says so: a button that goes there, if it is in this text. */
function spotLink(spot, actions) {
  const where = [spot.definition && `${/^_*[A-Z]/.test(spot.definition) ? "terminal" : "rule"} ${spot.definition}`];
  if (spot.rule && spot.rule !== spot.definition) where.push(`in rule ${spot.rule}`);
  if (spot.line) where.push(`line ${spot.line}`);
  const words = where.filter(Boolean).join(", ");
  if (!spot.line || !actions.isHere(spot)) return el("span", { className: "spot" }, `${words} (${spot.source})`);
  return button(words, () => actions.goTo(spot.line, spot.column), { className: "spot", title: "Go there" });
}

function forced({ forced: text }, append) {
  if (!text) return null;
  return section(
    "Forced text",
    el("p", { className: "hint" }, "Only this text can come next, so the model is not asked for it:"),
    el("p", {}, el("code", { className: "forced" }, shown(text)), " ", button("Append", () => append(text))),
  );
}

function bytes(values, append) {
  const chips = runs(values).map(([low, high]) => {
    if (low !== high) return el("span", { className: "chip" }, `${byteName(low)} - ${byteName(high)}`);
    return low < 0x80
      ? button(byteName(low), () => append(String.fromCharCode(low)), { className: "chip" })
      : el("span", { className: "chip" }, byteName(low));
  });
  return section(`Next byte: ${values.length} of 256`, chips.length ? el("p", { className: "chips" }, ...chips) : null);
}

/** Ranges of consecutive values, as [first, last]. */
function runs(values) {
  const found = [];
  for (const value of values) {
    const last = found.at(-1);
    if (last && value === last[1] + 1) last[1] = value;
    else found.push([value, value]);
  }
  return found.flatMap(([low, high]) =>
    high - low + 1 >= BYTES_AT_ONCE ? [[low, high]] : Array.from({ length: high - low + 1 }, (_, i) => [low + i, low + i]),
  );
}

function byteName(value) {
  if (value === 0x20) return "space";
  if (value === 0x0a) return "line end";
  if (value > 0x20 && value < 0x7f) return String.fromCharCode(value);
  return `0x${value.toString(16).padStart(2, "0")}`;
}

function tokens({ size, allowed, first }, append) {
  const chips = first.map(({ id, text }) => {
    const title = `token ${id}`;
    if (text === null) return el("span", { className: "chip end", title }, "end of text");
    return button(shown(text), () => append(text), { className: "chip", title });
  });
  const left = allowed - first.length;
  return section(
    `Next token: ${allowed.toLocaleString("en")} of ${size.toLocaleString("en")}`,
    chips.length ? el("p", { className: "chips" }, ...chips) : null,
    left > 0 ? el("p", { className: "hint" }, `and ${left.toLocaleString("en")} more`) : null,
  );
}

/** Text with visible blanks at its ends. */
const shown = (text) => visible(text).replace(/^ +| +$/g, (found) => "␣".repeat(found.length));

function section(title, ...children) {
  return el("section", {}, el("h2", {}, title), ...children);
}

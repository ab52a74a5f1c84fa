// The graph and the prompt text of the last readable text, marked as outdated while the current one has errors.
import { byId } from "../dom.js";

const READABLE = 560; // pixels: a narrow screen scrolls rather than show a wider picture smaller than this

/** Show what a check found in the text; `null` knowledge leaves what was seen before. */
export function showKnowledge(answer) {
  const { knowledge, slots, findings } = answer;
  if (knowledge) {
    draw(knowledge);
    say(null);
    markOld(false);
  } else if (slots && !findings.some((finding) => finding.severity === "error")) {
    clearKnowledge();
    say("A grammar of texts: it has no actions, so there is no graph and no prompt text.");
  } else {
    showOld();
  }
}

/** Show nothing: another document is opened. */
export function clearKnowledge() {
  byId("picture").replaceChildren();
  byId("prose").textContent = "";
  say(null);
  markOld(false);
}

/** Show that what is seen is not of this text. */
export function showOld() {
  const shown = byId("picture").childElementCount > 0 || byId("prose").textContent !== "";
  say(shown ? "This is from before the errors." : "Fix the errors to see it.");
  markOld(true);
}

function markOld(old) {
  for (const id of ["picture", "prose"]) byId(id).classList.toggle("stale", old);
}

function draw(knowledge) {
  byId("prose").textContent = knowledge.text;
  const picture = byId("picture");
  if (knowledge.svg === null) {
    picture.replaceChildren(`${knowledge.actions} actions: too many to draw. The text lists which may follow which.`);
    return;
  }
  const parsed = new DOMParser().parseFromString(knowledge.svg, "image/svg+xml").documentElement;
  for (const style of parsed.querySelectorAll("style")) style.remove(); // the page has its own style
  const [, , width, height] = parsed.getAttribute("viewBox").split(" ").map(Number);
  parsed.style.maxWidth = `${width}px`;
  parsed.style.minWidth = `${Math.min(width, READABLE)}px`;
  parsed.style.aspectRatio = `${width} / ${height}`;
  picture.replaceChildren(document.adoptNode(parsed));
}

function say(text) {
  for (const id of ["graph-state", "text-state"]) {
    byId(id).hidden = text === null;
    byId(id).textContent = text ?? "";
  }
}

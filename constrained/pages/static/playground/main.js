// The playground: an editor, and beside it the results for its text, updated while typing.
import { Latest, start } from "./api.js";
import { byId } from "../dom.js";
import { Documents } from "./documents.js";
import { Editor } from "./editor.js";
import { showFindings, showNoCheck } from "./findings.js";
import { clearKnowledge, showKnowledge, showOld } from "./knowledge.js";
import { showExplanation, showStale } from "./next.js";
import { offerTask, openRun, sayWhatRuns, toggleRun } from "./run.js";
import { keptSlots, openSlots, showSlots, slotValues } from "./slots.js";
import { openKeys, openTabs } from "./tabs.js";

const TYPING = 250; // milliseconds without typing before the text is checked

const path = byId("path");
const tokenizer = byId("tokenizer");
let broken = true; // the text has errors: nothing can be explained

const editor = new Editor(byId("editor"), () => {
  documents.mark();
  soon();
});
const documents = new Documents(editor, opened, () => ({ slots: keptSlots(), path: path.value }));
const given = () => ({ text: editor.text, document: documents.name, values: slotValues() });

const checks = new Latest("check", (answer, question) => {
  if (question.text !== editor.text) return;
  if (answer.error) {
    notChecked(answer.error);
    return;
  }
  editor.show(answer.findings);
  showFindings(answer, editor);
  showKnowledge(answer);
  if (answer.knowledge) sayWhatRuns(answer.knowledge.played);
  documents.seen(answer.version);
  broken = answer.slots === null;
  if (answer.slots) showSlots(answer.slots, typed);
  showStale(broken);
  explain();
});

const explanations = new Latest("explain", (answer, question) => {
  if (question.path === path.value && question.text === editor.text) {
    const isHere = (spot) => spot.source === documents.source;
    showExplanation(answer, question.path, { isHere, goTo: (line, column) => editor.goTo(line, column), write });
  }
});

function check() {
  const { text } = editor;
  if (text.length > start.bounds.text) {
    const most = start.bounds.text.toLocaleString("en");
    notChecked({ message: `the text has ${text.length.toLocaleString("en")} characters`, hint: `the playground takes ${most}` });
  } else {
    checks.ask({ text, document: documents.name });
  }
}

function notChecked(error) {
  broken = true;
  editor.show([]);
  showNoCheck(error);
  showOld();
  showStale(true);
}

const soon = debounced(check, TYPING);
const explainSoon = debounced(explain, TYPING / 2);

function explain() {
  if (!broken && !byId("next").hidden) explanations.ask({ ...given(), path: path.value, tokenizer: tokenizer.value });
}

function write(text) {
  path.value = text;
  path.focus();
  path.setSelectionRange(text.length, text.length);
  typed();
}

function typed() {
  documents.mark();
  explainSoon();
}

function opened(draft) {
  clearKnowledge();
  openSlots(draft.slots ?? {});
  path.value = draft.path ?? "";
  offerTask(documents.title);
  check();
}

for (const name of start.tokenizers) tokenizer.append(new Option(label(name), name));
tokenizer.addEventListener("change", explain);
path.maxLength = start.bounds.path;
path.addEventListener("input", typed);
addEventListener("focus", check); // the file may have changed meanwhile
openTabs(explain);
openKeys({ save: () => documents.save(), run: toggleRun, focus: () => editor.focus(), chosen: explain });
openRun(given);
documents.open(start.begin);

/** Call `action` once nobody has called for `milliseconds`. */
function debounced(action, milliseconds) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, milliseconds);
  };
}

/** A tokenizer by its folder, where it is a file. */
function label(name) {
  const parts = name.split("/");
  return parts.length > 1 && parts.at(-1) === "tokenizer.json" ? parts.at(-2) : parts.at(-1);
}

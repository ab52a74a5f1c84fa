// The editor: CodeMirror with Lark's colours, and findings marked in the text.
import {
  EditorState, EditorView, HighlightStyle, autocompletion, bracketMatching, closeBrackets, closeBracketsKeymap,
  completionKeymap, defaultKeymap, drawSelection, highlightActiveLine, highlightActiveLineGutter,
  highlightSelectionMatches, highlightSpecialChars, history, historyKeymap, ifNotIn, keymap, lineNumbers, lintGutter,
  lintKeymap, search, searchKeymap, setDiagnostics, syntaxHighlighting,
} from "../vendor/codemirror.js";
import { el } from "../dom.js";
import { classes, completions, lark } from "./lark_mode.js";

const SEVERITY = { error: "error", warning: "warning", note: "info" };

export class Editor {
  /**
   * @param {HTMLElement} parent
   * @param {() => void} changed  called after each change of the text
   */
  constructor(parent, changed) {
    this.changed = changed;
    this.view = new EditorView({ parent, state: this.begun("") });
    new ResizeObserver(() => this.keepInView()).observe(parent);
  }

  begun(text) {
    const names = lark.data.of({ autocomplete: ifNotIn(["comment", "string", "regexp"], completions) });
    return EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(), lintGutter(), highlightSpecialChars(), history(), drawSelection(), bracketMatching(),
        closeBrackets(), autocompletion(), highlightActiveLine(), highlightActiveLineGutter(),
        highlightSelectionMatches(), search({ top: true }), lark, names, EditorView.lineWrapping,
        syntaxHighlighting(HighlightStyle.define(classes)),
        keymap.of([
          ...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...completionKeymap,
          ...lintKeymap,
        ]),
        EditorView.contentAttributes.of({ "aria-label": "Grammar, in Lark's syntax", spellcheck: "false" }),
        EditorView.updateListener.of((update) => update.docChanged && this.changed()),
      ],
    });
  }

  get text() {
    return this.view.state.doc.toString();
  }

  /** Open a text; the undo history is cleared. */
  open(text) {
    this.view.setState(this.begun(text));
  }

  /** Replace the text; this can be undone. */
  replace(text) {
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } });
  }

  focus() {
    this.view.focus();
  }

  /** Keep the cursor in view when the list of findings grows. */
  keepInView() {
    if (!this.view.hasFocus) return;
    const { head } = this.view.state.selection.main;
    this.view.dispatch({ effects: EditorView.scrollIntoView(head, { y: "nearest", yMargin: 20 }) });
  }

  /** Go to a one-based line and column. */
  goTo(line, column) {
    const at = this.offset(line, column);
    this.view.dispatch({ selection: { anchor: at }, effects: EditorView.scrollIntoView(at, { y: "center" }) });
    this.view.focus();
  }

  /** Mark findings in the text; those about the whole file on its first line. */
  show(findings) {
    const diagnostics = findings.map((finding) => {
      const from = this.offset(finding.line ?? 1, finding.column ?? 1);
      const to = finding.end_column ? this.offset(finding.line, finding.end_column) : from;
      return {
        from,
        to: Math.max(from, to),
        severity: SEVERITY[finding.severity],
        message: finding.message,
        renderMessage: () => words(finding),
      };
    });
    this.view.dispatch(setDiagnostics(this.view.state, diagnostics));
  }

  /** Where a one-based line and column, counted in characters, are in the text, counted in UTF-16 units. */
  offset(line, column) {
    const { doc } = this.view.state;
    const here = doc.line(Math.min(Math.max(line, 1), doc.lines));
    return here.from + [...here.text].slice(0, column - 1).join("").length;
  }
}

function words(finding) {
  return el(
    "div",
    { className: "finding-words" },
    el("strong", {}, `${finding.severity}: ${finding.message}`),
    finding.why && el("span", {}, finding.why),
    finding.fix && el("span", {}, `Fix: ${finding.fix}`),
  );
}

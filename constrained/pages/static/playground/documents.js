// The document in the editor: a file or a copy of a shipped grammar; drafts in this browser; saving.
import { ask, start } from "./api.js";
import { button, byId } from "../dom.js";

const FILE = "file";
const key = (name) => `constrained.playground:${name === FILE ? start.file.path : name}`;

function kept(name) {
  try {
    return JSON.parse(localStorage.getItem(key(name)));
  } catch {
    return null; // nothing kept, or a browser that keeps nothing
  }
}

function keep(name, draft) {
  try {
    if (draft) localStorage.setItem(key(name), JSON.stringify(draft));
    else localStorage.removeItem(key(name));
  } catch {
    // then the draft does not outlive this visit
  }
}

export class Documents {
  /**
   * @param {import("./editor.js").Editor} editor
   * @param {(draft: object) => void} opened  called with the draft, or {}, once a text is in the editor
   * @param {() => object} more  what else a draft keeps
   */
  constructor(editor, opened, more) {
    Object.assign(this, { editor, opened, more });
    this.name = null;
    this.disk = { text: null, version: null };
    const choice = byId("document");
    if (start.file) choice.append(new Option(start.file.name, FILE));
    const shipped = document.createElement("optgroup");
    shipped.label = "Copies of shipped grammars";
    shipped.append(...start.shipped.map((name) => new Option(name, name)));
    choice.append(shipped);
    choice.addEventListener("change", () => this.open(choice.value));
    byId("save").addEventListener("click", () => this.save());
    byId("download").addEventListener("click", () => this.download());
  }

  /** The name of what is edited, without its ending. */
  get title() {
    return this.name === FILE ? start.file.name.replace(/\.lark$/, "") : this.name;
  }

  /** The file name in findings about this text. */
  get source() {
    return this.name === FILE ? start.file.name : `${this.name.split("/").at(-1)}.lark`;
  }

  get isChanged() {
    return this.editor.text !== (this.disk.text ?? "");
  }

  async open(name) {
    this.hush();
    const answer = await ask("open", { document: name });
    if (answer.error) return this.tell(answer.error.message);
    this.name = name;
    this.disk = answer;
    byId("document").value = name;
    byId("save").hidden = name !== FILE;
    const draft = kept(name);
    const differs = draft && draft.text !== (answer.text ?? "");
    this.editor.open(differs ? draft.text : (answer.text ?? ""));
    this.opened(draft ?? {});
    if (differs && draft.version !== answer.version) this.tellChanged(answer.version);
    else if (differs) this.tell("This is your draft.", ["Back to the original", () => this.restore()]);
    if (differs) this.disk = { ...answer, version: draft.version };
    this.mark();
  }

  /** Store the draft, and show whether it is saved. */
  mark() {
    if (this.name === null) return;
    const { text } = this.editor;
    keep(this.name, { text, version: this.disk.version, ...this.more() });
    const file = this.name === FILE;
    const words = this.isChanged ? (file ? "not saved" : "changed copy") : file ? "saved" : "a copy";
    byId("document-state").textContent = file && this.disk.version === null ? "new file" : words;
    byId("save").disabled = file && !this.isChanged;
    if (!this.isChanged && !this.conflict) this.hush();
  }

  /** Compare the version of the file on disk with the one that was opened. */
  seen(version) {
    if (this.name === FILE && version !== this.disk.version && version !== this.conflict) this.tellChanged(version);
  }

  tellChanged(version) {
    this.conflict = version;
    this.tell(
      "The file has changed on disk since you opened it.",
      ["Use the file's text", () => this.restore()],
      ["Keep my text", () => this.keepMine(version)],
    );
  }

  keepMine(version) {
    this.disk = { ...this.disk, text: null, version }; // saving writes over what is there now
    this.hush();
    this.mark();
  }

  async restore() {
    const answer = await ask("open", { document: this.name });
    if (answer.error) return this.tell(answer.error.message);
    this.disk = answer;
    this.hush();
    this.editor.replace(answer.text ?? "");
    this.mark();
  }

  async save() {
    if (this.name !== FILE) return;
    const { text } = this.editor;
    const answer = await ask("save", { text, version: this.disk.version });
    if (answer.error) this.tell(`Not saved: ${answer.error.message}`);
    else if (!answer.saved) this.tellChanged(answer.version);
    else {
      this.hush();
      this.disk = { text, version: answer.version };
      this.mark();
    }
  }

  download() {
    const address = URL.createObjectURL(new Blob([this.editor.text], { type: "text/plain" }));
    const link = Object.assign(document.createElement("a"), { href: address, download: this.source });
    link.click();
    URL.revokeObjectURL(address);
  }

  tell(text, ...choices) {
    byId("notice").hidden = false;
    byId("notice-text").textContent = text;
    byId("notice-buttons").replaceChildren(...choices.map(([label, action]) => button(label, action)));
  }

  hush() {
    this.conflict = null;
    byId("notice").hidden = true;
  }
}

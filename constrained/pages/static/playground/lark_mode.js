// Colours for Lark's syntax, with our conventions: slots, `_STEP`, parameters, and the templates of `relations`.
import { StreamLanguage, tags } from "../vendor/codemirror.js";

const RELATIONS = ["another", "next", "before", "at", "first"];
const NAME = /^_*[A-Za-z][A-Za-z_0-9]*/;

const beginning = () => ({
  directive: null, // the one that this line begins with
  fromRelations: false, // it imports from `relations`
  defining: null, // the name being defined, up to its colon
  braces: 0,
  parameters: new Set(),
  slots: new Set(),
  relations: new Set(),
});

function copied(state) {
  const { parameters, slots, relations } = state;
  return { ...state, parameters: new Set(parameters), slots: new Set(slots), relations: new Set(relations) };
}

function token(stream, state) {
  if (stream.sol()) {
    state.directive = null;
    if (stream.match(/^\s*(\/\/|#).*/)) return "comment";
    const directive = stream.match(/^\s*%(import|ignore|declare|override|extend)\b/);
    if (directive) {
      state.directive = directive[1];
      state.fromRelations = false;
      return "keyword";
    }
    if (stream.match(/^[?!]*(?=_*[A-Za-z][A-Za-z_0-9]*\s*[{.:])/) || stream.match(/^(?=_*[A-Za-z])/)) {
      state.defining = "";
      state.parameters = new Set();
      if (stream.current()) return "operator";
    }
  }
  if (stream.eatSpace()) return null;
  if (stream.match(/^\/\/.*/)) return "comment";
  if (stream.match(/^"(\\.|[^"\\\n])*"i?/)) return "string";
  if (stream.match(/^\/(?!\/)(\\.|[^/\\\n])+\/[imslux]*/)) return "regexp";
  if (stream.match(/^-?\d+/)) return "number";
  const name = stream.match(NAME);
  if (name) return ofName(name[0], state, stream);
  return ofSign(stream.next(), state);
}

function ofName(name, state, stream) {
  if (state.directive === "declare") {
    if (name !== "_STEP") state.slots.add(name);
    return name === "_STEP" ? "step" : "slot";
  }
  if (state.directive === "import") {
    if (name === "relations") state.fromRelations = true;
    else if (state.fromRelations && RELATIONS.includes(name)) state.relations.add(name);
    return state.relations.has(name) ? "relation" : null;
  }
  if (state.defining === "") {
    state.defining = name;
    return "definition";
  }
  if (state.defining !== null && state.braces > 0) state.parameters.add(name);
  if (name === "_STEP") return "step";
  if (state.parameters.has(name)) return "parameter";
  if (state.relations.has(name) && stream.peek() === "{") return "relation";
  if (state.slots.has(name)) return "slot";
  return /^_*[A-Z]/.test(name) ? "terminal" : "rule";
}

function ofSign(sign, state) {
  if (sign === "{") state.braces += 1;
  else if (sign === "}") state.braces = Math.max(0, state.braces - 1);
  else if (sign === ":" && state.braces === 0) state.defining = null;
  return "|*+?~:".includes(sign) ? "operator" : null;
}

/** The language, for an editor's extensions. */
export const lark = StreamLanguage.define({
  name: "lark",
  startState: beginning,
  copyState: copied,
  token,
  languageData: { commentTokens: { line: "//" }, closeBrackets: { brackets: ["(", "[", "{", '"'] } },
  tokenTable: {
    definition: tags.definition(tags.variableName),
    rule: tags.variableName,
    terminal: tags.constant(tags.variableName),
    parameter: tags.local(tags.variableName),
    slot: tags.special(tags.variableName),
    step: tags.controlKeyword,
    relation: tags.function(tags.variableName),
  },
});

/** Names to offer where one is begun: those that the text defines or declares. */
export function completions(context) {
  const begun = context.matchBefore(/\w+/);
  if (!begun && !context.explicit) return null;
  const text = context.state.doc.toString();
  const defined = [...text.matchAll(/^[?!]*(\w+)\s*[{.:]/gm)].map((found) => found[1]);
  const declared = [...text.matchAll(/^\s*%(?:declare|import)\s+([^/\n]*)/gm)].flatMap((found) => found[1].match(/\w+/g) ?? []);
  const options = [...new Set([...defined, ...declared])].map((label) => ({
    label,
    type: /^_*[A-Z]/.test(label) ? "constant" : "function",
  }));
  return { from: begun?.from ?? context.pos, options, validFor: /^\w*$/ };
}

/** Tag -> class, which the style sheet colours. */
export const classes = [
  [tags.comment, "tok-comment"],
  [tags.string, "tok-string"],
  [tags.regexp, "tok-regexp"],
  [tags.number, "tok-number"],
  [tags.keyword, "tok-keyword"],
  [tags.operator, "tok-operator"],
  [tags.definition(tags.variableName), "tok-definition"],
  [tags.constant(tags.variableName), "tok-terminal"],
  [tags.local(tags.variableName), "tok-parameter"],
  [tags.special(tags.variableName), "tok-slot"],
  [tags.controlKeyword, "tok-step"],
  [tags.function(tags.variableName), "tok-relation"],
].map(([tag, name]) => ({ tag, class: name }));

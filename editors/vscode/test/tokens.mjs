// Tokenises .lark files with the engine that VS Code uses, our grammar injected into a Lark grammar.
//
//   npm test                          the grammars that ship, and the lines below
//   node test/tokens.mjs --html FILE  FILE in colours, to look at
//
// LARK_GRAMMAR names the syntaxes/lark.json of an installed Lark extension; without it, base.json stands in for it.

import assert from "node:assert";
import { createRequire } from "node:module";
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import oniguruma from "vscode-oniguruma";
import textmate from "vscode-textmate";

const HERE = dirname(fileURLToPath(import.meta.url));
const INJECTED = "constrained.lark.injection";
const FILES = {
  "source.lark": process.env.LARK_GRAMMAR ?? join(HERE, "base.json"),
  [INJECTED]: join(HERE, "..", "syntaxes", "constrained.json"),
};

async function load() {
  const wasm = createRequire(import.meta.url).resolve("vscode-oniguruma/release/onig.wasm");
  await oniguruma.loadWASM(readFileSync(wasm).buffer);
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async (scope) => textmate.parseRawGrammar(readFileSync(FILES[scope], "utf8"), FILES[scope]),
    getInjections: (scope) => (scope === "source.lark" ? [INJECTED] : []),
  });
  return registry.loadGrammar("source.lark");
}

/** Each line's tokens: its text and the innermost scope that it has. */
function tokenise(grammar, text) {
  let state = textmate.INITIAL;
  return text.split("\n").map((line) => {
    const read = grammar.tokenizeLine(line, state);
    state = read.ruleStack;
    return read.tokens.map((token) => ({
      text: line.slice(token.startIndex, token.endIndex),
      scope: token.scopes.at(-1),
      scopes: token.scopes,
    }));
  });
}

function scopeOf(lines, text) {
  return lines.flat().find((token) => token.text === text)?.scope;
}

function checkLines(grammar) {
  const lines = tokenise(
    grammar,
    [
      "%declare _STEP OBJECT PLACE // where _STEP: things are",
      "// take: take OBJECT from PLACE.",
      '?take{o, r}.2: "take _STEP {at}" o another{PLACE, r} _STEP at{r}',
      "at{r}: | next{PLACE, r}~2..5 /first{A}/",
      "%import relations (another, next)",
    ].join("\n"),
  );
  const expected = {
    "%declare": "keyword.control.directive.lark",
    OBJECT: "variable.other.constant.slot.lark",
    "// where _STEP: things are": "comment.line.lark",
    another: "support.function.relation.lark",
    next: "support.function.relation.lark",
    "~": "keyword.operator.repeat.lark",
    "..": "keyword.operator.range.lark",
    "%import": "keyword.control.directive.lark",
  };
  for (const [text, scope] of Object.entries(expected)) {
    assert.equal(scopeOf(lines, text), scope, text);
  }
  assert.ok(lines[1].every((token) => token.scopes.includes("comment.line.documentation.lark")));
  assert.equal(lines[1].find((token) => token.text === "take").scope, "entity.name.function.action.lark");
  assert.equal(lines[2].find((token) => token.text === "take").scope, "entity.name.function.rule.lark");
  assert.equal(lines[2].filter((token) => token.text === "_STEP").length, 1, "none in the string");
  assert.ok(!lines[3].some((token) => token.text === "first"), "it stands in a regular expression");
  assert.equal(lines[3][0].scope, "entity.name.function.rule.lark", "at is defined here");
}

function checkFile(grammar, file) {
  const text = readFileSync(file, "utf8");
  const lines = tokenise(grammar, text);
  for (const [number, line] of text.split("\n").entries()) {
    const place = `${file}:${number + 1}`;
    const code = line.replace(/\/\/.*$/, "");
    const rule = /^[?!]*([a-z_][a-z0-9_]*)(?:\{[^}]*\})?(?:\.-?\d+)?\s*:/.exec(code);
    if (rule) {
      const found = lines[number].find((token) => token.scope === "entity.name.function.rule.lark");
      assert.equal(found?.text, rule[1], place);
    }
    if (/^\s*\/\//.test(line)) {
      assert.ok(lines[number].every((token) => token.scopes.some((scope) => scope.startsWith("comment"))), place);
    }
    const steps = (code.replace(/"(?:[^"\\]|\\.)*"/g, "").match(/\b_STEP\b/g) ?? []).length;
    const coloured = lines[number].filter((token) => token.scope === "keyword.control.step.lark");
    assert.equal(coloured.length, steps, place);
  }
}

const COLOURS = [
  ["comment.line.documentation", "#2f7d4f"],
  ["comment", "#6a737d"],
  ["string", "#0a5aa8"],
  ["keyword", "#b3261e; font-weight: bold"],
  ["entity.name.function", "#6f2da8; font-weight: bold"],
  ["variable.other.constant.slot", "#9a5b00; font-weight: bold"],
  ["support.function", "#00727a; font-weight: bold"],
  ["constant.numeric", "#0a5aa8"],
  ["support.type", "#9a5b00"],
];

/** The scopes from the innermost on, and the first of the colours that one of them has. */
function colour(scopes) {
  const named = scopes.toReversed().map((scope) => COLOURS.find(([prefix]) => scope.startsWith(prefix)));
  return named.find(Boolean)?.[1] ?? "#1b1f24";
}

function page(lines) {
  const escape = (text) => text.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);
  const span = ({ text, scope, scopes }) =>
    `<span title="${scope}" style="color: ${colour(scopes)}">${escape(text)}</span>`;
  return `<!doctype html><meta charset="utf-8"><pre>${lines.map((line) => line.map(span).join("")).join("\n")}</pre>`;
}

const grammar = await load();
if (process.argv[2] === "--html") {
  console.log(page(tokenise(grammar, readFileSync(process.argv[3], "utf8"))));
} else {
  checkLines(grammar);
  const folder = join(HERE, "..", "..", "..", "grammars");
  const files = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".lark"));
  files.forEach((name) => checkFile(grammar, join(folder, name)));
  console.log(`${files.length} grammars tokenised`);
}

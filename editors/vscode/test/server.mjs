// Talks to `constrained lsp` through the protocol library that VS Code's own clients are made of.
//
//   npm test   the server of the `constrained` on the path; CONSTRAINED names another: "/my/python -m constrained"

import assert from "node:assert";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const protocol = createRequire(import.meta.url)("vscode-languageserver-protocol/node");
const FILE = new URL("../../../grammars/household.lark", import.meta.url);
const SEVERITY_ERROR = 1;

const [command, ...args] = [...(process.env.CONSTRAINED ?? "constrained").split(" "), "lsp"];
const root = fileURLToPath(new URL("../../..", import.meta.url));
const server = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"], cwd: root });
const connection = protocol.createProtocolConnection(
  new protocol.StreamMessageReader(server.stdout),
  new protocol.StreamMessageWriter(server.stdin),
);
const told = [];
let wake = () => {};
connection.onNotification(protocol.PublishDiagnosticsNotification.type, (params) => {
  told.push(params);
  wake();
});
connection.listen();

/** The next diagnostics that the server publishes. */
async function next() {
  while (!told.length) {
    await new Promise((resolve) => (wake = resolve));
  }
  return told.shift();
}

const text = readFileSync(FILE, "utf8");
const textDocument = { uri: FILE.href };
const line = text.split("\n").findIndex((words) => words.startsWith("goto{r}"));
const ask = (request, more = {}) => connection.sendRequest(request.type, { textDocument, ...more });
const tell = (notification, params) => connection.sendNotification(notification.type, params);

const started = await connection.sendRequest(protocol.InitializeRequest.type, {
  processId: process.pid,
  rootUri: null,
  capabilities: {
    general: { positionEncodings: ["utf-16"] },
    textDocument: { publishDiagnostics: { versionSupport: true } },
  },
});
await tell(protocol.InitializedNotification, {});
await tell(protocol.DidOpenTextDocumentNotification, {
  textDocument: { ...textDocument, languageId: "lark", version: 1, text },
});
assert.deepEqual((await next()).diagnostics, []);

const { legend } = started.capabilities.semanticTokensProvider;
const { data } = await ask(protocol.SemanticTokensRequest);
const kinds = data.filter((_, index) => index % 5 === 3).map((kind) => legend.tokenTypes[kind]);
assert.ok(kinds.length > 150 && ["function", "variable", "keyword", "parameter"].every((kind) => kinds.includes(kind)));

const hover = await ask(protocol.HoverRequest, { position: { line, character: 1 } });
assert.match(hover.contents.value, /^\*\*goto\*\*.*: action\n/);
const character = text.split("\n")[line].indexOf("at{");
const place = await ask(protocol.DefinitionRequest, { position: { line, character } });
assert.ok(text.split("\n")[place.range.start.line].startsWith("at{r}:"));

const contentChanges = [{ text: text.replace("_STEP at{r}", "_STEP nowhere{r}") }];
await tell(protocol.DidChangeTextDocumentNotification, {
  textDocument: { ...textDocument, version: 2 },
  contentChanges,
});
const { diagnostics, version } = await next();
assert.equal(version, 2);
assert.deepEqual(diagnostics.filter((one) => one.severity === SEVERITY_ERROR).map((one) => one.code), ["undefined-rule"]);

const ended = once(server, "exit");
await connection.sendRequest(protocol.ShutdownRequest.type);
await tell(protocol.ExitNotification);
assert.equal((await ended)[0], 0);
connection.dispose();
console.log("the server answers");

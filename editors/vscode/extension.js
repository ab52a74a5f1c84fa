"use strict";

// Starts `constrained lsp` for open .lark files, and stops it with the window.
// Syntax colours don't need it: they are in syntaxes/.

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

/** @type {LanguageClient | undefined} */
let client;

/** Start the server that the settings name; show a warning if it can't be started. */
async function start() {
  const [command, ...args] = vscode.workspace.getConfiguration("constrained").get("command", []);
  if (!command) {
    return;
  }
  const documents = { documentSelector: [{ language: "lark" }] };
  client = new LanguageClient("constrained", "constrained", { command, args }, documents);
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    vscode.window.showWarningMessage(
      `constrained: can't start ${command} (${error.message}). Install it with pip install "constrained-agents[lsp]", ` +
        "or name it in the setting constrained.command.",
    );
  }
}

async function stop() {
  const running = client;
  client = undefined;
  await running?.stop();
}

/** @param {vscode.ExtensionContext} context */
async function activate(context) {
  context.subscriptions.push(
    vscode.workspace.onDidChangeConfiguration(async (change) => {
      if (change.affectsConfiguration("constrained.command")) {
        await stop();
        await start();
      }
    }),
  );
  await start();
}

module.exports = { activate, deactivate: stop };

"use strict";

/**
 * What a code block says, to be pasted: of a console's block only the commands, without their prompts.
 * @param {HTMLElement} block
 * @returns {string}
 */
function pasted(block) {
  const text = block.querySelector("pre").textContent;
  if (!block.parentElement.classList.contains("highlight-console")) return text;
  const lines = text.split("\n");
  const typed = (line, place) => line.startsWith("$ ") || (place > 0 && /\\$/.test(lines[place - 1]));
  return lines.filter(typed).map((line) => line.replace(/^\$ /, "")).join("\n") + "\n";
}

/** @param {HTMLElement} block */
function addButton(block) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(pasted(block));
      button.textContent = "Copied";
    } catch {
      button.textContent = "Can't copy here";
    }
    button.classList.add("done");
    setTimeout(() => {
      button.textContent = "Copy";
      button.classList.remove("done");
    }, 2000);
  });
  block.append(button);
}

document.querySelectorAll("article .highlight").forEach(addButton);

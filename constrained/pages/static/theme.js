// Light, dark, or as the system has it: `data-theme` on the root element, kept from one visit to the next.
// A page that wants the switch has a <button id="theme">.
const KEY = "constrained-theme";
const root = document.documentElement;
const button = document.getElementById("theme");
const dark = matchMedia("(prefers-color-scheme: dark)");

/** What was chosen before; nothing where the browser keeps nothing (a page opened as a file, say). */
function kept() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function keep(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // the choice holds for this visit
  }
}

function shown() {
  return root.dataset.theme ?? (dark.matches ? "dark" : "light");
}

function label() {
  const other = shown() === "dark" ? "light" : "dark";
  button.textContent = other === "dark" ? "☾ Dark" : "☀ Light";
  button.setAttribute("aria-label", `Switch to ${other} colours`);
}

const chosen = kept();
if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
if (button) {
  label();
  dark.addEventListener("change", label);
  button.addEventListener("click", () => {
    root.dataset.theme = shown() === "dark" ? "light" : "dark";
    keep(root.dataset.theme);
    label();
  });
}

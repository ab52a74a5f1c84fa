// Light or dark theme, or the system's: `data-theme` on the root element, stored between visits.
// A page with a <button id="theme"> has the switch.
const KEY = "constrained-theme";
const root = document.documentElement;
const button = document.getElementById("theme");
const dark = matchMedia("(prefers-color-scheme: dark)");

/** The stored choice; null if the browser stores nothing, e.g. for a page opened as a file. */
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

// The keys, and the help dialog that lists them.
import { byId, el } from "../dom.js";

const READING = [
  ["sure", "word", "thin grey line: at least 90 % of the allowed probability"],
  ["likely", "word", "thick line: at least 50 %"],
  ["unsure", "word", "dotted line: less than 50 %: the model could well have written something else"],
  [
    "lost",
    "word",
    "filled from below, with a figure: how much of the model's probability was on tokens that the mask does not allow",
  ],
  ["forced", "word", "dashed frame: forced, the model was not asked; the small figure is the number of tokens"],
];

const FIGURES = { lost: { figure: 40 }, forced: { figure: 3 } };

/** Listen for keys: `keys` is a list of [names, what they do, function]. */
export function startKeys(keys) {
  const byKey = new Map(keys.flatMap(([names, , act]) => names.map((name) => [name, act])));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
    const typing = event.target.matches("input, select, textarea");
    if (event.key === "Escape" && typing) return event.target.blur();
    if (typing || (event.key === " " && event.target.matches("button, summary, a"))) return;
    const act = byKey.get(event.key);
    if (!act) return;
    event.preventDefault();
    act(event);
  });
  fillHelp(keys);
  byId("help-open").addEventListener("click", openHelp);
}

export const openHelp = () => byId("help").showModal();

function fillHelp(keys) {
  const shown = { " ": "Space", ArrowRight: "→", ArrowLeft: "←", Escape: "Esc" };
  const rows = keys.map(([names, what]) => {
    const signs = names.flatMap((name, index) => [index ? " or " : "", el("kbd", {}, shown[name] ?? name)]);
    return el("tr", {}, el("th", { scope: "row" }, ...signs), el("td", {}, what));
  });
  byId("keys").tBodies[0].replaceChildren(...rows);
  byId("reading").replaceChildren(
    ...READING.flatMap(([name, text, words]) => [
      el(
        "dt",
        {},
        el("span", { className: `token ${name}`, style: { "--lost": "40%" }, data: FIGURES[name] ?? {} }, text),
      ),
      el("dd", {}, words),
    ]),
  );
}

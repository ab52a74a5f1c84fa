// The list of findings below the editor; each links to its place.
import { button, byId, el, plural } from "../dom.js";

const SIGNS = { error: "✕", warning: "!", note: "i" };

const rank = ({ severity }) => Object.keys(SIGNS).indexOf(severity);

/** Show the findings of a check, and how many there are. */
export function showFindings(answer, editor) {
  byId("summary").textContent = summary(answer);
  const sorted = answer.findings.toSorted((one, other) => rank(one) - rank(other)); // else as they stand in the text
  byId("findings").replaceChildren(...sorted.map((finding) => item(finding, editor)));
}

/** Show why there was no check. */
export function showNoCheck(error) {
  byId("summary").textContent = `Not checked: ${error.message}${error.hint ? `; ${error.hint}` : ""}`;
  byId("findings").replaceChildren();
}

function summary({ findings, more }) {
  if (!findings.length) return "No findings.";
  const counts = Object.keys(SIGNS)
    .map((severity) => [findings.filter((one) => one.severity === severity).length, severity])
    .filter(([count]) => count)
    .map(([count, severity]) => plural(count, severity));
  return counts.join(", ") + (more ? `, and ${more} more that are not shown` : "");
}

function item(finding, editor) {
  const where = finding.line ? `${finding.line}:${finding.column}` : "";
  const head = button("", () => editor.goTo(finding.line ?? 1, finding.column ?? 1), { className: "place" });
  head.append(
    el("span", { className: `sign ${finding.severity}`, "aria-hidden": "true" }, SIGNS[finding.severity]),
    el("span", { className: "visually-hidden" }, finding.severity),
    el("span", { className: "where" }, where),
    el("span", { className: "message" }, finding.message),
    el("code", { className: "code" }, finding.code),
  );
  return el(
    "li",
    {},
    head,
    el("p", { className: "why" }, finding.why),
    finding.fix && el("p", { className: "fix" }, el("b", {}, "Fix "), finding.fix),
  );
}

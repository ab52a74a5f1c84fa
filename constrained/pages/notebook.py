"""What knowledge, plans and verdicts look like in a notebook: HTML that is bounded, escaped, and readable unstyled.

Hosts that strip style elements (code hosts, mail) leave plain tables: no meaning is in the style sheet alone. Nothing
here runs a model, and nothing heavy is imported.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING
from unicodedata import category

from constrained.knowledge.graph import START
from constrained.knowledge.lint.finding import ERROR, NOTE, SEVERITIES, WARNING, Finding
from constrained.knowledge.report import INVALID, MISORDERED, OK, counted
from constrained.knowledge.table import following
from constrained.pages.page import static

if TYPE_CHECKING:
    from constrained.agents.plan import Plan, Step
    from constrained.knowledge.knowledge import ActionKnowledge
    from constrained.knowledge.lint import Checked
    from constrained.knowledge.report import Judgement, Report

MOST_ROWS = 100
"""Rows of a table; of more, the first four fifths and the last fifth are shown, as notebooks keep outputs in a file."""

MOST_CHARACTERS = 600
"""Of one text in a table."""

MOST_PICTURE = 200_000
"""Bytes of a picture; a larger one is left out, and said to be."""

_SCALE = 0.85
"""Pixels for a unit of a picture: its 13 units of type are then about as large as a notebook's."""

_SHORT = 40
"""Characters of an action that are kept on one line."""

MARKS = {OK: "✓", INVALID: "✗", MISORDERED: "⇄", ERROR: "✗", WARNING: "!", NOTE: "i"}
"""Before the word, so that nothing hangs on colour."""


# In the cells themselves: hosts have rules of their own for tables, and some strip every style sheet but theirs.
_WHOLE = ' style="white-space: nowrap"'
_LEFT, _RIGHT = 'style="text-align: left"', 'style="text-align: right"'


class _Figure(str):
    """What stands at the right of its column."""


def knowledge_html(knowledge: ActionKnowledge) -> str:
    """The graph, then each action with its definition and what may follow it."""
    graph = knowledge.graph
    rows = [[_code(name), shown(words), shown(following(graph, name))] for name, words in knowledge.actions.items()]
    unbound = knowledge.grammar.unbound()
    bound = sorted(knowledge.slots.difference(unbound))
    facts = [
        shown(knowledge.comments.get(START, "")),
        f"first: {shown(following(graph, START))}",
        f"slots with values: {shown(', '.join(bound))}" if bound else "",
        f"slots to be bound: {shown(', '.join(unbound))}" if unbound else "",
        f"so far: {' → '.join(map(_code, knowledge.path[-3:]))}" if knowledge.path else "",
    ]
    head = f"<strong>{shown(knowledge.name)}</strong>: {counted(len(rows), 'action')}"
    return _output(
        _paragraph(head), *map(_paragraph, facts), _picture(knowledge), _table(["action", "definition", "then"], rows)
    )


def plan_html(plan: Plan) -> str:
    """The task, what came of it, and every step with its verdict, the world's answer and the mass that masks took."""
    usage = plan.usage
    wrong = f"{plan.invalid} invalid, {plan.misordered} misordered actions"
    came = f"{counted(len(plan.steps), 'step')}, {plan.came_to}: {wrong}"
    measured = [f"{name} {value:g}" for name, value in plan.outcome.items() if name != "success"]
    masks = "masks on" if plan.constrained else "masks off"
    model = f"model {plan.model}" if plan.model else ""
    by = [plan.strategy, model, f"knowledge {plan.knowledge}", masks, f"seed {plan.seed}"]
    facts = [
        f"<strong>{shown(plan.task)}</strong>",
        "; ".join([came, *map(shown, measured)]),
        _faint(shown(", ".join(filter(None, by)))),
        f"Note: {shown(plan.note)}" if plan.note else "",
    ]
    cost = (
        f"{usage['completion_tokens']:,.0f} tokens written, {usage['forced_tokens']:,.0f} of them forced; "
        f"{usage['prompt_tokens']:,.0f} read; {usage['seconds']:.1f} s"
    )
    return _output(*map(_paragraph, facts), _steps(plan), _paragraph(_faint(cost)) if usage["forward_passes"] else "")


def _steps(plan: Plan) -> str:
    columns = {
        "step": lambda step: step.n,
        "thought": lambda step: shown(step.thought),
        "action": lambda step: _code(step.action),
        "verdict": lambda step: _verdict(step.verdict, step.reason),
        "observation": lambda step: shown(step.observation or ""),
    }
    if not any(step.thought for step in plan.steps):
        del columns["thought"]
    if all(step.observation is None for step in plan.steps):
        del columns["observation"]
    if plan.constrained:
        columns["mask took"] = lambda step: _Figure(f"{step.pruned_mass:.1%}")
    rows = [[cell(step) for cell in columns.values()] for step in plan.steps]
    return _table(list(columns), rows, _parts(plan.steps))


def _parts(steps: Sequence[Step]) -> dict[int, str]:
    """Row -> the phase and subgoal that begin there."""
    parts, phase, subgoal = {}, "", ""
    for row, step in enumerate(steps):
        new = [step.phase] if step.phase != phase else []
        new += [step.subgoal] if step.subgoal != subgoal else []
        phase, subgoal = step.phase, step.subgoal
        if any(new):
            parts[row] = ": ".join(filter(None, new))
    return parts


def report_html(report: Report) -> str:
    """A row an action: its verdict, the rule it is an instance of, and the reason."""
    rows = [[n, _code(j.text), *_judged(j)] for n, j in enumerate(report.steps, 1)]
    wrong = ", ".join(f"{count} {kind}" for kind, count in ((INVALID, report.invalid), (MISORDERED, report.misordered)))
    ends = "the path may end here" if report.finished else "the path is not finished"
    words = f"{counted(len(report), 'action')}: {'all ok' if report.ok else wrong}; {ends}"
    return _output(_table(["", "action", "verdict", "rule", "reason"], rows), _paragraph(words))


def _judged(judgement: Judgement) -> list[str]:
    """Verdict, rule and reason."""
    return [_verdict(judgement.verdict), _code(judgement.action or ""), shown(judgement.reason)]


def checked_html(checked: Checked) -> str:
    """A row a finding: where, what, why it matters, and the fix."""
    rows = [
        [
            shown(f"{f.place.line}:{f.place.column}" if f.place else ""),
            f"{_verdict(f.severity)} {_code(f.code)}",
            shown(f.message) + _source(checked.line(f.place), f),
            shown(f.why),
            shown(f.fix),
        ]
        for f in checked.findings
    ]
    counts = ", ".join(counted(checked.count(s), s) for s in SEVERITIES if checked.count(s)) or "nothing to mend"
    table = _table(["line", "", "what", "why", "fix"], rows) if rows else ""
    return _output(_paragraph(f"<strong>{shown(checked.name)}</strong>: {counts}"), table)


def _source(line: str, finding: Finding) -> str:
    """The line of the file, the place in it marked."""
    if finding.place is None or not line.strip():
        return ""
    first = finding.place.column - 1
    last = max(first + 1, (finding.place.end or 0) - 1)
    around = max(0, first - 60)
    before, at, after = line[around:first], line[first:last], line[last : last + 60]
    return f"<br><code>{shown(before.lstrip())}<mark>{shown(at)}</mark>{shown(after)}</code>"


def shown(text: str) -> str:
    """A text from a model, a game or a file as HTML: escaped, without control characters, and not too long."""
    more = len(text) - MOST_CHARACTERS
    if more > 0:
        text = text[:MOST_CHARACTERS]
    clean = "".join(c if c in "\n\t" or category(c) not in ("Cc", "Cs") else "\ufffd" for c in text)
    words = escape(clean.strip("\n")).replace("\n", "<br>")
    return words + (f"… <em>({more:,} more characters)</em>" if more > 0 else "")


def _picture(knowledge: ActionKnowledge) -> str:
    """The graph as an image: its styles stay in it, hosts that strip styles keep it, and it follows the theme."""
    svg = knowledge.to_svg().encode()
    if len(svg) > MOST_PICTURE:
        return _paragraph(_faint(f"The graph is left out: {len(svg):,} bytes. to_svg() has it."))
    width = round(_SCALE * float(re.search(rb'viewBox="0 0 (\S+) ', svg)[1]))
    source = f"data:image/svg+xml;base64,{b64encode(svg).decode()}"
    return f'<img alt="Action graph of {escape(knowledge.name)}" width="{width}" src="{source}">'


def _table(head: Sequence[str], rows: Sequence[Sequence[str | int]], parts: dict[int, str] | None = None) -> str:
    """Cells are HTML or figures; `parts` are headings before a row."""
    last = MOST_ROWS // 5
    cut = range(MOST_ROWS - last, len(rows) - last) if len(rows) > MOST_ROWS else range(0)
    lines = ["<tr>" + "".join(f'<th scope="col" {_LEFT}>{name}</th>' for name in head) + "</tr>"]
    for number, row in enumerate(rows):
        if number in cut:
            if number == cut.start:
                lines.append(_across(head, f"{len(cut):,} rows are not shown here"))
            continue
        if parts and number in parts:
            lines.append(_across(head, shown(parts[number])))
        lines.append("<tr>" + "".join(map(_cell, row)) + "</tr>")
    return f'<div class="scroll"><table>{"".join(lines)}</table></div>'


def _across(head: Sequence[str], words: str) -> str:
    return f'<tr><th class="part" colspan="{len(head)}" {_LEFT}>{words}</th></tr>'


def _cell(content: str | int) -> str:
    return f"<td {_RIGHT if isinstance(content, (int, _Figure)) else _LEFT}>{content}</td>"


def _verdict(verdict: str, reason: str = "") -> str:
    kind = verdict if verdict in MARKS else "faint"
    words = f'<span class="verdict {kind}">{MARKS.get(verdict, "")} {shown(verdict)}</span>'
    return f"{words}<br>{_faint(shown(reason))}" if reason else words


def _code(text: str) -> str:
    if not text:
        return ""
    return f"<code{_WHOLE if len(text) <= _SHORT else ''}>{shown(text)}</code>"


def _faint(html: str) -> str:
    return f'<span class="faint">{html}</span>'


def _paragraph(html: str) -> str:
    return f"<p>{html}</p>" if html else ""


def _output(*parts: str) -> str:
    return f'<div class="constrained-output"><style>{static("notebook.css")}</style>{"".join(parts)}</div>'

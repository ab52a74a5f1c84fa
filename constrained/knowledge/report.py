"""Judgements of actions, and reports on paths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from constrained import html

OK, INVALID, MISORDERED = "ok", "invalid", "misordered"


@dataclass(frozen=True)
class Judgement:
    """The verdict on one action, with its reason.

    Attributes
    ----------
    text : str
    verdict : str
        "ok"; "invalid": no such action, or arguments that the grammar or the slots don't admit; "misordered": an
        action that the rules don't admit at this point.
    action : str or None
        The rule that writes the text.
    reason : str
        Empty if ok.
    """

    text: str
    verdict: str
    action: str | None = None
    reason: str = ""

    def __bool__(self) -> bool:
        return self.verdict == OK


@dataclass
class Report:
    """The judgements of a path, action by action.

    Attributes
    ----------
    steps : list of Judgement
    finished : bool
        Whether the path may end here.
    """

    steps: list[Judgement] = field(default_factory=list)
    finished: bool = False

    @property
    def ok(self) -> bool:
        """Whether every action is ok."""
        return all(self.steps)

    @property
    def invalid(self) -> int:
        """How many actions are invalid."""
        return sum(j.verdict == INVALID for j in self.steps)

    @property
    def misordered(self) -> int:
        """How many actions are misordered."""
        return sum(j.verdict == MISORDERED for j in self.steps)

    @property
    def verdicts(self) -> list[str]:
        """The verdicts alone, in order."""
        return [j.verdict for j in self.steps]

    def __iter__(self) -> Iterator[Judgement]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, index: int) -> Judgement:
        return self.steps[index]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "ok": self.ok,
            "finished": self.finished,
            "invalid": self.invalid,
            "misordered": self.misordered,
            "steps": [asdict(j) for j in self.steps],
        }

    def __str__(self) -> str:
        lines = []
        for i, j in enumerate(self.steps, 1):
            lines.append(f"{i:>3}  {j.verdict:<10}  {j.text}" + (f"\n{'':17}{j.reason}" if j.reason else ""))
        lines.append("the path may end here" if self.finished else "the path is not finished")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows: list[list[str | int]] = [
            [n, html.code(j.text), html.badge(j.verdict), html.code(j.action or ""), html.escaped(j.reason)]
            for n, j in enumerate(self.steps, 1)
        ]
        wrong = f"{self.invalid} invalid, {self.misordered} misordered"
        ends = "the path may end here" if self.finished else "the path is not finished"
        total = f"{counted(len(self), 'action')}: {'all ok' if self.ok else wrong}; {ends}"
        return html.output(html.table(["", "action", "verdict", "rule", "reason"], rows), html.paragraph(total))

    def _repr_pretty_(self, printer, cycle: bool) -> None:
        printer.text(str(self))


def counted(number: int, what: str) -> str:
    """A number with its noun: "1 action", "1,200 actions"."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")

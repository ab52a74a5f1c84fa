"""What a guard says of a call: admitted, or the conditions that don't hold, each with its line in the policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from constrained.errors import ConstrainedError

REFUSED = "Not carried out: "
"""How the text begins that a model reads in place of a refused call's result."""

FACTS, WORDS, ORDER, SCHEMA, TOOL = "facts", "words", "order", "schema", "tool"
"""What a condition is about: what results told; only what was said; which call may follow which; the arguments' schema;
tools that no rule of the policy is about."""

_SHOWN = 12
"""Tools, or values of an argument, that a text names."""


@dataclass(frozen=True)
class Unmet:
    """A condition that doesn't hold.

    Attributes
    ----------
    why : str
        The comment behind the condition, else the condition itself.
    kind : str
        "facts", "words", "order", "schema" or "tool".
    condition : str
        As the policy writes it; empty if it isn't written there.
    line : int or None
        Of the policy's file.
    source : str
        The policy's name.
    """

    why: str
    kind: str
    condition: str = ""
    line: int | None = None
    source: str = ""

    def __str__(self) -> str:
        return f"{self.why} ({self.source}:{self.line})" if self.line is not None else self.why


@dataclass(frozen=True)
class Verdict:
    """The judgement of one call; true if the policy admits it.

    Attributes
    ----------
    name : str
        The tool.
    arguments : dict or str
        The text, if it is no JSON object.
    unmet : tuple of Unmet
        Empty if the call is admitted.
    allowed : dict of str to dict
        If it is refused: the tools that may be called now, each with the values that its arguments may have where the
        policy lists them.
    may_speak : bool
        Whether the user may be spoken to now.
    """

    name: str
    arguments: Mapping[str, Any] | str
    unmet: tuple[Unmet, ...] = ()
    allowed: Mapping[str, Mapping[str, list[Any]]] | None = None
    may_speak: bool = True

    def __bool__(self) -> bool:
        return not self.unmet

    @property
    def why(self) -> str:
        """The unmet conditions in one line; empty if the call is admitted."""
        return "; ".join(dict.fromkeys(map(str, self.unmet)))

    def text(self) -> str:
        """What the model should read in place of a result: what is not met, and what may be done now."""
        lines = [f"{REFUSED}{self.name}: {self.why}."]
        if self.allowed is not None:
            tools = [*self.allowed]
            may = ["a message to the user"] if self.may_speak else []
            named = [*may, *tools[:_SHOWN], *([f"{len(tools) - _SHOWN} more tools"] if len(tools) > _SHOWN else [])]
            lines.append(f"Allowed now: {', '.join(named) or 'nothing'}.")
            for argument, values in self.allowed.get(self.name, {}).items():
                shown = ", ".join(map(repr, values[:_SHOWN])) or "no value yet"
                lines.append(f"{argument} may be: {shown}{', ...' if len(values) > _SHOWN else ''}.")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        unmet = [{"why": u.why, "kind": u.kind, "condition": u.condition, "line": u.line} for u in self.unmet]
        return {"tool": self.name, "arguments": self.arguments, "admitted": bool(self), "unmet": unmet}


class Refused(ConstrainedError):
    """A call that the policy doesn't admit; nothing was carried out.

    Attributes
    ----------
    verdict : Verdict
    """

    def __init__(self, verdict: Verdict):
        self.verdict = verdict
        allowed = "" if verdict.allowed is None else ", ".join(verdict.allowed) or "no tool"
        super().__init__(f"{verdict.name} was not carried out: {verdict.why}", allowed and f"allowed now: {allowed}")


OnViolation = str | Callable[[Verdict], Any]
"""What is done with a call that isn't admitted: "raise", "tell" (the text for the model is returned), or a function
whose value is returned."""


def refusal(on_violation: OnViolation, verdict: Verdict) -> Any:
    """What stands in place of a refused call's result. Raises Refused, if that is what is done."""
    if callable(on_violation):
        return on_violation(verdict)
    if on_violation == "raise":
        raise Refused(verdict)
    return verdict.text()

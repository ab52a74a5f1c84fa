"""`Finding`: a mistake in a file, with its code and place, the reason why it matters, and a fix.

To add a kind of finding: add its code to `KINDS`, yield it from the module of its topic, and call that in `check`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from constrained.grammar.source import SourceSpan

ERROR, WARNING, NOTE = "error", "warning", "note"
SEVERITIES = (ERROR, WARNING, NOTE)


@dataclass(frozen=True)
class Kind:
    """How severe a finding is, and what happens if nothing is changed."""

    severity: str
    why: str


_NOT_LOADED = "the file can't be loaded"
_WHERE_IT_ENDS = "only the end of the text tells them apart; the masks allow both, but a model that ends early"

KINDS: dict[str, Kind] = {
    # files that can't be read (check, refused)
    "unreadable": Kind(ERROR, "nothing in it could be checked"),
    "syntax": Kind(ERROR, "the file can't be read as it stands"),
    "refused": Kind(ERROR, _NOT_LOADED),
    "limit": Kind(ERROR, _NOT_LOADED),
    # names
    "undefined-rule": Kind(ERROR, "a file with an undefined name can't be loaded at all"),
    "defined-twice": Kind(ERROR, "it is unclear which of them holds, so the file can't be loaded"),
    "wrong-arguments": Kind(
        ERROR, "a rule has no meaning without a value for each parameter; the file can't be loaded"
    ),
    "no-start": Kind(ERROR, "it is where every text begins"),
    "unused-rule": Kind(WARNING, "it has no effect; often a name is misspelled where it should be used"),
    "unused-slot": Kind(WARNING, "its values have no effect on what the agent may write"),
    "unused-parameter": Kind(WARNING, "the argument given for it is lost: nothing that follows depends on it"),
    "repeated-alternative": Kind(WARNING, "the second has no effect; often something else was meant"),
    "priority-without-effect": Kind(
        NOTE, "a priority chooses between the parses of a text; which texts may be written stays the same"
    ),
    # productivity
    "never-finishes": Kind(ERROR, "every alternative that leads there is left out"),
    "matches-nothing": Kind(ERROR, "every alternative that needs it is left out"),
    "only-empty": Kind(WARNING, "it has no effect where it is used; often its text was forgotten"),
    # actions, ambiguity
    "no-actions": Kind(ERROR, "there is nothing an agent could do"),
    "unreachable-action": Kind(WARNING, "the agent can never take it, and the prompt doesn't name it"),
    "missing-step": Kind(WARNING, "both are then one text, and the environment is asked only after the second"),
    "ambiguous-actions": Kind(
        WARNING,
        "the text doesn't say which was meant, so what may follow either may come next, and a checker names only one",
    ),
    "action-begins-another": Kind(WARNING, f"{_WHERE_IT_ENDS}, or late, means another action"),
    "open-ended-action": Kind(NOTE, f"{_WHERE_IT_ENDS} means another thing"),
    "no-definition-comment": Kind(
        NOTE, "the comment right above an action is its definition in the prompt; now the prompt has only its name"
    ),
    # slips
    "misplaced-step": Kind(WARNING, "_STEP ends an action, and what stands after it may follow"),
    "no-space": Kind(WARNING, "both are written as one word, which models, environments and prompts don't expect"),
    "edge-space": Kind(WARNING, "most environments and models strip it, and then the text is no longer the action's"),
    "swapped-arguments": Kind(WARNING, "the values are written in each other's places"),
    "slot-for-parameter": Kind(WARNING, "each use of a slot's name may be another of its values"),
    "other-comment": Kind(WARNING, "the prompt gives each action the comment above it"),
    # slots
    "unknown-slot": Kind(ERROR, "its values would be lost"),
    "slot-without-values": Kind(ERROR, "nothing can be written in its place, so no text that uses it can be complete"),
    "slot-without-key": Kind(ERROR, "the argument after it selects one of its lists; here there is no argument"),
    "empty-slot": Kind(NOTE, "actions that need one of its values can't be written with these bindings"),
    # worlds
    "world": Kind(ERROR, "what actions need and change can't be read, so the file can't be used"),
    "unknown-tool": Kind(ERROR, "what it says about that tool has no effect, and the tools can't be used with it"),
    "unknown-name": Kind(ERROR, "a condition on something that is never known fails for every call"),
    "never-true": Kind(ERROR, "what needs it can never be done or reached"),
    "fact-without-use": Kind(WARNING, "it has no effect; often a name is misspelled where it should be used"),
    "never-told": Kind(WARNING, "it stays unknown, so actions that depend on it may fail whenever they are tried"),
    "out-of-reach": Kind(ERROR, "a search finds no plan, and a model tries in vain"),
    "slot-without-type": Kind(WARNING, "in a world's own problem it has no values, so what needs it can't be written"),
    "hole-without-value": Kind(WARNING, "the answer is never given, as nothing says what stands there"),
    "comment-like-line": Kind(WARNING, "it is a comment for the model, and changes nothing that is admitted"),
    "argument-not-written": Kind(WARNING, "the text stands for several actions that change different things"),
    # unbounded, unwritable
    "endless-text": Kind(
        WARNING, "a model that repeats itself is never stopped: the text continues until the token limit cuts it off"
    ),
    "endless-list": Kind(
        NOTE, "a text can have any number of these; only the token limit ends a model that doesn't stop"
    ),
    "unwritable-text": Kind(ERROR, "a model with this tokenizer can't write it, so what needs it is never offered"),
    # the check itself
    "not-checked": Kind(NOTE, "there may be more to find"),
}
"""All kinds of findings by code."""

CODES = {code: kind.severity for code, kind in KINDS.items()}
"""Code -> the severity of its findings."""


@dataclass(frozen=True)
class Finding:
    """Something that is, or may be, wrong with a file.

    Attributes
    ----------
    code : str
        One of :data:`CODES`; codes are stable, so that `--ignore` and CI can name them.
    message : str
        What was found.
    fix : str
        What to write instead.
    span : SourceSpan or None
        None if it is about the file as a whole.
    why : str
        What happens if nothing is changed; default: the reason in `KINDS`.
    """

    code: str
    message: str
    fix: str
    span: SourceSpan | None = None
    why: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "why", self.why or KINDS[self.code].why)

    @property
    def severity(self) -> str:
        """ "error", "warning" or "note"."""
        return KINDS[self.code].severity

    def to_dict(self, name: str, context: str) -> dict[str, Any]:
        """Plain data for JSON; `name` is the file's, `context` the line that the finding is on."""
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "file": name,
            "line": self.span.line if self.span else None,
            "column": self.span.column if self.span else None,
            "end_column": self.span.end if self.span else None,
            "context": context,
            "why": self.why,
            "fix": self.fix,
        }

"""What a check finds: a code, a place, why it matters, and the fix."""

from __future__ import annotations

from dataclasses import dataclass

from constrained.grammar.source import SourceSpan

ERROR, WARNING, NOTE = "error", "warning", "note"
SEVERITIES = (ERROR, WARNING, NOTE)

CODES: dict[str, str] = {
    # what can't be read
    "unreadable": ERROR,
    "syntax": ERROR,
    "refused": ERROR,
    "limit": ERROR,
    # names
    "undefined-rule": ERROR,
    "defined-twice": ERROR,
    "wrong-arguments": ERROR,
    "no-start": ERROR,
    "unused-rule": WARNING,
    "unused-slot": WARNING,
    "unused-parameter": WARNING,
    "repeated-alternative": WARNING,
    "priority-without-effect": NOTE,
    # ways through
    "never-finishes": ERROR,
    "matches-nothing": ERROR,
    "only-empty": WARNING,
    # actions
    "no-actions": ERROR,
    "unreachable-action": WARNING,
    "missing-step": WARNING,
    "ambiguous-actions": WARNING,
    "action-begins-another": WARNING,
    "open-ended-action": NOTE,
    "no-definition-comment": NOTE,
    # slots
    "unknown-slot": ERROR,
    "slot-without-values": ERROR,
    "slot-without-key": ERROR,
    "empty-slot": NOTE,
    # text
    "endless-text": WARNING,
    "endless-list": NOTE,
    "unwritable-text": ERROR,
    # the check itself
    "not-checked": NOTE,
}
"""Every code, and how severe what it names is."""


@dataclass(frozen=True)
class Finding:
    """One thing that is, or may be, wrong with a file.

    Attributes
    ----------
    code : str
        One of :data:`CODES`; stable, so that `--ignore` and CI can name it.
    message : str
        What was found.
    why : str
        What happens if it stays.
    fix : str
        What to write instead.
    span : SourceSpan or None
        None where it is about the file as a whole.
    """

    code: str
    message: str
    why: str
    fix: str
    span: SourceSpan | None = None

    @property
    def severity(self) -> str:
        """ "error", "warning" or "note"."""
        return CODES[self.code]

    def to_dict(self, name: str, context: str) -> dict:
        """Plain data for JSON; `name` is the file's, `context` the line that it is on."""
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

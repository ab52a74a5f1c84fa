"""The errors of this library: each says what was wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any, ClassVar


class ConstrainedError(Exception):
    """Base of every error this library raises on bad input.

    Parameters
    ----------
    message : str
        What was wrong, and where.
    hint : str, optional
        What to do about it; appended to the message.
    """

    exit_code: ClassVar[int] = 1
    """The exit code of a command that it ends."""

    def __init__(self, message: str, hint: str | None = None):
        self.message = message
        self.hint = hint
        super().__init__(f"{message}\n  hint: {hint}" if hint else message)

    def __reduce__(self) -> tuple:
        """For `pickle` and `copy`, and so for errors of worker processes, whatever a class's parameters are."""
        return _again, (type(self), self.args, vars(self))


def _again(kind: type[ConstrainedError], arguments: tuple, attributes: dict) -> ConstrainedError:
    error = kind.__new__(kind, *arguments)
    vars(error).update(attributes)
    return error


class ConstrainedWarning(UserWarning):
    """A warning for the caller, such as that a model doesn't know the domain."""


def install_hint(extra: str) -> str:
    """Return the command that installs an optional part of this library (an extra of ``pyproject.toml``)."""
    return f"pip install 'constrained-agents[{extra}]'"


@contextmanager
def needs_extra(extra: str, what: str, *packages: str) -> Iterator[None]:
    """Import optional packages inside this block: a missing one raises ConstrainedError with an install hint.

    Parameters
    ----------
    extra : str
    what : str
        The feature that needs the packages, for the message.
    packages : str
        Top-level names; an ImportError about any other module passes through.
    """
    try:
        yield
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in packages:
            raise
        raise ConstrainedError(f"{what} needs {missing}, which isn't installed", install_hint(extra)) from None


def nearest(name: str, known: Collection[str], otherwise: str = "") -> str:
    """A hint for a misspelt name: the known name most like it; if none is, `otherwise`, or the first of those known."""
    swapped = name.lower() if name.isupper() else name.upper()
    alike = [one for one in known if abs(len(one) - len(name)) < 4][:2_000]  # to compare two names takes microseconds
    close = [swapped] if swapped in known else get_close_matches(name, alike, 1)
    if close:
        return f"did you mean {close[0]}?"
    return otherwise or f"there are: {', '.join(sorted(known)[:12]) or 'none'}"


class SourceError(ConstrainedError):
    """An error in a source text.

    Parameters
    ----------
    message, hint : str
    line, column : int, optional
        One-based position in the source, if known.
    context : str, optional
        The offending line with a caret under the column.
    source : str, optional
        The name of the file.

    Attributes
    ----------
    problem : str
        The message without its place.
    """

    kind = "source"
    """Name of a source that has none."""

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        *,
        line: int | None = None,
        column: int | None = None,
        context: str = "",
        source: str | None = None,
    ):
        self.line, self.column, self.context, self.source = line, column, context, source
        self.problem = message
        position = f"{source or self.kind}:{line}:{column}: " if line is not None else f"{source}: " if source else ""
        super().__init__(f"{position}{message}" + (f"\n{context}" if context else ""), hint)


class GrammarError(SourceError):
    """A grammar that can't be read, or that this engine refuses."""

    kind = "grammar"
    code = "refused"
    """Name of the error in `constrained check`."""


class LimitError(GrammarError):
    """A grammar, or what is bound to it, costs more than a limit allows.

    Attributes
    ----------
    limit : str
        The field of :class:`constrained.limits.Limits` that was exceeded.
    value : int
        The value of that limit.
    """

    code = "limit"

    def __init__(self, limit: str, value: int, what: str, advice: str | None = None, **position: Any):
        self.limit, self.value = limit, value
        self._given = what, advice
        hint = f"limits=Limits({limit}=...) raises it" + (f"; or {advice}" if advice else "")
        super().__init__(f"{what} (the limit `{limit}` is {value:,})", hint, **position)

    def at(self, other: SourceError) -> LimitError:
        """Return the same error at the position of `other`."""
        position = {key: getattr(other, key) for key in ("line", "column", "context", "source")}
        return LimitError(self.limit, self.value, *self._given, **position)


class KnowledgeError(ConstrainedError):
    """Action knowledge used incorrectly: an unknown action or slot, an empty binding."""


class VocabularyError(ConstrainedError):
    """A tokenizer whose tokens can't be read as bytes, or that has no end-of-text token."""


class GameError(ConstrainedError):
    """A damaged or unknown game file, a task without a game, or a simulator that failed."""


class PddlError(SourceError, GameError):
    """PDDL that can't be read, or that uses a feature that isn't supported."""

    kind = "pddl"


class UnreachableError(PddlError):
    """A goal that can't be reached: that is proven, nothing gave up."""

    exit_code = 3


class ModelError(ConstrainedError):
    """A language model or tokenizer that can't be loaded."""


class ActionError(ConstrainedError):
    """An action that can't be read or carried out: an unknown result, a division by zero, a passed limit."""


class DataError(ConstrainedError):
    """A data file that is missing, truncated or malformed."""


class ToolError(ConstrainedError):
    """A tool that an action calls, such as a search engine, failed or took too long."""


class TrainingError(ConstrainedError):
    """Training that can't start or continue: no data, no memory, a loss that is NaN."""

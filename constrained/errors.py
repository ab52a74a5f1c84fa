"""The errors of this library: one small family, each with what, where and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class ConstrainedError(Exception):
    """Base of every error this library raises on bad input.

    Parameters
    ----------
    message : str
        What was wrong, and where.
    hint : str, optional
        What to do about it; appended to the message.
    """

    def __init__(self, message: str, hint: str | None = None):
        self.message = message
        self.hint = hint
        super().__init__(f"{message}\n  hint: {hint}" if hint else message)


def install_hint(extra: str) -> str:
    """The command that installs an optional part of this library (an extra of ``pyproject.toml``)."""
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


class GrammarError(ConstrainedError):
    """A grammar that can't be read, or that this engine refuses.

    Attributes
    ----------
    line, column : int or None
        One-based place in the source, where known.
    context : str
        The offending line with a caret under the column; empty if unknown.
    """

    def __init__(
        self,
        message: str,
        *,
        line: int | None = None,
        column: int | None = None,
        context: str = "",
        hint: str | None = None,
        source: str | None = None,
    ):
        self.line, self.column, self.context, self.source = line, column, context, source
        place = f"{source or 'grammar'}:{line}:{column}: " if line is not None else ""
        text = f"{place}{message}"
        if context:
            text += f"\n{context}"
        super().__init__(text, hint)


class LimitError(GrammarError):
    """A grammar, or what is bound to it, costs more than a limit allows.

    Attributes
    ----------
    limit : str
        The field of :class:`constrained.limits.Limits` that was passed.
    value : int
        What it stood at.
    """

    def __init__(self, limit: str, value: int, what: str, advice: str | None = None, **place):
        self.limit, self.value = limit, value
        self._given = what, advice
        hint = f"limits=Limits({limit}=...) raises it" + (f"; or {advice}" if advice else "")
        super().__init__(f"{what} (the limit `{limit}` is {value:,})", hint=hint, **place)

    def at(self, place: GrammarError) -> LimitError:
        """The same error, where `place` is."""
        where = {"line": place.line, "column": place.column, "context": place.context, "source": place.source}
        return LimitError(self.limit, self.value, *self._given, **where)


class KnowledgeError(ConstrainedError):
    """Action knowledge used wrongly: an unknown action or slot, an empty binding."""


class VocabularyError(ConstrainedError):
    """A tokenizer whose tokens can't be told apart as bytes, or that never ends a text."""


class GameError(ConstrainedError):
    """A game file that is cut short or not understood, or a task that no game can be made for."""


class PddlError(GameError):
    """PDDL that can't be read, or that says what isn't understood here.

    Attributes
    ----------
    line, column : int or None
        One-based place in the text, where known.
    context : str
        The offending line with a caret under the column; empty if unknown.
    """

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
        place = f"{source or 'pddl'}:{line}:{column}: " if line is not None else ""
        super().__init__(f"{place}{message}\n{context}" if context else f"{place}{message}", hint)


class ModelError(ConstrainedError):
    """A language model or tokenizer that can't be loaded."""


class ActionError(ConstrainedError):
    """An action that can't be read or carried out: no such result, a division by zero, a limit passed."""


class DataError(ConstrainedError):
    """A data file that is missing, cut short or of another form than expected."""


class ToolError(ConstrainedError):
    """A tool that an action calls, such as a search engine, failed or took longer than it may."""


class TrainingError(ConstrainedError):
    """Training that can't begin or go on: nothing to learn from, no memory left, a loss that is no number."""

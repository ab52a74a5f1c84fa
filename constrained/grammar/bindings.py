"""Lists of texts, as slots and choices are given them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from constrained.errors import GrammarError
from constrained.limits import Limits


def read_texts(values, what: str, limits: Limits) -> tuple[bytes, ...]:
    """One text, or several, as UTF-8 and in the order given, each once.

    Raises
    ------
    GrammarError
        There is none, or one is not text.
    LimitError
        They are too many, or too long.
    """
    if isinstance(values, (str, bytes)):
        values = [values]
    elif isinstance(values, range):
        limits.check("values", len(values), f"{what}: too many values")
        values = [str(i) for i in values]
    found = _at_once(values, limits) if isinstance(values, (list, tuple)) else None
    if found is None:
        found = tuple(dict.fromkeys(_one_by_one(values, what, limits)))
    if not found:
        raise GrammarError(
            f"{what}: nothing to choose from",
            hint="an empty list admits no text; bind a mapping ({} for none) where that is meant",
        )
    return found


def _at_once(values, limits: Limits) -> tuple[bytes, ...] | None:
    """The texts, where nothing is wrong with them: bindings change with every action."""
    try:
        found = tuple(dict.fromkeys([v if type(v) is bytes else v.encode() for v in values]))
    except (AttributeError, UnicodeEncodeError):
        return None
    return found if len(found) <= limits.values and sum(map(len, found)) <= limits.value_bytes else None


def _one_by_one(values, what: str, limits: Limits) -> Iterator[bytes]:
    if not isinstance(values, Iterable):
        raise _not_text(values, what, "is not text, nor a list of texts")
    size, seen = 0, set()
    for value in values:
        if not isinstance(value, (str, bytes)):
            raise _not_text(value, what, "is not text")
        try:
            data = value.encode() if isinstance(value, str) else bytes(value)
        except UnicodeEncodeError:
            raise GrammarError(f"{what}: {value!r} has a lone surrogate, which is not text") from None
        seen.add(data)
        size += len(data)
        limits.check("values", len(seen), f"{what}: too many values")
        limits.check("value_bytes", size, f"{what}: too many bytes")
        yield data


def _not_text(value, what: str, complaint: str) -> GrammarError:
    hint = None
    if isinstance(value, int) and not isinstance(value, bool):
        hint = f'write the text "{value}", or range({value}) for the numbers below it'
    return GrammarError(f"{what}: {value!r} {complaint}", hint=hint)

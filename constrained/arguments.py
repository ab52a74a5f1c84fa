"""Arguments of public calls: None means the default where there is one; a value of another kind is one clear error."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import Any, NamedTuple, ParamSpec, TypeVar

from constrained.errors import ConstrainedError

P = ParamSpec("P")
T = TypeVar("T")


class ArgumentKind(NamedTuple):
    """What an argument may be: `words` go on as "max_new_tokens is 'x': give …"."""

    types: tuple[type, ...]
    words: str

    def holds(self, value: Any) -> bool:
        """Whether `value` is of this kind; True and False are no numbers."""
        return isinstance(value, self.types) and not (isinstance(value, bool) and bool not in self.types)


TEXT = ArgumentKind((str,), "text")
TEXT_OR_BYTES = ArgumentKind((str, bytes), "text or bytes")
PATH = ArgumentKind((str, os.PathLike), "a path")
WHOLE = ArgumentKind((Integral,), "a whole number")
NUMBER = ArgumentKind((Real,), "a number")
SEVERAL = ArgumentKind((Iterable,), "a list")


def check(name: str, value: Any, kind: ArgumentKind, raises: type[ConstrainedError] = ConstrainedError) -> None:
    """Raise an error that names the argument, unless `value` is of that kind."""
    if not kind.holds(value):
        raise raises(f"{name} is {value!r:.80}", f"give {kind.words}, or leave it out where it has a default")


def checked(
    raises: type[ConstrainedError] = ConstrainedError, **kinds: ArgumentKind
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A decorator: each argument that is None and has a default becomes the default; those of `kinds` are checked."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        parameters = inspect.signature(function).parameters
        names = list(parameters)
        defaults = {name: one.default for name, one in parameters.items() if one.default is not one.empty}

        def read(name: str, value: Any) -> Any:
            if value is None and name in defaults:
                return defaults[name]
            if name in kinds:
                check(name, value, kinds[name], raises)
            return value

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:  # what is too many or unknown is `function`'s to refuse
            first = [*map(read, names, args), *args[len(names) :]]
            return function(*first, **{name: read(name, value) for name, value in kwargs.items()})

        return call

    return decorate

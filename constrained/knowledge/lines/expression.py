"""`Expression`: a condition or a value in `//:` lines, in one form for worlds and policies.

`forms` has their type, `reader` makes them of parse trees. Here they are compiled to functions and evaluated over JSON
values: a condition that depends on something unknown, such as a result that was never seen, is false. A planning task
compiles conditions over facts to joins instead (`constrained.planning.query`).
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache, partial
from typing import Any

import regex

from constrained.errors import KnowledgeError
from constrained.knowledge.lines.forms import (
    Calculate,
    Call,
    Compare,
    Comprehension,
    Conditional,
    Constant,
    Form,
    ListComprehension,
    ListOf,
    MappingOf,
    Member,
    Minus,
    Name,
    Negation,
    Subscript,
    all_parts,
    free_names,
    is_condition,
    membership,
)
from constrained.planning.answers import Facts, answers
from constrained.planning.model import Condition, Junction, Literal, Quantified

MAX_STEPS = 2_000_000
"""Loop steps of all comprehensions evaluated in one memory; also the length of one list or text."""

MAX_DEPTH = 50
"""Nested calls of a policy's functions."""

MAX_SECONDS = 1.0
"""Time that a regular expression may take on one text."""


class Unknown(Exception):
    """A name or a member in an expression has no value."""


def _limited(value: Any) -> Any:
    if isinstance(value, (str, list, range)) and len(value) > MAX_STEPS:
        raise KnowledgeError(f"a condition makes a value of more than {MAX_STEPS:,} parts", "make it simpler")
    return value


def _times(left: Any, right: Any) -> Any:
    if not all(isinstance(factor, (int, float)) for factor in (left, right)):
        raise Unknown("only numbers are multiplied")  # a text times a number may be as long as memory
    return left * right


COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "in": lambda a, b: a in b, "not in": lambda a, b: a not in b,
}  # fmt: skip
_CALCULATE: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: _limited(a + b), "-": operator.sub, "*": _times, "/": operator.truediv, "%": operator.mod,
}  # fmt: skip


def _search(how: str, pattern: str, text: str) -> Any:
    try:
        return getattr(read_regex(pattern), how)(text, timeout=MAX_SECONDS)
    except TimeoutError:
        raise KnowledgeError(
            f"the regular expression {pattern!r} takes more than {MAX_SECONDS:g} s on a text of {len(text)} characters",
            "make it simpler: a repeat within a repeat, such as (a+)+, takes exponential time",
        ) from None


@lru_cache(maxsize=256)
def read_regex(pattern: str) -> regex.Pattern:
    """A regular expression of a policy. Raises regex.error: it isn't one."""
    return regex.compile(pattern)


def _number(value: Any) -> int | float:
    """A number that a text says, such as "2.50"; a number itself. Raises ValueError: it is none."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError("no number")
    if not isinstance(value, str):
        return value
    if _NUMBER.fullmatch(value) is None:
        raise ValueError("no number")
    return float(value) if "." in value else int(value)


_NUMBER = regex.compile(r"[+-]?[0-9]{1,15}(\.[0-9]{1,15})?")


def _values(value: Any) -> list:
    return list(value.values()) if isinstance(value, Mapping) else list(value)


def _unique(values: Any) -> list:
    try:
        return list(dict.fromkeys(values))
    except TypeError:  # lists and objects have no hash
        return [value for i, value in enumerate(values) if value not in values[:i]]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "len": len, "sum": sum, "min": min, "max": max, "all": all, "any": any, "sorted": sorted, "round": round,
    "abs": abs, "range": lambda *bounds: _limited(range(*bounds)), "zip": zip, "keys": list, "values": _values,
    "lower": str.lower, "search": lambda pattern, text: _search("search", pattern, text) is not None,
    "find_all": partial(_search, "findall"), "unique": _unique,
    "count": lambda values, value: list(values).count(value), "number": _number,
}  # fmt: skip
"""The functions that an expression may call; `search(pattern, text)` and `find_all(pattern, text)` take regular
expressions."""

ARGUMENTS = {
    "min": (1, 99), "max": (1, 99), "range": (1, 3), "round": (1, 2), "zip": (2, 99), "search": (2, 2),
    "find_all": (2, 2), "count": (2, 2),
}  # fmt: skip
"""How many arguments they take, at least and at most; functions not named here take one."""


class Expression:
    """A condition or a value, with its place and the names that it looks at.

    Attributes
    ----------
    form : Form
    text : str
        As it is written, in one line.
    words : str
        The reason to give if the condition fails.
    at : tuple of (int, int) or None
        The line and the column where it begins.
    names : frozenset of str
        Its free names, without those of functions.
    calls : frozenset of str
        The functions that it calls.
    if_given : bool
        The condition holds for calls without the argument.
    """

    def __init__(self, form: Form, text: str = "", at: tuple[int, int] | None = None, if_given: bool = False):
        self.form, self.text, self.at, self.if_given = form, text, at, if_given
        self.words = ""
        self.names = free_names(form)
        self.calls = frozenset(part.function for part in all_parts(form) if isinstance(part, Call))

    @cached_property
    def _run(self) -> Run:
        return compiled(self.form)

    def value(self, names: Mapping[str, Any], evaluation: Evaluation) -> Any:
        """Evaluate it. Raises Unknown: a name or a member has no value."""
        return self._run(names, evaluation)

    def holds(self, names: Mapping[str, Any], evaluation: Evaluation) -> bool:
        """Whether it is true; False if it depends on something unknown."""
        try:
            return bool(self.value(names, evaluation))
        except Unknown:
            return False


class Function:
    """A function of a policy: parameters and an expression."""

    def __init__(self, params: tuple[str, ...], body: Expression):
        self.params, self.body = params, body
        self.looks_at = body.names - set(params)


class Evaluation:
    """What expressions are evaluated with: a memory, functions, whose results in it are kept, and a world's facts.

    Parameters
    ----------
    functions : mapping of str to Function
    memory : mapping
    facts : Facts, optional
    """

    def __init__(self, functions: Mapping[str, Function], memory: Mapping[str, Any], facts: Facts | None = None):
        self.functions, self.memory, self.facts = functions, memory, facts
        self.steps = 0
        self.depth = 0
        self._results: dict[tuple, tuple[Any, list[Any]]] = {}

    def call(self, name: str, arguments: list[Any]) -> Any:
        definition = self.functions[name]
        key = (name, *[argument if type(argument) is str else _identity(argument) for argument in arguments])
        if key in self._results:
            result = self._results[key][0]
        else:
            # A function sees the memory and its parameters, nothing of where it is called. Unknown is a result, too.
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise KnowledgeError(f"{name} calls itself without end", "functions don't recurse")
            try:
                names = {name: self.memory[name] for name in definition.looks_at if name in self.memory}
                names.update(zip(definition.params, arguments))
                result = definition.body.value(names, self)
            except Unknown as error:
                result = error
            finally:
                self.depth -= 1
            self._results[key] = result, arguments  # keeps the arguments alive, as keys hold their ids
        if isinstance(result, Unknown):
            raise result
        return result

    def holds(self, condition: Condition, values: Mapping[str, str]) -> bool:
        """Whether a condition over the world's facts holds for these values of all its variables."""
        assert self.facts is not None  # a policy's facts are in its memory
        return any(True for _ in answers(condition, values, self.facts))

    def step(self) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise KnowledgeError(f"a condition takes more than {MAX_STEPS:,} steps", "make it simpler")


def _identity(value: Any) -> Any:
    """A cache key for a value: values with the same key are equal."""
    if isinstance(value, (list, tuple)):
        return type(value), *map(_identity, value)
    return id(value) if isinstance(value, dict) else (type(value), value)


Run = Callable[[Mapping[str, Any], Evaluation], Any]

_ERRORS = (TypeError, KeyError, IndexError, ValueError, ZeroDivisionError, OverflowError, AttributeError, regex.error)


def compiled(form: Form) -> Run:
    """A function that evaluates a form; a Python error in it becomes `Unknown`."""
    inner = _compiled(form)

    def run(names: Mapping[str, Any], evaluation: Evaluation) -> Any:
        try:
            return inner(names, evaluation)
        except _ERRORS as error:
            raise Unknown(str(error)) from None

    return run


def _compiled(form: Form) -> Run:
    match form:
        case Constant(value):
            return lambda names, evaluation: value
        case Name(name):
            return lambda names, evaluation: names[name]
        case Literal() | Quantified() if is_condition(form):
            return lambda names, evaluation: evaluation.holds(form, names)
        case Literal():
            return _compiled(membership(form))
        case Junction(operator, parts):
            return _either([compiled(part) for part in parts], operator == "or")
        case Negation(part):
            of = _compiled(part)
            return lambda names, evaluation: not of(names, evaluation)
        case Compare(left, sign, right) | Calculate(left, sign, right):
            first, second = _compiled(left), _compiled(right)
            work = (COMPARE if isinstance(form, Compare) else _CALCULATE)[sign]
            return lambda names, evaluation: work(first(names, evaluation), second(names, evaluation))
        case Conditional(value, condition, other):
            then, asked, otherwise = _compiled(value), _compiled(condition), _compiled(other)
            return lambda names, evaluation: (then if asked(names, evaluation) else otherwise)(names, evaluation)
        case Comprehension():
            return _comprehension(form)
        case ListComprehension(each):
            values = _compiled(each)
            return lambda names, evaluation: list(values(names, evaluation))
        case Member(inner, name):
            of = _compiled(inner)
            return lambda names, evaluation: of(names, evaluation)[name]
        case Subscript(inner, (only,)):
            of, key = _compiled(inner), _compiled(only)
            return lambda names, evaluation: of(names, evaluation)[key(names, evaluation)]
        case Subscript(inner, keys):
            of, several = _compiled(inner), [*map(_compiled, keys)]
            return lambda names, evaluation: of(names, evaluation)[key_of([key(names, evaluation) for key in several])]
        case Minus(inner):
            of = _compiled(inner)
            return lambda names, evaluation: -of(names, evaluation)
        case ListOf(listed):
            runs = [*map(_compiled, listed)]
            return lambda names, evaluation: [run(names, evaluation) for run in runs]
        case MappingOf(pairs):
            members = [(_compiled(key), _compiled(value)) for key, value in pairs]
            return lambda names, evaluation: {
                key(names, evaluation): value(names, evaluation) for key, value in members
            }
        case Call(name, arguments):
            return _call(name, [*map(_compiled, arguments)])
    raise AssertionError(form)


def _call(name: str, arguments: list[Run]) -> Run:
    """A call of a built-in function, or of one of the policy's."""
    function = FUNCTIONS.get(name)
    if function is None:
        return lambda names, evaluation: evaluation.call(name, [run(names, evaluation) for run in arguments])
    if len(arguments) == 1:
        [only] = arguments
        return lambda names, evaluation: function(only(names, evaluation))
    return lambda names, evaluation: function(*[run(names, evaluation) for run in arguments])


def _either(parts: list[Run], wanted: bool) -> Run:
    """`or` (wanted: True) and `and` (False); an unknown part of `or` doesn't matter if another part is true."""

    def run(names: Mapping[str, Any], evaluation: Evaluation) -> bool:
        unknown: Unknown | None = None
        for part in parts:
            try:
                if bool(part(names, evaluation)) is wanted:
                    return wanted
            except Unknown as error:
                if not wanted:
                    raise
                unknown = error
        if unknown is not None:
            raise unknown
        return not wanted

    return run


def _comprehension(form: Comprehension) -> Run:
    each, source, bound = _compiled(form.element), _compiled(form.values), form.names
    test = None if form.condition is None else _compiled(form.condition)
    single = bound[0] if len(bound) == 1 else None

    def run(names: Mapping[str, Any], evaluation: Evaluation) -> Iterator[Any]:
        here = dict(names)
        for value in source(names, evaluation):
            evaluation.step()
            if single is not None:
                here[single] = value
            else:
                here.update(zip(bound, value))
            if test is None or test(here, evaluation):
                yield each(here, evaluation)

    return run


def key_of(parts: list[Any]) -> Any:
    """The key under which a value about some things is stored: the only thing, or the JSON of several."""
    return parts[0] if len(parts) == 1 else json.dumps(parts)

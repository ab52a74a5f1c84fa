"""The calls of one tool under a policy: what its conditions say of which argument.

A call is written argument by argument (see `call_writer`). Conditions of the forms ``x in ...`` and ``x == ...`` list
the values of an argument, an element ``x[i]`` or a member ``x[i].m``. Conditions that compare or search an argument
become a part of its schema (see `narrowing`). All others are checked as soon as their arguments are written, which must
have few possible values. An argument that no condition mentions may be whatever its schema admits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from constrained.errors import GrammarError, KnowledgeError
from constrained.grammar.json_schema import Options, layout, write_schema
from constrained.grammar.json_schema.keywords import DESCRIBING
from constrained.grammar.nodes import Rule
from constrained.grammar.traverse import reached
from constrained.knowledge.lines.expression import Evaluation, Expression, Function, Unknown
from constrained.knowledge.lines.forms import Call, Compare, Constant, Form, all_parts, free_names, membership
from constrained.knowledge.tool_calls import call_around, closing_marker
from constrained.knowledge.tool_policy.memory import Memory
from constrained.knowledge.tool_policy.narrowing import narrowed_path, path_of
from constrained.knowledge.tool_policy.policy import Policy
from constrained.planning.model import Literal

Path = tuple[str | int, ...]
Agenda = tuple | None
"""What is still to be written, as a linked list: (item, rest); None at the end."""


class ArgumentCondition(NamedTuple):
    """A condition of a policy on a call's arguments, with what it says of the value at one path.

    Attributes
    ----------
    expression : Expression
    path : tuple of str
        The path that it restricts; empty if it only can be checked.
    sign : str
        "in" or "==" where it lists the values at the path; else empty.
    values : Expression
        The values that it lists; the whole condition if it lists none.
    """

    expression: Expression
    path: tuple[str, ...]
    sign: str
    values: Expression

    def listed(self, names: Mapping[str, Any], evaluation: Evaluation) -> list[Any]:
        """The values that it lists. Raises Unknown or TypeError: there is no such list."""
        value = self.values.value(names, evaluation)
        return [value] if self.sign == "==" else [] if isinstance(value, str) else list(value)

    def holds(self, names: dict[str, Any], evaluation: Evaluation) -> bool:
        """Whether it holds; on a path through ``x[i]``, for every element, as if only those before it were known."""
        if not self.sign and "[i]" not in self.path:
            return self.expression.holds(names, evaluation)
        # As the call is written, element i sees only the elements before it; so must this check.
        root = self.path[0]
        try:
            for i, value in _places(names[root], self.path[1:]):
                if not self.sign:
                    held = self.expression.holds({**names, "i": i}, evaluation)
                else:
                    before = names[root]
                    if self.path[1:2] == ("[i]",) and i is not None:
                        before = before[: i if self.path[-1] == "[i]" else i + 1]
                    candidates = self.listed({**names, "i": i, root: before}, evaluation)
                    held = any(_matches(value, candidate) for candidate in candidates)
                if not held:
                    return False
        except KeyError:
            return self.expression.if_given
        except (Unknown, TypeError):
            return False
        return True


class Calls:
    """The calls of one tool that a policy can ever admit.

    Parameters
    ----------
    name : str
    schema : dict
        The JSON Schema of the arguments, an object's.
    policy : Policy
    template : str
        How a call is written, with ARGUMENTS in it.
    options : Options

    Raises
    ------
    KnowledgeError
        A condition can't be enforced, or the policy names an argument that the tool doesn't have.
    """

    def __init__(self, name: str, schema: dict, policy: Policy, template: str, options: Options):
        self.name, self.functions = name, policy.functions
        self.options = replace(options, closing=closing_marker(template, name))
        self.style = layout("dumps")
        # The arguments and their order: that of the policy's `write` line, then of the schema.
        properties = {**schema.get("properties", {})}
        properties |= {argument: {} for argument in schema.get("required", ()) if argument not in properties}
        self.schema = {**schema, "properties": properties}
        self.order = list(dict.fromkeys([*policy.order.get(name, ()), *properties]))
        if unknown := [argument for argument in self.order if argument not in properties]:
            raise KnowledgeError(f"tool {name!r} has no argument {unknown[0]!r}", f"it has: {', '.join(properties)}")
        self.required = set(schema.get("required", ()))
        self.rules: dict[str, Rule] = {}
        self.texts: dict[Any, Any] = {}
        self._relevant: dict[str | int, list[str]] = {}
        self.before, self.after = call_around(template, name)
        self.static: list[Expression] = []  # conditions that mention no argument
        self.domains: dict[tuple[str, ...], list[ArgumentCondition]] = {}
        self.checks: dict[str, list[Expression]] = {}
        self.conditions: list[ArgumentCondition] = []
        self.mentioned: dict[str, int] = {}  # argument -> the position of the last argument whose conditions use it
        # Sort the conditions: without arguments, on one path, or to be checked after the last argument that they use.
        expressions = policy.needs.get(name, [])
        for expression in expressions:
            if used := [argument for argument in self.order if argument in expression.names]:
                self._add(expression, used)
            else:
                self.static.append(expression)
                self.conditions.append(ArgumentCondition(expression, (), "", expression))
        self.narrows = any(not condition.sign for given in self.domains.values() for condition in given)
        # The arguments that are written under conditions; all others are whatever the schema admits.
        self.governed = {path[0] for path in self.domains} | set(self.mentioned)
        if self.governed:
            self.check_keywords((), schema)
        for argument in self.mentioned:
            self._check_few(argument)
        self.looks_at = frozenset().union(*(names_used(e, self.functions) for e in expressions if e not in self.static))
        self.agenda = self._agenda()

    def _add(self, expression: Expression, used: list[str]) -> None:
        """Note a condition on the arguments `used`: as the domain of a path, or as a check after the last of them."""
        # Try, in this order: a list of values, a part of the schema, a check.
        sign, values, last = "", expression.form, used[-1]
        if (domain := _domain(expression, self.order)) is not None:
            path, sign, values = domain
        else:
            path = narrowed_path(expression.form, last) or ()
            path = () if _kind_at(self.schema, path) in NESTED else path
        condition = ArgumentCondition(expression, path, sign, Expression(values) if sign else expression)
        self.conditions.append(condition)
        if path:
            self.domains.setdefault(path, []).append(condition)
        elif "i" in expression.names and "i" not in self.order:
            what = f"tool {self.name!r}: `needs {expression.text}` says something of elements that can't be enforced"
            raise KnowledgeError(what, "list what each may be: `x[i] in [...]`")
        else:
            self.checks.setdefault(last, []).append(expression)
        for part in all_parts(expression.form) if path and not sign else ():
            self._check_pattern(part, expression)
        # How long each argument's value must be known: until the last condition that looks at it is decided.
        at = self.order.index(path[0] if path else last)
        for argument in used:
            if not path or argument != path[0]:
                self.mentioned[argument] = max(self.mentioned.get(argument, -1), at)
        if len(path) > 1 and sign and path[0] in free_names(values):
            self.mentioned[path[0]] = max(self.mentioned.get(path[0], -1), at + 1)

    def _check_few(self, argument: str) -> None:
        """Raise KnowledgeError if conditions use an argument whose values can't be enumerated."""
        few = any(c.sign for c in self.domains.get((argument,), ())) or listed(self.schema["properties"][argument])
        if not few and _kind_at(self.schema, (argument,)) not in (*NESTED, "integer"):
            expressions = (c.expression for c in self.conditions if c.path != (argument,))
            text = next(expression.text for expression in expressions if argument in expression.names)
            raise KnowledgeError(
                f"tool {self.name!r}: {argument} may be anything where `needs {text}` looks at it",
                f"say which values it may have in a condition of its own: `{argument} in [...]`",
            )

    def _check_pattern(self, part: Form, expression: Expression) -> None:
        match part:
            case Call("search", (Constant(pattern), _)):
                try:
                    write_schema({"type": "string", "pattern": pattern}, {}, "", self.style, self.options)
                except GrammarError as error:
                    _, _, why = error.message.partition(": ")
                    raise KnowledgeError(f"tool {self.name!r}: `needs {expression.text}`: {why}", error.hint) from None

    def check_keywords(self, path: Path, schema: Mapping[str, Any]) -> None:
        """Raise KnowledgeError if an object or a list that is written part by part has a keyword that would be lost."""
        for keyword in schema:
            if keyword not in _KEPT:
                where = ".".join(map(str, path)) or "its arguments"
                what = f"tool {self.name!r}: {keyword!r} of {where} can't be kept where conditions choose what is in it"
                raise KnowledgeError(what, "leave it out of the schema, and say it by a condition, if at all")

    def _agenda(self) -> Agenda:
        if not self.governed and not _KEPT.issuperset(self.schema):
            return onto([("text", self.before), ("whole",), ("text", self.after)], None)
        items: list[tuple] = [("text", f"{self.before}{{")]
        for name in self.order:
            items += [("member", (name,), self.schema["properties"][name], name in self.required), ("check", name)]
        return onto([*items, ("text", f"}}{self.after}")], None)

    def failed(self, memory: Memory, arguments: Mapping[str, Any]) -> list[Expression]:
        """The conditions of a call that don't hold, in the order of the policy."""
        names, evaluation = {**memory, **arguments}, memory.evaluation(self.functions)
        return [condition.expression for condition in self.conditions if not condition.holds(names, evaluation)]

    def unmet(self, memory: Memory, arguments: Mapping[str, Any]) -> list[str]:
        """The conditions of a call that don't hold: by the comment behind them, else as they are written."""
        return [expression.words or expression.text for expression in self.failed(memory, arguments)]

    def asked(self, path: Path) -> str:
        """Whether conditions need a value at a path, or inside it: "always", "if given", or "never"."""
        pattern = pattern_of(path)
        below = [c.expression for at, given in self.domains.items() if at[: len(pattern)] == pattern for c in given]
        if (path[0] in self.mentioned and len(path) == 1) or not all(expression.if_given for expression in below):
            return "always"
        return "if given" if below else "never"

    def opens(self, path: Path) -> bool:
        """Whether conditions look inside the value at a path."""
        pattern = pattern_of(path)
        return any(domain[: len(pattern)] == pattern and len(domain) > len(pattern) for domain in self.domains)

    def matters(self, path: Path) -> bool:
        """Whether a later decision looks at the value at a path."""
        root = str(path[0])
        last, position = self.mentioned.get(root, -1), self.order.index(root)
        return last > position or (last == position and (len(path) > 1 or bool(self.checks.get(root))))

    def relevant(self, path: Path) -> list[str]:
        """The arguments written before a path that the conditions from there on look at, and the path's own."""
        if path[0] not in self._relevant:
            position = self.order.index(str(path[0]))
            names = [name for name in self.order[:position] if self.mentioned.get(name, -1) >= position]
            self._relevant[path[0]] = [*names, str(path[0])]
        return self._relevant[path[0]]


def names_used(expression: Expression, functions: Mapping[str, Function]) -> frozenset[str]:
    """The names in an expression, and in the functions that it calls."""
    called = reached(expression.calls & functions.keys(), lambda name: functions[name].body.calls & functions.keys())
    return expression.names.union(*(functions[name].looks_at for name in called))


def _domain(expression: Expression, order: list[str]) -> tuple[tuple[str, ...], str, Form] | None:
    """(path, comparison, other side) of a condition that lists the values at a path."""
    form = membership(expression.form) if isinstance(expression.form, Literal) else expression.form
    match form:
        case Compare(left, "in" | "==" as sign, right):
            path = path_of(left)
            if path is None or path[0] not in order:
                return None
            later = order[order.index(path[0]) + (len(path) > 1) :]
            return None if free_names(right).intersection(later) else (path, sign, right)
    return None


NESTED = ("array", "object")
_KEPT = DESCRIBING | {"type", "properties", "required", "additionalProperties", "items", "minItems", "maxItems"}


def _kind_at(schema: Any, path: tuple[str, ...]) -> Any:
    """The type of the values at a path, by the schema; empty if the schema doesn't say."""
    for step in path:
        below = schema if isinstance(schema, dict) else {}
        schema = below.get("items") if step == "[i]" else (below.get("properties") or {}).get(step)
    return schema_type(schema)


def schema_type(schema: Any) -> Any:
    """The type that a schema names, or a list of types; empty if it names none."""
    return schema.get("type", "") if isinstance(schema, dict) else ""


def listed(schema: Any) -> list[Any]:
    """The values that a schema lists; empty if it lists none."""
    schema = schema if isinstance(schema, dict) else {}
    values = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    return values or ([True, False] if schema.get("type") == "boolean" else [])


def _places(value: Any, path: tuple[str, ...]) -> list[tuple[int | None, Any]]:
    """(index of the list's element, value) for each value at a path. Raises KeyError: there is none."""
    places: list[tuple[int | None, Any]] = [(None, value)]
    for step in path:
        if step == "[i]":
            places = [(i if at is None else at, item) for at, top in places for i, item in enumerate(top)]
        else:
            places = [(at, top[step]) for at, top in places]
    return places


def _matches(value: Any, candidate: Any) -> bool:
    """Whether a value equals a candidate; of an object, the members that it has."""
    if isinstance(value, dict) and isinstance(candidate, dict):
        return all(name in candidate and candidate[name] == member for name, member in value.items())
    return bool(value == candidate)


def pattern_of(path: Path) -> tuple[str, ...]:
    """A path with ``[i]`` for each index."""
    return tuple("[i]" if isinstance(part, int) else part for part in path)


def onto(items: list[tuple], agenda: Agenda) -> Agenda:
    """The agenda `agenda` with `items` put before it."""
    for item in reversed(items):
        agenda = item, agenda
    return agenda

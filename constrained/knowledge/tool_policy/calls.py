"""The calls of one tool that a policy admits now, as a grammar.

A call is written argument by argument (see `call_writer`). Conditions of the forms ``x in ...`` and ``x == ...`` list
the values of an argument, an element ``x[i]`` or a member ``x[i].m``. Others that compare or search it become a part of
its schema (see `narrowing`). Every other condition is checked as soon as its arguments are known, which must be among
few. An argument that no condition mentions is free: whatever its schema admits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from constrained.errors import GrammarError, KnowledgeError
from constrained.grammar.json_schema import Layout, Options, write_schema
from constrained.grammar.json_schema.keywords import DESCRIBING
from constrained.grammar.nodes import Rule
from constrained.grammar.traverse import reached
from constrained.knowledge.tool_calls import call_around
from constrained.knowledge.tool_policy.expression import Definition, Expression, Scope, Unknown
from constrained.knowledge.tool_policy.memory import Memory
from constrained.knowledge.tool_policy.narrowing import narrowed_path, path_of
from constrained.knowledge.world.syntax import ParseTree

Path = tuple[str | int, ...]
Agenda = tuple | None
"""What is still to be written: (item, the rest); None: nothing."""


class Calls:
    """What may ever be written as a call of one tool.

    Parameters
    ----------
    name : str
    schema : dict
        Of the arguments, an object's.
    conditions : list of Expression
    functions : mapping of str to Definition
    order : list of str
        Arguments in the order in which they are written.
    template : str
        How a call is written, with ARGUMENTS in it.
    style : Layout
    options : Options
    """

    def __init__(
        self,
        name: str,
        schema: dict,
        conditions: list[Expression],
        functions: Mapping[str, Definition],
        order: Iterable[str],
        template: str,
        style: Layout,
        options: Options,
    ):
        self.name, self.functions = name, functions
        properties = {**schema.get("properties", {})}
        properties |= {one: {} for one in schema.get("required", ()) if one not in properties}
        self.schema = {**schema, "properties": properties}
        first = list(order)
        self.order = [*first, *(one for one in properties if one not in first)]
        if unknown := [one for one in first if one not in properties]:
            raise KnowledgeError(f"tool {name!r} has no argument {unknown[0]!r}", f"it has: {', '.join(properties)}")
        self.required = set(schema.get("required", ()))
        self.rules: dict[str, Rule] = {}
        self.texts: dict[Any, Any] = {}
        self.style, self.options = style, options
        self._relevant: dict[str | int, list[str]] = {}
        self.before, self.after = call_around(template, name)
        self.static: list[Expression] = []  # conditions that mention no argument
        self.domains: dict[tuple[str, ...], list[tuple[str, Expression]]] = {}
        self.checks: dict[str, list[Expression]] = {}
        self.conditions: list[tuple[Expression, tuple[str, ...], str, ParseTree]] = []
        self.mentioned: dict[str, int] = {}  # argument -> the last one whose conditions look at it
        for condition in conditions:
            if used := [one for one in self.order if one in condition.names]:
                self._sort_in(condition, used)
            else:
                self.static.append(condition)
                self.conditions.append((condition, (), "", condition.tree))
        self.narrows = any(not sign for given in self.domains.values() for sign, _ in given)
        self.governed = {path[0] for path in self.domains} | set(self.mentioned)
        if self.governed:
            self.check_keywords((), schema)
        for one in self.mentioned:
            few = any(sign for sign, _ in self.domains.get((one,), ())) or listed(properties[one])
            if not few and _kind_at(self.schema, (one,)) not in (*NESTED, "integer"):
                [text, *_] = [c.text for c, path, *_ in self.conditions if one in c.names and path != (one,)]
                what = f"tool {name!r}: {one} may be anything where `needs {text}` looks at it"
                raise KnowledgeError(what, f"say which values it may have in a condition of its own: `{one} in [...]`")
        self.looks_at = frozenset().union(*(_seen_by(one, functions) for one in conditions if one not in self.static))
        self.agenda = self._agenda()

    def _sort_in(self, condition: Expression, used: list[str]) -> None:
        """Find out what a condition about some arguments says."""
        sign, other, last = "", condition.tree, used[-1]
        if (domain := _domain(condition, self.order)) is not None:
            path, sign, other = domain
        else:
            path = narrowed_path(condition.tree, last) or ()
            path = () if _kind_at(self.schema, path) in NESTED else path
        if path:
            self.domains.setdefault(path, []).append((sign, condition.part(other)))
        elif "i" in condition.names and "i" not in self.order:
            what = f"tool {self.name!r}: `needs {condition.text}` says of elements what can't be asked of each"
            raise KnowledgeError(what, "list what each may be: `x[i] in [...]`")
        else:
            self.checks.setdefault(last, []).append(condition)
        for part in condition.tree.parts() if path and not sign else ():
            self._check_pattern(part, condition)
        self.conditions.append((condition, path, sign, other))
        at = self.order.index(path[0] if path else last)
        looked = {one: at for one in used if not path or one != path[0]}
        if len(path) > 1 and sign and path[0] in Expression(other).names:
            looked[path[0]] = at + 1
        self.mentioned.update({one: max(self.mentioned.get(one, -1), place) for one, place in looked.items()})

    def _check_pattern(self, part: ParseTree, condition: Expression) -> None:
        match part:
            case ParseTree("call", ["search", ParseTree("constant", [pattern]), _]):
                try:
                    write_schema({"type": "string", "pattern": pattern}, {}, "", self.style, self.options)
                except GrammarError as error:
                    _, _, why = error.message.partition(": ")
                    raise KnowledgeError(f"tool {self.name!r}: `needs {condition.text}`: {why}", error.hint) from None

    def check_keywords(self, path: Path, schema: Mapping[str, Any]) -> None:
        """Raise KnowledgeError if an object or a list that is written part by part has a keyword that isn't kept."""
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

    def unmet(self, memory: Memory, arguments: Mapping[str, Any]) -> list[str]:
        """The conditions of a call that don't hold: in the words behind them, else as they are written."""
        names, scope = {**memory, **arguments}, memory.scope(self.functions)
        return [
            one.words or one.text
            for one, path, sign, other in self.conditions
            if not self._holds(one, path, sign, other, names, scope)
        ]

    def _holds(
        self,
        condition: Expression,
        path: tuple[str, ...],
        sign: str,
        other: ParseTree,
        names: dict[str, Any],
        scope: Scope,
    ) -> bool:
        """Whether a condition holds; one about ``x[i]`` holds if it does for every element, those before it known."""
        if not sign and "[i]" not in path:
            return condition.holds(names, scope)
        root, right = path[0], condition.part(other)
        try:
            for i, value in _places(names[root], path[1:]):
                if not sign:
                    held = condition.holds({**names, "i": i}, scope)
                else:
                    before = names[root]
                    if path[1:2] == ("[i]",) and i is not None:
                        before = before[: i if path[-1] == "[i]" else i + 1]
                    given = right.value({**names, "i": i, root: before}, scope)
                    among = [given] if sign == "==" else [] if isinstance(given, str) else given
                    held = any(_like(value, one) for one in among)
                if not held:
                    return False
        except KeyError:
            return condition.if_given
        except (Unknown, TypeError):
            return False
        return True

    def asked(self, path: Path) -> str:
        """Whether conditions ask for a value at a path, or in it: "always", "if given", or "never"."""
        pattern = pattern_of(path)
        below = [one for at, given in self.domains.items() if at[: len(pattern)] == pattern for _, one in given]
        if path[0] in self.mentioned and len(path) == 1 or not all(one.if_given for one in below):
            return "always"
        return "if given" if below else "never"

    def opens(self, path: Path) -> bool:
        """Whether conditions look inside the value at a path."""
        pattern = pattern_of(path)
        return any(found[: len(pattern)] == pattern and len(found) > len(pattern) for found in self.domains)

    def matters(self, path: Path) -> bool:
        """Whether something still to be decided looks at the value at a path."""
        root = str(path[0])
        last, own = self.mentioned.get(root, -1), self.order.index(root)
        return last > own or (last == own and (len(path) > 1 or bool(self.checks.get(root))))

    def relevant(self, path: Path) -> list[str]:
        """The arguments that are written before a place and that something from there on looks at."""
        if path[0] not in self._relevant:
            own = self.order.index(str(path[0]))
            names = [name for name in self.order[:own] if self.mentioned.get(name, -1) >= own]
            self._relevant[path[0]] = [*names, str(path[0])]
        return self._relevant[path[0]]


def _seen_by(condition: Expression, functions: Mapping[str, Definition]) -> frozenset[str]:
    """What a condition looks at, itself or in the functions that it calls."""
    called = reached(condition.calls & functions.keys(), lambda name: functions[name].body.calls & functions.keys())
    return condition.names.union(*(functions[name].looks_at for name in called))


def _domain(condition: Expression, order: list[str]) -> tuple[tuple[str, ...], str, ParseTree] | None:
    """(path, comparison, the other side) of a condition that says which values an argument may have."""
    match condition.tree:
        case ParseTree("compare", [left, "in" | "==" as sign, right]):
            path = path_of(left)
            if path is None or path[0] not in order:
                return None
            later = order[order.index(path[0]) + (len(path) > 1) :]
            return None if Expression(right).names.intersection(later) else (path, sign, right)
    return None


NESTED = ("array", "object")
_KEPT = DESCRIBING | {"type", "properties", "required", "additionalProperties", "items", "minItems", "maxItems"}


def _kind_at(schema: Any, path: tuple[str, ...]) -> Any:
    """The type of what stands at a path, by its schema; empty if that doesn't say one."""
    for step in path:
        below = schema if isinstance(schema, dict) else {}
        schema = below.get("items") if step == "[i]" else (below.get("properties") or {}).get(step)
    return kind_of(schema)


def kind_of(schema: Any) -> Any:
    """The type that a schema names, or a list of types; empty if it names none."""
    return schema.get("type", "") if isinstance(schema, dict) else ""


def listed(schema: Any) -> list[Any]:
    """The values that a schema lists; empty if it lists none."""
    schema = schema if isinstance(schema, dict) else {}
    values = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    return values or ([True, False] if schema.get("type") == "boolean" else [])


def _places(value: Any, path: tuple[str, ...]) -> list[tuple[int | None, Any]]:
    """(index of the list's element, value) at each place of a path; KeyError: there is no such place."""
    found: list[tuple[int | None, Any]] = [(None, value)]
    for step in path:
        if step == "[i]":
            found = [(i if at is None else at, one) for at, top in found for i, one in enumerate(top)]
        else:
            found = [(at, top[step]) for at, top in found]
    return found


def _like(value: Any, candidate: Any) -> bool:
    """Whether a value is a candidate, of which it may have some members only."""
    if isinstance(value, dict) and isinstance(candidate, dict):
        return all(name in candidate and candidate[name] == one for name, one in value.items())
    return bool(value == candidate)


def pattern_of(path: Path) -> tuple[str, ...]:
    """A path with ``[i]`` for each index."""
    return tuple("[i]" if isinstance(part, int) else part for part in path)


def onto(items: list[tuple], agenda: Agenda) -> Agenda:
    """The agenda with some items before it."""
    for item in reversed(items):
        agenda = item, agenda
    return agenda

"""Read the `//:` lines of a `.lark` file into a `World`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lark import Token

from constrained.errors import GrammarError
from constrained.grammar.lark_literals import Fault, parts
from constrained.grammar.lark_outline import RULE, SLOT, Outline, OutlineEntry, items_in, read_outline
from constrained.grammar.lark_syntax import Name, Quoted
from constrained.grammar.nodes import STEP
from constrained.grammar.source import Source, SourceSpan, read_source
from constrained.knowledge.world.pattern import Pattern, PatternError
from constrained.knowledge.world.syntax import MARK, VALUES, ParseTree, parse_world, rules_below
from constrained.knowledge.world.world import Command, Maybe, TaskGoal, Tells, Told, World, join
from constrained.planning.model import (
    ALWAYS,
    ROOT,
    Action,
    Condition,
    Domain,
    Effect,
    Junction,
    Literal,
    Parameter,
    Problem,
    Quantified,
    literals_in,
    negated,
    parts_in,
)
from constrained.planning.wording import squeezed

_ABOVE_RULES = ("action", "needs", "makes")


def read_world(text_or_path: str | Path | Source) -> World | None:
    """Read a `.lark` file's world.

    Parameters
    ----------
    text_or_path : str, Path or Source
        As for `ActionKnowledge.from_lark`.

    Returns
    -------
    World or None
        None: the file has no `//:` lines, or they are a policy of tools (see `constrained.knowledge.tool_policy`).

    Raises
    ------
    GrammarError
        A line doesn't parse, or names what isn't declared; with file, line and column.
    """
    source = read_source(text_or_path)
    statements = parse_world(source) if MARK in source.text else []
    if any(part.data in VALUES for statement in statements for part in statement.parts()):
        return None
    return _Reader(source).read(statements) if statements else None


@dataclass
class _Scope:
    """The variables that a statement may use.

    Attributes
    ----------
    types : dict of str to (str or None)
        Variable -> its type, None if that follows from the facts it is used in.
    uses : dict of str to list of (str, SourceSpan)
        Variable -> the types that facts give it, with the place.
    free : bool
        Other names are variables, too.
    captured : frozenset of str
        Names of types that a task's sentence gives.
    """

    types: dict[str, str | None] = field(default_factory=dict)
    uses: dict[str, list[tuple[str, SourceSpan]]] = field(default_factory=dict)
    free: bool = False
    captured: frozenset[str] = frozenset()
    what: str = "here"

    def inner(self, declared: Mapping[str, str]) -> _Scope:
        """A scope within this one, with some more variables; what is used of the outer ones is noted there."""
        types = {**self.types, **declared}
        uses = {name: used for name, used in self.uses.items() if name not in declared}
        inner = _Scope(types, uses, self.free, self.captured, self.what)
        for name in self.types:
            if name not in declared:
                inner.uses[name] = self.uses.setdefault(name, [])
        return inner


class _Reader:
    def __init__(self, source: Source):
        self.source = source
        self.outline: Outline = read_outline(source)
        self.domain = Domain(source.path.stem if source.path else "world")
        self.world = World(source, self.domain)
        self.objects: dict[str, str] = {}
        self.kinds: set[str] = set()
        self.rules = {d.name: d for d in self.outline.definitions if d.kind == RULE and d.how == "define"}
        self.slots = {d.name for d in self.outline.definitions if d.kind == SLOT}

    def read(self, statements: Sequence[ParseTree]) -> World:
        of: dict[str, list[ParseTree]] = {}
        for statement in statements:
            of.setdefault(statement.data, []).append(statement)
        self.types(of.get("type", ()))
        for statement in of.get("fact", ()):
            self.facts(statement)
        for statement in of.get("object", ()):
            self.things(statement)
        above = self.above_rules(statements)
        self.check_names(above)
        for name, entry in self.rules.items():
            self.action(entry, above.get(name, []))
        for statement in statements:
            if statement.data == "tells" and not any(statement in own for own in above.values()):
                self.tells(statement, None, _Scope(free=True))
        for statement in of.get("maybe", ()):
            self.maybe(statement)
        for statement in of.get("fails", ()):
            self.world.fails += self.patterns(statement.children[0])
        self.problem(of.get("init", ()), of.get("goal", ()))
        for kind in self.kinds:
            self.domain.predicates[kind] = (Parameter("?x", ROOT),)
        self.world.kinds = frozenset(self.kinds)
        return self.world

    # places and errors

    def span(self, token: Token) -> SourceSpan:
        assert token.start_pos is not None
        return self.source.span(token.start_pos, len(token))

    def span_of(self, tree: ParseTree) -> SourceSpan:
        return self.span(next(tree.tokens()))

    def unknown(self, token: Token, what: str, known: Iterable[str]) -> GrammarError:
        known = sorted(set(known))
        near = difflib.get_close_matches(_plain(token).lower(), known, 1)
        hint = f"did you mean {near[0]}?" if near else f"there {'is' if known else 'are none'} {', '.join(known[:12])}"
        return self.span(token).error(f"no {what} `{_plain(token)}`", hint.strip())

    def declare(self, token: Token, what: str, known: Mapping[str, object]) -> str:
        """A new name in lower case; its spelling is kept."""
        name = _plain(token).lower()
        if name in known:
            raise self.span(token).error(f"{what} {_plain(token)} is declared twice")
        self.domain.spelling.setdefault(name, _plain(token))
        return name

    # declarations

    def types(self, statements: Iterable[ParseTree]) -> None:
        parents: list[tuple[list[str], Token | None]] = []
        for statement in statements:
            for kinds in statement.children:
                *names, parent = kinds.children
                own = []
                for token in names:
                    name = self.declare(token, "the type", self.domain.types)
                    if name == ROOT:
                        raise self.span(token).error(f"{ROOT} is what every type belongs to", "take another name")
                    self.domain.types[name] = ROOT
                    self.world.spans[name] = self.span(token)
                    own.append(name)
                parents.append((own, parent))
        for own, parent in parents:
            if parent is None:
                continue
            for name in own:
                self.domain.types[name] = self.kind(parent)
                if self.domain.is_subtype(self.domain.types[name], name):
                    raise self.span(parent).error(f"the type {name} would belong to itself")

    def kind(self, token: Token, scope: _Scope | None = None) -> str:
        name = _plain(token).lower()
        if scope is not None and name in scope.captured:
            return name
        if name != ROOT and name not in self.domain.types:
            raise self.unknown(token, "type", (*self.domain.types, *(scope.captured if scope else ())))
        return name

    def facts(self, statement: ParseTree) -> None:
        for predicate in statement.children:
            token, *arguments = predicate.children
            name = self.declare(token, "the fact", self.domain.predicates)
            self.world.spans[f"fact {name}"] = self.span(token)
            parameters = []
            for number, argument in enumerate(a for a in arguments if a is not None):
                many, kind = argument.children
                if many is not None:
                    self.world.single.setdefault(name, {})[number] = str(many) == "one"
                parameters.append(Parameter(f"?{_plain(kind).lower()}{number + 1}", self.kind(kind)))
            self.domain.predicates[name] = tuple(parameters)

    def things(self, statement: ParseTree) -> None:
        for things in statement.children:
            *names, kind = things.children
            for token in names:
                name = self.declare(token, "the object", self.objects)
                self.objects[name] = ROOT if kind is None else self.kind(kind)
                self.world.spans[f"object {name}"] = self.span(token)

    # what stands above which rule

    def above_rules(self, statements: Sequence[ParseTree]) -> dict[str, list[ParseTree]]:
        """Rule -> the statements in the comment directly above it."""
        first = {entry.span.line: name for name, entry in self.rules.items()}
        found: dict[str, list[ParseTree]] = {}
        for statement, rule in rules_below(self.source, statements, first):
            if statement.data in (*_ABOVE_RULES, "tells") and rule is not None:
                found.setdefault(rule, []).append(statement)
            elif statement.data in _ABOVE_RULES:
                raise self.span_of(statement).error(
                    f"`{statement.data}` stands above no rule", "put it in the comment directly above the action's rule"
                )
        return found

    def check_names(self, above: Mapping[str, Sequence[ParseTree]]) -> None:
        """Rules with `needs` or `makes` write their text plainly, so that an action can be written and read."""
        for name, statements in above.items():
            if any(s.data in _ABOVE_RULES for s in statements) and self.command(self.rules[name]) is None:
                raise self.rules[name].span.error(
                    f"the action {name} has conditions, but its text isn't plain",
                    "write strings and parameters in a row, up to _STEP; a slot in the text is named after a type",
                )

    def command(self, entry: OutlineEntry) -> Command | None:
        """How the rule of an action writes it; None if it isn't strings and parameters in a row."""
        if entry.options is None or len(entry.options.items) != 1:
            return None
        pieces: list[str] = []
        for item in entry.options.items[0]:
            if isinstance(item, Quoted) and item.text.startswith('"') and not item.text.endswith("i"):
                try:
                    pieces.append(parts(item)[0])
                except Fault:
                    return None
            elif isinstance(item, Name) and item.text == STEP:
                return tuple(pieces) if pieces else None
            elif isinstance(item, Name) and item.args is None and item.text in entry.params:
                pieces.append(f"?{item.text}")
            elif isinstance(item, Name) and item.text in self.slots and self.slot_type(item.text):
                pieces.append(f"?{item.text.lower()}")
            else:
                return None
        return tuple(pieces) if pieces and not isinstance(entry.options.items[0][-1], Name) else None

    def slot_type(self, slot: str) -> str | None:
        """The type that a slot is named after."""
        return next((kind for kind in self.domain.types if squeezed(kind) == squeezed(slot)), None)

    def given_types(self, rule: str, parameter: str, seen: frozenset[tuple[str, str]] = frozenset()) -> set[str]:
        """The types of the slots that calls pass to a parameter, also through other rules' parameters."""
        found: set[str] = set()
        if (rule, parameter) in seen:
            return found
        for caller in self.rules.values():
            for item in items_in(caller.options):
                if not isinstance(item, Name) or item.text != rule or not item.args:
                    continue
                argument = item.args[self.rules[rule].params.index(parameter)]
                if not isinstance(argument, Name):
                    continue
                if argument.text in caller.params:
                    found |= self.given_types(caller.name, argument.text, seen | {(rule, parameter)})
                elif kind := self.slot_type(argument.text):
                    found.add(kind)
        return found

    # actions

    def action(self, entry: OutlineEntry, statements: Sequence[ParseTree]) -> None:
        command = self.command(entry)
        if command is None:
            return
        named = [s.children[0] for s in statements if s.data == "action"]
        name = _plain(named[-1]) if named else entry.name
        if name.lower() in self.world.commands:
            raise (self.span(named[-1]) if named else entry.span).error(f"there are two actions {name}")
        written = [piece for piece in command if piece.startswith("?")]
        scope = _Scope({}, what=f"in the action {entry.name}")
        for parameter in [*entry.params, *(p[1:] for p in written if p[1:] not in entry.params)]:
            if parameter in entry.params:
                given = self.given_types(entry.name, parameter)
                scope.types[parameter] = self.common(given) if given else None
            else:
                scope.types[parameter] = self.slot_type(parameter)
        needs = [self.condition(s.children[0], scope) for s in statements if s.data == "needs"]
        effects = [e for s in statements if s.data == "makes" for e in self.effects(s.children[0], (), ALWAYS, scope)]
        used = [p for p in scope.types if f"?{p}" in written or scope.uses.get(p)]
        parameters = tuple(Parameter(f"?{p}", self.type_of(p, scope, entry.span)) for p in used)
        self.domain.spelling[name.lower()] = name
        self.domain.actions.append(Action(name.lower(), parameters, join(tuple(needs)), tuple(effects)))
        self.world.commands[name.lower()] = command
        self.world.rules[name.lower()] = entry.name
        self.world.spans[name.lower()] = entry.span
        for statement in statements:
            if statement.data == "tells":
                types = {p.name[1:]: p.type for p in parameters}
                self.tells(statement, name.lower(), _Scope(dict(types), free=True))

    def common(self, kinds: set[str]) -> str:
        """The narrowest type that all of some types belong to."""
        first, *others = sorted(kinds)
        return next(wide for wide in self.domain.wider(first) if all(self.domain.is_subtype(o, wide) for o in others))

    def type_of(self, variable: str, scope: _Scope, span: SourceSpan) -> str:
        """A variable's type: as declared, or the narrowest that the facts it is used in are of."""
        declared = scope.types.get(variable)
        if declared is not None:
            return declared
        narrow = ROOT
        for kind, place in scope.uses.get(variable, ()):
            if self.domain.is_subtype(kind, narrow):
                narrow = kind
            elif not self.domain.is_subtype(narrow, kind):
                raise place.error(
                    f"`{variable}` would be both a {narrow} and a {kind}",
                    "no thing is both: name another parameter, or give the facts a wider type",
                )
        return narrow

    # conditions and effects

    def conditions(self, tree: ParseTree, scope: _Scope) -> Condition:
        return join(tuple(self.condition(part, scope) for part in tree.children))

    def condition(self, tree: ParseTree | Token, scope: _Scope) -> Condition:
        if isinstance(tree, Token):
            raise self.span(tree).error("a fact belongs here", "name one that a `fact` line declares")
        match tree.data:
            case "conditions":
                return self.conditions(tree, scope)
            case "either" | "both":
                operator = "or" if tree.data == "either" else "and"
                return Junction(operator, tuple(self.condition(part, scope) for part in tree.children))
            case "negation":
                return negated(self.condition(tree.children[1], scope))
            case "quantified":
                quantifier, variables, part = tree.children
                declared = self.variables(variables, scope)
                inner = scope.inner({v.name[1:]: v.type for v in declared})
                return Quantified(str(quantifier), declared, self.conditions(part, inner))
            case "equality":
                left, sign, right = tree.children
                if str(sign) not in ("=", "!="):
                    raise self.span(sign).error(f"`{sign}` compares values, which only tools' results have")
                terms = tuple(self.term(self.word(one), None, scope) for one in (left, right))
                return Literal("=", terms, str(sign) == "=")
            case _:
                return self.atom(tree, scope)

    def variables(self, tree: ParseTree, scope: _Scope) -> tuple[Parameter, ...]:
        found = []
        for variable in tree.children:
            name, kind = variable.children
            found.append(Parameter(f"?{name.lower()}", self.kind(kind, scope)))
        return tuple(found)

    def atom(self, tree: ParseTree, scope: _Scope, any_thing: bool = True) -> Condition:
        """A fact as a condition; `*` in it stands for some object."""
        token, *written = tree.children
        terms = [self.word(term) for term in written if term is not None]
        name = token.lower()
        if name in self.domain.predicates and name not in self.kinds:
            kinds = [p.type for p in self.domain.predicates[name]]
        elif name in self.domain.types or name in scope.captured:
            kinds = [ROOT]
            self.kinds |= {name} & self.domain.types.keys()
        else:
            raise self.unknown(token, "fact", (*self.domain.predicates, *self.domain.types))
        if len(terms) != len(kinds):
            raise self.span(token).error(
                f"`{token}` has {len(kinds)} argument{'s' * (len(kinds) != 1)}, not {len(terms)}",
                f"it is declared as {self.shown(name)}" if name in self.domain.predicates else "a type is of one thing",
            )
        values, anything = [], []
        for number, (term, kind) in enumerate(zip(terms, kinds)):
            if str(term) == "*" and any_thing:
                anything.append(Parameter(f"?any{number + 1}", kind))
                values.append(anything[-1].name)
            elif str(term) == "*":
                raise self.span(term).error("`*` stands in conditions only")
            else:
                values.append(self.term(term, kind, scope))
        literal = Literal(name, tuple(values))
        return Quantified("some", tuple(anything), literal) if anything else literal

    def word(self, term: ParseTree | Token) -> Token:
        """A term, which the grammar takes for a fact without arguments."""
        first, *others = term.tokens() if isinstance(term, ParseTree) else [term]
        if others:
            raise self.span(first).error("a name belongs here", "facts are about things: name one, or a variable")
        return first

    def shown(self, predicate: str) -> str:
        kinds = ", ".join(p.type for p in self.domain.predicates[predicate])
        return f"{predicate}({kinds})" if kinds else predicate

    def term(self, token: Token, kind: str | None, scope: _Scope) -> str:
        """A variable, "?x", or an object."""
        name = _plain(token).lower()
        if token.type == "NAME" and (name in scope.types or (scope.free and name not in self.objects)):
            declared = scope.types.get(name)
            if kind is not None:
                scope.uses.setdefault(name, []).append((kind, self.span(token)))
                if declared is not None and declared not in scope.captured and not self.related(declared, kind):
                    raise self.span(token).error(
                        f"`{token}` is a {declared}, where a {kind} belongs",
                        "no thing is both: take another, or give the fact a wider type",
                    )
            return f"?{name}"
        if name in self.objects:
            if kind is not None and not self.domain.is_subtype(self.objects[name], kind):
                raise self.span(token).error(f"{_plain(token)} is a {self.objects[name]}, where a {kind} belongs")
            return name
        if scope.free:
            raise self.unknown(token, "object", self.objects)
        raise self.unknown(token, f"parameter, variable or object {scope.what} called", (*scope.types, *self.objects))

    def related(self, one: str, other: str) -> bool:
        return self.domain.is_subtype(one, other) or self.domain.is_subtype(other, one)

    def effects(
        self, tree: ParseTree, variables: tuple[Parameter, ...], condition: Condition, scope: _Scope
    ) -> Iterator[Effect]:
        for effect in tree.children:
            if effect.data == "each":
                quantifier, listed, inner = effect.children
                if str(quantifier) != "every":
                    raise self.span(quantifier).error("an effect is on `every` thing, or on a parameter")
                declared = self.variables(listed, scope)
                wider = scope.inner({v.name[1:]: v.type for v in declared})
                yield from self.effects(inner, (*variables, *declared), condition, wider)
                continue
            negative, atom, when = effect.children
            literal = self.atom(atom, scope, any_thing=False)
            assert isinstance(literal, Literal)
            if literal.predicate in self.domain.types and literal.predicate not in self.domain.predicates:
                raise self.span_of(atom).error("a thing's type never changes", "declare a fact for what changes")
            where = condition if when is None else join((condition, self.condition(when, scope)))
            if negative is not None:
                yield Effect(literal.negated, variables, where)
                continue
            yield from self.others(literal, variables, where)
            yield Effect(literal, variables, where)

    def others(self, literal: Literal, variables: tuple[Parameter, ...], condition: Condition) -> Iterator[Effect]:
        """What a new fact ends, where an argument has one value at a time."""
        for number in self.world.single.get(literal.predicate, ()):
            other = Parameter(f"?other{number + 1}", self.domain.predicates[literal.predicate][number].type)
            terms = (*literal.terms[:number], other.name, *literal.terms[number + 1 :])
            differs = Literal("=", (other.name, literal.terms[number]), False)
            ended = Literal(literal.predicate, terms)
            yield Effect(ended.negated, (*variables, other), join((condition, ended, differs)))

    # answers, what is unknown, goals

    def patterns(self, tree: ParseTree) -> list[Pattern]:
        found = []
        for token in tree.children:
            try:
                found.append(Pattern(_plain(token)))
            except PatternError as error:
                offset = (token.start_pos or 0) + 1 + min(error.args[1], max(len(token) - 2, 0))
                raise self.source.span(offset).error(error.args[0]) from None
        return found

    def tells(self, statement: ParseTree, rule: str | None, scope: _Scope) -> None:
        *told, condition, patterns = statement.children
        given = set(scope.types)
        found = self.patterns(patterns)
        facts = []
        for one in told:
            mark, atom = one.children
            literal = self.atom(atom, scope, any_thing=False)
            assert isinstance(literal, Literal)
            if literal.predicate not in self.domain.predicates:  # a type: it says what the thing is
                scope.uses[literal.terms[0][1:]].append((literal.predicate, self.span_of(atom)))
            facts.append(Told(literal if mark != "not" else literal.negated, mark == "all", self.span_of(atom)))
        where = ALWAYS if condition is None else self.conditions(condition, scope)
        span = self.span_of(statement)
        types = {f"?{name}": self.type_of(name, scope, span) for name in {*scope.types, *scope.uses}}
        bound = given | {v[1:] for v in _positive(where)}
        for pattern in found:
            for fact in facts:
                loose = [t[1:] for t in fact.literal.terms if t.startswith("?") and t[1:] not in bound]
                missing = next((name for name in loose if name not in {h.lower() for h in pattern.holes}), None)
                if missing is not None:
                    raise fact.span.error(
                        f'nothing says which `{missing}` the answer "{pattern.text}" is about',
                        f"put {{{missing}}} into the pattern, or say in `if` what is known of it",
                    )
        self.world.tells.append(Tells(tuple(facts), where, tuple(found), rule, types, span))

    def maybe(self, statement: ParseTree) -> None:
        *atoms, condition = statement.children
        for atom in atoms:
            scope = _Scope(free=True)
            literal = self.atom(atom, scope, any_thing=False)
            assert isinstance(literal, Literal)
            where = ALWAYS if condition is None else self.conditions(condition, scope)
            span = self.span_of(atom)
            types = {f"?{name}": self.type_of(name, scope, span) for name in scope.uses}
            self.world.maybe.append(Maybe(literal, where, types, span))

    def problem(self, init: Iterable[ParseTree], goals: Iterable[ParseTree]) -> None:
        facts: dict[tuple[str, ...], None] = {}
        conditions: list[Condition] = []
        for statement in init:
            for atom in statement.children:
                literal = self.atom(atom, _Scope(what="of the problem"), any_thing=False)
                assert isinstance(literal, Literal)
                if literal.predicate not in self.domain.predicates:
                    raise self.span_of(atom).error(f"{literal.predicate} is a type", "say it in an `object` line")
                facts.update({(literal.predicate, *literal.terms): None})
        for statement in goals:
            patterns, condition = statement.children
            if patterns is None:
                conditions.append(self.conditions(condition, _Scope(what="of the problem")))
            else:
                self.task_goal(patterns, condition)
        if not (self.objects or facts or conditions):
            return
        goal = join(tuple(conditions)) if conditions else None
        for name, kind in self.objects.items():
            facts.update({(wider, name): None for wider in self.domain.wider(kind) if wider in self.kinds})
        named = {self.domain.spell(name): kind for name, kind in self.objects.items()}
        self.world.problem = Problem(named, tuple(facts), (), goal, self.domain.name)
        used = {
            term for action in self.domain.actions for literal in _literals_of(action) for term in literal.terms
        } | {term for goal in self.world.goals for literal in literals_in(goal.condition) for term in literal.terms}
        self.domain.constants.update({name: kind for name, kind in self.objects.items() if name in used})

    def task_goal(self, patterns: ParseTree, condition: ParseTree) -> None:
        found = self.patterns(patterns)
        holes = [{hole.lower() for hole in pattern.holes} for pattern in found]
        captured = frozenset(set.union(*holes))
        if any(own != captured for own in holes):
            raise self.span_of(patterns).error(
                "the sentences of one goal have different holes", "write a `goal` line for each"
            )
        scope = _Scope(captured=captured, what="of the goal")
        wanted = self.conditions(condition, scope)
        wider: dict[str, str] = {}
        for quantified in (part for part in parts_in(wanted) if isinstance(part, Quantified)):
            for variable in quantified.variables:
                if variable.type in captured:
                    uses = [
                        self.domain.predicates[literal.predicate][i].type
                        for literal in literals_in(quantified.part)
                        if literal.predicate in self.domain.predicates
                        for i, term in enumerate(literal.terms)
                        if term == variable.name
                    ]
                    for kind in uses:
                        if self.domain.is_subtype(kind, wider.get(variable.type, ROOT)):
                            wider[variable.type] = kind
        for name in captured - wider.keys():
            raise self.span_of(patterns).error(
                f"the goal doesn't use {{{name}}}", f"say what is wanted of it: some x: {name} (...)"
            )
        self.world.goals.append(TaskGoal(tuple(found), wanted, wider, self.span_of(patterns)))


def _plain(token: Token) -> str:
    """A name without the quotes around it and the escapes in it."""
    return re.sub(r"\\([\"\\])", r"\1", token[1:-1]) if token.type == "STRING" else str(token)


def _literals_of(action: Action) -> Iterator[Literal]:
    yield from literals_in(action.precondition)
    for effect in action.effects:
        yield effect.literal
        yield from literals_in(effect.condition)


def _positive(condition: Condition) -> set[str]:
    """Variables that the facts of a condition bind."""
    match condition:
        case Literal(predicate, terms, True) if predicate != "=":
            return {term for term in terms if term.startswith("?")}
        case Junction("and", parts_):
            return set().union(*map(_positive, parts_))
        case _:
            return set()

"""Read the `//:` lines of a `.lark` file into a `World`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from pathlib import Path

from lark import Token

from constrained.grammar.lark_literals import Fault, text_and_flags
from constrained.grammar.lark_outline import SLOT, OutlineEntry
from constrained.grammar.lark_syntax import Quoted, Symbol, Value, walk
from constrained.grammar.nodes import STEP
from constrained.grammar.source import Source, SourceSpan, read_source
from constrained.knowledge.lines.reader import is_policy, unquoted
from constrained.knowledge.lines.syntax import ParseTree, parse_lines
from constrained.knowledge.lines.syntax_errors import MARK, OF_TOOLS
from constrained.knowledge.lines.tells import Told
from constrained.knowledge.world.conditions import Conditions, Variables
from constrained.knowledge.world.world import (
    Again,
    Maybe,
    Means,
    Piece,
    Shows,
    TaskGoal,
    Where,
    Wording,
    World,
)
from constrained.planning.model import (
    ALWAYS,
    ROOT,
    Action,
    Condition,
    Parameter,
    Problem,
    Quantified,
    bound_by,
    conjunction,
    free_variables,
    literals_in,
    parts_in,
)
from constrained.planning.wording import Command, squeezed

LONGEST_NAME = 1_000
"""Characters in the name of a type or an object: an action is matched byte by byte with all names that fit."""
_ABOVE_RULES = ("action", "needs", "makes")
_HOLE = re.compile(r"\{\s*([A-Za-z_][\w-]*)\s*(,?)\s*(\.\.\.)?\s*\}")


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
        A line doesn't parse, or uses an undeclared name; with file, line and column.
    """
    source = read_source(text_or_path)
    statements = parse_lines(source) if MARK in source.text else []
    return _WorldReader(source).read(statements) if statements and not is_policy(source, statements) else None


class _WorldReader(Conditions):
    def __init__(self, source: Source):
        super().__init__(source)
        self.slots = {d.name for d in self.outline.definitions if d.kind == SLOT}

    def read(self, statements: Sequence[ParseTree]) -> World:
        of: dict[str, list[ParseTree]] = {}
        for statement in statements:
            if statement.data in OF_TOOLS:
                raise self.error(
                    statement, f"a world has no `{statement.data}` lines", "only policies of tools have them"
                )
            of.setdefault(statement.data, []).append(statement)
        # Declarations first: types, then facts and objects, which name types.
        self.types(of.get("type", ()))
        for statement in of.get("fact", ()):
            self.facts(statement)
        for statement in of.get("object", ()):
            self.things(statement)
        # Then actions in the order of their rules, and what isn't about one action.
        above = self.above_rules(statements)
        self.check_names(above)
        for name, entry in self.rules.items():
            self.action(entry, above.get(name, []))
        for statement in statements:
            if statement.data == "tells" and not any(statement in of_rule for of_rule in above.values()):
                self.tells(statement, None, Variables(free=True))
        for statement in of.get("maybe", ()):
            self.maybe(statement)
        for statement in of.get("fails", ()):
            self.world.fails += self.patterns(statement.children[0])
        self.problem(of.get("init", ()), of.get("goal", ()))
        # The wording comes after the goals, whose holes it may use; types used as facts are known only at the end.
        holes = frozenset(name for goal in self.world.goals for name in goal.wider)
        self.world.wording = self.wording(statements, holes)
        for kind in self.kinds:
            self.domain.predicates[kind] = (Parameter("?x", ROOT),)
        self.world.kinds = frozenset(self.kinds)
        return self.world

    def declare(self, token: Token, what: str, known: Mapping[str, object]) -> str:
        """A new name in lower case; its spelling is noted."""
        name = unquoted(token).lower()
        if len(name) > LONGEST_NAME:
            raise self.span(token).error(
                f"{what} has a name of {len(name):,} characters (at most {LONGEST_NAME:,})", "give it a shorter name"
            )
        if name in known:
            raise self.span(token).error(f"{what} {unquoted(token)} is declared twice", "leave one of them out")
        self.domain.spelling.setdefault(name, unquoted(token))
        return name

    # declarations

    def types(self, statements: Iterable[ParseTree]) -> None:
        # Supertypes are resolved when all types are known: a file may name them in any order.
        parents: list[tuple[list[str], Token | None]] = []
        for statement in statements:
            for kinds in statement.children:
                *tokens, parent = kinds.children
                names = []
                for token in tokens:
                    name = self.declare(token, "the type", self.domain.types)
                    if name == ROOT:
                        raise self.span(token).error(f"{ROOT} is the root of all types", "choose another name")
                    self.domain.types[name] = ROOT
                    names.append(name)
                parents.append((names, parent))
        for names, parent in parents:
            if parent is None:
                continue
            for name in names:
                self.domain.types[name] = self.kind(parent)
                if self.domain.is_subtype(self.domain.types[name], name):
                    raise self.span(parent).error(
                        f"the type {name} would belong to itself", "name a wider type after the `:`, or none"
                    )

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
                parameters.append(Parameter(f"?{unquoted(kind).lower()}{number + 1}", self.kind(kind)))
            self.domain.predicates[name] = tuple(parameters)

    def things(self, statement: ParseTree) -> None:
        for things in statement.children:
            *names, kind = things.children
            for token in names:
                name = self.declare(token, "the object", self.objects)
                self.objects[name] = ROOT if kind is None else self.kind(kind)

    # rules

    def above_rules(self, statements: Sequence[ParseTree]) -> dict[str, list[ParseTree]]:
        """Rule -> the statements in the comment directly above it."""
        above: dict[str, list[ParseTree]] = {}
        for statement, rule in self.below(statements):
            plain_rule = rule is not None and self.command(self.rules[rule]) is not None
            if rule is not None and (statement.data in _ABOVE_RULES or (statement.data == "tells" and plain_rule)):
                above.setdefault(rule, []).append(statement)
            elif statement.data in _ABOVE_RULES:
                raise self.span_of(statement).error(
                    f"`{statement.data}` stands above no rule", "put it in the comment directly above the action's rule"
                )
        return above

    def check_names(self, above: Mapping[str, Sequence[ParseTree]]) -> None:
        """Check that rules with `needs` or `makes` have plain texts, so that actions can be written and parsed."""
        for name, statements in above.items():
            if any(s.data in _ABOVE_RULES for s in statements) and self.command(self.rules[name]) is None:
                raise self.rules[name].span.error(
                    f"the action {name} has conditions, but its text isn't plain",
                    "write strings, parameters and slots named after types in sequence, then _STEP",
                )

    def command(self, entry: OutlineEntry) -> Command | None:
        """The command that an action's rule writes; None if it isn't a sequence of strings and parameters."""
        if len(entry.options.items) != 1:
            return None
        # Only these pieces can be written and parsed without the grammar; the _STEP ends the command.
        pieces: list[str] = []
        for item in entry.options.items[0]:
            if isinstance(item, Quoted) and item.text.startswith('"') and not item.text.endswith("i"):
                try:
                    pieces.append(text_and_flags(item)[0])
                except Fault:
                    return None
            elif isinstance(item, Symbol) and item.text == STEP:
                return tuple(pieces) if pieces else None
            elif isinstance(item, Symbol) and item.args is None and item.text in entry.params:
                pieces.append(f"?{item.text}")
            elif isinstance(item, Symbol) and item.text in self.slots and self.slot_type(item.text):
                pieces.append(f"?{item.text.lower()}")
            else:
                return None
        return tuple(pieces) if pieces and not isinstance(entry.options.items[0][-1], Symbol) else None

    def slot_type(self, slot: str) -> str | None:
        """The type that a slot is named after."""
        return next((kind for kind in self.domain.types if squeezed(kind) == squeezed(slot)), None)

    @cached_property
    def calls(self) -> dict[str, list[tuple[OutlineEntry, list[Value]]]]:
        """Rule -> the arguments of each call of it, with the rule that calls."""
        found: dict[str, list[tuple[OutlineEntry, list[Value]]]] = {}
        for caller in self.rules.values():
            for item in walk(caller.options):
                if isinstance(item, Symbol) and item.args:
                    found.setdefault(item.text, []).append((caller, item.args))
        return found

    def given_types(self, rule: str, parameter: str, seen: frozenset[tuple[str, str]] = frozenset()) -> set[str]:
        """The types of the slots that calls pass to a parameter, directly or through other rules' parameters."""
        types: set[str] = set()
        if (rule, parameter) in seen:
            return types
        place = self.rules[rule].params.index(parameter)
        for caller, arguments in self.calls.get(rule, ()):
            argument = arguments[place]
            if not isinstance(argument, Symbol):
                continue
            if argument.text in caller.params:
                types |= self.given_types(caller.name, argument.text, seen | {(rule, parameter)})
            elif kind := self.slot_type(argument.text):
                types.add(kind)
        return types

    # actions

    def action(self, entry: OutlineEntry, statements: Sequence[ParseTree]) -> None:
        command = self.command(entry)
        if command is None:
            return
        named = [s.children[0] for s in statements if s.data == "action"]
        name = unquoted(named[-1]) if named else entry.name
        if name.lower() in self.world.commands:
            place = self.span(named[-1]) if named else entry.span
            raise place.error(f"there are two actions {name}", "give one of them another name: `//: action NAME`")
        written = [piece for piece in command if piece.startswith("?")]
        # A parameter's type comes from the slots that calls pass to it, or from the facts that use it.
        scope = Variables({}, what=f"in the action {entry.name}")
        for parameter in [*entry.params, *(p[1:] for p in written if p[1:] not in entry.params)]:
            if parameter in entry.params:
                given = self.given_types(entry.name, parameter)
                scope.types[parameter] = self.common(given) if given else None
            else:
                scope.types[parameter] = self.slot_type(parameter)
        needs = [self.condition(s.children[0], scope) for s in statements if s.data == "needs"]
        effects = [e for s in statements if s.data == "makes" for e in self.effects(s.children[0], (), scope)]
        # Parameters that are neither written nor used by facts only pass something on.
        used = [p for p in scope.types if f"?{p}" in written or scope.uses.get(p)]
        parameters = tuple(Parameter(f"?{p}", self.type_of(p, scope)) for p in used)
        self.domain.spelling[name.lower()] = name
        self.domain.actions.append(Action(name.lower(), parameters, conjunction(needs), tuple(effects)))
        self.world.commands[name.lower()] = command
        self.world.rules[name.lower()] = entry.name
        self.world.spans[name.lower()] = entry.span
        for statement in statements:
            if statement.data == "tells":
                types = {p.name[1:]: p.type for p in parameters}
                self.tells(statement, name.lower(), Variables(dict(types), free=True))

    def common(self, kinds: set[str]) -> str:
        """The narrowest common supertype of some types."""
        first, *others = sorted(kinds)
        return next(wide for wide in self.domain.wider(first) if all(self.domain.is_subtype(o, wide) for o in others))

    # answers, what is unknown, goals

    def tells(self, statement: ParseTree, rule: str | None, scope: Variables) -> None:
        given = set(scope.types)
        tells = self.tells_of(statement, scope)
        types = {f"?{name}": self.type_of(name, scope) for name in (*scope.types, *scope.uses)}
        # Every variable of a fact needs a value: from the action, the condition, or a hole of the pattern.
        bound = given | {v[1:] for v in bound_by(tells.condition)}
        for pattern in tells.patterns:
            for fact, tree in zip(tells.facts, statement.children):
                loose = [t[1:] for t in fact.literal.terms if t.startswith("?") and t[1:] not in bound]
                missing = next((name for name in loose if name not in {h.lower() for h in pattern.holes}), None)
                if missing is not None:
                    raise self.span_of(tree.children[1]).error(
                        f'nothing says which `{missing}` the answer "{pattern.text}" is about',
                        f"put {{{missing}}} into the pattern, or say in `if` what is known of it",
                    )
        self.world.tells.append(replace(tells, rules=None if rule is None else frozenset([rule]), types=types))

    def told_fact(self, tree: ParseTree, scope: Variables) -> Told:
        told = super().told_fact(tree, scope)
        if told.literal.predicate not in self.domain.predicates:  # a type: the answer tells the object's type
            use = told.literal.predicate, self.span_of(tree.children[1])
            scope.uses[told.literal.terms[0][1:]].append(use)
        return told

    def maybe(self, statement: ParseTree) -> None:
        *atoms, condition = statement.children
        for atom in atoms:
            scope = Variables(free=True)
            literal = self.fact_of(atom, scope)
            where = ALWAYS if condition is None else self.condition(condition, scope)
            types = {f"?{name}": self.type_of(name, scope) for name in scope.uses}
            self.world.maybe.append(Maybe(literal, where, types, self.span_of(atom)))

    def problem(self, init: Iterable[ParseTree], goals: Iterable[ParseTree]) -> None:
        facts: dict[tuple[str, ...], None] = {}
        conditions: list[Condition] = []
        places: list[SourceSpan] = []
        for statement in init:
            for atom in (fact for listed in statement.children for fact in self.each(listed)):
                literal = self.fact_of(atom, Variables())
                if literal.predicate not in self.domain.predicates:
                    raise self.span_of(atom).error(f"{literal.predicate} is a type", "say it in an `object` line")
                facts.update({(literal.predicate, *literal.terms): None})
        for statement in goals:
            patterns, condition = statement.children
            if patterns is None:
                conditions.append(self.condition(condition, Variables()))
                places.append(self.span_of(condition))
            else:
                self.task_goal(patterns, condition)
        if not (self.objects or facts or conditions):
            return
        goal = conjunction(conditions) if conditions else None
        alone = not (facts or conditions)  # then the objects belong to all problems, as in an imported domain
        for name, kind in self.objects.items():
            facts.update({(wider, name): None for wider in self.domain.wider(kind) if wider in self.kinds})
        named = {self.domain.spell(name): kind for name, kind in self.objects.items()}
        if places:
            self.world.spans["the goal"] = places[0]
        place = places[0].for_error() if places else {}
        self.world.problem = Problem(named, tuple(facts), goal, self.domain.name, place)
        # Objects that actions or goals name are constants of the domain; the others belong to this problem alone.
        actions = self.domain.actions
        wanted = [*(c for action in actions for c in action.conditions), *(goal.condition for goal in self.world.goals)]
        literals = [effect.literal for action in actions for effect in action.effects]
        literals += [literal for condition in wanted for literal in literals_in(condition)]
        used = {term for literal in literals for term in literal.terms}
        self.domain.constants.update({name: kind for name, kind in self.objects.items() if alone or name in used})

    def each(self, atom: ParseTree) -> Iterator[ParseTree]:
        """The facts of an `init` line: a list stands for each of its objects, a type for each object of the type."""
        if atom.data != "atom":
            raise self.without_values(atom, "assigns values")
        name, *terms = atom.children
        choices = []
        for term in terms:
            listed = term.children if isinstance(term, ParseTree) and term.data == "list" else [term]
            choices.append([name for part in listed for name in (part and self.things_of(self.word(part))) or [part]])
        yield from (ParseTree(atom.data, [name, *chosen]) for chosen in product(*choices))

    def things_of(self, token: Token) -> list[Token]:
        """The objects of a type, if a name is that of a type and of no object; else the name itself."""
        kind = unquoted(token).lower()
        if kind in self.objects or kind not in self.domain.types:
            return [token]
        members = (name for name, own_kind in self.objects.items() if self.domain.is_subtype(own_kind, kind))
        return [token.update(value=self.domain.spell(name)) for name in members]

    def task_goal(self, patterns: ParseTree, condition: ParseTree) -> None:
        sentences = self.patterns(patterns)
        holes = [{hole.lower() for hole in pattern.holes} for pattern in sentences]
        captured = frozenset(set.union(*holes))
        if any(names != captured for names in holes):
            raise self.span_of(patterns).error(
                "the sentences of one goal have different holes", "write a `goal` line for each"
            )
        # As an argument, a hole is what it stands for: the object that a sentence names, or any object of its type.
        scope = Variables({name: name for name in captured}, captured=captured, what="of the goal", sentence=True)
        wanted = self.condition(condition, scope)
        if loose := sorted(v[1:] for v in free_variables(wanted)):
            wanted = Quantified("some", tuple(Parameter(f"?{name}", name) for name in loose), wanted)
        # A hole that stands for a type has as supertype the narrowest that the facts about its variables require.
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
        for name in (hole for hole in sentences[0].holes if hole.lower() not in wider):
            raise self.span_of(patterns).error(
                f"the goal doesn't use {{{name}}}", f"name it in a fact: ready({name}); or some x: {name} (ready(x))"
            )
        self.world.goals.append(TaskGoal(tuple(sentences), wanted, wider, self.span_of(patterns)))

    # how what is known is described: `means`, `shows`, `again` and `explores` lines

    def wording(self, statements: Sequence[ParseTree], captured: frozenset[str]) -> Wording:
        """Read these lines, in which holes of task sentences (`captured`) may be used like types."""
        wording = Wording()
        self.captured = captured
        # Names of derived facts first, as other lines may use them before they are defined.
        for statement in statements:
            if statement.data == "means":
                head = statement.children[1].children
                arguments = [term for term in head[1:] if term is not None]
                name, kinds = unquoted(head[0]).lower(), [ROOT] * len(arguments)
                if name in {*self.domain.predicates, *self.domain.types, *captured}:
                    raise self.span(head[0]).error(f"{name} is declared already", "choose another name")
                if self.derived.setdefault(name, kinds) != kinds:
                    raise self.span(head[0]).error(
                        f"`{name}` has {len(self.derived[name])} arguments elsewhere",
                        "give it as many here, or another name",
                    )
        for statement in statements:
            scope = self.known_scope()
            match statement.data, statement.children:
                case "means", [once, atom, *conditions]:
                    literal = self.fact_of(atom, scope)
                    where = tuple(self.where(condition, *literal.terms, at=atom) for condition in conditions)
                    wording.means.setdefault(literal.predicate, []).append(Means(literal, once is not None, where))
                case "shows", [label, most, condition, *pieces, otherwise]:
                    entries = self.where(condition)
                    if most is not None and not most.isdecimal():
                        raise self.span(most).error(f"{most} is not a number of entries", "write a whole number")
                    number = None if most is None else int(most)
                    written = tuple(self.piece(piece, bound_by(entries.condition)) for piece in pieces)
                    last = None if otherwise is None else unquoted(otherwise)
                    wording.shows.append(Shows(unquoted(label), number, entries, written, last))
                case "again", [*atoms, condition]:
                    for atom in atoms:
                        literal = self.fact_of(atom, scope)
                        if literal.predicate not in self.domain.predicates.keys() - self.kinds:
                            raise self.span_of(atom).error(
                                f"{literal.predicate} is not a declared fact",
                                "name one that a `fact` line declares: what `means` derives isn't remembered",
                            )
                        wording.again.append(Again(literal, self.where(condition or atom, *literal.terms, at=atom)))
                case "explores", pieces:
                    wording.explores += (self.piece(piece, set()) for piece in pieces)
        return wording

    def known_scope(self) -> Variables:
        """The variables of a condition on what is known."""
        return Variables(free=True, captured=self.captured, worded=True)

    def where(self, tree: ParseTree | None, *bound: str, at: ParseTree | None = None) -> Where:
        """A condition, which must bind the variables `bound`; `at` is where these are written."""
        if tree is None:
            return Where(ALWAYS)
        condition = self.condition(tree, self.known_scope())
        self.check_bound(bound, bound_by(condition), at or tree)
        return Where(condition, frozenset(literal.predicate for literal in literals_in(condition)) & self.captured)

    def check_bound(self, names: Iterable[str], bound: set[str], at: ParseTree) -> None:
        for name in names:
            if name.startswith("?") and name not in bound:
                raise self.span_of(at).error(f"nothing says which `{name[1:]}` is meant", "name it in the condition")

    def piece(self, tree: ParseTree, bound: set[str]) -> Piece:
        """A piece of text; `bound` are the variables that its line binds."""
        text, condition = tree.children
        parts: list[str | tuple[str, str]] = []
        at, written = 0, unquoted(text)
        for hole in _HOLE.finditer(written):
            parts += [written[at : hole.start()], (hole[1].lower(), "," if hole[2] else hole[3] or "")]
            at = hole.end()
        where = self.where(condition)
        loose = {part[0] for part in parts[1::2]} - {name[1:] for name in bound | bound_by(where.condition)}
        self.check_bound((f"?{name}" for name in loose - self.captured), set(), tree)
        return Piece((*parts, written[at:]), Where(where.condition, where.holes | loose))

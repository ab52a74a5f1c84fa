"""Read the conditions and effects in `//:` lines: resolve names to predicates, objects and typed variables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from lark import Token

from constrained.errors import GrammarError, nearest
from constrained.grammar.source import Source, SourceSpan
from constrained.knowledge.lines.forms import is_condition
from constrained.knowledge.lines.reader import LineReader, unquoted
from constrained.knowledge.lines.syntax import ParseTree
from constrained.knowledge.lines.tells import Tells
from constrained.knowledge.world.world import ASKS, World
from constrained.planning.model import (
    ALWAYS,
    ROOT,
    Condition,
    Domain,
    Effect,
    Literal,
    Parameter,
    Quantified,
    conjunction,
    literals_in,
)


@dataclass
class Variables:
    """The variables that a statement may use.

    Attributes
    ----------
    types : dict of str to (str or None)
        Variable -> its type; None if it must be inferred from the facts that use the variable.
    uses : dict of str to list of (str, SourceSpan)
        Variable -> the types that facts require of it, with the place.
    free : bool
        Undeclared names are variables, too.
    captured : frozenset of str
        The holes of a task's sentence, which stand for types.
    what : str
        What the scope belongs to, for messages; "": the problem, which has objects alone.
    sentence : bool
        The statement is the goal of a task's sentence.
    worded : bool
        The statement describes what is known: it may use derived facts, and `asks` for facts of the goal.
    """

    types: dict[str, str | None] = field(default_factory=dict)
    uses: dict[str, list[tuple[str, SourceSpan]]] = field(default_factory=dict)
    free: bool = False
    captured: frozenset[str] = frozenset()
    what: str = ""
    sentence: bool = False
    worded: bool = False

    def inner(self, declared: Mapping[str, str]) -> Variables:
        """These variables and more, as within a quantifier; uses of the outer ones are noted out here, too."""
        shared = [name for name in (*self.types, *self.uses) if name not in declared]
        uses = {name: self.uses.setdefault(name, []) for name in shared}
        return replace(self, types={**self.types, **declared}, uses=uses)


class Conditions(LineReader):
    """Reads conditions and effects, with the types, facts and objects declared so far.

    Parameters
    ----------
    source : Source

    Attributes
    ----------
    domain : Domain
    world : World
    objects : dict of str to str
        Object -> type.
    kinds : set of str
        The types that conditions use as predicates.
    derived : dict of str to list of str
        Derived fact -> the types of its arguments.
    captured : frozenset of str
        The holes of all task sentences.
    """

    def __init__(self, source: Source):
        super().__init__(source)
        self.domain = Domain(source.path.stem if source.path else "world")
        self.world = World(source, self.domain)
        self.objects: dict[str, str] = {}
        self.kinds: set[str] = set()
        self.derived: dict[str, list[str]] = {}
        self.captured: frozenset[str] = frozenset()

    # places and errors

    def unknown(self, token: Token, what: str, known: Iterable[str]) -> GrammarError:
        hint = nearest(unquoted(token).lower(), sorted(set(known)))
        return self.span(token).error(f"no {what} `{unquoted(token)}`", hint)

    def kind(self, token: Token, scope: Variables | None = None) -> str:
        name = unquoted(token).lower()
        if scope is not None and name in scope.captured:
            return name
        if name != ROOT and name not in self.domain.types:
            raise self.unknown(token, "type", (*self.domain.types, *(scope.captured if scope else ())))
        return name

    def type_of(self, variable: str, scope: Variables) -> str:
        """A variable's type: as declared, or the narrowest that the facts require."""
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
                    "no object is both: name another parameter, or give the facts a wider type",
                )
        return narrow

    def without_values(self, where: ParseTree, what: str) -> GrammarError:
        """The error that a line is about values, where a world has facts."""
        return self.error(
            where, f"a world has facts: only a policy of tools {what}", "name a fact that a `fact` line declares"
        )

    def stored_by(self, stored: ParseTree, tools: ParseTree) -> Tells:
        raise self.without_values(stored, "tells what the results of named tools hold")

    # conditions and effects

    def condition(self, tree: ParseTree | Token, scope: Variables) -> Condition:
        """A condition of planning tasks, from the parse tree of a line's condition."""
        form = self.form(tree, scope)
        assert is_condition(form)
        return form

    def leaf(self, token: Token) -> Condition:
        raise self.span(token).error("a fact belongs here", "name one that a `fact` line declares")

    def of_facts(self, tree: ParseTree, scope: Variables) -> Condition:
        if tree.data == "asks":
            [atom] = tree.children
            if not scope.worded:
                raise self.span_of(atom).error(
                    "only `means` and `shows` lines may have `asks`", "name a fact here, without `asks`"
                )
            [literal] = literals_in(self.atom(atom, scope))
            return Literal(ASKS + literal.predicate, literal.terms)
        quantifier, variables, part = tree.children
        declared = self.variables(variables, scope)
        inner = scope.inner({v.name[1:]: v.type for v in declared})
        return Quantified(str(quantifier), declared, self.condition(part, inner))

    def of_values(self, tree: ParseTree, scope: Variables) -> Condition:
        """Whether two names are the same object: all that a world compares."""
        if tree.data != "equality":
            raise self.without_values(tree, "looks at values")
        left, sign, right = tree.children
        if sign not in ("=", "==", "!="):
            what = f"`{sign}` compares values, which only results of tools have"
            raise self.span(sign).error(what, "a world compares objects: x = y, x != y")
        return Literal("=", tuple(self.term(self.word(side), None, scope) for side in (left, right)), sign != "!=")

    def variables(self, tree: ParseTree, scope: Variables) -> tuple[Parameter, ...]:
        pairs = (variable.children for variable in tree.children)
        return tuple(Parameter(f"?{name.lower()}", self.kind(kind, scope)) for name, kind in pairs)

    def fact_of(self, tree: ParseTree, scope: Variables) -> Literal:
        """A fact without `*`."""
        for token in tree.tokens():
            if token == "*":
                raise self.span(token).error("only conditions may have `*`", "name the object, or a variable")
        literal = self.atom(tree, scope)
        assert isinstance(literal, Literal)
        return literal

    def atom(self, tree: ParseTree, scope: Variables) -> Condition:
        """A fact as a condition; `*` in it stands for some object."""
        token, *written = tree.children
        terms = [self.word(term) for term in written if term is not None]
        name = token.lower()
        # A name is a declared fact, a fact derived by `means`, or a type used as a fact with one argument.
        if name in self.domain.predicates and name not in self.kinds:
            kinds = [p.type for p in self.domain.predicates[name]]
        elif scope.worded and name in self.derived:
            kinds = self.derived[name]
        elif name in self.domain.types or name in scope.captured:
            kinds = [ROOT]
            if not scope.worded:
                self.kinds |= {name} & self.domain.types.keys()
        else:
            raise self.unknown(token, "fact", (*self.domain.predicates, *self.domain.types))
        if len(terms) != len(kinds):
            raise self.span(token).error(
                f"`{token}` has {len(kinds)} argument{'s' * (len(kinds) != 1)}, not {len(terms)}",
                f"it is declared as {self.shown(name)}"
                if name in self.domain.predicates
                else "a type has one argument",
            )
        # Each `*` becomes a variable of its own, under `some`.
        values, anything = [], []
        for number, (term, kind) in enumerate(zip(terms, kinds)):
            if term == "*":
                anything.append(Parameter(f"?any{number + 1}", kind))
                values.append(anything[-1].name)
            else:
                values.append(self.term(term, kind, scope))
        literal = Literal(name, tuple(values))
        return Quantified("some", tuple(anything), literal) if anything else literal

    def word(self, term: ParseTree | Token) -> Token:
        """The name of a term, which the parser reads as a fact without arguments."""
        tokens = [term] if isinstance(term, Token) else [*term.tokens()]
        if len(tokens) != 1:
            raise self.error(term, "a name belongs here", "give an object or a variable as argument")
        return tokens[0]

    def shown(self, predicate: str) -> str:
        kinds = ", ".join(p.type for p in self.domain.predicates[predicate])
        return f"{predicate}({kinds})" if kinds else predicate

    def term(self, token: Token, kind: str | None, scope: Variables) -> str:
        """A variable ("?x") or an object, checked against the type `kind`."""
        name = unquoted(token).lower()
        if token.type == "NAME" and (name in scope.types or (scope.free and name not in self.objects)):
            # A variable. Its use is noted, so that a type can be inferred; a declared type is checked now.
            declared = scope.types.get(name)
            if kind is not None:
                scope.uses.setdefault(name, []).append((kind, self.span(token)))
                if declared is not None and declared not in scope.captured and not self.related(declared, kind):
                    raise self.span(token).error(
                        f"`{token}` is a {declared}, where a {kind} belongs",
                        "no object is both: name another, or give the fact a wider type",
                    )
            return f"?{name}"
        if name in self.objects:
            own = self.objects[name]
            if kind is not None and not self.domain.is_subtype(own, kind):
                typed = f"give it its type: `//: object {token}: {kind}`" if own == ROOT else "name another object"
                is_a = "has no type" if own == ROOT else f"is a {own}"
                raise self.span(token).error(f"{unquoted(token)} {is_a}, where a {kind} belongs", typed)
            return name
        raise self.undeclared(token, kind or "TYPE", scope)

    def undeclared(self, token: Token, kind: str, scope: Variables) -> GrammarError:
        """The error that a name is no object, parameter or variable here: it says how such a name is declared."""
        name, objects_only = unquoted(token), scope.free or not scope.what
        new_object = f"declare it: `//: object {token}: {kind}`"
        if name.lower() in ("_", "any", "anything", "something", "anyone", "someone"):
            otherwise = "`*` stands for any object in a condition"
        elif objects_only:
            otherwise = new_object
        elif scope.sentence:
            otherwise = f"write {{{name}}} in the sentence, or `some {name.lower()}: {kind} (...)`, or {new_object}"
        else:
            variable = f"or is a variable: `some {name.lower()}: {kind} (...)`"
            otherwise = (
                f"its parameters are {', '.join(scope.types) or 'none'}; another is given to the rule, {variable}"
            )
        like = nearest(name.lower(), sorted({*({} if objects_only else scope.types), *self.objects}), otherwise)
        if like != otherwise and len(name) < 3:  # the likeness of such names says little
            like = f"{like} Else {otherwise}"
        what = "object" if objects_only else f"parameter, variable or object {scope.what} called"
        return self.span(token).error(f"no {what} `{name}`", like)

    def related(self, kind: str, wider: str) -> bool:
        return self.domain.is_subtype(kind, wider) or self.domain.is_subtype(wider, kind)

    def effects(self, tree: ParseTree, variables: tuple[Parameter, ...], scope: Variables) -> Iterator[Effect]:
        for effect in tree.children:
            if effect.data == "each":
                # The effect on every object of a type: the inner effects, with the variables of all quantifiers around
                # them.
                quantifier, listed, inner = effect.children
                if str(quantifier) != "every":
                    raise self.span(quantifier).error(
                        "an effect applies to `every` object, or to a parameter",
                        "write `every`, or name a parameter of the action in place of the variable",
                    )
                for variable in listed.children:
                    name = variable.children[0]
                    if name.lower() in scope.types:
                        raise self.span(name).error(f"there is another {name} here", "choose another name")
                declared = self.variables(listed, scope)
                wider = scope.inner({v.name[1:]: v.type for v in declared})
                yield from self.effects(inner, (*variables, *declared), wider)
                continue
            if effect.data != "change":
                raise self.without_values(effect, "assigns values")
            # One fact that becomes true or false, perhaps on a condition.
            negative, atom, when = effect.children
            literal = self.fact_of(atom, scope)
            if literal.predicate in self.domain.types and literal.predicate not in self.domain.predicates:
                raise self.span_of(atom).error("an object's type never changes", "declare a fact for what changes")
            where = ALWAYS if when is None else self.condition(when, scope)
            if negative is not None:
                yield Effect(literal.negated, variables, where)
                continue
            yield from self.replaced(literal, variables, where)
            yield Effect(literal, variables, where)

    def replaced(self, literal: Literal, variables: tuple[Parameter, ...], condition: Condition) -> Iterator[Effect]:
        """The deletion of facts that a new fact replaces, because an argument has one value at a time."""
        for number in self.world.single.get(literal.predicate, ()):
            other = Parameter(f"?other{number + 1}", self.domain.predicates[literal.predicate][number].type)
            terms = (*literal.terms[:number], other.name, *literal.terms[number + 1 :])
            differs = Literal("=", (other.name, literal.terms[number]), False)
            ended = Literal(literal.predicate, terms)
            yield Effect(ended.negated, (*variables, other), conjunction((condition, ended, differs)))

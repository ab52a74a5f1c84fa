"""Read a policy: the `//:` lines of a `.lark` file whose actions are tools.

The file's rules say which tool may follow which; the lines say what results tell and what each call needs. The syntax
is that of a world (`constrained.knowledge.world`), with values beside facts:

//: fact asked(order)                             what can be true; `needs`, `makes` and `init` use it as in a world
//: tells order[@.order_id] = $ by get_order      stores a result, or each value at a JSON path, under a name
//: tells flight[@.number, @.date] = $[*] with date by search    adds the call's `date` to each as a member
//: tells ORDER = $.orders[*] by get_user         a name in capitals collects all values that it was ever given
//: init changed = []                             what holds at the beginning
//: let total(o) = sum(i.price for i in order[o].items)
//: fails by "Error"                              results that begin like this tell and change nothing
//: message respond                               the tool that speaks to the user; the user's answers are its results
//: user toggle_airplane_mode, reboot_device      tools of the user: a call asks for it, they say what it shows
//: tells airplane by "Airplane Mode: ON"         above no rule: whatever the user says, or a tool of theirs shows
//: write book: user_id, cabin, flights           the order in which arguments are written
//: needs order[order_id].status == "pending"     // (above a rule) a condition; this comment is the reason it gives
//: makes order[order_id].status = "cancelled"    (above a rule) what a call changes
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import regex
from lark import Token

from constrained.errors import nearest
from constrained.grammar.source import Source, read_source
from constrained.knowledge.lines.expression import (
    ARGUMENTS,
    FUNCTIONS,
    Evaluation,
    Expression,
    Function,
    Unknown,
    read_regex,
)
from constrained.knowledge.lines.forms import TRUE, Call, Constant, Form, Name, argument
from constrained.knowledge.lines.reader import LineReader, unquoted
from constrained.knowledge.lines.syntax import ParseTree, parse_lines
from constrained.knowledge.lines.tells import Stored, Tells, Told
from constrained.knowledge.tool_policy.policy import Makes, Policy
from constrained.planning.model import ALWAYS, Literal


def read_policy(text_or_path: str | Path | Source) -> Policy:
    """Read a policy: a `.lark` file, its text, or a shipped name such as "tau_retail".

    Raises
    ------
    GrammarError
        There is no such file, or a line can't be read.
    """
    source = read_source(text_or_path)
    reader = _PolicyReader(source)
    return reader.read(list(reader.below(parse_lines(source))))


class _PolicyReader(LineReader):
    def __init__(self, source: Source):
        super().__init__(source)
        self.policy = Policy(source)
        self.params: dict[str, int] = {}  # of the functions
        self.speakers = False  # there is a user, whose words and tools tell something

    def read(self, statements: Sequence[tuple[ParseTree, str | None]]) -> Policy:
        # Facts and functions first, as all other lines may use them, wherever they stand.
        for statement, _ in statements:
            if statement.data == "fact":
                for predicate in statement.children:
                    self.named(predicate.children[0])
                    self.policy.facts[str(predicate.children[0])] = len([c for c in predicate.children[1:] if c])
            elif statement.data == "let":
                name, *params, _ = (child for child in statement.children if child is not None)
                if str(name) in FUNCTIONS:
                    raise self.error(name, f"`{name}` is a built-in function", "take another name")
                self.params[str(name)] = len(params)
            elif statement.data in ("user", "message"):
                self.speakers = True
                if statement.data == "user":
                    self.policy.users |= {self.named(tool) for tool in statement.children}
        self.policy.initial = self.policy.initial.with_values(**{name: [] for name in self.policy.facts})
        for statement, rule in statements:
            read = getattr(self, statement.data, None)
            if read is None:
                raise self.error(statement, f"a policy has no `{statement.data}` lines", "only worlds have them")
            read(statement, rule)
        return self.policy

    def above(self, statement: ParseTree, rule: str | None) -> str:
        """The rule that a statement stands above. Raises GrammarError: there is none."""
        if rule is None:
            hint = "put it in the comment directly above the tool's rule"
            raise self.error(statement, f"`{statement.data}` stands above no rule", hint)
        self.named(next(statement.tokens(), statement.meta), rule)
        return rule

    def named(self, token: Any, name: str | None = None) -> str:
        """Note where a fact or a tool is first named; returns its name."""
        self.policy.places.setdefault(name or str(token), (token.line or 0, token.column or 0))
        return str(token)

    # statements

    def fact(self, statement: ParseTree, rule: str | None) -> None:
        """Facts are read before all other statements."""

    def needs(self, statement: ParseTree, rule: str | None) -> None:
        conditions = [self.expression(condition) for condition in statement.children[0].children]
        end = statement.meta.end_pos
        line = self.source.text[end : self.source.text.find("\n", end)]
        for condition in conditions:
            condition.words = line.partition("//")[2].strip()
        self.policy.needs.setdefault(self.above(statement, rule), []).extend(conditions)

    def makes(self, statement: ParseTree, rule: str | None) -> None:
        changes = self.policy.makes.setdefault(self.above(statement, rule), [])
        changes += self.changes(statement.children[0])

    def init(self, statement: ParseTree, rule: str | None) -> None:
        for part in statement.children:
            change = self.change(part if part.data == "assignment" else ParseTree("change", [None, part, None]))
            evaluation = Evaluation(self.policy.functions, {})
            try:
                place = tuple(self.policy.place_of(change.target, {}, evaluation))
                value = change.made(self.policy.initial, evaluation)
            except Unknown as error:
                raise self.error(
                    statement, f"nothing is known yet of {error}", "give a value: init said = []"
                ) from None
            self.policy.initial = self.policy.initial.with_place(place, value)

    def tells(self, statement: ParseTree, rule: str | None) -> None:
        tells = self.tells_of(statement)
        if holes := [hole for pattern in tells.patterns for hole in pattern.holes]:
            raise self.error(statement, f"a result's text has no hole {{{holes[0]}}}", "tell values by JSON path")
        # A text tells facts in the results of the rule's tool; above no rule, in all that comes from the user.
        if tells.stored is None and (rule is not None or not self.speakers):
            tells = replace(tells, rules=frozenset([self.above(statement, rule)]))
        self.policy.tells.append(tells)

    def told_fact(self, tree: ParseTree, scope: Any) -> Told:
        told = super().told_fact(tree, scope)
        if told.all:
            raise self.error(tree, "only worlds have `all`", "leave it out")
        return told

    def stored_by(self, stored: ParseTree, tools: ParseTree) -> Tells:
        place, path, member = stored.children
        name, *keys = (child for child in place.children if child is not None)
        rules = frozenset(map(self.named, tools.children))
        if str(path) != "$" and (asked := rules & self.policy.users):
            raise self.error(path, f"what {min(asked)} shows is a text, as it is the user's", "its path is `$`")
        what = Stored(str(name), tuple(map(str, keys)), str(path), str(member or ""))
        return Tells(ALWAYS, self.span_of(tools), stored=what, rules=rules)

    def let(self, statement: ParseTree, rule: str | None) -> None:
        name, *params, body = (child for child in statement.children if child is not None)
        self.policy.functions[str(name)] = Function(tuple(map(str, params)), self.expression(body))

    def fails(self, statement: ParseTree, rule: str | None) -> None:
        self.policy.fails += self.patterns(statement.children[0])

    def message(self, statement: ParseTree, rule: str | None) -> None:
        self.policy.message = self.named(statement.children[0])
        if self.policy.message in self.policy.users:
            what = f"{self.policy.message} speaks to the user, so it is none of their tools"
            raise self.error(statement, what, "leave it out of the `user` line")

    def user(self, statement: ParseTree, rule: str | None) -> None:
        """The user's tools are read before all other statements."""

    def write(self, statement: ParseTree, rule: str | None) -> None:
        tool, *names = statement.children
        self.policy.order[self.named(tool)] = [*map(str, names)]

    # what is changed

    def changes(self, effects: ParseTree) -> Iterator[Makes]:
        for effect in effects.children:
            if effect.data == "each":
                raise self.error(effect, "`every` is of a list here", "every x in LIST: (...)")
            if effect.data == "each_of":
                _, variable, values, inner = effect.children
                for change in self.changes(inner):
                    yield replace(change, variable=str(variable), each=self.expression(values))
            else:
                yield self.change(effect)

    def change(self, effect: ParseTree) -> Makes:
        """One change: a place gets a value, or a fact becomes true (with `not`: false)."""
        if effect.data == "assignment":
            target, value = effect.children
            if target.data not in ("atom", "member", "item"):
                raise self.error(target, "no place that can be changed", 'makes order[id].status = "cancelled"')
            return Makes(self.form(target), self.expression(value))
        negative, atom, condition = effect.children
        literal = self.fact_of(atom)
        only_if = None if condition is None else self.expression(condition)
        return Makes(Name(literal.predicate), Expression(argument(literal)), negative is None, only_if)

    # conditions and values

    def leaf(self, token: Token) -> Form:
        if token.type == "ANY":
            raise self.error(token, "only worlds have `*`", "name the argument")
        if token.type != "NUMBER":
            return Constant(unquoted(token))
        return Constant(float(token) if "." in token else int(token))

    def of_facts(self, tree: ParseTree, scope: Any) -> Form:
        raise self.error(tree, "only worlds have quantifiers", "any(... for x in ...), all(... for x in ...)")

    def fact_of(self, atom: ParseTree, scope: Any = None) -> Literal[Form]:
        name, *given = [part for part in atom.children if part is not None]
        if name not in self.policy.facts:
            raise self.error(atom, f"no fact `{name}`", nearest(name, self.policy.facts))
        terms = tuple(map(self.form, given))
        count = self.policy.facts[str(name)]
        if count != len(terms):
            what = f"`{name}` has {count} argument{'s' * (count != 1)}, not {len(terms)}"
            raise self.error(atom, what, "write as many as its `fact` line declares")
        return Literal(str(name), terms or (TRUE,))

    def atom(self, tree: ParseTree, scope: Any) -> Form:
        """A name, a fact, or a call of a function."""
        name, parts = str(tree.children[0]), [part for part in tree.children[1:] if part is not None]
        if name in self.policy.facts:
            return self.fact_of(tree)
        if not parts and tree.data == "atom":
            return Constant(_CONSTANTS[name]) if name in _CONSTANTS else Name(name)
        if name not in self.params and name not in FUNCTIONS:
            known = (*self.policy.facts, *self.params, *FUNCTIONS)
            raise self.error(tree, f"no fact or function `{name}`", nearest(name, known))
        # A function: its arguments are counted, and constant regular expressions compiled, before anything runs.
        least, most = (self.params[name],) * 2 if name in self.params else ARGUMENTS.get(name, (1, 1))
        if not least <= len(parts) <= most:
            takes = f"{least}{f' to {most}' if most != least else ''} argument{'s' * (most != 1)}"
            raise self.error(tree, f"`{name}` takes {takes}, not {len(parts)}", "see its `let`, or docs/tool_agents.md")
        given = tuple(self.form(part) for part in parts)
        if name in ("search", "find_all") and isinstance(given[0], Constant):
            pattern = given[0].value
            try:
                read_regex(str(pattern))
            except regex.error as error:
                what = f"{pattern!r} is not a regular expression: {error}"
                raise self.error(
                    tree, what, r"a backslash before a sign makes it plain text: \( for a bracket"
                ) from None
        return Call(name, given)


_CONSTANTS = {"true": True, "false": False, "null": None}

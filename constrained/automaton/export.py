"""A grammar in other engines' notations: GBNF (llama.cpp, XGrammar), a regular expression, llguidance's Lark.

First the grammar is expanded: every template call with its values becomes a rule, slots become their values, and a
text ends at an unbound `_STEP`. Each notation is then a way to print the result. A grammar that a notation can't
express exactly is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial

from constrained.automaton.positions import Env, Thunk, Unbound
from constrained.automaton.templates import Templates, ends_action
from constrained.errors import GrammarError, LimitError
from constrained.grammar import nodes as n
from constrained.grammar.analysis import Nullable, components, productive_rules, trim
from constrained.grammar.charset import MAX_CODE_POINT, CharSet
from constrained.grammar.grammar import ContextFreeGrammar
from constrained.grammar.json_text import JsonText
from constrained.grammar.left_recursion import self_embedding_rules
from constrained.grammar.members import MemberSequence
from constrained.grammar.nonempty import nonempty_name, nonempty_rules, without_empty
from constrained.grammar.traverse import fold, reachable, rebuild, size
from constrained.limits import Limits

START = "start"
Rules = dict[str, n.Rule]


def to_gbnf(grammar: ContextFreeGrammar, templates: Templates) -> str:
    """GBNF from the rule `root`, of single characters and texts: no engine's lexer decides anything."""
    rules = _without_empty_rounds(write_out(grammar, templates))
    names = {name: "root" if name == START else f"r{i}" for i, name in enumerate(rules)}
    printer = _NodePrinter(_gbnf_text, partial(_class, escape=_gbnf_code), names.__getitem__)
    return "".join(f"{names[rule.name]} ::= {printer.alternatives(rule.body)}\n" for rule in rules.values())


def to_llguidance(grammar: ContextFreeGrammar, templates: Templates) -> str:
    """llguidance's variant of Lark, from the rule `start`.

    A regular language is one terminal, unless its expression becomes too long. Any other is written in terminals of
    one character each, since llguidance's lexer takes the longest terminal that fits, where this project's grammars
    read a text in every way.
    """
    rules = write_out(grammar, templates)
    if not self_embedding_rules(rules):
        with suppress(LimitError):
            return f"start: /{_slashes(_regex(rules, grammar.limits))}/\n"
    names = {name: START if name == START else f"r{i}" for i, name in enumerate(rules)}

    def text(data: str) -> str:
        return " ".join(f"/{_slashes(_regex_text(c))}/" for c in data) or '""'

    printer = _NodePrinter(text, lambda chars: f"/{_slashes(_class(chars))}/", names.__getitem__)
    return "".join(f"{names[rule.name]}: {printer.alternatives(rule.body)}\n" for rule in rules.values())


def to_regex(grammar: ContextFreeGrammar, templates: Templates) -> str:
    """A regular expression for whole texts, in the notation that Python and Rust share.

    Raises
    ------
    GrammarError
        The language isn't regular: some rule nests.
    """
    rules = write_out(grammar, templates)
    if nesting := self_embedding_rules(rules):
        written = min(nesting).split("(")[0]
        raise GrammarError(
            f"no regular expression says what rule '{written}' says: it nests", hint="use to_gbnf() or to_llguidance()"
        )
    return _regex(rules, grammar.limits)


def _without_empty_rounds(rules: Rules) -> Rules:
    """Equivalent rules in which no repeated item can be empty, as GBNF requires."""
    # Inner repeats are rewritten first, into calls of rules `rule$text`; `nullable` must know that these are never
    # empty.
    nullable = Nullable(rules | {text: n.Rule(text, n.NEVER) for text in map(nonempty_name, rules)})

    def rounds(old: n.Repeat, item: n.Node) -> n.Node:
        if nullable.always(item, ""):
            return n.repeat(without_empty(item, nullable), 0, old.high)
        return n.repeat(item, old.low, old.high)

    bodies = {name: fold(rule.body, lambda leaf: leaf, n.seq, n.alt, rounds) for name, rule in rules.items()}
    result = {name: n.Rule(name, body) for name, body in bodies.items()}
    result |= nonempty_rules(result, nullable, n.Seq(tuple(bodies.values())))
    productive = productive_rules(result)  # the rule `rule$text` of a rule whose only text is empty has no text at all
    return {name: rule for name, rule in trim(result, productive).items() if name in productive}


# Writing out


def write_out(grammar: ContextFreeGrammar, templates: Templates) -> Rules:
    """The grammar's language as rules from `START`, of LiteralText, Chars, Choices, Seq, Alt, Repeat and RuleRef alone.

    Raises
    ------
    GrammarError
        No text can be complete.
    LimitError
        It takes more nodes than a grammar may have.
    """
    if grammar.remembers:
        raise GrammarError(
            "no rules say that what a text has written may not come again (uniqueItems, minProperties)",
            hint="leave the keyword out: Grammar.from_json_schema(…, lenient=True)",
        )
    rules = _WriteOut(templates, grammar.limits).rules(grammar)
    productive = productive_rules(rules)
    if START not in productive:
        raise GrammarError("no text of the grammar can be complete", hint="bind the slots that have no value")
    rules = trim(rules, productive)
    return {START: rules[START]} | {name: rules[name] for name in reachable(rules, n.RuleRef(START))}


class _WriteOut:
    """Makes a named rule of each rule's body and each combination of its parameters' values.

    Every body becomes two rules: the texts that go on after it, and those that end in it, at an unbound `_STEP`.
    """

    def __init__(self, templates: Templates, limits: Limits):
        self._templates, self._limits = templates, limits
        self._names: dict[tuple[int, int], str] = {}
        self._waiting: list[tuple[str, n.Node, Env]] = []
        self._shared: set[int] = set()  # ids of nodes that become rules, since many bodies hold them
        self._advice: str | None = None

    def rules(self, grammar: ContextFreeGrammar) -> Rules:
        whole, ended = self._body(grammar.start, self._templates.env(grammar))
        result = {START: n.Rule(START, n.alt([whole, ended]))}
        nodes = 0
        while self._waiting:
            name, body, env = self._waiting.pop()
            whole, ended = self._fixed(body, env)
            result[name] = n.Rule(name, whole)
            result[_ended(name)] = n.Rule(_ended(name), ended)
            nodes += size(whole) + size(ended)
            what = "the grammar is too large once templates and the orders of objects' members are written out"
            self._limits.check("nodes", nodes, what, self._advice)
        return result

    def _call(self, name: str, body: n.Node, env: Env) -> tuple[n.Node, n.Node]:
        named = self._names.get((id(body), id(env)))
        if named is None:
            named = self._names[id(body), id(env)] = f"{name}({len(self._names)})"
            self._waiting.append((named, body, env))
        return n.RuleRef(named), n.RuleRef(_ended(named))

    def _fixed(self, body: n.Node, env: Env) -> tuple[n.Node, n.Node]:
        """The body with every combination of values for the open parameters that it uses more than once."""
        open_values = {name for name, value in env.values.items() if isinstance(value, Unbound)}
        waiting = sorted(open_values & _tied(body)) if open_values else []
        ways = [self._body(body, chosen) for chosen, _ in self._templates.ways(waiting, env, None)]
        return _either(ways)

    def _part(self, node: n.Node, env: Env) -> tuple[n.Node, n.Node]:
        return self._call("other", node, env) if id(node) in self._shared else self._body(node, env)

    def _body(self, node: n.Node, env: Env) -> tuple[n.Node, n.Node]:
        match node:
            case n.Seq(items=items):
                before: list[n.Node] = []
                ends: list[n.Node] = []
                for item in items:
                    whole, ended = self._part(item, env)
                    ends.append(n.seq([*before, ended]))
                    before.append(whole)
                return n.seq(before), n.alt(ends)
            case n.Alt(items=items):
                return _either([self._part(item, env) for item in items])
            case n.Repeat(item=item, low=low, high=high):
                whole, ended = self._part(item, env)
                others = n.repeat(whole, max(low - 1, 0), None if high is None else high - 1)
                return n.repeat(whole, low, high), n.seq([others, ended]) if high != 0 else n.NEVER
            case n.Except():
                return node.written_out, n.NEVER
            case JsonText():
                return self._body(node.written, env)
            case MemberSequence(of):
                self._advice = "any_order=False takes the schema's order alone"
                self._shared |= {id(one) for one in (of.others, of.last) if one is not n.NEVER}
                return self._call("members", node.written_out, env)
            case n.Lazy():
                return self._call("later", node.node, env)
            case n.RuleRef(rule=name):
                instances = self._templates.instances(node, env, 0)
                return _either([self._call(name, body, inner) for body, inner in instances])
            case n.Scoped():
                return self._call("after", node.node, self._templates.scope(node, env.grammar, 0))
            case n.Var(name=name):
                value = env.values[name]
                if isinstance(value, Thunk):
                    return self._call(name, value.node, value.env)
                return n.literal(value) if isinstance(value, bytes) else n.choices(value), n.NEVER
            case n.Slot(name=name):
                if ends_action(node, env):
                    return n.NEVER, n.EMPTY
                bound = env.grammar.bindings.get(name, ())
                if isinstance(bound, dict) and bound:
                    raise GrammarError(f"slot {name} depends on a key, but is used without one")
                return self._values(name, bound)
            case n.Related():
                return self._values(node.slot.name, self._templates.related(node, env))
        return node, n.NEVER

    def _values(self, name: str, bound) -> tuple[n.Node, n.Node]:
        if isinstance(bound, ContextFreeGrammar):
            return self._call(name, bound.start, self._templates.env(bound))
        return n.choices(bound if isinstance(bound, (tuple, dict)) else bound.values), n.NEVER


def _tied(body: n.Node) -> set[str]:
    """The parameters that a body uses more than once, in a repeat, or as an argument."""
    once: set[str] = set()
    tied: set[str] = set()
    for node in n.walk(body):
        if isinstance(node, n.Var):
            (tied if node.name in once else once).add(node.name)
        elif isinstance(node, (n.RuleRef, n.Related, n.Repeat)):
            tied.update(var.name for below in node.parts for var in n.find(below, n.Var))
    return tied


def _ended(name: str) -> str:
    return f"{name}!"


def _either(ways: list[tuple[n.Node, n.Node]]) -> tuple[n.Node, n.Node]:
    return n.alt([whole for whole, _ in ways]), n.alt([ended for _, ended in ways])


# Printing


class _NodePrinter:
    """Prints nodes as alternatives of sequences, with groups and ``{low,high}``; `space` stands between all pieces."""

    def __init__(
        self,
        text: Callable[[str], str],
        chars: Callable[[CharSet], str],
        name: Callable[[str], str],
        group: str = "(",
        space: str = " ",
    ):
        self._text, self._chars, self._name, self._group, self._space = text, chars, name, group, space
        self._or = f"{space}|{space}"

    def alternatives(self, node: n.Node) -> str:
        if isinstance(node, n.Choices):
            return self._or.join(self._text(_decoded(value)) for value in node.values)
        items: tuple[n.Node, ...] = node.items if isinstance(node, n.Alt) else (node,)
        return self._or.join(map(self._sequence, items))

    def _sequence(self, node: n.Node) -> str:
        items = node.items if isinstance(node, n.Seq) else (node,)
        return self._space.join(map(self._one, items)) if items else self._text("")

    def _one(self, node: n.Node) -> str:
        match node:
            case n.LiteralText(data=data):
                return self._text(_decoded(data))
            case n.Chars(chars=chars):
                return self._chars(chars)
            case n.RuleRef(rule=name):
                return self._name(name)
            case n.Repeat(item=item, low=low, high=high):
                inner = self._one(item) if isinstance(item, n.Chars) else self._grouped(item)
                return f"{inner}{_times(low, high)}"
            case n.Seq() | n.Alt() | n.Choices():
                return self._grouped(node)
        raise TypeError(f"{node} must be written out before it is printed")

    def _grouped(self, node: n.Node) -> str:
        return f"{self._group}{self.alternatives(node)})"


def _times(low: int, high: int | None) -> str:
    if high is None and low < 2:
        return "+" if low else "*"
    if (low, high) == (0, 1):
        return "?"
    return f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}"


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise GrammarError(
            f"{data!r} is not whole characters: other engines write characters, not bytes",
            hint="let no literal end within a character",
        ) from None


def _gbnf_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else _gbnf_code(c) for c in escaped) + '"'


def _gbnf_code(character: str) -> str:
    code = ord(character)  # in XGrammar, an \x takes all hexadecimal digits behind it
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _code(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_CLASS_SPECIAL = "]^-[\\&~"
"""Escaped inside a class; && and ~~ are operators in Rust's."""


def _class(chars: CharSet, escape: Callable[[str], str] = _code) -> str:
    # llama.cpp refuses the first byte of each character that a negated class leaves out, and so all that begin with it.
    rest = chars.complement()
    negated = bool(rest) and chars.ranges[-1][1] == MAX_CODE_POINT and rest.ranges[-1][1] < 0x80
    parts = []
    for low, high in rest.ranges if negated else chars.ranges:
        parts += [_in_class(low, escape)] if low == high else [_in_class(low, escape), "-", _in_class(high, escape)]
    return f"[{'^' if negated else ''}{''.join(parts)}]"


def _in_class(code: int, escape: Callable[[str], str]) -> str:
    character = chr(code)
    if character.isalnum() and code < 0x80 or code == 0x20:
        return character
    return escape(character)


def _regex_text(text: str) -> str:
    return "".join(c if c.isprintable() and c not in _REGEX_SPECIAL else _escape(c) for c in text)


_REGEX_SPECIAL = ".^$*+?()[]{}|\\"


def _escape(character: str) -> str:
    return f"\\{character}" if character in _REGEX_SPECIAL else _code(character)


def _slashes(pattern: str) -> str:
    return pattern.replace("/", "\\/")


# Regular languages


_TOO_LONG = "the regular expression becomes too long"


def _regex(rules: Rules, limits: Limits) -> str:
    """The expression of rules whose recursion, if any, is at the end of their bodies."""
    calls = {name: [call.rule for call in rule.find(n.RuleRef)] for name, rule in rules.items()}
    solved: dict[str, n.Node] = {}
    for group in components(calls):  # callees first
        _solve(group, rules, solved, limits)
    text = _NodePrinter(_regex_text, _class, str, "(?:", "").alternatives(solved[START])
    limits.check("pattern", len(text), _TOO_LONG)
    return text


def _solve(group: list[str], rules: Rules, solved: dict[str, n.Node], limits: Limits) -> None:
    """Solve a group's equations ``x = a x | b y | c`` by Arden's lemma: ``x = a* (b y | c)``."""

    def leaf(node: n.Node) -> n.Node:
        return solved.get(node.rule, node) if isinstance(node, n.RuleRef) else node

    equations: dict[str, dict[str, n.Node]] = {name: {} for name in group}
    names = set(group)
    for i, name in enumerate(group):
        equation = equations[name]
        ways: dict[str, list[n.Node]] = {}
        for prefix, callee in _ways(rebuild(rules[name].body, leaf), names):
            ways.setdefault(callee, []).append(prefix)
        equation |= {callee: n.alt(prefixes) for callee, prefixes in ways.items()}
        for other in group[:i]:  # substitute the rules before this one, whose equations are solved
            prefix = equation.pop(other, n.NEVER)
            for callee, node in equations[other].items() if prefix is not n.NEVER else ():
                equation[callee] = n.alt([equation.get(callee, n.NEVER), n.seq([prefix, node])])
        again = n.repeat(equation.pop(name, n.NEVER), 0, None)
        equations[name] = {callee: n.seq([again, node]) for callee, node in equation.items()}
        _check_length(equations[name].values(), limits)
    for name in reversed(group):
        solved[name] = n.alt([n.seq([node, solved[to]]) if to else node for to, node in equations[name].items()])
        _check_length([solved[name]], limits)


def _check_length(found: Iterable[n.Node], limits: Limits) -> None:
    """Raise LimitError if `found` would print too long; every node takes at least one character."""
    limits.check("pattern", sum(map(size, found)), _TOO_LONG)


def _ways(node: n.Node, group: set[str]) -> Iterator[tuple[n.Node, str]]:
    """Yield (node read first, rule of the group called after it or "") for each alternative of `node`."""
    match node:
        case n.Alt(items=items):
            for item in items:
                yield from _ways(item, group)
        case n.RuleRef(rule=name):  # a call of the group: calls of other rules were replaced before
            yield n.EMPTY, name
        case n.Seq(items=(*first, last)):
            yield from ((n.seq([*first, rest]), callee) for rest, callee in _ways(last, group))
        case n.Repeat(item=item, low=low, high=1) if any(call.rule in group for call in n.find(item, n.RuleRef)):
            yield from _ways(item, group)
            if low == 0:
                yield n.EMPTY, ""
        case _:
            yield node, ""

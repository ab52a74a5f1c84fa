"""What may stand before and after a token that looks around, anywhere in a grammar.

The sets are those of LL(1) parsing, in both directions: what a piece begins and ends with,
then what may stand beside it. (Aho, Lam, Sethi and Ullman, *Compilers*, section 4.4.2.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from constrained.errors import GrammarError, LimitError
from constrained.grammar import nodes
from constrained.grammar.alternating_automaton import Steps
from constrained.grammar.assertions import Atomic, Look
from constrained.grammar.charset import charset
from constrained.grammar.lookaround import ANYTHING, EDGE, Seen, Settled, Undecided
from constrained.grammar.nodes import Alt, Call, Chars, Choices, Literal, Node, Related, Repeat, Rule, Seq, Slot, Var
from constrained.limits import Limits

Unit = "str | tuple[str, str]"  # a rule, or a (rule, parameter)

_NONE = Seen(), Seen()
_HINT = (
    "let what stands beside the token always decide it, or take the lookaround out and write what it asks for as text"
)


@dataclass(frozen=True, eq=False)
class Token(Node):
    """A token that looks around, at one place of a grammar, until :func:`settled`.

    ``error(message, hint=...)`` makes a GrammarError at its place.
    """

    node: Node
    name: str
    error: Callable[..., GrammarError]


def settled(rules: dict[str, Rule], start: Node, limits: Limits) -> tuple[dict[str, Rule], list[Token]]:
    """`rules` with every :class:`Token` read as it is where it stands in a text of `start`; and those never read.

    Raises
    ------
    GrammarError
        A token may be read or not by what stands beside it.
    """
    if not any(isinstance(node, Token) for rule in rules.values() for node in nodes.walk(rule.body)):
        return rules, []
    steps = Steps(limits)
    beside = _Surroundings(rules, start, steps).beside
    made: dict[Token, Node] = {}
    owners: dict[Node, Settled] = {}
    further: dict[str, Rule] = {}
    never: list[Token] = []

    def read(token: Token) -> Node:
        before, after = beside.get(token, (EDGE, EDGE))  # what `start` doesn't reach may stand alone
        if token not in made:
            if token.node not in owners:
                _check_parts(token)
                owners[token.node] = Settled(token.node, steps)
            try:
                made[token], more = owners[token.node].among(f"{token.name}${len(further)}", before, after)
            except Undecided as undecided:
                raise token.error(f"the lookaround sees beyond its token: {undecided}", hint=_HINT) from None
            except LimitError as error:
                raise error.at(token.error("")) from None
            except GrammarError as error:
                raise token.error(error.message, hint=error.hint) from None
            further.update(more)
            if made[token] is nodes.NEVER:
                never.append(token)
        return made[token]

    def replaced(node: Node) -> Node:
        if isinstance(node, Token):
            return read(node)
        if isinstance(node, Seq):
            return nodes.seq([replaced(i) for i in node.items])
        if isinstance(node, Alt):
            return nodes.alt([replaced(i) for i in node.items])
        if isinstance(node, Repeat):
            return nodes.repeat(replaced(node.item), node.low, node.high)
        if isinstance(node, Call) and node.args:
            return Call(node.rule, tuple(map(replaced, node.args)))
        return node

    out = {n: Rule(n, replaced(r.body), r.params, r.line) for n, r in rules.items()}
    return {**out, **further}, never


def _check_parts(token: Token) -> None:
    """GrammarError if some of the token's texts are known elsewhere only."""
    for part in nodes.walk(token.node):
        if isinstance(part, Slot):
            raise token.error(
                "a slot is part of a terminal that looks around", hint="use the slot in a rule, beside the terminal"
            )
        if isinstance(part, Call):
            raise token.error(
                "a terminal that looks around has too many pieces", hint="use its larger parts in a rule, beside it"
            )


class _Surroundings:
    """`beside`: token -> (what may stand before it, after it)."""

    def __init__(self, rules: dict[str, Rule], start: Node, steps: Steps):
        self.rules, self.steps = rules, steps
        self.ends: dict[Unit, tuple[Seen, Seen]] = {}  # what a rule or argument begins, and ends, with
        self.leaves: dict[Node, tuple[Seen, Seen]] = {}
        self.find_ends()
        self.beside: dict[Token, tuple[Seen, Seen]] = {}
        self.around: dict[Unit, tuple[Seen, Seen]] = {}
        self.uses: dict[Unit, set[str]] = {}  # a parameter -> the rules that give it an argument
        for rule in rules.values():
            for node in nodes.walk(rule.body):
                if isinstance(node, Call):
                    for param in rules[node.rule].params:
                        self.uses.setdefault((node.rule, param), set()).add(rule.name)
        self.work: list[str] = []
        self.visit(start, "", EDGE, EDGE)
        while self.work:
            name = self.work.pop()
            self.visit(rules[name].body, name, *self.around[name])

    def find_ends(self) -> None:
        pieces: dict[Unit, list[tuple[Node, str]]] = {n: [(r.body, n)] for n, r in self.rules.items()}
        users: dict[Unit, set] = {}
        for rule in self.rules.values():
            for node in nodes.walk(rule.body):
                if isinstance(node, Call):
                    for param, arg in zip(self.rules[node.rule].params, node.args):
                        pieces.setdefault((node.rule, param), []).append((arg, rule.name))
        for unit, given in pieces.items():
            for piece, rule in given:
                for node in nodes.walk(piece):
                    if isinstance(node, (Call, Var)):
                        users.setdefault(node.rule if isinstance(node, Call) else (rule, node.name), set()).add(unit)
        work = list(pieces)
        while work:
            unit = work.pop()
            first, last = _NONE
            for piece, rule in pieces[unit]:
                first, last = first | self.end(piece, rule, 0), last | self.end(piece, rule, 1)
            self.steps(1 + (len(first.chars.ranges) + len(last.chars.ranges)) // 16)
            if self.ends.get(unit, _NONE) != (first, last):
                self.ends[unit] = first, last
                work.extend(users.get(unit, ()))

    def end(self, node: Node, rule: str, which: int) -> Seen:
        """What `node`, standing in `rule`, begins (0) or ends (1) with."""
        self.steps(1)
        if isinstance(node, Seq):
            out = EDGE
            for item in reversed(node.items) if which == 0 else node.items:
                out = _then(self.end(item, rule, which), out)
            return out
        if isinstance(node, Alt):
            return _any(self.end(i, rule, which) for i in node.items)
        if isinstance(node, Repeat):
            item = self.end(node.item, rule, which)
            return item | EDGE if node.low == 0 else item
        if isinstance(node, Token):
            return self.leaf(node.node, rule)[which]
        if isinstance(node, Call):
            return self.ends.get(node.rule, _NONE)[which]
        if isinstance(node, Var):
            return self.ends.get((rule, node.name), _NONE)[which]
        if isinstance(node, (Slot, Related)):
            return ANYTHING
        if isinstance(node, Look):
            return EDGE
        if isinstance(node, Atomic):
            return self.end(node.node, rule, which)
        if isinstance(node, Chars):
            return Seen(node.chars)
        return self.leaf(node, rule)[which]

    def leaf(self, node: Node, rule: str) -> tuple[Seen, Seen]:
        """As `end`, kept: for what does not depend on rules."""
        found = self.leaves.get(node)
        if found is None:
            if isinstance(node, (Literal, Choices)):
                texts = [v.decode() for v in ((node.data,) if isinstance(node, Literal) else node.values)]
                found = _chars(t[:1] for t in texts), _chars(t[-1:] for t in texts)
            else:
                found = self.end(node, rule, 0), self.end(node, rule, 1)
            self.leaves[node] = found
        return found

    def visit(self, node: Node, rule: str, before: Seen, after: Seen) -> None:
        """Note what stands beside everything in `node`, which stands in `rule` between `before` and `after`."""
        if isinstance(node, Seq):
            befores = []
            for item in node.items:
                befores.append(before)
                before = _then(self.end(item, rule, 1), before)
            for item, left in zip(reversed(node.items), reversed(befores)):
                self.visit(item, rule, left, after)
                after = _then(self.end(item, rule, 0), after)
        elif isinstance(node, Repeat) and node.high != 1:
            self.visit(node.item, rule, before | self.end(node.item, rule, 1), after | self.end(node.item, rule, 0))
        elif isinstance(node, Token):
            known = self.beside.get(node, _NONE)
            self.beside[node] = known[0] | before, known[1] | after
        elif isinstance(node, Var):
            if self.grow((rule, node.name), before, after):
                self.work.extend(self.uses.get((rule, node.name), ()))
        elif isinstance(node, Call):
            if self.grow(node.rule, before, after):
                self.work.append(node.rule)
            for param, arg in zip(self.rules[node.rule].params, node.args):
                if (node.rule, param) in self.around:
                    self.visit(arg, rule, *self.around[node.rule, param])
        elif not isinstance(node, Related):  # its parameter only tells which values these are
            for item in nodes.children(node):
                self.visit(item, rule, before, after)

    def grow(self, unit: Unit, before: Seen, after: Seen) -> bool:
        known = self.around.get(unit)
        new = (before, after) if known is None else (known[0] | before, known[1] | after)
        self.around[unit] = new
        return new != known


def _then(first: Seen, rest: Seen) -> Seen:
    if first == ANYTHING:  # a slot: it may be where the text ends, too
        return ANYTHING
    return Seen(first.chars | rest.chars, rest.edge) if first.edge else first


def _any(seen) -> Seen:
    out = Seen()
    for one in seen:
        out = out | one
    return out


def _chars(texts) -> Seen:
    found = set(texts)
    return Seen(charset((ord(t), ord(t)) for t in found if t), "" in found)

"""What can stand before and after a token that looks around, anywhere in a grammar.

The sets are the first and follow sets of LL(1) parsing, in both directions: what a piece begins and
ends with, then what can stand beside it. (Aho, Lam, Sethi and Ullman, *Compilers*, section 4.4.2.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from constrained.errors import GrammarError, LimitError
from constrained.grammar import nodes
from constrained.grammar.alternating_automaton import Steps
from constrained.grammar.assertions import Atomic, Look
from constrained.grammar.charset import charset
from constrained.grammar.lookaround import ANYTHING, EDGE, Neighbours, Resolver, Undecided
from constrained.grammar.nodes import Node, Rule, find
from constrained.grammar.traverse import Pieces, Unit, call_arguments, fold, least_fixpoint, rebuild, units
from constrained.limits import Limits

_NONE = Neighbours(), Neighbours()
_HINT = (
    "let what stands beside the token always decide it, or take the lookaround out and write what it asks for as text"
)


@dataclass(frozen=True, eq=False)
class Token(Node):
    """A token that looks around, at one place of a grammar, until :func:`resolve_tokens`.

    ``error(message, hint=...)`` makes a GrammarError at its place.
    """

    node: Node
    name: str
    error: Callable[..., GrammarError]


def resolve_tokens(rules: dict[str, Rule], start: Node, limits: Limits) -> tuple[dict[str, Rule], list[Token]]:
    """Replace every :class:`Token` by what it reads where it stands in a text of `start`.

    Returns
    -------
    rules : dict of str to Rule
    never : list of Token
        Those whose lookaround is never met.

    Raises
    ------
    GrammarError
        Whether a token is read depends on which of its neighbours stands beside it.
    """
    if not any(find(rule.body, Token) for rule in rules.values()):
        return rules, []
    steps = Steps(limits)
    beside = _FollowSets(rules, start, steps).beside
    made: dict[Token, Node] = {}
    resolvers: dict[Node, Resolver] = {}
    extra: dict[str, Rule] = {}
    never: list[Token] = []

    def resolve(token: Token) -> Node:
        before, after = beside.get(token, (EDGE, EDGE))  # what `start` doesn't reach may stand alone
        if token not in made:
            if token.node not in resolvers:
                _check_parts(token)
                resolvers[token.node] = Resolver(token.node, steps)
            try:
                made[token], more = resolvers[token.node].between(f"{token.name}${len(extra)}", before, after)
            except Undecided as undecided:
                raise token.error(f"the lookaround sees beyond its token: {undecided}", hint=_HINT) from None
            except LimitError as error:
                raise error.at(token.error("")) from None
            except GrammarError as error:
                raise token.error(error.message, hint=error.hint) from None
            extra.update(more)
            if made[token] is nodes.NEVER:
                never.append(token)
        return made[token]

    def leaf(node: Node) -> Node:
        if isinstance(node, Token):
            return resolve(node)
        if isinstance(node, nodes.Call) and node.args:
            return nodes.Call(node.rule, tuple(rebuild(arg, leaf) for arg in node.args))
        return node

    out = {n: Rule(n, rebuild(r.body, leaf), r.params, r.line) for n, r in rules.items()}
    return {**out, **extra}, never


def _check_parts(token: Token) -> None:
    """Raise GrammarError if some of the token's texts are not known here."""
    for part in nodes.walk(token.node):
        if isinstance(part, nodes.Slot):
            raise token.error(
                "a slot is part of a terminal that looks around", hint="use the slot in a rule, beside the terminal"
            )
        if isinstance(part, nodes.Call):
            raise token.error(
                "a terminal that looks around has too many pieces", hint="use its larger parts in a rule, beside it"
            )


class _FollowSets:
    """`beside`: token -> (what can stand before it, after it)."""

    def __init__(self, rules: Mapping[str, Rule], start: Node, steps: Steps):
        self.rules, self.steps = rules, steps
        self.fixed: dict[Node, tuple[Neighbours, Neighbours]] = {}
        self.ends = self._solve_ends(units(rules))
        self.beside: dict[Token, tuple[Neighbours, Neighbours]] = {}
        self.around: dict[Unit, tuple[Neighbours, Neighbours]] = {}
        self.callers = {unit: {rule for rule, _ in given} for unit, given in call_arguments(rules).items()}
        self.work: list[str] = []
        self.visit(start, "", EDGE, EDGE)
        while self.work:
            name = self.work.pop()
            self.visit(rules[name].body, name, *self.around[name])

    def _solve_ends(self, pieces: Mapping[Unit, Pieces]) -> dict[Unit, tuple[Neighbours, Neighbours]]:
        """Return what each unit begins with (its first set) and ends with."""

        def value(unit: Unit, found: Mapping[Unit, tuple[Neighbours, Neighbours]]):
            first = _union(self.end(piece, rule, 0, found) for rule, piece in pieces[unit])
            last = _union(self.end(piece, rule, 1, found) for rule, piece in pieces[unit])
            self.steps(1 + (len(first.chars.ranges) + len(last.chars.ranges)) // 16)
            return first, last

        return least_fixpoint(pieces, value, _NONE)

    def end(self, node: Node, rule: str, side: int, found: Mapping | None = None) -> Neighbours:
        """Return what `node`, standing in `rule`, begins (side 0) or ends (side 1) with."""
        units = self.ends if found is None else found

        def seq(values: Iterable[Neighbours]) -> Neighbours:
            out = EDGE
            ordered = list(values)
            for value in reversed(ordered) if side == 0 else ordered:
                out = _then(value, out)
            return out

        def repeat(node: nodes.Repeat, item: Neighbours) -> Neighbours:
            return item | EDGE if node.low == 0 else item

        def leaf(node: Node) -> Neighbours:
            self.steps(1)
            match node:
                case nodes.Call():
                    return units.get(node.rule, _NONE)[side]
                case nodes.Var():
                    return units.get((rule, node.name), _NONE)[side]
                case nodes.Slot() | nodes.Related():
                    return ANYTHING
                case Look():
                    return EDGE
                case Atomic():
                    return fold(node.node, leaf, seq, _union, repeat)
                case nodes.Chars():
                    return Neighbours(node.chars)
                case Token():
                    return self._fixed_ends(node.node)[side]
            return self._fixed_ends(node)[side]

        return fold(node, leaf, seq, _union, repeat)

    def _fixed_ends(self, node: Node) -> tuple[Neighbours, Neighbours]:
        """Return both ends of a node that contains no calls and parameters, remembered."""
        found = self.fixed.get(node)
        if found is None:
            if isinstance(node, (nodes.Literal, nodes.Choices)):
                texts = [v.decode() for v in ((node.data,) if isinstance(node, nodes.Literal) else node.values)]
                found = _of_texts(t[:1] for t in texts), _of_texts(t[-1:] for t in texts)
            else:
                found = self.end(node, "", 0, {}), self.end(node, "", 1, {})
            self.fixed[node] = found
        return found

    def visit(self, node: Node, rule: str, before: Neighbours, after: Neighbours) -> None:
        """Note what stands beside everything in `node`, which stands in `rule` between `before` and `after`."""
        match node:
            case nodes.Seq():
                befores = []
                for item in node.items:
                    befores.append(before)
                    before = _then(self.end(item, rule, 1), before)
                for item, left in zip(reversed(node.items), reversed(befores)):
                    self.visit(item, rule, left, after)
                    after = _then(self.end(item, rule, 0), after)
            case nodes.Alt():
                for item in node.items:
                    self.visit(item, rule, before, after)
            case nodes.Repeat():
                if node.high != 1:
                    before, after = before | self.end(node.item, rule, 1), after | self.end(node.item, rule, 0)
                self.visit(node.item, rule, before, after)
            case Token():
                known = self.beside.get(node, _NONE)
                self.beside[node] = known[0] | before, known[1] | after
            case nodes.Var():
                if self.grow((rule, node.name), before, after):
                    self.work.extend(self.callers.get((rule, node.name), ()))
            case nodes.Call():
                if self.grow(node.rule, before, after):
                    self.work.append(node.rule)
                for param, arg in zip(self.rules[node.rule].params, node.args):
                    if (node.rule, param) in self.around:
                        self.visit(arg, rule, *self.around[node.rule, param])

    def grow(self, unit: Unit, before: Neighbours, after: Neighbours) -> bool:
        """Add to what stands around a unit; whether it was not known."""
        known = self.around.get(unit)
        new = (before, after) if known is None else (known[0] | before, known[1] | after)
        self.around[unit] = new
        return new != known


def _then(first: Neighbours, rest: Neighbours) -> Neighbours:
    """Return what a piece followed by others begins with."""
    if first == ANYTHING:  # a slot: the text may also end there
        return ANYTHING
    return Neighbours(first.chars | rest.chars, rest.edge) if first.edge else first


def _union(found: Iterable[Neighbours]) -> Neighbours:
    out = Neighbours()
    for one in found:
        out = out | one
    return out


def _of_texts(texts: Iterable[str]) -> Neighbours:
    found = set(texts)
    return Neighbours(charset((ord(t), ord(t)) for t in found if t), "" in found)

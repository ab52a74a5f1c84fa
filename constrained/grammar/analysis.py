"""Facts about a grammar's rules: nullable, productive, and which of them lead to each other in a cycle.

See any compiler text, such as Aho, Lam, Sethi and Ullman, *Compilers*, section 4.4.2 (nullable
symbols), and Hopcroft, Motwani and Ullman, *Introduction to Automata Theory*, section 7.1
(useless symbols).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from math import isqrt
from operator import attrgetter

from constrained.grammar import nodes
from constrained.grammar.members import MemberSequence
from constrained.grammar.nodes import LEAVES, NEVER, Alt, Node, Rule, RuleRef, Seq
from constrained.grammar.traverse import Pieces, Unit, fold, least_fixpoint, optional_repeat, units


class Nullable:
    """Which parts of a grammar can be the empty text. `slots`: slots that are bound to something that can be empty."""

    def __init__(self, rules: Mapping[str, Rule], slots: frozenset[str] = frozenset()):
        self._rules, self._slots = rules, slots
        self._always = self._solve(units(rules, parameters=False))  # parameters count as not empty

    @cached_property
    def _sometimes(self) -> dict[Unit, bool]:
        return self._solve(units(self._rules)) if any(r.params for r in self._rules.values()) else self._always

    def rule(self, name: str) -> bool:
        """Whether the rule can be empty, whatever its arguments."""
        return self._always.get(name, False)

    def always(self, node: Node, rule: str) -> bool:
        """Whether `node`, standing in `rule`, can be empty whatever the rule's parameters are."""
        return self._nullable(node, rule, self._always)

    def sometimes(self, node: Node, rule: str) -> bool:
        """Whether it can be empty with some arguments that some call gives."""
        return self._nullable(node, rule, self._sometimes)

    def _solve(self, pieces: Mapping[Unit, Pieces]) -> dict[Unit, bool]:
        def value(unit: Unit, found: Mapping[Unit, bool]) -> bool:
            return found[unit] or any(self._nullable(piece, rule, found) for rule, piece in pieces[unit])

        return least_fixpoint(pieces, value, False, True)

    def _nullable(self, node: Node, rule: str, found: Mapping[Unit, bool]) -> bool:
        if isinstance(node, (nodes.LiteralText, nodes.Chars)):  # most nodes
            return False
        if isinstance(node, RuleRef):
            return found[node.rule]
        return fold(node, lambda leaf: self._nullable_leaf(leaf, rule, found), all, any, optional_repeat)

    def _nullable_leaf(self, node: Node, rule: str, nullable: Mapping[Unit, bool]) -> bool:
        match node:
            case RuleRef():
                return nullable[node.rule]
            case nodes.Var():
                return nullable.get((rule, node.name), False)
            case nodes.Slot():
                return node.name in self._slots
            case nodes.Related():
                return node.slot.name in self._slots
            case nodes.Choices():
                return not node.values[0]
            case nodes.Except():
                return bool(node.values[0])
            case nodes.Scoped():
                return self._nullable(scoped_value(node) or node.node, rule, nullable)
        return False


def scoped_value(node: nodes.Scoped) -> nodes.Scoped | None:
    """The scope that `node` stands for if it holds nothing but a parameter whose value is a scope; else None."""
    value = node.values.get(node.node.name) if isinstance(node.node, nodes.Var) else None
    return value if isinstance(value, nodes.Scoped) else None


def productive_rules(rules: Mapping[str, Rule]) -> set[str]:
    """The rules from which some finite text can be derived (slots taken as bound, parameters as having one)."""
    if any(map(attrgetter("params"), rules.values())):
        return TextlessArguments(rules).productive
    without = dict.fromkeys(rules, True)
    for name in reversed(without):  # what is called mostly stands after what calls it: most grammars are done then
        without[name] = not is_productive(rules[name].body, without.get)
    if True not in without.values():
        return set(without)
    return rules.keys() - unproductive({name: rule.body for name, rule in rules.items()})


class TextlessArguments:
    """Which rules have a text, where a template may be given arguments that have none.

    A call has a text if the template has one without those arguments that have none: with ``t{p}: "y" | p "!"``, there
    is one in ``r: t{r}``. So each template is examined once for every set of arguments without text that a call gives.

    Attributes
    ----------
    productive : set of str
        The rules that have a text, parameters taken as having one.
    """

    def __init__(self, rules: Mapping[str, Rule]):
        self._rules = rules
        self._known = {(name, _NONE): False for name in rules}  # (rule, parameters without text) -> whether it has one
        self._users: dict[tuple[str, frozenset[str]], set[tuple[str, frozenset[str]]]] = {}
        self._work = list(self._known)
        self._solve()
        self.productive = {name for name in rules if self._known[name, _NONE]}

    def has_text(self, node: Node) -> bool:
        """Whether `node` has a text, parameters taken as having one."""
        found = self._has_text(node, None)
        while self._work:  # a template with arguments that were not examined so far
            self._solve()
            found = self._has_text(node, None)
        return found

    def _solve(self) -> None:
        while self._work:
            unit = self._work.pop()
            if not self._known[unit] and self._has_text(self._rules[unit[0]].body, unit):
                self._known[unit] = True
                self._work += self._users.get(unit, ())

    def _has_text(self, node: Node, unit: tuple[str, frozenset[str]] | None) -> bool:
        """Whether `node` has a text by what is known; it stands in the body of `unit`, if any."""

        def leaf(node: Node) -> bool:
            match node:
                case RuleRef():
                    pairs = zip(self._rules[node.rule].params, node.args)
                    called = node.rule, frozenset(param for param, arg in pairs if not self._has_text(arg, unit))
                    if unit is not None:
                        self._users.setdefault(called, set()).add(unit)
                    if called not in self._known:
                        self._known[called] = False
                        self._work.append(called)
                    return self._known[called]
                case nodes.Var():
                    return unit is None or node.name not in unit[1]
                case nodes.Related():
                    return all(leaf(part) for part in (node.values, node.to) if part)
            return is_productive(node, _NONE.__contains__)

        return fold(node, leaf, all, any, optional_repeat)


_NONE: frozenset[str] = frozenset()


def unproductive(bodies: Mapping[str, Node]) -> set[str]:
    """The rules among `bodies` from which no finite text can be derived; rules that aren't there have one."""
    pieces = {name: [(name, body)] for name, body in bodies.items()}

    def has_none(name: str, found: Mapping[str, bool]) -> bool:
        return found[name] and not is_productive(bodies[name], found.get)

    return {name for name, found in least_fixpoint(pieces, has_none, True, False).items() if found}


def is_productive(node: Node, has_none: Callable[[str], bool | None]) -> bool:
    """Whether some finite text can be derived from `node`, by which rules have none."""

    if type(node) in LEAVES:  # most nodes
        return True
    if isinstance(node, RuleRef):
        return not has_none(node.rule) and (not node.args or all(is_productive(arg, has_none) for arg in node.args))
    if isinstance(node, Seq):
        for item in node.items:  # noqa: SIM110  # faster than `all`, and called for every node
            if type(item) not in LEAVES and not is_productive(item, has_none):
                return False
        return True
    if isinstance(node, Alt):
        for item in node.items:  # noqa: SIM110
            if is_productive(item, has_none):
                return True
        return False
    if isinstance(node, nodes.Repeat):
        return not node.low or is_productive(node.item, has_none)
    return not isinstance(node, MemberSequence) or node.of.fit(lambda part: is_productive(part, has_none))


def trim(rules: Mapping[str, Rule], productive: Collection[str]) -> dict[str, Rule]:
    """`rules` without the alternatives that no text completes, so that no mask leads into a dead end.

    `productive`: their :func:`productive_rules`; the bodies of others stay as they are.
    """
    without = rules.keys() - productive
    return {
        name: Rule(name, prune(rule.body, without.__contains__), rule.params, rule.line)
        if name not in without and (without or len(rule.nodes) > _LONG)
        else rule
        for name, rule in rules.items()
    }


def prune(node: Node, has_none: Callable[[str], bool]) -> Node:
    """`node` without the alternatives that no text completes, by which rules have none."""
    match node:
        case Seq():
            return _split_long(nodes.seq(prune(item, has_none) for item in node.items))
        case Alt():
            items = [item for item in (prune(item, has_none) for item in node.items) if item is not NEVER]
            return items[0] if len(items) == 1 else Alt(tuple(items)) if items else NEVER
        case nodes.Repeat():
            return nodes.repeat(prune(node.item, has_none), node.low, node.high)
        case MemberSequence():
            return node.of.only(lambda inner: prune(inner, has_none))
    return node if is_productive(node, has_none) else NEVER


_LONG = 256


def _split_long(node: Node) -> Node:
    """Nest a long sequence in shorter ones: after each item, the automaton makes a sequence of the remaining ones."""
    if not isinstance(node, Seq) or len(node.items) <= _LONG:
        return node
    size = max(32, isqrt(len(node.items)))
    return Seq(tuple(Seq(node.items[i : i + size]) for i in range(0, len(node.items), size)))


def components(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The strongly connected components of a graph, each one before those that lead to it (Tarjan, 1972).

    `edges`: name -> the names it leads to; those that are no key themselves are left out.
    """
    # Depth first, without Python's own stack. `lowest`: the least index that a name leads back to; a name that leads
    # back to none before it closes a component, which is all that stands above it on `stack`.
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    out: list[list[str]] = []
    finished = len(edges)  # the index of what is in a component already: above all others
    for root in edges:
        if root in index:
            continue
        work = [(root, iter(edges[root]))]
        index[root] = lowest[root] = len(index)
        stack.append(root)
        while work:
            name, rest = work[-1]
            low = lowest[name]
            for other in rest:
                at = index.get(other)
                if at is not None:
                    if at < low:
                        low = at
                elif other in edges:
                    lowest[name] = low
                    index[other] = lowest[other] = len(index)
                    stack.append(other)
                    work.append((other, iter(edges[other])))
                    break
            else:
                work.pop()
                if work and low < lowest[work[-1][0]]:
                    lowest[work[-1][0]] = low
                if low == index[name]:
                    first = len(stack) - 1
                    while stack[first] != name:
                        first -= 1
                    component = stack[first:]
                    del stack[first:]
                    index.update(dict.fromkeys(component, finished))
                    out.append(component)
    return out


def cyclic_components(edges: Mapping[str, Collection[str]]) -> list[list[str]]:
    """The components whose names lead back to themselves."""
    left = dict(edges)
    for name in reversed(list(edges)):  # what is led to mostly stands later: names that lead nowhere go at once
        if left.keys().isdisjoint(edges[name]):
            del left[name]
    if not left:
        return []
    return [component for component in components(left) if len(component) > 1 or component[0] in left[component[0]]]


def shortest_cycle(first: str, edges: Mapping[str, Iterable[str]]) -> list[str]:
    """The names on a shortest way from `first` back to itself; `first` alone if there is none."""
    before: dict[str, str] = {}
    work = [first]
    for top in work:
        for other in edges.get(top, ()):
            if other == first:
                path = [top]
                while path[-1] != first:
                    path.append(before[path[-1]])
                return path[::-1]
            if other not in before:
                before[other] = top
                work.append(other)
    return [first]

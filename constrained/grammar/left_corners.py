"""What a rule may begin with: which rules may be empty, which are called before any text."""

from __future__ import annotations

from collections.abc import Iterator

from constrained.grammar import nodes
from constrained.grammar.cycles import in_circles
from constrained.grammar.nodes import Alt, Call, Choices, Node, Related, Repeat, Rule, Seq, Slot, Var

Unit = "str | tuple[str, str]"  # a rule, or a (rule, parameter)


class Empty:
    """Which pieces of grammar may be the empty text.

    Parameters
    ----------
    rules : dict of str to Rule
    slots : frozenset of str
        Slots that are bound to something that may be empty.
    """

    def __init__(self, rules: dict[str, Rule], slots: frozenset[str] = frozenset()):
        self._slots = slots
        arguments: dict[tuple[str, str], list[tuple[Node, str]]] = {}
        for rule in rules.values():
            for node in nodes.walk(rule.body):
                if isinstance(node, Call) and node.args:
                    for name, arg in zip(rules[node.rule].params, node.args):
                        arguments.setdefault((node.rule, name), []).append((arg, rule.name))
        bodies: dict[Unit, list[tuple[Node, str]]] = {name: [(r.body, name)] for name, r in rules.items()}
        self._sure = self._fixed_point(bodies)
        self._maybe = self._fixed_point({**bodies, **arguments})

    def rule(self, name: str) -> bool:
        """Whether the rule has the empty text, whatever its arguments."""
        return name in self._sure

    def sure(self, node: Node, rule: str) -> bool:
        """Whether `node`, standing in `rule`, has the empty text whatever the parameters are."""
        return self._of(node, rule, self._sure)

    def maybe(self, node: Node, rule: str) -> bool:
        """Whether it has the empty text with some arguments that some call gives."""
        return self._of(node, rule, self._maybe)

    def _of(self, node: Node, rule: str, found: set) -> bool:
        if isinstance(node, Seq):
            return all(self._of(i, rule, found) for i in node.items)
        if isinstance(node, Alt):
            return any(self._of(i, rule, found) for i in node.items)
        if isinstance(node, Repeat):
            return node.low == 0 or self._of(node.item, rule, found)
        if isinstance(node, Call):
            return node.rule in found
        if isinstance(node, Var):
            return (rule, node.name) in found
        if isinstance(node, (Slot, Related)):
            return (node if isinstance(node, Slot) else node.slot).name in self._slots
        return isinstance(node, Choices) and not node.values[0]

    def _fixed_point(self, pieces: dict) -> set:
        users: dict[Unit, set] = {}
        for unit, given in pieces.items():
            for piece, rule in given:
                for node in nodes.walk(piece):
                    if isinstance(node, Call):
                        users.setdefault(node.rule, set()).add(unit)
                    elif isinstance(node, Var):
                        users.setdefault((rule, node.name), set()).add(unit)
        found: set = set()
        work = list(pieces)
        while work:
            unit = work.pop()
            if unit not in found and any(self._of(piece, rule, found) for piece, rule in pieces[unit]):
                found.add(unit)
                work.extend(users.get(unit, ()))
        return found


class LeftCorners:
    """The calls that rules may begin with, and whether something is left to do after them."""

    def __init__(self, rules: dict[str, Rule], empty: Empty):
        self.rules, self.empty = rules, empty
        self._first: dict[str, set[int]] = {}
        self._last = {name: ending_parameters(rule) for name, rule in rules.items() if rule.params}

    def groups(self) -> list[set[str]]:
        """Groups of rules that come to each other before any text, with something left to do after."""
        edges = {name: set(self.of(rule.body, name)) for name, rule in self.rules.items()}
        return [g for g in components(edges) if any(c in g and not tail for n in g for c, tail in edges[n])]

    def of(self, node: Node, rule: str, tail: bool = True) -> Iterator[tuple[str, bool]]:
        """(rule, whether nothing is left to do after it) of the calls that `node` may begin with."""
        if isinstance(node, Call):
            yield node.rule, tail
            for i in self.first_parameters(node.rule) if node.args else ():
                yield from self.of(node.args[i], rule, tail and i in self._last[node.rule])
        elif isinstance(node, Seq):
            for i, item in enumerate(node.items):
                yield from self.of(item, rule, tail and i == len(node.items) - 1)
                if not self.empty.maybe(item, rule):
                    return
        else:
            tail = tail and not (isinstance(node, Repeat) and node.high != 1)
            for item in nodes.children(node):
                yield from self.of(item, rule, tail)

    def calls(self, node: Node, rule: str) -> Iterator[Call]:
        """The calls that `node` may begin with, arguments aside."""
        if isinstance(node, Call):
            yield node
            return
        for item in nodes.children(node):
            yield from self.calls(item, rule)
            if isinstance(node, Seq) and not self.empty.maybe(item, rule):
                return

    def first_parameters(self, name: str) -> set[int]:
        """Indices of the parameters whose argument a text of the rule may begin with."""
        if name not in self._first:
            params = self.rules[name].params
            self._first[name] = {i for i, p in enumerate(params) if self._begins_with((name, p))}
        return self._first[name]

    def _begins_with(self, start: tuple[str, str]) -> bool:
        seen, work = {start}, [start]
        while work:
            rule, param = work.pop()
            for into in self._uses(self.rules[rule].body, rule, param):
                if into is None:
                    return True
                if into not in seen:
                    seen.add(into)
                    work.append(into)
        return False

    def _uses(self, node: Node, rule: str, param: str) -> Iterator[tuple[str, str] | None]:
        """None where `node` may begin with `param`, or the (rule, parameter) that it is handed to there."""
        if isinstance(node, Var):
            if node.name == param:
                yield None
        elif isinstance(node, Related):
            return  # the parameter's value tells which values these are, and is none of them
        elif isinstance(node, Call):
            for arg, name in zip(node.args, self.rules[node.rule].params):
                if any(True for _ in self._uses(arg, rule, param)):
                    yield node.rule, name
        else:
            for item in nodes.children(node):
                yield from self._uses(item, rule, param)
                if isinstance(node, Seq) and not self.empty.maybe(item, rule):
                    return


def ending_parameters(rule: Rule) -> set[int]:
    """Indices of the parameters that stand only at the rule's end."""
    if not rule.params:
        return set()
    ends = _last_vars(rule.body)
    uses = [v for v in nodes.walk(rule.body) if isinstance(v, Var)]
    return {i for i, p in enumerate(rule.params) if all(id(v) in ends for v in uses if v.name == p)}


def _last_vars(node: Node) -> set[int]:
    if isinstance(node, Var):
        return {id(node)}
    if isinstance(node, Alt):
        return set().union(*map(_last_vars, node.items)) if node.items else set()
    if isinstance(node, Seq) and node.items:
        return _last_vars(node.items[-1])
    if isinstance(node, Repeat) and node.high == 1:
        return _last_vars(node.item)
    return set()


def components(edges: dict[str, set[tuple[str, bool]]]) -> list[set[str]]:
    """Groups of rules that come round to themselves, callees first."""
    callees = {name: sorted({callee for callee, _ in found}) for name, found in edges.items()}
    return [set(group) for group in in_circles(callees)]

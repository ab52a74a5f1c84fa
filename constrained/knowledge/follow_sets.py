"""FIRST and FOLLOW sets (Aho, Lam, Sethi and Ullman, *Compilers*, section 4.4.2), of actions.

The sets are those of a parser generator, with actions in the place of terminals: FIRST of a
piece of grammar is the actions it may begin with, FOLLOW of a rule the actions that may come
after it, wherever it is called. A template parameter stands for all arguments ever given.
"""

from __future__ import annotations

from collections.abc import Iterator

from constrained.grammar import STEP
from constrained.grammar import nodes as n
from constrained.grammar.nodes import Node, Rule

Unit = "str | tuple[str, str]"  # a rule, or a (rule, parameter)


class FollowSets:
    """Which actions begin a piece of grammar, and which may follow an action.

    Parameters
    ----------
    rules : dict of str to Rule
    start : str

    Attributes
    ----------
    arguments : dict
        (rule, parameter) -> (calling rule, argument) of every call.
    """

    def __init__(self, rules: dict[str, Rule], start: str):
        self._rules = {name: rules[name] for name in _reachable(rules, start)}
        self.arguments = n.arguments(self._rules)
        self._first: dict[Unit, tuple[tuple[str, ...], bool]] = {}
        while self._grow_first():
            pass
        self._after: dict[Unit, dict[str, None]] = {}  # what stands behind a unit where it is called
        self._within: dict[Unit, dict[Unit, None]] = {}  # units whose end it may be called at
        self._walked: set[Unit] = set()
        self._place(n.Call(start), start, {}, None)

    def first(self, node: Node, rule: str) -> tuple[tuple[str, ...], bool]:
        """Actions that `node`, standing in `rule`, may begin with, and whether it may have none."""
        if isinstance(node, n.Seq):
            found: dict[str, None] = {}
            for item in node.items:
                actions, empty = self.first(item, rule)
                found.update(dict.fromkeys(actions))
                if not empty:
                    return tuple(found), False
            return tuple(found), True
        if isinstance(node, n.Alt):
            return _either([self.first(item, rule) for item in node.items])
        if isinstance(node, n.Repeat):
            actions, empty = self.first(node.item, rule)
            return actions, empty or node.low == 0
        if isinstance(node, n.Call) and writes_text(self._rules[node.rule].body):
            return (node.rule,), False
        if isinstance(node, n.Call):
            return self._first.get(node.rule, ((), False))
        if isinstance(node, n.Var):
            return self._first.get((rule, node.name), ((), False))
        return (), isinstance(node, n.Slot) and node.name == STEP

    def after(self, action: str) -> tuple[tuple[str, ...], bool]:
        """Actions that may follow `action`, and whether a path may be over after it."""
        found: dict[str, None] = {}
        ends = False
        for rest in continuations(self._rules[action].body):
            actions, empty = self.first(rest, action)
            found.update(dict.fromkeys(actions))
            if empty:
                behind, over = self._follow(action)
                found.update(behind)
                ends = ends or over
        return tuple(found), ends

    def _grow_first(self) -> bool:
        """One round of the least fixed point; whether anything grew."""
        before = dict(self._first)
        for name, rule in self._rules.items():
            if not writes_text(rule.body):
                self._first[name] = self.first(rule.body, name)
        for unit, given in self.arguments.items():
            self._first[unit] = _either([self.first(node, rule) for rule, node in given])
        return self._first != before

    def _follow(self, unit: Unit) -> tuple[dict[str, None], bool]:
        """FOLLOW, and whether the path may be over there (None among the units it ends)."""
        found: dict[str, None] = {}
        seen: dict = {unit: None}
        work = [unit]
        while work:
            top = work.pop(0)
            found.update(self._after.get(top, {}))
            for outer in self._within.get(top, {}):
                if outer not in seen:
                    seen[outer] = None
                    if outer is not None:
                        work.append(outer)
        return found, None in seen

    def _place(self, node: Node, rule: str, behind: dict[str, None], within: Unit) -> None:
        """Note that `behind` follows `node`; `within` ends with it, or is "" if something must follow."""
        stack = [self._placing(node, rule, behind, within)]  # a chain of actions may be longer than Python's own stack
        while stack:
            deeper = next(stack[-1], None)
            if deeper is None:
                stack.pop()
            else:
                stack.append(deeper)

    def _placing(self, node: Node, rule: str, behind: dict[str, None], within: Unit) -> Iterator[Iterator]:
        """The steps of `_place`: each is to be done before the next is asked for."""
        if isinstance(node, n.Seq):
            for item in reversed(node.items):
                yield self._placing(item, rule, behind, within)
                actions, empty = self.first(item, rule)
                behind = {**dict.fromkeys(actions), **behind} if empty else dict.fromkeys(actions)
                within = within if empty else ""
        elif isinstance(node, n.Alt):
            for item in node.items:
                yield self._placing(item, rule, behind, within)
        elif isinstance(node, n.Repeat):
            again = self.first(node.item, rule)[0] if node.high != 1 else ()
            yield self._placing(node.item, rule, {**dict.fromkeys(again), **behind}, within)
        elif isinstance(node, (n.Call, n.Var)):
            unit = node.rule if isinstance(node, n.Call) else (rule, node.name)
            self._after.setdefault(unit, {}).update(behind)
            if within != "":
                self._within.setdefault(unit, {})[within] = None
            if unit not in self._walked:
                self._walked.add(unit)
                for standing, piece in self._pieces(unit):
                    yield self._placing(piece, standing, {}, unit)

    def _pieces(self, unit: Unit) -> Iterator[tuple[str, Node]]:
        """(rule, node) that a unit consists of, an action's text aside."""
        if not isinstance(unit, str):
            yield from self.arguments.get(unit, ())
        elif writes_text(self._rules[unit].body):
            yield from ((unit, rest) for rest in continuations(self._rules[unit].body))
        else:
            yield unit, self._rules[unit].body


def writes_text(node: Node) -> bool:
    """Whether the rule body itself reads text or slots, rather than choosing between rules."""
    if isinstance(node, n.Slot):
        return node.name != STEP
    if isinstance(node, (n.Literal, n.Chars, n.Choices, n.Related)):
        return True
    if isinstance(node, (n.Seq, n.Alt)):
        return any(writes_text(i) for i in node.items)
    return isinstance(node, n.Repeat) and writes_text(node.item)


def continuations(node: Node) -> list[Node]:
    """What may stand after the end of the action whose body `node` is.

    That is what comes after each `_STEP`, and nothing for every way through without one.
    """
    return [*_after_step(node), *([] if ends_step(node) else [n.EMPTY])]


def _after_step(node: Node) -> Iterator[Node]:
    if isinstance(node, n.Seq):
        for i, item in enumerate(node.items):
            for after in _after_step(item):
                yield n.seq([after, *node.items[i + 1 :]])
            if ends_step(item):
                return
    elif isinstance(node, n.Alt):
        for item in node.items:
            yield from _after_step(item)
    elif isinstance(node, n.Repeat):
        again = n.EMPTY if node.high == 1 else n.repeat(node.item, 0, None)
        yield from (n.seq([after, again]) for after in _after_step(node.item))
    elif isinstance(node, n.Slot) and node.name == STEP:
        yield n.EMPTY


def ends_step(node: Node) -> bool:
    """Whether every way through `node` passes a `_STEP` (not counting the rules it calls)."""
    if isinstance(node, n.Slot):
        return node.name == STEP
    if isinstance(node, n.Seq):
        return any(ends_step(i) for i in node.items)
    if isinstance(node, n.Alt):
        return all(ends_step(i) for i in node.items)
    return isinstance(node, n.Repeat) and node.low > 0 and ends_step(node.item)


def _either(parts: list[tuple[tuple[str, ...], bool]]) -> tuple[tuple[str, ...], bool]:
    return tuple(dict.fromkeys(a for actions, _ in parts for a in actions)), any(empty for _, empty in parts)


def _reachable(rules: dict[str, Rule], start: str) -> list[str]:
    """Rules that a text of `start` can pass through, in the order they are met."""
    found, work = {start: None}, [start]
    while work:
        for node in n.walk(rules[work.pop(0)].body):
            if isinstance(node, n.Call) and node.rule not in found:
                found[node.rule] = None
                work.append(node.rule)
    return list(found)

"""The action graph of a grammar: which rules are actions, and which may follow which."""

from __future__ import annotations

from collections.abc import Iterator

from constrained.grammar import STEP
from constrained.grammar import nodes as n
from constrained.grammar.nodes import Node, Rule

START, END = "start", "end"


class ActionGraph:
    """Actions (KnowAgent's E_a) and the rules of what may follow them (its R).

    An action is a rule that writes text; rules that only choose between actions are seen
    through. The actions after a `_STEP` are the successors of the action it ends.

    Attributes
    ----------
    rules : dict of str to tuple of str
        Action (or "start") -> the actions that may follow, in the file's order.
    may_end : set of str
        Actions (or "start") after which a path may be over.
    distance : dict of str to int
        Action -> the fewest actions of a path from it to its end, itself included.
    """

    def __init__(self, rules: dict[str, Rule], start: str):
        self._rules = rules
        self._start = start
        self.arguments = _arguments(rules)
        self.rules: dict[str, tuple[str, ...]] = {}
        self.may_end: set[str] = set()
        self._add(START, self._heads(n.Call(start), start, set()))
        work = list(self.rules[START])
        while work:
            name = work.pop(0)
            if name in self.rules:
                continue
            after = list(_continuations(rules[name].body))
            if not after or _may_skip_step(rules[name].body):
                self.may_end.add(name)
            heads = [h for c in after for h in self._heads(c, name, set())]
            self._add(name, heads)
            work.extend(self.rules[name])
        self.distance = self._distances()

    def _add(self, name: str, heads) -> None:
        heads = list(heads)
        if END in heads:
            self.may_end.add(name)
        self.rules[name] = tuple(dict.fromkeys(h for h in heads if h != END))

    def _heads(self, node: Node, rule: str, seen: set) -> Iterator[str]:
        """Actions that `node`, standing in `rule`, may begin with; END where it may be over."""
        if isinstance(node, n.Alt):
            for item in node.items:
                yield from self._heads(item, rule, seen)
        elif isinstance(node, n.Repeat):
            yield END
            yield from self._heads(node.item, rule, seen)
        elif isinstance(node, n.Seq) and not node.items:
            yield END
        elif isinstance(node, n.Seq):
            yield from self._heads(node.items[0], rule, seen)
        elif isinstance(node, n.Var):
            for caller, arg in self.arguments.get((rule, node.name), ()):
                if id(arg) not in seen:
                    seen.add(id(arg))
                    yield from self._heads(arg, caller, seen)
        elif isinstance(node, n.Call):
            if writes_text(self._rules[node.rule].body):
                yield node.rule
            elif node.rule not in seen:
                seen.add(node.rule)
                yield from self._heads(self._rules[node.rule].body, node.rule, seen)

    def places(self) -> dict[tuple[str, str], list[str]] | None:
        """(place, place) -> the actions that lead from one to the other.

        A place is a rule that only chooses between actions. None where actions follow each
        other directly, so that the actions themselves are the places.
        """
        out: dict[tuple[str, str], list[str]] = {}
        done, work = set(), [self._start]
        while work:
            place = work.pop(0)
            if place in done:
                continue
            done.add(place)
            for call in self._calls(self._rules[place].body):
                rule = self._rules[call.rule]
                if not writes_text(rule.body):
                    return None
                given = dict(zip(rule.params, call.args))
                for after in _continuations(rule.body):
                    after = given.get(after.name, after) if isinstance(after, n.Var) else after
                    if not isinstance(after, n.Call) or writes_text(self._rules[after.rule].body):
                        return None
                    actions = out.setdefault((place, after.rule), [])
                    if call.rule not in actions:
                        actions.append(call.rule)
                    work.append(after.rule)
        return out

    def _calls(self, node: Node) -> Iterator[n.Call]:
        if isinstance(node, n.Call):
            yield node
        elif isinstance(node, (n.Alt, n.Seq)):
            for item in node.items:
                yield from self._calls(item)

    def _distances(self) -> dict[str, int]:
        found = {a: 1 for a in self.may_end}
        while True:
            new = {
                a: 1 + min(found[b] for b in after if b in found)
                for a, after in self.rules.items()
                if a not in found and any(b in found for b in after)
            }
            if not new:
                return found
            found.update(new)


def writes_text(node: Node) -> bool:
    """Whether the rule body itself reads text or slots, rather than choosing between rules."""
    if isinstance(node, (n.Literal, n.Chars, n.Choices, n.Slot)):
        return True
    if isinstance(node, (n.Seq, n.Alt)):
        return any(writes_text(i) for i in node.items)
    return isinstance(node, n.Repeat) and writes_text(node.item)


def has_step(node: Node) -> bool:
    """Whether `_STEP` stands in `node` itself (not in the rules it calls)."""
    return any(isinstance(x, n.Slot) and x.name == STEP for x in n.walk(node))


def _continuations(node: Node) -> Iterator[Node]:
    """What stands after each `_STEP` of a body."""
    if isinstance(node, n.Seq):
        for i, item in enumerate(node.items):
            if not has_step(item):
                continue
            rest = node.items[i + 1 :]
            if isinstance(item, n.Slot):
                yield n.seq(rest)
                return
            for after in _continuations(item):
                yield n.seq([after, *rest])
    elif isinstance(node, n.Alt):
        for item in node.items:
            yield from _continuations(item)
    elif isinstance(node, n.Repeat):
        yield from _continuations(node.item)
    elif isinstance(node, n.Slot) and node.name == STEP:
        yield n.EMPTY


def _may_skip_step(node: Node) -> bool:
    """Whether a way through the body passes no `_STEP`: the action can be the last."""
    if isinstance(node, n.Slot):
        return node.name != STEP
    if isinstance(node, n.Seq):
        return all(_may_skip_step(i) for i in node.items)
    if isinstance(node, n.Alt):
        return any(_may_skip_step(i) for i in node.items)
    if isinstance(node, n.Repeat):
        return node.low == 0 or _may_skip_step(node.item)
    return True


def _arguments(rules: dict[str, Rule]) -> dict[tuple[str, str], list[tuple[str, Node]]]:
    """(rule, parameter) -> (calling rule, argument) of every call."""
    out: dict[tuple[str, str], list[tuple[str, Node]]] = {}
    for rule in rules.values():
        for node in n.walk(rule.body):
            if isinstance(node, n.Call):
                for name, arg in zip(rules[node.rule].params, node.args):
                    out.setdefault((node.rule, name), []).append((rule.name, arg))
    return out

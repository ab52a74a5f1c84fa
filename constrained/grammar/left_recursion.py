"""What a rule may begin with: which rules may be empty, which are called before any text."""

from __future__ import annotations

from collections.abc import Iterator

from constrained.grammar import nodes
from constrained.grammar.analysis import Nullable, cyclic_components
from constrained.grammar.nodes import EMPTY, Alt, Call, Node, Related, Repeat, Rule, Seq, Var
from constrained.limits import Limits

# MERGED DOC: """Left recursion, turned round; every other recursion is the automaton's own, by its stack.
#
# A rule that comes to itself before it has read anything would push frames for ever. Within
# a group of such rules, a text begins with a base case, and what follows each recursion can
# only come after it: ``list: list "," item | item`` becomes ``list: item ("," item)*``. Rules
# that may be empty can hide the recursion (``a: b? a "x" | "y"``), so what is split is the
# language without the empty text. (Aho, Lam, Sethi and Ullman, *Compilers*, section 4.3.3,
# and for groups Moore, "Removing left recursion from context-free grammars", 2000, section 5.)
#
# Alternatives of recursive rules that begin alike are joined: two stacks for every level
# would be 2^depth ways to be in one place.
# """


class LeftCorners:
    """The calls that rules may begin with, and whether something is left to do after them."""

    def __init__(self, rules: dict[str, Rule], empty: Nullable):
        self.rules, self.empty = rules, empty
        self._first: dict[str, set[int]] = {}
        self._last = {name: ending_parameters(rule) for name, rule in rules.items() if rule.params}

    def groups(self) -> list[set[str]]:
        """Groups of rules that come to each other before any text, with something left to do after."""
        edges = {name: set(self.of(rule.body, name)) for name, rule in self.rules.items()}
        return [g for g in recursive_groups(edges) if any(c in g and not tail for n in g for c, tail in edges[n])]

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


def recursive_groups(edges: dict[str, set[tuple[str, bool]]]) -> list[set[str]]:
    """Groups of rules that come round to themselves, callees first."""
    callees = {name: sorted({callee for callee, _ in found}) for name, found in edges.items()}
    return [set(group) for group in cyclic_components(callees)]


class LeftRecursion(Exception):
    """Left recursion that can't be turned round; `.rule` names the rule, `.hint` says what to do."""

    def __init__(self, rule: str, hint: str):
        self.rule, self.hint = rule, hint
        super().__init__(rule)


def eliminate_left_recursion(rules: dict[str, Rule], limits: Limits) -> dict[str, Rule]:
    """`rules` without left recursion; LeftRecursion where that can't be had.

    Raises
    ------
    LimitError
        It takes more nodes than there may be.
    """
    size = sum(1 for rule in rules.values() for _ in nodes.walk(rule.body))
    limits.check("nodes", size, f"a grammar of {size} nodes")
    empty = Nullable(rules)
    corners = LeftCorners(rules, empty)
    out = dict(rules)
    groups = corners.groups()
    for group in groups:
        _check_arguments(group, corners)
        split = _Split(rules, empty, group, out, limits)
        for name in sorted(group):
            split.turn(name)
    if groups:
        check(out)
    for name in stacked(out):
        rule = out[name]
        out[name] = Rule(name, _joined(rule.body), rule.params, rule.line)
    return out


def check(rules: dict[str, Rule], slots: frozenset[str] = frozenset()) -> None:
    """LeftRecursion if `rules` come to themselves before any text, `slots` being bound to the empty text."""
    for group in LeftCorners(rules, Nullable(rules, slots)).groups():
        name = min(group, key=lambda n: (rules[n].line or 0, n)).split("$")[0]
        raise LeftRecursion(name, "what stands before the recursion may be empty: put some text there")


def stacked(rules: dict[str, Rule]) -> set[str]:
    """Rules whose recursion takes a stack: something is left to do after it."""
    edges = {name: set(references(rule.body, rules)) for name, rule in rules.items()}
    return {
        n for g in recursive_groups(edges) if any(c in g and not tail for m in g for c, tail in edges[m]) for n in g
    }


def references(node: Node, rules: dict[str, Rule], tail: bool = True) -> Iterator[tuple[str, bool]]:
    """(rule, whether nothing is left to do after it) of every call in `node`."""
    if isinstance(node, Call):
        yield node.rule, tail
        ends = ending_parameters(rules[node.rule]) if node.args else ()
        for i, arg in enumerate(node.args):
            yield from references(arg, rules, tail and i in ends)
    elif isinstance(node, Seq):
        for i, item in enumerate(node.items):
            yield from references(item, rules, tail and i == len(node.items) - 1)
    else:
        tail = tail and not (isinstance(node, Repeat) and node.high != 1)
        for item in nodes.children(node):
            yield from references(item, rules, tail)


def _check_arguments(group: set[str], corners: LeftCorners) -> None:
    """LeftRecursion unless every template of `group` hands its own parameters on as they are."""
    rules = corners.rules
    for name in sorted(group, key=lambda n: (rules[n].line or 0, n)):
        params = rules[name].params
        if params and len(group) > 1:
            raise LeftRecursion(name, "a template may call itself first, but not through another rule")
        for call in corners.calls(rules[name].body, name):
            same = [isinstance(a, Var) and a.name == p for a, p in zip(call.args, params)]
            if call.rule in group and not all(same):
                raise LeftRecursion(name, "hand the same parameters on in the same order, or put some text before")
            for i in corners.first_parameters(call.rule):
                if group.intersection(c for c, _ in corners.of(call.args[i], name)):
                    raise LeftRecursion(name, "write the template's text out here, or put some text before")


class _Split:
    """Rewrites one group; the rules it makes go into `out`."""

    def __init__(self, rules, empty: Nullable, group: set[str], out: dict[str, Rule], limits: Limits):
        self.rules, self.empty, self.group, self.out = rules, empty, group, out
        self.limits, self.made = limits, 0
        self.heads = {n: list(self.split(rules[n].body, n)) for n in sorted(group)}
        if len(group) > 1:  # each rule gets its own copy of all that may follow
            self.count(6 * len(group) * sum(map(len, self.heads.values())))

    def turn(self, target: str) -> None:
        """Rules for `target` that first read a base case, then what followed each recursion."""
        rule, args = self.rules[target], tuple(map(Var, self.rules[target].params))
        if len(self.group) == 1:
            own = self.heads[target]
            again = nodes.repeat(nodes.alt([rest for head, rest in own if head]), 0, None)
            body = nodes.seq([nodes.alt([rest for head, rest in own if not head]), again])
        else:
            every = [(name, head, rest) for name, found in self.heads.items() for head, rest in found]
            body = nodes.alt([nodes.seq([r, Call(f"{target}${n}")]) for n, head, r in every if not head])
            for name in self.group:
                steps = [nodes.seq([r, Call(f"{target}${n}")]) for n, head, r in every if head == name]
                after = nodes.alt([*steps, EMPTY] if name == target else steps)
                self.out[f"{target}${name}"] = Rule(f"{target}${name}", after)
        if self.empty.rule(target):
            self.out[_with_text(target)] = Rule(_with_text(target), body, rule.params, rule.line)
            body = nodes.alt([Call(_with_text(target), args), EMPTY])
        self.out[target] = Rule(target, body, rule.params, rule.line)

    def split(self, node: Node, rule: str) -> Iterator[tuple[str | None, Node]]:
        """What `node` reads, the empty text aside, as (leading call into the group or None, what follows)."""
        if isinstance(node, Call) and node.rule in self.group:
            yield node.rule, EMPTY
        elif isinstance(node, Alt):
            for item in node.items:
                yield from self.split(item, rule)
        elif isinstance(node, Repeat):
            more = nodes.repeat(node.item, max(node.low - 1, 0), None if node.high is None else node.high - 1)
            for head, after in self.split(node.item, rule):
                yield head, nodes.seq([after, more])
        elif isinstance(node, Seq):
            for i, item in enumerate(node.items):
                rest = node.items[i + 1 :]
                self.count(len(rest) + 1)
                for head, after in self.split(item, rule):
                    yield head, nodes.seq([after, *rest])
                if not self.empty.sure(item, rule):
                    return
        elif isinstance(node, Call) and self.empty.sure(node, rule):
            yield None, self.called_with_text(node, rule)
        else:
            yield None, node

    def count(self, made: int) -> None:
        self.made += made
        self.limits.check("nodes", self.made, "turning left recursion round takes too many nodes")

    def called_with_text(self, node: Call, rule: str) -> Node:
        """A call of a rule outside the group that may be empty, when it isn't."""
        callee = self.rules[node.rule]
        if callee.params:
            raise LeftRecursion(rule, f"{node.rule}{{...}} may be empty and hides the recursion: put some text before")
        name = _with_text(node.rule)
        if name not in self.out:
            self.out[name] = Rule(name, EMPTY)  # for calls of itself
            inner = _Split(self.rules, self.empty, set(), self.out, self.limits)
            body = nodes.alt([rest for _, rest in inner.split(callee.body, node.rule)])
            self.out[name] = Rule(name, body, (), callee.line)
        return Call(name)


def _with_text(name: str) -> str:
    return f"{name}$text"


def _joined(node: Node) -> Node:
    """`node` with alternatives that begin alike made one."""
    if isinstance(node, Seq):
        return nodes.seq([_joined(i) for i in node.items])
    if isinstance(node, Repeat):
        return nodes.repeat(_joined(node.item), node.low, node.high)
    if not isinstance(node, Alt):
        return node
    parts: dict[tuple, list[tuple[Node, ...]]] = {}
    for item in node.items:
        for one in (i for i in (item.items if isinstance(item, Alt) else (item,))):
            items = one.items if isinstance(one, Seq) else (one,)
            key = nodes.shape(items[0]) if items and not nodes.ends_action(items[0]) else (id(one),)
            parts.setdefault(key, []).append(items)
    out = []
    for same in parts.values():
        if len(same) == 1:
            out.append(nodes.seq([_joined(i) for i in same[0]]))
        else:
            rests = nodes.alt([nodes.seq(items[1:]) for items in same])
            out.append(nodes.seq([_joined(same[0][0]), _joined(rests)]))
    return nodes.alt(out)

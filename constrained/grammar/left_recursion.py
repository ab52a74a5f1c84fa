"""Elimination of left recursion; every other recursion is handled by the automaton's stack.

A rule that calls itself before it has read anything would push frames for ever. Within
a group of such rules, a text begins with a base case, and what follows each recursion can
only come after it: ``list: list "," item | item`` becomes ``list: item ("," item)*``. Nullable
rules can hide the recursion (``a: b? a "x" | "y"``), so what is split is the
language without the empty text. (Aho, Lam, Sethi and Ullman, *Compilers*, section 4.3.3,
and for groups Moore, "Removing left recursion from context-free grammars", 2000, section 5.)

Alternatives of recursive rules that begin alike are left-factored: two stacks for every level
would be 2^depth ways to be at one position.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial

from constrained.grammar import nodes
from constrained.grammar.analysis import Nullable, cyclic_components
from constrained.grammar.nodes import (
    EMPTY,
    LEAVES,
    Alt,
    Inner,
    LiteralText,
    Node,
    Related,
    Repeat,
    Rule,
    RuleRef,
    Seq,
    Var,
)
from constrained.grammar.nonempty import nonempty_name, nonempty_rules
from constrained.grammar.traverse import reached
from constrained.limits import Limits


class LeftRecursion(Exception):
    """Left recursion that can't be eliminated; `.rule` and `.line` say where, `.hint` what to do."""

    def __init__(self, rule: str, hint: str, line: int | None = None):
        self.rule, self.hint, self.line = rule, hint, line
        super().__init__(rule)


def eliminate_left_recursion(rules: dict[str, Rule], limits: Limits) -> dict[str, Rule]:
    """`rules` without left recursion.

    Raises LeftRecursion: it can't be eliminated. Raises LimitError: it takes more nodes than there may be.
    """
    size = 0
    for rule in rules.values():
        size += len(rule.nodes)
    if size > limits.nodes:
        limits.check("nodes", size, f"a grammar of {size:,} nodes")
    out = dict(rules)
    if _may_be_left_recursive(rules):
        if _eliminate_groups(rules, out, limits):
            check_left_recursion(out)
        _check_longer_arguments(out)
    alike = []
    for name, rule in out.items():
        for node in rule.nodes:
            if type(node) is Alt and _may_begin_alike(node):
                alike.append(name)
                break
    recursive = self_embedding_rules(out) if alike else ()
    for name in alike:
        if name in recursive:
            rule = out[name]
            out[name] = Rule(name, _left_factor(rule.body), rule.params, rule.line)
    return out


def _may_be_left_recursive(rules: Mapping[str, Rule]) -> bool:
    """Whether some of the rules may lead back to themselves before any text; if not, they surely don't."""
    first: dict[str, set[str]] = {name: set() for name in rules}
    empty: dict[str, bool] = {}
    for name in reversed(first):  # what is called mostly stands after what calls it
        empty[name] = _add_first_calls(rules[name].body, first[name], empty)
    return bool(cyclic_components(first))


def _add_first_calls(node: Node, first: set[str], empty: Mapping[str, bool]) -> bool:
    """Add the rules that `node` may begin with; return whether it may be empty, as rules may that aren't in `empty`."""
    kind = type(node)
    if kind is LiteralText or kind is nodes.Chars:
        return False
    if isinstance(node, nodes.Choices):
        return not node.values[0]
    if isinstance(node, RuleRef) and not node.args:
        first.add(node.rule)
        return empty.get(node.rule, True)
    if isinstance(node, Seq):
        for item in node.items:  # noqa: SIM110  # faster than `all`
            if not _add_first_calls(item, first, empty):
                return False
        return True
    if isinstance(node, Alt):
        may_be = False
        for item in node.items:
            if _add_first_calls(item, first, empty):
                may_be = True
        return may_be
    if isinstance(node, Repeat):
        return _add_first_calls(node.item, first, empty) or not node.low
    first.update(call.rule for call in nodes.find(node, RuleRef))
    return True


def _eliminate_groups(rules: dict[str, Rule], out: dict[str, Rule], limits: Limits) -> bool:
    """Write rules without left recursion to `out`; return whether there are any."""
    recursive = self_embedding_rules(rules)
    if not recursive:
        return False
    nullable = Nullable(rules)
    corners = LeftCorners(rules, nullable)
    groups = corners.groups(recursive)
    for group in groups:
        _check_arguments(group, corners)
        elimination = _Elimination(rules, nullable, group, out, limits)
        for name in sorted(group):
            elimination.rewrite(name)
    return bool(groups)


def _check_longer_arguments(rules: Mapping[str, Rule]) -> None:
    """Raise LeftRecursion if a template leads back to itself before any text, with longer arguments each time.

    Where nothing is read after the call, other templates reach the same frames again; such a one never does.
    """
    calls = {name: rule.find(RuleRef) for name, rule in rules.items() if rule.params}
    longer = {name for name, found in calls.items() if any(any(map(_is_longer, call.args)) for call in found)}
    if not longer:
        return
    corners = LeftCorners(rules, Nullable(rules))
    begins = {name: [*corners.calls(rules[name].body, name)] for name in calls}
    for group in cyclic_components({name: [call.rule for call in found] for name, found in begins.items()}):
        for name in sorted(longer.intersection(group)):
            if any(call.rule in group and any(map(_is_longer, call.args)) for call in begins[name]):
                hint = "put some text before the call, or hand the same parameters on"
                raise LeftRecursion(name.split("$")[0], hint, rules[name].line)


def _is_longer(arg: Node) -> bool:
    """Whether an argument is more than a parameter, and has one in it."""
    return not isinstance(arg, (Var, Related)) and bool(nodes.find(arg, Var))


def check_left_recursion(rules: Mapping[str, Rule], slots: frozenset[str] = frozenset()) -> None:
    """Raise LeftRecursion if a rule calls itself before any text, `slots` being bound to the empty text."""
    for group in LeftCorners(rules, Nullable(rules, slots)).groups(rules):
        name = min(group, key=lambda n: (rules[n].line or 0, n))
        written = name.split("$")[0]  # a rule that was made of it may have no line
        hint = "what stands before the recursion may be empty: put some text there"
        raise LeftRecursion(written, hint, rules.get(written, rules[name]).line)


RuleCalls = tuple[set[str], set[str]]
"""The rules that a rule calls with something left to read after the call, and those of its tail calls."""


def self_embedding_rules(rules: Mapping[str, Rule]) -> set[str]:
    """The rules whose recursion takes a stack: something is still to be read after the recursive call."""
    ends: dict[str, set[int]] = {}
    return set().union(
        *self_embedding_groups({name: rule_calls_in(rule.body, rules, ends) for name, rule in rules.items()})
    )


def self_embedding_groups(calls: Mapping[str, RuleCalls]) -> list[set[str]]:
    """The groups of rules that call each other in a cycle, some call of which is no tail call; callees first."""
    calling = {name for name, found in calls.items() if any(found)}
    if all(calling.isdisjoint(nested) for nested, _ in calls.values()):
        return []  # nothing is read after any call that may lead back
    groups = map(set, cyclic_components({name: sorted(nested | last) for name, (nested, last) in calls.items()}))
    return [group for group in groups if not all(group.isdisjoint(calls[name][0]) for name in group)]


def rule_calls_in(
    node: Node,
    rules: Mapping[str, Rule],
    ends: dict[str, set[int]],
    below: Callable[[Node], Sequence[Node]] = operator.attrgetter("parts"),
    entered: Callable[[str], Container[int]] | None = None,
) -> RuleCalls:
    """The calls in `node`.

    `ends` remembers the :func:`ending_parameters` of rules from call to call. `below` gives the parts of a node that
    are looked into, the first ones at least; `entered` the numbers of a rule's arguments that are, by default all.
    """
    calls: RuleCalls = set(), set()

    def visit(node: Node, tail: bool) -> None:
        if isinstance(node, RuleRef):
            calls[tail].add(node.rule)
            if node.args and node.rule not in ends:
                ends[node.rule] = ending_parameters(rules[node.rule])
            for i, arg in enumerate(node.args):
                if entered is None or i in entered(node.rule):
                    visit(arg, tail and i in ends[node.rule])
        elif isinstance(node, Seq):
            last = len(node.items) - 1
            for i, item in enumerate(below(node)):
                if type(item) not in LEAVES:
                    visit(item, tail and i == last)
        elif type(node) not in LEAVES:
            tail = tail and not isinstance(node, Inner) and not (isinstance(node, Repeat) and node.high != 1)
            to = calls[tail]
            for item in below(node):
                if type(item) is RuleRef and not item.args:  # most of what isn't a leaf
                    to.add(item.rule)
                elif type(item) not in LEAVES:
                    visit(item, tail)

    visit(node, True)
    return calls


def ending_parameters(rule: Rule) -> set[int]:
    """The indices of the parameters that stand only at the rule's end."""
    if not rule.params:
        return set()
    last = {id(var) for var in _last_vars(rule.body)}
    inside = {var.name for var in rule.find(Var) if id(var) not in last}
    return {i for i, param in enumerate(rule.params) if param not in inside}


def _last_vars(node: Node) -> Iterator[Var]:
    match node:
        case Var():
            yield node
        case Alt():
            for item in node.items:
                yield from _last_vars(item)
        case Seq(items=(*_, last)):
            yield from _last_vars(last)
        case Repeat(high=1):
            yield from _last_vars(node.item)


class LeftCorners:
    """The calls that rules can begin with (their left corners), and whether they are tail calls."""

    def __init__(self, rules: Mapping[str, Rule], nullable: Nullable):
        self.rules, self.nullable = rules, nullable
        self._first: dict[str, set[int]] = {}
        self._ends: dict[str, set[int]] = {}

    def groups(self, among: Iterable[str]) -> list[set[str]]:
        """The groups of rules that call each other before any text, with something to read after.

        `among`: the rules that may be in one; they are all `self_embedding_rules`.
        """
        return self_embedding_groups({name: self.of(self.rules[name].body, name) for name in among})

    def of(self, node: Node, rule: str) -> RuleCalls:
        """The calls that `node`, in `rule`, can begin with."""
        below = partial(self.first_items, rule=rule)
        return rule_calls_in(node, self.rules, self._ends, below, self.first_parameters)

    def first_items(self, node: Node, rule: str) -> Sequence[Node]:
        """The nodes directly below `node` that it can begin with."""
        below = node.parts
        if isinstance(node, Seq):
            for i, item in enumerate(below):
                if not self.nullable.sometimes(item, rule):
                    return below[: i + 1]
        return below

    def calls(self, node: Node, rule: str) -> Iterator[RuleRef]:
        """Iterate over the calls that `node` can begin with, those in arguments aside."""
        if isinstance(node, RuleRef):
            yield node
            return
        for item in self.first_items(node, rule):
            yield from self.calls(item, rule)

    def first_parameters(self, name: str) -> set[int]:
        """The indices of the parameters whose argument a text of the rule can begin with."""
        if name not in self._first:
            params = self.rules[name].params
            self._first[name] = {i for i, p in enumerate(params) if self._begins_with((name, p))}
        return self._first[name]

    def _begins_with(self, parameter: tuple[str, str] | None) -> bool:
        return None in reached([parameter], self._uses_of)

    def _uses_of(self, parameter: tuple[str, str] | None) -> Iterator[tuple[str, str] | None]:
        return self._uses(self.rules[parameter[0]].body, *parameter) if parameter else iter(())

    def _uses(self, node: Node, rule: str, param: str) -> Iterator[tuple[str, str] | None]:
        """Yield None where `node` can begin with `param`, and the (rule, parameter) that it is given to there."""
        match node:
            case Var():
                if node.name == param:
                    yield None
            case Related():
                return  # the parameter's value only selects which values these are
            case RuleRef():
                for arg, name in zip(node.args, self.rules[node.rule].params):
                    if any(True for _ in self._uses(arg, rule, param)):
                        yield node.rule, name
            case _:
                for item in self.first_items(node, rule):
                    yield from self._uses(item, rule, param)


def _check_arguments(group: set[str], corners: LeftCorners) -> None:
    """Raise LeftRecursion unless every template of `group` gives its own parameters to the others unchanged."""
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
                if not all(map(group.isdisjoint, corners.of(call.args[i], name))):
                    raise LeftRecursion(name, "write the template's text out here, or put some text before")


class _Elimination:
    """Rewrites one group of rules; the new rules go into `out`."""

    def __init__(
        self,
        rules: Mapping[str, Rule],
        nullable: Nullable,
        group: set[str],
        out: dict[str, Rule],
        limits: Limits,
    ):
        self.rules, self.nullable, self.group, self.out = rules, nullable, group, out
        self.limits, self.made = limits, 0
        self.heads = {n: list(self.split(rules[n].body, n)) for n in sorted(group)}
        if len(group) > 1:  # each rule gets its own copy of everything that can follow
            self.count(6 * len(group) * sum(map(len, self.heads.values())))

    def rewrite(self, target: str) -> None:
        """Write `target` as a base case, then what followed each recursion."""
        rule = self.rules[target]
        args: Sequence[Node] = tuple(map(Var, rule.params))
        if len(self.group) == 1:  # base (rest)*
            own = self.heads[target]
            again = nodes.repeat(nodes.alt([rest for head, rest in own if head]), 0, None)
            body = nodes.seq([nodes.alt([rest for head, rest in own if not head]), again])
        else:  # `target$name`: what can follow once a text of `name` is read, up to the end of one of `target`
            every = [(name, head, rest) for name, found in self.heads.items() for head, rest in found]
            body = nodes.alt([nodes.seq([r, RuleRef(f"{target}${n}")]) for n, head, r in every if not head])
            for name in self.group:
                steps = [nodes.seq([r, RuleRef(f"{target}${n}")]) for n, head, r in every if head == name]
                after = nodes.alt([*steps, EMPTY] if name == target else steps)
                self.out[f"{target}${name}"] = Rule(f"{target}${name}", after)
        if self.nullable.rule(target):
            text = nonempty_name(target)
            self.out[text] = Rule(text, body, rule.params, rule.line)
            body = nodes.alt([RuleRef(text, tuple(args)), EMPTY])
        self.out[target] = Rule(target, body, rule.params, rule.line)

    def split(self, node: Node, rule: str) -> Iterator[tuple[str | None, Node]]:
        """Split what `node` reads, the empty text aside, into (leading call into the group or None, what follows)."""
        match node:
            # Of each piece only what comes first is split; what follows it is kept whole.
            case RuleRef() if node.rule in self.group:
                yield node.rule, EMPTY
            case RuleRef() if self.nullable.always(node, rule):
                yield None, self.nonempty_call(node, rule)
            case Alt():
                for item in node.items:
                    yield from self.split(item, rule)
            case Repeat():
                more = nodes.repeat(node.item, max(node.low - 1, 0), None if node.high is None else node.high - 1)
                for head, after in self.split(node.item, rule):
                    yield head, nodes.seq([after, more])
            case Seq():  # the first item that isn't empty may be any up to the first that can't be empty
                for i, item in enumerate(node.items):
                    rest = node.items[i + 1 :]
                    self.count(len(rest) + 1)
                    for head, after in self.split(item, rule):
                        yield head, nodes.seq([after, *rest])
                    if not self.nullable.always(item, rule):
                        return
            case _:
                yield None, node

    def count(self, made: int) -> None:
        self.made += made
        self.limits.check("nodes", self.made, "eliminating left recursion takes too many nodes")

    def nonempty_call(self, node: RuleRef, rule: str) -> Node:
        """A call for the nonempty texts of a nullable rule outside the group."""
        if self.rules[node.rule].params:
            raise LeftRecursion(rule, f"{node.rule}{{...}} may be empty and hides the recursion: put some text before")
        call = RuleRef(nonempty_name(node.rule))
        if call.rule not in self.out:
            self.out.update(nonempty_rules(self.out, self.nullable, call))
        return call


def _left_factor(node: Node) -> Node:
    """`node` with alternatives that begin alike joined; the same object if there are none."""
    if isinstance(node, Seq):
        items = [item if type(item) in LEAVES else _left_factor(item) for item in node.items]
        return node if _same(items, node.items) else nodes.seq(items)
    if isinstance(node, Repeat):
        item = node.item if type(node.item) in LEAVES else _left_factor(node.item)
        return node if item is node.item else nodes.repeat(item, node.low, node.high)
    return _left_factor_alternatives(node) if isinstance(node, Alt) else node


def _may_begin_alike(node: Alt) -> bool:
    """Whether some alternatives may begin alike; if not, they surely don't."""
    seen: set[object] = set()
    for one in node.items:
        first = one.items[0] if type(one) is Seq and one.items else one
        key: object = type(first)
        if type(first) is RuleRef:
            key = first.rule
        elif type(first) is LiteralText:
            key = first.data
        elif type(first) is nodes.Chars:
            key = first.chars
        if key in seen or key is Alt:
            return True
        seen.add(key)
    return False


def _left_factor_alternatives(node: Alt) -> Node:
    by_first: dict[tuple, list[Node]] = {}
    for item in node.items:
        for one in item.items if isinstance(item, Alt) else (item,):
            first = _first_item(one)
            if type(first) is LiteralText or (type(first) is RuleRef and not first.args):  # most of them
                key = nodes.shape(first)
            else:  # what comes after the end of an action is the action's own: it is found by its identity
                key = nodes.shape(first) if first and not nodes.has_step(first) else (id(one),)
            by_first.setdefault(key, []).append(one)
    out = []
    for alike in by_first.values():
        if len(alike) == 1:
            out.append(_left_factor(alike[0]))
        else:
            rests = nodes.alt([nodes.seq(one.items[1:]) if isinstance(one, Seq) else EMPTY for one in alike])
            out.append(nodes.seq([_left_factor(_first_item(alike[0]) or EMPTY), _left_factor(rests)]))
    return node if _same(out, node.items) else nodes.alt(out)


def _first_item(node: Node) -> Node | None:
    """The first item of a sequence, or `node` itself; None if the sequence has no items."""
    if not isinstance(node, Seq):
        return node
    return node.items[0] if node.items else None


def _same(items: Sequence[Node], others: Sequence[Node]) -> bool:
    return len(items) == len(others) and all(map(operator.is_, items, others))

"""Bounds on the number of bytes to the end of a text, computed from the grammar alone.

While a budget is larger than the upper bound, it rules nothing out and costs nothing. Bounds are in
bytes: in a vocabulary that has every single byte as a token, n bytes are at most n tokens. Where
recursion needs a stack, the depth depends on the text. A budget is then bounded by how much deeper
one token can nest (see `nesting_calls`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from constrained.automaton.graph_stack import forks_below
from constrained.automaton.liveness import has_gaps
from constrained.automaton.positions import (
    Accept,
    Fork,
    InChoices,
    InExcept,
    InJsonText,
    InLiteral,
    InText,
    Position,
    Stack,
    StepEnd,
)
from constrained.automaton.state import State
from constrained.grammar import nodes as n
from constrained.grammar.grammar import ContextFreeGrammar, SlotValue, grammars_in, texts_in
from constrained.grammar.json_text import LONGEST_CHARACTER, JsonText, Table, TextState
from constrained.grammar.left_recursion import RuleCalls, self_embedding_groups
from constrained.grammar.members import MemberSequence
from constrained.grammar.nodes import STEP

UNBOUNDED = float("inf")
_MAX_ROUNDS = 64

Bound = tuple[float, float]
"""(bytes of a shortest text, bytes to the end from the position that is farthest from it)."""


class Distance:
    """Bounds on the fewest bytes to the end, for the states of one grammar's automaton.

    Parameters
    ----------
    lower : bool
        Compute lower bounds instead; then only :meth:`of_position` may be used.
    """

    def __init__(self, lower: bool = False):
        self._lower = lower
        self._bounds: dict[int, _Bounds] = {}
        self._rests: dict[Stack, Bound] = {None: (0, 0)}
        self._nodes: dict[n.Node, Bound] = {}

    def farthest(self, state: State) -> float:
        """Bound the fewest bytes to the end from `state` and from every later state that nests no deeper."""
        return max((self._farthest(q) for q in state.positions), default=0)

    def nearest(self, state: State) -> float:
        """Bound the fewest bytes to the end from `state`; some next byte reduces the bound by at least one."""
        return min((self.of_position(q) for q in state.positions), default=0)

    def nesting(self, grammar: ContextFreeGrammar) -> tuple[float, frozenset[int]]:
        """The bytes that one more level of nesting can add, and the bytes that begin one (`nesting_calls`)."""
        deepest: float = 0
        begins: frozenset[int] = frozenset()
        for inner in grammar.nested():
            bounds = self._of_grammar(inner)
            bodies = [rule.body for rule in inner.all_rules().values()] if bounds.nests else []
            calls = [c for body in bodies for c in n.walk(body) if isinstance(c, n.RuleRef) and id(c) in bounds.nests]
            bounds.solve(calls)
            deepest = max([deepest, *(bounds.rules[call.rule][1] for call in calls)])
            begins |= bounds.begins
        return deepest, begins

    def of_position(self, q: Position) -> float:
        """Bound the fewest bytes to the end from `q`."""
        if isinstance(q, (Accept, StepEnd)):
            return 0
        short = self.of_rest(q.rest)[0]
        if isinstance(q, InLiteral):
            return len(q.data) - q.at + short
        if isinstance(q, InChoices):
            if q.bind is not None and q.rest is not None and isinstance(q.rest.node, MemberSequence):
                return self.of_rest(q.rest.next)[0] + self._of_name(q, q.rest.node, q.rest.env.grammar)
            pick = min if self._lower else max
            return pick(map(len, q.values[q.low : q.high])) - q.depth + short
        if isinstance(q, InExcept):
            return (1 if self._lower else _beyond(q.values)) + short
        if isinstance(q, InJsonText):
            return q.table.bytes_left(q.state, q.inside, self._lower) + short
        assert isinstance(q, InText)
        each = len(q.chars.shortest())
        begun = each if q.inside is None else q.inside[0]
        return begun + each * max(q.low - 1, 0) + short

    def _of_name(self, q: InChoices, node: MemberSequence, grammar: ContextFreeGrammar) -> float:
        """Bound the fewest bytes from inside a name to the end of its object."""
        short, far = self._of_node(node, grammar)
        if not self._lower:
            return far
        # It may be one of the names that are asked for; if not, these are still to come.
        of, names = node.of, q.values[q.low : q.high]
        asked = any((of.required | of.condition_bits) >> of.names[name] & 1 for name in names)
        needed = 0 if asked else self._of_grammar(grammar).needed[node]
        return max(short, needed + min(map(len, names))) - q.depth

    def _farthest(self, q: Position) -> float:
        if isinstance(q, (Accept, StepEnd)):
            return 0
        short, far = self.of_rest(q.rest)
        if isinstance(q, InText):
            return max(far, 4 * max(q.low, 1) + short)
        if isinstance(q, InJsonText):
            return max(far, LONGEST_CHARACTER * (q.table.farthest + 1) + short)
        if isinstance(q, InChoices):
            return max(far, max(map(len, q.values[q.low : q.high])) - q.depth + short)
        return max(far, self.of_position(q))

    def of_rest(self, frame: Stack) -> Bound:
        """Bound the fewest bytes from `frame` to the end, and from any position after `frame`."""
        chain = []
        below = frame
        while below is not None and below not in self._rests:
            if isinstance(below, Fork):
                for fork in forks_below(below, self._rests):
                    shorts, fars = zip(*map(self.of_rest, fork.ways))
                    self._rests[fork] = min(shorts), max(fars)
                break
            chain.append(below)
            below = below.next
        bound = self._rests[below]
        for part in reversed(chain):
            grammar = part.env.grammar
            if _ends_action(part.node, grammar):
                bound = 0, 0
            else:
                short, far = self._of_node(part.node, grammar)
                bound = short + bound[0], max(far + bound[0], bound[1])
            self._rests[part] = bound
        return bound

    def _of_node(self, node: n.Node, grammar: ContextFreeGrammar) -> Bound:
        if node not in self._nodes:
            self._nodes[node] = self._of_grammar(grammar).bounds_of(node)
        return self._nodes[node]

    def _of_grammar(self, grammar: ContextFreeGrammar) -> _Bounds:
        if id(grammar) not in self._bounds:
            self._bounds[id(grammar)] = _Bounds(grammar, self._lower, self._of_grammar)
        return self._bounds[id(grammar)]


class _Bounds:
    """Bounds of each node of one grammar: upper ones, or lower ones with `lower`.

    Where a slot may have no value for some key, an alternative can be missing, so alternatives get
    the bound of the longest. A parameter gets the bound of the longest argument of any call. The
    iteration starts from unbounded rules, so that no bound is ever too low. Calls that nest count
    only as their shortest text, because their depth depends on the text.
    """

    def __init__(self, grammar: ContextFreeGrammar, lower: bool, of_grammar: Callable[[ContextFreeGrammar], _Bounds]):
        self.grammar = grammar
        self.lower = lower
        self.of_grammar = of_grammar
        self.nests, self.begins = grammar.of_rules(nesting_calls)
        self.rules: dict[str, Bound] = {}
        self.needed: dict[MemberSequence, float] = {}  # for lower bounds: bytes of the required names and their values
        self._pick_way = max if not lower and has_gaps(grammar) else min
        self._pick_value = min if lower else max
        self._arguments = _arguments(grammar)
        self._slots: dict[str, Bound] = {}
        self._parameters: dict[str, Bound] = {}

    def bounds_of(self, node: n.Node) -> Bound:
        """The bounds of `node`; those of the rules that it can reach are computed first."""
        self.solve([node])
        return self._of(node)

    def solve(self, nodes: Iterable[n.Node]) -> None:
        """Compute the bounds of the rules that `nodes` can reach; unbounded if the iteration doesn't converge."""
        reached = self._reached(nodes)
        if not reached:
            return
        rules = [name for name in self.grammar.all_rules() if name in reached]  # in the file's order
        self.rules.update(dict.fromkeys(rules, (UNBOUNDED, 0)))
        if self._rounds(rules, 0):
            # The shortest texts are known. Now iterate the farthest positions, from below.
            self.rules.update((name, (self.rules[name][0], 0)) for name in rules)
            if self._rounds(rules, 1):
                return
        self.rules.update(dict.fromkeys(rules, (0, 0) if self.lower else (UNBOUNDED, UNBOUNDED)))
        self._parameters.clear()

    def _reached(self, nodes: Iterable[n.Node]) -> set[str]:
        """The rules without bounds that `nodes` call within this action, directly or indirectly."""
        reached: set[str] = set()
        seen: set[str] = set()  # parameters
        work = list(nodes)
        while work:
            node = work.pop()
            if isinstance(node, JsonText) and node.table is None:
                work.append(node.written)
            elif isinstance(node, n.RuleRef):
                if node.rule not in self.rules and node.rule not in reached:
                    reached.add(node.rule)
                    work.append(self.grammar.rules[node.rule].body)
            elif isinstance(node, n.Var):
                if node.name not in seen and node.name not in self._parameters:
                    seen.add(node.name)
                    work += [value for value in self._arguments.get(node.name, ()) if isinstance(value, n.Node)]
            elif isinstance(node, n.Seq):
                work += self._in_action(node)
            elif isinstance(node, n.Scoped):
                work.append(node.node)
            else:
                work += node.parts
        return reached

    def _rounds(self, rules: list[str], which: int) -> bool:
        """Iterate the bounds of `rules` until those at index `which` converge; False if they don't."""
        for i in range(_MAX_ROUNDS):
            before = {name: self.rules[name] for name in rules}
            self._parameters.clear()
            # Callees often stand below their callers, so the reverse order converges in fewer rounds.
            for name in reversed(rules) if i % 2 == 0 else rules:
                self.rules[name] = self._of(self.grammar.rules[name].body)
            if all(self.rules[name][which] == bounds[which] for name, bounds in before.items()):
                return True
            if which and i >= _MAX_ROUNDS // 2:  # a bound that still grows has no limit
                grown = [name for name in rules if self.rules[name][1] > before[name][1]]
                self.rules.update((name, (self.rules[name][0], UNBOUNDED)) for name in grown)
        return False

    def _of(self, node: n.Node) -> Bound:
        match node:
            case n.LiteralText(data):
                return len(data), len(data)
            case n.Chars(chars):
                return len(chars.shortest()), 4
            case n.Choices(values):
                return min(map(len, values)), max(map(len, values))
            case n.Except(_, values):
                return (0 if self.lower else _beyond(values)), _beyond(values)
            case n.Seq():
                short, far = 0.0, 0.0
                for item in reversed(self._in_action(node)):
                    item_short, item_far = self._of(item)
                    far = max(far, item_far + short)
                    short += item_short
                return short, far
            case n.Alt(items):
                parts = [self._of(item) for item in items]
                return self._pick_way((s for s, _ in parts), default=UNBOUNDED), max((f for _, f in parts), default=0)
            case n.Repeat(item, low):
                short, far = self._of(item)
                # 0 * UNBOUNDED would be NaN
                return (low * short if low else 0), far + ((low - 1) * short if low > 1 else 0)
            case TextState(fewest=fewest, high=high):
                short = fewest() * (1 if self.lower else LONGEST_CHARACTER)
                return short, UNBOUNDED if high is None else LONGEST_CHARACTER * high
            case n.RuleRef(rule):
                short, far = self.rules[rule]
                return short, short if id(node) in self.nests else far
            case n.Scoped(inner):
                return self._of(inner)
            case MemberSequence():
                return self._of_members(node)
            case JsonText(table=None):
                return self._of(node.written)
            case JsonText(table=Table() as table):
                far = LONGEST_CHARACTER * (table.farthest + 1)
                return (table.bytes_left(0, 0, least=True), 1) if self.lower else (far, far)
            case n.LazyText(_, longest):
                return (1, 1) if self.lower else (longest, longest)
            case n.Var(name):
                if name not in self._parameters:
                    self._parameters[name] = self._of_parameter(name)
                return self._parameters[name]
            case n.Related():  # an unknown subset of the slot's values
                return _extent(self._of_values(self.grammar.bindings[node.slot.name]), self._pick_value)
            case n.Slot(name):
                if name not in self._slots:
                    value = self.grammar.bindings.get(name)
                    self._slots[name] = (0, 0) if value is None else _extent(self._of_values(value), self._pick_way)
                return self._slots[name]
        raise TypeError(f"no kind of node: {node!r}")

    def _of_members(self, node: MemberSequence) -> Bound:
        of, written = node.of, node.written
        apart = self._of(of.between)[0]
        spelled = [0] * len(of.values)
        for text, i in of.names.items():
            spelled[i] = max(spelled[i], len(text)) if spelled[i] and not self.lower else len(text)
        one = {
            i: [self._of(value) for value, _ in variants]
            for i, variants in enumerate(of.values)
            if not written >> i & 1
        }
        shorts = {i: spelled[i] + min(short for short, _ in ways) for i, ways in one.items()}
        must = [short for i, short in shorts.items() if of.required >> i & 1]
        may = sorted(short for i, short in shorts.items() if not of.required >> i & 1)
        others, last = self._of(of.others), self._of(of.last)
        counted = node.others if of.apart else min(node.others, 1)
        fill = max(1 - len(must), of.low - written.bit_count() - counted - len(must), 0)
        if of.others is not n.NEVER:
            may = sorted([*may, *[others[0]] * (fill if of.apart else 1)])
        parts = must + may[:fill]
        if of.shown & ~node.shown and not self.lower:
            parts.append(last[0] if of.last is not n.NEVER else sum(may))
        if of.condition and not self.lower:
            parts = must + may
        short = sum(parts) + (apart * (len(parts) - 1) if len(parts) > 1 else 0)  # as above
        if self.lower:
            needed = sum(must) + apart * max(len(must) - 1, 0)
            if of.condition and (asked := of.least(written, lambda i: shorts[i] + apart)):
                needed += asked - apart * (not must)
            self.needed[node] = needed
            short = max(short, needed)
        begun = [spelled[i] + max(far, short) for i, ways in one.items() for short, far in ways]
        begun += [max(bound) for node, bound in ((of.others, others), (of.last, last)) if node is not n.NEVER]
        return short, max(begun, default=0) + short + apart + self._of(of.between)[1]

    def _of_parameter(self, name: str) -> Bound:
        result = []
        for value in self._arguments.get(name, ()):
            short, far = (len(value), len(value)) if isinstance(value, bytes) else self._of(value)
            if isinstance(value, (n.Slot, n.Choices, n.Related)) and not self.lower:
                short = far  # any one of its values, not only the shortest
            result.append((short, far))
        return _extent(result, self._pick_value)

    def _in_action(self, node: n.Seq) -> tuple[n.Node, ...]:
        """The items of `node` before a `_STEP` at which the text ends; all items if there is none."""
        for i, item in enumerate(node.items):
            if _ends_action(item, self.grammar):
                return node.items[:i]
        return node.items

    def _of_values(self, value: SlotValue) -> list[Bound]:
        """The bounds of each text, and of each grammar, that a slot is bound to."""
        inner = [self.of_grammar(grammar).bounds_of(grammar.start) for grammar in grammars_in(value)]
        return [*((len(text), len(text)) for text in texts_in(value)), *inner]


def _beyond(values: tuple[bytes, ...]) -> int:
    """A length in bytes that is certainly greater than that of each of `values`."""
    return max(map(len, values)) + 4


def _extent(bounds: list[Bound], pick) -> Bound:
    return pick((short for short, _ in bounds), default=0), max((far for _, far in bounds), default=0)


def _ends_action(node: n.Node, grammar: ContextFreeGrammar) -> bool:
    return isinstance(node, n.Slot) and node.name == STEP and STEP not in grammar.bindings


# arguments of templates

Arguments = dict[str, list[n.Node | bytes]]
"""Parameter -> its arguments in all calls."""


def _arguments(grammar: ContextFreeGrammar) -> Arguments:
    """Collect the arguments of each parameter, also those passed on by other parameters."""
    arguments, passed_on = grammar.of_rules(_arguments_of_rules)
    own, more = _collect([grammar.start], grammar.all_rules())
    out = dict(arguments)
    for name, values in _propagate(own, [*passed_on, *more]).items():
        out[name] = [*out.get(name, ()), *values]
    return out


def _arguments_of_rules(rules: dict[str, n.Rule]) -> tuple[Arguments, list[tuple[str, str]]]:
    """The arguments of all calls in the rules, and (parameter, parameter of a called rule that it is passed on to)."""
    arguments, passed_on = _collect([rule.body for rule in rules.values()], rules)
    return _propagate(arguments, passed_on), passed_on


def _collect(tops: list[n.Node], rules: dict[str, n.Rule]) -> tuple[Arguments, list[tuple[str, str]]]:
    arguments: Arguments = {}
    passed_on: list[tuple[str, str]] = []
    for node in (node for top in tops for node in n.walk(top, scopes=True)):
        pairs: Iterable[tuple[str, n.Node | bytes | tuple[bytes, ...]]] = ()
        if isinstance(node, n.RuleRef):
            pairs = zip(rules[node.rule].params, node.args)
        elif isinstance(node, n.Scoped):
            pairs = node.values.items()
        for name, value in pairs:
            if isinstance(value, n.Var):
                passed_on.append((value.name, name))
            else:
                arguments.setdefault(name, []).extend(value if isinstance(value, tuple) else (value,))
    return arguments, passed_on


def _propagate(given: Arguments, passed_on: list[tuple[str, str]]) -> Arguments:
    """The arguments in `given`, and for each parameter also those that other parameters pass on to it."""
    onward: dict[str, set[str]] = {}
    for source, name in passed_on:
        onward.setdefault(source, set()).add(name)
    out: Arguments = {}
    for first, values in given.items():
        seen, work = {first}, [first]
        while work:
            name = work.pop()
            out.setdefault(name, []).extend(values)
            new = onward.get(name, set()) - seen
            seen |= new
            work += new
    return out


# nesting


def nesting_calls(rules: dict[str, n.Rule]) -> tuple[set[int], frozenset[int]]:
    """Find calls that cut every self-embedding cycle and that each follow a mandatory byte.

    A rule is self-embedding if it can call itself with something left to read after the call. If
    each such cycle passes a call before which a certain byte must be read, then a token nests at
    most one level deeper for each of those bytes in it, and one more, whose byte may have been read
    before the token.

    Returns
    -------
    calls : set of int
        Identities of RuleRef nodes. No rule is self-embedding without them. Empty if there are no such
        calls.
    bytes : frozenset of int
        One of these is read before each call.
    """
    sites = [(name, *site) for name, rule in rules.items() for site in _call_sites(rule.body)]
    entered: dict[
        str, frozenset[int]
    ] = {}  # what is read before every call of a rule is read before its own calls, too
    for _, _, callee, before, _ in sites:
        entered[callee] = entered.get(callee, before) & before
    sites = [
        (name, call, callee, before | entered.get(name, frozenset()), tail)
        for name, call, callee, before, tail in sites
    ]
    calls = {id(call) for _, call, _, _, _ in sites if call is not None}
    uncut = {id(call) for _, call, _, before, tail in sites if call is not None and (tail or not before)}
    order = sorted({byte for _, _, _, before, _ in sites for byte in before}, key=_preference)

    def cut(chosen: Iterable[int]) -> set[int]:
        """The calls that each follow one of the `chosen` bytes."""
        left = {id(call) for _, call, _, before, _ in sites if call is not None and before.isdisjoint(chosen)}
        return calls - left - uncut

    def nests(without: set[int]) -> bool:
        result: dict[str, RuleCalls] = {name: (set(), set()) for name in rules}
        for name, call, callee, _, tail in sites:
            if id(call) not in without:
                result[name][tail].add(callee)
        return bool(self_embedding_groups(result))

    if not nests(set()) or nests(cut(order)):
        return set(), frozenset()
    chosen = order
    for byte in reversed(order):  # leave out each byte without which the calls still cut every cycle
        fewer = [other for other in chosen if other != byte]
        if not nests(cut(fewer)):
            chosen = fewer
    return cut(chosen), frozenset(chosen)


def _call_sites(node: n.Node) -> Iterator[tuple[n.RuleRef | None, str, frozenset[int], bool]]:
    """Yield (call, rule called, bytes read before, whether nothing is left after); the call is None in an argument."""
    for call, before, tail in _calls(node, frozenset(), True):
        yield call, call.rule, before, tail
        for arg in call.args:
            for inner in n.find(arg, n.RuleRef):
                yield None, inner.rule, frozenset(), False


def _calls(node: n.Node, before: frozenset[int], tail: bool) -> Iterator[tuple[n.RuleRef, frozenset[int], bool]]:
    """Yield (call, bytes read before it, whether nothing is left after it) for each call in `node`."""
    if isinstance(node, n.RuleRef):
        yield node, before, tail
    elif isinstance(node, n.Seq):
        for i, item in enumerate(node.items):
            yield from _calls(item, before, tail and i == len(node.items) - 1)
            before = before | _mandatory(item)
    elif not isinstance(node, n.Scoped):
        tail = tail and not isinstance(node, n.Inner) and not (isinstance(node, n.Repeat) and node.high != 1)
        for item in node.parts:
            yield from _calls(item, before, tail)


def _mandatory(node: n.Node) -> frozenset[int]:
    """Bytes that every text of `node` has; perhaps not all of them."""
    match node:
        case n.LiteralText(data):
            return frozenset(data)
        case n.Seq(items):
            return frozenset().union(*map(_mandatory, items))
        case n.Choices(values):
            return frozenset.intersection(*map(frozenset, values))
        case n.Alt(items) if items:
            return frozenset.intersection(*map(_mandatory, items))
        case n.Repeat(item, low) if low:
            return _mandatory(item)
    return frozenset()


def _preference(byte: int) -> tuple[int, int]:
    """Sort key: brackets first, then other punctuation, since few tokens have many of them."""
    kind = 0 if byte in b"([{" else 2 if chr(byte).isalnum() or byte >= 0x80 or byte in b" -" else 1
    return kind, byte

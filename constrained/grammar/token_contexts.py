"""Replace tokens with lookaround by the texts that they read in each context.

What a token with lookaround reads depends on the text around it. So each rule is written once for every *context* in
which it can occur: what must be known of the text before it, and the conditions of earlier tokens on the text to come.
For each pair of contexts before and after it, a rule becomes a new rule. (Bar-Hillel, Perles and Shamir, "On formal
properties of simple phrase structure grammars", 1961: the intersection of a context-free language with a regular one.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, NamedTuple

from constrained.errors import GrammarError, LimitError
from constrained.grammar import nodes
from constrained.grammar.alternating_automaton import Steps
from constrained.grammar.assertions import ANY
from constrained.grammar.charset import CharSet, charset, partition
from constrained.grammar.first_follow import CharacterFollowSets, bits
from constrained.grammar.lookaround import MET, NEVER_MET, LookingToken
from constrained.grammar.nodes import (
    EMPTY,
    LEAVES,
    NEVER,
    Alt,
    Chars,
    Choices,
    LiteralText,
    Node,
    Related,
    Repeat,
    Rule,
    RuleRef,
    Seq,
    Slot,
    Var,
    find,
)
from constrained.grammar.template_instances import with_values
from constrained.grammar.traverse import reached, rebuild, units, users
from constrained.limits import Limits


@dataclass(eq=False, slots=True)
class LookingUse(Node):
    """One use of a token with lookaround in a grammar, until `resolve_tokens` replaces it.

    ``error(message, hint=...)`` creates a GrammarError at its place. If `lenient`, the token can be read where that
    would depend on the values of a slot.
    """

    node: Node
    name: str
    error: Callable[..., GrammarError]
    lenient: bool = False


def resolve_tokens(
    rules: dict[str, Rule], start: Node, limits: Limits
) -> tuple[dict[str, Rule], Node, list[LookingUse]]:
    """Replace every :class:`LookingUse` by what it reads where it stands in a text of `start`.

    Returns
    -------
    rules : dict of str to Rule
    start : Node
    asking : list of LookingUse
        Those that ask something of the text around them, or that read nothing at all.

    Raises
    ------
    GrammarError
        A slot's values would decide whether a token is read.
    LimitError
    """
    # Most tokens look at nothing but their own text: what they read is one node, wherever they stand.
    tokens = [token for rule in rules.values() for token in rule.find(LookingUse)]
    if not tokens:
        return rules, start, []
    steps = Steps(limits)
    looking: dict[Node, LookingToken] = {}
    made: dict[Node, Node] = {}
    extra: dict[str, Rule] = {}
    asking: list[LookingUse] = []
    for token in tokens:
        if token.node not in looking:
            _check_parts(token)
            found = looking[token.node] = _looking(token, steps)
            if found.sees_beyond or not any(found.ends):
                asking.append(token)
            if not found.sees_beyond:
                made[token.node], more = found.texts(f"{token.name}${len(extra)}")
                extra.update(more)

    def leaf(node: Node) -> Node:
        return made.get(node.node, node) if isinstance(node, LookingUse) else node

    out = {**{n: Rule(n, rebuild(r.body, leaf), r.params, r.line) for n, r in rules.items()}, **extra}
    if len(made) < len(looking):  # the others read something else in each context
        contexts = Contexts(out, [(t, looking[t.node]) for t in asking if t.node not in made], steps)
        try:
            start = contexts.whole(start)
            size = sum(len(rule.nodes) for rule in contexts.written.values())
            what = f"a grammar of {size:,} nodes: its rules are written once for each thing that may follow this token"
            limits.check("nodes", size, what, r"end the token with \b, if it is a word")
        except LimitError as error:
            raise error.at(asking[0].error("")) from None
        out = contexts.written
    return out, start, asking


def _looking(token: LookingUse, steps: Steps) -> LookingToken:
    try:
        return LookingToken(token.node, steps)
    except LimitError as error:
        raise error.at(token.error("")) from None
    except GrammarError as error:
        raise token.error(error.message, hint=error.hint) from None


def _check_parts(token: LookingUse) -> None:
    """Raise GrammarError if some of the token's texts are not known here."""
    for part in nodes.walk(token.node):
        if isinstance(part, Slot):
            raise token.error(
                "a slot is part of a terminal that looks around", hint="use the slot in a rule, beside the terminal"
            )
        if isinstance(part, RuleRef):
            raise token.error(
                "a terminal that looks around has too many pieces", hint="use its larger parts in a rule, beside it"
            )


class TokenContext(NamedTuple):
    """What must be known of the text so far, for all tokens that look beyond their own text.

    Attributes
    ----------
    pasts : tuple of frozenset of int
        For each token, the pasts that the text may have left; several if a slot comes before.
    asked : frozenset of (int, int)
        (token, condition) pairs that the text to come must meet.
    """

    pasts: tuple[frozenset[int], ...]
    asked: frozenset[tuple[int, int]]


Exits = dict[TokenContext, Node]
"""Context that is reached -> what is read on the way to it."""


@dataclass(eq=False)
class _Unit:
    """A node read in one context; it becomes one rule for each context that it leads to."""

    node: Node
    context: TokenContext
    name: str
    params: tuple[str, ...]
    exits: dict[TokenContext, str] = field(default_factory=dict)
    bodies: Exits = field(default_factory=dict)
    users: dict[_Unit, None] = field(default_factory=dict)


class Contexts:
    """Writes a grammar's rules for each context in which they can occur, into `written`."""

    def __init__(self, rules: Mapping[str, Rule], looking: list[tuple[LookingUse, LookingToken]], steps: Steps):
        self.rules, self.steps = rules, steps
        self.tokens, self.looking = [token for token, _ in looking], [one for _, one in looking]
        self.number = {token.node: i for i, token in enumerate(self.tokens)}
        self.looks_back = any(len(one.pasts) > 1 for one in self.looking)
        self.rewritten = set(rules) if self.looks_back else _leading_to_tokens(rules)
        self.written = {name: rule for name, rule in rules.items() if name not in self.rewritten}
        self.names = set(self.written)
        self.units: dict[tuple[Node, TokenContext], _Unit] = {}
        self.work: deque[_Unit] = deque()
        self.asked = 0  # calls of `as_rules`, whose results may grow later
        self.moves_of: dict[TokenContext, list[tuple[CharSet, TokenContext]]] = {}
        self.kept: dict[tuple, Any] = {}  # interns nodes
        asked = (chars for one in self.looking for edges in (*one.asks, *one.pasts) for chars in edges.values())
        self.classes = partition([ANY, *asked])
        self.examples = [chars.ranges[0][0] for chars in self.classes]
        # For each token, whether its past depends only on the last character.
        self.short = [
            all(len({_next(p, char) for p in one.pasts}) == 1 for char in self.examples) for one in self.looking
        ]

    def whole(self, start: Node) -> Node:
        """A node for the whole texts of `start`."""
        self.follow = CharacterFollowSets(self.rules, start, self.classes, self.first_sets())
        first = TokenContext(tuple(frozenset([found.first_past]) for found in self.looking), frozenset())
        # A unit's exits depend on those of the units that it calls. Each unit is read with the exits known so far, and
        # again whenever one that it uses has got another one, until none changes: a least fixed point.
        whole = _Unit(start, first, "$start", ())
        self.work.append(whole)
        while self.work:
            self.unit = unit = self.work.popleft()
            unit.bodies = self.simplified(self.read(unit.node, unit.context), self.follow.of.get(unit.name, -1))
            new = [context for context in unit.bodies if context not in unit.exits]
            if new:
                unit.exits.update((context, self.new_name(unit.name)) for context in new)
                self.work += [user for user in unit.users if user not in self.work]
        for unit in self.units.values():
            line = self.rules[name].line if (name := unit.name.rstrip("$")) in self.rules else None
            for context, body in unit.bodies.items():
                self.written[unit.exits[context]] = Rule(unit.exits[context], body, unit.params, line)
        # A whole text may end only where all that was asked of the text to come is met by its end.
        ends = [c for c in whole.bodies if all(self.looking[i].met[condition] for i, condition in c.asked)]
        self.written[whole.name] = Rule(whole.name, nodes.alt([whole.bodies[context] for context in ends]))
        return RuleRef(whole.name)

    def first_sets(self) -> dict[Node, int]:
        """The first set of each token, with an extra bit that identifies the token."""
        out: dict[Node, int] = {}
        for token in dict.fromkeys(token for rule in self.rules.values() for token in rule.find(LookingUse)):
            number = self.number[token.node]
            looking = self.looking[number]
            out[token] = 1 << len(self.classes) + 1 + number
            for start in looking.starts:
                out[token] |= bits(charset(r for c in looking.edges[start].values() for r in c.ranges), self.classes)
                if looking.ends[start]:
                    out[token] |= 1 << len(self.classes) if looking.ends[start] is EMPTY else -1
        return out

    def simplified(self, exits: Exits, after: int) -> Exits:
        """`exits`, with each context simplified by :meth:`simplify`."""
        ways = ((self.simplify(context, after), node) for context, node in exits.items())
        return _union({context: node} for context, node in ways if context is not None)

    def simplify(self, context: TokenContext, after: int) -> TokenContext | None:
        """Simplify a context, given the follow set `after`; None if no text that can follow meets the conditions."""
        asked = set()
        for i, condition in context.asked:
            ways = self.looking[i].asks[condition]
            thens = {_next(ways, char) for k, char in enumerate(self.examples) if after >> k & 1}
            if after & self.follow.end:
                thens.add(MET if self.looking[i].met[condition] else NEVER_MET)
            if thens <= {NEVER_MET}:
                return None
            if thens != {MET}:
                asked.add((i, condition))
        pasts = tuple(
            frozenset(range(len(found.pasts))) if short and not after & self.follow.end << 1 + i else before
            for i, (found, short, before) in enumerate(zip(self.looking, self.short, context.pasts))
        )
        return TokenContext(pasts, frozenset(asked))

    def new_name(self, name: str) -> str:
        found = name if name not in self.names else f"{name.rstrip('$')}${len(self.names)}"
        self.names.add(found)
        return found

    def read(self, node: Node, context: TokenContext) -> Exits:
        """What `node` reads in one context, for each context that it leads to."""
        self.steps(1)
        if self.stays(node, context):
            return {context: node}
        match node:
            case LookingUse():
                return self.token(node, context)
            case Seq():
                return self.sequence(node, context)
            case Alt():
                return _union(self.read(item, context) for item in node.items)
            case Repeat():
                return self.repeat(node, context)
            case RuleRef():
                return self.call(node, context)
            case Chars():
                return {then: Chars(both, node.place) for both, then in self.meeting(node.chars, context)}
            case LiteralText():
                end = self.after(context, node.data)
                return {} if end is None else {end: node}
            case Choices():
                ends: dict[TokenContext | None, list[bytes]] = {}
                for value in node.values:
                    ends.setdefault(self.after(context, value), []).append(value)
                return {
                    end: nodes.choices(values, node.place, node.strings)
                    for end, values in ends.items()
                    if end is not None
                }
        # A slot or a parameter: its values aren't known yet. So it may not stand where a token asks for the text to
        # come, and behind it the text so far may have left any past.
        undecided = [i for i, _ in context.asked if not self.tokens[i].lenient]
        if undecided:
            raise self.undecided(min(undecided), "behind")
        return {TokenContext(tuple(frozenset(range(len(found.pasts))) for found in self.looking), frozenset()): node}

    def stays(self, node: Node, context: TokenContext) -> bool:
        """Whether `node` is the same in this context as in the original grammar."""
        if self.looks_back or context.asked:
            return node is EMPTY
        if ("stays", node) not in self.kept:
            below = nodes.walk(node)
            has = any(isinstance(n, LookingUse) or (isinstance(n, RuleRef) and n.rule in self.rewritten) for n in below)
            self.kept["stays", node] = not has
        return self.kept["stays", node]

    def undecided(self, token: int, where: str) -> GrammarError:
        what = f"the lookaround sees beyond its token, and a slot can stand {where} it"
        hint = "let text stand beside the token, or take the lookaround out and write what it asks for as text"
        return self.tokens[token].error(what, hint=hint)

    def meeting(self, chars: CharSet, context: TokenContext) -> list[tuple[CharSet, TokenContext]]:
        """Those of `chars` that may come next, as (set, context after it)."""
        moves = self.moves_of.get(context)
        if moves is None:
            rows = [found.pasts[p] for found, pasts in zip(self.looking, context.pasts) for p in pasts]
            rows += [self.looking[i].asks[condition] for i, condition in context.asked]
            then_of: dict[TokenContext, list[CharSet]] = {}
            for seen in partition([ANY, *(c for row in rows for c in row.values())]):
                then = self.step(context, seen.ranges[0][0])
                if then is not None:
                    then_of.setdefault(then, []).append(seen)
            moves = [(charset(r for c in found for r in c.ranges), then) for then, found in then_of.items()]
            self.moves_of[context] = moves
        return [(both, then) for seen, then in moves if (both := chars & seen)]

    def step(self, context: TokenContext, char: int) -> TokenContext | None:
        pasts = tuple(
            frozenset(_next(found.pasts[p], char) for p in before) if len(found.pasts) > 1 else before
            for found, before in zip(self.looking, context.pasts)
        )
        asked = frozenset((i, _next(self.looking[i].asks[condition], char)) for i, condition in context.asked)
        if any(condition == NEVER_MET for _, condition in asked):
            return None
        return TokenContext(pasts, frozenset((i, condition) for i, condition in asked if condition != MET))

    def after(self, context: TokenContext, text: bytes) -> TokenContext | None:
        """The context after `text`; None if the text may not come next."""
        for char in text.decode():
            if not self.looks_back and not context.asked:
                break
            self.steps(1)
            then = self.step(context, ord(char))
            if then is None:
                return None
            context = then
        return context

    def sequence(self, node: Seq, context: TokenContext) -> Exits:
        # As long as each item leads to one context, the sequence goes on in it. Where one leads to several, or to none,
        # the rest is read once for each.
        done: list[Node] = []
        for i, item in enumerate(node.items):
            exits = self.read(item, context)
            if len(exits) != 1:
                rest = self.kept.setdefault((node, i), nodes.seq(node.items[i + 1 :]))
                exits = self.simplified(exits, self.first(rest))
            if len(exits) != 1:
                return self.followed(nodes.seq(done), exits, rest)
            ((context, first),) = exits.items()
            done.append(first)
        return {context: nodes.seq(done)}

    def first(self, rest: Node) -> int:
        """The first set of `rest` if it is known and can't be empty; otherwise every bit."""
        found = -1 if find(rest, Var) else self.follow.first(rest, "")
        return -1 if found & self.follow.end else found

    def followed(self, before: Node, found: Exits, rest: Node) -> Exits:
        """The sequence of `before`, one of `found`, and `rest`, which becomes rules because it is used again."""
        unit = self.unit
        args = tuple(map(Var, unit.params))
        return _union(
            {exit: nodes.seq([before, first, then]) for exit, then in thens.items()}
            for middle, first in found.items()
            for thens in [self.as_rules(rest, middle, f"{unit.name.rstrip('$')}$", unit.params, args)]
        )

    def as_rules(
        self, node: Node, context: TokenContext, name: str, params: tuple[str, ...], args: tuple[Node, ...]
    ) -> Exits:
        """Calls of the rules for `node` in one context, one for each context it is known to lead to so far."""
        if type(node) in LEAVES or self.stays(node, context):
            return self.read(node, context)
        self.asked += 1
        unit = self.units.get((node, context))
        if unit is None:
            unit = self.units[node, context] = _Unit(node, context, name, params)
            self.work.append(unit)
        unit.users[self.unit] = None
        return {exit: RuleRef(rule, args) for exit, rule in unit.exits.items()}

    def repeat(self, node: Repeat, context: TokenContext) -> Exits:
        result = dict(self.read(node.item, context))
        again = result.get(context, NEVER)
        if len(result) == (context in result):  # every round leaves the context as it is: it stays one repeat
            every = nodes.repeat(again, node.low, node.high)
            return {} if every is NEVER else {context: every}
        if node.low == 0 and node.high is None:
            here = nodes.repeat(result.pop(context, NEVER), 0, None)
            return _union([{context: here}, self.followed(here, result, node)])
        more = nodes.repeat(node.item, max(node.low - 1, 0), None if node.high is None else node.high - 1)
        after = self.followed(EMPTY, result, self.kept.setdefault(("more", node), more))
        return _union([{context: EMPTY}, after]) if node.low == 0 else after

    def call(self, node: RuleRef, context: TokenContext) -> Exits:
        # An argument whose texts are known is written into the body, so that it is read in its own context. A parameter
        # that a relation uses must stay one.
        rule = self.rules[node.rule]
        fixed = {var.name for related in rule.find(Related) for var in find(related, Var)}
        arguments = {
            param: arg
            for param, arg in zip(rule.params, node.args)
            if param not in fixed and not find(arg, Slot) and not find(arg, Var)
        }
        body = rule.body
        if arguments:
            key = (node.rule, *arguments.items())
            body = self.kept.get(key) or self.kept.setdefault(key, with_values(body, arguments))
        left = [param not in arguments for param in rule.params]
        params = tuple(compress(rule.params, left))
        return self.as_rules(body, context, node.rule, params, tuple(compress(node.args, left)))

    def token(self, node: LookingUse, context: TokenContext) -> Exits:
        number = self.number[node.node]
        looking = self.looking[number]
        if len(context.pasts[number]) > 1:
            raise self.undecided(number, "before")
        if (node, context) in self.kept:
            return self.kept[node, context]
        # The states of the token's own automaton, each in the context that the characters up to it lead to: together an
        # automaton of what the token reads here. An end that asks for the text to come leads to a context with that.
        asked = self.asked
        places = [(looking.starts[min(context.pasts[number])], context)]
        numbers = {places[0]: 0}
        ends: list[Exits] = []
        edges: list[dict[int, CharSet]] = []
        for state, here in places:  # grows on the way
            self.steps(1)
            end, condition = looking.ends[state], looking.conditions[state]
            if condition != MET:
                asking = here._replace(asked=here.asked | {(number, condition)})
                ends.append({asking: EMPTY})
            else:
                ends.append({} if end is None else {here: EMPTY} if end is EMPTY else self.read(end, here))
            row: dict[int, CharSet] = {}
            for then, chars in looking.edges[state].items():
                for both, after in self.meeting(chars, here):
                    if (then, after) not in numbers:
                        numbers[then, after] = len(places)
                        places.append((then, after))
                    target = numbers[then, after]
                    row[target] = row[target] | both if target in row else both
            edges.append(row)
        # what is read on the way to an end may grow, too, while the contexts that it leads to stay the same
        key = (node.node, context, *(frozenset((exit, nodes.shape(way)) for exit, way in w.items()) for w in ends))
        if key not in self.kept:
            self.kept[key] = texts = {}
            for exit in dict.fromkeys(exit for way in ends for exit in way):
                name = self.new_name(f"{node.name}$")
                texts[exit], more = looking.node_of(name, 0, [way.get(exit) for way in ends], edges)
                self.written.update(more)
        exits = self.simplified(self.kept[key], self.follow.of[node])
        if asked == self.asked:  # no rule was called whose exits may still grow
            self.kept[node, context] = exits
        return exits


def _leading_to_tokens(rules: Mapping[str, Rule]) -> set[str]:
    """The rules that a token is reached from."""
    callers = users(units(rules, parameters=False))
    leading = (name for name, rule in rules.items() if rule.find(LookingUse))
    return set(reached(leading, lambda name: map(str, callers.get(name, ()))))


def _union(found: Iterable[Exits]) -> Exits:
    out: dict[TokenContext, list[Node]] = {}
    for exits in found:
        for context, node in exits.items():
            out.setdefault(context, []).append(node)
    return {context: nodes.alt(ways) for context, ways in out.items()}


def _next(edges: Mapping[int, CharSet], char: int) -> int:
    return next(then for then, chars in edges.items() if char in chars)

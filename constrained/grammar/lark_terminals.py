"""Terminals, as nodes: each is the language of the one regular expression that lark makes of it.

An assertion in a terminal looks at the whole of it, and beyond: see `token_contexts`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from constrained.grammar import nodes
from constrained.grammar.assertions import LazyRepeat, end_early, greedy, looks
from constrained.grammar.lark_definitions import Body, Definition, Faults, undefined, walk
from constrained.grammar.lark_literals import Fault, branches, literal_node, range_node
from constrained.grammar.lark_syntax import Expansions, Group, Quoted, Range, Symbol
from constrained.grammar.nodes import LiteralText, Node, Rule, RuleRef, Slot, find
from constrained.grammar.regex import plain_class
from constrained.grammar.token_contexts import LookingUse
from constrained.limits import Limits

_SHARED, _NESTED = 2_000, 20
"""A terminal of more pieces, or of parts nested deeper, becomes a rule: terminals that double each other stay
small, and long chains of them flat."""

_PLAIN = frozenset((LiteralText, nodes.Chars, nodes.Choices, nodes.Seq, nodes.Alt, nodes.Repeat))
"""Types of node that neither look around nor end early."""


class Terminals:
    """Reads terminals when they are asked for, their parts first.

    `rules`: the terminals that became rules. `looking`: whether some token that was read looks around.
    """

    def __init__(self, limits: Limits, faults: Faults):
        self.limits, self.faults = limits, faults
        self.rules: dict[str, Rule] = {}
        self.looking = False
        self._patterns = 0  # characters of regular expressions
        self._branches: dict[Definition, list[Node]] = {}
        self._nodes: dict[Definition, Node] = {}
        self._sizes: dict[Definition, int] = {}
        self._depths: dict[Definition, int] = {}
        self._looks: dict[Definition, partial] = {}  # terminals that look around -> makes an error there

    def node(self, definition: Definition) -> Node:
        """The texts of a terminal."""
        if definition not in self._branches:
            for part in parts_first(definition, self._branches):
                self._read(part)
        node = self._nodes.get(definition)
        if node is None:
            node = self._nodes[definition] = _end_early(nodes.alt(self._branches[definition]))
        if definition in self._looks and looks(node):
            self.looking = True
            return LookingUse(node, definition.name, self._looks[definition])
        return node

    def size(self, definition: Definition) -> int:
        """Count its pieces, those of its parts included."""
        return self._sizes[definition]

    def literal(self, item: Quoted | Range, definition: Definition, body: Body) -> Node:
        """The texts of a string, regular expression or range, with its span."""
        (node,) = self._literal(item, definition, body)
        if _PLAIN.issuperset(map(type, nodes.walk(node))):
            return node
        node = _end_early(node)
        if item.text[0] == "/" and looks(node):
            self.looking = True
            return LookingUse(node, definition.name, partial(body.scope.error, at=item.at))
        return node

    def _literal(self, item: Quoted | Range, definition: Definition, body: Body, apart: bool = False) -> list[Node]:
        """The texts of a literal; with `apart`, a list of its alternatives."""
        text, scope = item.text, body.scope
        if text[0] == "/" or (text[-1] == "i" and isinstance(item, Quoted)):
            self._patterns += len(text)
            if self._patterns > self.limits.pattern:
                what = f"the grammar's regular expressions have more than {self.limits.pattern:,} characters together"
                self.limits.check("pattern", self._patterns, what, **scope.span(item.at).for_error())
        place = (scope.source, item.at, len(text), definition.shown)
        if text[-1] == "/" and (node := plain_class(text[1:-1], place)):
            return [node]
        try:
            if isinstance(item, Range):
                pieces = [range_node(item)]
            else:
                pieces = branches(item, self.limits) if apart else [literal_node(item, self.limits)]
        except Fault as fault:
            self.faults.add(scope.error(fault.message, item.at + fault.offset, fault.hint))
            pieces = [nodes.EMPTY]
        return [nodes.placed(node, place) for node in pieces]

    def _read(self, definition: Definition) -> None:
        if definition.declared:
            self._sizes[definition] = 1
            self._branches[definition] = [Slot(definition.name)]
            return
        options = self._set_apart([self._options(b.options, definition, b) for b in definition.bodies])
        # Its size and depth with all parts, which are known as parts are read first; it looks around if a part does.
        size = depth = 0
        for body in definition.bodies:
            for item in walk(body.options):
                size += 1
                if isinstance(item, Symbol):
                    part = body.scope.known(item.text)
                    size += self._sizes[part]
                    depth = max(depth, self._depths.get(part, 0) + 1)
                    if part in self._looks:
                        self._looks.setdefault(definition, self._looks[part])
        if size > self.limits.nodes:
            what = f"a terminal of more than {self.limits.nodes:,} nodes"
            self.limits.check("nodes", size, what, **definition.span.for_error())
        self._sizes[definition], self._branches[definition] = size, options
        self._depths[definition] = depth
        if (size > _SHARED or depth > _NESTED) and definition not in self._looks:
            self.rules[definition.name] = Rule(definition.name, nodes.alt(options))
            self._sizes[definition], self._branches[definition] = 1, [RuleRef(definition.name)]
            self._depths[definition] = 0

    # in what follows, a list of nodes stands for alternatives that are not in a group

    def _options(self, options: Expansions, definition: Definition, body: Body) -> list[Node]:
        return self._set_apart([self._items(items, definition, body) for items in options.items])

    def _set_apart(self, found: list[list[Node]]) -> list[Node]:
        """Make a group of several alternatives; a single one stays as it is."""
        return found[0] if len(found) == 1 else [nodes.alt([node for part in found for node in part])]

    def _items(self, items: list, definition: Definition, body: Body) -> list[Node]:
        """Concatenate items; what stands beside a `|` that is in no group belongs to one side of it."""
        done: list[Node] = []
        run: list[Node] = []
        for item in items:
            first, *more = self._item(item, definition, body)
            run.append(first)
            if more:
                done += [nodes.seq(run), *more[:-1]]
                run = [more[-1]]
        return [*done, nodes.seq(run)]

    def _item(self, item, definition: Definition, body: Body) -> list[Node]:
        if isinstance(item, Symbol):
            return self._branches[body.scope.known(item.text)]
        if isinstance(item, (Quoted, Range)):
            found = self._literal(item, definition, body, apart=True)
            if definition not in self._looks and any(looks(node) or find(node, LazyRepeat) for node in found):
                self._looks[definition] = partial(body.scope.error, at=item.at)
            return found
        if isinstance(item, Group):
            inner = self._options(item.options, definition, body)
            return [nodes.repeat(nodes.alt(inner), 0, 1)] if item.optional else inner
        return [nodes.repeat(nodes.alt(self._item(item.item, definition, body)), item.low, item.high)]


def parts_first(definition: Definition, known) -> list[Definition]:
    """A terminal and its parts, parts first, without those that are `known`.

    Raises GrammarError if one of them isn't there, is a rule, or has itself as a part.
    """
    order: list[Definition] = []
    done = {definition: False}
    work = [(definition, _parts(definition))]
    while work:
        top, parts = work[-1]
        for part, item, body in parts:
            if done.get(part) is False:
                hint = "terminals can't be recursive: make it a rule (lower case)"
                raise body.scope.error(f"terminal '{part.name}' has itself as a part", item.at, hint)
            if part not in done and part not in known:
                done[part] = False
                work.append((part, _parts(part)))
                break
        else:
            work.pop()
            done[top] = True
            order.append(top)
    return order


def _parts(definition: Definition) -> Iterator[tuple[Definition, Symbol, Body]]:
    for body in definition.bodies:
        if not any(body.options.items) and len(definition.bodies) == 1:
            hint = "a terminal without text can never be read: give it some, or make it a rule"
            raise body.scope.error(f"terminal '{definition.name}' is empty", definition.at, hint)
        for item in walk(body.options):
            if not isinstance(item, Symbol):
                continue
            if item.args is not None or not item.text.isupper():
                hint = f"make it a terminal (upper case), or make {definition.name} a rule (lower case)"
                hint = "name the terminal that is ignored" if definition.name[0] == "$" else hint
                raise body.scope.error(f"a rule, '{item.text}', can't be part of a terminal", item.at, hint)
            part = body.scope.definition(item.text)
            if part is None:
                raise undefined(item, body, body.scope.definitions)
            yield part, item, body


def _end_early(node: Node) -> Node:
    """A terminal whose lazy repeats end as soon as they can, if all its texts are known here."""
    if type(node) is LiteralText:  # the usual case
        return node
    return end_early(node) if not find(node, Slot) and not find(node, RuleRef) else greedy(node)

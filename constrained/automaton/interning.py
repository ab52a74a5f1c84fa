"""One object for equal things: frames, parameters, positions, counted repeats."""

from __future__ import annotations

from constrained.automaton import positions as p
from constrained.errors import LimitError
from constrained.grammar import nodes as n
from constrained.limits import Limits


class Interning:
    """Makes frames, environments and positions, each only once."""

    def __init__(self, limits: Limits):
        self.limits = limits
        self._frames: dict[tuple, p.Frame] = {}
        self._envs: dict[tuple, p.Env] = {}
        self._positions: dict[tuple, p.Position] = {}
        self._repeats: dict[tuple, n.Repeat] = {}
        self._tails: dict[int, n.Node] = {}
        self._lists: dict[tuple, tuple] = {}
        self._keep: list = []  # what a key holds the id of must live on

    def frame(self, node: n.Node, env: p.Env, next: p.Frame | None) -> p.Frame:
        if next is not None and next.node is node and _is_loop(node, env, next.env):
            return next  # x* x* is x*: recursion at both ends of a rule makes many
        key = (id(node), id(env), next.number if next else -1)
        found = self._frames.get(key)
        if found is None:
            found = self._frames[key] = p.Frame(node, env, next, self._next_frame())
        return found

    def fork(self, ways: tuple[p.Frame | None, ...]) -> p.Fork:
        """Any of `ways`."""
        found = self._frames.get(ways)
        if found is None:
            found = self._frames[ways] = p.Fork(ways, self._next_frame())
        return found

    def bottom_frame(self) -> p.Bottom:
        """The frame that stands for any stack."""
        return self._frames.setdefault((), p.Bottom(self._next_frame()))

    def _next_frame(self) -> int:
        """The number of the frame about to be made: above those of all below it."""
        number = len(self._frames)
        if number >= self.limits.frames:
            raise LimitError(
                "frames",
                self.limits.frames,
                "the automaton's stacks have come to too many entries",
                "let the grammar nest less deeply, or compile it anew from time to time",
            )
        return number

    def env(self, grammar, values: dict, level: int) -> p.Env:
        if not values:
            level = 0  # nothing is bound in its frames, so none need telling apart
        key = (id(grammar), level, tuple(values.items()))
        found = self._envs.get(key)
        if found is None:
            found = self._envs[key] = p.Env(grammar, values, level)
        return found

    def _position(self, kind, fields: tuple, rest: p.Frame | None):
        key = (kind, fields, rest.number if rest else -1)
        found = self._positions.get(key)
        if found is None:
            if len(self._positions) >= self.limits.positions:
                raise LimitError(
                    "positions",
                    self.limits.positions,
                    "the automaton has come to too many positions",
                    "loosen a bound: bounded repeats of bounded repeats multiply",
                )
            found = self._positions[key] = object.__new__(kind)
            found.number, found.rest, found._steps = len(self._positions), rest, {}
        return found

    def in_literal(self, data: bytes, at: int, rest) -> p.InLiteral:
        position = self._position(p.InLiteral, (data, at), rest)
        position.data, position.at = data, at
        return position

    def in_text(self, chars, inside, low: int, high: int | None, rest) -> p.InText:
        position = self._position(p.InText, (id(chars), inside, low, high), rest)
        position.chars, position.inside, position.low, position.high = chars, inside, low, high
        return position

    def repeat(self, item: n.Node, low: int, high: int | None) -> n.Repeat:
        key = (id(item), low, high)
        found = self._repeats.get(key)
        if found is None:
            found = self._repeats[key] = n.Repeat(item, low, high)
        return found

    def list_of(self, values: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """One object for equal lists of texts (positions know a list by its identity)."""
        return self._lists.setdefault(values, values)

    def made_nodes(self) -> dict[int, n.Node]:
        """By identity, the nodes that were made here: of the rest of a sequence, the sequence; of a repeat, itself."""
        out: dict[int, n.Node] = {id(r): r for r in self._repeats.values()}
        out.update((id(self._tails[id(s)]), s) for s in self._keep if id(s) in self._tails)
        return out

    def rest_of(self, node: n.Seq) -> n.Node:
        """`node` without its first item."""
        found = self._tails.get(id(node))
        if found is None:
            rest = node.items[1:]
            found = self._tails[id(node)] = rest[0] if len(rest) == 1 else n.Seq(rest)
            self._keep.append(node)
        return found


def _is_loop(node: n.Node, env: p.Env, other: p.Env) -> bool:
    return (
        isinstance(node, n.Repeat)
        and node.low == 0
        and node.high is None
        and env.grammar is other.grammar
        and not env.values
        and not other.values
    )

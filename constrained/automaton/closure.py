"""The ε-closure: the positions that a stack reaches without reading a byte."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from constrained.automaton import graph_stack
from constrained.automaton.graph_stack import GraphStack
from constrained.automaton.liveness import Liveness
from constrained.automaton.positions import (
    TOO_MANY_FRAMES,
    TOO_MANY_WAYS,
    Bottom,
    Env,
    Fork,
    Frame,
    Frames,
    Loop,
    Position,
    Positions,
    Reached,
    Stack,
    Thunk,
)
from constrained.automaton.shared_closure import Apart, SharedClosure
from constrained.automaton.templates import Selected, Templates, ends_action, open_names, own_frames
from constrained.errors import GrammarError
from constrained.grammar import nodes as n
from constrained.grammar.grammar import ContextFreeGrammar
from constrained.grammar.json_text import JsonText
from constrained.grammar.members import MemberSequence
from constrained.limits import Limits

REFUSALS = {
    "closure": (
        "too many ways to continue without reading any text",
        "put some text before the part that grows: an argument of a template, rules that may be empty",
    ),
    "entered": (
        "too many ways to continue without reading any text, over the whole text",
        "put some text before the part that grows: an argument of a template, rules that may be empty",
    ),
    "frames": TOO_MANY_FRAMES,
    "mask_steps": TOO_MANY_WAYS,
    "state_positions": TOO_MANY_WAYS,
}
"""Limit -> (what is wrong, what to do), for the errors of the automaton and the kernel."""

_PASSING = -1
"""The number of temporary frames, which are entered at once and not interned."""

Expansion = tuple[Iterable[Position], Iterable[Stack]]
"""(positions where text is read, frames to enter next)"""


class Closure:
    """Computes the ε-closures of one grammar's frames, each once.

    Parameters
    ----------
    liveness : Liveness or None
        Decides which stacks can be finished; None if all can.

    Attributes
    ----------
    positions : Positions
        Those created so far.
    stacks : GraphStack
    bottom : Position
        The end of what stands on any stack.
    entered : int
        Frames entered so far.
    """

    def __init__(
        self,
        grammar: ContextFreeGrammar,
        frames: Frames,
        templates: Templates,
        liveness: Liveness | None,
        limits: Limits,
    ):
        self.positions = Positions(limits)
        has_steps = any(n.STEP in one.slots for one in grammar.nested())
        self.stacks = GraphStack(frames, self.positions, limits, has_steps)
        self._grammar, self._frames, self._templates = grammar, frames, templates
        self._liveness, self._limits = liveness, limits
        self.bottom = self.positions.accept_over(frames.bottom)
        self._loops: dict[tuple[int, int], tuple[n.Chars, Loop] | None] = {}
        self.entered = 0

    def enter(self, frame: Stack) -> Reached:
        """The positions reached from `frame` without reading a byte."""
        if frame is None:
            return (self.positions.accept,)
        if frame.closure is None:
            frame.closure = self.stacks.join_positions(tuple(self.entered_by(frame)))
        return frame.closure

    def into_choices(
        self, values: tuple[bytes, ...], low: int, high: int, depth: int, bind: str | None, rest: Stack
    ) -> Reached:
        """The positions after the first `depth` bytes of ``values[low:high]``; one of the values may end there."""
        out: Reached = ()
        if len(values[low]) == depth:
            out = self.enter(self.after_choice(rest, bind, values[low]))
            low += 1
        if low == high:
            return out
        return (*out, self.positions.choices(values, low, high, depth, bind, rest))

    def after_choice(self, rest: Stack, bind: str | None, value: bytes) -> Stack:
        """The frame after `value` was chosen: its parameter is set, or the name's value is next (`MemberSequence`)."""
        if bind is None or rest is None:
            return rest
        if isinstance(rest.node, MemberSequence):
            return self._frames.frame(rest.node.after(value), rest.env, rest.next)
        return self._templates.rebind(rest, rest.env, bind, value)

    def entered_by(self, start: Frame) -> dict[Position, Stack]:
        """The positions of :meth:`enter` before joining, each with the frame whose node is read there."""
        frames, positions = self._frames, self.positions
        out: dict[Position, Stack] = {}
        seen: set[int] = set()
        again: set[int] = set()  # numbers of the frames that read what is left of a repeat after an item
        work: list[Stack] = [start]
        looked_at = graph_stack.CROWDED
        while work:
            if len(out) >= looked_at:
                looked_at = max(2 * len(out), 1)
                if _is_crowded(out) and (shared := self._shared(start)) is not None:
                    return shared
            frame = work.pop()
            if frame is None:
                out[positions.accept] = None
                continue
            if frame.number != _PASSING:
                if frame.number in seen:
                    continue
                seen.add(frame.number)
                self.check(len(seen))
            node, env, rest = frame.node, frame.env, frame.next
            entered: Iterable[Position] = ()
            onward: Iterable[Stack] = ()
            if isinstance(node, n.Seq):
                if len(node.items) > 1:
                    rest = frames.frame(frames.tail(node), env, rest)
                work.append(self._passing(node.items[0], env, rest) if node.items else rest)
                continue
            if isinstance(node, n.LiteralText):
                out[positions.literal(node.data, 0, rest)] = frame
                continue
            if isinstance(node, n.Chars):
                out[positions.text(node.chars, None, 1, 1, rest)] = frame
                continue
            if isinstance(node, n.RuleRef):
                onward = self._bodies(node, env, rest)
            elif isinstance(node, n.Choices):
                entered, onward = self._choose(node.values, None, rest)
            elif isinstance(node, n.Except):
                entered = (positions.unlike(node.chars, node.values, 0, len(node.values), 0, rest),)
                onward = (rest,) if node.values[0] else ()
            elif isinstance(frame, Bottom):
                entered = (self.bottom,)
            elif isinstance(frame, Fork):
                onward = self._living(frame.ways)
            elif isinstance(node, n.Alt):
                onward = self._living([self._passing(item, env, rest) for item in node.items])
            elif isinstance(node, n.Repeat):
                entered, onward = self._enter_repeat(node, frame, again)
            elif isinstance(node, MemberSequence):
                names = frames.text_list(node.names)
                entered = self.into_choices(names, 0, len(names), 0, "", frame) if names else ()
                onward = () if node.free is n.NEVER else (frames.frame(node.free, env, rest),)
            elif isinstance(node, JsonText) and node.table is not None:
                entered = (positions.json_text(node.table, 0, node.high, 0, rest),)
            elif isinstance(node, JsonText):
                onward = (frames.frame(node.written, env, rest),)
            elif isinstance(node, n.Lazy):
                onward = (frames.frame(node.node, env, rest),)
            elif isinstance(node, n.Scoped):
                onward = (frames.frame(node.node, self._templates.scope(node, env.grammar, _level(rest)), rest),)
            elif isinstance(node, n.Var):
                entered, onward = self._enter_var(node.name, env, rest)
            elif isinstance(node, n.Slot):
                entered, onward = self._enter_slot(node, env, rest)
            elif isinstance(node, n.Related):
                ways = self._templates.ways(open_names(env, (node,)), env, rest)
                parts = [self._enter_values(node.slot, self._templates.related(node, e), r) for e, r in ways]
                entered = [position for part, _ in parts for position in part]
                onward = [stack for _, part in parts for stack in part]
            for position in entered:
                out[position] = frame
            work.extend(onward)
        self.entered += len(seen)
        self._limits.check("entered", self.entered, *REFUSALS["entered"])
        return (_is_crowded(out) and self._shared(start)) or out

    def check(self, entered: int) -> None:
        """Check the limit for the constructs that one closure enters."""
        self._limits.check("closure", entered, *REFUSALS["closure"])

    def _shared(self, start: Frame) -> dict[Position, Stack] | None:
        """The result of :meth:`entered_by`, each construct entered once; None where `SharedClosure` can't be used."""
        if self._liveness is not None:  # what may come next depends on the whole stack
            return None
        shared = SharedClosure(self)
        try:
            out = shared.positions(start)
        except Apart:
            return None
        self.entered += shared.steps
        return out

    def _passing(self, node: n.Node, env: Env, rest: Stack) -> Frame:
        """A frame for `node`, which is entered at once; it isn't interned if `node` reads text directly."""
        if self._liveness is None and type(node) in (n.LiteralText, n.Chars, n.Choices):
            return Frame(node, env, rest, _PASSING)
        return self._frames.frame(node, env, rest)

    def _living(self, frames: Sequence[Stack]) -> Sequence[Stack]:
        """Those of `frames` from which the text can be finished."""
        return frames if self._liveness is None else list(filter(self._liveness.can_finish, frames))

    def _bodies(self, node: n.RuleRef, env: Env, rest: Stack) -> Sequence[Stack]:
        """A frame of the rule's body for each combination of its parameters' values."""
        frames, templates = self._frames, self._templates
        if not node.args and not env.values:  # the common case, handled fast
            return (frames.frame(env.grammar.rules[node.rule].body, frames.env(env.grammar, {}, 0), rest),)
        level = _level(rest)
        result = [
            frames.frame(body, inner, after)
            for chosen, after in templates.ways(open_names(env, (node,)), env, rest)
            for body, inner in templates.instances(node, chosen, level)
        ]
        return self._living(result) if len(result) > 1 else result

    def _choose(self, values: tuple[bytes, ...], bind: str | None, rest: Stack) -> Expansion:
        """Read one of `values`, then `rest`."""
        if values[0]:
            return self.into_choices(values, 0, len(values), 0, bind, rest), ()
        after = (self.after_choice(rest, bind, b""),)  # the first of the sorted values is empty
        return (self.into_choices(values, 1, len(values), 0, bind, rest) if len(values) > 1 else ()), after

    def _enter_repeat(self, node: n.Repeat, frame: Frame, again: set[int]) -> Expansion:
        env, rest, low, high = frame.env, frame.next, node.low, node.high
        self._frames.know_repeat(node)
        if isinstance(node.item, n.Chars):
            return (self.positions.text(node.item.chars, None, low, high, rest),), () if low else (rest,)
        looped = self.looped(node.item, env) if high is not None and high > 1 else None
        if looped:
            chars, loop = looped
            return (self.positions.loop(chars.chars, None, low, high, rest, loop),), () if low else (rest,)
        if frame.number in again and self.positions.accept in self.enter(self._frames.frame(node.item, env, None)):
            # This closure reached the frame by an empty item, so all items left can be empty, and a smaller
            # count adds nothing. If items can't be empty, it was reached through joined stacks instead.
            return (), self._living([rest])
        left = None if high is None else high - 1
        after = rest
        if left != 0:
            after = self._frames.frame(self._frames.repeat(node.item, max(low - 1, 0), left), env, rest)
            again.add(after.number)
        item = self._frames.frame(node.item, env, after)
        return (), [item] if low else self._living([item, rest])

    def looped(self, item: n.Node, env: Env) -> tuple[n.Chars, Loop] | None:
        """`item` as a character set and a `Loop` of the other alternatives; None if some byte can begin both."""
        key = id(item), id(env)
        if isinstance(item, n.Alt) and key not in self._loops:
            self._loops[key] = None
            chars = [way for way in item.items if isinstance(way, n.Chars)]
            others = n.Alt(tuple(way for way in item.items if not isinstance(way, n.Chars)))
            if len(chars) == 1 and others.items and not env.values and self._liveness is None:
                entered = self.enter(self._frames.frame(others, env, self._frames.bottom))
                first = frozenset(byte for q in entered for byte in q.first())
                apart = first.isdisjoint(chars[0].chars.edges(None)) and self.bottom not in entered
                if apart and len(chars[0].chars.shortest()) == 1:
                    self._loops[key] = chars[0], Loop(item, env, others, first)
        return self._loops.get(key)

    def aside(self, loop: Loop, low: int, high: int | None, rest: Stack) -> Stack:
        """The frame that reads the loop's other alternatives once, followed by the rest of the loop."""
        left = None if high is None else high - 1
        if left != 0:
            rest = self._frames.frame(self._frames.repeat(loop.item, max(low - 1, 0), left), loop.env, rest)
        return self._frames.frame(loop.others, loop.env, rest)

    def _enter_var(self, name: str, env: Env, rest: Stack) -> Expansion:
        value = env.values[name]
        if isinstance(value, Thunk):
            return (), (self._frames.frame(value.node, value.env, rest),)
        if isinstance(value, bytes):
            return ((self.positions.literal(value, 0, rest),), ()) if value else ((), (rest,))
        if rest is None or rest.env is not env:
            return self._choose(value.values, None, rest)  # nothing after this uses the value
        return self._choose(self._living_values(value.values, env, rest, name), name, rest)

    def _living_values(self, values: tuple[bytes, ...], env: Env, rest: Frame, name: str) -> tuple[bytes, ...]:
        """Those of `values` with which the rest of the call can be finished."""
        if self._liveness is None or name not in open_names(env, own_frames(rest, env)[0]):
            return values  # the rest of the call doesn't use the value
        rebind, can_finish = self._templates.rebind, self._liveness.can_finish
        kept = tuple(value for value in values if can_finish(rebind(rest, env, name, value)))
        return values if len(kept) == len(values) else self._frames.text_list(kept)

    def _enter_slot(self, node: n.Slot, env: Env, rest: Stack) -> Expansion:
        value = env.grammar.bindings.get(node.name)
        if ends_action(node, env):
            return (self.positions.step_end(rest),), ()
        if isinstance(value, ContextFreeGrammar):
            return self._enter_values(node, value, rest)
        if isinstance(value, dict) and value:
            raise GrammarError(
                f"slot {node.name} depends on a key, but is used without one",
                hint=f"use it as a template argument followed by its key, such as rule{{{node.name}, r}}",
            )
        return self._choose(value, None, rest) if isinstance(value, tuple) and value else ((), ())

    def _enter_values(self, slot: n.Slot, values: Selected, rest: Stack) -> Expansion:
        """Read one of the values of `slot`, then `rest`."""
        if not isinstance(values, ContextFreeGrammar):
            return self._choose(values.values, None, rest) if values.values else ((), ())
        if values.unbound():
            raise GrammarError(f"slot {slot.name} is bound to a grammar whose slots are not: {values.unbound()}")
        return (), (self._frames.frame(values.start, self._frames.env(values, {}, _level(rest)), rest),)


def _is_crowded(positions: Collection[Position]) -> bool:
    """Whether many of the positions differ from another one only in their stacks."""
    if len(positions) <= graph_stack.CROWDED:
        return False
    return 2 * (len(positions) - len({q.reads() for q in positions})) > graph_stack.CROWDED


def _level(rest: Stack) -> int:
    """The level of a call above `rest` (see `Env`)."""
    return 0 if rest is None else 1 - rest.env.level

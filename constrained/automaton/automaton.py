"""The byte automaton of a grammar: nondeterministic, lazy, states interned.

A state is a set of positions. `enter` follows everything that reads no byte; `State.step`
reads one. States and positions come into being when generation, or a mask's walk, first
reaches them.
"""

from __future__ import annotations

from collections.abc import Sequence

from constrained.automaton import positions as p
from constrained.automaton.graph_stack import alternatives
from constrained.automaton.liveness import Liveness, has_gaps
from constrained.automaton.openings import Opening
from constrained.automaton.templates import Templates, ends_action, open_names, own_frames
from constrained.errors import GrammarError, LimitError
from constrained.grammar import nodes as n
from constrained.grammar.grammar import Grammar

_PASSING = -1
_READ_AT_ONCE = frozenset({n.Literal, n.Chars, n.Choices})


MAX_FORCED = 4096
"""Bytes that `State.forced_text` looks ahead at most."""


class Automaton(Templates):
    """The automaton of `grammar`, grown as it is used."""

    def __init__(self, grammar: Grammar):
        missing = grammar.unbound()
        if missing:
            raise GrammarError(
                f"slot {missing[0]} is not bound",
                hint="bind it first: .bind(" + ", ".join(f"{m}=[...]" for m in missing) + ")",
            )
        super().__init__(grammar.limits)
        grammar.check_slots()
        self.grammar = grammar
        self._states: dict[tuple, State] = {}
        self._entered = 0
        self._liveness = Liveness(self) if has_gaps(grammar) else None
        self.accept = self._position(p.Accept, (), None)
        self.bottom = self.bottom_frame()
        self._through = self._position(p.Accept, (), self.bottom)  # what shows that a walk has come to it
        self._openings: dict[tuple, Opening | None] = {}
        self.root = root = self.frame(grammar.start, self.env(grammar, {}, 0), None)
        if self._liveness and not self._liveness.can_finish(root):
            raise GrammarError(
                "with these bindings no text can be complete",
                hint="some slot on every way has no value left; bind more values",
            )
        self.start = self.state(self.enter(root))

    def read(self, data: bytes) -> State | None:
        """The state after `data` from the start."""
        return self.start.read(data)

    def state(self, positions) -> State:
        key = tuple(positions)
        if len(key) > 1:
            key = tuple(sorted(set(self.crowd(tuple(set(key)))), key=_number))
        found = self._states.get(key)
        if found is None:
            if len(key) > self.limits.state_positions:
                raise LimitError(
                    "state_positions",
                    self.limits.state_positions,
                    "the text so far can be read in too many ways",
                    "avoid repeats of what may be read in several ways, and join alternatives that begin alike",
                )
            if len(self._states) >= self.limits.states:
                raise LimitError(
                    "states",
                    self.limits.states,
                    "the automaton has come to too many states",
                    "compile the grammar anew from time to time",
                )
            found = self._states[key] = State(self, key)
        return found

    def step_end(self, rest) -> p.StepEnd:
        return self._position(p.StepEnd, (), rest)

    def in_choices(self, values, low: int, high: int, depth: int, bind: str | None, rest) -> p.InChoices:
        position = self._position(p.InChoices, (id(values), low, high, depth, bind), rest)
        if not hasattr(position, "values"):
            self._keep.append(values)  # the key holds its id
            position.values, position.low, position.high = values, low, high
            position.depth, position.bind = depth, bind
        return position

    def into_choices(self, values, low: int, high: int, depth: int, bind: str | None, rest) -> tuple:
        """Positions `depth` bytes into `values[low:high]`, those after a finished one included."""
        out = ()
        if len(values[low]) == depth:
            after = rest if bind is None else self.rebind(rest, rest.env, bind, values[low])
            out = self.enter(after)
            low += 1
        if low == high:
            return out
        return (*out, self.in_choices(values, low, high, depth, bind, rest))

    # what reads no byte

    def enter(self, frame: p.Frame | None) -> tuple:
        """The positions reached from `frame` without reading a byte."""
        work = [frame]  # first what is below, where nothing need be read
        while work:
            top = work[-1]
            if top is None or top.closure is not None:
                work.pop()
                continue
            opening = self.opening(top)
            below = (
                list(self._living(top.ways))
                if isinstance(top, p.Fork)
                else [top.next]
                if opening and opening.through
                else []
            )
            missing = [b for b in below if b is not None and b.closure is None]
            if missing:
                work += missing
                continue
            found = dict.fromkeys(q for b in below for q in ((self.accept,) if b is None else b.closure))
            if opening:
                made = opening.push(self, top.next)
                found.update(dict.fromkeys(self.on(q, made[over]) for q, over in opening.positions))
            elif not below:
                found = self.entered_by(top)
            top.closure = self.crowd(tuple(found))
        return (self.accept,) if frame is None else frame.closure

    def opening(self, frame: p.Frame) -> Opening | None:
        """What `frame` begins with on any stack; None where that depends on the stack."""
        node, env = frame.node, frame.env
        if node is None or env.values or self._liveness is not None:
            return None
        key = id(node), id(env)
        if key not in self._openings:
            self._openings[key] = None  # worth its while if it comes again
            return None
        if self._openings[key] is None:
            self._openings[key] = self._open(node, env)
        opening = self._openings[key]
        return opening if opening.is_plain else None

    def _open(self, node: n.Node, env: p.Env) -> Opening:
        return Opening(self.entered_by(self.frame(node, env, self.bottom)), self._through)

    def prepare(self, most: int) -> None:
        """Work out what constructs begin with before they are come to, if stacks nest: up to `most` of them."""
        if self._liveness is not None or not self.grammar.nests:
            return
        work = [(self.grammar.start, self.env(self.grammar, {}, 0))]
        for node, env in work:
            key = id(node), id(env)
            if env.values or self._openings.get(key) is not None:
                continue
            self._openings[key] = opening = self._open(node, env)
            work += [(above, its) for above, its, _ in opening.frames]
            if len(self._openings) >= most:
                return

    def entered_by(self, start: p.Frame) -> dict[p.Position, p.Frame | None]:
        """The positions of `enter`, each with the frame whose node is read there."""
        out: dict = {}
        seen: set[int] = set()
        again: set[int] = set()  # what the repeats entered here go on with after an item
        work: list[p.Frame | None] = [start]
        most = self.limits.closure
        while work:
            frame = work.pop()
            if frame is None:
                out[self.accept] = None
                continue
            if frame.number != _PASSING:
                if frame.number in seen:
                    continue
                seen.add(frame.number)
                if len(seen) > most:
                    raise LimitError(
                        "closure",
                        most,
                        "too many ways to go on without reading any text",
                        "put text before what grows: a template's argument, rules that may be empty",
                    )
            node, env, rest = frame.node, frame.env, frame.next
            kind = type(node)
            if frame is self.bottom:
                out[self._through] = None
            elif node is None:
                work.extend(self._living(frame.ways))
            elif kind is n.Literal:
                out[self.in_literal(node.data, 0, rest)] = frame
            elif kind is n.Chars:
                out[self.in_text(node.chars, None, 1, 1, rest)] = frame
            elif kind is n.Choices:
                self._choose(frame, node.values, None, rest, out, work)
            elif kind is n.Seq:
                if node.items:
                    tail = self.frame(self.rest_of(node), env, rest) if len(node.items) > 1 else rest
                    work.append(self._passing(node.items[0], env, tail))
                else:
                    work.append(rest)
            elif kind is n.Alt:
                work.extend(self._living([self._passing(item, env, rest) for item in node.items]))
            elif kind is n.Repeat:
                self._enter_repeat(frame, out, work, again)
            elif kind is n.Related:
                for chosen, after in self.ways(open_names(env, (node,)), env, rest):
                    self._enter_values(frame, self.related(node, chosen), after, out, work)
            elif kind is n.Call and not node.args and not env.values:  # the common case, and quicker so
                work.append(self.frame(env.grammar.rules[node.rule].body, self.env(env.grammar, {}, 0), rest))
            elif kind is n.Call:
                level = _level(rest)
                found = [
                    self.frame(body, inner, after)
                    for chosen, after in self.ways(open_names(env, (node,)), env, rest)
                    for body, inner in self.bodies(node, chosen, level)
                ]
                work.extend(self._living(found) if len(found) > 1 else found)
            elif kind is n.Scoped:
                level = _level(rest)
                work.append(self.frame(node.node, self.scope(node, env.grammar, level), rest))
            elif kind is n.Var:
                self._enter_var(frame, out, work)
            else:
                self._enter_slot(frame, out, work)
        self._entered += len(seen)
        self.limits.check(
            "entered",
            self._entered,
            "too many ways to go on without reading any text, in all",
            "put text before what grows, or compile the grammar anew from time to time",
        )
        return out

    def _passing(self, node: n.Node, env: p.Env, rest: p.Frame | None) -> p.Frame:
        """A frame that is entered at once; what reads text there and then needs no place among all frames."""
        if type(node) in _READ_AT_ONCE and self._liveness is None:
            return p.Frame(node, env, rest, _PASSING)
        return self.frame(node, env, rest)

    def near(self, frame: p.Frame | None) -> p.Frame | None:
        """As in `Stacks`; where values may be missing, what may begin depends on all that is below."""
        return frame if self._liveness is not None else super().near(frame)

    def _living(self, frames) -> Sequence[p.Frame | None]:
        """Those of `frames` from which the text can be finished."""
        return frames if self._liveness is None else list(filter(self._liveness.can_finish, frames))

    def _choose(self, frame: p.Frame, values, bind, rest: p.Frame | None, out: dict, work: list) -> None:
        low = 0
        if not values[0]:  # the empty text is among them
            work.append(rest if bind is None else self.rebind(rest, rest.env, bind, b""))
            low = 1
        if low < len(values):
            for position in self.into_choices(values, low, len(values), 0, bind, rest):
                out[position] = frame

    def _enter_repeat(self, frame: p.Frame, out: dict, work: list, again: set[int]) -> None:
        node, env, rest = frame.node, frame.env, frame.next
        low, high = node.low, node.high
        self._repeats.setdefault((id(node.item), low, high), node)
        if isinstance(node.item, n.Chars):
            out[self.in_text(node.item.chars, None, low, high, rest)] = frame
            if low == 0:
                work.append(rest)
            return
        if frame.number in again and self.accept in self.enter(self.frame(node.item, env, None)):
            # an item was passed without reading anything, so all that are left can be, and a smaller
            # count adds nothing; where items can't be, joined stacks came to this count by themselves
            work.extend(self._living([rest]))
            return
        left = None if high is None else high - 1
        after = rest
        if left != 0:
            after = self.frame(self.repeat(node.item, max(low - 1, 0), left), env, rest)
            again.add(after.number)
        item = self.frame(node.item, env, after)
        work.extend([item] if low else self._living([item, rest]))

    def _enter_var(self, frame: p.Frame, out: dict, work: list) -> None:
        name, env, rest = frame.node.name, frame.env, frame.next
        value = env.values[name]
        if isinstance(value, p.Thunk):
            work.append(self.frame(value.node, value.env, rest))
        elif isinstance(value, bytes):
            if value:
                out[self.in_literal(value, 0, rest)] = frame
            else:
                work.append(rest)
        elif rest is None or rest.env is not env:
            self._choose(frame, value.values, None, rest, out, work)  # not used again: no need to tie
        else:
            values = self._live_values(value.values, env, rest, name) if self._liveness else value.values
            self._choose(frame, values, name, rest, out, work)

    def _live_values(self, values, env: p.Env, rest: p.Frame, name: str) -> tuple[bytes, ...]:
        if name not in open_names(env, own_frames(rest, env)[0]):
            return values  # only written: each will do
        kept = tuple(v for v in values if self._liveness.can_finish(self.rebind(rest, env, name, v)))
        return values if len(kept) == len(values) else self.list_of(kept)

    def _enter_slot(self, frame: p.Frame, out: dict, work: list) -> None:
        node, env = frame.node, frame.env
        value = env.grammar.bindings.get(node.name)
        if ends_action(node, env):
            out[self.step_end(frame.next)] = frame
        elif isinstance(value, dict) and value:
            raise GrammarError(
                f"slot {node.name} depends on a key, but stands where there is none",
                hint=f"use it as a template argument followed by its key, such as rule{{{node.name}, r}}",
            )
        elif value:
            self._enter_values(frame, value if isinstance(value, Grammar) else p.Unbound(value), frame.next, out, work)

    def _enter_values(
        self, frame: p.Frame, values: p.Unbound | Grammar, rest: p.Frame | None, out: dict, work: list
    ) -> None:
        if not isinstance(values, Grammar):
            if values.values:
                self._choose(frame, values.values, None, rest, out, work)
            return
        if values.unbound():
            slot = frame.node if isinstance(frame.node, n.Slot) else frame.node.slot
            raise GrammarError(f"slot {slot.name} is bound to a grammar whose slots are not: {values.unbound()}")
        work.append(self.frame(values.start, self.env(values, {}, _level(rest)), rest))


def _level(rest: p.Frame | None) -> int:
    """The level of a call that goes on with `rest` (see `Env`)."""
    return 0 if rest is None or rest.env is None else 1 - rest.env.level


def _number(position: p.Position) -> int:
    return position.number


class State:
    """A set of positions: every way to read what has been read so far.

    Attributes
    ----------
    positions : tuple of Position
    accepting : bool
        The text, or (where an action ends) the action, is complete.
    """

    __slots__ = ("_steps", "accepting", "automaton", "positions")

    def __init__(self, automaton, positions: tuple):
        self.automaton = automaton
        self.positions = positions
        self.accepting = any(isinstance(q, (p.Accept, p.StepEnd)) for q in positions)
        self._steps: dict[int, State | None] = {}

    def step(self, byte: int) -> State | None:
        """The state after `byte`; None if no text of the language goes on so."""
        try:
            return self._steps[byte]
        except KeyError:
            pass
        automaton = self.automaton
        if len(self.positions) == 1:
            found = self.positions[0].step(automaton, byte)
        else:
            found = tuple(t for q in self.positions for t in q.step(automaton, byte))
        state = self._steps[byte] = automaton.state(found) if found else None
        return state

    def read(self, data: bytes) -> State | None:
        """The state after all of `data`."""
        state = self
        for byte in data:
            state = state.step(byte)
            if state is None:
                return None
        return state

    def forced_text(self, limit: int = MAX_FORCED) -> bytes:
        """The bytes that must come next; empty where there is a choice or the text is complete."""
        out = bytearray()
        state = self
        while not state.accepting and len(out) < limit:
            byte = None
            for position in state.positions:
                for other in position.first():
                    if byte is not None and other != byte:
                        return bytes(out)
                    byte = other
            out.append(byte)
            state = state.step(byte)
        return bytes(out)

    def texts(self, limit: int) -> list[bytes] | None:
        """Every text that completes the state, sorted; None if they are more than `limit`."""
        out: list[bytes] = []
        work: list[tuple[State, bytes]] = [(self, b"")]
        steps = 0
        while work:
            state, text = work.pop()
            if state.accepting:
                out.append(text)
            work.extend((after, text + piece) for piece, after in state._onward())
            steps += 1
            # what is begun has a completion of its own each
            if len(out) + len(work) > limit or steps > 64 * (limit + 1):
                return None
        return sorted(out)

    def _onward(self) -> list[tuple[bytes, State]]:
        """Every way to go on, by a byte or by all that must come next, and the state after it."""
        run = self.positions[0].run(self.automaton) if len(self.positions) == 1 else None
        if run:  # most of a text has no choice in it
            return [(run[0], self.automaton.state(run[1]))]
        return [(bytes((byte,)), self.step(byte)) for byte in self.first()]

    def first(self) -> set[int]:
        """The bytes that may come next."""
        return {b for q in self.positions for b in q.first()}

    def ends(self) -> list[p.Frame | None]:
        """What may follow the action that is complete here (see `StepEnd`); None: nothing."""
        return list(alternatives(q.rest for q in self.positions if isinstance(q, (p.Accept, p.StepEnd))))

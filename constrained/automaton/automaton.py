"""The byte automaton of a grammar: nondeterministic, lazy, states interned.

A state is a set of positions. `enter` follows everything that reads no byte; `State.step`
reads one. States and positions come into being when generation, or a mask's walk, first
reaches them.
"""

from __future__ import annotations

from constrained.automaton import positions as p
from constrained.errors import GrammarError
from constrained.grammar import nodes as n
from constrained.grammar.grammar import STEP, Grammar

MAX_POSITIONS = 2_000_000
"""Positions one automaton may come to hold; a grammar beyond it is refused, not swapped."""

MAX_FORCED = 4096
"""Bytes that `State.forced_text` looks ahead at most."""


class State:
    """A set of positions: every way to read what has been read so far.

    Attributes
    ----------
    positions : tuple of Position
    accepting : bool
        The text, or (where an action ends) the action, is complete.
    """

    __slots__ = ("positions", "accepting", "_steps", "automaton")

    def __init__(self, automaton: Automaton, positions: tuple):
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

    def forced_text(self) -> bytes:
        """The bytes that must come next; empty where there is a choice or the text is complete."""
        out = bytearray()
        state = self
        while not state.accepting and len(out) < MAX_FORCED:
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
            for byte in state.first():
                work.append((state.step(byte), text + bytes((byte,))))
            steps += 1
            if len(out) > limit or steps > 64 * (limit + 1):
                return None
        return sorted(out)

    def first(self) -> set[int]:
        """The bytes that may come next."""
        return {b for q in self.positions for b in q.first()}

    def ends(self) -> list[p.Frame | None]:
        """What may follow the action that is complete here (see `StepEnd`)."""
        return [q.rest for q in self.positions if isinstance(q, p.StepEnd)]


class Automaton:
    """The automaton of `grammar`, grown as it is used."""

    def __init__(self, grammar: Grammar):
        missing = grammar.unbound()
        if missing:
            raise GrammarError(
                f"slot {missing[0]} is not bound",
                hint="bind it first: .bind(" + ", ".join(f"{m}=[...]" for m in missing) + ")",
            )
        self.grammar = grammar
        self._frames: dict[tuple, p.Frame] = {}
        self._envs: dict[tuple, p.Env] = {}
        self._positions: dict[tuple, p.Position] = {}
        self._states: dict[tuple, State] = {}
        self._repeats: dict[tuple, n.Repeat] = {}
        self._tails: dict[int, n.Node] = {}
        self._keep: list = []
        self._alive: dict[tuple, bool] = {}
        self._partial = any(isinstance(v, dict) for v in grammar.bindings.values())
        self.accept = self._position(p.Accept, (), None)
        root = self._env(grammar, {}, 0)
        if self._partial and not self.alive(grammar.start, root):
            raise GrammarError(
                "with these bindings no text can be complete",
                hint="some slot on every way has no value left; bind more values",
            )
        self.start = self.state(self.enter(self.frame(grammar.start, root, None)))

    def read(self, data: bytes) -> State | None:
        """The state after `data` from the start."""
        return self.start.read(data)

    def state(self, positions) -> State:
        key = tuple(sorted(set(positions), key=_number)) if len(positions) > 1 else tuple(positions)
        found = self._states.get(key)
        if found is None:
            found = self._states[key] = State(self, key)
        return found

    # interning

    def frame(self, node: n.Node, env: p.Env, next: p.Frame | None) -> p.Frame:
        key = (id(node), id(env), next.number if next else -1)
        found = self._frames.get(key)
        if found is None:
            found = self._frames[key] = p.Frame(node, env, next, len(self._frames))
        return found

    def _env(self, grammar, values: dict, level: int) -> p.Env:
        key = (id(grammar), level, tuple(values.items()))
        found = self._envs.get(key)
        if found is None:
            found = self._envs[key] = p.Env(grammar, values, level)
        return found

    def _position(self, kind, fields: tuple, rest: p.Frame | None):
        key = (kind, fields, rest.number if rest else -1)
        found = self._positions.get(key)
        if found is None:
            if len(self._positions) >= MAX_POSITIONS:
                raise GrammarError(
                    f"the automaton passed {MAX_POSITIONS} positions",
                    hint="bounded repeats of bounded repeats multiply: loosen one of the bounds",
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

    def into_choices(self, values, low: int, high: int, depth: int, bind: str | None, rest) -> tuple:
        """Positions `depth` bytes into `values[low:high]`, those after a finished one included."""
        out = ()
        if len(values[low]) == depth:
            after = rest if bind is None else self._rebind(rest, rest.env, bind, values[low])
            out = self.enter(after)
            low += 1
        if low == high:
            return out
        position = self._position(p.InChoices, (id(values), low, high, depth, bind), rest)
        if not hasattr(position, "values"):
            self._keep.append(values)  # the key holds its id
            position.values, position.low, position.high = values, low, high
            position.depth, position.bind = depth, bind
        return (*out, position)

    def _repeat(self, item: n.Node, low: int, high: int | None) -> n.Repeat:
        key = (id(item), low, high)
        found = self._repeats.get(key)
        if found is None:
            found = self._repeats[key] = n.Repeat(item, low, high)
        return found

    def _tail(self, node: n.Seq) -> n.Node:
        found = self._tails.get(id(node))
        if found is None:
            rest = node.items[1:]
            found = self._tails[id(node)] = rest[0] if len(rest) == 1 else n.Seq(rest)
            self._keep.append(node)
        return found

    # what reads no byte

    def enter(self, frame: p.Frame | None) -> tuple:
        """The positions reached from `frame` without reading a byte."""
        if frame is None:
            return (self.accept,)
        if frame.closure is None:
            frame.closure = self._close(frame)
        return frame.closure

    def _close(self, start: p.Frame) -> tuple:
        out: dict = {}
        seen: set[int] = set()
        loops: dict[tuple, int] = {}
        work: list[p.Frame | None] = [start]
        while work:
            frame = work.pop()
            if frame is None:
                out[self.accept] = None
                continue
            if frame.number in seen:
                continue
            seen.add(frame.number)
            node, env, rest = frame.node, frame.env, frame.next
            kind = type(node)
            if kind is n.Literal:
                out[self.in_literal(node.data, 0, rest)] = None
            elif kind is n.Chars:
                out[self.in_text(node.chars, None, 1, 1, rest)] = None
            elif kind is n.Choices:
                self._choose(node.values, None, rest, out, work)
            elif kind is n.Seq:
                if node.items:
                    tail = self.frame(self._tail(node), env, rest) if len(node.items) > 1 else rest
                    work.append(self.frame(node.items[0], env, tail))
                else:
                    work.append(rest)
            elif kind is n.Alt:
                for item in node.items:
                    if not self._partial or self.alive(item, env):
                        work.append(self.frame(item, env, rest))
            elif kind is n.Repeat:
                self._enter_repeat(node, env, rest, out, work, loops)
            elif kind is n.Call:
                work.extend(self.frame(b, e, rest) for b, e in self._call(node, env, rest))
            elif kind is n.Scoped:
                level = 0 if rest is None else rest.env.level + 1
                work.append(self.frame(node.node, self._scope(node, env.grammar, level), rest))
            elif kind is n.Var:
                self._enter_var(node.name, env, rest, frame, out, work)
            else:
                self._enter_slot(node.name, env, rest, out, work)
        return tuple(out)

    def _choose(self, values, bind, rest, out: dict, work: list) -> None:
        low = 0
        if not values[0]:  # the empty text is among them
            work.append(rest if bind is None else self._rebind(rest, rest.env, bind, b""))
            low = 1
        if low < len(values):
            for position in self.into_choices(values, low, len(values), 0, bind, rest):
                out[position] = None

    def _enter_repeat(self, node, env, rest, out, work, loops) -> None:
        low, high = node.low, node.high
        if isinstance(node.item, n.Chars):
            out[self.in_text(node.item.chars, None, low, high, rest)] = None
            if low == 0:
                work.append(rest)
            return
        if self._nullable(node.item, env):
            # having read nothing, a smaller count of the same repeat adds nothing
            low, key = 0, (id(node.item), id(env), rest.number if rest else -1)
            if loops.get(key, -1) >= (high or 1 << 60):
                return
            loops[key] = high or 1 << 60
        if low == 0:
            work.append(rest)
        if self._partial and not self.alive(node.item, env):
            return
        left = None if high is None else high - 1
        after = rest
        if left != 0:
            after = self.frame(self._repeat(node.item, max(low - 1, 0), left), env, rest)
        work.append(self.frame(node.item, env, after))

    def _nullable(self, node: n.Node, env: p.Env) -> bool:
        if isinstance(node, (n.Literal, n.Chars)):
            return False
        if isinstance(node, n.Choices):
            return not node.values[0]
        if isinstance(node, n.Seq):
            return all(self._nullable(i, env) for i in node.items)
        if isinstance(node, n.Alt):
            return any(self._nullable(i, env) for i in node.items)
        if isinstance(node, n.Repeat):
            return node.low == 0 or self._nullable(node.item, env)
        if self._ends_action(node, env):
            return False
        probe = self._close(self.frame(node, env, None))  # calls, parameters, slots
        return self.accept in probe

    def _enter_var(self, name: str, env: p.Env, rest, frame, out, work) -> None:
        value = env.values[name]
        if isinstance(value, p.Thunk):
            work.append(self.frame(value.node, value.env, rest))
        elif isinstance(value, bytes):
            if value:
                out[self.in_literal(value, 0, rest)] = None
            else:
                work.append(rest)
        elif rest is None or rest.env is not env:
            self._choose(value.values, None, rest, out, work)  # not used again: no need to tie
        else:
            values = value.values
            if self._partial:
                values = self._live_values(values, rest, env, name)
            if values:
                self._choose(values, name, rest, out, work)

    def _live_values(self, values, rest, env, name) -> tuple[bytes, ...]:
        def lives(value: bytes) -> bool:
            frame = self._rebind(rest, env, name, value)
            bound = frame.env if frame else None
            while frame is not None and frame.env is bound:
                if self._ends_action(frame.node, frame.env):
                    return True
                if not self.alive(frame.node, frame.env):
                    return False
                frame = frame.next
            return True

        kept = tuple(v for v in values if lives(v))
        return values if len(kept) == len(values) else kept

    def _enter_slot(self, name: str, env: p.Env, rest, out, work) -> None:
        value = env.grammar.bindings.get(name)
        if value is None and name == STEP:
            out[self._position(p.StepEnd, (), rest)] = None
        elif isinstance(value, Grammar):
            if value.unbound():
                raise GrammarError(f"slot {name} is bound to a grammar whose slots are not: {value.unbound()}")
            level = rest.env.level + 1 if rest else 0
            work.append(self.frame(value.start, self._env(value, {}, level), rest))
        elif isinstance(value, dict):
            raise GrammarError(
                f"slot {name} depends on a key, but stands where there is none",
                hint=f"use it as a template argument followed by its key, such as rule{{{name}, r}}",
            )
        else:
            self._choose(value, None, rest, out, work)

    def _rebind(self, frame: p.Frame | None, env: p.Env, name: str, value: bytes):
        """`frame` with the frames of `env`'s own call given the parameter's value."""
        if frame is None or frame.env is not env:
            return frame
        bound = self._env(env.grammar, {**env.values, name: value}, env.level)
        return self.frame(frame.node, bound, self._rebind(frame.next, env, name, value))

    # calls

    def _scope(self, node: n.Scoped, grammar, level: int) -> p.Env:
        values = {}
        for name, value in node.values.items():
            if isinstance(value, n.Scoped):
                value = p.Thunk(value.node, self._scope(value, grammar, level))
            elif isinstance(value, tuple):
                value = p.Unbound(value)
            values[name] = value
        return self._env(grammar, values, level)

    def _call(self, node: n.Call, env: p.Env, rest) -> list[tuple[n.Node, p.Env]]:
        """(body, parameters) of the call: several where a parameter must be fixed now."""
        rule = env.grammar.rules[node.rule]
        level = 0 if rest is None else rest.env.level + 1
        if not node.args:
            return [(rule.body, self._env(env.grammar, {}, level))]
        pending: list[dict] = [{}]
        for i in reversed(range(len(node.args))):
            pending = [
                {rule.params[i]: value, **done}
                for done in pending
                for value in self._argument(node, i, env, done, rule.params)
            ]
        return [(rule.body, self._env(env.grammar, values, level)) for values in pending]

    def _argument(self, node: n.Call, i: int, env: p.Env, done: dict, params) -> list:
        """The values argument `i` may take, those after it being `done`."""
        arg = node.args[i]
        if isinstance(arg, n.Var):
            value = env.values[arg.name]
            return list(value.values) if isinstance(value, p.Unbound) else [value]
        if isinstance(arg, (n.Literal, n.Choices)):
            values = (arg.data,) if isinstance(arg, n.Literal) else arg.values
        elif isinstance(arg, n.Slot):
            values = self._slot_values(arg.name, env, done, params, i)
            if values is None:
                return [self._thunk(arg, env)]
        else:
            return [self._thunk(arg, env)]
        if not values:
            return []
        before = node.args[i - 1] if i else None
        keyed = isinstance(before, n.Slot) and isinstance(env.grammar.bindings.get(before.name), dict)
        if keyed or len(values) == 1:
            return list(values)  # the slot before it depends on this value
        return [p.Unbound(values)]

    @staticmethod
    def _thunk(arg: n.Node, env: p.Env) -> p.Thunk:
        for node in n.walk(arg):
            if isinstance(node, n.Var) and isinstance(env.values[node.name], p.Unbound):
                raise GrammarError(
                    f"parameter '{node.name}' is passed on inside an argument before it has a value",
                    hint="write the parameter into the text first, or pass it by itself",
                )
        return p.Thunk(arg, env)

    def _slot_values(self, name: str, env: p.Env, done: dict, params, i: int):
        value = env.grammar.bindings.get(name)
        if isinstance(value, Grammar) or (value is None and name == STEP):
            return None
        if not isinstance(value, dict):
            return value
        key = done.get(params[i + 1]) if i + 1 < len(params) else None
        if not isinstance(key, bytes):
            raise GrammarError(
                f"slot {name} depends on a key, but no argument follows it in the template call",
                hint=f"write the parameter it depends on after it: rule{{{name}, r}}",
            )
        return value.get(key, ())

    # liveness, only where a slot may have no value for some key

    def alive(self, node: n.Node, env: p.Env, path: frozenset = frozenset()) -> bool:
        """Whether some text completes `node`; least fixed point by depth-first search."""
        if isinstance(node, (n.Literal, n.Chars, n.Choices)):
            return True
        key = (id(node), id(env))
        known = self._alive.get(key)
        if known is not None:
            return known
        if key in path:
            return False
        deeper = path | {key}
        if isinstance(node, n.Seq):
            lives = True
            for item in node.items:
                if self._ends_action(item, env):
                    break  # what comes after is bound anew
                if not self.alive(item, env, deeper):
                    lives = False
                    break
        elif isinstance(node, n.Alt):
            lives = any(self.alive(i, env, deeper) for i in node.items)
        elif isinstance(node, n.Repeat):
            lives = node.low == 0 or self.alive(node.item, env, deeper)
        elif isinstance(node, n.Call):
            marker = self.frame(n.EMPTY, env, None)
            lives = any(self.alive(b, e, deeper) for b, e in self._call(node, env, marker))
        elif isinstance(node, n.Scoped):
            lives = self.alive(node.node, self._scope(node, env.grammar, 0), deeper)
        elif isinstance(node, n.Var):
            value = env.values[node.name]
            lives = not isinstance(value, p.Thunk) or self.alive(value.node, value.env, deeper)
        else:
            lives = True  # a list is never empty, and a mapping stands only in a call
        if lives or not path:
            self._alive[key] = lives
            self._keep.append((node, env))
        return lives


    @staticmethod
    def _ends_action(node: n.Node, env: p.Env) -> bool:
        return isinstance(node, n.Slot) and node.name == STEP and STEP not in env.grammar.bindings


def _number(position: p.Position) -> int:
    return position.number

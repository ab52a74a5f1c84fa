"""The byte automaton of a grammar: nondeterministic, lazy, states interned.

A state is a set of positions. `enter` follows everything that reads no byte; `State.step`
reads one. States and positions come into being when generation, or a mask's walk, first
reaches them.
"""

from __future__ import annotations

from constrained.automaton import positions as p
from constrained.automaton.state import State
from constrained.automaton.templates import Templates
from constrained.errors import GrammarError
from constrained.grammar import nodes as n
from constrained.grammar.grammar import STEP, Grammar


class Automaton(Templates):
    """The automaton of `grammar`, grown as it is used."""

    def __init__(self, grammar: Grammar):
        missing = grammar.unbound()
        if missing:
            raise GrammarError(
                f"slot {missing[0]} is not bound",
                hint="bind it first: .bind(" + ", ".join(f"{m}=[...]" for m in missing) + ")",
            )
        super().__init__()
        self.grammar = grammar
        self._states: dict[tuple, State] = {}
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

"""The shortest text after a stack, and the fewest tokens that spell it: once for each frame, at any depth.

Among the texts that a stack can end with, one is taken: the shortest, and of these the first in an order of bytes
(`_RANK`). Such a text is made of the parts' own: that of a sequence is those of its items, that of a frame stands
before that of the frame below. What is left of it after some token is therefore the text of a position after that
token, and a budget that admits it can be kept. The fewest tokens that spell the rest of a text don't depend on what is
written before it, so they are kept for each byte of a frame's part.

Only plain constructs are known here: text, sequences, alternatives, repeats and calls without arguments.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from constrained.automaton.positions import Bottom, Fork, Frame, InChoices, InLiteral, InLoop, InText, Position, Stack
from constrained.automaton.vocabulary import Vocabulary
from constrained.grammar import nodes as n
from constrained.grammar.charset import CharSet
from constrained.grammar.grammar import ContextFreeGrammar

LONGEST = 4_096
"""Most bytes of one construct's shortest text."""

_FIRST = b"abcdefghijklmnopqrstuvwxyz" + bytes(b for b in range(0x20, 0x7F) if not 0x61 <= b <= 0x7A)
_ORDER = _FIRST + bytes(byte for byte in range(256) if byte not in _FIRST)
_RANK = bytes(map(_ORDER.index, range(256)))
"""Of each byte, its place in the order in which `CharSet.shortest` prefers characters."""


class _Unknown(Exception):
    """The shortest text isn't computed here: the construct isn't plain, or the text is too long."""


class _Part(NamedTuple):
    """The text that a frame reads: ``needs[i]`` tokens spell all from its byte `i` to the end of the stack."""

    data: bytes
    needs: list[int]
    below: _Part | None


class StackEnds:
    """The fewest tokens for the shortest text after each position of one automaton."""

    def __init__(self, vocabulary: Vocabulary):
        self._vocabulary = vocabulary
        self._parts: dict[Stack, _Part | bool | None] = {None: None}  # False: not known
        self._texts: dict[tuple[int, int], tuple[n.Node, bytes]] = {}
        self._rules: dict[int, _Rules] = {}
        self._needs: dict[Position, int | None] = {}

    def tokens(self, q: Position) -> int | None:
        """The fewest tokens from `q` to the end, by its shortest text; None if it isn't known, or can't be spelled."""
        if q not in self._needs:
            self._needs[q] = self._from(q)
        return self._needs[q]

    def _from(self, q: Position) -> int | None:
        below = self._part(q.rest)
        if below is False:
            return None
        assert not isinstance(below, bool), "one that is known"
        try:
            data = self._begun(q)
        except _Unknown:
            return None
        part = self._over(data, below)
        return _need(part) if part is not False else None

    def _begun(self, q: Position) -> bytes:
        """The shortest text that `q` itself still reads."""
        if isinstance(q, InLiteral):
            return q.data[q.at :]
        if isinstance(q, InChoices) and q.bind is None:
            return min((value[q.depth :] for value in q.values[q.low : q.high]), key=_order)
        if isinstance(q, InText) and q.inside is None:
            one = _character(q.chars)
            if isinstance(q, InLoop):
                one = min(one, self._text(q.loop.item, q.loop.env.grammar), key=_order)
            return one * max(q.low, 1)
        raise _Unknown

    def _part(self, frame: Stack) -> _Part | bool | None:
        """The part of `frame`, linked to those of the frames below; False if it isn't known."""
        chain: list[Frame] = []
        below = frame
        while below not in self._parts:
            if below is None or isinstance(below, (Fork, Bottom)):
                self._parts[below] = False
                break
            chain.append(below)
            below = below.next
        part = self._parts[below]
        for above in reversed(chain):
            if not isinstance(part, bool):
                try:
                    text = b"" if above.env.values else self._text(above.node, above.env.grammar)
                    part = False if above.env.values else self._over(text, part)
                except _Unknown:
                    part = False
            self._parts[above] = part
        return part

    def _over(self, data: bytes, below: _Part | None) -> _Part | bool | None:
        """A part of this text; False if no tokens spell it."""
        if not data:
            return below
        reach, spellings = self._reach, self._vocabulary._spellings
        window, needs = [data], [0] * len(data)
        most = max(i + reach.get(byte, 0) for i, byte in enumerate(data))
        size, at = len(data), below
        while at is not None and size <= most:  # a token may reach into the parts below
            window.append(at.data)
            needs += at.needs
            size += len(at.data)
            at = at.below
        if at is None:
            needs.append(0)  # at the end of the text
        text = b"".join(window)
        for i in range(len(data) - 1, -1, -1):
            ends = range(i + 1, min(i + reach.get(data[i], 0), len(text)) + 1)
            result = [needs[end] for end in ends if end < len(needs) and text[i:end] in spellings]
            if not result:
                return False
            needs[i] = min(result) + 1
        return _Part(data, needs[: len(data)], below)

    @cached_property
    def _reach(self) -> dict[int, int]:
        """First byte -> length in bytes of the longest token that begins with it."""
        result: dict[int, int] = {}
        for token in self._vocabulary.sorted_tokens:
            result[token[0]] = max(len(token), result.get(token[0], 0))
        return result

    def _text(self, node: n.Node, grammar: ContextFreeGrammar) -> bytes:
        key = id(node), id(grammar)
        if key not in self._texts:
            rules = self._rules.get(id(grammar))
            if rules is None:
                rules = self._rules[id(grammar)] = _Rules(grammar)
            self._texts[key] = node, rules.shortest_text(node)
        return self._texts[key][1]


class _Rules:
    """The shortest texts of one grammar's rules, by iteration until no text gets shorter (or earlier in order)."""

    def __init__(self, grammar: ContextFreeGrammar):
        self.grammar = grammar
        self._texts: dict[str, bytes | None] = {}  # None: no text is known yet

    def shortest_text(self, node: n.Node) -> bytes:
        """The shortest text of `node`; those of the rules that it can reach are computed first."""
        reached: dict[str, n.Node] = {}
        work = [node]
        while work:
            for inner in n.walk(work.pop()):
                if isinstance(inner, n.RuleRef) and inner.rule not in self._texts and inner.rule not in reached:
                    work.append(reached.setdefault(inner.rule, self.grammar.rules[inner.rule].body))
        self._texts.update(dict.fromkeys(reached))
        changed = bool(reached)
        try:
            while changed:
                changed = False
                for rule in reversed(reached):
                    text, before = self._of(reached[rule]), self._texts[rule]
                    if text is not None and (before is None or _order(text) < _order(before)):
                        self._texts[rule], changed = text, True
            text = self._of(node)
        except _Unknown:
            for rule in reached:
                del self._texts[rule]
            raise
        if text is None:
            raise _Unknown
        return text

    def _of(self, node: n.Node) -> bytes | None:
        match node:
            case n.LiteralText(data):
                return data
            case n.Chars(chars):
                return _character(chars)
            case n.Choices(values):
                return min(values, key=_order)
            case n.Seq(items):
                parts = [self._of(item) for item in items]
                texts = [part for part in parts if part is not None]
                _check(sum(map(len, texts)))
                return b"".join(texts) if len(texts) == len(parts) else None
            case n.Alt(items):
                return min((part for part in map(self._of, items) if part is not None), key=_order, default=None)
            case n.Repeat(item, low):
                part = self._of(item)  # raises _Unknown for an item that isn't plain, even if it is repeated 0 times
                if part is None or not low:
                    return None if low else b""
                _check(len(part) * low)
                return part * low
            case n.RuleRef(rule, ()):
                return self._texts[rule]
        raise _Unknown


def _need(part: _Part | bool | None) -> int:
    return part.needs[0] if isinstance(part, _Part) else 0


def _order(text: bytes) -> tuple[int, bytes]:
    return len(text), text.translate(_RANK)


def _character(chars: CharSet) -> bytes:
    return chars.shortest()


def _check(length: int) -> None:
    if length > LONGEST:
        raise _Unknown

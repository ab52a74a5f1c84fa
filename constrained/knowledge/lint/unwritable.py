"""Text that a tokenizer has no tokens for.

A text is written token by token, and a token may begin before a literal and end after it. So a
literal counts as unwritable only if no tokens cover it, however they are laid over its ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from constrained.automaton import Grammar, Vocabulary, compile_grammar
from constrained.errors import VocabularyError
from constrained.grammar import nodes as n
from constrained.grammar.lark_outline import Outline, items_in
from constrained.grammar.lark_syntax import Quoted, Range
from constrained.grammar.source import SourceSpan
from constrained.knowledge.action_knowledge import ActionKnowledge
from constrained.knowledge.lint.finding import Finding
from constrained.knowledge.lint.refused import node_of
from constrained.knowledge.unordered import UnorderedActions

_WHY = "a model with this tokenizer can't write it: whatever needs it is never offered"
_LOOKED_AT = 2000
"""Characters of a set that are tried before it counts as writable."""


class Tokens:
    """What a vocabulary's tokens can cover."""

    def __init__(self, vocabulary: Vocabulary):
        self.vocabulary = vocabulary
        self._whole = set(vocabulary.sorted_tokens)
        self._longest = max(map(len, self._whole), default=0)
        self.all_bytes = all(bytes((b,)) in self._whole for b in range(256))
        self._joined: bytes | None = None
        self._heads: set[bytes] | None = None
        self._tails: set[bytes] | None = None

    def gap(self, data: bytes) -> int | None:
        """How many bytes of `data` tokens can cover, if not all; None if they can."""
        if self.all_bytes or not data or self._within(data):
            return None
        heads, tails = self._ends()
        reached = {0} | {i for i in range(1, min(len(data), self._longest)) if data[:i] in tails}
        for at in range(len(data)):
            if at not in reached:
                continue
            if data[at:] in heads:
                return None
            for end in range(at + 1, min(len(data), at + self._longest) + 1):
                if data[at:end] in self._whole:
                    reached.add(end)
        return None if len(data) in reached else max(reached)

    def _within(self, data: bytes) -> bool:
        """Whether one token holds all of `data`."""
        if self._joined is None:
            # 0xFF is in no UTF-8 text, so nothing is found across two tokens
            self._joined = b"\xff".join(self._whole)
        return data in self._joined

    def _ends(self) -> tuple[set[bytes], set[bytes]]:
        if self._heads is None or self._tails is None:
            self._heads = {t[:i] for t in self._whole for i in range(1, len(t))}
            self._tails = {t[i:] for t in self._whole for i in range(1, len(t))}
        return self._heads, self._tails


def unwritable(outline: Outline, reached: set[str], values: Mapping, tokens: Tokens, name: str) -> Iterator[Finding]:
    """Literals, characters and slot values that can't be written; `name` is the tokenizer's."""
    if tokens.all_bytes:
        return
    for definition in outline.definitions:
        if definition.name not in reached:
            continue
        for item in items_in(definition.options):
            if isinstance(item, (Quoted, Range)):
                for character in _missing(node_of(item), tokens):
                    yield _finding(item.text, character, name, outline.span(item))
    for slot, value in values.items():
        place = outline.declared.get(slot)
        for text in _texts(value):
            at = tokens.gap(text.encode("utf-8", "replace"))
            if at is not None and place is not None:
                yield _finding(f"{text!r}, a value of slot {slot},", _character(text.encode(), at), name, place)
                break


def never_whole(
    grammar: Grammar, knowledge: ActionKnowledge | None, outline: Outline, tokens: Tokens, name: str, start: str
) -> Iterator[Finding]:
    """Actions, or the whole, that no tokens one after the other can write, though each literal could be.

    Exact: the engine's own search for tokens up to the end, which can't be asked while slots have no values.
    """
    if tokens.all_bytes or grammar.unbound():
        return
    texts = {start: grammar.automaton.start}
    if knowledge is not None:
        unordered = UnorderedActions(grammar, knowledge.graph)
        texts = {action: unordered.opening(action) for action in knowledge.graph.actions}
    for rule, state in texts.items():
        if state is None:
            continue  # these bindings leave it no text at all
        try:
            compile_grammar(state.automaton.grammar, tokens.vocabulary)
        except VocabularyError:
            place = outline.span_of(rule)
            yield Finding(
                "unwritable-text",
                f"no text of '{rule}' can be written: no row of {name}'s tokens spells one out",
                _WHY,
                "word it so that tokens end where its parts do, or use a tokenizer with byte tokens",
                place,
            )


def _finding(what: str, character: str, name: str, place: SourceSpan) -> Finding:
    spelled = " ".join(f"{b:02X}" for b in character.encode())
    return Finding(
        "unwritable-text",
        f"{what} can't be written: {name} has no tokens for {character!r} (bytes {spelled})",
        _WHY,
        f"write it without {character!r}, or use a tokenizer with byte tokens",
        place,
    )


def _missing(node: n.Node, tokens: Tokens) -> Iterator[str]:
    """A character of every literal, and of every set, that tokens can't cover; each once."""
    told: set[str] = set()
    for part in n.walk(node):
        texts = (part.data,) if isinstance(part, n.Literal) else getattr(part, "values", ())
        for data in texts:
            at = tokens.gap(data)
            if at is not None:
                told.add(_character(data, at))
        if isinstance(part, n.Chars) and not _some_writable(part, tokens):
            told.add(part.chars.shortest().decode())
    yield from sorted(told)


def _some_writable(part: n.Chars, tokens: Tokens) -> bool:
    tried = 0
    for low, high in part.chars.ranges:
        for code in range(low, high + 1):
            if tokens.gap(chr(code).encode()) is None:
                return True
            tried += 1
            if tried > _LOOKED_AT:
                return True
    return False


def _character(data: bytes, at: int) -> str:
    """The character that byte `at` belongs to."""
    while at and data[at] & 0xC0 == 0x80:
        at -= 1
    return data[at:].decode("utf-8", "replace")[:1]


def _texts(value) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, (list, tuple)):
        yield from (v for v in value if isinstance(v, str))

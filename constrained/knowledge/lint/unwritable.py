"""Find text for which a tokenizer has no tokens.

A text is written token by token, and a token may begin before a literal and end after it. So a literal is unwritable
only if no tokens cover it, however they overlap its ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import chain
from typing import Any

from constrained.automaton import Grammar, Vocabulary, compile_grammar
from constrained.errors import VocabularyError
from constrained.grammar import nodes
from constrained.grammar.lark_outline import Outline
from constrained.grammar.lark_syntax import Quoted, Range, walk
from constrained.grammar.nodes import Chars, Choices, LiteralText, Node
from constrained.grammar.source import SourceSpan
from constrained.knowledge.action_knowledge import ActionKnowledge
from constrained.knowledge.lint.finding import Finding
from constrained.knowledge.lint.refused import node_of
from constrained.knowledge.tool_calls import strings_in
from constrained.knowledge.unordered import UnorderedActions

_TRIED = 2000
"""Characters of a set that are tried before the set counts as writable."""


class TokenCover:
    """Which texts a vocabulary's tokens can cover. `all_bytes`: all bytes are tokens, so all texts can be written."""

    def __init__(self, vocabulary: Vocabulary):
        self.vocabulary = vocabulary
        self._tokens = set(vocabulary.sorted_tokens)
        self._longest = max(map(len, self._tokens), default=0)
        self.all_bytes = all(bytes((b,)) in self._tokens for b in range(256))

    def gap(self, data: bytes) -> int | None:
        """The number of bytes at the beginning of `data` that tokens can cover; None if they cover it all."""
        if self.all_bytes or not data or data in self._joined:
            return None
        reached = {0} | {i for i in range(1, min(len(data), self._longest)) if data[:i] in self._tails}
        for at in range(len(data)):
            if at not in reached:
                continue
            if data[at:] in self._heads:
                return None
            for end in range(at + 1, min(len(data), at + self._longest) + 1):
                if data[at:end] in self._tokens:
                    reached.add(end)
        return None if len(data) in reached else max(reached)

    @cached_property
    def _joined(self) -> bytes:
        """All tokens, separated by a byte that no UTF-8 text has."""
        return b"\xff".join(self._tokens)

    @cached_property
    def _heads(self) -> set[bytes]:
        return {token[:i] for token in self._tokens for i in range(1, len(token))}

    @cached_property
    def _tails(self) -> set[bytes]:
        return {token[i:] for token in self._tokens for i in range(1, len(token))}


def unwritable(
    outline: Outline, reached: set[str], values: Mapping[str, Any], tokens: TokenCover, tokenizer: str
) -> Iterator[Finding]:
    """Literals, characters and slot values that can't be written."""
    if tokens.all_bytes:
        return
    for entry in outline.definitions:
        for item in walk(entry.options) if entry.name in reached else ():
            if isinstance(item, (Quoted, Range)):
                for character in _missing(node_of(item), tokens):
                    yield _finding(item.text, character, tokenizer, outline.span(item))
    for slot, value in values.items():
        gaps = ((text, tokens.gap(text.encode("utf-8", "replace"))) for text in strings_in(value))
        missing = next(((text, at) for text, at in gaps if at is not None), None)
        if missing is not None and slot in outline.declared:
            text, at = missing
            what = f"{text!r}, a value of slot {slot},"
            yield _finding(what, _character(text.encode(), at), tokenizer, outline.declared[slot])


def never_whole(
    grammar: Grammar,
    knowledge: ActionKnowledge | None,
    outline: Outline,
    tokens: TokenCover,
    tokenizer: str,
    start: str,
) -> Iterator[Finding]:
    """Actions, or whole texts, that no sequence of tokens can write, though each of their literals can be written.

    This is exact, as the engine searches for the tokens. It needs values for all slots.
    """
    if tokens.all_bytes or grammar.unbound():
        return
    states = {start: grammar.begin}
    if knowledge is not None:
        unordered = UnorderedActions(grammar, knowledge.graph)
        openings = {action: unordered.opening(action) for action in knowledge.graph.actions}
        states = {action: state for action, state in openings.items() if state is not None}
    for rule, state in states.items():
        try:
            compile_grammar(state.automaton.grammar, tokens.vocabulary)
        except VocabularyError:
            yield Finding(
                "unwritable-text",
                f"no text of '{rule}' can be written: no sequence of {tokenizer}'s tokens spells one",
                "word it so that tokens end where its parts do, or use a tokenizer with byte tokens",
                outline.span_of(rule),
            )


def _finding(what: str, character: str, tokenizer: str, span: SourceSpan) -> Finding:
    in_bytes = " ".join(f"{b:02X}" for b in character.encode())
    return Finding(
        "unwritable-text",
        f"{what} can't be written: {tokenizer} has no tokens for {character!r} (bytes {in_bytes})",
        f"write it without {character!r}, or use a tokenizer with byte tokens",
        span,
    )


def _missing(node: Node, tokens: TokenCover) -> list[str]:
    """A character of each literal and each set that tokens can't cover; each once."""
    result: set[str] = set()
    for part in nodes.walk(node):
        match part:
            case LiteralText() | Choices():
                for data in (part.data,) if isinstance(part, LiteralText) else part.values:
                    at = tokens.gap(data)
                    if at is not None:
                        result.add(_character(data, at))
            case Chars():
                codes = chain.from_iterable(range(low, high + 1) for low, high in part.chars.ranges)
                # beyond the limit, a character counts as writable
                if not any(i == _TRIED or tokens.gap(chr(c).encode()) is None for i, c in enumerate(codes)):
                    result.add(part.chars.shortest().decode())
    return sorted(result)


def _character(data: bytes, at: int) -> str:
    """The character that byte `at` belongs to."""
    while at and data[at] & 0xC0 == 0x80:
        at -= 1
    return data[at:].decode("utf-8", "replace")[:1]

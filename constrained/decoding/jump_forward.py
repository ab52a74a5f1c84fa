"""Jump-forward: append forced text in the tokens that the tokenizer itself would choose.

Much of an agent's step is known before the model is asked (``\\nAction 3: ``, a path of past actions). Such text is
appended whole and costs no forward pass of its own. Two rules keep the tokens as the model would write them: the text
is tokenized together with the end of the text so far; and only up to the first byte from which a longer token could
reach past the forced text, for there the model, under the mask, may prefer that token.
"""

from __future__ import annotations

import codecs
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from constrained.automaton import Matcher, Vocabulary
from constrained.automaton.state import Prefix
from constrained.automaton.tokenizers import encode

CONTEXT_BYTES = 48
"""Bytes of the text so far that the tokenizer sees in front of forced text."""


def jump_forward(matcher: Matcher, tokenizer: Any, before: bytes) -> list[int]:
    """Advance the matcher over forced text.

    Parameters
    ----------
    matcher : Matcher
        Advanced past the tokens returned.
    before : bytes
        The text so far, or its end.

    Returns
    -------
    list of int
        Tokens of the forced text; empty where the model has a choice.
    """
    vocabulary = matcher.compiled.vocabulary
    tokens = []
    for token in forced_tokens(matcher.prefix, matcher.forced_text(), vocabulary, tokenizer, before):
        if not matcher.advance(token):
            break
        tokens.append(token)
    return tokens


def forced_tokens(prefix: Prefix, forced: bytes, vocabulary: Vocabulary, tokenizer: Any, before: bytes) -> list[int]:
    """The tokens of the text `forced`, which must come next after `prefix`, as far as they are certain.

    `before` is the text so far.
    """
    if not forced:
        return []
    after = prefix.read(forced)
    assert after is not None, "forced text can be read"
    # Only tokens that end within the first `sure` bytes are certain, whatever comes after the forced text.
    sure = len(forced) - _open_end(vocabulary, forced, after.first())
    if not sure:
        return []
    # After a line break SentencePiece adds no space of its own.
    contexts = before[-CONTEXT_BYTES:].decode("utf-8", "ignore"), "", "\n"
    tokens = tokenize_after(tokenizer, vocabulary.tokens, forced, contexts)
    ends = accumulate(len(vocabulary.tokens[token]) for token in tokens)
    return [token for token, end in zip(tokens, ends) if end <= sure]


def _open_end(vocabulary: Vocabulary, forced: bytes, following: set[int]) -> int:
    """The bytes at the end of `forced` that a token could share with one of the bytes `following` it."""
    # From the longest tail on: the first tail that some token continues beyond the forced text decides. In the sorted
    # list of tokens, those that begin with a text stand where bisection puts it.
    tokens = vocabulary.sorted_tokens
    for start in range(max(0, len(forced) - vocabulary.longest + 1), len(forced)):
        tail = forced[start:]
        index = bisect_left(tokens, tail)
        if index == len(tokens) or not tokens[index].startswith(tail):
            continue  # no token begins with it
        for byte in following:
            longer = tail + bytes((byte,))
            index = bisect_left(tokens, longer)
            if index < len(tokens) and tokens[index].startswith(longer):
                return len(forced) - start
    return 0


def tokenize_after(tokenizer: Any, tokens: Sequence[bytes], data: bytes, contexts: Iterable[str]) -> list[int]:
    """The ids that spell `data` as the tokenizer splits it after a context; empty if no context gives any.

    `tokens`: id -> bytes. Each of the `contexts` is tried in turn, until the tokenizer has a token boundary at its end.
    """
    try:
        text, _ = codecs.utf_8_decode(data)  # without an incomplete character at the end
    except UnicodeDecodeError:  # it starts inside a character, which no tokenizer splits
        return []
    data = text.encode()
    for context in contexts:
        # Walk back from the last token until the text is covered; the ids spell it if a token begins exactly there.
        ids = encode(tokenizer, context + text)
        first, left = len(ids), len(data)
        while left > 0 and first and ids[first - 1] < len(tokens):
            first -= 1
            left -= len(tokens[ids[first]])
        if b"".join(tokens[token] for token in ids[first:]) == data:
            return ids[first:]
    return []

"""Texts to tune on: what a model is shown, what it is to learn to write, and both as tokens.

Loss is counted on learned spans only. Spans are encoded apart, as the agents encode a prompt and what is written
after it apart: a bound between two spans is a bound between two tokens.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from constrained.decoding.forced_run import cut, encode
from constrained.decoding.generation import prompt_ids
from constrained.errors import TrainingError
from constrained.models.load import LoadedModel

IGNORED = -100
"""The label of a token that isn't learned: what torch's cross-entropy leaves out."""


@dataclass(frozen=True)
class Span:
    """A piece of a text.

    Attributes
    ----------
    text : str
    learned : bool
        Whether the model is to learn to write it.
    """

    text: str
    learned: bool


@dataclass(frozen=True)
class TrainingText:
    """A text to tune on.

    Attributes
    ----------
    spans : tuple of Span
        In order.
    ends : bool
        The token that ends a text follows; it is learned if the last span is.
    """

    spans: tuple[Span, ...]
    ends: bool = True


@dataclass(frozen=True)
class Encoded:
    """A text as tokens.

    Attributes
    ----------
    ids : tuple of int
    labels : tuple of int
        As many: the token itself where it is learned, else `IGNORED`. Of the first it is always `IGNORED`, as nothing
        stands before it from which it could be told.
    """

    ids: tuple[int, ...]
    labels: tuple[int, ...]


def encoded(loaded: LoadedModel, text: TrainingText) -> Encoded:
    """The tokens of a text: its first span as `generate` encodes a prompt, the others as they stand."""
    ids: list[int] = []
    labels: list[int] = []
    for number, span in enumerate(text.spans):
        new = _continuation(loaded, span.text) if number else prompt_ids(loaded, span.text)
        ids += new
        labels += new if span.learned else [IGNORED] * len(new)
    if text.ends:
        ids.append(_end(loaded))
        labels.append(ids[-1] if text.spans and text.spans[-1].learned else IGNORED)
    labels[:1] = [IGNORED] * len(labels[:1])
    return Encoded(tuple(ids), tuple(labels))


def _continuation(loaded: LoadedModel, text: str) -> list[int]:
    """Tokens of a span inside a text, without what tokenizers put in front of one."""
    if not text:
        return []
    found = cut(loaded.tokenizer, loaded.vocabulary, text.encode(), ("", "\n"))
    return found or encode(loaded.tokenizer, text)  # special tokens, of a chat form say, spell no bytes


def _end(loaded: LoadedModel) -> int:
    """The token that ends a text by itself: the tokenizer's own, where it names one."""
    own = getattr(loaded.tokenizer, "eos_token_id", None)
    return own if own in loaded.eos_token_ids else loaded.eos_token_ids[0]


def encode_all(loaded: LoadedModel, texts: Sequence[TrainingText], max_length: int) -> tuple[list[Encoded], int]:
    """The tokens of all texts that are short enough, and how many are not.

    None is ever cut: half an answer would teach to break off.

    Parameters
    ----------
    max_length : int
        Tokens of a text; fewer, where the model's context has no more.

    Raises
    ------
    TrainingError
        There is no text, none is short enough, or one has nothing to learn.
    """
    if not texts:
        raise TrainingError("there is no text to tune on", "give at least one")
    most = min(max_length, loaded.max_context or max_length)
    kept: list[Encoded] = []
    shortest = 0
    for number, text in enumerate(texts, 1):
        tokens = encoded(loaded, text)
        if all(label == IGNORED for label in tokens.labels):
            raise TrainingError(
                f"text {number} has nothing to learn: no learned span, or no more than its first token",
                "mark what the model is to write as learned",
            )
        if len(tokens.ids) <= most:
            kept.append(tokens)
        else:
            shortest = min(shortest or len(tokens.ids), len(tokens.ids))
    if not kept:
        ours = most == max_length
        limit = "max_length" if ours else f"the context of {loaded.name}"
        raise TrainingError(
            f"all {len(texts):,} texts are longer than {most:,} tokens ({limit}); the shortest has {shortest:,}",
            f"{'raise max_length' if ours else 'use a model with a longer context'}, or shorten the texts",
        )
    return kept, len(texts) - len(kept)


def digest(texts: Iterable[Encoded]) -> str:
    """A name for texts: the same tokens with the same labels, in the same order, have the same."""
    found = hashlib.sha256()
    for text in texts:
        found.update(array("q", (len(text.ids), *text.ids, *text.labels)).tobytes())
    return found.hexdigest()[:16]

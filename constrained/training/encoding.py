"""Training texts: what a model reads and what it learns to write, as text and as tokens.

The loss counts learned spans only. Each span is encoded by itself, because agents encode a prompt and the text written
after it separately: a boundary between spans is a boundary between tokens.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from constrained.decoding.generation import prompt_ids
from constrained.decoding.jump_forward import encode, tokenize_after
from constrained.errors import TrainingError
from constrained.models import LoadedModel

IGNORED = -100
"""Label of a token that isn't learned: torch's cross-entropy skips it."""


@dataclass(frozen=True)
class Span:
    """A part of a training text; `learned` says whether the model is to learn to write it."""

    text: str
    learned: bool


@dataclass(frozen=True)
class TrainingText:
    """A text to train on.

    Attributes
    ----------
    spans : tuple of Span
        In order.
    ends : bool
        Append the end-of-text token; it is learned if the last span is.
    """

    spans: tuple[Span, ...]
    ends: bool = True


def prompt_and_answer(prompt: str, answer: str) -> TrainingText:
    """A text that reads the prompt and learns the answer."""
    return TrainingText((Span(prompt, False), Span(answer, True)))


@dataclass(frozen=True)
class Encoded:
    """A training text as tokens."""

    ids: tuple[int, ...]
    # one per token: its id where it is learned, else `IGNORED`. The first is always `IGNORED`, because nothing precedes
    # it to predict it from.
    labels: tuple[int, ...]


def encoded(loaded: LoadedModel, text: TrainingText) -> Encoded:
    """Encode a text: its first span as `generate` encodes a prompt, the others as continuations."""
    ids: list[int] = []
    labels: list[int] = []
    for number, span in enumerate(text.spans):
        new = _continuation(loaded, span.text) if number else prompt_ids(loaded, span.text)
        ids += new
        labels += new if span.learned else [IGNORED] * len(new)
    if text.ends:
        ids.append(_end(loaded))
        labels.append(ids[-1] if text.spans and text.spans[-1].learned else IGNORED)
    return Encoded(tuple(ids), (IGNORED, *labels[1:]) if labels else ())


def _continuation(loaded: LoadedModel, text: str) -> list[int]:
    """Tokens of a span inside a text, without the prefix that some tokenizers put before a text."""
    if not text:
        return []
    found = tokenize_after(loaded.tokenizer, loaded.vocabulary, text.encode(), ("", "\n"))
    return found or encode(loaded.tokenizer, text)  # special tokens, e.g. of a chat template, spell no bytes


def _end(loaded: LoadedModel) -> int:
    """The end-of-text token: the tokenizer's own where it names one."""
    own = getattr(loaded.tokenizer, "eos_token_id", None)
    return own if own in loaded.eos_token_ids else loaded.eos_token_ids[0]


def encode_all(loaded: LoadedModel, texts: Sequence[TrainingText], max_length: int) -> tuple[list[Encoded], int]:
    """Encode the texts that are short enough, and count the others.

    No text is truncated: half an answer would teach the model to stop early.

    `max_length`: tokens in a text; fewer where the model's context is shorter. Raises TrainingError: there is no text,
    none is short enough, or one has nothing to learn.
    """
    if not texts:
        raise TrainingError("there is no text to tune on", "give at least one")
    limit = min(max_length, loaded.max_context or max_length)
    everything = [encoded(loaded, text) for text in texts]
    for number, tokens in enumerate(everything, 1):
        if all(label == IGNORED for label in tokens.labels):
            raise TrainingError(
                f"text {number} has nothing to learn: no learned span, or only its first token",
                "mark what the model is to write as learned",
            )
    kept = [tokens for tokens in everything if len(tokens.ids) <= limit]
    if not kept:
        setting, remedy = f"the context of {loaded.name}", "use a model with a longer context"
        if limit == max_length:
            setting, remedy = "max_length", "raise max_length"
        shortest = min(len(tokens.ids) for tokens in everything)
        raise TrainingError(
            f"all {len(texts):,} texts are longer than {limit:,} tokens ({setting}); the shortest has {shortest:,}",
            f"{remedy}, or shorten the texts",
        )
    return kept, len(texts) - len(kept)


def digest(texts: Iterable[Encoded]) -> str:
    """A hash of the texts' tokens and labels, in order."""
    found = hashlib.sha256()
    for text in texts:
        found.update(array("q", (len(text.ids), *text.ids, *text.labels)).tobytes())
    return found.hexdigest()[:16]

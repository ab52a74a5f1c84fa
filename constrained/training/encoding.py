"""Training texts, with spans that are only read and spans that are learned; their encoding as tokens.

Only learned spans count in the loss. Each span is encoded by itself, because agents encode a prompt and the text after
it separately: a boundary between spans is a boundary between tokens.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from constrained.automaton.tokenizers import encode
from constrained.decoding.generation import prompt_ids
from constrained.decoding.jump_forward import tokenize_after
from constrained.errors import TrainingError
from constrained.models import LoadedModel

IGNORED = -100
"""Label of a token that isn't learned: torch's cross-entropy skips it."""


@dataclass(frozen=True)
class Span:
    """A part of a training text; `learned` says whether the model learns to write it."""

    text: str
    learned: bool


@dataclass(frozen=True)
class TrainingText:
    """A text to train on.

    Attributes
    ----------
    spans : tuple of Span
        The parts of the text, in order.
    ends : bool
        Whether the end-of-text token is appended; it is learned if the last span is.
    """

    spans: tuple[Span, ...]
    ends: bool = True


def prompt_and_answer(prompt: str, answer: str) -> TrainingText:
    """A text in which the prompt is read and the answer is learned."""
    return TrainingText((Span(prompt, False), Span(answer, True)))


@dataclass(frozen=True)
class Encoded:
    """A training text as tokens."""

    ids: tuple[int, ...]
    # One for each token: its id if it is learned, else `IGNORED`. The first is always `IGNORED`: nothing
    # before it could predict it.
    labels: tuple[int, ...]


def encoded(loaded: LoadedModel, text: TrainingText) -> Encoded:
    """Encode a text: the first span as `generate` encodes a prompt, the others as continuations."""
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
    """The tokens of a span inside a text, without the prefix that some tokenizers put before a text."""
    if not text:
        return []
    tokens = tokenize_after(loaded.tokenizer, loaded.vocabulary.tokens, text.encode(), ("", "\n"))
    return tokens or encode(loaded.tokenizer, text)  # special tokens, e.g. of a chat template, spell no bytes


def _end(loaded: LoadedModel) -> int:
    """The end-of-text token: the tokenizer's, if it has one."""
    token = getattr(loaded.tokenizer, "eos_token_id", None)
    return token if token in loaded.eos_token_ids else loaded.eos_token_ids[0]


def encode_all(loaded: LoadedModel, texts: Sequence[TrainingText], max_length: int) -> tuple[list[Encoded], int]:
    """Encode the texts that are short enough, and count the others.

    No text is truncated: half an answer would teach the model to stop early.

    `max_length`: most tokens in a text, or fewer if the model's context is shorter. Raises TrainingError: there is no
    text, none is short enough, or one has nothing to learn.
    """
    if not texts:
        raise TrainingError("there is no text to tune on", "give at least one")
    limit = min(max_length, loaded.max_context or max_length)
    everything = [encoded(loaded, text) for text in texts]
    for number, tokens in enumerate(everything, 1):
        if all(label == IGNORED for label in tokens.labels):
            raise TrainingError(
                f"text {number} has nothing to learn: no learned span, or only its first token",
                "mark the spans that the model should write as learned",
            )
    # Texts that are too long are left out and counted; if none is left, the error names the limit that is to blame.
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
    hashed = hashlib.sha256()
    for text in texts:
        hashed.update(array("q", (len(text.ids), *text.ids, *text.labels)).tobytes())
    return hashed.hexdigest()[:16]

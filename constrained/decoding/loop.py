"""The generation loop: texts that each stay inside a grammar, written side by side.

The model is asked only where there is a choice. What must come next is appended as known tokens; they go through
the model together with the next place where it is asked. So a round is: append what is forced to every text that was
asked last; let the model read what it hasn't read; choose for the texts it has read to their end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import torch

from constrained.automaton import Matcher, Vocabulary
from constrained.automaton.masks import allowed_count, allowed_ids
from constrained.decoding.columns import ALL, Columns, Need
from constrained.decoding.forced_run import TAIL, forced_run
from constrained.decoding.prefix_cache import PrefixCache
from constrained.decoding.record import Token
from constrained.decoding.sampling import Choice
from constrained.errors import ConstrainedError


class Text(ABC):
    """A text being written: its tokens and its bytes.

    Attributes
    ----------
    ids : list of int
        The prompt's tokens and those written, without the end-of-text token.
    tokens : list of Token
        Those written.
    end : Token or None
        The end-of-text token, where the model was asked and chose one.
    done : bool
        Nothing more will be written.
    complete : bool
        Once done: it ended by itself, not at its limit.
    cut : int or None
        Where in `data` the text ends, if not at its end.
    row : ndarray
        int32 ``[words]``: the tokens allowed next, once settled.
    """

    row: np.ndarray

    def __init__(self, vocabulary: Vocabulary, prompt: Sequence[int]):
        self.vocabulary = vocabulary
        self.ids = list(prompt)
        self.prompt_tokens = len(self.ids)
        self.data = bytearray(b"".join(map(self._spell, self.ids[-TAIL:])))
        self.begin = len(self.data)
        self.tokens: list[Token] = []
        self.end: Token | None = None
        self.done = False
        self.complete = True
        self.cut: int | None = None

    @abstractmethod
    def settle(self) -> None:
        """Get ready for the model's next choice, or be done."""

    def _spell(self, token: int) -> bytes:
        vocabulary = self.vocabulary
        known = token < len(vocabulary.tokens) and token not in vocabulary.special_set
        return vocabulary.tokens[token] if known else b""

    def write(self, token: Token) -> None:
        self.ids.append(token.id)
        self.tokens.append(token)
        self.data += self._spell(token.id)

    def take(self, choice: Choice) -> None:
        """Write what the model chose, or end."""
        token = Token(choice.token, choice.probability, choice.pruned_mass, False, choice.forbidden)
        if token.id in self.vocabulary.eos_token_ids:
            self.end, self.done = token, True
        else:
            self.write(token)

    @property
    def masses(self) -> list[float]:
        """Pruned mass of every place where the model was asked."""
        asked = [token.pruned_mass for token in self.tokens if not token.forced]
        return asked if self.end is None else [*asked, self.end.pruned_mass]


class FreeText(Text):
    """A text in which everything is allowed, up to an end-of-text token, a stop string or a limit.

    Parameters
    ----------
    vocabulary : Vocabulary
    prompt : sequence of int
    room : int
        Most tokens to write.
    stop : bytes
        The text ends before the first occurrence of this; empty: nothing stops it.
    """

    def __init__(self, vocabulary: Vocabulary, prompt: Sequence[int], room: int, stop: bytes = b""):
        super().__init__(vocabulary, prompt)
        self.room, self.stop = room, stop
        self.row = vocabulary.pack(np.concatenate((vocabulary.sorted_ids, vocabulary.special_ids)))
        self._searched = self.begin

    def settle(self) -> None:
        if self.stop:
            found = self.data.find(self.stop, max(self.begin, self._searched - len(self.stop) + 1))
            self._searched = len(self.data)
            if found >= 0:
                self.cut, self.done = found, True
                return
        if len(self.tokens) == self.room:
            self.complete, self.done = False, True


class GuidedText(Text):
    """A text that stays inside its matcher's grammar.

    Parameters
    ----------
    matcher : Matcher
        Where the text begins, with its budget; advanced with the text.
    prompt : sequence of int
    tokenizer : optional
        Cuts forced runs into its own tokens; without one, only tokens that have no alternative are forced.
    min_forced : int
        Runs of fewer forced bytes are left to the model, under the mask.

    Attributes
    ----------
    count : int
        How many tokens are allowed next, once settled.
    """

    def __init__(self, matcher: Matcher, prompt: Sequence[int], tokenizer: Any = None, min_forced: int = 1):
        super().__init__(matcher.compiled.vocabulary, prompt)
        self.matcher, self.tokenizer, self.min_forced = matcher, tokenizer, min_forced
        self._mask = np.zeros((1, self.vocabulary.words), np.int32)
        self.row = self._mask[0]
        self.count = 0

    def settle(self) -> None:
        """Append what must come next, up to where the model has a choice or the text is over."""
        matcher, ends = self.matcher, len(self.vocabulary.eos_token_ids)
        while True:
            if self.tokenizer is not None:
                for token in forced_run(matcher, self.tokenizer, bytes(self.data[-TAIL:]), self.min_forced):
                    self.write(Token(token, 1.0, 0.0, True))
            matcher.fill_bitmask(self._mask)
            self.count = allowed_count(self.row)
            complete = matcher.is_complete
            if complete and self.count == ends:
                self.done = True
                return
            if complete or self.count > 1:
                return
            only = int(allowed_ids(self.row)[0])
            matcher.advance(only)
            self.write(Token(only, 1.0, 0.0, True))

    def take(self, choice: Choice) -> None:
        if not self.matcher.advance(choice.token):
            raise ConstrainedError(
                f"token {choice.token} was chosen, which the grammar doesn't allow here",
                "a logits processor must not raise tokens from minus infinity",
            )
        super().take(choice)


class Reader(Protocol):
    """Runs a model over texts."""

    def read(self, texts: Sequence[Text]) -> tuple[list[Text], torch.Tensor, np.ndarray | None]:
        """Read on in each text.

        Returns
        -------
        asked : list of Text
            Those of `texts` that have been read to their end; at least one.
        logits : torch.Tensor
            float32 ``[len(asked), C]`` of what follows them.
        columns : ndarray or None
            int64 ``[C]``, ascending: the ids the logits are of; None: of all.
        """


class PrefixReader:
    """Reads one text into a `PrefixCache`; works with every model."""

    def __init__(self, model: Any, cache: PrefixCache, need: Need = ALL):
        self.model, self.cache, self.need = model, cache, need

    def read(self, texts: Sequence[Text]) -> tuple[list[Text], torch.Tensor, np.ndarray | None]:
        [text] = texts
        columns = None
        if self.need is not ALL:
            columns = Columns.of(texts, self.cache.forward(self.model), self.need)
        if columns is None:
            return [text], self.cache.next_logits(self.model, text.ids).unsqueeze(0), None
        logits = self.cache.next_logits(self.model, text.ids, columns).unsqueeze(0)
        return [text], logits, columns.ids


Choose = Callable[[Sequence[Text], torch.Tensor, np.ndarray | None], Sequence[Choice]]


def write(
    texts: Sequence[Text],
    reader: Reader,
    choose: Choose,
    after: Callable[[Sequence[Text]], None] | None = None,
) -> None:
    """Write all texts to their ends.

    Parameters
    ----------
    texts : sequence of Text
    reader : Reader
    choose : callable
        The texts asked, their logits and columns as `Reader.read` returns them -> one choice each.
    after : callable, optional
        Called after each round with the texts that have grown; may set their ``done``.
    """
    asked = texts
    while True:
        for text in asked:
            if not text.done:
                text.settle()
        if after is not None:
            after(asked)
        waiting = [text for text in texts if not text.done]
        if not waiting:
            return
        asked, logits, columns = reader.read(waiting)
        for text, choice in zip(asked, choose(asked, logits, columns), strict=True):
            text.take(choice)

"""The generation loop: texts that each stay inside a grammar, decoded side by side.

The model is asked only where there is a choice. Forced text is appended as known tokens, which the model reads
together with the next token. A round has three steps: append the forced text to every text that has grown; run the
model over the tokens that it hasn't read; choose a token for each text that it has read to the end. On an accelerator,
masks are computed while the model runs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import torch

from constrained.automaton import Matcher, Vocabulary
from constrained.automaton.masks import allowed_count, allowed_ids
from constrained.decoding.forward import ALL_LOGITS, AnySequence, NeededLogits, PartialLogits
from constrained.decoding.jump_forward import CONTEXT_BYTES, jump_forward
from constrained.decoding.prefix_cache import PrefixCache
from constrained.decoding.request import Token
from constrained.errors import ConstrainedError


class Text(ABC):
    """A text being written: its tokens and its bytes."""

    mask: np.ndarray  # int32 [words]: the tokens allowed next, once prepared
    pending = False  # whether the next input is still being computed elsewhere

    def __init__(self, vocabulary: Vocabulary, prompt: Sequence[int]):
        self.vocabulary = vocabulary
        self.ids = list(prompt)  # and the tokens written, without the end-of-text token
        self.prompt_tokens = len(self.ids)
        self.data = bytearray(b"".join(map(self._bytes, self.ids[-CONTEXT_BYTES:])))  # end of the prompt, and
        self.start = len(self.data)  # from here on what was written,
        self.stop_at: int | None = None  # up to here if not to its end
        self.tokens: list[Token] = []
        self.end: Token | None = None  # the end-of-text token, if the model was asked and chose one
        self.done = False  # nothing more will be written
        self.complete = True  # once done: it ended by itself, not at its limit
        self.error: Exception | None = None  # why it could not be written to its end

    @abstractmethod
    def prepare(self) -> None:
        """Append the forced text that can be found without a mask, or set ``done``."""

    def look(self) -> bool:
        """Compute the mask. False if the model has no choice: the only token is then appended, or the text is done.

        The mask depends on the tokens alone: it may be computed after `prepare` or while the model reads them.
        """
        return True

    @property
    def may_wait(self) -> bool:
        """Whether the prepared text's mask may be computed after the model was called: there seems to be a choice."""
        return True

    def _bytes(self, token: int) -> bytes:
        vocabulary = self.vocabulary
        is_text = token < len(vocabulary.tokens) and token not in vocabulary.special_set
        return vocabulary.tokens[token] if is_text else b""

    def append(self, token: Token) -> None:
        self.ids.append(token.id)
        self.tokens.append(token)
        self.data += self._bytes(token.id)

    def accept(self, token: Token) -> None:
        """Append the token that the model chose, or end the text."""
        if token.id in self.vocabulary.eos_token_ids:
            self.end, self.done = token, True
        else:
            self.append(token)


class FreeText(Text):
    """A text without a grammar, which ends at an end-of-text token, a stop string or a limit."""

    def __init__(self, vocabulary: Vocabulary, prompt: Sequence[int], limit: int, stops: Sequence[bytes] = ()):
        super().__init__(vocabulary, prompt)
        self.limit, self.stops = limit, stops
        self.mask = vocabulary.pack(np.concatenate((vocabulary.sorted_ids, vocabulary.special_ids)))
        self._searched = self.start

    def prepare(self) -> None:
        result = [self.data.find(stop, max(self.start, self._searched - len(stop) + 1)) for stop in self.stops]
        self._searched = len(self.data)
        if any(at >= 0 for at in result):
            self.stop_at, self.done = min(at for at in result if at >= 0), True
            return
        if len(self.tokens) == self.limit:
            self.complete, self.done = False, True


class GuidedText(Text):
    """A text that stays inside its matcher's grammar.

    The matcher stands at the text's beginning, with its budget, and is advanced with the text. Without a tokenizer,
    only tokens that have no alternative are forced.
    """

    def __init__(self, matcher: Matcher, prompt: Sequence[int], tokenizer: Any = None):
        super().__init__(matcher.compiled.vocabulary, prompt)
        self.matcher, self.tokenizer = matcher, tokenizer
        self._rows = np.zeros((1, self.vocabulary.words), np.int32)
        self.mask = self._rows[0]
        self.count = 0  # tokens allowed next
        self._has_choice: bool | None = None  # None: `look` wasn't called since `prepare`

    def prepare(self) -> None:
        self._has_choice = None
        if self.tokenizer is not None:
            for token in jump_forward(self.matcher, self.tokenizer, bytes(self.data[-CONTEXT_BYTES:])):
                self.append(Token(token, forced=True))

    @property
    def may_wait(self) -> bool:
        return not self.matcher.is_complete and not self.matcher.forced_text()

    def look(self) -> bool:
        if self._has_choice is None:
            matcher = self.matcher
            matcher.fill_bitmask(self._rows)
            self.count, complete = allowed_count(self.mask), matcher.is_complete
            self.done = complete and self.count == len(self.vocabulary.eos_token_ids)
            self._has_choice = not self.done and (complete or self.count > 1)
            if not (self._has_choice or self.done):
                only = int(allowed_ids(self.mask)[0])
                matcher.advance(only)
                self.append(Token(only, forced=True))
        return self._has_choice

    def append(self, token: Token) -> None:
        self.ids.append(token.id)
        self.tokens.append(token)
        self.data += self.vocabulary.tokens[token.id]  # also the text of control tokens, which the grammar has named

    def accept(self, token: Token) -> None:
        if not self.matcher.advance(token.id):
            raise ConstrainedError(
                f"token {token.id} was chosen, which the grammar doesn't allow here",
                "a logits processor must not raise tokens from minus infinity",
            )
        super().accept(token)


AnyText = TypeVar("AnyText", bound=Text)


class NextLogits(Protocol):
    """Runs a model over texts to get the logits after them."""

    call_seconds: float | None
    """Time that a call should take: longer prompts are read in pieces, between which others can join. None: any."""

    @property
    def asynchronous(self) -> bool:
        """Whether `next_logits` returns before the logits are there, so that masks can be computed meanwhile."""

    def next_logits(self, texts: Sequence[AnySequence]) -> tuple[list[AnySequence], torch.Tensor, np.ndarray | None]:
        """Read on in each text, new ones included; return (asked, logits, columns).

        `asked` are the texts that have been read to their end, at least one unless prompts are read in pieces; `logits`
        are those after them, float32 ``[len(asked), C]``; `columns` are the ids of these logits, int64 ``[C]``,
        ascending; None: all.
        """


class PrefixForward:
    """Reads one text into a `PrefixCache`; works with every model."""

    call_seconds: float | None = None

    def __init__(self, model: Any, cache: PrefixCache, needed: NeededLogits = ALL_LOGITS):
        self.model, self.cache, self.needed = model, cache, needed
        self.asynchronous = cache.forward(model).asynchronous

    def next_logits(self, texts: Sequence[AnySequence]) -> tuple[list[AnySequence], torch.Tensor, np.ndarray | None]:
        [text] = texts
        partial = None
        if self.needed is not ALL_LOGITS:
            partial = PartialLogits.of(texts, self.cache.forward(self.model), self.needed)
        logits = self.cache.next_logits(self.model, text.ids, partial).unsqueeze(0)
        return [text], logits, None if partial is None else partial.ids


def decode(
    texts: Sequence[AnyText],
    forward: NextLogits,
    choose: Callable[[Sequence[AnyText], torch.Tensor, np.ndarray | None], Sequence[Token]],
    after: Callable[[Sequence[AnyText]], None] | None = None,
    join: Callable[[Sequence[AnyText]], Sequence[AnyText]] | None = None,
    wait: Callable[[Sequence[AnyText], bool], Sequence[AnyText]] | None = None,
) -> None:
    """Write all texts to their ends.

    `choose` gets the texts asked, their logits and columns, as `NextLogits` returns them, and returns one token each.
    `after` is called after each round with the texts that have grown, and may set their ``done``. `join` is called
    before each round with the unfinished texts, and returns texts to add to them. With it, an error in one text is
    kept as its ``error``, and ends only that text; an error of the model or of `choose` ends all. `wait` is called
    with the texts that are ``pending``, and whether others can go on without them; it waits a little, and returns those
    that can be prepared.
    """
    waiting, grown, ahead = list(texts), list(texts), forward.asynchronous

    def attempt(text: AnyText, step: Callable[..., bool | None], *given: Any) -> bool | None:
        try:
            return step(*given)
        except Exception as error:
            if join is None:
                raise
            text.error, text.done = error, True
            return False

    def begin(text: AnyText) -> None:
        while not text.done:
            text.prepare()
            if text.done or text.pending or (ahead and text.may_wait) or text.look():
                return

    while True:
        # Append what is forced to the texts that have grown, and to all new ones; find their masks.
        for text in grown:
            attempt(text, begin, text)
        if after is not None:
            after(grown)
        waiting = [text for text in waiting if not text.done]
        # Texts that join are begun before the model runs, so that it reads all new prompts in one call.
        if join is not None and (grown := list(join(waiting))):
            waiting += grown
            continue
        if not waiting:
            return
        if wait is not None and (pending := [text for text in waiting if text.pending]):
            grown = list(wait(pending, len(pending) < len(waiting)))
            if grown or len(pending) == len(waiting):
                continue
        # Pending texts have nothing to read; they are passed all the same, so that the model keeps their rows.
        asked, logits, columns = forward.next_logits(waiting)
        # On an accelerator this returns at once, and the masks are computed meanwhile. A text that turns out to have
        # no choice has appended its only token by now: its logits are dropped.
        choosing = [text for text in asked if not text.pending and (not ahead or attempt(text, text.look))]
        if len(choosing) < len(asked):
            logits = logits[[row for row, text in enumerate(asked) if text in choosing]]
        for text, token in zip(choosing, choose(choosing, logits, columns) if choosing else (), strict=True):
            attempt(text, text.accept, token)
        grown = [text for text in asked if not text.pending]

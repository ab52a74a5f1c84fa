"""The matcher of one request in a server: the shared part of the grammar objects of vLLM and SGLang.

These servers keep an object per request, which accepts tokens, takes some back when drafts are rejected, and fills
its row of a mask. Where a model thinks first, they call the object only after the thought.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from threading import Lock

import numpy as np

from constrained.automaton import Matcher
from constrained.errors import VocabularyError

logger = logging.getLogger(__name__)


class RequestMatcher:
    """The matcher of one request.

    Parameters
    ----------
    matcher : Matcher
        At the text's beginning; taken over.
    lock : Lock
        Held while the matcher is used: several threads fill masks, and matchers of a grammar share its states.
    left : callable, optional
        Returns the number of tokens that the request may still take. Needed where a thought of unknown length comes
        first; called for masks before the text's first token. Without it the matcher already has its budget.
    """

    def __init__(self, matcher: Matcher, lock: Lock, left: Callable[[], int] | None = None):
        self.matcher, self.left = matcher, left
        self.read = 0  # tokens of the text so far
        self._lock = lock

    def advance(self, tokens: Sequence[int]) -> bool:
        """Read tokens up to the first that is not allowed; return whether all were allowed."""
        with self._lock:
            for token in tokens:
                if not self.matcher.advance(token):
                    return False
                self.read += 1
        return True

    def rollback(self, count: int) -> None:
        """Undo the last `count` tokens."""
        with self._lock:
            self.matcher.rollback(count)
            self.read -= count

    def accepts(self, tokens: Sequence[int]) -> int:
        """How many of the tokens, in order, are allowed; nothing changes."""
        with self._lock:
            return self.matcher.accepts(tokens)

    def fill(self, mask: np.ndarray, row: int) -> None:
        """Write the allowed tokens into ``mask[row]``, int32 ``[rows, words]``; after the end only end-of-text."""
        with self._lock:
            if self.left is not None and not self.read:
                self._set_budget(self.left())
            self.matcher.fill_bitmask(mask, row)

    def _set_budget(self, left: int) -> None:
        try:
            self.matcher.set_budget(max(left, 0))
        except VocabularyError as error:
            # The host reports a text that is cut at its limit ("length"); ended here, it would look like a whole one.
            logger.warning("the thought left too few tokens, so the text after it will be cut: %s", error)
            self.matcher.set_budget(None)

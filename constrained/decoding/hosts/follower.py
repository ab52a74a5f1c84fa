"""A matcher kept level with a request's growing list of tokens."""

from __future__ import annotations

from collections.abc import Sequence

from constrained.automaton import Matcher


class Follower:
    """Reads what is new in a request's generated tokens, and takes back what the host took back.

    Parameters
    ----------
    matcher : Matcher
        At the request's beginning; taken over.
    """

    __slots__ = ("matcher", "read")

    def __init__(self, matcher: Matcher):
        self.matcher = matcher
        self.read: list[int] = []

    def follow(self, tokens: Sequence[int]) -> int | None:
        """Read up to the end of `tokens`, all that has been generated so far.

        Returns
        -------
        int or None
            The place of the first token that is not allowed, where reading stopped; None if there is none.
        """
        kept = len(self.read)
        if self.read != list(tokens[:kept]):
            kept = next((i for i, (a, b) in enumerate(zip(self.read, tokens)) if a != b), min(kept, len(tokens)))
            self.matcher.rollback(len(self.read) - kept)
            del self.read[kept:]
        for token in tokens[kept:]:
            if not self.matcher.advance(token):
                return len(self.read)
            self.read.append(token)
        return None

"""Who follows the texts while they are written: a streamer, and the caller's own stopping criteria."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers.generation.streamers import BaseStreamer

from constrained.decoding.loop import GuidedText


class Watch:
    """Streams one text, and cuts texts where a stopping criterion says so.

    A text is looked at after each choice, together with the forced tokens behind it.

    Parameters
    ----------
    texts : sequence of GuidedText
    prompts : dict of GuidedText to list of int
        Each row's prompt with its padding.
    criteria : list
        transformers' StoppingCriteria.
    streamer : BaseStreamer, optional
        Of a single text.
    pad : int
    device : torch.device
        Where criteria get the tokens.

    Attributes
    ----------
    cut : set of GuidedText
        Those that a criterion has ended.
    """

    def __init__(
        self,
        texts: Sequence[GuidedText],
        prompts: dict[GuidedText, list[int]],
        criteria: list[Any],
        streamer: BaseStreamer | None,
        pad: int,
        device: torch.device,
    ):
        self.texts, self.prompts, self.streamer, self.pad, self.device = list(texts), prompts, streamer, pad, device
        self.criteria = criteria
        self.cut: set[GuidedText] = set()
        self._streamed = 0

    def after(self, texts: Sequence[GuidedText]) -> None:
        """See `constrained.decoding.loop.write`."""
        if self.streamer is not None:
            self._stream(self.texts[0].tokens)
        if not self.criteria:
            return
        rows = [self.prompts[text] + text.ids[text.prompt_tokens :] for text in self.texts]
        width = max(map(len, rows))  # the ends stand together: that is where criteria look
        ids = torch.tensor([[self.pad] * (width - len(row)) + row for row in rows], device=self.device)
        stop = torch.zeros(len(rows), dtype=torch.bool)
        for criterion in self.criteria:
            stop |= torch.as_tensor(criterion(ids, None)).cpu()
        for text, now in zip(self.texts, stop.tolist()):
            if now and not text.done:
                text.done = True
                self.cut.add(text)

    def finish(self) -> None:
        """The texts are over."""
        if self.streamer is not None:
            [text] = self.texts
            self._stream(text.tokens if text.end is None else [*text.tokens, text.end])
            self.streamer.end()

    def _stream(self, tokens: Sequence[Any]) -> None:
        fresh = [token.id for token in tokens[self._streamed :]]
        if fresh:
            self.streamer.put(torch.tensor(fresh))
            self._streamed = len(tokens)

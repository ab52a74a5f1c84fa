"""Results of `custom_generate`: tokens for a streamer, and a `ConstrainedOutput` at the end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers.generation import GenerateDecoderOnlyOutput

from constrained.decoding.hf_generate.arguments import GenerateArguments
from constrained.decoding.loop import GuidedText
from constrained.decoding.request import Token


@dataclass
class ConstrainedOutput(GenerateDecoderOnlyOutput):
    """What `model.generate` returns with ``return_dict_in_generate=True``.

    Attributes
    ----------
    sequences : torch.Tensor
        int64 ``[rows, prompt + steps]``, padded after each text's end.
    scores : tuple of torch.Tensor, optional
        With ``output_scores``, not of beams: float32 ``[rows, width]`` for each step, masked and processed; where a
        token was forced, 0 for it and minus infinity for all others.
    sequences_scores : torch.Tensor, optional
        Of beams: float32 ``[rows]``, the sum of log-probabilities over the length to the power of the penalty; minus
        infinity, and nothing written, where the grammar has fewer texts than were to be returned.
    pruned_mass : torch.Tensor, optional
        With ``output_pruned_mass``: float32 ``[rows, steps]``, the probability that the model put on tokens outside
        the mask; NaN where it wasn't asked.
    forced : torch.Tensor, optional
        bool ``[rows, steps]``: the token had no alternative, and the model wasn't asked; not with device tables, where
        it always is.
    complete : torch.Tensor
        bool ``[rows]``: the text is whole; False only where a stopping criterion of the caller's ended it, or there
        was no other text.
    forward_passes : int
        Calls of the model.
    past_key_values : Cache, optional
        Of one prompt without beams: what the model has read; tokens at the end may be missing.
    """

    sequences_scores: torch.Tensor | None = None
    pruned_mass: torch.Tensor | None = None
    forced: torch.Tensor | None = None
    complete: torch.Tensor | None = None
    forward_passes: int | None = None


def result(
    args: GenerateArguments,
    prompts: torch.Tensor,
    written: Sequence[Sequence[Token]],
    pad: int,
    scores: Sequence[dict[int, torch.Tensor]] | None = None,
    **fields: Any,
) -> torch.Tensor | ConstrainedOutput:
    """The sequences, or with ``return_dict_in_generate`` a `ConstrainedOutput` with `fields`.

    `prompts` are int64 ``[rows, prompt]``, padded on the left; `scores` are each row's kept scores, by step.
    """
    ids = _tensor([[token.id for token in row] for row in written], pad)
    sequences = torch.cat((prompts, ids.to(prompts.device, torch.long)), 1)
    if not args.config.return_dict_in_generate:
        return sequences
    masses = [[math.nan if token.forced else token.pruned_mass for token in row] for row in written]
    width = args.model.config.get_text_config().vocab_size
    fields |= {"sequences": sequences, "scores": _scores(written, scores, width, pad) if scores else None}
    return ConstrainedOutput(
        pruned_mass=_tensor(masses, math.nan) if args.measure else None,
        forced=_tensor([[token.forced for token in row] for row in written], False),
        **fields,
    )


def _tensor(rows: Sequence[list[Any]], fill: Any) -> torch.Tensor:
    """Rows of different lengths as one tensor, filled up on the right."""
    longest = max(map(len, rows))
    return torch.tensor([row + [fill] * (longest - len(row)) for row in rows])


def _scores(
    written: Sequence[Sequence[Token]], kept: Sequence[dict[int, torch.Tensor]], width: int, pad: int
) -> tuple[torch.Tensor, ...]:
    """Each step's scores, float32 ``[rows, width]``: for a token that wasn't asked for, 0, and -inf for the others."""
    steps = []
    for step in range(max(map(len, written))):
        scores = torch.full((len(written), width), -torch.inf)
        for row, (tokens, by_step) in enumerate(zip(written, kept)):
            if step in by_step:
                scores[row] = by_step[step]
            else:
                scores[row, tokens[step].id if step < len(tokens) else pad] = 0.0
        steps.append(scores)
    return tuple(steps)


class Streaming:
    """Streams one text while it is written, and ends texts where one of the caller's stopping criteria says so.

    A text is looked at after each choice, together with the forced tokens behind it.

    `prompts`: every row, with its prompt as transformers holds it (padded on the left).
    """

    def __init__(self, args: GenerateArguments, prompts: dict[GuidedText, list[int]], pad: int):
        self.prompts, self.pad, self.device = prompts, pad, args.input_ids.device
        self.criteria, self.streamer = args.criteria, args.streamer
        self.stopped: set[GuidedText] = set()  # ended by a criterion
        self._streamed = 0

    def after(self, texts: Sequence[GuidedText]) -> None:
        """See `constrained.decoding.loop.decode`."""
        if self.streamer is not None:
            self._stream(next(iter(self.prompts)).tokens)
        if not self.criteria:
            return
        rows = [prompt + text.ids[text.prompt_tokens :] for text, prompt in self.prompts.items()]
        width = max(map(len, rows))  # padded on the left, since criteria look at the last columns
        ids = torch.tensor([[self.pad] * (width - len(row)) + row for row in rows], device=self.device)
        stop = torch.zeros(len(rows), dtype=torch.bool)
        for criterion in self.criteria:
            stop |= torch.as_tensor(criterion(ids, None)).cpu()
        for text, now in zip(self.prompts, stop.tolist()):
            if now and not text.done:
                text.done = True
                self.stopped.add(text)

    def finish(self) -> None:
        """Stream the last tokens, and end the stream."""
        if self.streamer is not None:
            [text] = self.prompts
            self._stream(text.tokens if text.end is None else [*text.tokens, text.end])
            self.streamer.end()

    def _stream(self, tokens: Sequence[Token]) -> None:
        fresh = [token.id for token in tokens[self._streamed :]]
        if fresh and self.streamer is not None:
            self.streamer.put(torch.tensor(fresh))
            self._streamed = len(tokens)

"""For `transformers`: `model.generate(..., logits_processor=[ConstrainedLogitsProcessor(compiled)])`."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import LogitsProcessor

from constrained.automaton import CompiledGrammar
from constrained.decoding import bitmask
from constrained.decoding.bitmask import MaskTransfer, check_width
from constrained.decoding.hosts.rows import Rows


class ConstrainedLogitsProcessor(LogitsProcessor):
    """Keeps every row of `generate` inside its grammar: greedy, sampling, beams, several answers a prompt.

    transformers applies it before temperature, top-k and top-p, so these choose among the allowed tokens. A row that
    has ended may only repeat an end-of-text token, until the batch is done. Columns of the logits beyond the
    vocabulary are never allowed.

    A processor serves one generation at a time. It notices by itself when another begins, save where that goes on
    exactly where the last was cut off: there call `reset`, or pass `max_new_tokens`.

    Parameters
    ----------
    grammar : CompiledGrammar or sequence of CompiledGrammar
        One for all prompts, or one for each.
    max_new_tokens : int, optional
        The number given to `generate`: every text is then whole within it. Without it a text may be cut off.
    begun : str
        Text of the grammar that the prompts end with; generation goes on after it.
    prompt_length : int, optional
        Columns of the prompts, padding included; default: those of the first step.
    num_beams : int
        The number given to `generate`. Where a grammar has fewer ways on than there are beams, transformers fills
        the others with sequences of score minus infinity; these are rows that nothing is left for.
    assisted : bool
        `generate` is given an `assistant_model` or `prompt_lookup_num_tokens`: it shows drafts, and takes back what
        the model wouldn't have written. Every generation then needs a processor of its own, or `reset`.

    Raises
    ------
    ConstrainedError
        A number out of range, or (`VocabularyError`) a budget below the shortest text.

    Notes
    -----
    A step costs one read of the ids, one copy of the masks (rows × vocabulary bits) to the logits' device, one masked
    fill, and one look at what is left. On a GPU `generate` waits for the device once a step by itself, to see which
    rows have ended.
    """

    supports_continuous_batching = False  # see hf_continuous

    def __init__(
        self,
        grammar: CompiledGrammar | Sequence[CompiledGrammar],
        *,
        max_new_tokens: int | None = None,
        begun: str = "",
        prompt_length: int | None = None,
        num_beams: int = 1,
        assisted: bool = False,
    ):
        self._rows = Rows(
            grammar,
            max_new_tokens=max_new_tokens,
            begun=begun,
            prompt_length=prompt_length,
            num_beams=num_beams,
            assisted=assisted,
        )
        self._transfer = MaskTransfer()

    def reset(self) -> None:
        """Forget the generation so far: the next call is the first of another."""
        self._rows.reset()

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """The scores, minus infinity where a token is not allowed.

        Parameters
        ----------
        input_ids : torch.LongTensor
            ``[rows, length]``: prompts and generated tokens.
        scores : torch.FloatTensor
            ``[rows, width]``; left as they are.

        Returns
        -------
        torch.FloatTensor
            ``[rows, width]``.

        Raises
        ------
        ConstrainedError
            A row took a token that was not allowed, others have forbidden all that are, or (`VocabularyError`) the
            logits are narrower than the vocabulary.
        """
        rows = self._rows
        check_width(rows.vocabulary, scores.shape[1])
        rows.follow(input_ids.cpu().numpy())
        mask = self._transfer.move((len(scores), rows.vocabulary.words), scores.device, rows.fill)
        out = bitmask.apply(scores.clone(), mask)
        rows.check_choice(out.amax(dim=1).float().cpu().numpy())
        return out

"""For `transformers`: `model.generate(..., logits_processor=[ConstrainedLogitsProcessor(compiled)])`."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import LogitsProcessor

from constrained.automaton import CompiledGrammar
from constrained.decoding.hosts.rows import Rows


class ConstrainedLogitsProcessor(LogitsProcessor):
    """Keeps every row of `generate` inside its grammar: greedy, sampling, beams, several answers a prompt.

    transformers applies it before temperature, top-k and top-p, so these choose among the allowed tokens. A row that
    has ended may only repeat an end-of-text token, until the batch is done. Columns of the logits beyond the
    vocabulary are never allowed.

    A processor serves one generation at a time. It notices by itself when another begins, except where that continues
    exactly where the last was cut off, or had used up `max_new_tokens`: there call `reset`.

    Parameters
    ----------
    grammar : CompiledGrammar or sequence of CompiledGrammar
        One for all prompts, or one for each.
    max_new_tokens : int, optional
        The number given to `generate`: every text is then whole within it, and after it may only end. Without it a
        text may be cut off.
    begun : str
        Beginning of the grammar's text that the prompts end with; generation continues after it.
    prompt_length : int, optional
        Columns of the prompts, padding included; default: those of the first step.
    num_beams : int
        The number given to `generate`. Where a grammar has fewer continuations than there are beams, transformers
        fills the others with sequences of score minus infinity; these rows allow nothing.
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
    fill, and one pass over the result. On a GPU `generate` itself waits for the device once a step, to see which rows
    have ended.
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
        self._rows = Rows(grammar, max_new_tokens, begun, prompt_length, num_beams, assisted)

    def reset(self) -> None:
        """Forget the generation so far: the next call is the first of another."""
        self._rows.reset()

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.Tensor:
        """Set the scores of tokens that aren't allowed to minus infinity, in a copy.

        Parameters
        ----------
        input_ids : torch.LongTensor
            ``[rows, length]``: prompts and generated tokens.
        scores : torch.FloatTensor
            ``[rows, width]``.

        Raises
        ------
        ConstrainedError
            A row took a token that was not allowed, others have forbidden all that are, or (`VocabularyError`) the
            logits are narrower than the vocabulary.
        """
        return self._rows.masked(input_ids, scores)

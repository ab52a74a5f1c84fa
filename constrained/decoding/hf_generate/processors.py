"""Choose tokens as transformers does: its logits processors, in its order, applied to the masked scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from transformers import LogitsProcessorList
from transformers.generation import logits_process as hf

from constrained.decoding import bitmask
from constrained.decoding.forward import ALL_LOGITS, NeededLogits
from constrained.decoding.loop import GuidedText
from constrained.decoding.request import Token
from constrained.decoding.sampling import draw, nan_logits, probability_outside
from constrained.errors import ConstrainedError

SCORES_ONLY = tuple(
    getattr(hf, name)
    for name in (
        "TemperatureLogitsWarper", "TopKLogitsWarper", "TopPLogitsWarper", "MinPLogitsWarper", "TopHLogitsWarper",
        "TypicalLogitsWarper", "EpsilonLogitsWarper", "EtaLogitsWarper", "LogitNormalization",
    )
    if hasattr(hf, name)
)  # fmt: skip
"""Processors that look at the scores alone: they do the same to the allowed columns only."""

REFUSED = {
    hf.UnbatchedClassifierFreeGuidanceLogitsProcessor: "guidance_scale runs the model by itself, one token at a time",
    hf.SynthIDTextWatermarkLogitsProcessor: "the SynthID watermark must see every token, forced ones too",
    hf.ForcedBOSTokenLogitsProcessor: "forced_bos_token_id overrides the grammar",
    hf.ForcedEOSTokenLogitsProcessor: "forced_eos_token_id overrides the grammar; texts end whole by themselves",
}


class ProcessorSampler:
    """Chooses the next token of each text of a batch: the most probable one, or by sampling.

    The processors are applied to the masked scores; a score that they raise from minus infinity is masked again.
    `prompts` has every row of the batch (GuidedText or Beam), in order, with its prompt as transformers holds it
    (padded on the left). `measure` asks for the pruned mass, `keep_scores` for each step's scores in :attr:`scores`.
    Raises ConstrainedError: one of the processors can't work behind a grammar.
    """

    def __init__(
        self,
        processors: LogitsProcessorList,
        prompts: Mapping[Any, list[int]],
        *,
        sample: bool = False,
        generator: torch.Generator | None = None,
        measure: bool = False,
        keep_scores: bool = False,
    ):
        for processor in processors:
            if type(processor) in REFUSED:
                raise ConstrainedError(REFUSED[type(processor)], "leave it out where a grammar guides the text")
        self.processors, self.prompts = processors, prompts
        self.sample, self.generator, self.measure = sample, generator, measure
        # text -> {index of the written token -> scores, float32 [width]}
        self.scores: dict[Any, dict[int, torch.Tensor]] | None = {t: {} for t in prompts} if keep_scores else None
        self._scores_only = all(type(processor) in SCORES_ONLY for processor in processors)
        self.needed = self._needed() if self._scores_only and not measure and not keep_scores else ALL_LOGITS

    def _needed(self) -> NeededLogits:
        if not self.sample and not self.processors:
            return NeededLogits(True, best=1)
        temperature = 1.0
        for processor in self.processors:
            if type(processor) is hf.TopKLogitsWarper:
                return NeededLogits(True, best=processor.top_k)
            if type(processor) is not hf.TemperatureLogitsWarper:
                return NeededLogits(True)
            temperature *= processor.temperature
        on_cpu = self.generator is None or self.generator.device.type == "cpu"
        if self.sample and on_cpu:
            return NeededLogits(True, temperature=temperature, generator=self.generator)
        return NeededLogits(True)

    def __call__(self, texts: Sequence[GuidedText], logits: torch.Tensor, columns: np.ndarray | None) -> list[Token]:
        """Choose one token for each text; `logits` and `columns` are as `NextLogits` returns them."""
        # Greedily and without processors, the model's best token is nearly always allowed: then no mask is applied.
        tokens = None
        if self.needed.best == 1 and not self.sample and columns is None:
            tokens = self._unmasked(texts, logits)
        if tokens is None:
            allowed = _allowed(texts, columns, logits)
            ids = None if columns is None else torch.from_numpy(columns).to(logits.device).expand(len(texts), -1)
            scores, ids = self._process(texts, logits.masked_fill(~allowed, -torch.inf), ids, allowed)
            picked = self._pick(scores, logits)
            tokens = (picked if ids is None else ids.gather(1, picked)).flatten().tolist()
        masses = self._pruned_masses(logits, allowed) if self.measure else [math.nan] * len(texts)
        if self.scores is not None:
            for text, row in zip(texts, scores):
                self.scores[text][len(text.tokens)] = row
        return [Token(token, math.nan, mass) for token, mass in zip(tokens, masses, strict=True)]

    def score(self, texts: Sequence[Any], log_probs: torch.Tensor) -> tuple[torch.Tensor, list[float]]:
        """For beams: the masked and processed log-probabilities, ``[rows, width]``, and each row's pruned mass."""
        allowed = _allowed(texts, None, log_probs)
        masses = self._pruned_masses(log_probs, allowed) if self.measure else [math.nan] * len(texts)
        if bool(log_probs.isnan().any()):
            raise nan_logits()
        scores, _ = self._process(texts, log_probs.masked_fill(~allowed, -torch.inf), None, allowed)
        return scores, masses

    def _unmasked(self, texts: Sequence[GuidedText], logits: torch.Tensor) -> list[int] | None:
        """The most probable token of each text if all of them are allowed, so that no mask is needed; else None."""
        if logits.device.type != "cpu":
            return None
        rows = logits.numpy()
        tokens = rows.argmax(1).tolist()  # NumPy: 9 microseconds for 131,072 columns; torch takes 170 or more
        for row, text, token in zip(rows, texts, tokens):
            if token >> 5 >= len(text.mask) or not text.mask[token >> 5] >> (token & 31) & 1:
                return None
            if not math.isfinite(row[token]):
                raise nan_logits()
        return tokens

    def _process(
        self, texts: Sequence[GuidedText], scores: torch.Tensor, ids: torch.Tensor | None, allowed: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Processed scores, and the tokens they belong to (int64 ``[rows, C]``; None: all)."""
        if self._scores_only:
            no_tokens = torch.empty((len(texts), 0), dtype=torch.long, device=scores.device)
            for processor in self.processors:
                scores = processor(no_tokens, scores)
                if self.scores is None and type(processor) is hf.TopKLogitsWarper:
                    # Only the few that are left go on: sorting all 131,072 tokens for top-p takes 10 ms.
                    left = int(scores.isfinite().sum(-1).max())
                    scores, kept = scores.topk(max(1, left))
                    ids = kept if ids is None else ids.gather(1, kept)
            return scores, ids
        # Some processors index the tokens so far by row: texts of one length are processed together, among all rows.
        rows = {text: row for row, text in enumerate(self.prompts)}
        out = scores.clone()
        for length in {len(text.tokens) for text in texts}:
            indices = [index for index, text in enumerate(texts) if len(text.tokens) == length]
            numbers = [rows[texts[index]] for index in indices]
            width = len(next(iter(self.prompts.values()))) + length
            read: Any = torch.zeros((len(rows), width), dtype=torch.long, device=scores.device)
            batch: Any = torch.zeros((len(rows), scores.shape[1]), device=scores.device)
            for index, row in zip(indices, numbers):
                text = texts[index]
                read[row] = torch.tensor(self.prompts[text] + text.ids[text.prompt_tokens :], device=read.device)
                batch[row] = scores[index]
            out[indices] = self.processors(read, batch)[numbers].float()
        return out.masked_fill(~allowed, -torch.inf), ids

    def _pick(self, scores: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        """Columns of the choices, int64 ``[rows, 1]``."""
        best, columns = scores.max(-1)
        if not all(map(math.isfinite, best.tolist())):
            if not bool(logits.isfinite().any(-1).all()) or bool(logits.isnan().any()):
                raise nan_logits()
            raise all_forbidden()
        return draw(torch.softmax(scores, -1), self.generator) if self.sample else columns.unsqueeze(-1)

    def _pruned_masses(self, logits: torch.Tensor, allowed: torch.Tensor) -> list[float]:
        inside = logits.masked_fill(~allowed, -torch.inf).logsumexp(-1)
        return [probability_outside(*pair) for pair in torch.stack((inside, logits.logsumexp(-1)), -1).tolist()]


def _allowed(texts: Sequence[GuidedText], columns: np.ndarray | None, logits: torch.Tensor) -> torch.Tensor:
    """Which columns of `logits` are allowed, bool of the same shape."""
    masks = [text.mask for text in texts]
    if columns is None:
        return bitmask.expand(bitmask.moved(masks, logits.device), logits.shape[1])
    rows = np.stack(masks)
    return torch.from_numpy(rows[:, columns >> 5] >> (columns & 31).astype(np.int32) & 1).bool().to(logits.device)


def all_forbidden() -> ConstrainedError:
    return ConstrainedError(
        "no token is left to choose: the model or the logits processors exclude all that the grammar allows",
        "leave out the processors (min_new_tokens, bad_words_ids, suppress_tokens ...) that conflict with it",
    )

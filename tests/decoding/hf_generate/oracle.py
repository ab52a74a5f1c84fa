"""What `custom_generate` should do, worked out another way: plain loops over texts, and transformers' own decoding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from transformers import LogitsProcessor

from constrained import CompiledGrammar
from tests.decoding.tiny import tiny_tokenizer


class MaskProcessor(LogitsProcessor):
    """Masks for transformers' own loops: reads each row's tokens again, in a new matcher, at every step."""

    def __init__(self, compiled: Sequence[CompiledGrammar], prompt_width: int, budget: int):
        self.compiled, self.prompt_width, self.budget = compiled, prompt_width, budget

    def __call__(self, input_ids, scores):
        out = torch.full_like(scores, -torch.inf)
        for row, ids in enumerate(input_ids[:, self.prompt_width :].tolist()):
            matcher = self.compiled[row * len(self.compiled) // len(input_ids)].matcher()
            matcher.set_budget(self.budget)
            if all(map(matcher.advance, ids)):
                allowed = torch.from_numpy(matcher.allowed_token_ids().astype(np.int64))
                out[row, allowed] = scores[row, allowed]
        return out


class FiniteLanguage:
    """Every way to write one of a few texts in tokens, and how likely a model is to.

    Parameters
    ----------
    model : transformers causal language model
    tokens : list of bytes
        By id.
    eos : int
    texts : list of str
    prompt : list of int
    """

    def __init__(self, model, tokens: Sequence[bytes], eos: int, texts: Sequence[str], prompt: list[int]):
        self.model, self.tokens, self.eos, self.prompt = model, tokens, eos, prompt
        self.texts = [text.encode() for text in texts]
        self._logits: dict[tuple[int, ...], np.ndarray] = {}

    def allowed(self, written: bytes) -> list[int]:
        """Tokens after which some text can still be written."""
        left = [text[len(written) :] for text in self.texts if text.startswith(written)]
        out = [i for i, token in enumerate(self.tokens) if token and any(rest.startswith(token) for rest in left)]
        return sorted([*out, self.eos]) if b"" in left else out

    def logits(self, written: list[int]) -> np.ndarray:
        """float64 ``[width]``: read from the beginning each time."""
        key = tuple(written)
        if key not in self._logits:
            with torch.inference_mode():
                out = self.model(input_ids=torch.tensor([self.prompt + written]))
            self._logits[key] = out.logits[0, -1].double().numpy()
        return self._logits[key]

    def sequences(self, step) -> Iterator[tuple[tuple[int, ...], float]]:
        """All token sequences with an end, and the product of `step(logits, allowed) -> chances` along each."""

        def go(written: list[int], data: bytes, chance: float):
            if written and written[-1] == self.eos:
                yield tuple(written), chance
                return
            allowed = self.allowed(data)
            for token, p in zip(allowed, step(self.logits(written), allowed)):
                if p > 0:
                    more = b"" if token == self.eos else self.tokens[token]
                    yield from go([*written, token], data + more, chance * p)

        return go([], b"", 1.0)


def warped(temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0):
    """Chances of the allowed tokens: conditioned on being allowed, then temperature, top-k, top-p."""

    def step(logits: np.ndarray, allowed: list[int]) -> np.ndarray:
        values = logits[allowed] / temperature
        chances = np.exp(values - values.max())
        order = np.argsort(-chances)
        keep = np.ones(len(chances), bool)
        if top_k:
            keep[order[top_k:]] = False
        chances = np.where(keep, chances, 0) / chances[keep].sum()
        before = np.cumsum(chances[order]) - chances[order]
        keep[order[before >= top_p]] = False
        return np.where(keep, chances, 0) / chances[keep].sum()

    return step


def own_log_probability(logits: np.ndarray, allowed: list[int]) -> np.ndarray:
    """Chances as the model has them, not renormalised to the allowed tokens."""
    chances = np.exp(logits - logits.max())
    return (chances / chances.sum())[allowed]


def padding_tokenizer():
    """`tiny_tokenizer`, able to pad batches on the left."""
    tokenizer = tiny_tokenizer()
    tokenizer.pad_token, tokenizer.padding_side = "</s>", "left"
    return tokenizer

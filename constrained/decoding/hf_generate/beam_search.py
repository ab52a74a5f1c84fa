"""Beam search inside a grammar, as transformers does it: the same candidates, penalties and stopping rules.

Every beam is a row with its own matcher: beams fork freely, and each ends whole. Beams are compared by the model's
own log-probabilities, not renormalized over the allowed tokens: the result is the most probable text of the grammar,
if the beams are enough. So the model is asked for every token, forced or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from constrained.automaton import BatchMatcher, Matcher
from constrained.decoding.hf_generate.processors import ProcessorSampler
from constrained.decoding.ragged_forward import RaggedForward
from constrained.decoding.request import Token


@dataclass(eq=False)
class Beam:
    """A text that may become the result."""

    prompt: int  # index of the prompt that it continues
    ids: list[int]  # the prompt's tokens and those written
    prompt_tokens: int
    tokens: list[Token] = field(default_factory=list)  # those written
    score: float = 0.0  # sum of their log-probabilities, as the processors left them
    mask: np.ndarray | None = None  # int32 [words]: the tokens allowed next

    def extended(self, token: Token, score: float) -> Beam:
        """This beam with one more token."""
        return Beam(self.prompt, [*self.ids, token.id], self.prompt_tokens, [*self.tokens, token], score)


@dataclass
class Finished:
    """The best whole texts of one prompt so far, best first."""

    beams: list[tuple[float, Beam]] = field(default_factory=list)
    open: bool = True

    def add(self, score: float, beam: Beam, most: int) -> None:
        self.beams.append((score, beam))
        self.beams.sort(key=lambda pair: -pair[0])
        del self.beams[most:]


@dataclass(frozen=True)
class BeamSettings:
    """`num_beams`, `length_penalty` and `early_stopping` as in transformers' GenerationConfig; at most `max_steps`."""

    num_beams: int
    length_penalty: float
    early_stopping: bool | str
    max_steps: int

    def penalized(self, score: float, length: int) -> float:
        return score / length**self.length_penalty

    def may_improve(self, best_running: float, found: Finished, length: int) -> bool:
        """Whether a running beam could displace a finished one."""
        if len(found.beams) < self.num_beams:
            return True
        if self.early_stopping is True:
            return False
        longest = self.early_stopping == "never" and self.length_penalty > 0
        return self.penalized(best_running, self.max_steps if longest else length) > found.beams[-1][0]


def beam_search(
    forward: RaggedForward,
    beams: Sequence[Beam],
    matchers: Sequence[Matcher],
    settings: BeamSettings,
    sampler: ProcessorSampler,
) -> list[list[tuple[float, Beam]]]:
    """The best texts of each prompt.

    Parameters
    ----------
    forward : RaggedForward
        Of `beams`.
    beams : sequence of Beam
        One a prompt, nothing written yet.
    matchers : sequence of Matcher
        Theirs, with their budgets set.
    settings : BeamSettings
    sampler : ProcessorSampler
        Masks and processes the log-probabilities.

    Returns
    -------
    list of list of (float, Beam)
        For each prompt at most ``num_beams`` whole texts with their penalised scores, best first; the last token is
        an end-of-text token unless the text takes all steps.
    """
    running, batch, results = list(beams), BatchMatcher(matchers), [Finished() for _ in beams]
    prompts = [sampler.prompts[beam] for beam in beams]
    ends = set(matchers[0].compiled.vocabulary.eos_token_ids)
    keep = max(2, 1 + len(ends)) * settings.num_beams
    for length in range(1, settings.max_steps + 1):
        for beam, row in zip(running, batch.fill_bitmask()):
            beam.mask = row
        sampler.prompts = _all_rows(running, prompts, settings.num_beams)
        log_probs = _logits(forward, running).log_softmax(-1)
        scores, masses = sampler.score(running, log_probs)
        scores += torch.tensor([beam.score for beam in running], device=scores.device)[:, None]
        following: list[tuple[int, Beam]] = []
        for prompt, found in enumerate(results):
            rows = [row for row, beam in enumerate(running) if beam.prompt == prompt]
            if not found.open or not rows:
                continue
            flat = scores[rows].flatten()
            best, indices = (t.tolist() for t in flat.topk(min(keep, len(flat))))
            candidates = []
            for rank, (score, index) in enumerate(zip(best, indices)):
                if score == -torch.inf:
                    break
                row, token = rows[index // scores.shape[1]], index % scores.shape[1]
                beam = running[row].extended(Token(token, float("nan"), masses[row]), score)
                if token not in ends and length < settings.max_steps:
                    candidates.append((row, beam))
                elif rank < settings.num_beams:
                    found.add(settings.penalized(score, length), beam, settings.num_beams)
            del candidates[settings.num_beams :]
            found.open = bool(candidates) and settings.may_improve(candidates[0][1].score, found, length)
            following += candidates if found.open else []
        if not following:
            break
        parents, running = [row for row, _ in following], [beam for _, beam in following]
        batch.reorder(parents)
        batch.advance([beam.ids[-1] for beam in running])
        forward.reorder(running, parents)
    return [found.beams for found in results]


def _logits(forward: RaggedForward, beams: Sequence[Beam]) -> torch.Tensor:
    """Logits of all beams; prompts of different lengths may take several calls."""
    found: dict[Beam, torch.Tensor] = {}
    while len(found) < len(beams):
        asked, logits, _ = forward.next_logits(beams)
        found.update(zip(asked, logits))
    return torch.stack([found[beam] for beam in beams])


def _all_rows(running: Sequence[Beam], prompts: list[list[int]], num_beams: int) -> dict[Beam, list[int]]:
    """Each beam with its prompt in transformers' order: `num_beams` rows for every prompt, some of them empty."""
    out: dict[Beam, list[int]] = {}
    for number, prompt in enumerate(prompts):
        own = [beam for beam in running if beam.prompt == number]
        own += [Beam(number, [], 0) for _ in range(num_beams - len(own))]
        out.update((beam, prompt) for beam in own)
    return out

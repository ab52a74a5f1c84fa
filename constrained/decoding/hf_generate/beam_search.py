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
from transformers import GenerationConfig

from constrained.automaton import BatchMatcher, Matcher
from constrained.decoding.hf_generate.arguments import GenerateArguments
from constrained.decoding.hf_generate.output import ConstrainedOutput, result
from constrained.decoding.hf_generate.processors import ProcessorSampler, all_forbidden
from constrained.decoding.ragged_forward import RaggedForward
from constrained.decoding.request import Token
from constrained.errors import ConstrainedError


@dataclass(eq=False)
class Beam:
    """A text that may become the result."""

    prompt: int  # index of the prompt that it continues
    ids: list[int]  # the prompt's tokens and those written
    prompt_tokens: int
    tokens: list[Token] = field(default_factory=list)  # those written
    score: float = 0.0  # sum of their log-probabilities, as the processors left them
    mask: np.ndarray | None = None  # int32 [words]: the tokens allowed next


class Finished:
    """The best whole texts of one prompt so far, each with its penalized score, best first."""

    def __init__(self, config: GenerationConfig, max_steps: int):
        self.config, self.max_steps = config, max_steps
        self.beams: list[tuple[float, Beam]] = []
        self.open = True  # running beams may still improve on them
        self.stuck = False  # whether processors have forbidden all tokens that the grammar allows for some beam

    def add(self, beam: Beam, length: int) -> None:
        self.beams.append((self._penalized(beam.score, length), beam))
        self.beams.sort(key=lambda pair: -pair[0])
        del self.beams[self.config.num_beams :]

    def may_improve(self, best_running: float, length: int) -> bool:
        """Whether a running beam could displace a finished one."""
        if len(self.beams) < self.config.num_beams:
            return True
        if self.config.early_stopping is True:
            return False
        longest = self.config.early_stopping == "never" and self.config.length_penalty > 0
        return self._penalized(best_running, self.max_steps if longest else length) > self.beams[-1][0]

    def _penalized(self, score: float, length: int) -> float:
        return score / length**self.config.length_penalty


def search_beams(args: GenerateArguments, matchers: Sequence[Matcher]) -> torch.Tensor | ConstrainedOutput:
    """The best texts of each prompt; the last token is an end-of-text token unless the text takes all steps.

    Of each prompt's `matchers`, one a row, the first is used.
    """
    config, num_beams = args.config, args.config.num_beams
    if args.criteria:
        raise ConstrainedError("stopping criteria would cut beams short", "leave them out, or use num_beams=1")
    matchers, rows = matchers[::num_beams], args.input_ids[::num_beams]
    beams = [Beam(i, list(ids), len(ids)) for i, ids in enumerate(args.prompts[::num_beams])]
    sampler = ProcessorSampler(args.processors, {}, measure=args.measure)
    forward = args.ragged_forward(beams)
    finished = _search(args, forward, beams, matchers, sampler, rows.tolist())
    # A grammar may have fewer texts than are asked for; the result has the asked number of rows all the same.
    count = config.num_return_sequences
    if any(f.stuck and len(f.beams) < count for f in finished):
        raise all_forbidden()
    best = [pair for beam, f in zip(beams, finished) for pair in (f.beams + [(-torch.inf, beam)] * count)[:count]]
    return result(
        args,
        rows[[beam.prompt for _, beam in best]],
        [beam.tokens for _, beam in best],
        args.pad(matchers[0].compiled.vocabulary.eos_token_ids),
        sequences_scores=torch.tensor([score for score, _ in best]),
        complete=torch.tensor([score > -torch.inf for score, _ in best]),
        forward_passes=forward.forward.passes,
    )


def _search(
    args: GenerateArguments,
    forward: RaggedForward,
    running: list[Beam],
    matchers: Sequence[Matcher],
    sampler: ProcessorSampler,
    prompts: list[list[int]],
) -> list[Finished]:
    num_beams, steps = args.config.num_beams, args.max_steps
    batch, results = BatchMatcher(matchers), [Finished(args.config, steps) for _ in running]
    eos = set(matchers[0].compiled.vocabulary.eos_token_ids)
    keep = max(2, 1 + len(eos)) * num_beams
    for length in range(1, steps + 1):
        log_probs = _logits(forward, running).log_softmax(-1)
        for beam, mask in zip(running, batch.fill_bitmask()):  # on an accelerator while it computes these
            beam.mask = mask
        sampler.prompts = _all_rows(running, prompts, num_beams)
        scores, masses = sampler.score(running, log_probs)
        scores += torch.tensor([beam.score for beam in running], device=scores.device)[:, None]
        # Of each prompt, the best continuations of all its beams together; `scores` are [rows, width].
        following: list[tuple[int, Beam]] = []  # with the row that each continues
        for prompt, hypotheses in enumerate(results):
            rows = [row for row, beam in enumerate(running) if beam.prompt == prompt]
            if not hypotheses.open or not rows:
                continue
            # A flat index is (beam of this prompt) * width + token.
            flat = scores[rows].flatten()
            hypotheses.stuck |= bool(scores[rows].isneginf().all(1).any())
            best, indices = (t.tolist() for t in flat.topk(min(keep, len(flat))))
            candidates = []
            for rank, (score, index) in enumerate(zip(best, indices)):
                if score == -torch.inf:
                    break
                row, id = rows[index // scores.shape[1]], index % scores.shape[1]
                old, token = running[row], Token(id, float("nan"), masses[row])
                beam = Beam(prompt, [*old.ids, id], old.prompt_tokens, [*old.tokens, token], score)
                # As in transformers: an ended text counts only if it is among the best `num_beams` continuations.
                if id not in eos and length < steps:
                    candidates.append((row, beam))
                elif rank < num_beams:
                    hypotheses.add(beam, length)
            del candidates[num_beams:]
            hypotheses.open = bool(candidates) and hypotheses.may_improve(candidates[0][1].score, length)
            following += candidates if hypotheses.open else []
        if not following:
            break
        # Matchers and cache follow their beams into the rows of the next step.
        parents, running = [row for row, _ in following], [beam for _, beam in following]
        batch.reorder(parents)
        batch.advance([beam.ids[-1] for beam in running])
        forward.reorder(running, parents)
    return results


def _logits(forward: RaggedForward, beams: Sequence[Beam]) -> torch.Tensor:
    """The logits of all beams; prompts of different lengths may take several calls."""
    found: dict[Beam, torch.Tensor] = {}
    while len(found) < len(beams):
        asked, logits, _ = forward.next_logits(beams)
        found.update(zip(asked, logits))
    return torch.stack([found[beam] for beam in beams])


def _all_rows(running: Sequence[Beam], prompts: list[list[int]], num_beams: int) -> dict[Beam, list[int]]:
    """Map each beam to its prompt in transformers' order: `num_beams` rows a prompt, some of them empty."""
    out: dict[Beam, list[int]] = {}
    for number, prompt in enumerate(prompts):
        own = [beam for beam in running if beam.prompt == number]
        own += [Beam(number, [], 0) for _ in range(num_beams - len(own))]
        out.update((beam, prompt) for beam in own)
    return out

"""Beam search inside a grammar, as transformers does it: the same candidates, penalties and reasons to stop.

Every beam is a row with its own matcher, so beams fork freely and each ends whole. Beams are compared by the model's
own log-probabilities, not renormalised to what the mask leaves: what is found is the most probable text of the
grammar, if the beams are enough. Each token is therefore asked, forced or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from constrained.automaton import BatchMatcher, Matcher
from constrained.decoding import output
from constrained.decoding.call import Call
from constrained.decoding.output import ConstrainedOutput
from constrained.decoding.processors import Processed
from constrained.decoding.ragged_reader import RaggedReader
from constrained.decoding.record import Token
from constrained.errors import ConstrainedError


@dataclass(eq=False)
class Beam:
    """A text that may become the result.

    Attributes
    ----------
    prompt : int
        Which prompt it continues.
    ids : list of int
        The prompt's tokens and those written.
    score : float
        Sum of the written tokens' log-probabilities, as the processors left them.
    row : ndarray
        int32 ``[words]``: the tokens allowed next.
    """

    prompt: int
    ids: list[int]
    prompt_tokens: int
    tokens: list[Token] = field(default_factory=list)
    score: float = 0.0
    row = None

    def then(self, token: Token, score: float) -> Beam:
        """This beam, one token on."""
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
class Rules:
    """`num_beams`, `length_penalty` and `early_stopping` as in transformers' GenerationConfig; `steps` at most."""

    num_beams: int
    length_penalty: float
    early_stopping: bool | str
    steps: int

    def rate(self, score: float, length: int) -> float:
        return score / length**self.length_penalty

    def may_improve(self, best_running: float, found: Finished, length: int) -> bool:
        """Some beam still running could displace a finished one."""
        if len(found.beams) < self.num_beams:
            return True
        if self.early_stopping is True:
            return False
        at = self.steps if self.early_stopping == "never" and self.length_penalty > 0 else length
        return self.rate(best_running, at) > found.beams[-1][0]


def beam_search(
    reader: RaggedReader, beams: Sequence[Beam], matchers: Sequence[Matcher], rules: Rules, process: Processed
) -> list[list[tuple[float, Beam]]]:
    """The best texts of each prompt.

    Parameters
    ----------
    reader : RaggedReader
        Of `beams`.
    beams : sequence of Beam
        One a prompt, nothing written yet.
    matchers : sequence of Matcher
        Theirs, with their budgets set.
    rules : Rules
    process : Processed
        Masks and processes the log-probabilities.

    Returns
    -------
    list of list of (float, Beam)
        For each prompt at most ``num_beams`` whole texts with their penalised scores, best first; the last token is
        an end-of-text token unless the text fills all its steps.
    """
    running, batch, results = list(beams), BatchMatcher(matchers), [Finished() for _ in beams]
    prompts = [process.prompts[beam] for beam in beams]
    ends = set(matchers[0].compiled.vocabulary.eos_token_ids)
    keep = max(2, 1 + len(ends)) * rules.num_beams
    for length in range(1, rules.steps + 1):
        for beam, row in zip(running, batch.fill_bitmask()):
            beam.row = row
        process.prompts = _slots(running, prompts, rules.num_beams)
        log_probs = _read(reader, running).log_softmax(-1)
        scores, masses = process.score(running, log_probs)
        scores += torch.tensor([beam.score for beam in running], device=scores.device)[:, None]
        following: list[tuple[int, Beam]] = []
        for prompt, found in enumerate(results):
            rows = [row for row, beam in enumerate(running) if beam.prompt == prompt]
            if not found.open or not rows:
                continue
            flat = scores[rows].flatten()
            best, places = (t.tolist() for t in flat.topk(min(keep, len(flat))))
            going = []
            for rank, (score, place) in enumerate(zip(best, places)):
                if score == -torch.inf:
                    break
                row, token = rows[place // scores.shape[1]], place % scores.shape[1]
                beam = running[row].then(Token(token, float("nan"), masses[row], False), score)
                if token not in ends and length < rules.steps:
                    going.append((row, beam))
                elif rank < rules.num_beams:
                    found.add(rules.rate(score, length), beam, rules.num_beams)
            del going[rules.num_beams :]
            found.open = bool(going) and rules.may_improve(going[0][1].score, found, length)
            following += going if found.open else []
        if not following:
            break
        parents, running = [row for row, _ in following], [beam for _, beam in following]
        batch.reorder(parents)
        batch.advance([beam.ids[-1] for beam in running])
        reader.reorder(running, parents)
    return [found.beams for found in results]


def _read(reader: RaggedReader, beams: Sequence[Beam]) -> torch.Tensor:
    """Logits of all beams; prompts of different lengths may take several calls."""
    found: dict[Beam, torch.Tensor] = {}
    while len(found) < len(beams):
        asked, logits, _ = reader.read(beams)
        found.update(zip(asked, logits))
    return torch.stack([found[beam] for beam in beams])


def _slots(running: Sequence[Beam], prompts: list[list[int]], num_beams: int) -> dict[Beam, list[int]]:
    """Each beam with its prompt, where transformers has it: as many rows for every prompt, some of them empty."""
    out: dict[Beam, list[int]] = {}
    for number, prompt in enumerate(prompts):
        own = [beam for beam in running if beam.prompt == number]
        own += [Beam(number, [], 0) for _ in range(num_beams - len(own))]
        out.update((beam, prompt) for beam in own)
    return out


def generate_beams(call: Call, guides: Sequence[Matcher]) -> torch.Tensor | ConstrainedOutput:
    """`beam_search` for a call of `model.generate`; `guides`: each row's matcher, of which a prompt's first is used."""
    config = call.config
    if call.criteria:
        raise ConstrainedError("stopping criteria would cut beams short", "leave them out, or use num_beams=1")
    guides, rows = guides[:: config.num_beams], call.input_ids[:: config.num_beams]
    beams = [Beam(i, list(ids), len(ids)) for i, ids in enumerate(call.prompts[:: config.num_beams])]
    process = Processed(call.processors, dict(zip(beams, rows.tolist())), measure=call.measure)
    reader = call.reader(beams)
    rules = Rules(config.num_beams, config.length_penalty, config.early_stopping, call.steps)
    found = beam_search(reader, beams, guides, rules, process)
    count = config.num_return_sequences
    # A language may have fewer texts than are asked for; the rows are counted on all the same.
    best = [pair for beam, of_one in zip(beams, found) for pair in (of_one + [(-torch.inf, beam)] * count)[:count]]
    written = [beam.tokens for _, beam in best]
    pad = call.pad(guides[0].compiled.vocabulary.eos_token_ids)
    sequences = output.sequences(rows[[beam.prompt for _, beam in best]], written, pad)
    if not config.return_dict_in_generate:
        return sequences
    return ConstrainedOutput(
        sequences=sequences,
        sequences_scores=torch.tensor([score for score, _ in best]),
        pruned_mass=output.pruned_mass(written) if call.measure else None,
        forced=output.forced(written),
        complete=torch.tensor([score > -torch.inf for score, _ in best]),
        forward_passes=reader.forward.passes,
    )

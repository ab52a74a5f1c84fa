"""The learners of self-learning: a language model that learns by adapters, and a chooser that learns by its weights."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from tqdm import tqdm

from constrained.agents.settings import Settings
from constrained.chooser.chooser import GraphChooser
from constrained.chooser.graphs import Encoder, Example, FeatureVocabulary
from constrained.chooser.network import Network, collate, imitation_loss
from constrained.chooser.scorer import Scorer
from constrained.chooser.weights import load_scorer, save_scorers
from constrained.decoding import Generation
from constrained.environments.data import fields, read_json
from constrained.environments.pddl import PddlEnvironment
from constrained.environments.suite import Task
from constrained.errors import DataError, TrainingError
from constrained.files import to_json, write_whole
from constrained.knowledge import Knowledge
from constrained.models import LoadedModel, load_adapters
from constrained.planning import Domain, PlanningTask, read_problem_of
from constrained.planning.plans import read_action
from constrained.planning.writer import PddlText
from constrained.training.encoding import Span, TrainingText
from constrained.training.output_folder import Tuned
from constrained.training.replay import replay_texts
from constrained.training.settings import Tuning
from constrained.training.tuning import tune

Models = Mapping[str, Any]

WEIGHTS = "weights.safetensors"
"""The file of a tuned chooser in its folder."""


class Learner(Protocol):
    """A model that learns from its own trajectories."""

    base: Any
    """The model before the first round."""

    def tuned(self, name: str, folder: Path) -> Any:
        """Load the model that was tuned into a folder."""
        ...

    def texts(
        self, task: Task, answers: Sequence[Generation], knowledge: Knowledge, models: Models, settings: Settings
    ) -> list[TrainingText]:
        """The training texts of one recorded task."""
        ...

    def tune(self, texts: Sequence[TrainingText], folder: Path, previous: Path | None) -> Tuned:
        """Tune on texts, starting from the model in the folder `previous`."""
        ...


class LanguageLearner:
    """A language model, tuned by adapters; `base` itself is not changed."""

    def __init__(self, base: LoadedModel, tuning: Tuning):
        self.base, self.tuning = base, tuning

    def tuned(self, name: str, folder: Path) -> LoadedModel:
        """Load the base with an adapter."""
        return load_adapters(self.base, {name: folder})[name]

    def texts(
        self, task: Task, answers: Sequence[Generation], knowledge: Knowledge, models: Models, settings: Settings
    ) -> list[TrainingText]:
        """All that the model wrote, each text after its prompt."""
        return replay_texts(task, answers, knowledge, models, settings)

    def tune(self, texts: Sequence[TrainingText], folder: Path, previous: Path | None) -> Tuned:
        """Tune an adapter."""
        return tune(self.base, texts, self.tuning, folder, adapter=previous)


class ChooserLearner:
    """A graph network that chooses planning actions, trained from random weights.

    Of `tuning` only epochs, batch (in states), rate, decay, warm-up and seed are used.
    """

    def __init__(self, domain: Domain, tuning: Tuning):
        self.domain, self.tuning = domain, tuning
        self.vocabulary = FeatureVocabulary(domain)
        torch.manual_seed(tuning.seed)
        self._network = Network(self.vocabulary).eval()
        self.base = GraphChooser(scorer=self._network.scorer(), name="random weights")

    def tuned(self, name: str, folder: Path) -> GraphChooser:
        """Load the chooser that was tuned into a folder. Raises DataError: it is missing, or for another domain."""
        return GraphChooser(scorer=self._load(folder), name=name)

    def _load(self, folder: Path) -> Scorer:
        scorer = load_scorer(self.domain, folder / WEIGHTS)
        if scorer is None:
            raise DataError(f"{folder / WEIGHTS} is of another domain", "delete the folder of this round")
        return scorer

    def texts(
        self, task: Task, answers: Sequence[Generation], knowledge: Knowledge, models: Models, settings: Settings
    ) -> list[TrainingText]:
        """A text in which the problem is read and its plan is learned."""
        environment = task.make()
        assert isinstance(environment, PddlEnvironment)
        problem = PddlText(PlanningTask(self.domain, environment.facts.task.problem)).problem
        plan = [Span(f"{answer.text}\n", True) for answer in answers]
        return [TrainingText((Span(problem, False), *plan), ends=False)]

    def tune(self, texts: Sequence[TrainingText], folder: Path, previous: Path | None) -> Tuned:
        """Tune all weights to imitate the plans' actions.

        Raises TrainingError: in no state of the plans there is more than one possible action.
        """
        record = folder / "tuning.json"
        if record.exists() and (folder / WEIGHTS).exists():
            named = fields(
                str(record), read_json(record), steps=int, tokens=int, loss=float, seconds=float, left_out=int
            )
            return Tuned(folder, *named)
        began = time.perf_counter()
        lessons = [lesson for text in texts for lesson in self._lessons(text)]
        if not lessons:
            raise TrainingError("in every state of the plans only one action is possible", "give larger problems")
        # Each round starts from the weights of the last one, the first from random weights.
        network = Network.of(self._load(previous) if previous else self._network.scorer()).train()
        steps, loss = self._fit(network, lessons, folder.parent.name)
        folder.mkdir(parents=True, exist_ok=True)
        save_scorers(folder / WEIGHTS, [network.scorer()])
        tuned = Tuned(folder, steps, len(lessons), loss, time.perf_counter() - began, 0)
        write_whole(record, to_json(asdict(tuned) | {"folder": str(folder)}))
        return tuned

    def _lessons(self, text: TrainingText) -> Iterator[tuple[Example, np.ndarray]]:
        """Yield the states of a plan with several possible actions, each with the action that was taken."""
        task = PlanningTask(self.domain, read_problem_of(self.domain, text.spans[0].text))
        encoder, state = Encoder(self.vocabulary, task), task.initial
        for span in text.spans[1:]:
            actions, taken = task.applicable(state), read_action(span.text)
            if taken not in actions:
                raise DataError(f"{span.text.strip()!r} is not possible in its problem", "begin a new folder")
            if len(actions) > 1:
                yield encoder.encode(state, actions), np.array([action == taken for action in actions])
            state = task.apply(state, taken)

    def _fit(self, network: Network, lessons: Sequence[tuple[Example, np.ndarray]], words: str) -> tuple[int, float]:
        """Train, and return the number of steps and the mean loss of the last epoch."""
        tuning, rng = self.tuning, random.Random(self.tuning.seed)
        per_epoch = math.ceil(len(lessons) / tuning.batch)
        steps = math.ceil(per_epoch * tuning.epochs)
        average = torch.optim.swa_utils.AveragedModel(
            network, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.98)
        )
        optimizer = torch.optim.AdamW(network.parameters(), lr=tuning.rate, weight_decay=tuning.decay)
        order: list[int] = []
        losses: list[float] = []
        # Lessons in random order; an epoch has nearly all of them. The learning rate rises, then falls to a fiftieth.
        # The weights that are kept are an average over the last steps.
        for step in tqdm(range(steps), desc=f"{words}, tuning", unit="step", disable=None):
            if len(order) < tuning.batch:
                order = rng.sample(range(len(lessons)), len(lessons))
            drawn = [lessons[order.pop()] for _ in range(min(tuning.batch, len(order)))]
            warm = min(1.0, (step + 1) / max(1.0, tuning.warmup * steps))
            for group in optimizer.param_groups:
                group["lr"] = tuning.rate * warm * max(0.02, 1 - step / steps)
            batch = collate(self.vocabulary, [example for example, _ in drawn])
            good = torch.from_numpy(np.concatenate([taken for _, taken in drawn]))
            loss = imitation_loss(network(batch, rng.randint(6, 16)), batch, good)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            average.update_parameters(network)
            losses.append(loss.item())
        network.load_state_dict(average.module.state_dict())
        return steps, float(np.mean(losses[-per_epoch:]))

"""Training texts from recorded runs: all that the model wrote, each text after its own prompt.

A recorded run holds answers, not prompts; replaying it with these answers reproduces the prompts. So a model is trained
on exactly the prompts that it will get, for any strategy, step format and environment.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from constrained.agents.messages import for_role
from constrained.agents.scheduler import Rollout
from constrained.agents.settings import Settings
from constrained.agents.suite_runner import rollout_of
from constrained.decoding import Generation, Request
from constrained.environments.data import read_rows
from constrained.environments.suite import Task
from constrained.errors import DataError
from constrained.files import write_whole
from constrained.knowledge import Knowledge
from constrained.models import LoadedModel
from constrained.training.encoding import Span, TrainingText
from constrained.training.trajectory import Act, Trajectory


def replay_texts(
    task: Task,
    answers: Sequence[Generation],
    knowledge: Knowledge,
    models: Mapping[str, LoadedModel],
    settings: Settings,
) -> list[TrainingText]:
    """Make the training texts of one recorded task: all that the policy's model wrote in the last phase.

    A prompt that continues the one before, as a history does, becomes part of the same text, so nothing is read twice.

    Raises DataError: the task doesn't take the recorded course, because the environment or the knowledge has changed.
    """
    replayed = list(_replay(rollout_of(task, knowledge, models, settings), answers))
    policy = for_role("policy", models)
    last_phase = replayed[-1][0] if replayed else ""
    written = [
        (request, answer, action)
        for phase, request, answer, action in replayed
        if phase == last_phase and for_role(request.role, models) is policy
    ]
    return list(join_texts(written, bounded=policy.is_embedded))


def _replay(rollout: Rollout, answers: Sequence[Generation]) -> Iterator[tuple[str, Request, Generation, str]]:
    """Replay answers, and yield (phase, request, answer, action read from the answer) for each of them."""
    rollout.start()
    for answer in answers:
        request, phase = rollout.request, rollout.episode.phase
        if request is None or request.role != answer.role:
            break
        steps = len(rollout.episode.plan.steps)
        rollout.answer(answer)
        made = rollout.episode.plan.steps[steps:]
        yield phase, request, answer, made[-1].action if made else ""
    if rollout.failure is not None or not rollout.over:
        reason = rollout.failure or "it isn't over after the last recorded answer"
        rollout.close()
        raise DataError(
            f"{rollout.name} doesn't take its recorded course again: {reason}",
            "the environment, the action knowledge or this library has changed: begin a new folder",
        )


def join_texts(written: Iterable[tuple[Request, Generation, str]], *, bounded: bool) -> Iterator[TrainingText]:
    """Join requests and answers to texts; a prompt that continues the text so far is appended to it.

    `written`: (request, answer, action in the answer). `bounded`: put a token boundary before each action, as the
    embedded model learned it.
    """
    spans: list[Span] = []
    text = ""
    for request, answer, action in written:
        # A prompt that only adds to the text so far, such as an observation, is appended and not learned.
        prompt = request.prompt
        assert isinstance(prompt, str)  # strategies ask in text
        if spans and prompt.startswith(text):
            between = prompt[len(text) :]
            # The stop string that ends a text without masks must be learned, too.
            stop = next(filter(between.startswith, request.stops), "")
            spans += [Span(stop, True), Span(between[len(stop) :], False)]
        else:
            if spans:
                yield _without_empty(spans)
            spans = [Span(prompt, False)]
        end = len(answer.text)
        cut = end - len(action) if bounded and answer.text.endswith(action) else end
        spans += [Span(answer.text[:cut], True), Span(answer.text[cut:], True)]
        text = prompt + answer.text
    if spans:
        yield _without_empty(spans)


def _without_empty(spans: Iterable[Span]) -> TrainingText:
    return TrainingText(tuple(span for span in spans if span.text))


def write_merged(path: Path, learned: Iterable[tuple[Trajectory, Sequence[TrainingText]]]) -> None:
    """Write merged trajectories with their training texts, one per line."""
    rows = ({**asdict(trajectory), "texts": [asdict(text) for text in texts]} for trajectory, texts in learned)
    write_whole(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def read_merged(path: Path) -> Iterator[tuple[Trajectory, list[TrainingText]]]:
    """Read what `write_merged` wrote. Raises DataError: a line is damaged."""
    for where, row in read_rows(path):
        try:
            texts = [
                TrainingText(tuple(Span(**span) for span in text["spans"]), text["ends"]) for text in row.pop("texts")
            ]
            yield Trajectory(**row | {"acts": tuple(Act(**act) for act in row["acts"])}), texts
        except (TypeError, KeyError) as error:
            hint = "delete the folder of this round and of those after it: they are made again"
            raise DataError(f"{where}: not a trajectory with its texts: {error}", hint) from None

"""What recorded play teaches: every text that the model wrote, behind the very prompt it wrote it after.

The record of a run holds answers, not prompts; as strategies ask alike, playing it again from its answers brings the
prompts back. Whatever the strategy, the step format or the environment, a model is so tuned on what it will be asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from constrained.agents.asking import Answer, Ask, for_role
from constrained.agents.campaign import player_of
from constrained.agents.episode import Settings
from constrained.environments.data import read_rows
from constrained.environments.suite import Task
from constrained.errors import DataError
from constrained.files import write_whole
from constrained.knowledge import ActionKnowledge
from constrained.models.load import LoadedModel
from constrained.training.encoding import Span, TrainingText
from constrained.training.trajectory import Act, Trajectory


def practice_texts(
    task: Task,
    answers: Sequence[Answer],
    knowledge: ActionKnowledge,
    models: Mapping[str, LoadedModel],
    settings: Settings,
) -> list[TrainingText]:
    """The training texts of one recorded task: of its last phase, what the policy's model wrote.

    Where each prompt goes on from the one before, as a history does, they become one text, and nothing is read twice.

    Raises
    ------
    DataError
        Played again, the task doesn't take the recorded course: another environment or knowledge, say.
    """
    asked = list(_asked(task, answers, knowledge, models, settings))
    policy = for_role("policy", models)
    last = asked[-1][0] if asked else ""
    written = [
        (ask, answer, action)
        for phase, ask, answer, action in asked
        if phase == last and for_role(ask.role, models) is policy
    ]
    return list(joined(written, bounded=policy.is_embedded))


def _asked(task, answers, knowledge, models, settings) -> Iterator[tuple[str, Ask, Answer, str]]:
    """Phase, question, answer, and the action that was read from it, of each answer."""
    player = player_of(task, knowledge, models, settings)
    player.start()
    for answer in answers:
        ask, phase = player.ask, player.episode.phase
        if ask is None or ask.role != answer.role:
            break
        steps = len(player.episode.plan.steps)
        player.answer(answer)
        made = player.episode.plan.steps[steps:]
        yield phase, ask, answer, made[-1].action if made else ""
    if player.failure is not None or not player.over:
        reason = player.failure or "it isn't over after the last recorded answer"
        player.close()
        raise DataError(
            f"{task.name} doesn't take its recorded course again: {reason}",
            "the environment, the action knowledge or this library has changed: begin a new folder",
        )


def joined(written: Iterable[tuple[Ask, Answer, str]], *, bounded: bool) -> Iterator[TrainingText]:
    """Questions and answers as texts, a question that goes on from the last in the same one.

    Parameters
    ----------
    written : iterable of (Ask, Answer, str)
        The last is the action in the answer.
    bounded : bool
        Tokens end where an action begins, as the embedded model learned it.
    """
    spans: list[Span] = []
    so_far = ""
    for ask, answer, action in written:
        if spans and ask.prompt.startswith(so_far):
            between = ask.prompt[len(so_far) :]
            # What ends a text written without masks must be learned, too.
            stop = ask.stop if ask.stop and between.startswith(ask.stop) else ""
            spans += [Span(stop, True), Span(between[len(stop) :], False)]
        else:
            if spans:
                yield _text(spans)
            spans = [Span(ask.prompt, False)]
        cut = len(answer.text) - len(action) if bounded and answer.text.endswith(action) else len(answer.text)
        spans += [Span(answer.text[:cut], True), Span(answer.text[cut:], True)]
        so_far = ask.prompt + answer.text
    if spans:
        yield _text(spans)


def _text(spans: Iterable[Span]) -> TrainingText:
    return TrainingText(tuple(span for span in spans if span.text))


def write_practice(path: Path, learned: Iterable[tuple[Trajectory, Sequence[TrainingText]]]) -> None:
    """Write what is learned from, a line a trajectory with its texts."""
    rows = ({**asdict(trajectory), "texts": [asdict(text) for text in texts]} for trajectory, texts in learned)
    write_whole(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def read_practice(path: Path) -> Iterator[tuple[Trajectory, list[TrainingText]]]:
    """What `write_practice` wrote.

    Raises
    ------
    DataError
        A line is damaged.
    """
    for place, row in read_rows(path):
        try:
            texts = [
                TrainingText(tuple(Span(**span) for span in text["spans"]), text["ends"]) for text in row.pop("texts")
            ]
            yield Trajectory(**row | {"acts": tuple(Act(**act) for act in row["acts"])}), texts
        except (TypeError, KeyError) as error:
            hint = "delete the folder of this round and of those after it: they are made again"
            raise DataError(f"{place}: not a trajectory with its texts: {error}", hint) from None

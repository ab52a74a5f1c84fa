"""What `constrained train sft` reads: files of conversations or Alpaca rows, and Lumos's conversations by rule."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from constrained.agents.lumos.conversation import asked
from constrained.agents.prompts import ALPACA
from constrained.environments.data import fields, read_rows
from constrained.environments.suite import open_suite
from constrained.errors import DataError
from constrained.knowledge import ActionKnowledge
from constrained.models.load import LoadedModel
from constrained.training import fireact
from constrained.training.annotations.convert import converted, training_conversations
from constrained.training.chat import chat_form, read_messages, turns_of
from constrained.training.encoding import Span, TrainingText

SPACES = {"maths": ("gsm8k", "svamp"), "qa": ("strategyqa",)}
"""Lumos's action space -> the data sets whose solutions convert to it by rule."""

PLAYED = ("gsm8k", "svamp")
"""Those of which a part is held out, to be played."""

_LUMOS = re.compile(r"lumos-(?P<space>\w+?)(?:-(?P<module>planner|grounder))?(?:-(?P<formulation>iterative|onetime))?")


@dataclass(frozen=True)
class Source:
    """Texts to tune on, and where they are from.

    Attributes
    ----------
    texts : list of TrainingText
    rows : int
        Read; each may give several texts, or none.
    left_out : Counter of str
        Reasons why rows gave none.
    """

    texts: list[TrainingText]
    rows: int
    left_out: Counter[str]


def read_source(data: str, loaded: LoadedModel, limit: int | None = None) -> Source:
    """The texts of a file, or of a name such as ``lumos-maths-planner``.

    Parameters
    ----------
    data : str
        A name: ``lumos-maths`` or ``lumos-qa``, then ``-planner`` or ``-grounder`` for one module (else both, for one
        model that is both: Lumos's unmodularised training), then ``-iterative`` or ``-onetime`` (else both). Else a
        file for `read_rows`, of rows with "messages", or with "instruction", "input" and "output".
    loaded : LoadedModel
        The model to tune: its chat form, and its room for a prompt.
    limit : int, optional
        Only so many rows.

    Raises
    ------
    DataError
        There is no such name or file, or a row is malformed; it says which.
    """
    named = _LUMOS.fullmatch(data)
    if named and named["space"] in SPACES:
        return _lumos(named["space"], named["module"], named["formulation"], limit)
    if data.startswith("lumos-") and not Path(data).exists():
        known = ", ".join(f"lumos-{space}" for space in SPACES)
        raise DataError(f"no data {data!r}", f"there are {known}, with -planner or -grounder, -iterative or -onetime")
    knowledge = ActionKnowledge.from_lark(fireact.KNOWLEDGE)
    texts: list[TrainingText] = []
    left_out: Counter[str] = Counter()
    rows = 0
    for place, row in islice(read_rows(data), limit):
        rows += 1
        if "messages" in row:
            form = asked if "formulation" in row else chat_form(loaded)  # Lumos's agents ask in Lumos's form
            texts += turns_of(read_messages(place, row), form)
        elif "instruction" in row:
            made = _alpaca(place, row, loaded, knowledge)
            if isinstance(made, str):
                left_out[made] += 1
            else:
                texts += made
        else:
            raise DataError(
                f"{place}: neither 'messages' nor 'instruction'",
                'give {"messages": [...]}, or {"instruction": ..., "input": ..., "output": ...}',
            )
    return Source(texts, rows, left_out)


def _alpaca(place: str, row: dict, loaded: LoadedModel, knowledge: ActionKnowledge) -> list[TrainingText] | str:
    """A row's response as one text; of FireAct's, whose response is steps, a text a step, or why there is none."""
    row = {"input": "", **row}
    task, known, output = fields(place, row, instruction=str, input=str, output=str)
    if not output.strip():
        raise DataError(f"{place}: the output is empty, so there is nothing to learn")
    steps = None if known else fireact.steps_in(output)
    if steps is None:
        prompt = ALPACA[bool(known)].format(task=task, known=known)
        return [TrainingText((Span(prompt, False), Span(output, True)))]
    return fireact.why_not(steps, knowledge) or fireact.texts_of(loaded, task, steps)


def _lumos(space: str, module: str | None, formulation: str | None, limit: int | None) -> Source:
    """The conversations of a space's data sets, those apart that are held out to be played."""
    texts: list[TrainingText] = []
    left_out: Counter[str] = Counter()
    rows = 0
    for dataset in SPACES[space]:
        held_out = _held_out(dataset)
        for row in converted(dataset, limit=limit):
            rows += 1
            if row.name in held_out:
                left_out["held out, to be played"] += 1
                continue
            left_out.update([row.failure] if row.failure else [])
            for made in training_conversations(row):
                if module in (None, made["module"]) and formulation in (None, made["formulation"]):
                    texts += turns_of(made["messages"], asked)
    return Source(texts, rows, left_out)


def _held_out(dataset: str) -> set[str]:
    """Names of the problems that are played, not learned from."""
    return {task.name for task in open_suite(dataset, split="held_out").tasks} if dataset in PLAYED else set()

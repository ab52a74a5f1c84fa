"""Training texts by the names that `constrained train sft --data` takes, such as ``lumos-maths-planner``."""

from __future__ import annotations

import re

from benchmarks.lumos.solutions.convert import converted, training_conversations
from constrained.agents.strategies.lumos.conversation import asked
from constrained.environments.suite import open_suite
from constrained.errors import DataError
from constrained.training.sft_data import Source, assistant_turns

SPACES = {"maths": ("gsm8k", "svamp"), "qa": ("strategyqa",)}
"""Lumos's action space -> the data sets whose solutions convert to it by rule."""

WITH_HELD_OUT = ("gsm8k", "svamp")
"""Data sets of which a part is held out, to be played."""

_NAME = re.compile(r"lumos-(?P<space>\w+?)(?:-(?P<module>planner|grounder))?(?:-(?P<formulation>iterative|onetime))?")


def lumos_source(name: str, limit: int | None = None) -> Source:
    """The conversations of a space's data sets, without the problems that are held out to be played.

    Parameters
    ----------
    name : str
        ``lumos-maths`` or ``lumos-qa``, then ``-planner`` or ``-grounder`` for one module (else both, for one model in
        both roles: Lumos's unmodularised training), then ``-iterative`` or ``-onetime`` (else both).
    limit : int, optional
        Only this many rows of each data set.

    Raises
    ------
    DataError
        There is no such name, or the data isn't there.
    """
    named = _NAME.fullmatch(name)
    if not named or named["space"] not in SPACES:
        known = ", ".join(f"lumos-{space}" for space in SPACES)
        raise DataError(f"no data {name!r}", f"there are {known}, with -planner or -grounder, -iterative or -onetime")
    source = Source()
    for dataset in SPACES[named["space"]]:
        held_out: set[str] = set()
        if dataset in WITH_HELD_OUT:
            held_out = {task.name for task in open_suite(dataset, split="held_out").tasks}
        for row in converted(dataset, limit=limit):
            source.rows += 1
            if row.name in held_out:
                source.left_out["held out, to be played"] += 1
                continue
            if row.failure:
                source.left_out[row.failure] += 1
            for conversation in training_conversations(row):
                wanted = (named["module"] in (None, conversation["module"])) and (
                    named["formulation"] in (None, conversation["formulation"])
                )
                source.texts += assistant_turns(conversation["messages"], asked) if wanted else []
    return source

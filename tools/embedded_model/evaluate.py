"""Play household games with a model in training, the way agents play them, and count what came of it."""

from __future__ import annotations

from collections.abc import Sequence

from constrained.agents.episode import Settings
from constrained.agents.suite_runner import play
from constrained.environments.household import Game
from constrained.environments.household.suites import task_of
from constrained.knowledge import ActionKnowledge
from constrained.models import LoadedModel
from tools.embedded_model.examples import STEP_LIMIT

BATCH = 32
"""Games played side by side."""


def play_games(
    model, tokenizer, games: Sequence[Game], *, step_format: str, masks: bool, limit: int = STEP_LIMIT
) -> dict[str, float]:
    """Play every game to its end or to `limit` steps, greedily.

    Parameters
    ----------
    model, tokenizer
        A causal language model of transformers that reads a household memory, and its tokenizer.
    games : sequence of Game
    step_format : {"act", "react", "knowagent"}
    masks : bool
    limit : int
        Steps, at most.

    Returns
    -------
    dict of str to float
        Games, success, mean steps of the games won, and the share of actions without effect.
    """
    loaded = LoadedModel(model.eval(), tokenizer, "in training", model.device, is_embedded=True)
    settings = Settings(step_format, step_format, masks, limit)
    tasks = [task_of(game) for game in games]
    lines = play(tasks, ActionKnowledge.from_lark("household"), {"policy": loaded}, settings, batch=BATCH)
    ends = [line["end"] for line in lines if "end" in line]
    won = [end for end in ends if end["success"]]
    return {
        "games": len(ends),
        "success": len(won) / len(ends),
        "steps": sum(end["steps"] for end in won) / max(len(won), 1),
        "no effect": sum(end["no effect"] for end in ends) / max(sum(end["actions"] for end in ends), 1),
    }

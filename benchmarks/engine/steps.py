"""KnowAgent steps as an agent meets them: the path so far is known, the thought is free, the action is one of many."""

from __future__ import annotations

import random

from benchmarks.engine.language import Chars, Choice, Seq
from benchmarks.engine.workloads import Case, household_commands

THOUGHT = 80
"""Characters of a thought at most."""


def household_step(number: int) -> tuple[str, Case]:
    """Prompt and grammar of one step; a path of two to five actions is behind it.

    Parameters
    ----------
    number : int
        Steps of different numbers share nothing but their form.
    """
    rng = random.Random(7000 + number)
    commands = household_commands(3000 + number)
    done = rng.sample(commands, 2 + number % 4)
    n = len(done) + 1
    seen = "\n".join(f"> {action}\nYou {action}. You see {', '.join(rng.sample(commands, 2))}." for action in done)
    prompt = f"Your task is to: {rng.choice(commands)}.\n{seen}\n"
    path = "->".join(["Start", *done])
    head = f"ActionPath {n}: {path}\nThought {n}: "
    node = Seq(head, Chars("\n", 1, THOUGHT, negated=True), f"\nAction {n}: ", Choice(*commands))
    return prompt, Case({"root": node}, node, ())

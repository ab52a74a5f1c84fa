"""The grammars of the planner's texts: a subgoal at a time, or a whole plan; and reading a subgoal back."""

from __future__ import annotations

from functools import cache

from constrained.agents.parse import parse
from constrained.grammar import Grammar

MOST_SUBGOALS = {"gsm8k": 8, "svamp": 2, "strategyqa": 5, "hotpotqa": 5, "mind2web": 15, "webshop": 5}
"""Subgoals after which the released agents stop planning, by dataset."""


@cache
def _format(name: str) -> Grammar:
    return Grammar.from_lark(f"lumos/{name}")


def first_subgoal() -> Grammar:
    """What the iterative planner says first: ``Subgoal 1: ...``."""
    return _format("subgoal").bind(N="1")


def next_subgoal(number: int, most: int) -> Grammar:
    """What it says to the result of the subgoal before: it goes on with subgoal `number`, or stops.

    Past `most` subgoals it can only stop.
    """
    return _format("planner_iterative").bind(N=str(number) if number <= most else {})


def whole_plan(most: int) -> Grammar:
    """What the onetime planner says: up to `most` subgoals, each with the next number."""
    plan = _format("planner_onetime")
    rest = plan.bind(N=str(most), MORE={})
    for number in range(most - 1, 0, -1):
        rest = plan.bind(N=str(number), MORE=rest)
    return rest


def read_subgoal(text: str, number: int) -> str | None:
    """The sentence of subgoal `number` in what the iterative planner says; None where it stops.

    Raises
    ------
    ActionError
        The text says neither.
    """
    grammar = first_subgoal() if number == 1 else next_subgoal(number, number)
    subgoal = parse(grammar, text).get("subgoal")
    return subgoal and subgoal.strip()

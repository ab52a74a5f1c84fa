"""Check knowledge imported from alfred.pddl against play, beside household.lark.

    constrained bench imported [--every N] [--json FILE]

The expert's actions all had an effect, so knowledge that is true of the game admits them; of what KnowAgent's
Llama-2-13b did, the actions answered by "Nothing happens." should be forbidden. The imported knowledge is told the
game's facts at every step; household.lark's slots are bound to what is in view.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from benchmarks.replay import SETS, Transcript, training_games, transcripts_by_game
from benchmarks.reporting import add_every, markdown, report
from constrained.environments.data import data_file
from constrained.environments.household import HouseholdEnv
from constrained.environments.household.game import Game
from constrained.environments.suite import Suite
from constrained.errors import ConstrainedError
from constrained.knowledge import ActionKnowledge
from constrained.knowledge.pddl import import_pddl
from constrained.knowledge.world_state import WorldState
from constrained.planning import PlanningTask
from constrained.planning.wording import read_texts

DOMAIN = "alfred.pddl"
"""The file of ALFWorld's planning domain."""

JUDGES = ("imported", "household.lark")


def import_alfred() -> ActionKnowledge:
    """ALFWorld's planning domain, its commands worded as the game reads them."""
    texts = read_texts(data_file("alfworld/logic_2.1.1/alfred.twl2").read_text(encoding="utf-8"))
    domain = data_file("alfworld/logic_2.1.1/alfred.pddl").read_text(encoding="utf-8")
    knowledge = import_pddl(domain, texts=texts, source=DOMAIN).knowledge()
    knowledge.name = DOMAIN
    return knowledge


def facts_of(knowledge: ActionKnowledge, game: Game) -> WorldState:
    """A household as a planning task of the knowledge, with the player's names."""
    physics = knowledge.world
    assert physics is not None
    task = PlanningTask(physics.domain, game.problem)
    return WorldState(physics, task, task.initial)


class DomainEnv(HouseholdEnv):
    """A household that also tells the imported knowledge the game's facts."""

    def __init__(self, game: Game, knowledge: ActionKnowledge):
        self._knowledge = knowledge
        super().__init__(game)

    def reset(self) -> str:
        first = super().reset()
        self._facts = facts_of(self._knowledge, self.game)
        return first

    def facts_now(self) -> WorldState:
        """The facts of the game, in the terms of the planning domain."""
        return self._facts.in_state(self.truth.state)


def in_domain(suite: Suite) -> tuple[Suite, ActionKnowledge]:
    """A suite of household games that tell the imported knowledge their facts, and that knowledge.

    Raises
    ------
    ConstrainedError
        The suite has other games, or ALFWorld's files are missing.
    """
    if suite.knowledge != "household" or not isinstance(suite.tasks[0].make(), HouseholdEnv):
        raise ConstrainedError(f"{DOMAIN} doesn't fit {suite.name}", "it is for --environment alfworld and household")
    knowledge = import_alfred()
    tasks = [replace(task, make=partial(_domain_env, task.make, knowledge)) for task in suite.tasks]
    return replace(suite, tasks=tasks), knowledge


def _domain_env(make: Callable[[], HouseholdEnv], knowledge: ActionKnowledge) -> DomainEnv:
    return DomainEnv(make().game, knowledge)


def judge(game: Game, transcript: Transcript, knowledge: dict[str, ActionKnowledge]) -> Counter:
    """Play a transcript and count each judge's verdicts on the actions with and without effect.

    Returns
    -------
    Counter
        ("effect" or "nothing", judge, verdict) -> actions.
    """
    counts: Counter = Counter()
    env = HouseholdEnv(game)
    env.reset()
    imported, household = (knowledge[name] for name in JUDGES)
    facts = facts_of(imported, game)
    for action, _ in transcript.turns:
        if env.done:
            break
        imported = imported.with_facts(facts.in_state(env.truth.state))
        household = household.bind_view(env.admissible())
        judges = imported, household
        judgements = [judge.judge(action) for judge in judges]
        env.step(action)
        for name, judgement in zip(JUDGES, judgements):
            counts["effect" if env.had_effect else "nothing", name, judgement.verdict] += 1
        if env.had_effect:
            imported, household = (k.after(action) if ok else k for k, ok in zip(judges, judgements))
    return counts


def run(every: int = 1, progress: bool = True) -> dict[str, dict]:
    """Judge the transcripts of each `every`-th training game.

    Returns
    -------
    dict of str to dict
        Set -> actions with an effect and without, and what each judge forbids of them.
    """
    knowledge = dict(zip(JUDGES, (import_alfred(), ActionKnowledge.from_lark("household"))))
    transcripts = transcripts_by_game()
    totals: dict[str, Counter] = {name: Counter() for name in SETS}
    for game in training_games(every, progress):
        for name, transcript in transcripts.get(game.name, []):
            totals[name].update(judge(game, transcript, knowledge))
            totals[name]["transcripts"] += 1
    return {name: _figures(total) for name, total in totals.items() if total}


def _figures(total: Counter) -> dict:
    figures: dict = {"transcripts": total["transcripts"]}
    for kind in ("effect", "nothing"):
        figures[kind] = sum(total[kind, JUDGES[0], v] for v in ("ok", "invalid", "misordered"))
    for name in JUDGES:
        figures[name] = {
            f"{kind}, {verdict}": total[kind, name, verdict]
            for kind in ("effect", "nothing")
            for verdict in ("invalid", "misordered")
        }
    return figures


def table(figures: dict[str, dict]) -> str:
    """The figures as a Markdown table."""
    head = ["transcripts", "knowledge", "with effect", "of these invalid", "misordered", "nothing happens",
            "of these forbidden"]  # fmt: skip
    rows = []
    for name, f in figures.items():
        for judge_name in JUDGES:
            found = f[judge_name]
            forbidden = found["nothing, invalid"] + found["nothing, misordered"]
            counts = f["effect"], found["effect, invalid"], found["effect, misordered"], f["nothing"], forbidden
            rows.append([name, judge_name, *(f"{count:,}" for count in counts)])
    return markdown(head, rows, left=2)


add_arguments = add_every


def run_command(options: argparse.Namespace) -> int:
    figures = run(options.every)
    return report(table(figures), figures, options)

"""Check knowledge imported from alfred.pddl against play, beside household.lark.

    constrained bench imported [--every N] [--json FILE]

The expert's actions all had an effect, so knowledge that is true of the game admits them; of what KnowAgent's
Llama-2-13b did, the actions answered by "Nothing happens." should be forbidden. The imported knowledge judges twice:
with its slots bound once, to all names of the house (except where the receptacles stand, which never changes), so that
only the order of actions can speak against one; and with its slots bound to the game's state at every step, as its
comments say. household.lark is bound to the game's state, too.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from benchmarks.replay import SETS, Transcript, training_games, transcripts_by_game
from benchmarks.reporting import add_every, markdown, report
from constrained.environments.base import Binding
from constrained.environments.data import data_file
from constrained.environments.household import HouseholdEnv
from constrained.environments.household.game import Game
from constrained.environments.household.world import TRAITS, World
from constrained.environments.suite import Suite
from constrained.errors import ConstrainedError
from constrained.knowledge import ActionKnowledge
from constrained.knowledge.pddl import Imported, import_pddl
from constrained.knowledge.pddl.state import State, everything, view
from constrained.planning.wording import read_texts

DOMAIN = "alfred.pddl"
"""The file of ALFWorld's planning domain."""

FIXED = ("START_L", "START_O", "GOTO_LOCATION_R", "GOTO_LOCATION_LEND")
"""Slots that "order alone" takes from the initial state: what never changes, and the start itself."""

JUDGES = ("imported, order alone", "imported, bound to the state", "household.lark")


def import_alfred() -> Imported:
    """ALFWorld's planning domain, its commands worded as the game reads them."""
    texts = read_texts(data_file("alfworld/logic_2.1.1/alfred.twl2").read_text(encoding="utf-8"))
    domain = data_file("alfworld/logic_2.1.1/alfred.pddl").read_text(encoding="utf-8")
    return import_pddl(domain, texts=texts, source=DOMAIN)


def state_of(imported: Imported, world: World) -> State:
    """A household as a state of the planning domain, with the player's names."""
    house = world.house
    objects = {name: kind for kind, names in house.things.items() for name in names}
    state = State(imported.domain, objects, [(t, name) for t in TRAITS for name in house.traits[t]])
    state.set_facts("receptacleAtLocation", house.site.items())
    state.set_facts("canContain", house.fits)
    receptacles = set(house.receptacles)
    state.set_facts("receptacleType", [item for item in house.kinds.items() if item[0] in receptacles])
    state.set_facts("objectType", [item for item in house.kinds.items() if item[0] not in receptacles])
    update(state, world)
    return state


def update(state: State, world: World) -> None:
    """Set the state's changing facts to those of the world."""
    [agent] = state.objects["agent"]
    state.set_facts("atLocation", [(agent, world.location)])
    state.set_facts("holds", [(agent, world.held)] if world.held else [])
    state.set_facts("holdsAny", [(agent,)] if world.held else [])
    state.set_facts("opened", [(name,) for name in world.states["opened"]])
    state.set_facts("inReceptacle", [(thing, r) for r, things in world.contents.items() for thing in things])
    state.set_facts("objectAtLocation", [(thing, spot) for thing, spots in world.spots.items() for spot in spots])


class DomainEnv(HouseholdEnv):
    """A household whose view also binds the slots of the imported knowledge to the game's state."""

    def __init__(self, game: Game, imported: Imported):
        self._imported = imported
        super().__init__(game)

    def reset(self) -> str:
        first = super().reset()
        self._state = state_of(self._imported, self.world)
        return first

    def step(self, action: str) -> tuple[str, float, bool]:
        answer = super().step(action)
        update(self._state, self.world)
        return answer

    def view(self) -> dict[str, Binding]:
        return {**super().view(), **view(self._imported.file, self._state)}


def in_domain(suite: Suite) -> tuple[Suite, ActionKnowledge]:
    """A suite of household games that bind the imported knowledge, and that knowledge.

    Raises
    ------
    ConstrainedError
        The suite has other games, or ALFWorld's files are missing.
    """
    if suite.knowledge != "household" or not isinstance(suite.tasks[0].make(), HouseholdEnv):
        raise ConstrainedError(f"{DOMAIN} doesn't fit {suite.name}", "it is for --environment alfworld and household")
    imported = import_alfred()
    tasks = [replace(task, make=partial(_domain_env, task.make, imported)) for task in suite.tasks]
    knowledge = imported.knowledge()
    knowledge.name = DOMAIN
    return replace(suite, tasks=tasks), knowledge


def _domain_env(make: Callable[[], HouseholdEnv], imported: Imported) -> DomainEnv:
    return DomainEnv(make().game, imported)


def judge(game: Game, transcript: Transcript, imported: Imported, knowledge: dict[str, ActionKnowledge]) -> Counter:
    """Play a transcript and count each judge's verdicts on the actions with and without effect.

    Returns
    -------
    Counter
        ("effect" or "nothing", judge, verdict) -> actions.
    """
    counts: Counter = Counter()
    env = HouseholdEnv(game)
    env.reset()
    state = state_of(imported, env.world)
    order, bound, household = (knowledge[name] for name in JUDGES)
    start = view(imported.file, state)
    order = order.bind_view({**everything(imported.file, state), **{slot: start[slot] for slot in FIXED}})
    for action, _ in transcript.turns:
        if env.done:
            break
        bound = bound.bind_view(view(imported.file, state))
        household = household.bind_view(env.view())
        judges = (order, bound, household)
        judgements = [judge.judge(action) for judge in judges]
        env.step(action)
        for name, judgement in zip(JUDGES, judgements):
            counts["effect" if env.had_effect else "nothing", name, judgement.verdict] += 1
        if env.had_effect:
            update(state, env.world)
            order, bound, household = (k.after(action) if ok else k for k, ok in zip(judges, judgements))
    return counts


def run(every: int = 1, progress: bool = True) -> dict[str, dict]:
    """Judge the transcripts of each `every`-th training game.

    Returns
    -------
    dict of str to dict
        Set -> actions with an effect and without, and what each judge forbids of them.
    """
    imported = import_alfred()
    knowledge = dict.fromkeys(JUDGES, imported.knowledge())
    knowledge["household.lark"] = ActionKnowledge.from_lark("household")
    transcripts = transcripts_by_game()
    totals: dict[str, Counter] = {name: Counter() for name in SETS}
    for game in training_games(every, progress):
        for name, transcript in transcripts.get(game.name, []):
            totals[name].update(judge(game, transcript, imported, knowledge))
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

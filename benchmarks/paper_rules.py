"""Hold the paper's printed ALFWorld rules, and ours, against the expert's play.

    constrained bench rules [--every N] [--json FILE]

Every action of the expert's transcripts had an effect, so rules that are true of the game
admit them all. Each action is judged twice: by the rule set that KnowAgent prints for the
game's task type, every name of the house bound to its slots so that only the order of
actions can speak against one; and by household.lark, bound to what is in view.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict

from tqdm import tqdm

from benchmarks import reporting
from benchmarks.replay import TRAINING_GAMES, read_expert
from constrained.environments.household import load_games
from constrained.environments.household.game import Game
from constrained.knowledge import ActionKnowledge
from constrained.knowledge.report import OK
from constrained.training.judging import judge_in_game

RULE_SETS = {
    "pick_and_place_simple": "pick",
    "look_at_obj_in_light": "light",
    "pick_clean_then_place_in_recep": "clean",
    "pick_heat_then_place_in_recep": "heat",
    "pick_cool_then_place_in_recep": "cool",
    "pick_two_obj_and_place": "pick_two",
}
"""ALFWorld's task type -> the rule set printed for it (KnowAgent, Tables 7 to 12)."""


def rule_set(name: str) -> ActionKnowledge:
    """The paper's rule set for the task type that a game's name begins with."""
    return ActionKnowledge.from_lark(f"alfworld_paper/{RULE_SETS[name.split('-')[0]]}")


def printed_rules(game: Game) -> ActionKnowledge:
    """The paper's rule set for a game's task type, every slot bound to all names of the house."""
    knowledge = rule_set(game.name)
    house = game.world.house
    things = {slot: list(house.objects) for slot in knowledge.slots - {"RECEPTACLE"}}
    return knowledge.bind(RECEPTACLE=list(house.receptacles), **things)


def judge(game: Game, actions: list[str], printed: ActionKnowledge, ours: ActionKnowledge) -> Counter:
    """Play `actions` and count what each knowledge says of those that had an effect.

    Returns
    -------
    Counter
        "effect", "no effect"; "printed ok", "printed invalid", "printed misordered", "ours
        forbids"; and, for those the printed rules forbid, "FORMER -> ACTION" by name.
    """
    counts: Counter = Counter()
    before = "start"
    for act, theirs in zip(judge_in_game(actions, game, ours), printed.check(actions)):
        if not act.had_effect:
            counts["no effect"] += 1
            continue
        counts["effect"] += 1
        counts[f"printed {theirs.verdict}"] += 1
        counts["ours forbids"] += act.verdict != OK
        verb = act.text.split(" ", 1)[0].replace("go", "goto")
        if not theirs:
            counts[f"{before} -> {verb}"] += 1
        before = verb
    return counts


def run(every: int = 1, progress: bool = True) -> dict[str, dict]:
    """Judge the expert's play in all training games, or in each `every`-th.

    Returns
    -------
    dict of str to dict
        Rule set -> games, actions, what is forbidden, and which transitions that is.
    """
    wanted: dict[str, list[str]] = {t.name: [action for action, _ in t.turns] for t in read_expert()}
    ours = ActionKnowledge.from_lark("household")
    totals: dict[str, Counter] = defaultdict(Counter)
    games = load_games("train", every=every)
    for game in tqdm(games, total=-(-TRAINING_GAMES // every), unit="game", disable=not progress):
        if game.name not in wanted:
            continue
        counts = judge(game, wanted[game.name], printed_rules(game), ours)
        total = totals[RULE_SETS[game.name.split("-")[0]]]
        total.update(counts)
        total["games"] += 1
        total["whole games"] += counts["printed ok"] == counts["effect"]
    return {name: _figures(totals[name]) for name in RULE_SETS.values() if totals[name]}


def _figures(total: Counter) -> dict:
    return {
        "games": total["games"],
        "actions with an effect": total["effect"],
        "printed rules: misordered": total["printed misordered"],
        "printed rules: no such action": total["printed invalid"],
        "printed rules: games admitted whole": total["whole games"],
        "household.lark: forbidden": total["ours forbids"],
        "forbidden by the printed rules": {k: v for k, v in total.most_common() if " -> " in k},
    }


def table(figures: dict[str, dict]) -> str:
    """Lay the figures out as a small table in Markdown."""
    lines = [
        "| rule set | games | actions | misordered | no such action | games admitted whole | household.lark forbids |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    columns = [[v for v in f.values() if isinstance(v, int)] for f in figures.values()]
    rows = [*zip(figures, columns), ("all", [sum(c) for c in zip(*columns)])]
    lines += [f"| {name} | " + " | ".join(f"{v:,}" for v in values) + " |" for name, values in rows]
    transitions: Counter = Counter()
    for f in figures.values():
        transitions.update(f["forbidden by the printed rules"])
    lines += ["", "Forbidden by the printed rules, though the game answers:"]
    lines += [f"  {name:<24} {count:>6,}" for name, count in transitions.most_common(12)]
    return "\n".join(lines)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `constrained bench rules`."""
    reporting.add_arguments(parser, "judge")


def run_command(options: argparse.Namespace) -> int:
    """Print the table, write the JSON."""
    figures = run(options.every)
    reporting.give(figures, table, options)
    return 0

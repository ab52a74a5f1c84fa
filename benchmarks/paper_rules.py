"""Check the paper's printed ALFWorld rules, and ours, against the expert's play.

    constrained bench rules [--every N] [--json FILE]

Every action of the expert's transcripts had an effect, so rules that are true of the game admit them all. Each is
judged twice: by the rule set that KnowAgent prints for the game's task type, its slots bound to every name of the house
so that only the order of actions can speak against one; and by household.lark, bound to what is in view.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict

from benchmarks.replay import read_expert, training_games
from benchmarks.reporting import add_every, markdown, report
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
    """The paper's rule set for a game's task type, its slots bound to all names of the house."""
    knowledge = rule_set(game.name)
    things = dict.fromkeys(knowledge.slots - {"RECEPTACLE"}, game.objects)
    return knowledge.bind(RECEPTACLE=game.receptacles, **things)


def judge(game: Game, actions: list[str], printed: ActionKnowledge, ours: ActionKnowledge) -> Counter:
    """Play `actions` and count the verdicts on those that had an effect.

    Returns
    -------
    Counter
        "effect", "no effect"; "printed ok", "printed invalid", "printed misordered", "ours forbids"; and "FORMER ->
        ACTION" for each transition that the printed rules forbid.
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
    """Judge the expert's play in each `every`-th training game; returns the figures of each rule set."""
    transcripts = {t.name: [action for action, _ in t.turns] for t in read_expert()}
    ours = ActionKnowledge.from_lark("household")
    totals: dict[str, Counter] = defaultdict(Counter)
    for game in training_games(every, progress):
        if game.name not in transcripts:
            continue
        counts = judge(game, transcripts[game.name], printed_rules(game), ours)
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
    """The figures as a Markdown table, and the forbidden transitions below it."""
    head = ["rule set", "games", "actions", "misordered", "no such action", "games admitted whole",
            "household.lark forbids"]  # fmt: skip
    columns = [[v for v in f.values() if isinstance(v, int)] for f in figures.values()]
    rows = [*zip(figures, columns), ("all", [sum(column) for column in zip(*columns)])]
    transitions: Counter = Counter()
    for f in figures.values():
        transitions.update(f["forbidden by the printed rules"])
    lines = [markdown(head, [[name, *(f"{v:,}" for v in values)] for name, values in rows])]
    lines += ["", "Forbidden by the printed rules, though the game does them:"]
    return "\n".join(lines + [f"  {name:<24} {count:>6,}" for name, count in transitions.most_common(12)])


add_arguments = add_every


def run_command(options: argparse.Namespace) -> int:
    figures = run(options.every)
    return report(table(figures), figures, options)

"""Judge recorded actions by action knowledge: which of them would masks have prevented?

    constrained check household --runs RUNS.jsonl.gz
    constrained check hotpotqa --runs RUNS.jsonl.gz

`check_runs` reads two kinds of runs, both in the form in which KnowAgent released them. ALFWorld: every action is
judged by the knowledge bound to what the game showed at that point, and the game says whether it had an effect.
HotpotQA: every action is judged, every written ActionPath is compared with the actions really done, and Retrieve and
Lookup without a result are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tqdm import tqdm

from constrained.environments.household import Game, HouseholdEnv, load_named
from constrained.knowledge import Knowledge
from constrained.knowledge.report import INVALID, MISORDERED, OK
from constrained.training.released import HOTPOTQA, ReleasedRun, read_released
from constrained.training.trajectory import Act

_NO_RESULT = ("Could not find", "No results", "No Results", "The last page Retrieved was not found")

EXAMPLES = 20
"""Most disagreements that a report lists."""


def judge_actions(actions: Iterable[str], knowledge: Knowledge) -> list[Act]:
    """Judge each action after those before it; whether they had an effect is unknown."""
    return [Act(judgement.text, judgement.verdict, judgement.reason) for judgement in knowledge.check(list(actions))]


def judge_in_game(actions: Iterable[str], game: Game, knowledge: Knowledge) -> list[Act]:
    """Play the actions in a household game, judging each by the knowledge bound to what is in view before it.

    An action is added to the path if it is admitted and had an effect. Actions after the game's end are left out: there
    is no state to judge them by.
    """
    env = HouseholdEnv(game)
    acts = []
    for action in actions:
        if env.done:
            break
        knowledge = knowledge.bind_view(env.admissible())
        judgement = knowledge.judge(action)
        env.step(action)
        acts.append(Act(action, judgement.verdict, judgement.reason, env.had_effect))
        if env.had_effect and judgement:
            knowledge = knowledge.after(action)
    return acts


def check_runs(knowledge: Knowledge, path: str | Path, limit: int | None = None) -> dict:
    """Judge every action of every run in a file.

    Returns counts and the first disagreements. Raises DataError: the file has neither form, or the game of a run is not
    a training game.
    """
    runs = read_released(path, limit)
    return (_check_answers if runs[0].benchmark == HOTPOTQA else _check_household)(knowledge, runs)


def _check_household(knowledge: Knowledge, runs: list[ReleasedRun]) -> dict:
    games = load_named((run.task for run in runs), "train")
    counts: Counter = Counter()
    examples = []
    for run in tqdm(runs, desc="runs", unit="run", disable=None):
        # Knowledge and game should agree: what is admitted has an effect, and nothing else has.
        acts = judge_in_game(run.actions, games[run.task], knowledge)
        counts["actions"] += len(acts)
        counts["after the end"] += len(run.actions) - len(acts)
        for act in acts:
            counts[act.had_effect, act.verdict] += 1
            if act.had_effect != (act.verdict == OK):
                examples.append(_example(run, act))
    verdicts = (OK, INVALID, MISORDERED)
    return {
        "runs": len(runs),
        "actions": counts["actions"],
        "nothing happens": sum(counts[False, verdict] for verdict in verdicts),
        "of these admitted": counts[False, OK],
        "of these invalid": counts[False, INVALID],
        "of these misordered": counts[False, MISORDERED],
        "with effect": sum(counts[True, verdict] for verdict in verdicts),
        "with effect and admitted": counts[True, OK],
        "after the end": counts["after the end"],
        "disagreements": examples[:EXAMPLES],
    }


def _check_answers(knowledge: Knowledge, runs: list[ReleasedRun]) -> dict:
    counts: Counter = Counter()
    examples = []
    for run in tqdm(runs, desc="runs", unit="run", disable=None):
        # What masks force: the written path is the real one, Retrieve and Lookup find something.
        for path, done in run.paths:
            counts["paths"] += 1
            counts["wrong paths"] += path != "->".join(["Start", *run.actions[:done]])
        for action, observation in run.turns:
            if observation is not None:
                name = action.partition("[")[0]
                counts[name] += 1
                counts[name, "nothing"] += observation.startswith(_NO_RESULT)
        for act in judge_actions(run.actions, knowledge):
            counts["actions"] += 1
            counts[act.verdict] += 1
            if act.verdict != OK:
                examples.append(_example(run, act))
    return {
        "runs": len(runs),
        "actions": counts["actions"],
        **{verdict: counts[verdict] for verdict in (OK, INVALID, MISORDERED)},
        "written ActionPaths": counts["paths"],
        "of these other than the real history": counts["wrong paths"],
        "Retrieve": counts["Retrieve"],
        "of these without a page": counts["Retrieve", "nothing"],
        "Lookup": counts["Lookup"],
        "of these without a result": counts["Lookup", "nothing"],
        "disagreements": examples[:EXAMPLES],
    }


def _example(run: ReleasedRun, act: Act) -> dict[str, str]:
    return {"run": run.task, "action": act.text, "reason": act.reason}

"""Hold published trajectories against action knowledge: what would the masks have prevented?

    constrained check household --runs RUNS.jsonl.gz
    constrained check hotpotqa --runs RUNS.jsonl.gz

Two forms of run are understood, both as KnowAgent published them. ALFWorld: every action
is judged by the knowledge bound to what the game showed at that moment, and the game itself
says whether the action had an effect. HotpotQA: every action is judged, and every written
ActionPath compared with what was really done.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path

from tqdm import tqdm

from benchmarks.replay import split_text
from constrained.environments.household import HouseholdEnv, load_games
from constrained.errors import DataError
from constrained.knowledge import ActionKnowledge

_LINE = re.compile(r"(?m)^(ActionPath|Action) (\d+): ?(.*)$")
EXAMPLES = 20
"""Disagreements that a report lists."""


def read_runs(path: str | Path) -> list[dict]:
    """The records of a `.jsonl` or `.jsonl.gz` file.

    Raises
    ------
    DataError
        Missing, cut short, or not one JSON object a line.
    """
    path = Path(path)
    opener = gzip.open if path.suffix == ".gz" else open
    rows = []
    try:
        with opener(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    rows.append(json.loads(line))
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"can't read {path}: {error}", "give a .jsonl or .jsonl.gz file of runs") from None
    except json.JSONDecodeError as error:
        raise DataError(f"{path}, line {number}: not JSON: {error.msg}", "the file may be cut short") from None
    if not rows or not isinstance(rows[0], dict):
        raise DataError(f"{path} holds no runs")
    return rows


def check_runs(knowledge: ActionKnowledge, path: str | Path, limit: int | None = None) -> dict:
    """Judge every action of every run in a file.

    Returns
    -------
    dict
        Counts, and the first disagreements in words.

    Raises
    ------
    DataError
        The file is of neither form, or a run's game is not among the training games.
    """
    rows = read_runs(path)[:limit]
    if {"name", "traj"} <= rows[0].keys():
        return _check_household(knowledge, rows)
    if {"question", "prompt"} <= rows[0].keys():
        return _check_answers(knowledge, rows)
    raise DataError(
        f"{path}: runs of an unknown form ({', '.join(rows[0])})",
        "understood are KnowAgent's ALFWorld (name, traj) and HotpotQA (question, prompt) runs",
    )


def _check_household(knowledge: ActionKnowledge, rows: list[dict]) -> dict:
    wanted = {row["name"] for row in rows}
    games = {game.name: game for game in load_games("train") if game.name in wanted}
    missing = wanted - games.keys()
    if missing:
        raise DataError(f"no training game {min(missing)!r} for one of the runs")
    counts: Counter = Counter()
    examples = []
    for row in tqdm(rows, desc="runs", unit="run"):
        env = HouseholdEnv(games[row["name"]])
        env.reset()
        place = knowledge
        for action, _ in split_text(row["traj"])[1]:
            if env.done:
                counts["after the end"] += 1
                continue
            place = place.bind_view(env.view())
            judgement = place.judge(action)
            env.step(action)
            counts["actions"] += 1
            counts[f"{'effect' if env.had_effect else 'nothing happens'}, {judgement.verdict}"] += 1
            if env.had_effect and judgement:
                place = place.after(action)
            elif env.had_effect != bool(judgement) and len(examples) < EXAMPLES:
                examples.append({"run": row["name"], "action": action, "reason": judgement.reason})
    nothing = [counts[f"nothing happens, {v}"] for v in ("ok", "invalid", "misordered")]
    effect = [counts[f"effect, {v}"] for v in ("ok", "invalid", "misordered")]
    return {
        "runs": len(rows),
        "actions": counts["actions"],
        "nothing happens": sum(nothing),
        "of these admitted": nothing[0],
        "of these invalid": nothing[1],
        "of these misordered": nothing[2],
        "with effect": sum(effect),
        "with effect and admitted": effect[0],
        "after the end": counts["after the end"],
        "disagreements": examples,
    }


def _check_answers(knowledge: ActionKnowledge, rows: list[dict]) -> dict:
    counts: Counter = Counter()
    examples = []
    for row in tqdm(rows, desc="runs", unit="run"):
        own = row["prompt"].rsplit("(END OF EXAMPLES)", 1)[-1]
        done: list[str] = []
        for kind, _, text in _LINE.findall(own):
            if kind == "ActionPath":
                counts["paths"] += 1
                counts["wrong paths"] += text != "->".join(["Start", *done])
            else:
                done.append(text)
        for judgement in knowledge.check([action.strip() for action in done]):
            counts["actions"] += 1
            counts[judgement.verdict] += 1
            if not judgement and len(examples) < EXAMPLES:
                examples.append(
                    {"run": row["question"], "action": judgement.text, "reason": judgement.reason}
                )
    return {
        "runs": len(rows),
        "actions": counts["actions"],
        "ok": counts["ok"],
        "invalid": counts["invalid"],
        "misordered": counts["misordered"],
        "written ActionPaths": counts["paths"],
        "of these other than the real history": counts["wrong paths"],
        "disagreements": examples,
    }

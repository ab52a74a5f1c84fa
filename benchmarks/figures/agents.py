"""Figures of agents, environments and training."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from benchmarks import distilled, example_worlds, merge, scienceworld_play
from benchmarks.agents.published import published
from benchmarks.agents.report import ANY
from benchmarks.bfcl import command as bfcl
from benchmarks.figures.records import record, row_of, rows_of, tables_of
from benchmarks.lumos import command as lumos
from benchmarks.reporting import markdown


def _levels() -> str:
    """README's table: ReAct with the embedded model, and a random choice, by level."""
    name, cells = "agents_alfworld_valid_seen", []
    for level in ("off", "form", "state", "goal-sound", "goal"):
        ours = row_of(name, strategy="react", level=level)
        chance = rows_of(name, strategy=ANY, level=level)
        words = {"off": "off", "state": "`state`, the default", "goal": "`goal`, a heuristic"}.get(level, f"`{level}`")
        wrong = ours["invalid %"]
        cells.append([
            words, f"{wrong:.1f} %" if wrong else "**0**", f"{ours['success %']:.1f} %",
            f"{chance[0]['success %']:.1f} %" if chance else "–",
        ])  # fmt: skip
    return markdown(["masks", "invalid actions", "won by the model", "won by a random choice"], cells)


def _general_model() -> str:
    """README's first table: what masks are worth to a general model, and what a random choice reaches under them."""
    answers = {name: rows_of("bfcl_python", row=name) for name in ("masks off", "masks on")}
    called, right = (
        [f"{sum(map(bool, (row[key] for row in rows)))} of {len(rows)}" for rows in answers.values()]
        for key in ("calls", "right")
    )
    worlds_rows = record("example_worlds")["rows"]
    reached, wrong = [], []
    for name in ("act, masks off", "act", "any admitted action"):
        *_, won, impossible, _, _ = example_worlds.cells(worlds_rows[name])
        reached.append(won)
        wrong.append(impossible.replace("%", " %"))
    lines = {
        "questions answered with a call": [*called, "–"],
        "questions answered with the right call": [*right, "–"],
        "actions that are impossible": wrong,
        "goals reached": reached,
    }
    cells = [[words, off, f"**{on}**", chance] for words, (off, on, chance) in lines.items()]
    return markdown(["SmolLM2-135M-Instruct", "masks off", "masks on", "masks on, random choice"], cells)


def _self_learning() -> str:
    full, unmasked, bare = record("self_learning")["runs"]
    seen = "alfworld/valid_seen"

    def line(words: str, run: dict, key: str, digits: int, strong: bool = False, suite: str = seen) -> list[str]:
        values = [one["test"][suite][key] for one in run["rounds"]]
        shown = [
            f"{value:.{digits}f} %" if value or key.startswith(("success", "pruned")) else "**0**" for value in values
        ]
        return [words, *shown[:-1], f"**{shown[-1]}**" if strong else shown[-1]]

    rounds = [str(one["round"]) for one in full["rounds"]]
    held_out = next(suite for suite in bare["rounds"][0]["test"] if suite != seen)
    return markdown(
        ["after round", "0 (expert play only)", *rounds[1:]],
        [
            line("**KnowAgent, masks of level `goal`**", full, "success %", 1, strong=True),
            line("invalid actions", full, "invalid %", 1),
            line("pruned mass", full, "pruned mass %", 2),
            line("*without masks*: knowledge in path and filter", unmasked, "success %", 1),
            line("its invalid actions", unmasked, "invalid %", 1),
            line("*without knowledge*: ReAct's steps, every won game is kept", bare, "success %", 1),
            line("its invalid actions", bare, "invalid %", 1),
            line("the same on 72 held-out training games", bare, "success %", 1, suite=held_out),
        ],
        left=None,
    )


def _played_by(*names: str, **others: str) -> str:
    """Success of records' rows, and in brackets the share of wrong actions: a row per player, a column per level.

    `others`: records whose strategies are played in another way, and how.
    """
    rows = [row for name in names for row in record(name)["rows"]]
    for name, how in others.items():
        rows += [{**row, "strategy": f"{row['strategy'].split(',')[0]}, {how}"} for row in record(name)["rows"]]
    played = {row["level"] for row in rows}
    levels = [level for level in ("off", "form", "state", "goal-sound", "goal") if level in played]
    players: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        model = "random choice" if row["strategy"] == ANY else row["model"]
        strategy = "–" if row["strategy"] == ANY else row["strategy"]
        players.setdefault((strategy, model), {})[row["level"]] = _success(row)
    cells = [[*player, *(by_level.get(level, "–") for level in levels)] for player, by_level in players.items()]
    return markdown(["strategy", "model", *levels], cells, left=2)


def _success(row: dict) -> str:
    wrong = row["invalid %"] + row["misordered %"]
    share = f"{row['success %']:.1f} %"
    if row.get("seeds", 1) > 1:
        share += f", {min(row['by seed']):.1f}–{max(row['by seed']):.1f}"
    return f"{share} ({wrong:.1f})" if wrong else f"{share} (0)"


def _published() -> str:
    """Success in the papers: a row per method, a column per model."""
    rows = published("alfworld/valid_seen")
    success = {(row.method, row.model): f"{row.figures['success %']:.1f} %" for row in rows}
    models = dict.fromkeys(row.model for row in rows)
    methods = dict.fromkeys(row.method for row in rows)
    cells = [[method, *(success.get((method, model), "–") for model in models)] for method in methods]
    return markdown(["published", *models], cells)


def _science_rows() -> list[dict]:
    """The episodes under masks: of 26 tasks on variations not played before, of the other four on ones that were."""
    return [
        row for n in ("seed_3", "again") for row in record(f"scienceworld_play_{n}")["rows"] if row["player"] == "masks"
    ]


def _science_tables() -> list[str]:
    """By task at 100 steps, and counts, under masks. A play without masks is no ablation: the network reads them."""
    rows = [row for row in record("scienceworld_play_seed_3")["rows"] if row["player"] != "no masks"]
    tasks, counts, *_ = tables_of(scienceworld_play.table(rows))
    lines = tasks.splitlines()
    columns = [n for n, name in enumerate(lines[0].split("|")) if "50 steps" not in name]
    return ["\n".join("|".join(line.split("|")[n] for n in columns) for line in lines), counts]


def task_means(rows: Iterable[dict], limit: int = scienceworld_play.MAX_STEPS) -> list[list[float]]:
    """The scores of each task's episodes after `limit` steps."""
    scores: dict[str, list[float]] = {}
    for row in rows:
        scores.setdefault(row["task"], []).append(scienceworld_play.points(row, limit))
    return list(scores.values())


def mean_of_means(tasks: Iterable[list[float]]) -> float:
    """The mean over tasks of the mean over a task's episodes."""
    means = [sum(scores) / len(scores) for scores in tasks]
    return sum(means) / len(means)


def interval(tasks: list[list[float]], draws: int = 4_000) -> tuple[float, float]:
    """The middle 95 % of the mean over tasks when each task's episodes are drawn anew, with repetition."""
    rng = random.Random(0)
    means = sorted(mean_of_means([rng.choices(scores, k=len(scores)) for scores in tasks]) for _ in range(draws))
    return means[round(0.025 * draws)], means[round(0.975 * draws) - 1]


def _modules() -> str:
    """Lumos's planner and grounder, before and after they are tuned as two adapters."""
    rows = {
        of: [row for tuned in ("", "_adapters") for row in record(f"svamp_smollm2{of}{tuned}")["rows"]]
        for of in ("", "_iterative")
    }
    every = [row for one in rows.values() for row in one]
    assert not any(row["won"] for row in every)
    wrong, tokens = {}, {}
    for level in ("off", "state"):
        here = [row for row in every if row["level"] == level]
        [wrong[level]] = {f"{row['invalid %'] + row['misordered %']:.0f} %" for row in here}
        low, high = (extreme(row["tokens"] for row in here) for extreme in (min, max))
        tokens[level] = f"{low:.0f} to {high:.0f}"
    first, second = (one[0]["tasks"] for one in rows.values())
    return (
        f"none of the {first} problems (Lumos-I: {second}) is solved, tuned or not. Without masks {wrong['off']} of "
        f"the actions are wrong, at `state` {wrong['state']}; a problem takes {tokens['off']} and {tokens['state']} "
        "tokens"
    )


def _rounds() -> str:
    """Rounds of KnowAgent's self-learning with a general model: the tests without masks, and the last one with."""
    tested = [
        (f"round {one['round']}, seed {seed}", {**row, "level": "off"})
        for seed, of in enumerate(("", "_seed_1", "_seed_2"))
        for one in record(f"self_learning_smollm2{of}")
        for row in one["test"].values()
        if one["round"]
    ]
    before, after = (record(f"alfworld_smollm2{of}")["rows"] for of in ("", "_adapter"))
    rows = [("none", row) for row in before] + tested + [("round 2, seed 0", row) for row in after]
    cells = [
        [
            words,
            row["level"],
            row["tasks"],
            row["won"],
            f"{row['invalid %'] + row['misordered %']:.0f} %",
            f"{row['tokens']:.0f}",
        ]
        for words, row in rows
    ]
    return markdown(["adapters", "masks", "games", "won", "wrong actions", "tokens written"], cells, left=2)


def _ways(domain: str) -> str:
    """Lumos's ways of training, without the share of wrong actions."""
    lines = [line.split("|") for line in lumos.table(record("lumos")["rows"], domain).splitlines()]
    columns = [n for n, name in enumerate(lines[0]) if "wrong" not in name]
    return "\n".join("|".join(line[n] for n in columns) for line in lines)


def _percent(name: str, **wanted: Any) -> str:
    return f"{row_of(name, **wanted)['success %']:.1f} %"


def _readme() -> list[str]:
    react = [row_of("agents_alfworld_valid_seen", strategy="react", level=level) for level in ("off", "state")]
    before, after = (row["invalid %"] for row in react)
    return [f"invalid actions from {before:.1f} % to {after:.0f}"]


def _agents_page() -> list[str]:
    bare = record("self_learning")["runs"][2]["rounds"]
    held_out = next(suite for suite in bare[0]["test"] if "held_out" in suite)
    first, last = (bare[n]["test"][held_out]["success %"] for n in (0, -1))
    played = task_means(_science_rows())
    new = task_means(row for row in record("scienceworld_play_seed_3")["rows"] if row["player"] == "masks")
    low, high = interval(new)
    sooner = mean_of_means(
        task_means((row for row in record("scienceworld_play_seed_3")["rows"] if row["player"] == "masks"), limit=50)
    )
    return [
        f"fell from {first:.1f} to {last:.1f} % over the four rounds",
        f"The mean at 100 steps is {mean_of_means(new):.1f} over the {len(new)} tasks with new variations ({low:.0f} "
        f"to {high:.0f} if the episodes of each task are drawn anew), at 50 steps {sooner:.1f}",
        f"the mean of all {len(played)} is {mean_of_means(played):.1f}",
    ]


def _environments() -> list[str]:
    rows = record("scienceworld")["rows"]
    gold, understood = (sum(row[key] for row in rows) for key in ("gold", "understood"))
    played = record("original")
    same = min(played["answers identical"], played["admissible commands identical"])
    assert played["moments compared"] == same and not played["differences"]
    best = max(row["recall"]["5"] for row in record("retrieval")["rows"] if row["backend"] == "sqlite")
    return [
        f"of {gold:,} actions, all {understood:,} that the simulator accepts at that point are admitted",
        f"{played['games']} games, {same:,} states: no answer and no admissible command differs",
        f"{best:.0%} among the five found first".replace("%", " %"),
    ]


def _training_page() -> list[str]:
    ways = [row["invalid %"] + row["misordered %"] for row in record("lumos")["rows"] if not row["masks"]]
    low, high = min(filter(None, ways)), max(ways)
    return [
        f"Without masks {low:.0f} to {high:.0f} % of the actions are wrong, except those of vanilla training for maths",
        _modules(),
        " ".join(
            tables_of(merge.table([row for name, row in record("merge").items() if name != "recorded"]))[0].split()
        ),
    ]


TABLES: dict[str, Callable[[], str]] = {
    "adapters-rounds": _rounds,
    "levels": _levels,
    "general-model": _general_model,
    "self-learning": _self_learning,
    "agents": lambda: _played_by("agents_alfworld_valid_seen"),
    "agents-published": _published,
    "agents-household": lambda: _played_by("agents_household"),
    "agents-general": lambda: _played_by(
        "agents_alfworld_smollm2",
        agents_alfworld_smollm2_no_example="no example",
        agents_alfworld_smollm2_no_knowledge="knowledge not in the prompt",
    ),
    "bfcl": lambda: bfcl.correct(record("bfcl")["rows"]),
    "bfcl-python": lambda: bfcl.correct(record("bfcl_python")["rows"]),
    "distilled": lambda: distilled.table(record("distilled")["rows"]),
    "example-worlds": lambda: example_worlds.table(record("example_worlds")["rows"]),
    "lumos-maths": lambda: _ways("maths"),
    "lumos-questions": lambda: _ways("questions"),
    "scienceworld-tasks": lambda: _science_tables()[0],
    "scienceworld-counts": lambda: _science_tables()[1],
}  # fmt: skip

SENTENCES: dict[str, Callable[[], list[str]]] = {
    "README.md": _readme,
    "docs/agents_figures.md": lambda: _agents_page() + _environments(),
    "docs/training.md": _training_page,
}

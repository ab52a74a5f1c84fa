"""Compare the figures in README and docs with the records in `benchmarks/results`, or update them.

    constrained bench figures            says which tables and sentences differ from the records; exit code 1 then
    constrained bench figures --write    writes the tables anew

A table stands below a line ``<!-- figures: NAME -->`` in its page. A sentence with figures is written by hand, and must
be there as `SENTENCES` makes it from the records. Nothing is measured.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks import (
    distilled,
    example_worlds,
    guard,
    guard_proxy,
    imported,
    merge,
    scienceworld_play,
    serve,
    tau,
    worlds,
)
from benchmarks.agents.published import published
from benchmarks.agents.report import ANY
from benchmarks.bfcl import command as bfcl
from benchmarks.engine import command as engine_command
from benchmarks.engine import first as first_masks
from benchmarks.engine import generation
from benchmarks.engine import report as engine
from benchmarks.lumos import command as lumos
from benchmarks.maskbench import command as maskbench
from benchmarks.planbench import ipc
from benchmarks.planbench import masks as planbench_masks
from benchmarks.reporting import markdown
from benchmarks.result_files import DOCS, RECORDS, RESULTS
from benchmarks.telecom import command as telecom
from constrained.errors import DataError
from constrained.files import write_whole

ROOT = DOCS.parent
MARK = re.compile(r"(?m)^<!-- figures: ([\w-]+) -->\n\n?")
FIRST_TABLE = re.compile(r"(?m)(?:^\|.*\n)+")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--write", action="store_true", help="write the tables of README and docs anew")


def run_command(options: argparse.Namespace) -> int:
    if options.write:
        for page in pages():
            write_whole(page, written(page.read_text(encoding="utf-8")))
    wrong = list(differences())
    print("\n\n".join(wrong) or "README and docs show what is recorded.")
    return int(bool(wrong))


def pages() -> list[Path]:
    """The pages that may show figures."""
    return [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]


def written(page: str) -> str:
    """The text of a page in which the marked tables are generated from the records."""
    parts, at = [], 0
    for mark in MARK.finditer(page):
        table = FIRST_TABLE.match(page, mark.end())
        if table is not None:
            parts += [page[at : mark.end()], f"{TABLES[mark[1]]()}\n"]
            at = table.end()
    return "".join([*parts, page[at:]])


def differences() -> Iterator[str]:
    """The differences between pages and records, one line each."""
    seen: set[str] = set()
    for page in pages():
        text = page.read_text(encoding="utf-8")
        for mark in MARK.finditer(text):
            seen.add(mark[1])
            if mark[1] not in TABLES:
                yield f"{page.name} names a table {mark[1]!r} that {Path(__file__).name} doesn't make"
            elif not text.startswith(f"{TABLES[mark[1]]()}\n", mark.end()):
                how = "(`constrained bench figures --write`)"
                yield f"{page.name}: the table {mark[1]} must be {how}\n{TABLES[mark[1]]()}"
    yield from (f"no page shows the table {name}" for name in TABLES.keys() - seen)
    for name, sentences in SENTENCES.items():
        text = " ".join((ROOT / name).read_text(encoding="utf-8").split())
        yield from (f"{name} must say: {one}" for one in sentences() if one not in text)


@cache
def record(name: str) -> Any:
    """A record of `benchmarks/results`."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def _tables(text: str) -> list[str]:
    """The Markdown tables of a text."""
    return [match[0].rstrip("\n") for match in FIRST_TABLE.finditer(f"{text}\n")]


def _rows(name: str, **wanted: Any) -> list[dict]:
    """The rows of a record in which these keys have these values."""
    return [row for row in record(name)["rows"] if all(row.get(key) == value for key, value in wanted.items())]


def provenance(name: str) -> dict[str, str]:
    """Command, date, commit, machine, seeds and sample of a record.

    Raises DataError: nothing is noted of it.
    """
    if name not in _provenances():
        hint = "write it by the benchmark's own --json or --update, which note that, and add its seeds and its sample"
        raise DataError(f"{RECORDS.name} doesn't say where {name}.json is from", hint)
    return _provenances()[name]


@cache
def _provenances() -> dict[str, dict[str, str]]:
    return json.loads(RECORDS.read_text(encoding="utf-8"))


# agents


def _agent(name: str, **wanted: Any) -> dict:
    [row] = _rows(name, **wanted)
    return row


def _levels() -> str:
    """README's table: ReAct with the embedded model, and a random choice, by level."""
    name, cells = "agents_alfworld_valid_seen", []
    for level in ("off", "form", "state", "goal-sound", "goal"):
        ours = _agent(name, strategy="react", level=level)
        chance = _rows(name, strategy=ANY, level=level)
        words = {"off": "off", "state": "`state`, the default", "goal": "`goal`, a heuristic"}.get(level, f"`{level}`")
        wrong = ours["invalid %"]
        cells.append([
            words, f"{wrong:.1f} %" if wrong else "**0**", f"{ours['success %']:.1f} %",
            f"{chance[0]['success %']:.1f} %" if chance else "–",
        ])  # fmt: skip
    return markdown(["masks", "invalid actions", "won by the model", "won by a random choice"], cells)


def _general_model() -> str:
    """README's first table: what masks are worth to a general model, and what a random choice reaches under them."""
    answers = {name: _rows("bfcl_python", row=name) for name in ("masks off", "masks on")}
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


# engine


def _engine() -> str:
    """The engines over Tekken, without the columns of our own targets and the slowest advances."""
    lines = _tables(engine.table(record("engine")["measurements"], "tekken"))[0].splitlines()
    lines = [line for line in lines if "advance, p99" not in line]
    return "\n".join("|".join(line.split("|")[:-3]) + "|" for line in lines)


def _generation() -> str:
    """Whole texts of greedy decoding; the sampled ones are in the record."""
    lines = _tables(generation.table(record("engine_generation")["engines"]))[0].splitlines()
    return "\n".join(line for line in lines if not line.startswith("| sampled"))


def _gpu_kernels() -> str:
    head = ["rows", "", "argmax, no mask", "masked step", "masked, sampled", "model, 1 token", "with the mask",
            "overhead", "mask applied", "by XGrammar"]  # fmt: skip

    def micro(seconds: float) -> str:
        return f"{1e6 * seconds:.1f} µs"

    cells = [
        [row["batch"], row["rows"], micro(row["argmax"]), micro(row["step"]), micro(row["step by chance"]),
         f"{1e3 * row['decode']:.2f} ms", f"{1e3 * row['decode within']:.2f} ms", _signed(row["overhead %"]),
         micro(row["apply"]), micro(row["apply xgrammar"])]
        for row in record("gpu")["kernels"] if row["batch"] != 8
    ]  # fmt: skip
    return markdown(head, cells, left=2)


def _signed(percent: float) -> str:
    words = f"{percent:+.1f} %".replace("-", "−")
    return "0.0 %" if words[1:] == "0.0 %" else words


def _gpu_texts() -> str:
    rows = {(row["batch"], row["loop"]): row for row in record("gpu")["texts"]}
    loops = ("unconstrained", "host loop", "device loop", "xgrammar")
    cells = []
    for batch in dict.fromkeys(batch for batch, _ in rows):
        speeds = [rows.get((batch, loop), {}).get("tokens/s") for loop in loops]
        passes = [rows.get((batch, loop), {}).get("passes") for loop in loops[1:]]
        cells.append([batch, *("–" if n is None else f"{n:,.0f}" for n in (*speeds, *passes))])
    head = [
        "rows",
        "unconstrained",
        "host loop",
        "device loop",
        "XGrammar",
        "passes: host loop",
        "device loop",
        "XGrammar",
    ]
    return markdown(head, cells, left=0)


def _binding() -> str:
    names = {
        "rebinding": "**rebinding**", "set budget": "setting a budget",
        "the action's tokens": "the action's tokens, a mask at each",
    }  # fmt: skip
    cells, before = [], ""
    for row in record("binding")["rows"]:
        if row["part"] in names:
            label = f"{row['set']}, {row['steps']} steps"
            cells.append(
                ["" if label == before else label, names[row["part"]], f"{row['p50']:.0f} µs", f"{row['p99']:.0f} µs"]
            )
            before = label
    return markdown(["", "", "p50", "p99"], cells, left=2)


def _maskbench() -> str:
    """MaskBench's figures, without the quantiles between the median and the tail."""
    lines = maskbench.table(record("maskbench")["figures"]).splitlines()
    return "\n".join(line for line in lines if not re.match(r"\| T\w+ p(25|75|90) ", line))


def _maskbench_all() -> str:
    """All schemas, ours beside llguidance: verdicts, and the median and the tail of each time."""
    shown = ("passing", "compile errors", "validation errors", "invalidation errors")
    times = ("TTFM p50 (µs)", "TTFM p99 (µs)", "TTFM p99.9 (µs)", "TBM p50 (µs)", "TBM p99 (µs)", "TBM avg (µs)")
    found = record("maskbench_all")
    cells = []
    for part, words in (("figures", ""), ("loaded by all", ", of the schemas that both load")):
        for name, figures in found[part].items():
            counts = [f"{figures[key]:,}" if key in figures else "" for key in shown]
            cells.append([f"{name}{words}", *counts, *(f"{figures[key]:,.1f}" for key in times)])
    return markdown(["", *shown, *times], cells)


# knowledge, planning, tools


def _worlds() -> str:
    left = ("mystery_blocksworld", "obfuscated_randomized_logistics", "logistics, 10 objects", "logistics, 30 objects")
    rows = {name: row for name, row in record("worlds")["rows"].items() if name not in left}
    return worlds.table(rows)


def _executor() -> str:
    names = {"gsm8k": "GSM8K, train", "svamp": "SVAMP, first 700", "strategyqa": "StrategyQA, train"}
    cells = []
    for name, row in record("executor").items():
        if name in names:
            right = row["reproduced"]
            share = (
                f"{right:,} = {right / row['rows']:.2%}".replace("%", " %") if right else "needs an index and a model"
            )
            cells.append([names[name], f"{row['rows']:,}", f"{row['converted']:,}", share])
    return markdown(["", "rows", "converted", "give the answer"], cells)


def _planbench() -> str:
    """Solved problems, a row per set and a column per player; the sets that are parts of others are left out."""
    rows = {(row["set"], row["model"], row["level"]): row for row in record("planbench")["rows"]}
    players = [("random", "form"), ("random", "state"), ("random", "goal-sound"), ("random", "goal"),
               ("chooser", "state"), ("chooser", "goal"), ("search", "state")]  # fmt: skip
    sets = sorted({name for name, *_ in rows if not name.endswith("_3")})

    def cell(row: dict | None, whole: int) -> str:
        if row is None:
            return "–"
        share = f"{100 * row['solved'] / (row['instances'] * len(row['seeds'])):.1f} %"
        share += f" of {row['instances']}" if row["instances"] != whole else ""
        longer = row["times the optimum"]
        return share if row["model"] == "random" or longer is None else f"{share} (× {longer:.2f})"

    cells = []
    for name in sets:
        whole = rows[name, "search", "state"]["instances"]
        words = name.removesuffix("/basic").replace("obfuscated_randomized_logistics", "logistics, names at random")
        cells.append([words.replace("_", " "), whole, *(cell(rows.get((name, *one)), whole) for one in players)])
    return markdown(["problems", "instances", *(f"{model}, `{level}`" for model, level in players)], cells)


def _ipc() -> str:
    """The competitions' instances that took ten seconds or more."""
    rows = record("ipc")["rows"]
    return ipc.table([row for row in rows if sum(row[key] or 0.0 for key in ("parse", "ground", "search")) >= 10])


def _tau_gold() -> str:
    rows = record("tau")["gold"] + record("tau_telecom")["gold"]
    groups = {
        "retail (train, dev)": [("retail", "train"), ("retail", "dev")],
        "retail (test)": [("retail", "test")],
        "retail, corrected": [("retail", "tau2")],
        "airline": [("airline", "test")],
        "airline, corrected": [("airline", "tau2")],
        "telecom (tau2-bench's)": [("telecom", "small")],
    }
    keys = ("tasks", "actions", "answered with an error", "admitted", "refused, not carried out")
    cells = []
    for name, splits in groups.items():
        tasks, actions, errors, admitted, both = (
            sum(row.get(key, 0) for row in rows if (row["domain"], row["split"]) in splits) for key in keys
        )
        cells.append([name, tasks, actions, errors, admitted, actions - admitted, both])
    head = ["domain", "tasks", "gold actions", "answered with an error", "admitted", "refused"]
    return markdown([*head, "of these answered with an error"], cells)


def _tau_calls() -> str:
    names = ("conversations", "calls", "errors", "errors admitted", "others", "others admitted")
    head = ["conversations", "calls", "answered with Error", "of these admitted", "others", "of these admitted"]
    return markdown(head, [[record("tau")["conversations"][name] for name in names]], left=0)


def _tau_refused() -> str:
    kinds = [one for one in record("tau")["conversations"]["kept out"] if one["answered"] == "policy"]
    return markdown(["why", "calls"], [[one["why"], one["calls"]] for one in kinds])


def _guard_cost() -> str:
    """The cost of a call in short, middle and long conversations."""
    head, rule, *lines = guard.cost(record("guard")).splitlines()
    return "\n".join([head, rule, *(line for line in lines if line.split("|")[2].strip() in ("5", "50", "500"))])


def _tau_cost() -> str:
    names = [f"{name} {p}" for name in ("bind", "whole call") for p in ("p50", "p99")] + ["a token p99"]
    rows = [*record("tau")["cost"], *record("tau_telecom")["cost"]]
    cells = [[row["domain"], row["calls"], *(f"{row[name]:.2f}" for name in names)] for row in rows]
    return markdown(["domain", "calls", *names], cells)


def _tau_play() -> str:
    return markdown(tau.PLAYED, [tau.played_cells(row) for row in record("tau")["played"]], left=3)


# ScienceWorld


def _science_rows() -> list[dict]:
    """The episodes under masks: of 26 tasks on variations not played before, of the other four on ones that were."""
    return [
        row for n in ("seed_3", "again") for row in record(f"scienceworld_play_{n}")["rows"] if row["player"] == "masks"
    ]


def _science_tables() -> list[str]:
    """By task and in all, under masks. A play without masks is no ablation: the network reads them."""
    rows = [row for row in record("scienceworld_play_seed_3")["rows"] if row["player"] != "no masks"]
    tasks, counts, *_ = _tables(scienceworld_play.table(rows))
    lines = tasks.splitlines()
    columns = [n for n, name in enumerate(lines[0].split("|")) if "random, 50" not in name]
    return ["\n".join("|".join(line.split("|")[n] for n in columns) for line in lines), counts]


def task_means(rows: Iterable[dict]) -> list[list[float]]:
    """The scores of each task's episodes."""
    scores: dict[str, list[float]] = {}
    for row in rows:
        scores.setdefault(row["task"], []).append(scienceworld_play.points(row))
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


def _adapters(tasks: str, tuned: Iterable[tuple[str, dict]]) -> str:
    """A general model's play before and after tuning, by level; `tuned`: what was tuned, and a row of its figures."""
    cells = [
        [
            row["strategy"],
            words,
            row["level"],
            row["tasks"],
            row["won"],
            f"{row['invalid %'] + row['misordered %']:.0f} %",
            f"{row['tokens']:.0f}",
        ]
        for words, row in tuned
    ]
    return markdown(
        ["strategy", "adapters", "masks", tasks, "solved", "wrong actions", "tokens written"], cells, left=3
    )


def _modules() -> str:
    """Lumos's planner and grounder as two adapters."""
    records = {
        "svamp_smollm2": "none",
        "svamp_smollm2_adapters": "planner, grounder",
        "svamp_smollm2_iterative": "none",
        "svamp_smollm2_iterative_adapters": "planner, grounder",
    }
    return _adapters("problems", ((words, row) for name, words in records.items() for row in record(name)["rows"]))


def _rounds() -> str:
    """Rounds of KnowAgent's self-learning with a general model: the tests without masks, and the last one with."""
    tested = [
        (f"round {one['round']}", {**row, "strategy": "act", "level": "off"})
        for one in record("self_learning_smollm2")
        for row in one["test"].values()
        if one["round"]
    ]
    before, after = ([("", row) for row in record(f"alfworld_smollm2{of}")["rows"]] for of in ("", "_adapter"))
    rows = [("none", row) for _, row in before] + tested + [(tested[-1][0], row) for _, row in after]
    return _adapters("games", rows)


TABLES: dict[str, Callable[[], str]] = {
    "adapters": _modules,
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
    "distilled": lambda: distilled.table(record("distilled")["rows"]),
    "example-worlds": lambda: example_worlds.table(record("example_worlds")["rows"]),
    "scienceworld-tasks": lambda: _science_tables()[0],
    "scienceworld-counts": lambda: _science_tables()[1],
    "engine": _engine,
    "engine-first": lambda: first_masks.table(record("engine_first")["rows"]),
    "engine-threads": lambda: engine_command.threads_table(record("engine_threads")["measurements"]),
    "engine-generation": _generation,
    "gpu-kernels": _gpu_kernels,
    "gpu-texts": _gpu_texts,
    "binding": _binding,
    "maskbench": _maskbench,
    "maskbench-all": _maskbench_all,
    "serve": lambda: serve.compared(record("serve")),
    "bfcl": lambda: bfcl.correct(record("bfcl")["rows"]),
    "bfcl-python": lambda: bfcl.correct(record("bfcl_python")["rows"]),
    "lumos-maths": lambda: lumos.table(record("lumos")["rows"], "maths"),
    "lumos-questions": lambda: lumos.table(record("lumos")["rows"], "questions"),
    "worlds": _worlds,
    "imported": lambda: _tables(imported.table(record("imported")))[0],
    "executor": _executor,
    "planbench": _planbench,
    "ipc": _ipc,
    "planbench-masks": lambda: planbench_masks.table(record("masks")["rows"]),
    "tau-gold": _tau_gold,
    "tau-calls": _tau_calls,
    "tau-refused": _tau_refused,
    "tau-cost": _tau_cost,
    "tau-play": _tau_play,
    "telecom-mutations": lambda: telecom.mutation_table(record("tau_telecom")),
    "telecom-admitted": lambda: telecom.admitted_table(record("tau_telecom")),
    "guard-outcomes": lambda: guard.outcomes(record("guard")),
    "guard-cost": _guard_cost,
    "guard-proxy": lambda: guard_proxy.table(record("guard_proxy")),
}  # fmt: skip
"""The tables of the pages, by the name in their mark."""


def _values(name: str) -> list[dict]:
    return [value for key, value in record(name).items() if key != "recorded"]


# sentences


def _span(percents: Iterable[float]) -> str:
    low, high = (f"{one(list(percents)):.0f}" for one in (min, max))
    return f"{low} %" if low == high else f"{low} to {high} %"


def _to_best(side: str) -> str:
    """Our CPU time to the first mask in percent of the best peer's, over the vocabularies measured."""
    seconds = [row["seconds"] for row in record("engine_first")["rows"]]
    return _span([100 * row[side] / min(row[peer] for peer in first_masks.PEERS) for row in seconds])


def _percent(name: str, **wanted: Any) -> str:
    return f"{_agent(name, **wanted)['success %']:.1f} %"


def _readme() -> list[str]:
    most = max(row["overhead %"] for row in record("gpu")["kernels"])
    react = [_agent("agents_alfworld_valid_seen", strategy="react", level=level) for level in ("off", "state")]
    before, after = (row["invalid %"] for row in react)
    return [
        f"takes {_to_best('ours, Lark text')} of the CPU time of llguidance",
        f"and {_to_best('ours, a tuple of texts')} where it is given the list of commands",
        f"at most [{most:.1f} %](docs/engine_figures.md#on-a-gpu)",
        f"invalid actions from {before:.1f} % to {after:.0f}",
    ]


def _engine_page() -> list[str]:
    found = record("engine")["measurements"]

    def span(workload: str, peer: str, figure: str = "first") -> str:
        """The span over the vocabularies of our part of a peer's time."""
        own, other = (
            {r["vocabulary"]: r[figure] for r in found if (r["engine"], r["workload"]) == (name, workload)}
            for name in ("ours", peer)
        )
        parts = [own[name] / other[name] for name in own]
        return f"{min(parts):.2f} to {max(parts):.2f}"

    return [
        f"for the graph it is {span('graph', 'llguidance')} of llguidance's time",
        f"for nested expressions {span('calculator', 'xgrammar')} of XGrammar's",
        f"compiling the graph ahead ({span('graph', 'xgrammar', 'ahead')})",
        f"memory for nested expressions ({span('calculator', 'xgrammar', 'bytes')})",
    ]


def _agents_page() -> list[str]:
    name = "agents_alfworld_valid_seen"
    act, knowagent, react, reflexion, lumos_ = (
        _percent(name, strategy=s, level="state") for s in ("act", "knowagent", "react", "reflexion", "lumos")
    )
    assert reflexion == lumos_
    bare = record("self_learning")["runs"][2]["rounds"]
    held_out = next(suite for suite in bare[0]["test"] if "held_out" in suite)
    first, last = (bare[n]["test"][held_out]["success %"] for n in (0, -1))
    played = task_means(_science_rows())
    new = task_means(row for row in record("scienceworld_play_seed_3")["rows"] if row["player"] == "masks")
    low, high = interval(new)
    return [
        f"`act` wins {act}, `knowagent` {knowagent}, `react` {react}, `reflexion` and `lumos` {lumos_}",
        f"and it wins {_percent(name, strategy='knowagent', level='off')}",
        f"fell from {first:.1f} to {last:.1f} % over the four rounds",
        f"The mean at 100 steps is {mean_of_means(new):.1f} over the {len(new)} tasks with new variations ({low:.0f} "
        f"to {high:.0f} if the episodes of each task are drawn anew)",
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


def _guard_words() -> list[str]:
    talks = record("guard")["conversations"]
    near, why = talks["near misses"], talks["gold refused because"]
    total = sum(near.values())
    return [
        f"{talks['errors refused']} of {talks['errors']} calls that the tools answered with an error are refused",
        f"{total} near misses: {near['confirmation']} without a confirmation, {near['read']} without a read",
        f"Of {talks['gold calls']} exact gold calls {talks['gold calls refused']} are refused: {why['no clear yes']} "
        f"where nobody had said yes, {why['no lookup']} where nothing had shown seats and prices, and {why['facts']}",
    ]


def _tools_page() -> list[str]:
    return [*_guard_words(), tau.refusals(record("tau")["conversations"]).split("\n\n")[1].rstrip(".")]


def _planbench_page() -> list[str]:
    [row] = _rows("planbench", set="blocksworld/basic", model="random", level="form")
    return [
        f"At `form`, {row['impossible']:,} of {row['actions']:,} random actions are.",
        ipc.totals(record("ipc")["rows"]),
    ]


def _hosts_page() -> list[str]:
    many = record("serve")["crowd"]
    lost = sum(many["lost"].values()) or "none"
    return [
        f"{many['clients']} clients that ask for {many['seconds']:.0f} s get {many['answers']:,} answers, and {lost} "
        f"is lost; half of them take {many['p50']:.0f} s, the longest {many['worst']:.0f} s",
    ]


def _training_page() -> list[str]:
    return [" ".join(_tables(merge.table(_values("merge")))[0].split())]


SENTENCES: dict[str, Callable[[], list[str]]] = {
    "README.md": _readme,
    "docs/engine_figures.md": _engine_page,
    "docs/agents_figures.md": lambda: _agents_page() + _environments(),
    "docs/planbench.md": _planbench_page,
    "docs/tool_figures.md": _tools_page,
    "docs/hosts.md": _hosts_page,
    "docs/training.md": _training_page,
}
"""What a page must say, made from the records; line breaks and blanks don't count."""

"""Compare action knowledge drafted by a model with that written by people (KnowAgent, Table 4).

    constrained bench distilled --model smollm2

A draft orders given actions (`constrained distill --actions-of`); `benchmarks/drafts` holds SmolLM2's, unedited. Each
knowledge judges the correct runs that KnowAgent released; true knowledge admits all of them, but for ALFWorld's runs
with an action that the game answered by "Nothing happens." The same questions and games are played under its masks:
HotpotQA by `--model`, which also reads the knowledge in its prompt; ALFWorld by the embedded model, which reads none,
and by a random choice among the admitted actions.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks import papers
from benchmarks.merge import Reading, apply, judged, read_rounds
from benchmarks.reporting import add_json, markdown, report
from constrained import __version__
from constrained.agents.levels import STATE
from constrained.agents.messages import POLICY
from constrained.agents.metrics import summarise
from constrained.agents.settings import Settings
from constrained.agents.strategies import STEP_FORMATS
from constrained.cli.options import MODELS, whole_number
from constrained.decoding.choosers import Uniform
from constrained.environments.household import load_named
from constrained.environments.suite import Suite, choose_suite, open_suite
from constrained.knowledge import ActionKnowledge
from constrained.training.released import ALFWORLD, HOTPOTQA
from constrained.training.trajectory import NOT_CORRECT

DRAFTS = Path(__file__).resolve().parent / "drafts"

KNOWLEDGE = {
    HOTPOTQA: {"manual": "hotpotqa", "distilled": str(DRAFTS / "hotpotqa_smollm2.lark")},
    ALFWORLD: {"manual": "household", "distilled": str(DRAFTS / "alfworld_smollm2.lark")},
}
"""Benchmark -> who wrote the knowledge -> its name or file."""

PAPER_MODEL = "Llama-2-13b"

QUESTIONS, GAMES = 12, 36
"""How many are played by default; of the games the same number of each of the six kinds."""

STRATEGIES = {"model": "knowagent", "embedded": "react", "random": "act"}
"""Player -> its strategy. `react` is the embedded model's better one."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--model", default="smollm2", help=f"plays HotpotQA: {MODELS} (default: smollm2)")
    add("--questions", type=whole_number, default=QUESTIONS, help=f"of HotpotQA, the first (default: {QUESTIONS})")
    add("--games", type=whole_number, default=GAMES, help=f"of ALFWorld's seen validation games (default: {GAMES})")
    add("--output", type=Path, default=Path("runs/distilled"), help="folder of the runs (default: runs/distilled)")
    add_json(parser)


def run_command(options: argparse.Namespace) -> int:
    from constrained.models import load

    questions = open_suite("hotpotqa", limit=options.questions)
    games = choose_suite(f"alfworld/valid_seen:{options.games}")
    rows: list[dict[str, Any]] = []
    players = {
        HOTPOTQA: (questions, {"model": options.model}),
        ALFWORLD: (games, {"embedded": None, "random": Uniform()}),
    }
    for benchmark, knowledge in KNOWLEDGE.items():
        suite, by = players[benchmark]
        released = judge_released(benchmark, knowledge.values())
        for writer, name in knowledge.items():
            rows.append({"benchmark": benchmark, "knowledge": writer, **released[name], "played": {}})
        for player, source in by.items():
            model = source if isinstance(source, Uniform) else load(source)
            for row, name in zip(rows[-len(knowledge) :], knowledge.values()):
                row["played"][player] = play(suite, name, model, STRATEGIES[player], options.output)
    data = {"version": __version__, "model": options.model, "rows": rows}
    return report(table(rows), data, options)


def judge_released(benchmark: str, knowledge: Iterable[str]) -> dict[str, dict[str, int]]:
    """Of the correct released runs, how many each knowledge admits from the first action to the last."""
    rounds = read_rounds(benchmark)
    wanted = {run.task for runs in rounds for run in runs if run.success} if benchmark == ALFWORLD else set()
    games = load_named(wanted, "train") if wanted else {}
    result = {}
    for name in knowledge:
        reading = Reading(benchmark, "paper", name)
        filtered = apply(reading, judged(reading, rounds, games)).filtered
        admitted = sum(len(one.kept) for one in filtered)
        dropped = [reason for one in filtered for _, reason in one.dropped if reason != NOT_CORRECT]
        result[name] = {"correct runs": admitted + len(dropped), "admitted runs": admitted}
    return result


def play(suite: Suite, name: str, model: Any, strategy: str, output: Path) -> dict:
    """Play a suite under the masks of a knowledge; the environment's own judges."""
    from constrained.agents.suite_runner import header, label, play_all

    own, knowledge = ActionKnowledge.from_lark(suite.knowledge), ActionKnowledge.from_lark(name)
    judge = None if name == suite.knowledge else own
    settings = Settings(strategy, STEP_FORMATS[strategy], True, suite.max_steps, level=STATE)
    models = {POLICY: model}
    path = output / f"{label(header(suite, knowledge, models, settings, judge))}.jsonl"
    words = f"{strategy}, {model.name}, {knowledge.name}"
    ends = play_all(suite, knowledge, models, settings, path, words=words, judge=judge)
    return {"model": model.name, "strategy": strategy, **summarise(ends, suite.measures)}


def table(rows: list[dict]) -> str:
    """The comparison as Markdown: a row for each knowledge, the paper's figures in the last columns."""
    head = ["", "knowledge", "correct released runs admitted", "played by", "tasks", "success", "F1", "steps a task",
            f"*{PAPER_MODEL}, paper*"]  # fmt: skip
    lines = []
    for row in rows:
        released = f"{row['admitted runs']} of {row['correct runs']}"
        published = papers.KNOWAGENT_TABLE_4[row["knowledge"], PAPER_MODEL][row["benchmark"]]
        for played in row["played"].values():
            f1 = f"{played['f1 %']:.1f} %" if "f1 %" in played else "–"
            steps = played["actions"] / played["tasks"]
            lines.append([row["benchmark"], row["knowledge"], released, played["model"], played["tasks"],
                          f"{played['success %']:.1f} %", f1, f"{steps:.1f}", f"*{published:.1f} %*"])  # fmt: skip
    return markdown(head, lines, left=2)

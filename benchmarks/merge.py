"""Filter and merge KnowAgent's released runs as its self-learning does: by its program's rule, and by its paper's.

    constrained bench merge [--show-drops N] [--json FILE] [--output FOLDER]

Llama-2-13b played 500 HotpotQA questions and 510 ALFWorld games before tuning (D0) and after a round of it (D1). The
released program keeps correct runs, and of a task's two runs the one that is not longer. The paper also drops runs that
break the action knowledge. Which ALFWorld runs do depends on the knowledge: the rules as the paper prints them forbid
what the game requires, and household.lark forbids exactly what the game answers by "Nothing happens."
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tqdm import tqdm

from benchmarks.paper_rules import printed_rules, rule_set
from benchmarks.reporting import add_json, markdown, report
from constrained.environments.data import data_file
from constrained.environments.household import Game, load_named
from constrained.errors import DataError
from constrained.files import to_json, write_whole
from constrained.knowledge import ActionKnowledge
from constrained.knowledge.report import INVALID, OK
from constrained.training.judging import judge_actions, judge_in_game
from constrained.training.released import ALFWORLD, HOTPOTQA, ReleasedRun, read_released
from constrained.training.trajectory import NOT_CORRECT, Act, Filtered, Trajectory, filter_trajectories, merge

ROUNDS = ("D0", "D1")
PRINTED = "alfworld_paper"


@dataclass(frozen=True)
class Reading:
    """A rule to filter runs by, and the knowledge that judges their actions and is explained in the training set."""

    benchmark: str
    rule: str
    knowledge: str

    @property
    def name(self) -> str:
        """A file name."""
        return "-".join([self.benchmark.lower(), self.rule, *([self.judge] if self.rule == "paper" else [])])

    @property
    def judge(self) -> str:
        """The name of the knowledge; of a file, the part before its ending."""
        return Path(self.knowledge).stem


READINGS = (
    Reading(HOTPOTQA, "released", "hotpotqa"),
    Reading(HOTPOTQA, "paper", "hotpotqa"),
    Reading(ALFWORLD, "released", "household"),
    Reading(ALFWORLD, "paper", "household"),
    Reading(ALFWORLD, "paper", PRINTED),
)


Judged = list[list[Trajectory]]
"""The trajectories of each round."""


@dataclass
class Result:
    """A reading's result: what it keeps of each round, and of both together."""

    reading: Reading
    filtered: list[Filtered]
    merged: list[Trajectory]


def read_rounds(benchmark: str) -> list[list[ReleasedRun]]:
    """The released runs, round by round."""
    return [read_released(data_file(f"knowagent/KnowAgent{benchmark}_llama-2-13b_{name}.jsonl.gz")) for name in ROUNDS]


def judged(reading: Reading, rounds: Sequence[Sequence[ReleasedRun]], games: Mapping[str, Game]) -> Judged:
    """The trajectories of each round, judged by the reading's knowledge; `games` are those of correct ALFWorld runs."""
    knowledge = None if reading.knowledge == PRINTED else ActionKnowledge.from_lark(reading.knowledge)
    bars = (
        tqdm(runs, f"{reading.knowledge}, {name}", unit="run", leave=False, disable=None)
        for name, runs in zip(ROUNDS, rounds)
    )
    return [[_judged(run, knowledge, games) for run in bar] for bar in bars]


def _judged(run: ReleasedRun, knowledge: ActionKnowledge | None, games: Mapping[str, Game]) -> Trajectory:
    """The run's trajectory; without actions if it failed, as every rule drops it then."""
    if not run.success:
        return run.trajectory([])
    if run.benchmark == HOTPOTQA:
        return run.trajectory(judge_actions(run.actions, knowledge))
    game = games[run.task]
    if knowledge is None:
        return run.trajectory(judge_actions(run.actions, printed_rules(game)))
    return run.trajectory(judge_in_game(run.actions, game, knowledge))


def apply(reading: Reading, rounds: Judged) -> Result:
    """Filter the trajectories of each round, and merge what is kept."""
    filtered = [filter_trajectories(trajectories, reading.rule) for trajectories in rounds]
    merged: list[Trajectory] = []
    for one in filtered:
        merged = merge(merged, one.kept)
    return Result(reading, filtered, merged)


def run() -> tuple[list[Result], dict[str, ReleasedRun]]:
    """Apply every reading; returns the results, and the runs by source."""
    rounds = {benchmark: read_rounds(benchmark) for benchmark in (HOTPOTQA, ALFWORLD)}
    games = load_named({run.task for runs in rounds[ALFWORLD] for run in runs if run.success}, "train")
    runs = {run.source: run for both in rounds.values() for runs in both for run in runs}
    result: dict[tuple[str, str], Judged] = {}
    results = []
    for reading in READINGS:
        key = reading.benchmark, reading.knowledge
        if key not in result:  # by both rules, the same
            result[key] = judged(reading, rounds[reading.benchmark], games)
        results.append(apply(reading, result[key]))
    return results, runs


def figures(result: Result, runs: Mapping[str, ReleasedRun]) -> dict:
    """The figures of a reading as plain data, with the reason for each drop of a correct run."""
    dropped = drops(result, runs)
    kept = [len(one.kept) for one in result.filtered]
    tasks = [{t.task for t in one.kept} for one in result.filtered]
    last = {t.source for t in result.filtered[-1].kept}
    acts = [act for t in _correct(result) for act in t.acts]
    return {
        **asdict(result.reading),
        "runs": dict(zip(ROUNDS, (len(one.kept) + len(one.dropped) for one in result.filtered))),
        "kept": dict(zip(ROUNDS, kept)),
        "dropped": dict(zip(ROUNDS, (dict(one.reasons.most_common()) for one in result.filtered))),
        "tasks of both rounds": len(set.intersection(*tasks)),
        f"merged, from {ROUNDS[-1]}": sum(t.source in last for t in result.merged),
        "merged": len(result.merged),
        "actions of correct runs": len(acts),
        "of these not admitted": sum(act.verdict != OK for act in acts),
        "of these without effect": sum(act.had_effect is False for act in acts),
        "first offences": dict(Counter(drop["offence"] for drop in dropped).most_common()),
        "drops of correct runs": dropped,
    }


def drops(result: Result, runs: Mapping[str, ReleasedRun]) -> list[dict]:
    """The correct runs that are dropped: at which action, and why."""
    return [
        {
            "round": name, "task": t.task, "reason": reason, "step": t.acts.index(act) + 1, "action": act.text,
            "offence": _offence(act, runs[t.source]), "words": act.reason,
        }
        for name, one in zip(ROUNDS, result.filtered) for t, reason in one.dropped if (act := t.violation)
    ]  # fmt: skip


def _offence(act: Act, run: ReleasedRun) -> str:
    """The kind of an action that isn't admitted; two kinds of wrong "go to" are distinguished."""
    verb = act.text.partition("[")[0].partition(" ")[0]
    if verb == "go" and act.verdict == INVALID:
        place = act.text.removeprefix("go to ")
        there = re.search(rf"\ba {re.escape(place)}[,.]", run.given)
        return "go to a place one is at already" if there else "go to a place that the room has not"
    return f"{act.verdict} {verb}"


def _correct(result: Result) -> list[Trajectory]:
    dropped = [t for one in result.filtered for t, reason in one.dropped if reason != NOT_CORRECT]
    return dropped + [t for one in result.filtered for t in one.kept]


def table(results: Sequence[dict]) -> str:
    """The figures as a Markdown table, and notes below it."""
    first, last = ROUNDS
    head = ["runs", "rule", "judged by", f"{first} kept", f"{last} kept", "merged", f"from {last}", "not correct",
            "invalid", "misordered"]  # fmt: skip
    rows = []
    for f in results:
        reasons = sum((Counter(dropped) for dropped in f["dropped"].values()), Counter())
        runs = f"{f['benchmark']} {' + '.join(map(str, f['runs'].values()))}"
        by = Path(f["knowledge"]).stem if f["rule"] == "paper" else "–"
        counts = [*f["kept"].values(), f["merged"], f[f"merged, from {last}"]]
        counts += [reasons[reason] for reason in (NOT_CORRECT, "invalid action", "misordered action")]
        rows.append([runs, f["rule"], by, *counts])
    lines = [markdown(head, rows, left=3)]
    for f in results:
        if f["first offences"]:
            offences = "; ".join(f"{name} {count}" for name, count in f["first offences"].items())
            lines += [
                "",
                f"{f['benchmark']} by {Path(f['knowledge']).stem}, first offences of correct runs dropped: {offences}.",
            ]
            if f["of these without effect"]:
                lines.append(
                    f"Of {f['actions of correct runs']:,} actions of correct runs {f['of these without effect']:,} were"
                    f' answered "Nothing happens."; {f["of these not admitted"]:,} are not admitted.'
                )
    return "\n".join(lines)


def training_rows(result: Result, runs: Mapping[str, ReleasedRun]) -> tuple[list[dict], list[dict]]:
    """The merged training set: as trajectories with their texts, and in Alpaca's form.

    Alpaca's instruction is the action knowledge as text, its input the question or the room with the task, its output
    the rest of the run, as written.
    """
    rows, alpaca = [], []
    texts: dict[str, str] = {}
    for trajectory in result.merged:
        run = runs[trajectory.source]
        name = result.reading.knowledge
        kind = run.task.split("-")[0] if name == PRINTED else ""
        if kind not in texts:
            texts[kind] = (rule_set(run.task) if kind else ActionKnowledge.from_lark(name)).to_text()
        source = Path(trajectory.source).name
        rows.append({**asdict(trajectory), "source": source, "given": run.given, "text": run.text})
        alpaca.append({"instruction": texts[kind], "input": run.given, "output": run.text})
    return rows, alpaca


def write_training_set(result: Result, runs: Mapping[str, ReleasedRun], folder: Path) -> None:
    """Write `NAME.jsonl`, the trajectories, and `NAME.alpaca.json`, what `constrained train sft` reads."""
    rows, alpaca = training_rows(result, runs)
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    write_whole(folder / f"{result.reading.name}.jsonl", lines)
    write_whole(folder / f"{result.reading.name}.alpaca.json", to_json(alpaca))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--show-drops", type=int, default=0, metavar="N", help="list the first N correct runs that each rule drops: "
        "at which action, and why")  # fmt: skip
    add_json(parser)
    add("--output", type=Path, metavar="FOLDER", help="write the merged training sets there, as JSON Lines and in "
        "Alpaca's form")  # fmt: skip


def run_command(options: argparse.Namespace) -> int:
    """Print the table and the drops, write the JSON and the training sets."""
    if options.show_drops < 0:
        raise DataError(f"--show-drops is {options.show_drops}", "use 0 or more")
    results, runs = run()
    found = {result.reading.name: figures(result, runs) for result in results}
    report(table(list(found.values())), found, options)
    for name, f in found.items():
        for drop in f["drops of correct runs"][: options.show_drops]:
            print(f"{name}, {drop['round']}: {drop['task']}")
            print(f"    {drop['reason']} at step {drop['step']}, {drop['action']!r}: {drop['words']}")
    if options.output:
        for result in results:
            write_training_set(result, runs, options.output)
    return 0

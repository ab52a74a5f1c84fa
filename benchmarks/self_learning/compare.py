"""The results of self-learning beside KnowAgent's Tables 1 to 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks import papers
from benchmarks.reporting import markdown
from benchmarks.self_learning.rounds import shown

SEEN, UNSEEN = "ALFWorld seen", "ALFWorld unseen"
SAME_GAMES = {"alfworld/valid_seen": SEEN, "alfworld/valid_unseen": UNSEEN}
"""Test suite -> the column of KnowAgent's tables for the same games."""


def tables(runs: Sequence[Mapping]) -> str:
    """All that can be compared, as Markdown; empty if no run was tested on the papers' games."""
    tested = [run for run in runs if _columns(run["rounds"][-1])]
    if not tested:
        return ""
    return "\n\n".join(part for part in (_scores(tested), _untuned(tested), _mistakes(tested)) if part)


def _columns(report: Mapping) -> dict[str, Mapping]:
    """The papers' column -> our figures for the same games."""
    return {column: report["test"][suite] for suite, column in SAME_GAMES.items() if suite in report["test"]}


def _success(report: Mapping) -> list[str]:
    columns = _columns(report)
    return [shown(columns.get(column, {}), "success %", "{:.2f} %") for column in (SEEN, UNSEEN)]


def _published(figures: Mapping[str, float]) -> list[str]:
    return [shown(figures, column, "{:.2f} %") for column in (SEEN, UNSEEN)]


def _scores(runs: Sequence[Mapping]) -> str:
    rows = []
    for run in runs:
        last = run["rounds"][-1]
        rows.append([f"{run['name']}, {_after(last)}", run["model"], *_success(last)])
    rows += [
        [f"*{method}*", model, *_published(figures)]
        for (method, model), figures in papers.KNOWAGENT_TABLE_1.items()
        if SEEN in figures
    ]
    words = "Success on ALFWorld after self-learning, and KnowAgent's Table 1 (*in italics*: as published):"
    return f"{words}\n\n{markdown(['method', 'model', 'seen', 'unseen'], rows, left=None)}"


def _untuned(runs: Sequence[Mapping]) -> str:
    """Round 0 with ReAct's steps against round 0 of the same base with action knowledge."""
    first = [run for run in runs if run["rounds"][0]["round"] == 0 and _columns(run["rounds"][0])]
    if len({run["step_format"] for run in first}) < 2:
        return ""
    rows = [
        ["ReAct" if run["step_format"] == "react" else f"KnowAgent, masks {_masks(run)}", run["model"],
         *_success(run["rounds"][0])]
        for run in first
    ]  # fmt: skip
    rows += [
        [f"*{method}*", model, *_published(figures)] for (method, model), figures in papers.KNOWAGENT_TABLE_2.items()
    ]
    words = "Success before any self-learning, and KnowAgent's Table 2:"
    return f"{words}\n\n{markdown(['method', 'model', 'seen', 'unseen'], rows, left=None)}"


def _mistakes(runs: Sequence[Mapping]) -> str:
    rows = []
    for run in runs:
        for report in dict.fromkeys((0, len(run["rounds"]) - 1)):
            for figures in list(_columns(run["rounds"][report]).values())[:1]:
                name = f"{run['name']}, {_after(run['rounds'][report])}"
                rows.append([name, run["model"], *(shown(figures, key) for key in ("invalid %", "misordered %"))])
    rows += [
        [f"*{method}*", model, f"{figures['invalid']:.2f} %", f"{figures['misordered']:.2f} %"]
        for (method, model), figures in papers.KNOWAGENT_TABLE_3.items()
    ]
    words = "Actions that don't exist or come out of order, ours on ALFWorld, and KnowAgent's Table 3 (on HotpotQA):"
    return f"{words}\n\n{markdown(['method', 'model', 'invalid', 'misordered'], rows, left=None)}"


def _masks(run: Mapping) -> str:
    return "on" if run["test_masks"] else "off"


def _after(report: Mapping) -> str:
    return f"round {report['round']}" if report["round"] else "not tuned"

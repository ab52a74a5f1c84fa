"""The tables of self-learning: round by round (our form of KnowAgent's Figures 3 and 4), and beside Tables 1 to 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks import papers
from benchmarks.reporting import markdown

PRUNED = "pruned mass %"
COLUMNS = {
    "steps of won": ("steps when won", "{:.1f}"),
    "invalid %": ("invalid", "{:.2f} %"),
    "misordered %": ("misordered", "{:.2f} %"),
    PRUNED: ("pruned mass", "{:.2f} %"),
}
"""Figure of a test -> its heading and format."""

SEEN, UNSEEN = "ALFWorld seen", "ALFWorld unseen"
SAME_GAMES = {"alfworld/valid_seen": SEEN, "alfworld/valid_unseen": UNSEEN}
"""Test suite -> the column of KnowAgent's tables for the same games."""


def suites(runs: Sequence[Mapping]) -> list[str]:
    """The test suites of all rounds, in order of appearance."""
    return list(dict.fromkeys(suite for run in runs for report in run["rounds"] for suite in report["test"]))


def shown(figures: Mapping[str, float], key: str, form: str = "{:.2f} %") -> str:
    """A figure in its format, or a dash if there is none."""
    return form.format(figures[key]) if key in figures else "–"


def rounds_table(runs: Sequence[Mapping]) -> str:
    """A table per test suite with a line per round; then what each round learned from, and why the rest was dropped.

    Each run has its variant's fields (see `command.Variant`), and "rounds": the reports of `self_learning`.
    """
    text = [f"{run['name']}: {run['words']}." for run in runs]
    text.append("")
    for suite in suites(runs):
        text += [f"{suite}, by round:", "", _tested(runs, suite), ""]
    text += ["What each round did with the training games, and learned from:", "", _learned(runs), ""]
    text += [
        f"{run['name']}, round {report['round']}, dropped: {reasons}."
        for run in runs
        for report in run["rounds"]
        if (reasons := _reasons(report.get("dropped", {})))
    ]
    paper = papers.KNOWAGENT_SELF_LEARNING["ALFWorld", "Llama-2-7b"]
    text.append(
        "\nKnowAgent's Figures 3 and 4 show the same by bars without figures. Its text says of ALFWorld: "
        f"{paper['tasks']} tasks, {paper['rounds']} rounds, about {paper['hours a round']} hours each."
    )
    return "\n".join(text)


def _tested(runs: Sequence[Mapping], suite: str) -> str:
    rows = []
    for run in runs:
        for report in run["rounds"]:
            figures = _masked(report["test"].get(suite, {}), run["test_masks"])
            if figures:
                success = shown(figures, "success %", "{:.1f} %")
                cells = [shown(figures, key, form) for key, (_, form) in COLUMNS.items()]
                rows.append([run["name"], report["round"], figures["tasks"], success, *cells])
    head = ["variant", "round", "games", "success", *(heading for heading, _ in COLUMNS.values())]
    return markdown(head, rows, left=None)


def _learned(runs: Sequence[Mapping]) -> str:
    rows = []
    for run in runs:
        for report in run["rounds"]:
            if "kept" not in report:
                continue
            synthesis, tuning = _masked(report["synthesis"], run["masks"]), report.get("tuning") or {}
            rows.append([
                run["name"], report["round"],
                shown(synthesis, "tasks", "{}"), shown(synthesis, "success %", "{:.1f} %"),
                *(shown(synthesis, key) for key in ("invalid %", "misordered %", PRUNED)),
                *(shown(report, key, "{:,}") for key in ("kept", "merged", "texts")),
                shown(tuning, "steps", "{:,}"), shown(tuning, "loss", "{:.4f}"), shown(tuning, "seconds", "{:.0f} s"),
            ])  # fmt: skip
    head = ["variant", "round", "games", "won", "invalid", "misordered", "pruned mass", "kept", "merged", "texts"]
    return markdown([*head, "tuning steps", "loss", "time"], rows, left=None)


def _masked(figures: Mapping[str, float], masks: bool) -> dict[str, float]:
    """The figures, without the pruned mass if nothing was masked."""
    return {key: value for key, value in figures.items() if masks or key != PRUNED}


def _reasons(dropped: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {reason}" for reason, number in sorted(dropped.items(), key=lambda pair: -pair[1]))


def paper_tables(runs: Sequence[Mapping]) -> str:
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

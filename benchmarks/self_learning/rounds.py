"""Self-learning round by round, as tables: our form of KnowAgent's Figures 3 and 4."""

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


def suites(runs: Sequence[Mapping]) -> list[str]:
    """The test suites of all rounds, in order of appearance."""
    return list(dict.fromkeys(suite for run in runs for report in run["rounds"] for suite in report["test"]))


def shown(figures: Mapping[str, float], key: str, form: str = "{:.2f} %") -> str:
    """A figure in its format, or a dash if there is none."""
    return form.format(figures[key]) if key in figures else "–"


def rounds_table(runs: Sequence[Mapping]) -> str:
    """A table per test suite with a line per round; then what each round learned from, and why the rest was dropped.

    Each run has its variant's fields (see `variants`), and "rounds": the reports of `self_learning`.
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

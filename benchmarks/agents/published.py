"""The papers' figures for a suite, in the columns of our table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import papers


@dataclass(frozen=True)
class Published:
    """One row of a paper's table, its figures by our names; `differs` says how its setting differs from ours."""

    paper: str
    differs: str
    method: str
    model: str
    figures: dict[str, float]


def published(suite: str) -> list[Published]:
    """The rows that papers print for a suite such as "alfworld/valid_seen"."""
    return [row for prefix, rows in _TABLES.items() if suite.startswith(prefix) for row in rows()]


_LARGE = "a general language model of 7 to 70 billion weights that reads text alone, and nothing masks what it writes"
_GPT = "a general language model behind an interface that reads text alone, and nothing masks what it writes"


def _knowagent(differs: str, column: str, measure: str) -> list[Published]:
    return [
        Published("KnowAgent, Table 1", f"{differs}; {_LARGE}", method, model, {measure: figures[column]})
        for (method, model), figures in papers.KNOWAGENT_TABLE_1.items()
        if column in figures
    ]


def _alfworld() -> list[Published]:
    return [
        *_knowagent("the same 140 games", "ALFWorld seen", "success %"),
        *_wese("WESE, Table 1", "134 other games (unseen)", papers.WESE_TABLE_1, 134),
    ]


def _hotpotqa() -> list[Published]:
    rows = _knowagent("300 other questions; invalid and misordered from its Table 3", "HotpotQA", "f1 %")
    for row in rows:
        rates = papers.KNOWAGENT_TABLE_3.get((row.method, row.model), {})
        row.figures.update({f"{name} %": rate for name, rate in rates.items()})
    return rows + _wese("WESE, Table 3", "500 other questions", papers.WESE_TABLE_3, 500)


def _wese(paper: str, differs: str, table: papers.Table, tasks: int) -> list[Published]:
    rows = []
    for key, figures in table.items():
        if "success" in figures:
            measure = {"success %": 100 * figures["success"], "steps of won": figures["steps"]}
        else:
            measure = {"score %": figures["reward"], "total reward": figures["total reward"]}
            measure["steps to reward"] = figures["steps"]
        ours = {
            **measure,
            "prompt tokens": figures["prompt tokens"] / tasks,
            "tokens": figures["completion tokens"] / tasks,
            "dollars": figures["dollars"] / tasks,
        }
        rows.append(Published(paper, f"{differs}; {_GPT}", " + ".join(key), "text-davinci-003", ours))
    return rows


def _lumos(paper: str, differs: str, column: str, measure: str, *tables: papers.Table) -> list[Published]:
    merged = {key: figures for table in tables for key, figures in table.items()}
    return [
        Published(paper, f"{differs}; {_LARGE}, or one behind an interface", method, model, {measure: figures[column]})
        for (method, model), figures in merged.items()
        if column in figures
    ]


def _maths(column: str) -> list[Published]:
    tables = papers.LUMOS_TABLE_1B, papers.LUMOS_TABLE_2B
    return _lumos("Lumos, Tables 1b and 2b", "the whole test set", column, "success %", *tables)


def _questions(column: str, measure: str) -> list[Published]:
    tables = papers.LUMOS_TABLE_1C, papers.LUMOS_TABLE_2C
    return _lumos("Lumos, Tables 1c and 2c", "other questions", column, measure, *tables)


_TABLES: dict[str, Callable[[], list[Published]]] = {
    "alfworld/valid_seen": _alfworld,
    "alfworld-original/valid_seen": _alfworld,
    "hotpotqa": _hotpotqa,
    "fever": lambda: _wese("WESE, Table 4", "500 claims", papers.WESE_TABLE_4, 500),
    "scienceworld": lambda: _wese("WESE, Table 2", "296 tasks of eight kinds", papers.WESE_TABLE_2, 296),
    "strategyqa": lambda: _questions("StrategyQA", "accuracy %"),
    "gsm8k": lambda: _maths("GSM8K"),
    "svamp": lambda: _maths("SVAMP"),
    "mind2web/test_domain": lambda: _lumos(
        "Lumos, Tables 1a and 2a", "the same tasks", "Mind2Web", "step_success %",
        papers.LUMOS_TABLE_1A, papers.LUMOS_TABLE_2A,
    ),
    "webshop/test": lambda: _lumos("Lumos, Table 1d", "the same tasks", "WebShop", "score %", papers.LUMOS_TABLE_1D),
}  # fmt: skip

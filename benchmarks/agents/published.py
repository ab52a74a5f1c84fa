"""The papers' figures for a suite, in the columns of our table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import papers


@dataclass(frozen=True)
class Published:
    """One row of a paper's table: `paper` also says what differs from our setting; figures by our names."""

    paper: str
    method: str
    model: str
    figures: dict[str, float]


def published(suite: str) -> list[Published]:
    """The rows that papers print for a suite such as "alfworld/valid_seen"."""
    return [row for prefix, rows in _TABLES.items() if suite.startswith(prefix) for row in rows()]


def _knowagent(paper: str, column: str, measure: str) -> list[Published]:
    return [
        Published(paper, method, model, {measure: figures[column]})
        for (method, model), figures in papers.KNOWAGENT_TABLE_1.items()
        if column in figures
    ]


def _alfworld() -> list[Published]:
    return [
        *_knowagent("KnowAgent, Table 1 (the same 140 games)", "ALFWorld seen", "success %"),
        *_wese("WESE, Table 1 (134 unseen games)", papers.WESE_TABLE_1, "text-davinci-003", 134),
    ]


def _hotpotqa() -> list[Published]:
    paper = "KnowAgent, Tables 1 and 3 (300 other questions)"
    rows = _knowagent(paper, "HotpotQA", "f1 %")
    for row in rows:
        rates = papers.KNOWAGENT_TABLE_3.get((row.method, row.model), {})
        row.figures.update({f"{name} %": rate for name, rate in rates.items()})
    return rows + _wese("WESE, Table 3 (500 other questions)", papers.WESE_TABLE_3, "text-davinci-003", 500)


def _wese(paper: str, table: papers.Table, model: str, tasks: int) -> list[Published]:
    rows = []
    for key, figures in table.items():
        measure = {"success %": 100 * figures["success"]} if "success" in figures else {"score %": figures["reward"]}
        ours = {
            **measure,
            "steps of won": figures["steps"],
            "prompt tokens": figures["prompt tokens"] / tasks,
            "tokens": figures["completion tokens"] / tasks,
            "dollars": figures["dollars"] / tasks,
        }
        rows.append(Published(paper, " + ".join(key), model, ours))
    return rows


def _lumos(paper: str, column: str, measure: str, *tables: papers.Table) -> list[Published]:
    merged = {key: figures for table in tables for key, figures in table.items()}
    return [
        Published(paper, method, model, {measure: f[column]}) for (method, model), f in merged.items() if column in f
    ]


def _maths(column: str) -> list[Published]:
    tables = papers.LUMOS_TABLE_1B, papers.LUMOS_TABLE_2B
    return _lumos("Lumos, Tables 1b and 2b (the whole test set)", column, "success %", *tables)


def _questions(column: str, measure: str) -> list[Published]:
    tables = papers.LUMOS_TABLE_1C, papers.LUMOS_TABLE_2C
    return _lumos("Lumos, Tables 1c and 2c (other questions)", column, measure, *tables)


_TABLES: dict[str, Callable[[], list[Published]]] = {
    "alfworld/valid_seen": _alfworld,
    "alfworld-original/valid_seen": _alfworld,
    "hotpotqa": _hotpotqa,
    "fever": lambda: _wese("WESE, Table 4 (500 claims)", papers.WESE_TABLE_4, "text-davinci-003", 500),
    "scienceworld": lambda: _wese(
        "WESE, Table 2 (296 tasks; steps to the first reward)", papers.WESE_TABLE_2, "text-davinci-003", 296
    ),
    "strategyqa": lambda: _questions("StrategyQA", "accuracy %"),
    "gsm8k": lambda: _maths("GSM8K"),
    "svamp": lambda: _maths("SVAMP"),
    "mind2web/test_domain": lambda: _lumos(
        "Lumos, Tables 1a and 2a", "Mind2Web", "step_success %", papers.LUMOS_TABLE_1A, papers.LUMOS_TABLE_2A
    ),
    "webshop/test": lambda: _lumos("Lumos, Table 1d", "WebShop", "score %", papers.LUMOS_TABLE_1D),
}

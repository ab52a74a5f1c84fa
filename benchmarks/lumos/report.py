"""The table: our figures with and without masks, beside Lumos's Table 2b."""

from __future__ import annotations

from benchmarks.lumos.recipe import PAPER_MODEL, VARIANTS
from benchmarks.papers import LUMOS_TABLE_2B
from benchmarks.reporting import markdown

SUITES = {"svamp": "SVAMP", "gsm8k": "GSM8K"}
"""Our name of a data set, and the papers'."""


def table(rows: list[dict]) -> str:
    """Accuracy of each way of training as Markdown; rows have "variant", "suite", "masks" and the metrics."""
    found = {(row["variant"], row["suite"].partition("/")[0], row["masks"]): row for row in rows}
    head = ["training"]
    for suite in SUITES:
        tasks = next(row["tasks"] for key, row in found.items() if key[1] == suite)
        head += [f"{SUITES[suite]} ({tasks}), masks on", "masks off", "invalid, masks off", f"*{SUITES[suite]}, paper*"]
    lines = []
    for variant in VARIANTS:
        line = [variant.name]
        for suite, column in SUITES.items():
            on, off = (found[variant.name, suite, masks] for masks in (True, False))
            published = LUMOS_TABLE_2B[variant.paper, PAPER_MODEL][column]
            line += [_percent(on["success %"]), _percent(off["success %"]), _percent(off["invalid %"])]
            line.append(f"*{published:.1f} %*")
        lines.append(line)
    invalid = max(row["invalid %"] + row["misordered %"] for row in rows if row["masks"])
    return "\n".join(
        [
            markdown(head, lines, left=None),
            f"\nWith masks on, invalid or misordered actions are at most {invalid:.2f} % in any row.",
            "*In italics*: Lumos, Table 2b, Llama-2-7B tuned on the paper's annotations, whole test sets.",
        ]
    )


def _percent(value: float) -> str:
    return f"{value:.1f} %"

"""Compare the figures in README and docs with the records in `benchmarks/results`, or update them.

    constrained bench figures            says which tables and sentences differ from the records; exit code 1 then
    constrained bench figures --write    writes the tables anew

A table stands below a line ``<!-- figures: NAME -->`` in its page. A sentence with figures is written by hand, and must
be there as `SENTENCES` makes it from the records. Nothing is measured.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.figures import agents, engine, knowledge
from benchmarks.figures.records import TABLE
from benchmarks.result_files import DOCS
from constrained.files import write_whole

ROOT = DOCS.parent
MARK = re.compile(r"(?m)^<!-- figures: ([\w-]+) -->\n\n?")

TABLES: dict[str, Callable[[], str]] = agents.TABLES | engine.TABLES | knowledge.TABLES
"""The tables of the pages, by the name in their mark."""

SENTENCES = [*agents.SENTENCES.items(), *engine.SENTENCES.items(), *knowledge.SENTENCES.items()]
"""What a page must say, made from the records; line breaks and blanks don't count."""


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
        table = TABLE.match(page, mark.end())
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
                yield f"{page.name} names a table {mark[1]!r} that benchmarks/figures doesn't make"
            elif not text.startswith(f"{TABLES[mark[1]]()}\n", mark.end()):
                how = "(`constrained bench figures --write`)"
                yield f"{page.name}: the table {mark[1]} must be {how}\n{TABLES[mark[1]]()}"
    yield from (f"no page shows the table {name}" for name in TABLES.keys() - seen)
    for name, sentences in SENTENCES:
        text = " ".join((ROOT / name).read_text(encoding="utf-8").split())
        yield from (f"{name} must say: {one}" for one in sentences() if one not in text)

"""What the benchmarks' commands share: options, Markdown tables, results as JSON, a description of the machine."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.result_files import RECORDS, RESULTS
from constrained.cli.options import whole_number
from constrained.errors import ConstrainedError
from constrained.files import to_json, write_whole


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=Path, help="write the figures to this file")


def add_every(parser: argparse.ArgumentParser) -> None:
    """`--every` and `--json`, for benchmarks over ALFWorld's games."""
    parser.add_argument("--every", type=whole_number, default=1, help="use each N-th game only")
    add_json(parser)


def add_exact(parser: argparse.ArgumentParser, record: Path) -> None:
    """`--exact` and `--update`, for benchmarks with recorded figures that may only get better."""
    words = f"compare with {record.name}: exit code 1 if something got worse"
    parser.add_argument("--exact", action="store_true", help=words)
    parser.add_argument("--update", action="store_true", help="with --exact: record the figures")


def check_exact(options: argparse.Namespace) -> None:
    """Raise ConstrainedError if `--update` is given without `--exact`."""
    if options.update and not options.exact:
        raise ConstrainedError("--update records figures to compare with", "use --exact --update")


def report(table: str, result: object, options: argparse.Namespace) -> int:
    """Print the table and write the JSON; returns the exit code 0."""
    print(table)
    write_json(result, options)
    return 0


def write_json(result: object, options: argparse.Namespace) -> None:
    """Write the file of `--json`, if one is asked for; of a record, note where it is from."""
    if options.json:
        write_whole(options.json, to_json(result))
        note_record(options.json)


def note_record(path: Path) -> None:
    """Note when, where, from which commit and by which command a file of `benchmarks/results` was written.

    Its seeds and its sample are words, which stay as they were until somebody writes others.
    """
    if path.resolve().parent != RESULTS:
        return
    known = json.loads(RECORDS.read_text(encoding="utf-8")) if RECORDS.exists() else {}
    git = ["git", "-C", str(RESULTS), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        commit = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = "not recorded"
    machine = describe_machine()
    known[path.stem] = {
        # Of a path elsewhere on this machine only the name says something to others.
        "command": " ".join(["constrained", *(Path(a).name if Path(a).is_absolute() else a for a in sys.argv[1:])]),
        "date": datetime.date.today().isoformat(),
        "commit": commit,
        "machine": f"{machine['processor']}, {machine['cores']} cores",
        "seeds": known.get(path.stem, {}).get("seeds", "as the command says"),
        "sample": known.get(path.stem, {}).get("sample", "as the command says"),
    }
    write_whole(RECORDS, to_json(dict(sorted(known.items()))))


def markdown(head: Sequence[object], rows: Iterable[Sequence[object]], left: int | None = 1) -> str:
    """A Markdown table; the first `left` columns are left-aligned, the others right-aligned (None: all left)."""
    left = len(head) if left is None else left
    align = ["---"] * left + ["---:"] * (len(head) - left)
    lines = ["| " + " | ".join(map(str, head)) + " |", "|" + "|".join(align) + "|"]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def describe_machine() -> dict[str, str | int]:
    """Processor, cores, Python and system; nothing that identifies the machine."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    except OSError:
        pass
    return platform.processor() or "unknown"

"""`constrained check POLICY --conversations FILE`: recorded conversations under a policy."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from constrained.environments.data import read_json, read_values
from constrained.errors import DataError
from constrained.files import check_separate, to_json, write_whole
from constrained.guard.records import Findings, check_records, read_records
from constrained.knowledge.mcp_tools import named_tools
from constrained.knowledge.report import counted
from constrained.knowledge.tool_policy import read_policy
from constrained.waiting import waiting

_SHOWN = 20
"""Violations that the text names."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    words = "judge the tool calls of conversations (.jsonl or .json, also .gz or .xz) under the policy FILE; repeatable"
    add("--conversations", action="append", default=[], metavar="FILE", help=words)
    words = """with --conversations: a tool that changes something; its calls without a needed yes or lookup count as
        near misses; repeatable"""
    add("--changes", action="append", default=[], metavar="TOOL", help=words)
    add("--html", metavar="FILE", help="with --conversations: also write the report as an HTML page")


def run(arguments: argparse.Namespace) -> int:
    """Run the command. Exit code 1: a call that was carried out isn't admitted."""
    if len(arguments.action):
        raise DataError(f"--conversations takes one policy, not {arguments.action[0]!r} as well", "name one .lark file")
    check_separate(arguments.html, arguments.knowledge, *arguments.conversations)
    check_separate(arguments.output, arguments.knowledge, *arguments.conversations)
    policy = read_policy(arguments.knowledge)
    tools = named_tools(arguments.tools) if arguments.tools else None
    with waiting("judging conversations", not arguments.json):
        records = islice(read_records(_values(arguments.conversations)), arguments.limit)
        findings = check_records(records, policy, tools, changes=arguments.changes)
    if not findings.conversations:
        raise DataError("there are no conversations", "give a file with one conversation a line")
    violations = [one.to_dict() for one in findings.violations]
    data = {"policy": arguments.knowledge, **findings.to_dict(), "each violation": violations}
    if arguments.html:
        from constrained.pages.guard_page import guard_page

        write_whole(arguments.html, guard_page(findings, arguments.knowledge))
    if arguments.output:
        write_whole(arguments.output, to_json(data))
    print(to_json(data) if arguments.json else _text(findings))
    return 1 if any(not one.failed for one in findings.violations) else 0


def _values(names: list[str]) -> Iterator[tuple[str, Any]]:
    """The rows of files, each with its place."""
    for name in names:
        file = Path(name)
        if ".jsonl" in file.suffixes:
            rows: Iterator[Any] | list[Any] = (row for _, row in read_values(file))
        else:
            whole = read_json(file)
            one = not isinstance(whole, list) or all(isinstance(row, dict) and "role" in row for row in whole)
            rows = [whole] if one else whole  # one conversation, or tau2-bench's results
        before = f"{file.name}, " if len(names) > 1 else ""
        for number, row in enumerate(rows, 1):
            yield f"{before}row {number}", row


def _text(findings: Findings) -> str:
    data = findings.to_dict()
    near = ", ".join(f"{count:,} without a {kind}" for kind, count in data["near misses"].items())
    lines = [
        f"{counted(data['conversations'], 'conversation')}, {counted(data['calls'], 'call')}: "
        f"{counted(data['violations'], 'violation')}, {data['carried out']:,} of them carried out",
        f"near misses: {sum(data['near misses'].values()):,}{f' ({near})' if near else ''}",
        f"answered with an error: {data['errors']:,}, of these refused: {data['errors refused']:,}",
    ]
    if data["gold calls"]:
        lines.append(
            f"calls exactly as given: {data['gold calls']:,}, of these refused: {data['gold calls refused']:,}"
        )
    if findings.user_calls:
        refused = findings.user_unmet
        lines.append(f"calls by users: {findings.user_calls:,}, of these not admitted: {sum(refused.values()):,}")
        lines += [f"  {calls:>5,}  {why}" for why, calls in refused.most_common()]
    if data["outcomes"]:
        lines.append("flagged conversations:")
        for key, words in (("outcomes", "any violation"), ("outcomes by what was carried out", "carried out"),
                           ("outcomes by near misses", "near miss")):  # fmt: skip
            one = data[key]
            figures = (
                f"{one['failed flagged']} of {one['failed']} failed, {one['solved flagged']} of {one['solved']} solved"
            )
            share = (
                ""
                if one["precision"] is None
                else f"; precision {one['precision']:.2f}, recall {one['recall'] or 0:.2f}"
            )
            lines.append(f"  by {words}: {figures}{share}")
    if data["refused by"]:
        lines.append("refused by:")
        for row in data["refused by"]:
            where = f", line {row['line']}" if row["line"] else ""
            lines.append(f"  {row['calls']:>5,}  {row['why']} ({row['kind']}{where})")
    for one in findings.violations[:_SHOWN]:
        fate = "stopped by the tool" if one.failed else f"near miss: no {one.missing}" if one.missing else "violation"
        lines.append(f"{one.conversation}, message {one.message}: {fate}: {one.verdict.name}: {one.verdict.why}")
    if len(findings.violations) > _SHOWN:
        lines.append(f"and {len(findings.violations) - _SHOWN:,} more: --json has all of them")
    return "\n".join(lines)

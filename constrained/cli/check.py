"""`constrained check`: findings about .lark files, verdicts on a path of actions, or on published runs."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from textwrap import wrap
from typing import Any
from unicodedata import combining, east_asian_width

from constrained.automaton import Grammar
from constrained.automaton.vocabulary import open_vocabulary
from constrained.cli import conversations
from constrained.cli.bench import find_benchmarks
from constrained.cli.options import KNOWLEDGE, TOKENIZERS, add_bindings, add_start, bindings, read_text
from constrained.cli.parser import examples
from constrained.errors import ConstrainedError, DataError
from constrained.files import check_separate, to_json, write_whole
from constrained.grammar import shipped_names
from constrained.knowledge import ActionKnowledge, Knowledge
from constrained.knowledge.lint import CODES, ERROR, NOTE, WARNING, Checked, Finding, TokenCover, check_file
from constrained.knowledge.lint.pddl import check_pddl, is_pddl
from constrained.knowledge.mcp_tools import named_tools
from constrained.knowledge.report import counted
from constrained.knowledge.tools import Tool, read_tools
from constrained.knowledge.world.belief_state import BeliefState
from constrained.limits import DEFAULT
from constrained.waiting import waiting

_COLOURS = {ERROR: "1;31", WARNING: "1;33", NOTE: "1;36", "bold": "1", "faint": "2"}

_WIDTH = 110
"""Characters of a source line that are shown; of a longer line, those around the finding."""

_MOST = 100
"""Findings of one file that are shown."""

PLANBENCH = "planbench"
"""Given as a file: the plans that are recorded for PlanBench."""


def add_parser(commands) -> None:
    parser = commands.add_parser(
        "check",
        help="find mistakes in .lark, .pddl and schema files, or judge actions, runs or conversations",
        description="Report the mistakes in files: where each is, why it matters and how to fix it. With ACTIONs, "
        "judge each one (ok, invalid, misordered) and say why. Recorded runs, conversations and PlanBench's plans are "
        "judged, too. Exit code 1: there is an error, an action that isn't ok, or a call that was carried out against "
        "the policy.",
        epilog=examples(
            "constrained check mine.lark --strict",
            "constrained check hotpotqa 'Search[Milhouse]' 'Finish[Richard Nixon]'",
            "constrained check domain.pddl problem.pddl",
            "constrained check shop.lark --conversations talks.jsonl",
            "constrained check planbench gpt-4o_chat --limit 50",
        ),
    )
    add = parser.add_argument
    words = f"{KNOWLEDGE}; a JSON Schema (.json); PDDL (.pddl); or planbench, the plans that models wrote for it"
    add("knowledge", metavar="FILE", help=words)
    add("action", nargs="*", metavar="ACTION", help="actions in order; or more files; or models of planbench")
    add("--strict", action="store_true", help="treat warnings as errors")
    words = "leave out findings of this kind, such as endless-text; repeatable"
    add("--ignore", action="append", default=[], metavar="CODE", choices=sorted(CODES), help=words)
    add_start(parser)
    words = f"also report what this tokenizer can't write: {TOKENIZERS}"
    add("--tokenizer", metavar="NAME", help=words)
    words = "the tools that FILE is a policy of, as JSON or an MCP server's address: check arguments, too"
    add("--tools", metavar="FILE", help=words)
    add("--file", metavar="FILE", help="read actions from FILE, one a line (-: standard input)")
    add_bindings(parser)
    words = "judge the actions of KnowAgent's published runs, a .jsonl(.gz) file; repeatable"
    add("--runs", action="append", default=[], metavar="FILE", help=words)
    conversations.add_arguments(parser)
    add("--limit", type=int, metavar="N", help="judge only the first N runs, plans or conversations (default: all)")
    add("--json", action="store_true", help="print JSON")
    add("--output", metavar="FILE", help="also write the report as JSON to FILE")
    parser.set_defaults(run=run)


def run(arguments) -> int:
    if arguments.limit is not None and arguments.limit < 1:
        raise DataError(f"--limit is {arguments.limit}", "use 1 or more, or leave it out")
    if arguments.conversations:
        return conversations.run(arguments)
    if arguments.html or arguments.changes:
        raise DataError("--html and --changes are of recorded conversations", "give --conversations FILE, too")
    # The first argument and what follows decide the mode: PlanBench's plans, schemas, files to check, runs, or a path.
    names = [arguments.knowledge, *arguments.action]
    if arguments.knowledge == PLANBENCH:
        return _check_planbench(arguments)
    check_separate(arguments.output, *names, arguments.file, *arguments.runs)
    if all(name.endswith(".json") for name in names):
        return _check_schemas(arguments, names)
    if any(map(is_pddl, names)):
        return _check_pddl(arguments, names)
    only_files = len(names) == 1 or all(name.endswith(".lark") or name in shipped_names() for name in names)
    if only_files and not arguments.runs and arguments.file is None:
        return _check_files(arguments, names)
    knowledge = ActionKnowledge.from_lark(arguments.knowledge, arguments.start)
    if arguments.bind:
        knowledge = knowledge.bind(**bindings(arguments))
    if knowledge.own_world is not None:
        knowledge = knowledge.with_facts(BeliefState(knowledge.own_world).facts_now())
    if arguments.runs:
        return _check_runs(arguments, knowledge)
    return _check_path(arguments, knowledge, arguments.action)


def _check_files(arguments, names: list[str]) -> int:
    try:
        values = bindings(arguments)
        with waiting("reading the tokenizer", not arguments.json):
            tokens = TokenCover(open_vocabulary(arguments.tokenizer)) if arguments.tokenizer else None
        tools = read_tools(named_tools(arguments.tools), DEFAULT) if arguments.tools else None
    except ConstrainedError as error:  # the command is wrong, not a file
        print(f"error: {error}", file=sys.stderr)
        return 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of `re`, about syntax that may change
        with waiting("checking", not arguments.json):
            checked = [_check_file(arguments, name, values, tokens, tools) for name in names]
    return _give_findings(arguments, checked)


def _give_findings(arguments, checked: list[Checked]) -> int:
    """Print the findings of files; returns the exit code."""
    paint = Paint.for_stream()
    failed = [file for file in checked if file.count(ERROR) or arguments.strict and file.count(WARNING)]
    data = {"ok": not failed, **_counts(checked), "files": [_data(file) for file in checked]}
    _give(arguments, data, "\n\n".join(findings_text(file, paint) for file in checked))
    return 1 if failed else 0


def _check_pddl(arguments, names: list[str]) -> int:
    """Check PDDL files; with a domain, its problem and actions after them, judge the path."""
    files = [name for name in names if is_pddl(name)]
    actions = [name for name in names if not is_pddl(name)]
    if arguments.runs or any(name.endswith(".lark") for name in actions) or (actions and len(files) != 2):
        hint = "give PDDL files alone, or DOMAIN.pddl PROBLEM.pddl ACTION ... to judge a path"
        print(f"error: PDDL files are checked by themselves\n  hint: {hint}", file=sys.stderr)
        return 2
    from constrained.environments.pddl import read_pddl
    from constrained.knowledge.pddl import import_pddl

    if len(files) == 2 and (actions or arguments.file is not None):
        domain, problem = map(read_pddl, map(Path, files))
        knowledge = import_pddl(domain[0], source=domain[1]).knowledge().for_problem(*problem)
        return _check_path(arguments, knowledge, actions)
    try:
        with waiting("checking", not arguments.json):
            checked = check_pddl(files, lambda name: read_pddl(Path(name))[0])
    except ConstrainedError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for file in checked:
        file.findings = [finding for finding in file.findings if finding.code not in arguments.ignore]
    return _give_findings(arguments, checked)


def _check_path(arguments, knowledge: Knowledge, actions: list[str]) -> int:
    written = read_text(arguments.file, "a text file, one action a line") if arguments.file else ""
    report = knowledge.check([*actions, *filter(None, map(str.strip, written.splitlines()))])
    _give(arguments, report.to_dict(), str(report))
    return 0 if report.ok else 1


def _check_schemas(arguments, names: list[str]) -> int:
    """Report the keywords of JSON Schemas that have no effect, and the schemas that are refused."""
    files, lines = [], []
    for name in names:
        try:
            unknown, refused = list(Grammar.from_json_schema(Path(name)).unknown), None
        except ConstrainedError as error:
            unknown, refused = [], str(error)
        files.append({"file": name, "unknown": unknown, "error": refused})
        told = [f"  unknown keyword, an annotation without effect: {place}" for place in unknown]
        lines += [f"{name}: no findings"] if not told and refused is None else [f"{name}:", *told]
        lines += [f"  error: {refused}"] if refused else []
    failed = any(file["error"] or arguments.strict and file["unknown"] for file in files)
    _give(arguments, {"ok": not failed, "files": files}, "\n".join(lines))
    return 1 if failed else 0


def _check_file(
    arguments, name: str, values: dict[str, Any], tokens: TokenCover | None, tools: list[Tool] | None
) -> Checked:
    checked = check_file(
        name, start=arguments.start, values=values, tokens=tokens, tokenizer=arguments.tokenizer or "", tools=tools
    )
    checked.name = name
    checked.findings = [finding for finding in checked.findings if finding.code not in arguments.ignore]
    return checked


def _counts(checked: list[Checked]) -> dict[str, int]:
    return {f"{severity}s": sum(file.count(severity) for file in checked) for severity in (ERROR, WARNING, NOTE)}


def _data(checked: Checked) -> dict:
    knowledge = checked.knowledge
    return {
        "file": checked.name,
        **_counts([checked]),
        "findings": [f.to_dict(checked.name, checked.line(f.span)) for f in checked.findings],
        "actions": knowledge.actions if knowledge else {},
        "rules": knowledge.rules if knowledge else {},
        "may_end": sorted(knowledge.graph.may_end) if knowledge else [],
        "slots": sorted(knowledge.slots if knowledge else checked.grammar.slots if checked.grammar else ()),
    }


def _check_runs(arguments, knowledge: Knowledge) -> int:
    from constrained.training.judging import check_runs  # imports the environments

    runs = {Path(path).name: check_runs(knowledge, path, arguments.limit) for path in arguments.runs}
    lines = []
    for name, figures in runs.items():
        lines.append(name)
        lines += [f"  {key:<40} {value:>8,}" for key, value in figures.items() if isinstance(value, int)]
        lines += [
            f"    {disagreement['action']!r}: {disagreement['reason']}" for disagreement in figures["disagreements"][:5]
        ]
    _give(arguments, runs, "\n".join(lines))
    return 0


def _check_planbench(arguments) -> int:
    find_benchmarks()
    from benchmarks.planbench import verdicts

    rows = verdicts.judge_all(arguments.action, limit=arguments.limit)
    data = verdicts.to_dict(rows)
    _give(arguments, data, f"{verdicts.lines(rows)}\n\n{verdicts.table(rows)}".strip())
    return 0 if data["ok"] else 1


def _give(arguments, data, text: str) -> None:
    if arguments.output:
        write_whole(arguments.output, to_json(data))
    print(to_json(data) if arguments.json else text)


class Paint:
    """Colour text for a terminal, or leave it as it is."""

    def __init__(self, colours: bool):
        self._colours = colours

    @classmethod
    def for_stream(cls, stream=None) -> Paint:
        """Use colours if the stream is a terminal, unless NO_COLOR is set (https://no-color.org)."""
        stream = stream or sys.stdout
        return cls(stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb")

    def __call__(self, text: str, kind: str) -> str:
        return f"\x1b[{_COLOURS[kind]}m{text}\x1b[0m" if self._colours else text


def finding_text(finding: Finding, checked: Checked, paint: Paint) -> str:
    """The text of one finding: its message, the source line with carets, why it matters, and the fix."""
    lines = [f"{paint(f'{finding.severity}[{finding.code}]', finding.severity)}: {paint(finding.message, 'bold')}"]
    span = finding.span
    number = str(span.line) if span else " "
    margin = " " * len(number)
    where = f"{checked.name}:{span.line}:{span.column}" if span else checked.name
    lines.append(f"{margin} {paint('-->', 'faint')} {where}")
    if span:
        shown, start = _window(checked.line(span), span.column - 1)
        length = max(1, min((span.end or span.column + 1) - span.column, len(shown) - start))
        before, under = _width(shown[:start].ljust(start)), max(1, _width(shown[start : start + length]))
        lines.append(f"{paint(number + ' |', 'faint')} {shown}")
        lines.append(f"{paint(margin + ' |', 'faint')} {' ' * before}{paint('^' * under, finding.severity)}")
    for label, words in (("why:", finding.why), ("fix:", finding.fix)):
        first, *more = wrap(words, _WIDTH - 8, break_long_words=False, break_on_hyphens=False) or [""]
        lines.append(f"{margin} {paint(label, 'faint')} {first}")
        lines += [f"{margin}      {line}" for line in more]
    return "\n".join(lines)


def _window(line: str, start: int) -> tuple[str, int]:
    """At most `_WIDTH` characters of a line around index `start`, and the index in them."""
    line = "".join(c if c.isprintable() else " " for c in line)
    if len(line) <= _WIDTH:
        return line, start
    first = max(0, min(start - _WIDTH // 2, len(line) - _WIDTH))
    cut = line[first : first + _WIDTH]
    return ("..." + cut[3:] if first else cut), start - first


def _width(text: str) -> int:
    """How many columns of a terminal `text` takes."""
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def findings_text(checked: Checked, paint: Paint) -> str:
    """The findings of a file, at most `_MOST`, and a summary of what is in it."""
    parts = [finding_text(finding, checked, paint) for finding in checked.findings[:_MOST]]
    left = len(checked.findings) - _MOST
    if left > 0:
        parts.append(f"and {left:,} more: --json has all of them")
    return "\n\n".join([*parts, "\n  ".join(_summary(checked))])


def _summary(checked: Checked) -> list[str]:
    def listed(names: Iterable[str], what: str) -> list[str]:
        names = list(names)
        return [f"{counted(len(names), what)}: {', '.join(names)}"] if names else []

    lines = [f"{checked.name}: {checked.counts}"]
    if checked.grammar is None:
        return lines + checked.told
    if checked.knowledge is None:
        lines.append("a grammar of texts, without actions (nothing is named _STEP)")
        return lines + listed(sorted(checked.grammar.slots), "slot")
    graph = checked.knowledge.graph
    ends = [name for name in graph.actions if name in graph.may_end]
    after = "any of them" if len(ends) == len(graph.actions) else ", ".join(ends)
    lines += listed(graph.actions, "action")
    lines.append(f"the plan may end after {after}" if ends else "the plan may end only before any action")
    bound_later = " (bound at run time)" if checked.grammar.unbound() else ""
    lines += [line + bound_later for line in listed(sorted(checked.knowledge.slots), "slot")]
    return lines + listed(sorted({name for pair in graph.choice_points() or () for name in pair}), "place")

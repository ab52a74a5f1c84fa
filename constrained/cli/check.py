"""`constrained check`: is this knowledge sound, is this path, are these runs?"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from constrained.cli.output import to_json, write_whole
from constrained.errors import DataError, KnowledgeError
from constrained.knowledge import ActionKnowledge


def add_parser(commands) -> None:
    parser = commands.add_parser(
        "check",
        help="check a knowledge file, a path of actions, or published runs",
        description="Without actions: read the knowledge and say what is in it. With actions: judge each one "
        "(ok, invalid, misordered) and say why; exit code 1 if any is not ok. With --runs: judge every "
        "action of KnowAgent's published ALFWorld or HotpotQA runs.",
        epilog="example: constrained check hotpotqa 'Search[Milhouse]' 'Finish[Richard Nixon]'",
    )
    parser.add_argument("knowledge", help="shipped name or path of a .lark file")
    parser.add_argument("action", nargs="*", help="the actions of a path, in order")
    parser.add_argument("--file", metavar="FILE", help="take the actions from FILE, one a line ('-': standard input)")
    parser.add_argument("--bind", action="append", default=[], metavar="SLOT=JSON",
                        help="bind a slot, e.g. RECEPTACLE='[\"desk 1\"]' (a JSON list, or an object of lists)")
    parser.add_argument("--runs", action="append", default=[], metavar="FILE", help="a .jsonl(.gz) file of runs")
    parser.add_argument("--limit", type=int, default=None, help="only the first so many runs")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--output", metavar="FILE", help="also write the report as JSON to FILE")
    parser.set_defaults(run=run)


def run(arguments) -> int:
    knowledge = ActionKnowledge.from_lark(arguments.knowledge)
    if arguments.bind:
        knowledge = knowledge.bind(**dict(map(_binding, arguments.bind)))
    if arguments.limit is not None and arguments.limit < 1:
        raise DataError(f"--limit is {arguments.limit}", "use 1 or more, or leave it out")
    if arguments.runs:
        return _runs(arguments, knowledge)
    actions = list(arguments.action) + (_lines(arguments.file) if arguments.file else [])
    if not actions:
        return _describe(arguments, knowledge)
    report = knowledge.check(actions)
    _give(arguments, report.to_dict(), str(report))
    return 0 if report.ok else 1


def _runs(arguments, knowledge: ActionKnowledge) -> int:
    from benchmarks.trajectories import check_runs  # the environments: only for runs

    out = {}
    for path in arguments.runs:
        out[Path(path).name] = check_runs(knowledge, path, arguments.limit)
    lines = []
    for name, figures in out.items():
        lines.append(name)
        lines += [f"  {k:<40} {v:>8,}" for k, v in figures.items() if isinstance(v, int)]
        lines += [f"    {d['action']!r}: {d['reason']}" for d in figures["disagreements"][:5]]
    _give(arguments, out, "\n".join(lines))
    return 0


def _describe(arguments, knowledge: ActionKnowledge) -> int:
    slots = sorted(knowledge.slots)
    data = {"name": knowledge.name, "actions": knowledge.actions, "rules": knowledge.rules, "slots": slots}
    lines = [f"{knowledge.name}: {len(knowledge.actions)} actions, {len(slots)} slots", "", knowledge.to_text()]
    if slots:
        lines += ["", "Slots, bound at run time: " + ", ".join(slots)]
    _give(arguments, data, "\n".join(lines))
    return 0


def _give(arguments, data, text: str) -> None:
    if arguments.output:
        write_whole(arguments.output, to_json(data))
    print(to_json(data) if arguments.json else text)


def _binding(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    try:
        parsed = json.loads(value) if equals else None
    except json.JSONDecodeError:
        parsed = None
    if not isinstance(parsed, (list, dict, str)):
        raise KnowledgeError(f"--bind {text!r} is not SLOT=JSON", "for example --bind 'RECEPTACLE=[\"desk 1\"]'")
    return name, parsed


def _lines(name: str) -> list[str]:
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"can't read {name}: {error}", "give a text file, one action a line") from None
    return [line.strip() for line in text.splitlines() if line.strip()]

"""`constrained check`: is this file sound, is this path, are these runs?"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from constrained.automaton.vocabulary import open_vocabulary
from constrained.cli.bindings import binding
from constrained.cli.findings import Paint, findings_text
from constrained.errors import ConstrainedError, DataError
from constrained.files import to_json, write_whole
from constrained.grammar import shipped_names
from constrained.knowledge import ActionKnowledge
from constrained.knowledge.lint import CODES, ERROR, NOTE, WARNING, Checked, Tokens, check_file


def add_parser(commands) -> None:
    parser = commands.add_parser(
        "check",
        help="check knowledge files, a path of actions, or published runs",
        description="With files alone: say what may be wrong in them, where, why it matters and what to write "
        "instead; exit code 1 if there is an error (with --strict: or a warning), 2 if the command itself is wrong. "
        "With actions: judge each one "
        "(ok, invalid, misordered) and say why; exit code 1 if any is not ok. With --runs: judge every "
        "action of KnowAgent's published ALFWorld or HotpotQA runs.",
        epilog="examples: constrained check mine.lark --strict; "
        "constrained check hotpotqa 'Search[Milhouse]' 'Finish[Richard Nixon]'",
    )
    parser.add_argument("knowledge", metavar="FILE", help="shipped name or path of a .lark file")
    parser.add_argument("action", nargs="*", help="more .lark files, or the actions of a path, in order")
    parser.add_argument("--strict", action="store_true", help="warnings count as errors")
    parser.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="CODE",
        choices=sorted(CODES),
        help="leave findings of this code out, e.g. endless-text",
    )
    parser.add_argument("--start", default="start", metavar="RULE", help="the rule that texts begin with")
    parser.add_argument(
        "--tokenizer",
        metavar="NAME",
        help="also tell what this tokenizer can't write: a "
        "tokenizer.json, the folder it is in, 'embedded', or a name of the Hugging Face Hub",
    )
    parser.add_argument("--file", metavar="FILE", help="take the actions from FILE, one a line ('-': standard input)")
    parser.add_argument(
        "--bind",
        action="append",
        default=[],
        metavar="SLOT=JSON",
        help="bind a slot, e.g. RECEPTACLE='[\"desk 1\"]' (a JSON list, or an object of lists)",
    )
    parser.add_argument("--runs", action="append", default=[], metavar="FILE", help="a .jsonl(.gz) file of runs")
    parser.add_argument("--limit", type=int, default=None, help="only the first so many runs")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--output", metavar="FILE", help="also write the report as JSON to FILE")
    parser.set_defaults(run=run)


def run(arguments) -> int:
    if arguments.limit is not None and arguments.limit < 1:
        raise DataError(f"--limit is {arguments.limit}", "use 1 or more, or leave it out")
    names = [arguments.knowledge, *arguments.action]
    only_files = len(names) == 1 or all(name.endswith(".lark") or name in shipped_names() for name in names)
    if only_files and not arguments.runs and arguments.file is None:
        return _findings(arguments, names)
    knowledge = ActionKnowledge.from_lark(arguments.knowledge, arguments.start)
    if arguments.bind:
        knowledge = knowledge.bind(**dict(map(binding, arguments.bind)))
    if arguments.runs:
        return _runs(arguments, knowledge)
    report = knowledge.check(list(arguments.action) + (_lines(arguments.file) if arguments.file else []))
    _give(arguments, report.to_dict(), str(report))
    return 0 if report.ok else 1


def _findings(arguments, names: list[str]) -> int:
    try:
        values = dict(map(binding, arguments.bind))
        tokens = Tokens(open_vocabulary(arguments.tokenizer)) if arguments.tokenizer else None
    except ConstrainedError as error:  # the command is wrong, not a file
        print(f"error: {error}", file=sys.stderr)
        return 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # what `re` will read otherwise some day
        checked = [_checked(arguments, name, values, tokens) for name in names]
    paint = Paint.for_stream()
    failed = [one for one in checked if one.count(ERROR) or arguments.strict and one.count(WARNING)]
    data = {"ok": not failed, **_counts(checked), "files": [_data(one) for one in checked]}
    _give(arguments, data, "\n\n".join(findings_text(one, paint) for one in checked))
    return 1 if failed else 0


def _checked(arguments, name: str, values: dict, tokens: Tokens | None) -> Checked:
    one = check_file(name, start=arguments.start, values=values, tokens=tokens, tokenizer=arguments.tokenizer or "")
    one.name = name
    one.findings = [f for f in one.findings if f.code not in arguments.ignore]
    return one


def _counts(checked: list[Checked]) -> dict[str, int]:
    return {f"{severity}s": sum(one.count(severity) for one in checked) for severity in (ERROR, WARNING, NOTE)}


def _data(checked: Checked) -> dict:
    knowledge = checked.knowledge
    return {
        "file": checked.name,
        **_counts([checked]),
        "findings": [f.to_dict(checked.name, checked.line(f.place)) for f in checked.findings],
        "actions": knowledge.actions if knowledge else {},
        "rules": knowledge.rules if knowledge else {},
        "may_end": sorted(knowledge.graph.may_end) if knowledge else [],
        "slots": sorted(knowledge.slots if knowledge else checked.grammar.slots if checked.grammar else ()),
    }


def _runs(arguments, knowledge: ActionKnowledge) -> int:
    from constrained.training.judging import check_runs  # the environments: only for runs

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


def _give(arguments, data, text: str) -> None:
    if arguments.output:
        write_whole(arguments.output, to_json(data))
    print(to_json(data) if arguments.json else text)


def _lines(name: str) -> list[str]:
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"can't read {name}: {error}", "give a text file, one action a line") from None
    return [line.strip() for line in text.splitlines() if line.strip()]

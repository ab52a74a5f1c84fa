"""`constrained import`: action knowledge and training conversations from what is written elsewhere."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from constrained.errors import DataError, PddlError
from constrained.files import check_new, to_json, write_whole


def add_parser(commands) -> None:
    parser = commands.add_parser(
        "import",
        help="turn a planning domain into action knowledge, or published solutions into training conversations",
        description="Read what a domain's actions are from another notation and write a .lark file to refine; or read "
        "a data set's solutions and write the conversations that train Lumos's planner and grounder.",
    )
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    _add_pddl(kinds)
    _add_conversations(kinds)


def add_output(parser) -> None:
    """The options of every command that leaves a `.lark` file."""
    parser.add_argument("-o", "--output", metavar="FILE", help="write the .lark text to FILE, not to standard output")
    parser.add_argument("--force", action="store_true", help="write FILE even if it is there already")
    parser.add_argument("--json", action="store_true", help="print JSON: the text, its actions, slots and notes")


def _add_pddl(kinds) -> None:
    parser = kinds.add_parser(
        "pddl",
        help="a PDDL domain: actions, preconditions, effects",
        description="Turn a PDDL domain's actions into action knowledge. What the file forbids is impossible by the "
        "domain; what the order of actions can't tell, its slots do, and each says what it is to be bound to.",
        epilog="example: constrained import pddl alfred.pddl --texts alfred.twl2 -o alfred.lark",
    )
    parser.add_argument("domain", metavar="DOMAIN.pddl")
    parser.add_argument(
        "--problem",
        metavar="FILE",
        help="a problem of the domain: its initial state tells what is "
        "true of one thing at a time, so that nothing has to be taken for granted",
    )
    parser.add_argument(
        "--texts",
        metavar="FILE",
        help="how actions are written: lines NAME = TEXT with {parameters}, "
        "or TextWorld's .twl2 (default: the action's name and its parameters)",
    )
    parser.add_argument(
        "--text",
        action="append",
        default=[],
        metavar="NAME=TEXT",
        help="how one action is written, e.g. GotoLocation='go to {r}'",
    )
    parser.add_argument(
        "--one",
        action="append",
        default=[],
        metavar="NAME",
        help="a type with one object, or a predicate true of one thing at a time, e.g. at-robot",
    )
    parser.add_argument(
        "--several",
        action="append",
        default=[],
        metavar="NAME",
        help="a type or predicate of which that must not be taken for granted",
    )
    add_output(parser)
    parser.set_defaults(run=run_pddl)


def run_pddl(arguments) -> int:
    from constrained.knowledge.pddl import import_pddl
    from constrained.knowledge.pddl.wording import read_texts

    texts = read_texts(_read(arguments.texts), Path(arguments.texts).name) if arguments.texts else {}
    imported = import_pddl(
        _read(arguments.domain),
        problem=_read(arguments.problem) if arguments.problem else None,
        texts={**texts, **dict(map(_named_text, arguments.text))},
        one=arguments.one,
        several=arguments.several,
        source=Path(arguments.domain).name,
    )
    notes = [f"taken for granted: {line}" for line in imported.assumed]
    notes += [f"could be followed, too, if it is true of one thing at a time: --one {name}" for name in imported.offers]
    give_knowledge(arguments, imported.text, imported.knowledge(), notes)
    return 0


_SOLUTIONS = {
    "gsm8k": "grade-school mathematics with calculator marks, as .jsonl",
    "svamp": "word problems with equations, as .json",
    "strategyqa": "questions with their decompositions, as .json",
}


def _add_conversations(kinds) -> None:
    for name, words in _SOLUTIONS.items():
        parser = kinds.add_parser(
            name,
            help=words,
            description="Turn solutions into conversations of Lumos's planner and grounder, by rule and without a "
            "model, one JSON object a line. Those whose actions, executed, don't come to the answer are left out.",
            epilog=f"example: constrained import {name} FILE -o {name}.jsonl",
        )
        parser.add_argument("file", metavar="FILE", help=f"{words}; may be packed (.gz)")
        parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the conversations, as JSON Lines")
        parser.add_argument("--limit", type=int, metavar="N", help="only the first N rows")
        parser.add_argument("--force", action="store_true", help="write the output even if it is there already")
        parser.set_defaults(run=run_conversations)


def run_conversations(arguments) -> int:
    from constrained.training.annotations.convert import converted, training_conversations

    check_new(arguments.output, arguments.force)
    lines: list[str] = []
    left_out: Counter[str] = Counter()
    kept = 0
    for row in converted(arguments.kind, arguments.file, arguments.limit):
        made = list(training_conversations(row))
        lines += [json.dumps(conversation, ensure_ascii=False) for conversation in made]
        kept += bool(made)
        left_out.update([row.failure] if row.failure else [])
    write_whole(arguments.output, "".join(f"{line}\n" for line in lines))
    print(f"wrote {arguments.output}: {len(lines)} conversations of {kept} rows")
    for reason, count in left_out.most_common():
        print(f"note: {count} left out: {reason}", file=sys.stderr)
    return 0


def give_knowledge(arguments, text: str, knowledge, notes: list[str]) -> None:
    """Write or print a `.lark` text that was made here, and on standard error what to know of it."""
    if arguments.output:
        check_new(arguments.output, arguments.force)
        write_whole(arguments.output, text)
    if arguments.json:
        slots = sorted(knowledge.slots)
        print(to_json({"actions": knowledge.rules, "slots": slots, "notes": notes, "lark": text}), end="")
    elif not arguments.output:
        print(text, end="")
    else:
        count = f"{len(knowledge.actions)} actions, {len(knowledge.slots)} slots"
        print(f"wrote {arguments.output}: {count}")
    for note in notes:
        print(f"note: {note}", file=sys.stderr)


def _named_text(given: str) -> tuple[str, str]:
    name, equals, text = given.partition("=")
    if not equals:
        raise PddlError(f"--text {given!r} is not NAME=TEXT", "for example --text GotoLocation='go to {r}'")
    return name.strip(), text


def _read(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"can't read {name}: {error}", "give the path of a text file") from None

"""`constrained new`, `import` and `distill`: write a .lark file; `import` also converts published solutions."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from constrained.cli.options import add_model, add_sampling, read_text, whole_number
from constrained.cli.parser import examples
from constrained.errors import ConstrainedError, DataError, PddlError
from constrained.files import check_new, check_separate, to_json, write_whole
from constrained.grammar import read_source, shipped_names
from constrained.knowledge import ActionKnowledge, Knowledge
from constrained.knowledge.policy_draft import Sentence
from constrained.models.source import check_source
from constrained.waiting import waiting

TEMPLATE = "template"

SOLUTIONS = {
    "gsm8k": "GSM8K's grade-school mathematics with calculator marks (.jsonl)",
    "svamp": "SVAMP's word problems with equations (.json)",
    "strategyqa": "StrategyQA's questions with their decompositions (.json)",
}


ENDINGS = {".pddl": "pddl", ".dot": "dot", ".gv": "dot"}
"""The ending of a file that `import` reads -> the kind that it is of."""


def with_kind(words: Sequence[str]) -> list[str]:
    """A command's words; the KIND of `import FILE` is inserted according to the file's suffix."""
    kind = ENDINGS.get(Path(words[1]).suffix.lower()) if len(words) > 1 and words[0] == "import" else None
    return [words[0], kind, *words[1:]] if kind else [*words]


def add_new(commands) -> None:
    parser = commands.add_parser(
        "new",
        help="write a commented .lark file to start from",
        description="Write NAME.lark, a small complete example of action knowledge with comments that explain it. An "
        "existing file is never overwritten.",
        epilog=examples(
            "constrained new kitchen", "constrained new --world den", "constrained new quiz --from hotpotqa"
        ),
    )
    add = parser.add_argument
    add("name", metavar="NAME", help="the file, with or without .lark")
    words = "copy a file that ships, such as hotpotqa; `constrained show` lists them (default: template)"
    add("--from", dest="source", default=TEMPLATE, metavar="SHIPPED", help=words)
    words = "copy a world: objects, what actions need and change, what answers tell, and a goal (docs/worlds.md)"
    add("--world", dest="source", action="store_const", const="world", help=words)
    parser.set_defaults(run=run_new)


def run_new(arguments) -> int:
    path = Path(arguments.name)
    path = path if path.suffix == ".lark" or not path.stem else path.with_name(path.name + ".lark")
    if not path.stem or path.is_dir():
        raise DataError(f"{arguments.name!r} is not a file name", "for example: constrained new kitchen")
    if arguments.source not in shipped_names():
        raise ConstrainedError(f"no grammar {arguments.source!r} ships", f"one of: {', '.join(shipped_names())}")
    text = read_source(arguments.source).text
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise DataError(f"{path} already exists", "choose another name: a file is never overwritten") from None
    then = f"plan --knowledge {path}" if arguments.source == "world" else f"show {path}"
    print(f"wrote {path}\nnext: constrained check {path}, constrained {then}")
    return 0


def add_import(commands) -> None:
    parser = commands.add_parser(
        "import",
        help="turn a PDDL domain or a workflow into a .lark file, or published solutions into conversations",
        description="Turn a PDDL planning domain, or a workflow drawn as a .dot graph, into a .lark file to refine; or "
        "turn a data set's solutions into conversations that train Lumos's planner and grounder. KIND may be left out "
        f"where the file's ending tells it: {', '.join(ENDINGS)}.",
        epilog=examples(
            "constrained import domain.pddl -o domain.lark", "constrained import gsm8k train.jsonl -o chats.jsonl"
        ),
    )
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    _add_pddl(kinds)
    _add_dot(kinds)
    for name, words in SOLUTIONS.items():
        _add_solutions(kinds, name, words)


def _add_knowledge_output(parser) -> None:
    add = parser.add_argument
    add("-o", "--output", metavar="FILE", help="write the .lark text to FILE (default: print it)")
    _add_force(parser)
    add("--json", action="store_true", help="print JSON: the text, its actions, slots and notes")


def _add_force(parser) -> None:
    parser.add_argument("--force", action="store_true", help="overwrite what --output names")


def _write_knowledge(arguments, text: str, knowledge: Knowledge, notes: list[str]) -> None:
    """Write or print a generated .lark text, and the notes on standard error."""
    if arguments.output:
        check_new(arguments.output, arguments.force)
        write_whole(arguments.output, text)
    if arguments.json:
        slots = sorted(knowledge.slots)
        print(to_json({"actions": knowledge.rules, "slots": slots, "notes": notes, "lark": text}), end="")
    elif arguments.output:
        print(f"wrote {arguments.output}: {len(knowledge.actions)} actions, {len(knowledge.slots)} slots")
    else:
        print(text, end="")
    for note in notes:
        print(f"note: {note}", file=sys.stderr)


def _add_pddl(kinds) -> None:
    parser = kinds.add_parser(
        "pddl",
        help="a PDDL domain: actions, preconditions, effects",
        description="Turn a PDDL domain into action knowledge: a rule for each action, with //: lines that say what it "
        "needs and changes. `constrained plan --pddl` does this by itself; import a domain to change how actions are "
        "written or to restrict their order.",
        epilog=examples("constrained import pddl domain.pddl --text move='go to {to}' -o domain.lark"),
    )
    add = parser.add_argument
    add("domain", metavar="DOMAIN.pddl", help="the domain's file")
    words = """a file that says how actions are written: lines NAME = TEXT with {parameters}, or TextWorld's .twl2
        (default: the action's name and its parameters)"""
    add("--texts", metavar="FILE", help=words)
    words = "how one action is written, such as move='go to {to}'; repeatable"
    add("--text", action="append", default=[], metavar="NAME=TEXT", help=words)
    _add_knowledge_output(parser)
    parser.set_defaults(run=run_pddl)


def run_pddl(arguments) -> int:
    from constrained.knowledge.pddl import import_pddl
    from constrained.planning.wording import read_texts

    check_separate(arguments.output, arguments.domain, arguments.texts)
    what = "the path of a text file"
    texts = read_texts(read_text(arguments.texts, what), Path(arguments.texts).name) if arguments.texts else {}
    imported = import_pddl(
        read_text(arguments.domain, what),
        texts={**texts, **dict(map(_named_text, arguments.text))},
        source=Path(arguments.domain).name,
    )
    _write_knowledge(arguments, imported.text, imported.knowledge(), [])
    return 0


def _add_dot(kinds) -> None:
    parser = kinds.add_parser(
        "dot",
        help="a workflow as a graph in Graphviz's DOT: nodes, and what may follow which",
        description="Turn a workflow, drawn as a directed graph, into a draft of action knowledge. Each node becomes "
        "an action, written as its label; a diamond is a choice and no action. An edge says what may follow, and its "
        "label becomes a comment.",
        epilog=examples("constrained import dot workflow.dot -o workflow.lark"),
    )
    parser.add_argument("graph", metavar="GRAPH.dot", help="the graph's file")
    _add_knowledge_output(parser)
    parser.set_defaults(run=run_dot)


def run_dot(arguments) -> int:
    from constrained.knowledge.workflow import import_dot

    check_separate(arguments.output, arguments.graph)
    text = read_text(arguments.graph, "the path of a text file")
    imported = import_dot(text, source=Path(arguments.graph).name)
    _write_knowledge(arguments, imported.text, imported.knowledge(), imported.notes)
    return 0


def add_export(commands) -> None:
    parser = commands.add_parser(
        "export",
        help="write a world as PDDL, for planners and validators",
        description="Write the world of a .lark file, its //: lines, as PDDL.",
        epilog=examples("constrained export pddl den.lark -o den"),
    )
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    pddl = kinds.add_parser(
        "pddl",
        help="a domain and a problem",
        description="Write the world of a .lark file as a PDDL domain and problem, for planners and validators.",
        epilog=examples(
            "constrained export pddl den.lark -o den", "constrained export pddl hotel.lark 'book r303 for bob'"
        ),
    )
    add = pddl.add_argument
    add("file", metavar="FILE.lark", help="a world with objects and facts (`constrained new --world` writes one)")
    words = "a sentence of the file's `goal` lines, to become the problem's goal (default: the file's own goal)"
    add("task", nargs="?", default="", metavar="TASK", help=words)
    add("-o", "--output", metavar="FOLDER", help="write domain.pddl and problem.pddl there (default: print both)")
    _add_force(pddl)
    pddl.set_defaults(run=run_export)


def run_export(arguments) -> int:
    from constrained.knowledge.world.sentence import asked_problem, goal_sentences
    from constrained.planning.task import PlanningTask
    from constrained.planning.writer import PddlText

    world = ActionKnowledge.from_lark(arguments.file).world
    if world is None or world.problem is None:
        raise ConstrainedError(
            f"{arguments.file} has no problem of its own", "add `//: object`, `init` and `goal` lines to it"
        )
    problem, goals = world.problem, ", ".join(goal_sentences(world))
    if arguments.task:
        asked = asked_problem(world, arguments.task)
        if asked is None:
            hint = f"its goals are {goals}" if goals else "leave it out, or add a `//: goal` line with a sentence"
            raise ConstrainedError(f"{arguments.task[:80]!r} is no goal of {arguments.file}", hint)
        problem = asked.problem
    if problem.condition is None:
        hint = f"after the file, give a task: {goals}" if goals else "add a `//: goal` line to it"
        raise ConstrainedError(f"{arguments.file} has no goal of its own", hint)
    written = PddlText(PlanningTask(world.domain, problem))
    if arguments.output is None:
        print(f"{written.domain}\n{written.problem}", end="")
        return 0
    folder = Path(arguments.output)
    files = {folder / "domain.pddl": written.domain, folder / "problem.pddl": written.problem}
    for path in files:
        check_new(path, arguments.force)
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        write_whole(path, text)
        print(f"wrote {path}")
    return 0


def _named_text(given: str) -> tuple[str, str]:
    name, equals, text = given.partition("=")
    if not equals:
        raise PddlError(f"--text {given!r} is not NAME=TEXT", "for example --text GotoLocation='go to {r}'")
    return name.strip(), text


def _add_solutions(kinds, name: str, words: str) -> None:
    parser = kinds.add_parser(
        name,
        help=words,
        description="Turn solutions into conversations of Lumos's planner and grounder, by rule and without a model. "
        "Each solution's actions are executed; those that don't give the answer are left out.",
        epilog=examples(f"constrained import {name} FILE -o {name}.jsonl"),
    )
    parser.add_argument("file", metavar="FILE", help=f"{words}, or compressed (.gz)")
    words = "write the conversations there, as JSON Lines"
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help=words)
    parser.add_argument("--limit", type=whole_number, metavar="N", help="read only the first N rows (default: all)")
    _add_force(parser)
    parser.set_defaults(run=run_solutions)


def run_solutions(arguments) -> int:
    from constrained.training.annotations.convert import converted, training_conversations

    check_new(arguments.output, arguments.force)
    check_separate(arguments.output, arguments.file)
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


def add_distill(commands) -> None:
    parser = commands.add_parser(
        "distill",
        help="let a model draft action knowledge for a kind of task",
        description="Let a model draft action knowledge for a kind of task: the actions, what each does, and which may "
        "follow which; or the //: lines of a written policy. It writes under masks, so the draft always loads. The "
        "embedded model can only show the form: name an instruction-tuned model.",
        epilog=examples(
            "constrained distill 'plan a journey by train' --model smollm2 -o train.lark",
            "constrained distill --policy shop.md --tools shop.json --model smollm2 -o shop.lark",
        ),
    )
    parser.add_argument("task", nargs="?", metavar="TASK", help="the kind of task, in a few sentences")
    words = "in place of TASK: a written policy; each of its sentences becomes a //: line. Needs --tools"
    parser.add_argument("--policy", metavar="FILE.md", help=words)
    parser.add_argument("--tools", metavar="FILE.json", help="with --policy: the tools that it is about")
    words = "with --policy: keep the line of each sentence in this file, so that an interrupted draft goes on"
    parser.add_argument("--answers", metavar="FILE.json", help=words)
    add_model(parser)
    parser.add_argument("--actions", type=int, help="how many actions, 1 to 10 (default: the model decides)")
    words = "take the actions from this .lark file, or one that ships, and draft only their order"
    parser.add_argument("--actions-of", metavar="FILE", help=words)
    add_sampling(parser)
    _add_knowledge_output(parser)
    parser.set_defaults(run=run_distill)


def run_distill_policy(arguments) -> int:
    if arguments.task or arguments.actions or arguments.actions_of or arguments.temperature or not arguments.tools:
        raise ConstrainedError(
            "--policy takes --tools, and no task or actions", "constrained distill --policy shop.md --tools shop.json"
        )
    check_separate(arguments.output, arguments.policy, arguments.tools, arguments.answers)
    text = read_text(arguments.policy, "the path of a text file")
    answers = _read_answers(arguments.answers)
    with waiting("loading the model", not arguments.json) as say:
        from constrained.agents.distill import distill_policy  # imports torch

        def on_line(sentence: Sentence, line: str, found: dict[str, str]) -> None:
            say("writing the next line")
            if arguments.answers:
                write_whole(arguments.answers, to_json(found))
            if not arguments.json:
                print(f"  {sentence.line}: {line}", file=sys.stderr, flush=True)

        draft = distill_policy(
            text,
            Path(arguments.tools),
            source=Path(arguments.policy).name,
            model=arguments.model,
            answers=answers,
            device=arguments.device,
            on_line=on_line,
        )
    notes = [f"not drafted, line {one.line}: {one.text[:80]}: {why}" for one, why in draft.left_out]
    knowledge = ActionKnowledge.from_tools(Path(arguments.tools), policy=draft.text)
    _write_knowledge(arguments, draft.text, knowledge, notes)
    return 0


def _read_answers(path: str | None) -> dict[str, str]:
    """The lines of a draft that was interrupted; none if the file isn't there yet."""
    if path is None or not Path(path).exists():
        return {}
    try:
        answers = json.loads(read_text(path, "a file that --answers wrote"))
    except ValueError:
        answers = None
    if not isinstance(answers, dict) or not all(isinstance(line, str) for line in answers.values()):
        raise DataError(f"{path} is not a JSON object of sentences and lines", "give a file that --answers wrote")
    return answers


def run_distill(arguments) -> int:
    check_new(arguments.output, arguments.force)
    check_source(arguments.model or "embedded")
    if arguments.policy:
        return run_distill_policy(arguments)
    if not arguments.task:
        raise ConstrainedError("there is no task", "say it in a few sentences, or give --policy FILE.md")
    with waiting("loading the model", not arguments.json) as say:
        from constrained.agents.distill import distill  # imports torch

        def on_line(line: str) -> None:
            say("writing the next line")
            print(f"  {line}", file=sys.stderr, flush=True)

        distilled = distill(
            arguments.task,
            model=arguments.model,
            actions=arguments.actions,
            temperature=arguments.temperature,
            seed=arguments.seed,
            device=arguments.device,
            on_line=None if arguments.json else on_line,
            actions_of=arguments.actions_of,
        )
    usage = distilled.usage
    notes = [
        f"drafted by {distilled.model}: {usage['completion_tokens']} tokens, {usage['forced_tokens']} of them forced, "
        f"{usage['seconds']:.1f} s; pruned mass {usage['pruned_mass']:.1%}"
    ]
    if distilled.model == "embedded":
        notes.append("the embedded model knows no language: use this draft only as an example of the form")
    _write_knowledge(arguments, distilled.text, distilled.knowledge(), notes)
    return 0

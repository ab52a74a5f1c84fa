"""BFCL's single-turn questions: a model's calls without masks and with them, judged by the benchmark's own checker.

    constrained bench bfcl --model smollm2 --every 8 --json bfcl.json    resumed if it is called again
    constrained bench bfcl --sound                                       no model: are accepted answers admitted?

Each question is answered greedily, in four rows: without masks in the benchmark's own prompt (a list of calls in the
syntax of Python, Java or JavaScript); without masks in ours (`constrained serve`'s, calls in Hermes's form); with masks
where the answer may be calls or a message (`tool_choice` "auto"); and with masks where it is at least one call
("required"). No row knows how many calls a question wants, and a question that wants none is in no row with "required".
"""

from __future__ import annotations

import argparse
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from benchmarks.bfcl import judge
from benchmarks.bfcl.questions import CATEGORIES, Call, Question, read_questions
from benchmarks.bfcl.sound import check_sound
from benchmarks.bfcl.written import NoCalls, in_language, read_own_form, read_tool_calls
from benchmarks.reporting import add_json, describe_machine, markdown, report
from benchmarks.result_files import finished_rows
from constrained import __version__
from constrained.cli.options import add_model, whole_number
from constrained.errors import ConstrainedError
from constrained.files import to_json, write_whole
from constrained.knowledge import ActionKnowledge, CallKnowledge

if TYPE_CHECKING:  # torch takes seconds to import
    from constrained.models import LoadedModel

OWN, OFF, AUTO, REQUIRED = "masks off, BFCL's prompt", "masks off", "masks on, or a message", "masks on"
ROWS = (OWN, OFF, AUTO, REQUIRED)

PARTS = ("all", "chosen-on", "others")
CHOSEN_ON = 4
"""The prompt was chosen on each fourth question of some categories of the data folder's half."""

SECONDS_BETWEEN_WRITES = 20.0
KEPT_TEXT = 1000
"""Characters of an answer that its row keeps."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add = parser.add_argument
    add("--data", type=Path, metavar="PLACE", help="an archive (.tar.xz) or a folder with BFCL's files, such as "
        "bfcl_eval/data of the package bfcl-eval (default: bfcl/bfcl_v4.tar.xz of the data folder)")  # fmt: skip
    add("--category", action="append", choices=CATEGORIES, help="only this one; repeatable (default: each)")
    add("--row", action="append", choices=ROWS, help=f"{'; '.join(ROWS)}. Repeatable; default: all")
    add("--every", type=whole_number, default=1, metavar="N", help="use each N-th question of a category only")
    add("--limit", type=whole_number, metavar="N", help="use at most N questions of a category")
    add("--part", choices=PARTS, default="all", help=f"of the questions, before --every and --limit: each "
        f"{CHOSEN_ON}th, on which our prompt was chosen, or the others (default: all)")  # fmt: skip
    add("--max-tokens", type=whole_number, default=300, metavar="N", help="of an answer, at most (default: 300)")
    add("--sound", action="store_true", help="no model: judge every accepted answer by the masks and the checker")
    add_json(parser)
    add("--anew", action="store_true", help="answer questions again that the file of --json holds already")


def run_command(options: argparse.Namespace) -> int:
    questions = chosen(read_questions(options.data), options)
    if judge.official() is None:
        print(f"bfcl-eval isn't installed, so our own checker judges. To have the official one: {judge.INSTALL}")
    if options.sound:
        sound = check_sound(questions, knowledge_of)
        return report(sound_text(sound), {**_about(), "judge": judge.judge_name(), "sound": sound}, options)
    from constrained.models import load

    model = load(options.model or "smollm2", device=options.device)
    facts = {
        "version": __version__, "model": model.name, "runs": type(model).__name__, "judge": judge.judge_name(),
        "data": options.data.name if options.data else "", "part": options.part, "every": options.every,
        "limit": options.limit, "max_tokens": options.max_tokens, "temperature": 0,
    }  # fmt: skip
    rows = finished_rows(None if options.anew else options.json, facts)
    answer_all(model, questions, options, rows, lambda: {**_about(), **facts, "rows": rows})
    return report(table(rows), {**_about(), **facts, "rows": rows}, options)


def _about() -> dict[str, Any]:
    return {"date": time.strftime("%Y-%m-%d"), "commit": _commit(), "machine": describe_machine()}


def _commit() -> str:
    """The checkout's commit; empty if it is none of git's."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=12", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def chosen(questions: Mapping[str, Sequence[Question]], options: argparse.Namespace) -> dict[str, list[Question]]:
    """The questions that the options ask for. Raises ConstrainedError: the data has none of a category."""
    for category in options.category or ():
        if category not in questions:
            raise ConstrainedError(f"the data has no {category}", f"it has: {', '.join(questions)}")
    wanted = {}
    for category, listed in questions.items():
        if options.category and category not in options.category:
            continue
        part = [
            question
            for number, question in enumerate(listed)
            if options.part == "all" or (number % CHOSEN_ON == CHOSEN_ON - 1) == (options.part == PARTS[1])
        ]
        wanted[category] = part[:: options.every][: options.limit]
    return wanted


def knowledge_of(question: Question) -> CallKnowledge:
    """The action knowledge of a question's tools."""
    return ActionKnowledge.from_tools(question.functions, call_format="hermes", whitespace="dumps", name=question.name)


# answers


def answer_all(
    model: LoadedModel,
    questions: Mapping[str, Sequence[Question]],
    options: argparse.Namespace,
    rows: list[dict[str, Any]],
    record: Any,
) -> None:
    """Answer what isn't answered yet, and add it to `rows`, which are written to the file of `--json` as they grow."""
    held = {(row["question"], row["row"]) for row in rows}
    # The first questions of all categories come first: a run that is cut off has some of each.
    ordered = [question for level in zip_longest(*questions.values()) for question in level if question is not None]
    todo = [
        (name, question)
        for question in ordered
        for name in options.row or ROWS
        if (question.name, name) not in held and (question.wants_calls or name != REQUIRED)
    ]
    written = time.monotonic()
    try:
        with tqdm(todo, unit="answer", disable=None) as bar:
            for name, question in bar:
                bar.set_description(f"{question.category}, {name}")
                rows.append(answer(model, question, name, options.max_tokens))
                if options.json and time.monotonic() - written > SECONDS_BETWEEN_WRITES:
                    write_whole(options.json, to_json(record()))
                    written = time.monotonic()
    except BaseException:  # Ctrl-C, too: nothing that was answered is lost
        if options.json:
            write_whole(options.json, to_json(record()))
        raise


def answer(model: LoadedModel, question: Question, row: str, max_tokens: int) -> dict[str, Any]:
    """One answer of a model, with its verdict."""
    from benchmarks.bfcl.prompts import our_prompt, our_request, own_prompt  # imports torch
    from constrained.decoding import generate

    grammar = None
    if row == OWN:
        prompt = own_prompt(model, question)
        official = judge.official_reader(question.language)
        read: Any = partial(read_own_form, lang=question.language, official=official)
    else:
        request = our_request(question, "required" if row == REQUIRED else "auto", max_tokens)
        prompt, admitted = our_prompt(model, request)
        grammar = admitted.grammar if row in (AUTO, REQUIRED) else None
        read = read_tool_calls
    out: dict[str, Any] = {"question": question.name, "category": question.category, "row": row}
    forget(model)
    began = time.perf_counter()
    try:
        generation = generate(model, prompt, grammar, max_new_tokens=max_tokens)
    except ConstrainedError as error:  # the prompt, or the shortest call after it, doesn't fit the model's context
        return {**out, "right": False, "calls": 0, "tokens": 0, "prompt_tokens": 0, "seconds": 0.0, "text": str(error)}
    seconds = time.perf_counter() - began
    calls: list[Call] = []
    with suppress(NoCalls):
        calls = read(generation.text)
    if row != OWN:
        calls = in_language(calls, question.functions, question.language)
    return {
        **out,
        "right": judge.is_right(question, calls),
        "calls": len(calls),
        "tokens": generation.completion_tokens,
        "prompt_tokens": generation.prompt_tokens,
        "seconds": round(seconds, 2),
        "text": generation.text[:KEPT_TEXT],
    }


def forget(model: LoadedModel) -> None:
    """Let llama.cpp forget the last prompt, so that the time of each answer includes reading its whole prompt."""
    from constrained.models.llama_cpp import LlamaCpp

    if isinstance(model.model, LlamaCpp):
        model.model.read([])


# tables


def figures(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], dict[str, float]]:
    """(category, row) -> its questions, how many are right and have calls, and means of tokens and seconds."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["category"], row["row"]), []).append(row)
    return {
        key: {
            "questions": len(group),
            "right": sum(row["right"] for row in group),
            "parsed": sum(row["calls"] > 0 for row in group),
            "tokens": sum(row["tokens"] for row in group) / len(group),
            "seconds": sum(row["seconds"] for row in group) / len(group),
        }
        for key, group in groups.items()
    }


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Correct and parsed answers of each category, then what an answer costs."""
    shown = [name for name in ROWS if any(name == row["row"] for row in rows)]
    cost = [[name, *_cost([row for row in rows if row["row"] == name])] for name in shown]
    return f"{correct(rows)}\n\n{markdown(['', 'tokens an answer', 's an answer'], cost)}"


def correct(rows: Sequence[Mapping[str, Any]]) -> str:
    """Correct answers, and those with a call, of each category, as Markdown."""
    found = figures(rows)
    shown = [name for name in ROWS if any(name == row for _, row in found)]
    listed = [category for category in CATEGORIES if any(category == one for one, _ in found)]
    cells = []
    for category in listed:
        ours = {name: found[category, name] for name in shown if (category, name) in found}
        count = max(int(one["questions"]) for one in ours.values())
        cells.append([category, count, *(_cell(ours.get(name)) for name in shown)])
    want = [row for row in rows if row["category"] in listed and not row["category"].endswith("irrelevance")]
    if len({row["category"] for row in want}) > 1:
        whole = figures({**row, "category": ""} for row in want)
        count = max(int(one["questions"]) for one in whole.values())
        cells.append(["all that want calls", count, *(_cell(whole.get(("", name))) for name in shown)])
    return markdown(["correct (with a call)", "questions", *shown], cells)


def _cell(one: Mapping[str, float] | None) -> str:
    return "–" if one is None else f"{one['right']:.0f} ({one['parsed']:.0f})"


def _cost(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"{sum(row['tokens'] for row in rows) / len(rows):.0f}",
        f"{sum(r['seconds'] for r in rows) / len(rows):.1f}",
    ]


def sound_text(sound: Mapping[str, Any]) -> str:
    """How many accepted calls are admitted, and why the others aren't."""
    names = ("calls", "admitted in some form", "admitted in every accepted form")
    rows = [[category, *(counts[name] for name in names)] for category, counts in sound["categories"].items()]
    rows.append(["all", *(sum(counts[name] for counts in sound["categories"].values()) for name in names)])
    parts = [markdown(["accepted calls", *names], rows)]
    for title in ("never admitted", "not in every form"):
        if sound[title]:
            parts.append(markdown([title, "calls"], sound[title].items()))
    return "\n\n".join(parts)

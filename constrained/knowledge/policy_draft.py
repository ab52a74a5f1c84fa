"""Draft the `//:` lines of a policy from its written text, a line a sentence; what doesn't load is left out and told.

Whoever writes the lines (a model, `constrained.agents.distill`) sees one sentence at a time. Each line is tried in the
file drafted so far, with the tools: a line that can't be read, or that names what isn't there, is not part of the
draft.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from constrained.automaton import Grammar
from constrained.errors import ConstrainedError, GrammarError, KnowledgeError
from constrained.knowledge.action_knowledge import ActionKnowledge
from constrained.knowledge.tool_policy.policy import slot_of
from constrained.knowledge.tools import read_tools
from constrained.limits import DEFAULT, Limits

MAX_SENTENCES = 500
"""Sentences of a written policy; tau-bench's airline has 70."""

NONE = "none"
"""The line of a sentence that says nothing that a policy can."""

_KINDS = "fact|init|tells|let|fails by|message"
_LINE = re.compile(rf"(?:(?P<tool>\w+): (?P<needs>needs .+)|(?P<head>(?:{_KINDS}) .+))")
_PLACE = re.compile(r"^\S+:\d+:\d+: ")
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])")
_LEADING = re.compile(r"^\s*(?:[-*+>]|\d+[.)])\s+")

Write = Callable[[str, Grammar], str]
"""``write(sentence, grammar)`` returns a text of the grammar: the line for that sentence."""


@dataclass(frozen=True)
class Sentence:
    """A sentence of a written policy, and its line in the file."""

    text: str
    line: int


@dataclass
class PolicyDraft:
    """A drafted policy.

    Attributes
    ----------
    text : str
        The `.lark` file.
    answers : dict of str to str
        Sentence -> the line that was written for it, also where it isn't part of the draft.
    left_out : list of (Sentence, str)
        What couldn't be drafted, and why.
    """

    text: str = ""
    answers: dict[str, str] = field(default_factory=dict)
    left_out: list[tuple[Sentence, str]] = field(default_factory=list)


def sentences(text: str) -> list[Sentence]:
    """The sentences of a written policy in Markdown; headings and code are left out, a list's item is a sentence.

    Raises ConstrainedError: there are none, or more than `MAX_SENTENCES`.
    """
    found, code = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            code = not code
        elif not code and line.strip() and not line.lstrip().startswith("#"):
            plain = " ".join(_LEADING.sub("", line).replace("**", "").split())
            found += [Sentence(one, number) for one in _END.split(plain) if any(c.isalpha() for c in one)]
    if not found:
        raise ConstrainedError("the policy has no sentences", "give its text, as Markdown or plain")
    if len(found) > MAX_SENTENCES:
        raise ConstrainedError(
            f"the policy has {len(found):,} sentences, more than {MAX_SENTENCES}", "give parts of it"
        )
    return found


def line_grammar(tools: list[str]) -> Grammar:
    """What may be written for a sentence: a line of a policy, or "none"."""
    names = "|".join(re.escape(slot_of(tool).lower()) for tool in tools)
    return Grammar.from_regex(rf"(?:(?:{names}): needs [^\n]{{3,160}}|(?:{_KINDS}) [^\n]{{3,160}}|{NONE})\n")


def draft_policy(
    text: str,
    tools: Any,
    write: Write,
    *,
    source: str = "policy",
    answers: Mapping[str, str] | None = None,
    on_line: Callable[[Sentence, str, dict[str, str]], None] | None = None,
    limits: Limits = DEFAULT,
) -> PolicyDraft:
    """Draft a policy.

    Parameters
    ----------
    text : str
        The written policy.
    tools : list
        As `ActionKnowledge.from_tools` takes them.
    write : callable
        ``write(sentence, grammar)`` returns the line for a sentence.
    source : str
        The file's name, for the draft's first line.
    answers : mapping, optional
        Lines that were written before, by sentence: those sentences aren't asked for again.
    on_line : callable, optional
        Called with each sentence, what came of it, and all answers so far.

    Raises
    ------
    ConstrainedError
        The policy has no sentences, or too many.
    KnowledgeError
        The tools can't be read.
    """
    listed = sentences(text)
    names = [tool.name for tool in read_tools(tools, limits)]
    rules = {slot_of(name).lower(): name for name in names}
    grammar, draft = line_grammar(names), PolicyDraft(answers=dict(answers or {}))
    head: list[str] = []
    needs: dict[str, list[str]] = {rule: [] for rule in rules}
    for sentence in listed:
        line = draft.answers.get(sentence.text)
        if line is None:
            line = draft.answers[sentence.text] = " ".join(write(sentence.text, grammar).split())
        why = _add(line, sentence, head, needs, lambda: _file(source, head, needs), tools, limits)
        if why:
            draft.left_out.append((sentence, why))
        if on_line is not None:
            on_line(sentence, f"{line}  (left out: {why})" if why else line, draft.answers)
    draft.text = _file(source, head, needs, draft.left_out)
    return draft


def _add(
    line: str,
    sentence: Sentence,
    head: list[str],
    needs: dict[str, list[str]],
    file: Callable[[], str],
    tools: Any,
    limits: Limits,
) -> str:
    """Add a line where it belongs; returns why not, if it can't be part of the draft."""
    if line == NONE:
        return "nothing was drafted for it"
    match = _LINE.fullmatch(line)
    if match is None or (match["tool"] and match["tool"] not in needs):
        return f"no line of a policy: {line[:80]}"
    place = needs[match["tool"]] if match["tool"] else head
    written = match["needs"] or match["head"]
    why = f" // {sentence.text}" if match["needs"] and "//" not in written else ""
    place += [f"// line {sentence.line}: {sentence.text}", f"//: {written}{why}"]
    try:
        ActionKnowledge.from_tools(tools, policy=file(), limits=limits)
    except (GrammarError, KnowledgeError) as error:
        del place[-2:]
        problem = getattr(error, "problem", error.message).split("\n")[0]
        return f"{_PLACE.sub('', problem)} ({line[:80]})"  # its place is in the draft so far, which nobody has seen
    return ""


def _file(
    source: str, head: list[str], needs: dict[str, list[str]], left_out: list[tuple[Sentence, str]] | None = None
) -> str:
    """The `.lark` file of what was drafted so far."""
    lines = [f"// Drafted by constrained distill --policy from {source}, for a person to refine.", *head, ""]
    lines += [f"%declare _STEP {' '.join(slot_of(rule) for rule in needs)}", ""]
    for sentence, why in left_out or ():
        lines.append(f"// not drafted, line {sentence.line}: {sentence.text} [{' '.join(why.split())}]")
    lines += ["", "// Which tool may be called first.", f"start: {' | '.join(needs)}"]
    for rule, conditions in needs.items():
        lines += ["", *(conditions or [f"// {rule}: no sentence was drafted about it."])]
        lines.append(f"{rule}: {slot_of(rule)} _STEP [start]")
    return "\n".join(lines) + "\n"

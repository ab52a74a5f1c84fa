"""Drafts of action knowledge written by a model, which KnowAgent names as future work.

The model writes the lines of `constrained.knowledge.draft`, each under its grammar's masks and within a token budget,
so the result is always a `.lark` file that loads. How good the draft is depends on the model; the embedded one was
trained on household games, not on language.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from constrained.agents.prompts import in_chat_form
from constrained.automaton import Grammar, compile_grammar
from constrained.decoding import Generation, PrefixCache, generate
from constrained.errors import ConstrainedError
from constrained.knowledge import ActionKnowledge
from constrained.knowledge.draft import Draft, draft
from constrained.knowledge.lent_actions import COMMAND, lent_actions
from constrained.knowledge.policy_draft import PolicyDraft, Sentence, draft_policy
from constrained.knowledge.tool_policy.policy import slot_of
from constrained.knowledge.tools import read_tools
from constrained.limits import DEFAULT
from constrained.models import LoadedModel, load

LINE_TOKENS = 100
"""Most tokens of one line, unless the shortest admitted line needs more."""

_INSTRUCTION = """\
Action knowledge tells an agent what it may do to solve a kind of task: an overview, the actions with what \
each one does, and which action may follow which. Write the action knowledge for the task below, line by \
line, in the form of the example. Name each action by a verb, with its arguments in brackets; let the last \
action give the result."""

_ORDER = """\
The actions are given: say which is the last one, then after each other action all those that may come next, \
between commas, and at the end all those that may come first."""

_OPEN_ORDER = """\
The actions are given: say after each action all those that may come next, between commas, and at the end all those \
that may come first."""


@dataclass
class Distilled:
    """A draft, with what it cost."""

    text: str  # the `.lark` file
    draft: Draft
    model: str
    lines: list[Generation] = field(default_factory=list)  # the texts that the model wrote, line by line
    seconds: float = 0.0

    def knowledge(self) -> ActionKnowledge:
        """Load the file."""
        return ActionKnowledge.from_lark(self.text)

    @property
    def usage(self) -> dict[str, float]:
        """Tokens written and forced, forward passes, mean pruned mass of a line, seconds."""
        return {
            "completion_tokens": sum(line.completion_tokens for line in self.lines),
            "forced_tokens": sum(token.forced for line in self.lines for token in line.tokens),
            "forward_passes": sum(line.forward_passes for line in self.lines),
            "pruned_mass": sum(line.pruned_mass.mean for line in self.lines) / max(len(self.lines), 1),
            "seconds": self.seconds,
        }


def distill(
    task: str,
    *,
    model: Any = None,
    actions: int | None = None,
    temperature: float = 0.0,
    seed: int = 0,
    line_tokens: int = LINE_TOKENS,
    device: str | None = None,
    on_line: Callable[[str], None] | None = None,
    actions_of: str | Path | None = None,
) -> Distilled:
    """Let a model draft action knowledge; the draft always loads.

    Parameters
    ----------
    task : str
        A description in a few sentences.
    model : optional
        Anything `constrained.models.load` takes; default: the embedded model, whose drafts have the right form but no
        sensible content.
    actions : int, optional
        The exact number of actions, 1 to 10; by default the model decides.
    temperature : float
        0: always the likeliest token.
    seed : int
        For sampling; the same seed gives the same draft.
    line_tokens : int
        Most tokens of a line, unless the shortest admitted line needs more.
    on_line : callable, optional
        Called with each finished line of the draft.
    actions_of : str or Path, optional
        Take the actions and their definitions from this knowledge; the model drafts only their order (KnowAgent, Table
        4). See `constrained.knowledge.lent_actions` for what it must look like.

    Raises
    ------
    ConstrainedError
        The task is empty, a number is out of range, or the model can't be loaded.
    """
    if line_tokens < 1:
        raise ConstrainedError(f"line_tokens is {line_tokens}", "use 1 or more")
    given = lent_actions(actions_of) if actions_of else None
    began = time.perf_counter()
    loaded = load(model, device=device)
    cache, generator = PrefixCache(), torch.Generator().manual_seed(seed)
    lines: list[Generation] = []
    if given:  # no example is shown: it has an order, and often the one that is asked for
        asked = _OPEN_ORDER if given.open_end else _ORDER
        instruction = f"{_INSTRUCTION.replace(', in the form of the example', '')} {asked}"
    else:
        instruction = f"{_INSTRUCTION}\n\nExample:\n{example_lines(ActionKnowledge.from_lark('hotpotqa'))}"

    def write(so_far: str, grammar: Grammar) -> str:
        # The budget is never below the shortest admitted line, so that every line ends whole.
        compiled = compile_grammar(grammar, loaded.vocabulary)
        fewest = compiled.matcher().fewest_tokens() or 1
        prompt = _prompt(loaded, instruction, so_far, fewest, max(line_tokens, fewest))
        written = generate(
            loaded, prompt, compiled, max_new_tokens=max(line_tokens, fewest),
            temperature=temperature, generator=generator, cache=cache,
        )  # fmt: skip
        lines.append(written)
        return written.text

    drafted = draft(task, write, actions, on_line, given)
    heading = f"Drafted by constrained distill (model {loaded.name}, seed {seed}) for a person to refine. The task:\n"
    text = drafted.to_lark(heading + drafted.task)
    return Distilled(text, drafted, loaded.name, lines, time.perf_counter() - began)


_RULES = """\
Turn one sentence of a written policy into one line of rules, or write none if it says nothing about when a tool may \
be called. "TOOL: needs CONDITION" is a condition on every call of a tool over its arguments and what is known; \
"fact NAME" and "init NAME = VALUE" say what can be known; "tells NAME = $.path by TOOL" stores what a result tells.

Sentence: Only orders of the customer may be cancelled.
Line: cancel_order: needs order_id in ORDER
Sentence: At most five bags are allowed.
Line: add_bags: needs bags <= 5
Sentence: Be polite.
Line: none
"""


def distill_policy(
    text: str,
    tools: Any,
    *,
    source: str = "policy",
    model: Any = None,
    answers: Mapping[str, str] | None = None,
    line_tokens: int = LINE_TOKENS,
    device: str | None = None,
    on_line: Callable[[Sentence, str, dict[str, str]], None] | None = None,
) -> PolicyDraft:
    """Let a model draft a policy's `//:` lines, a line for each sentence of its written text.

    Parameters
    ----------
    text, tools, source, answers, on_line
        As in `constrained.knowledge.policy_draft.draft_policy`.
    model, line_tokens, device
        As in `distill`. The model is loaded when the first line is to be written: with all `answers`, it isn't.

    Raises
    ------
    ConstrainedError
        The policy has no sentences, a number is out of range, or the model can't be loaded.
    """
    if line_tokens < 1:
        raise ConstrainedError(f"line_tokens is {line_tokens}", "use 1 or more")
    listed = ", ".join(
        f"{slot_of(tool.name).lower()}({', '.join(tool.parameters.get('properties', {}))})"
        for tool in read_tools(tools, DEFAULT)
    )
    loaded: LoadedModel | None = None
    cache = PrefixCache()

    def write(sentence: str, grammar: Grammar) -> str:
        nonlocal loaded
        loaded = loaded or load(model, device=device)
        compiled = compile_grammar(grammar, loaded.vocabulary)
        most = max(line_tokens, compiled.matcher().fewest_tokens() or 1)
        # Ever less is shown until the line fits the context: the tools are left out first, then the examples.
        for shown in (f"{_RULES}\nThe tools: {listed}\n", _RULES, ""):
            asked = f"{shown}\nSentence: {sentence}"
            chat = getattr(loaded.tokenizer, "chat_template", None)
            prompt = in_chat_form(loaded, asked) + "Line: " if chat else f"{asked}\nLine: "
            used = len(loaded.tokenizer.encode(prompt, verbose=False))
            if loaded.max_context is None or used + most <= loaded.max_context:
                break
        else:
            raise ConstrainedError(f"the sentence {sentence[:60]!r} is longer than the model reads", "shorten it")
        return generate(loaded, prompt, compiled, max_new_tokens=most, temperature=0.0, cache=cache).text

    return draft_policy(text, tools, write, source=source, answers=answers, on_line=on_line)


def example_lines(knowledge: ActionKnowledge) -> str:
    """Action knowledge in the form of a draft, as an example.

    Only actions with definitions of the form "name: Name[argument] does ..." are part of it.
    """
    result = {name: match for name, text in knowledge.actions.items() if (match := COMMAND.fullmatch(text))}
    names = {rule: match["name"] for rule, match in result.items()}
    overview = knowledge.comments["start"]
    lines = [f"Task: {overview.split(':')[0]}", f"Overview: {overview}", "Actions:"]
    for match in result.values():
        definition = match["definition"]
        lines.append(f"{match['command']}: {definition[0].upper()}{definition[1:]}")
    arguments = [a for match in result.values() for a in (match["arguments"] or "").split(", ") if a]
    lines += ["", *(f"{argument}: text" for argument in dict.fromkeys(arguments))]
    last = next(rule for rule, after in knowledge.rules.items() if not after)
    lines.append(f"The last action: {names[last]}")
    for rule, after in knowledge.rules.items():
        if after and rule != "start":
            lines.append(f"After {names[rule]}: {', '.join(names[a] for a in names if a in after)}")
    lines.append(f"First: {', '.join(names[a] for a in names if a in knowledge.rules['start'])}")
    return "\n".join(lines)


def _prompt(loaded: LoadedModel, whole_instruction: str, so_far: str, fewest: int, wanted: int) -> str:
    """The prompt before a line: as much of instruction, example and draft as fits the context."""
    # Ever less is shown until the line fits: first without the example, then without the instruction, then without the
    # draft's first lines.
    whole = so_far.split("\n")
    tails = ["\n".join(whole[n:]) for n in range(len(whole))]
    prompt = so_far
    for instruction, lines in [(whole_instruction, so_far), (_INSTRUCTION, so_far), *(("", tail) for tail in tails)]:
        prompt = _instructed(loaded, instruction, lines) if instruction else lines
        if loaded.max_context is None:
            break
        left = loaded.max_context - len(loaded.tokenizer.encode(prompt, verbose=False))
        if left >= wanted or (not instruction and left >= fewest + 1):
            break
    return prompt


def _instructed(loaded: LoadedModel, instruction: str, lines: str) -> str:
    if getattr(loaded.tokenizer, "chat_template", None):
        task, _, begun = lines.partition("\n")
        return in_chat_form(loaded, f"{instruction}\n\nNow yours.\n{task}") + begun
    return f"{instruction}\n\nNow yours:\n{lines}"

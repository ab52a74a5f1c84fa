"""ReWOO: plan all tool calls first, with references to later results, then work, then solve (Xu et al., 2023).

The planner writes lines such as ``#E2 = Search[the mother of #E1]``; with masks on they are numbered in order, refer
only to evidence of lines above, and call tools in an order that the action knowledge admits. The worker makes the calls
with references replaced by evidence; ``LLM[...]`` is the paper's tool that asks a language model. The solver reads plan
and evidence, and answers. No step is written after an observation, which saves tokens.

If no action gives an answer, as in a household, there is nothing to refer to and nothing to solve: a plan is written
ahead and carried out, as in `cot`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from constrained.agents.episode import Episode
from constrained.agents.messages import Requests, Strategy
from constrained.agents.prompts import instruction_that_fits
from constrained.agents.step_formats import shipped_grammar
from constrained.agents.strategies.open_loop import write_ahead
from constrained.automaton import Grammar
from constrained.decoding.request import Generation
from constrained.environments.base import Environment
from constrained.errors import KnowledgeError
from constrained.knowledge import Knowledge
from constrained.knowledge.action_graph import START
from constrained.knowledge.answering import answer_actions, answer_only, text_calls

ROLE = "planner"
"""The role that writes the plan; "policy" answers the worker's questions and solves."""

PLAN_TOKENS = 600
"""Most tokens of a plan without masks: nothing else is sure to end it."""

EVIDENCE = (1_200, 600, 300, 100, 0)
"""Characters of each piece of evidence that a prompt may show: the first that fits the context is taken."""

ASK = "LLM"

_WHY = re.compile(r"\s*Plan:\s*(.*)")
_CALL = re.compile(r"\s*#E(\d+)\s*=\s*([^\[\n]*)\[(.*)\]\s*")
_REFERENCE = re.compile(r"#E(\d+)")


@dataclass(frozen=True)
class PlannedCall:
    """One step of a plan: its purpose, and a tool with its input, references not replaced yet."""

    number: int
    why: str
    tool: str
    input: str

    def __str__(self) -> str:
        return f"Plan: {self.why}\n#E{self.number} = {self.tool}[{self.input}]"


def rewoo(episode: Episode, prior: Environment | None = None) -> Strategy:
    """Plan, work, solve; without an environment nothing is executed (`prior` as in `open_loop`)."""
    if not answer_actions(episode.start):
        yield from write_ahead(episode, prior)
        return
    if episode.surroundings.environment is not None:
        episode.begin()
    # `written`: answers whose cost belongs to the next step, because they made none themselves.
    plan = yield from _plan(episode)
    calls, written = (read_plan(plan.text), [plan]) if plan else ([], [])
    if episode.surroundings.environment is None:
        _leave_undone(episode, calls, written)
        return
    evidence: dict[int, str] = {}
    for call in calls:
        if not episode.over and len(episode.steps) < episode.settings.max_steps - 1:  # the last step is the answer's
            evidence[call.number] = yield from _work(episode, call, evidence, written)
    if not episode.over:
        yield from _solve(episode, calls, evidence, written)


def read_plan(text: str) -> list[PlannedCall]:
    """The calls in a plan's text, each with the last "Plan:" above it; other lines are ignored.

    In `grammars/steps/rewoo.lark` no part of a plan holds a line break, so a plan written under it is read exactly.
    """
    calls, why = [], ""
    for line in text.split("\n"):  # not splitlines(): parts of a line may hold other line separators
        if call := _CALL.fullmatch(line):
            calls.append(PlannedCall(int(call[1]), why, call[2].strip(), call[3]))
        elif reason := _WHY.fullmatch(line):
            why = reason[1].strip()
    return calls


def put_in(text: str, evidence: Mapping[int, str]) -> str:
    """Replace the references in `text` by the evidence they name."""
    return _REFERENCE.sub(lambda found: evidence.get(int(found[1]), found[0]), text)


# planner


def _plan(episode: Episode) -> Requests[Generation | None]:
    tools, rules = text_calls(episode.space.knowledge), episode.space.knowledge.graph.rules
    after = {tools.get(a, START): [tools[b] for b in rules[a] if b in tools] for a in (START, *tools)}
    answers = set(answer_actions(episode.space.knowledge))
    over = {tools[action] for action in tools if answers.intersection(rules[action])}
    form = plan_form(after, over, max(episode.settings.max_steps - 1, 1))
    if form is None:
        episode.end("no plan can be made: no answer may follow tools that take any text")
        return None
    left = episode.writer.tokens_left()
    half = None if left is None else left // 2  # the rest is for worker and solver
    prompt = _planner_prompt(episode, tools, after)
    return (yield from episode.ask(prompt, form, role=ROLE, max_new_tokens=half, stop=None, free_tokens=PLAN_TOKENS))


def plan_form(after: Mapping[str, Sequence[str]], over: Collection[str], lines: int) -> Grammar | None:
    """The grammar of plans: lines numbered in order, references to lines above, tools in an admitted order.

    Parameters
    ----------
    after : mapping of str to sequence of str
        Tool, or "start" -> the tools that may come next. A question to a language model may come anywhere.
    over : collection of str
        Tools after which the answer may be given.
    lines : int
        Most steps of a plan.

    Returns
    -------
    Grammar or None
        None if there is no plan.
    """
    form = shipped_grammar("steps/rewoo")
    # From the last line to the first, so that each line's grammar holds those of the lines that may follow it.
    plans: dict[str, Grammar] = {}  # tool called last -> the rest of the plan, from the next line on
    for n in range(lines, 0, -1):
        before: list[str] | dict[str, str] = [str(number) for number in range(1, n)] or {}
        longer = {}
        for last, following in after.items():
            called = {tool: tool for tool in following} | {ASK: last}  # questions aren't part of the order
            ends = {tool: "" for tool, now in called.items() if now in over}
            more = {tool: plans[now] for tool, now in called.items() if now in plans}
            if ends or more:
                names = list(dict.fromkeys([*ends, *more]))
                longer[last] = form.bind(N=str(n), BEFORE=before, TOOL=names, OVER=ends, MORE=more)
        plans = longer
    return plans.get(START)


def _planner_prompt(episode: Episode, tools: Mapping[str, str], after: Mapping[str, Sequence[str]]) -> str:
    """The planner's prompt; parts that don't fit its context are left out, the last first."""
    parts = [
        "Write a plan for the task below before anything is done. Each step is two lines: `Plan: ` with what the step "
        "is for, then `#E` and the step's number, ` = ` and one tool with its input in brackets. #E1 names what comes "
        "of step 1, and later inputs can refer to it.",
        "The tools:\n"
        + "".join(f"- {episode.space.knowledge.actions[action]}\n" for action in tools)
        + f"- {ASK}[question] asks a language model, which may be given evidence.",
        f"For example:\nPlan: Find the novel.\n#E1 = {next(iter(tools.values()))}[the novel about a whale]\n"
        f"Plan: Find out who wrote it.\n#E2 = {ASK}[Who is the author, given #E1?]",
        f"Which tool may follow which ({ASK} may stand anywhere):\n"
        + "\n".join(f"  {tool} -> {', '.join(following)}" for tool, following in after.items()),
    ]
    tries = ("\n\n".join([*parts[:kept], f"Task: {episode.plan.task}"]) for kept in range(len(parts), 0, -1))
    return instruction_that_fits(episode.writer.model(ROLE), tries)


# worker


def _work(episode: Episode, call: PlannedCall, evidence: Mapping[int, str], written: list[Generation]) -> Requests[str]:
    """Make a call and return its evidence; `written` are the answers that belong to no step yet."""
    if call.tool == ASK:
        tries = (put_in(call.input, _cut(evidence, shown)) for shown in EVIDENCE)
        forms = (f"Answer in one line, as short as you can.\n\n{text}" for text in tries)
        prompt = instruction_that_fits(episode.writer.model(), forms)
        answer = yield from episode.ask(prompt, shipped_grammar("steps/reply"))
        written.extend([answer] if answer else [])
        return answer.text.strip() if answer else ""
    action = _action(episode, call, put_in(call.input, evidence))
    if action is None:
        return "this can't be done"
    step = episode.new_step(call.why, action, *written)
    written.clear()
    episode.do(step, as_planned=True)
    return step.observation or ""


def _cut(evidence: Mapping[int, str], length: int) -> dict[int, str]:
    return {number: text[:length] for number, text in evidence.items()}


def _leave_undone(episode: Episode, calls: list[PlannedCall], written: list[Generation]) -> None:
    """Add the calls to the plan without doing them, references included."""
    episode.plan.open_loop = True
    for call in calls:
        action = _action(episode, call, call.input) if call.tool != ASK else None
        if action is not None:
            step = episode.new_step(call.why, action, *written)
            written.clear()
            episode.space.advance(action)
            episode.add(step)


def _action(episode: Episode, call: PlannedCall, given: str) -> str | None:
    """The action that calls the tool with `given`, without the characters that the rules don't admit.

    Evidence can be any text, so it may hold such characters. None if there is no such action here. A call that a model
    wrote without masks is not changed.
    """
    written = f"{call.tool}[{given}]"
    if not episode.settings.constrained and given == call.input:
        return written
    try:
        state = episode.space.knowledge.next_action().begin.read(f"{call.tool}[".encode())
    except KnowledgeError:  # the path is over
        state = None
    # Evidence is read character by character; what leads nowhere in the rule's text is skipped.
    kept = ""
    for letter in given:
        after = state.read(letter.encode()) if state and letter != "]" else None  # a bracket would end the input
        if after is not None:
            state, kept = after, kept + letter
    end = state.read(b"]") if state else None
    if end is not None and end.accepting:
        return f"{call.tool}[{kept}]"
    return None if episode.settings.constrained else written


# solver


def _solve(
    episode: Episode, calls: list[PlannedCall], evidence: Mapping[int, str], written: list[Generation]
) -> Requests[None]:
    answer = answer_only(episode.space.knowledge)
    assert answer is not None, "rewoo is for knowledge with actions that give an answer"
    admitted = set(answer_actions(episode.space.knowledge)).intersection(episode.space.knowledge.may_follow)
    if episode.settings.constrained and not admitted:
        episode.end("the plan ended where the rules don't admit an answer")
        return
    tries = [(calls, _cut(evidence, shown)) for shown in EVIDENCE] + [([], {})]
    prompt = instruction_that_fits(
        episode.writer.model(), (_solver_instruction(episode, *some, answer) for some in tries)
    )
    last = yield from episode.ask(prompt, answer.next_action())
    if last:
        action = last.text if episode.settings.constrained else last.text.strip()
        episode.do(episode.new_step("", action, *written, last))


def _solver_instruction(
    episode: Episode, calls: list[PlannedCall], evidence: Mapping[int, str], answer: Knowledge
) -> str:
    plan = "\n".join(f"{call}\nEvidence: {evidence.get(call.number, 'none')}" for call in calls)
    return (
        "Solve the task with the plan below and the evidence found for each of its steps; the evidence may be long, "
        f"and some of it beside the point.\n\n{plan}\n\nTask: {episode.plan.task}\n\n"
        f"Answer with one line and nothing else. {' '.join(answer.actions.values())}"
    )

"""Jobs of the playground's child processes: check a text, explain a path, run a task."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from constrained.agents.plan import Plan
from constrained.automaton import Vocabulary
from constrained.automaton.vocabulary import open_vocabulary
from constrained.environments.world import own_task
from constrained.errors import GrammarError
from constrained.grammar import STEP
from constrained.knowledge import ActionKnowledge, Knowledge
from constrained.knowledge.explain import explain_file, next_tokens
from constrained.knowledge.lint import check_file
from constrained.knowledge.world import read_world
from constrained.playground import bounds
from constrained.playground.document import source_of
from constrained.subprocesses import Send, serve


def check(request: dict, send: Send) -> None:
    """Findings about a text, its slots, its action graph, and the prompt text."""
    checked = check_file(source_of(request))
    findings = [finding.to_dict(checked.name, checked.line(finding.span)) for finding in checked.findings]
    knowledge = checked.knowledge
    shown = (
        {
            "name": knowledge.name,
            "actions": len(knowledge.actions),
            "played": "household" if _is_household(knowledge) else "world" if _has_problem(request) else None,
            "svg": knowledge.to_svg() if len(knowledge.actions) <= bounds.ACTIONS else None,
            "text": knowledge.to_text(),
        }
        if knowledge
        else None
    )
    send(
        {
            "findings": findings[: bounds.FINDINGS],
            "more": max(0, len(findings) - bounds.FINDINGS),
            "slots": sorted(checked.grammar.slots - {STEP}) if checked.grammar else None,
            "knowledge": shown,
        }
    )


def _is_household(knowledge: Knowledge) -> bool:
    if knowledge.name != "household":
        return False
    from constrained.environments.household import is_household  # reads its files, for a quarter of a second

    return is_household(knowledge)


def _has_problem(request: dict) -> bool:
    """Whether the text has its own problem. Errors in its `//:` lines are findings, not raised here."""
    try:
        world = read_world(source_of(request))
    except GrammarError:
        return False
    return world is not None and world.problem is not None


@cache
def _vocabulary(name: str) -> Vocabulary:
    return open_vocabulary(name)


def tokenizer(request: dict, send: Send) -> None:
    """Read a tokenizer, so that an explanation with it takes less time."""
    send({"size": _vocabulary(request["tokenizer"]).size})


def explain(request: dict, send: Send) -> None:
    """What may come after a path, and which rules say so."""
    explanation, unbound = explain_file(source_of(request), request["path"], values=request["values"])
    data = explanation.to_dict()
    send(
        {
            **data,
            **next_tokens(explanation, _vocabulary(request["tokenizer"]), bounds.TOKENS),
            "expected": data["expected"][: bounds.EXPECTED],
            "expected_more": max(0, len(data["expected"]) - bounds.EXPECTED),
            "unbound": unbound,
        }
    )


def run(request: dict, send: Send) -> None:
    """Plan a task: messages are the "start", each "step", and the "end"."""
    from constrained.agents.generate import generate_plan

    def start(plan: Plan) -> None:
        send({"start": {"model": plan.model, "note": plan.note, "observation": plan.first_observation}})

    knowledge = ActionKnowledge.from_lark(source_of(request), source_map=True).bind(**request["values"])
    plays_own = knowledge.own_world is not None and not request["task"].strip()
    plan = generate_plan(
        own_task(knowledge) if plays_own else request["task"],
        knowledge if knowledge.own_world is not None else knowledge.bind(**knowledge.grammar.stand_ins()),
        strategy=request["strategy"],
        model=request["model"],
        max_steps=request["steps"],
        max_new_tokens=bounds.RUN_TOKENS,
        seed=request["seed"],
        constrained=request["masks"],
        trace=request["trace"],
        on_start=start,
        on_step=lambda step: send({"step": step.to_dict()}),
    )
    send({"end": {**plan.to_dict(), "steps": len(plan.last_phase), "unbound": knowledge.grammar.unbound()}})


JOBS: dict[str, Callable[[dict, Send], None]] = {job.__name__: job for job in (check, tokenizer, explain, run)}


def main() -> None:
    """Serve jobs; run in the child process."""
    serve(lambda request, send: JOBS[request["job"]](request, send))

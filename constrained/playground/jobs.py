"""What the playground's child processes do: check a text, explain a path, run a task."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache

from constrained.agents.plan import Plan
from constrained.automaton import Vocabulary
from constrained.automaton.vocabulary import open_vocabulary
from constrained.environments.household import is_household
from constrained.grammar import STEP
from constrained.knowledge import ActionKnowledge
from constrained.knowledge.explain import explain_file, next_tokens
from constrained.knowledge.lint import Checked, check_file
from constrained.playground import bounds
from constrained.playground.document import source_of
from constrained.subprocesses import Send, serve


def check(request: dict, send: Send) -> None:
    """What is wrong with a text, what is in it, its graph, and how a model reads it."""
    checked = check_file(source_of(request))
    found = [finding.to_dict(checked.name, checked.line(finding.span)) for finding in checked.findings]
    send(
        {
            "findings": found[: bounds.FINDINGS],
            "more": max(0, len(found) - bounds.FINDINGS),
            "slots": sorted(checked.grammar.slots - {STEP}) if checked.grammar else None,
            "knowledge": _shown(checked),
        }
    )


def _shown(checked: Checked) -> dict | None:
    knowledge = checked.knowledge
    if knowledge is None:
        return None
    many = len(knowledge.actions) > bounds.ACTIONS
    return {
        "name": knowledge.name,
        "actions": len(knowledge.actions),
        "played": is_household(knowledge),
        "svg": None if many else knowledge.to_svg(),
        "text": knowledge.to_text(),
    }


@cache
def _vocabulary(name: str) -> Vocabulary:
    return open_vocabulary(name)


def tokenizer(request: dict, send: Send) -> None:
    """Read a tokenizer, whose tokens explanations will ask for."""
    send({"size": _vocabulary(request["tokenizer"]).size})


def explain(request: dict, send: Send) -> None:
    """What may come after a path, and why."""
    explanation, unbound = explain_file(source_of(request), request["path"], values=request["values"])
    said = explanation.to_dict()
    send(
        {
            **said,
            **next_tokens(explanation, _vocabulary(request["tokenizer"]), bounds.TOKENS),
            "expected": said["expected"][: bounds.EXPECTED],
            "expected_more": max(0, len(said["expected"]) - bounds.EXPECTED),
            "unbound": unbound,
        }
    )


def run(request: dict, send: Send) -> None:
    """A plan, step by step: "start", each "step", and the "end"."""
    from constrained import generate_plan  # torch: only for runs

    knowledge = ActionKnowledge.from_lark(source_of(request), source_map=True).bind(**request["values"])
    plan = generate_plan(
        request["task"],
        knowledge.bind(**knowledge.grammar.stand_ins()),
        strategy=request["strategy"],
        model=request["model"],
        max_steps=request["steps"],
        max_new_tokens=bounds.RUN_TOKENS,
        seed=request["seed"],
        constrained=request["masks"],
        trace=request["trace"],
        on_start=lambda plan: send({"start": _started(plan)}),
        on_step=lambda step: send({"step": asdict(step)}),
    )
    send({"end": {**plan.to_dict(), "steps": len(plan.last_phase), "unbound": knowledge.grammar.unbound()}})


def _started(plan: Plan) -> dict:
    return {"model": plan.model, "note": plan.note, "observation": plan.first_observation}


JOBS = {job.__name__: job for job in (check, tokenizer, explain, run)}


def main() -> None:
    """Serve jobs; run in the child process."""
    serve(lambda request, send: JOBS[request["job"]](request, send))

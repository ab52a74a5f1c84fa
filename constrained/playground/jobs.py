"""What the playground's processes do, each request plain data and each answer, too."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from multiprocessing.connection import Connection

from constrained.agents.plan import Plan
from constrained.automaton import Vocabulary
from constrained.automaton.vocabulary import open_vocabulary
from constrained.environments.household import plays
from constrained.errors import ConstrainedError
from constrained.grammar import STEP
from constrained.grammar.relations import stand_ins
from constrained.knowledge import ActionKnowledge
from constrained.knowledge.explain import explain_file, what_comes
from constrained.knowledge.lint import Checked, check_file
from constrained.playground import bounds
from constrained.playground.document import source_of
from constrained.process_limits import limit_memory

Say = Callable[[dict], None]
"""Gives an answer, or one more part of it, to whoever asked."""


def check(request: dict, say: Say) -> None:
    """What is wrong with a text, what is in it, its graph, and how a model reads it."""
    checked = check_file(source_of(request))
    found = [finding.to_dict(checked.name, checked.line(finding.place)) for finding in checked.findings]
    say(
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
        "played": plays(knowledge),
        "svg": None if many else knowledge.to_svg(),
        "text": knowledge.to_text(),
    }


@cache
def _vocabulary(name: str) -> Vocabulary:
    return open_vocabulary(name)


def tokenizer(request: dict, say: Say) -> None:
    """Read a tokenizer, whose tokens explanations will ask for."""
    say({"size": _vocabulary(request["tokenizer"]).size})


def explain(request: dict, say: Say) -> None:
    """What may come after a path, and why."""
    explanation, unbound = explain_file(source_of(request), request["path"], values=request["values"])
    said = explanation.to_dict()
    say(
        {
            **said,
            **what_comes(explanation, _vocabulary(request["tokenizer"]), bounds.TOKENS),
            "expected": said["expected"][: bounds.EXPECTED],
            "expected_more": max(0, len(said["expected"]) - bounds.EXPECTED),
            "unbound": unbound,
        }
    )


def run(request: dict, say: Say) -> None:
    """A plan, step by step: "start", each "step", and the "end"."""
    from tqdm import tqdm

    from constrained import generate_plan  # torch: only where something is run

    tqdm.set_lock(threading.RLock())  # its own is for several processes, and is left behind when this one is ended
    knowledge = ActionKnowledge.from_lark(source_of(request), spots=True).bind(**request["values"])
    plan = generate_plan(
        request["task"],
        knowledge.bind(**stand_ins(knowledge.grammar)),
        strategy=request["strategy"],
        model=request["model"],
        max_steps=request["steps"],
        max_new_tokens=bounds.RUN_TOKENS,
        seed=request["seed"],
        constrained=request["masks"],
        trace=request["trace"],
        on_start=lambda plan: say({"start": _started(plan)}),
        on_step=lambda step: say({"step": asdict(step)}),
    )
    say({"end": {**plan.to_dict(), "steps": len(plan.last_phase), "unbound": knowledge.grammar.unbound()}})


def _started(plan: Plan) -> dict:
    return {"model": plan.model, "note": plan.note, "observation": plan.first_observation}


JOBS = {job.__name__: job for job in (check, tokenizer, explain, run)}


def serve(pipe: Connection, memory: int | None) -> None:
    """Do the jobs that come through `pipe`, until it ends; the answers to each end with None.

    Parameters
    ----------
    pipe : Connection
    memory : int or None
        Bytes that the jobs may take.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this process
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if memory is not None:
        limit_memory(memory)
    try:
        pipe.send(None)
        while True:
            job, request = pipe.recv()
            _do(job, request, pipe.send)
            pipe.send(None)
    except (EOFError, BrokenPipeError):
        return


def _end_with_parent() -> None:
    """However the parent ends, no job outlives it."""
    multiprocessing.parent_process().join()
    os._exit(1)


def _do(job: str, request: dict, say: Say) -> None:
    try:
        JOBS[job](request, say)
    except ConstrainedError as error:
        say({"error": error_data(error)})
    except MemoryError:
        say({"error": {"message": "it takes more memory than there is for it", "hint": "make the grammar smaller"}})
    except RecursionError:
        say({"error": {"message": "it is nested too deeply", "hint": "make the grammar simpler"}})
    except (EOFError, BrokenPipeError):  # nobody listens any more
        raise
    except Exception as error:  # a mistake of ours: the page lives on, and the terminal tells where it is
        traceback.print_exc(file=sys.stderr)
        say({"error": {"message": f"something went wrong here: {type(error).__name__}: {error}", "hint": None}})


def error_data(error: ConstrainedError) -> dict:
    """An error as the page shows it."""
    return {
        "message": error.message,
        "hint": error.hint,
        "line": getattr(error, "line", None),
        "column": getattr(error, "column", None),
    }

"""Requests to write, and `generate` as their oracle."""

from contextlib import contextmanager

import pytest

from constrained import compile_grammar
from constrained.agents.step_formats import step_grammar, step_prompt
from constrained.decoding import Request, generate
from constrained.environments.household import HouseholdEnv
from constrained.knowledge import ActionKnowledge


@contextmanager
def no_jump_forward():
    """Leave forced text to the model, under the mask."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("constrained.decoding.loop.jump_forward", lambda *_: [])
        yield


def alone(loaded, request, generator=None, **options):
    return generate(
        loaded, request.prompt, request.grammar, max_new_tokens=request.max_new_tokens, stop=request.stop,
        begun=request.begun, generator=generator, **options,
    )  # fmt: skip


def household_requests(loaded, games, strategy):
    """The first steps of games, as the agents ask for them, after a move and a look round."""
    knowledge = ActionKnowledge.from_lark("household")
    for game in games:
        env = HouseholdEnv(game)
        memory = env.memory(env.reset())
        known, path = knowledge.bind_view(env.admissible()), []
        for n, go in enumerate([None, *[a for a in env.admissible() if a.startswith("go to ")][:2]], 1):
            if go is not None:
                memory.update(go, env.step(go)[0])
                known, path = known.after(go).bind_view(env.admissible()), [*path, go]
            head = step_prompt("", strategy, n, path).removeprefix("\n")
            head = head if loaded.is_embedded else head.rstrip(" ")
            grammar = compile_grammar(step_grammar(strategy, n, path, known.next_action()), loaded.vocabulary)
            yield Request(f"{memory.text()}\n{head}", grammar, 200, begun=head)

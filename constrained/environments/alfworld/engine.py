"""ALFWorld's original engine as a server in a child process. Its requests are:

    ["open", GAME]      start a game; GAME is the text of a game.tw-pddl
    ["reset"]           start it again
    ["step", COMMAND]   do an action

The planner behind the engine is a C++ library that ends its process on an error, overwrites `sys.argv` and is under
the GPL: in a child process it can't take the agent down, and the agent's process loads nothing of it.
"""

from __future__ import annotations

import json
import os
import tempfile
from functools import cache

from constrained.subprocesses import serve


def main() -> None:
    """Serve requests; run in the child process."""
    # alfworld makes its data folder when it is imported. It isn't used, so it should not be in the user's home.
    os.environ.setdefault("ALFWORLD_DATA", tempfile.gettempdir())
    serve(lambda request, send: send(_answer(_engine(), *request)))


@cache
def _engine():
    import textworld
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
    from textworld.envs.pddl import PddlEnv

    return AlfredDemangler(PddlEnv(textworld.EnvInfos(facts=True)))


def _answer(game, request: str, *given: str) -> dict:
    if request == "open":
        game.load(json.loads(given[0]))
    state = game.step(given[0])[0] if request == "step" else game.reset()
    return {"text": state.feedback, "admissible": state["admissible_commands"], "won": state["won"]}

"""The strategies of the papers, each a generator function over an `Episode` that reads like its algorithm.

To add a strategy, write a generator function in a module of this folder, and name it in `STRATEGIES` and
`STEP_FORMATS`.
"""

from constrained.agents.strategies.lumos import lumos, lumos_onetime
from constrained.agents.strategies.open_loop import cot, open_loop
from constrained.agents.strategies.reflexion import reflexion
from constrained.agents.strategies.rewoo import rewoo
from constrained.agents.strategies.stepwise import fireact, stepwise
from constrained.agents.strategies.wese import sese, wese

STRATEGIES = {
    "act": stepwise,
    "cot": cot,
    "fireact": fireact,
    "react": stepwise,
    "reflexion": reflexion,
    "rewoo": rewoo,
    "knowagent": stepwise,
    "lumos": lumos,
    "lumos_onetime": lumos_onetime,
    "wese": wese,
    "sese": sese,
}
"""Name -> the generator function that plays an episode."""

STEP_FORMATS = {
    **dict.fromkeys(STRATEGIES, "react"),
    "act": "act",
    "cot": "cot",
    "fireact": "fireact",
    "knowagent": "knowagent",
}
"""Name -> the format of one step."""

UNEXECUTED = {"cot": cot, "rewoo": rewoo}
"""Strategies that plan without an environment in their own way; the others use `open_loop`."""

__all__ = ["STEP_FORMATS", "STRATEGIES", "UNEXECUTED", "open_loop"]

"""The strategies of the papers, each a generator over an `Episode` that reads like its algorithm."""

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
"""Name -> what plays an episode."""

STEP_FORMATS = {
    "act": "act",
    "cot": "cot",
    "fireact": "fireact",
    "react": "react",
    "reflexion": "react",
    "rewoo": "react",
    "knowagent": "knowagent",
    "lumos": "react",
    "lumos_onetime": "react",
    "wese": "react",
    "sese": "react",
}
"""Name -> what one step of it looks like."""

UNEXECUTED = {"cot": cot, "rewoo": rewoo}
"""Strategies with a way of their own where there is no environment; the others plan by `open_loop` then."""

GROUNDED = ("lumos", "lumos_onetime")
"""Those that play a suite in Lumos's own action space, where it has one."""

__all__ = ["GROUNDED", "STEP_FORMATS", "STRATEGIES", "UNEXECUTED", "open_loop"]

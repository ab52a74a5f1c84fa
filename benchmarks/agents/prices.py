"""Prices of models, and what a run's tokens cost in dollars."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from constrained.agents.messages import POLICY, ROLES, for_role
from constrained.errors import ConstrainedError

_PRICE = re.compile(r"(\w+)=(\d+(?:\.\d+)?)/(\d+(?:\.\d+)?)")


@dataclass(frozen=True)
class Price:
    """Dollars for a million tokens, of the prompt and of the answer."""

    prompt: float
    completion: float


def cost(usage_by_role: Mapping[str, Mapping[str, float]], prices: Mapping[str, Price]) -> float:
    """Dollars for `Plan.usage_by_role`.

    `prices`: by role; a role without its own price has that of its fallback (`messages.for_role`), so "policy" needs
    one.
    """
    total = 0.0
    for role, usage in usage_by_role.items():
        price = for_role(role, prices)
        total += usage["prompt_tokens"] * price.prompt + usage["completion_tokens"] * price.completion
    return total / 1e6


def dollars(records: Sequence[dict], prices: Mapping[str, Price]) -> dict[str, float]:
    """The figure "dollars" per task; nothing without prices."""
    return {"dollars": sum(cost(r["usage"], prices) for r in records) / max(len(records), 1)} if prices else {}


def read_prices(texts: list[str]) -> dict[str, Price]:
    """Prices from options such as ``policy=2.5/10``: dollars for a million tokens read and written.

    ConstrainedError: one is of another form, or "policy" is missing.
    """
    prices = {}
    for text in texts:
        match = _PRICE.fullmatch(text)
        if match is None or match[1] not in (POLICY, *ROLES):
            raise ConstrainedError(
                f"--price {text} is not ROLE=IN/OUT",
                f"dollars for a million tokens, such as policy=2.5/10; the roles are {', '.join((POLICY, *ROLES))}",
            )
        prices[match[1]] = Price(float(match[2]), float(match[3]))
    if prices and POLICY not in prices:
        raise ConstrainedError(
            "--price has none for the role policy", "its price is also that of the roles without one: policy=0/0, say"
        )
    return prices

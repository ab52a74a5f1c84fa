"""WebShop: its goals, its shop over a catalogue in the published form, its reward (Yao et al., 2022)."""

from constrained.environments.webshop.catalogue import (
    Goal,
    Product,
    Shop,
    open_shop,
    read_goals,
    read_instructions,
    read_products,
)
from constrained.environments.webshop.env import WebshopEnv
from constrained.environments.webshop.reward import reward

__all__ = [
    "Goal", "Product", "Shop", "WebshopEnv", "open_shop", "read_goals", "read_instructions", "read_products", "reward",
]  # fmt: skip

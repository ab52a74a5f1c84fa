"""Household games: ALFWorld's own, read from its files, and generated ones."""

from constrained.environments.household.env import HouseholdEnv, is_household
from constrained.environments.household.game import Game, load_games, load_named
from constrained.environments.household.generate import game_for_task, make_game

__all__ = [
    "Game", "HouseholdEnv", "game_for_task", "is_household", "load_games", "load_named", "make_game",
]  # fmt: skip

"""Household games: ALFWorld's own, read from its files, and our own, made from a seed."""

from constrained.environments.household.env import HouseholdEnv
from constrained.environments.household.game import Game, load_game, load_games

__all__ = ["Game", "HouseholdEnv", "load_game", "load_games"]

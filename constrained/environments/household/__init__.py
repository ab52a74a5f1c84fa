"""Household games: ALFWorld's own, read from its files, and our own, made from a seed."""

from constrained.environments.household.env import HouseholdEnv
from constrained.environments.household.game import Game, load_game, load_games, load_named
from constrained.environments.household.make import make_game
from constrained.environments.household.solve import solve
from constrained.environments.household.stage import plays, stage

__all__ = ["Game", "HouseholdEnv", "load_game", "load_games", "load_named", "make_game", "plays", "solve", "stage"]

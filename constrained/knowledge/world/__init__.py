"""Worlds, read from the `//:` lines of a `.lark` file: what actions need and change, and what answers tell."""

from constrained.knowledge.world.reader import read_world
from constrained.knowledge.world.world import World

__all__ = ["World", "read_world"]

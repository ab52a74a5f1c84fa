"""ScienceWorld (Wang et al., 2022); needs its package and Java (the extra ``scienceworld``)."""

from constrained.environments.scienceworld.env import ScienceWorldEnv, suite

__all__ = ["ScienceWorldEnv", "suite"]

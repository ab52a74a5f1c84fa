"""ScienceWorld (Wang et al., 2022), where its package and Java are installed (the extra ``scienceworld``)."""

from constrained.environments.scienceworld.env import ScienceWorldEnv, suite

__all__ = ["ScienceWorldEnv", "suite"]

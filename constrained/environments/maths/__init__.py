"""Word problems: GSM8K and SVAMP, solved by computing."""

from constrained.environments.maths.env import MathsEnv
from constrained.environments.maths.problems import WordProblem, load_gsm8k, load_svamp

__all__ = ["MathsEnv", "WordProblem", "load_gsm8k", "load_svamp"]

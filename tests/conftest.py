"""Hypothesis without deadlines: this suite asserts results, never timings."""

from hypothesis import settings

settings.register_profile("constrained", deadline=None, derandomize=True)
settings.load_profile("constrained")

"""Settings for the whole suite: it asserts results, never timings, and shares its machine."""

import os

from hypothesis import settings

# Before torch is imported: with a thread a core, tiny models crawl whenever a core is busy with something else.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("constrained", deadline=None, derandomize=True)
settings.load_profile("constrained")

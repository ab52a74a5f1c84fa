"""Settings for the whole suite: it asserts results, never timings, and shares its machine."""

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Before torch is imported: with a thread a core, tiny models crawl whenever a core is busy with something else.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Tests' Java processes live for seconds: compiling a second time, better, would take longer than it saves.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1")

# Before anything imports triton (transformers does): without a GPU its kernels run in the interpreter, on the CPU.
if not any(Path("/dev", name).exists() for name in ("nvidiactl", "kfd", "dxg")):
    os.environ.setdefault("TRITON_INTERPRET", "1")

ANY_SPEED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("constrained", derandomize=True, max_examples=30, **ANY_SPEED)
settings.register_profile("thousands", max_examples=2_000, **ANY_SPEED)  # pytest --hypothesis-profile=thousands
settings.load_profile("constrained")

# Python's default looks for garbage after each 700 new objects, which takes a thirtieth of the tests' time.
gc.set_threshold(50_000)


@pytest.fixture(scope="module", autouse=True)
def _freeze():
    """Leave what is there before a module's tests out of garbage collection, which libraries ask for by the dozen."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish():
    gc.unfreeze()

"""Settings for the whole suite: it asserts results, never timings, and shares its machine."""

import gc
import os
from collections import Counter
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


LONG = (
    "test_docs.py", "benchmarks/agents/test_ray_workers.py", "pages/test_playground_browser.py",
    "agents/test_generate.py", "training/test_self_learning.py",
    "environments/scienceworld/test_env.py", "decoding/test_sharded.py", "benchmarks/test_merge.py",
    "decoding/test_batch_generation.py", "agents/strategies/test_baselines.py", "benchmarks/lumos/test_lumos.py",
    "pages/test_trace_browser.py", "playground/test_jobs.py", "cli/test_check_findings.py", "knowledge/test_draft.py",
    "automaton/test_real_tokenizers.py", "benchmarks/self_learning/test_self_learning.py",
    "agents/strategies/test_wese.py", "automaton/test_kernel.py", "agents/strategies/lumos/test_strategies.py",
    "grammar/test_left_recursion.py", "pages/test_site.py", "training/test_tuning.py",
    "tools/embedded_model/test_train.py", "environments/scienceworld/test_process.py", "agents/test_scheduler.py",
)  # fmt: skip
"""Files that take the most CPU time, over 15 s, and the longest first."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Put long files first: where several processes share the files, none is then left alone with a long one."""
    rank = {Path(__file__).parent / name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: rank.get(item.path, len(LONG)))


@pytest.fixture(scope="module", autouse=True)
def _freeze():
    """Leave what is there before a module's tests out of garbage collection, which libraries ask for by the dozen."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish():
    gc.unfreeze()


MOST_REASONS = 12
"""Reasons for skips that the closing lines name, the most frequent first."""


def pytest_terminal_summary(terminalreporter):
    """Close with what was skipped and why, in a line a reason: a green run says what it didn't look at."""
    reasons = skip_reasons(terminalreporter.stats.get("skipped", ()))
    if not reasons:
        return
    terminalreporter.section(f"{sum(reasons.values())} skipped, by reason")
    for reason, count in reasons.most_common(MOST_REASONS):
        terminalreporter.line(f"{count:>5}  {reason}")
    if len(reasons) > MOST_REASONS:
        rest = sum(count for _, count in reasons.most_common()[MOST_REASONS:])
        terminalreporter.line(f"{rest:>5}  for {len(reasons) - MOST_REASONS} other reasons")


def skip_reasons(reports) -> Counter[str]:
    """How many tests were skipped for each reason; of an expected failure, the reason says so."""
    found: Counter[str] = Counter()
    for report in reports:
        words = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        found[" ".join(words.removeprefix("Skipped: ").split())] += 1
    return found

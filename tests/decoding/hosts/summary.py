"""A pytest plugin: what ran in each library's own code, and what was skipped, and why (`make hosts`)."""

from __future__ import annotations

from collections import Counter, defaultdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePath

PACKAGES = {
    "test_vllm_engine.py": ["vllm"],
    "test_vllm.py": ["vllm"],
    "test_sglang.py": ["sglang"],
    "test_llama_cpp_servers.py": ["llama-cpp-python", "xllamacpp"],
    "test_llama_cpp.py": ["llama-cpp-python"],
    "test_outlines_backend.py": ["outlines", "llama-cpp-python", "mlx-lm"],
    "test_hf_processor.py": ["transformers"],
    "test_hf_continuous.py": ["transformers"],
    "test_export.py": ["xgrammar", "llguidance", "llama-cpp-python"],
}
"""Test file -> the packages whose code it runs."""


def pytest_terminal_summary(terminalreporter) -> None:
    """Print a row for each test file: packages and versions, tests passed, failed and skipped, reasons."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    reasons: dict[str, set[str]] = defaultdict(set)
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.stats.get(outcome, ()):
            name = PurePath(report.nodeid.split("::")[0]).name
            counts[name]["failed" if outcome == "error" else outcome] += 1
            if outcome == "skipped" and isinstance(report.longrepr, tuple):
                reasons[name].add(report.longrepr[2].removeprefix("Skipped: "))
    terminalreporter.section("hosts")
    terminalreporter.line(f"{'passed':>6} {'failed':>6} {'skipped':>7}  test file")
    for name, found in sorted(counts.items()):
        packages = ", ".join(f"{one} {_version(one)}" for one in PACKAGES.get(name, ()))
        row = f"{found['passed']:6} {found['failed']:6} {found['skipped']:7}  {name}"
        terminalreporter.line(f"{row}: {packages}" if packages else row)
        for reason in sorted(reasons[name]):
            terminalreporter.line(f"{'':23}skipped: {reason}")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"

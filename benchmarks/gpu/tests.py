"""The tests that need a CUDA device, run by pytest in a process of its own, and their results."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path

FILES = (
    "tests/decoding/device",
    "tests/decoding/test_overlap.py",
    "tests/decoding/test_sharded.py",
    "tests/decoding/hosts/test_hf_processor.py",
)
"""On a CPU all but those of CUDA itself run, too: the kernels in Triton's interpreter."""

PROCESSES = 12
"""Most processes of pytest-xdist, where it is installed; each has a CUDA context of its own."""

MESSAGE = 300
"""Characters of a failure's message that are kept."""


def run(device: str, seconds: float, files: Sequence[str] = FILES) -> dict:
    """Run the tests within a time limit.

    Returns
    -------
    dict
        "passed", "skipped" (numbers) and "failed" (names and reasons), or "reason" if they didn't run to their end.
    """
    checkout = Path(__file__).resolve().parents[2]
    environment = dict(os.environ)
    if device == "cuda":
        environment.pop("TRITON_INTERPRET", None)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *files]
        if importlib.util.find_spec("xdist") is not None:
            command += ["-n", str(min(PROCESSES, os.cpu_count() or 1))]
        try:
            done = subprocess.run(
                command, check=False, cwd=checkout, env=environment, capture_output=True, timeout=seconds
            )
        except subprocess.TimeoutExpired:
            return {"reason": f"not done after {seconds:.0f} s"}
        if done.returncode not in (0, 1):  # all passed, or some failed
            lines = (done.stdout + done.stderr).decode(errors="replace").strip().splitlines()
            return {"reason": lines[-1] if lines else f"pytest ended with {done.returncode}"}
        cases = list(ElementTree.parse(report).iter("testcase"))
    ended = {"failed": [], "skipped": [], "passed": []}
    for case in cases:
        tags = {child.tag for child in case}
        kind = "failed" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else "passed"
        why = "".join(f": {child.get('message', '')[:MESSAGE]}" for child in case if kind == "failed")
        ended[kind].append(f"{case.get('classname')}::{case.get('name')}{why}")
    return {"passed": len(ended["passed"]), "skipped": len(ended["skipped"]), "failed": ended["failed"]}


def table(found: dict) -> str:
    if "reason" in found:
        return f"Tests: {found['reason']}"
    failed = "".join(f"\n- {name}" for name in found["failed"])
    return f"Tests: {found['passed']} passed, {found['skipped']} skipped, {len(found['failed'])} failed{failed}"

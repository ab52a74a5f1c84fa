"""The C kernel is used where it fits; where it doesn't, one warning says so and what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from constrained.automaton import native

ROOT = Path(native.__file__).parents[2]


def imported(program: str, **environment: str) -> str:
    """What a fresh process that runs `program` and then imports the package says on stderr."""
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport constrained.automaton"],
        cwd=ROOT,
        env={**os.environ, "CONSTRAINED_KERNEL": "", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr


def test_a_missing_kernel_is_told_of_once():
    told = imported("import sys; sys.modules['constrained.automaton._kernel'] = None")
    assert told.count("RuntimeWarning") == 1 and "the C kernel is not used" in told
    assert "about forty times slower" in told and native.BUILD in told


def test_a_kernel_of_other_sources_is_not_used():
    stale = "import sys, types; m = types.ModuleType('k'); m.SOURCES = '0'; sys.modules['constrained.automaton._kernel'] = m"  # noqa: E501
    told = imported(stale)
    assert told.count("RuntimeWarning") == 1 and "built from other C files" in told and native.BUILD in told


def test_python_may_be_asked_for():
    assert imported("", CONSTRAINED_KERNEL="python") == ""


@pytest.mark.skipif(native.kernel is None, reason="the C kernel is not built")
def test_the_kernel_is_of_the_checkouts_sources(tmp_path):
    assert native.sources_digest(native.SOURCES) in (None, native.kernel.SOURCES)
    assert native.sources_digest(tmp_path) is None
    (tmp_path / "a.c").write_bytes(b"x")
    before = native.sources_digest(tmp_path)
    (tmp_path / "a.c").write_bytes(b"y")
    assert native.sources_digest(tmp_path) != before

"""The oldest Python that is promised can install what the project is developed with."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OLDEST = PROJECT["requires-python"].removeprefix(">=")
PINS = [
    Requirement(line)
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]


@pytest.mark.parametrize("pin", PINS, ids=str)
def test_a_pinned_version_runs_on_the_oldest_python(pin):
    assert pin.marker is None or pin.marker.evaluate({"python_version": OLDEST})
    try:
        found = metadata(pin.name)
    except PackageNotFoundError:
        pytest.skip("not installed")
    if not pin.specifier.contains(found["Version"].partition("+")[0]):
        pytest.skip(f"{found['Version']} is installed")
    assert SpecifierSet(found["Requires-Python"] or "").contains(f"{OLDEST}.0"), found["Requires-Python"]


def test_the_documents_the_linters_and_the_classifiers_say_the_same():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'python_version = "{OLDEST}"' in text
    assert f'target-version = "py{OLDEST.replace(".", "")}"' in text
    listed = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d", line)]
    assert listed[0] == OLDEST
    assert f"Python {OLDEST} or later;" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"Python {OLDEST} or later, " in (ROOT / "docs" / "environment_tutorial.md").read_text(encoding="utf-8")
    run = f"Python {OLDEST} or later ({' and '.join(listed)} were run)"
    assert run in (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")

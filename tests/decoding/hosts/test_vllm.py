"""The plugin for vLLM, as far as it works without vLLM; in vLLM's own engine: test_vllm_engine."""

import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from constrained import ConstrainedError
from constrained.decoding.hosts import vllm_backend, vllm_processor
from constrained.decoding.hosts.vllm_backend import register
from constrained.decoding.hosts.vllm_processor import CONFLICTING, VllmLogitsProcessor

PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(vllm_processor, "MISSING", [])


def params(constraint, **options):
    return SimpleNamespace(extra_args={"constrained": constraint}, **options)


def test_good_requests_pass_and_wrong_ones_are_refused_with_the_reason(registered):
    for right in ({"choices": ["a"]}, '{"regex": "a+"}', {"tools": [{"name": "find"}]}):
        VllmLogitsProcessor.validate_params(params(right))
    with pytest.raises(ValueError, match="has one of"):
        VllmLogitsProcessor.validate_params(params({"chioces": ["a"]}))
    for name in CONFLICTING:
        with pytest.raises(ValueError, match=f"{name} and a constraint"):
            VllmLogitsProcessor.validate_params(params({"choices": ["a"]}, **{name: [1]}))


def test_no_constraint_passes_where_the_backend_isMISSING(monkeypatch):
    monkeypatch.setattr(vllm_processor, "MISSING", ["is VLLM_PLUGINS set?"])
    with pytest.raises(ValueError, match="VLLM_PLUGINS"):
        VllmLogitsProcessor.validate_params(params({"choices": ["a"]}))
    processor = VllmLogitsProcessor(None, None)
    with pytest.raises(ConstrainedError, match="VLLM_PLUGINS"):
        processor.add_request(0, params({"choices": ["a"]}))
    with pytest.raises(ConstrainedError, match="VLLM_PLUGINS"):
        processor.update_state(SimpleNamespace(added=[(0, params({"choices": ["a"]}), None, [])]))
    free = SimpleNamespace(extra_args=None)
    VllmLogitsProcessor.validate_params(free)
    assert not processor.add_request(0, free)


def test_another_vllm_is_told_apart_and_its_constraints_are_refused(monkeypatch):
    """A package of that name without the functions that the backend wraps."""
    missing: list[str] = []
    for module in (vllm_processor, vllm_backend):
        monkeypatch.setattr(module, "MISSING", missing)
    for name in [name for name in sys.modules if name.split(".")[0] == "vllm"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "vllm", ModuleType("vllm"))
    register()
    with pytest.raises(ValueError, match="can't be added to this version of vLLM"):
        VllmLogitsProcessor.validate_params(params({"choices": ["a"]}))


def test_the_entry_points_name_what_there_is():
    groups = {"vllm.general_plugins": register, "vllm.logits_processors": VllmLogitsProcessor}
    for group, target in groups.items():
        header = f'[project.entry-points."{group}"]\n'
        line = PYPROJECT.read_text(encoding="utf-8").split(header)[1].splitlines()[0]
        name, _, value = line.partition(" = ")
        assert name == "constrained" and EntryPoint(name, value.strip('"'), group).load() is target

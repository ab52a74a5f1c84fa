"""The vLLM plugin around its engine loop: which requests it refuses, what it reads, and how vLLM finds it."""

import importlib
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch

from constrained import ConstrainedError
from constrained.decoding import hosts
from constrained.decoding.hosts import vllm_requests
from constrained.decoding.hosts.specification import CompiledCache
from constrained.decoding.hosts.vllm_processor import VllmLogitsProcessor, VllmV1LogitsProcessor, VllmV2LogitsProcessor
from tests.decoding.hosts.texts import CHOICES, text_of
from tests.decoding.hosts.vllm_requests import EOS, LOADED, VOCABULARY, noise, requests
from tests.decoding.hosts.vllm_stand_in import EngineV1, Request, SamplingParams, config


@pytest.mark.parametrize(
    "params, message",
    [
        (SamplingParams(extra_args={"constrained": {"choices": ["a"], "regex": "b"}}), "has one of"),
        (SamplingParams(extra_args={"constrained": "not JSON"}), "not JSON"),
        (SamplingParams(extra_args={"constrained": {"lark": 'start: "a" (\n'}}), "is never closed"),
        (SamplingParams(extra_args={"constrained": {"knowledge": "household"}}), "not bound"),
        (SamplingParams(min_tokens=3, extra_args={"constrained": {"choices": ["a"]}}), "min_tokens"),
        (SamplingParams(bad_words=["a"], extra_args={"constrained": {"choices": ["a"]}}), "bad_words"),
    ],
    ids=["kinds", "json", "lark", "slots", "min_tokens", "bad_words"],
)
@pytest.mark.parametrize("kind", [VllmLogitsProcessor, VllmV1LogitsProcessor, VllmV2LogitsProcessor])
def test_a_wrong_request_is_refused_before_it_reaches_the_engine(kind, params, message):
    with pytest.raises(ValueError, match=message):
        kind.validate_params(params)
    kind.validate_params(SamplingParams(min_tokens=3, bad_words=["a"]))  # not ours
    kind.validate_params(SamplingParams(extra_args={"constrained": {"choices": ["a"]}}))


def test_where_the_vocabulary_can_not_be_read_only_constrained_requests_end(caplog):
    broken = config("/nowhere", LOADED.logits_width, 1)
    batch = requests(6, 0, [None, {"choices": ["a"]}])
    EngineV1(VllmLogitsProcessor(broken, torch.device("cpu"), True), noise(0), EOS).run(batch)
    for request in batch:
        assert request.finished and (vllm_requests.specification_of(request.params) is None) == (request.output != [1])
    assert "the model's vocabulary can't be read" in caplog.text


def test_every_id_that_ends_a_text_is_known_and_none_beyond_the_logits(settings):
    found = vllm_requests.read_vocabulary(config(settings.model_config.tokenizer, 290, [1, 20, 4000]).model_config)
    assert found.eos_token_ids == [1, 20] and found.size == 290
    wrong = config(settings.model_config.tokenizer, 290).model_config
    wrong.tokenizer_mode = "mistral"
    with pytest.raises(ConstrainedError, match="tokenizer_mode 'mistral'"):
        vllm_requests.read_vocabulary(wrong)


def test_compiled_grammars_are_kept_by_content_and_no_more_than_so_many(monkeypatch):
    monkeypatch.setattr("constrained.decoding.hosts.specification.MAX_COMPILED", 3)
    cache = CompiledCache(VOCABULARY)
    first = cache.matcher({"choices": ["a", "b"]}).compiled
    assert cache.matcher('{"choices": ["a", "b"], "begun": "a"}').compiled is first
    for text in "cdef":
        cache.matcher({"choices": [text]})
        assert cache.matcher({"choices": ["a", "b"]}).compiled is first
    assert len(cache) == 3


def test_outlines_offline_vllm_models_pass_the_constraint_on(settings, monkeypatch):
    """Outlines' own class around a stand-in for `vllm.LLM`: it takes no processors, but sampling parameters."""
    import outlines

    class LLM:
        def get_tokenizer(self):
            return LOADED.tokenizer

        def generate(self, prompts, sampling_params):
            prompts = [prompts] if isinstance(prompts, str) else prompts
            batch = [Request(LOADED.tokenizer.encode(prompt), sampling_params) for prompt in prompts]
            EngineV1(VllmLogitsProcessor(settings, torch.device("cpu"), False), noise(0), EOS).run(batch)
            texts = [text_of(VOCABULARY, request.output) for request in batch]
            return [SimpleNamespace(outputs=[SimpleNamespace(text=text)]) for text in texts]

    module = ModuleType("vllm.sampling_params")
    module.SamplingParams = module.StructuredOutputsParams = SamplingParams
    monkeypatch.setitem(sys.modules, "vllm", ModuleType("vllm"))
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", module)
    model = outlines.from_vllm_offline(LLM())
    params = SamplingParams(40, extra_args={"constrained": {"choices": CHOICES}})
    assert model("What now? ", sampling_params=params) in CHOICES
    assert {text for (text,) in model.batch(["a", "b", "c"], sampling_params=params)} <= set(CHOICES)


PACKAGE = """
import abc
class LogitsProcessor(abc.ABC):
    @classmethod
    def validate_params(cls, sampling_params): ...
    @abc.abstractmethod
    def __init__(self, {arguments}): ...
    @abc.abstractmethod
    def apply(self, logits{context}): ...
    {more}
"""
V1 = PACKAGE.format(
    arguments="vllm_config, device, is_pin_memory",
    context="",
    more="@abc.abstractmethod\n    def is_argmax_invariant(self): ...\n    @abc.abstractmethod\n"
    "    def update_state(self, batch_update): ...",
)
V2 = PACKAGE.format(arguments="vllm_config, req_states", context=", ctx", more="def add_request(self, *a): ...")


@pytest.fixture
def a_package_vllm(tmp_path, monkeypatch):
    """Puts a package `vllm` of these modules on the path, with this project's entry points; all is undone after."""

    def make(parts):
        parts["constrained_under_test-0.dist-info/METADATA"] = "Metadata-Version: 2.1\nName: c\nVersion: 0\n"
        project = Path(__file__).parents[3] / "pyproject.toml"
        parts["constrained_under_test-0.dist-info/entry_points.txt"] = entry_points_of(project)
        for name, text in parts.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        for name in ("vllm_processor",):  # they are to be imported anew
            monkeypatch.delattr(hosts, name)
            monkeypatch.delitem(sys.modules, f"{hosts.__name__}.{name}")

    yield make
    for name in [name for name in sys.modules if name.split(".")[0] == "vllm"]:
        del sys.modules[name]


@pytest.mark.parametrize("interfaces", ["V1's sampler", "and Model Runner V2"])
def test_the_entry_point_is_a_subclass_of_every_interface_that_is_there(a_package_vllm, interfaces):
    parts = {"vllm/v1/sample/logits_processor.py": V1}
    if interfaces != "V1's sampler":
        parts["vllm/v1/worker/gpu/sample/logits_processor/interface.py"] = V2
    a_package_vllm(parts)
    (found,) = {e.value: e for e in entry_points(group="vllm.logits_processors")}.values()
    kind = found.load()
    v1 = importlib.import_module("vllm.v1.sample.logits_processor").LogitsProcessor
    assert issubclass(kind, v1)
    made = kind(SimpleNamespace(model_config=None), "cpu", False)
    assert isinstance(made, v1) and not made.is_argmax_invariant()
    if interfaces != "V1's sampler":
        v2 = importlib.import_module("vllm.v1.worker.gpu.sample.logits_processor.interface").LogitsProcessor
        assert issubclass(kind, v2)
        made = kind(SimpleNamespace(model_config=None), SimpleNamespace(device="cpu"))
        assert isinstance(made, v2)


def entry_points_of(project: Path) -> str:
    """The group as pyproject.toml names it, in the form that an installed package has it."""
    header = '[project.entry-points."vllm.logits_processors"]\n'
    group = project.read_text(encoding="utf-8").split(header)[1].split("\n[")[0]
    return "[vllm.logits_processors]\n" + group.replace('"', "") + "\n"

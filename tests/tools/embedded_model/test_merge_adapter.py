"""A round's adapter is merged into the weights it was tuned on, and into no others."""

import json
import re

import pytest
import torch
from peft import LoraConfig, get_peft_model

from constrained.environments.household import make_game
from constrained.models import load, load_adapters
from tools.embedded_model.examples import make_examples
from tools.embedded_model.merge_adapter import main
from tools.embedded_model.pretraining import Recipe, make_model
from tools.embedded_model.train import make_tokenizer, save_model

TINY = Recipe(hidden=32, layers=1, heads=2, inner=64, entries=400)


@pytest.fixture
def base(tmp_path):
    """A model of the embedded model's kind, with a card."""
    examples = make_examples([make_game(seed=1)], seed=0, other=(), informed=())
    tokenizer = make_tokenizer(examples, TINY.entries, seed=0)
    save_model(make_model(TINY, tokenizer), tokenizer, tmp_path / "base")
    (tmp_path / "base" / "README.md").write_text("# A model\n")
    return tmp_path / "base"


@pytest.fixture
def run(base, tmp_path):
    """A run's folder with an adapter of two rounds, the first the better."""
    loaded, folder = load(base, device="cpu"), tmp_path / "run"
    test = {"won": 1, "steps of won": 7.0, "invalid %": 0.0, "misordered %": 0.0, "pruned mass %": 0.5}
    reports = [{"round": n, "test": {"games": {**test, "success %": score}}} for n, score in enumerate((10, 30, 20))]
    for report in reports[1:]:
        report |= {"synthesis": {"tasks": 12}, "kept": 3, "merged": 3, "texts": 9}
        torch.manual_seed(report["round"])
        shape = LoraConfig(r=2, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
        adapted = get_peft_model(load(base, device="cpu").model, shape)
        adapted.save_pretrained(folder / f"round-{report['round']}" / "adapter")
    head = {
        "tests": [{"name": "games"}], "train": {"name": "others"}, "synthesis": {"seed": 7},
        "schedule": {"rule": "paper", "samples": 2}, "models": {"policy": {"digest": loaded.weights_digest()}},
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(head))
    (folder / "report.json").write_text(json.dumps(reports))
    return folder


def merge(run, base, out, *more: str) -> int:
    return main([str(run), "--base", str(base), "--out", str(out), "--command", "constrained train x", *more])


def logits(loaded) -> torch.Tensor:
    with torch.inference_mode():
        return loaded.model(input_ids=torch.arange(1, 30)[None]).logits


def test_the_best_rounds_weights_alone_are_what_base_and_adapter_were(run, base, tmp_path):
    assert merge(run, base, tmp_path / "new") == 0
    adapted = load_adapters(base, {"learned": run / "round-1" / "adapter"}, device="cpu")["learned"]
    merged = load(tmp_path / "new", device="cpu")
    torch.testing.assert_close(logits(merged), logits(adapted), atol=1e-5, rtol=1e-5)
    assert not torch.allclose(logits(merged), logits(load(base, device="cpu")))
    assert merged.is_embedded
    card = (tmp_path / "new" / "README.md").read_text()
    assert (
        card.startswith("# A model\n")
        and "12 runs of 6 training games (others)" in card.replace("\n", " ")
        and "constrained train x" in card
    )
    assert [int(number) for number in re.findall(r"^\| (\d) \|", card, re.M)] == [0, 1]


def test_another_round_can_be_named(run, base, tmp_path):
    assert merge(run, base, tmp_path / "new", "--round", "2") == 0
    adapted = load_adapters(base, {"learned": run / "round-2" / "adapter"}, device="cpu")["learned"]
    torch.testing.assert_close(logits(load(tmp_path / "new", device="cpu")), logits(adapted), atol=1e-5, rtol=1e-5)


def test_what_was_merged_already_is_not_merged_again(run, base, tmp_path, capsys):
    assert merge(run, base, base) == 0  # in place
    before = (base / "model.safetensors").read_bytes()
    assert merge(run, base, base) == 1
    assert "began with other weights" in capsys.readouterr().err
    assert (base / "model.safetensors").read_bytes() == before


@pytest.mark.parametrize("number", ["0", "3"])
def test_a_round_without_an_adapter_is_an_error(run, base, tmp_path, capsys, number):
    assert merge(run, base, tmp_path / "new", "--round", number) == 1
    assert "rounds 1 to 2 have" in capsys.readouterr().err and not (tmp_path / "new").exists()

"""The embedded model's training: expert play, examples, tokenizer, and runs that resume."""

import random
from functools import partial

import pytest
import torch

from constrained.agents.step_formats import step_prompt
from constrained.environments.household import Game, HouseholdEnv, make_game
from constrained.environments.household.expert import Prior
from constrained.errors import DataError
from constrained.training.batching import collate
from constrained.training.encoding import IGNORED, Encoded
from tools.embedded_model import train
from tools.embedded_model.examples import Example, make_examples, play
from tools.embedded_model.pretraining import Recipe, Run, answer_loss, batches, encode, make_model
from tools.embedded_model.train import main, make_tokenizer, play_games, save_model, training_games

TINY = Recipe(hidden=32, layers=1, heads=2, inner=64, entries=400, tokens=90_000, batch=1024, rate=5e-3)


@pytest.fixture(scope="module")
def games() -> list[Game]:
    return [make_game(seed=seed) for seed in range(12)]


@pytest.fixture(scope="module")
def examples(games) -> list[Example]:
    return make_examples(games, seed=0)


@pytest.fixture(scope="module")
def tokenizer(examples):
    return make_tokenizer(examples, TINY.entries, seed=0)


def test_expert_wins_made_games_even_when_disturbed(games):
    prior = Prior(game.contents(game.start.state) for game in games)
    for number, game in enumerate(games):
        assert play(HouseholdEnv(game), prior, rng=random.Random(number))[1]
    disturbed = [
        play(HouseholdEnv(game), prior, noise=0.2, rng=random.Random(number))[1] for number, game in enumerate(games)
    ]
    assert sum(disturbed) >= 11


def test_labels_are_the_experts_even_where_noise_played(games):
    prior = Prior(game.contents(game.start.state) for game in games)
    examples, _ = play(HouseholdEnv(games[0]), prior, noise=1.0, rng=random.Random(3), limit=10)
    assert any(example.action not in examples[i + 1].path[-1:] for i, example in enumerate(examples[:-1]))
    assert {example.action.split()[0] for example in examples} <= {
        "go", "open", "take", "put", "clean", "heat", "cool", "use", "examine",
    }  # fmt: skip


def test_tokenizer_covers_every_byte_and_keeps_numbers_apart(tokenizer):
    text = "go to désk 10 \u2192 \U0001f600\x00"
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids) == text
    assert tokenizer.unk_token is None
    assert tokenizer.eos_token_id not in ids
    for token in tokenizer.tokenize("take mug 10 from drawer 2"):
        assert not (any(map(str.isalpha, token.lstrip("\u0120"))) and any(map(str.isdigit, token)))


def test_loss_counts_only_the_answer(examples, tokenizer):
    rows = encode(tokenizer, [examples[0].texts("react"), examples[1].texts("act")])
    batch = collate([[row] for row in rows], packing=False)
    for row, example, strategy in ((0, examples[0], "react"), (1, examples[1], "act")):
        taught = batch["labels"][row][batch["labels"][row] != IGNORED]
        prompt, before, action = example.texts(strategy)
        assert prompt == step_prompt(example.memory, strategy, example.n, example.path)
        assert tokenizer.decode(taught) == before + action + tokenizer.eos_token


def test_batches_can_be_entered_anywhere(examples, tokenizer):
    def some(position, count):
        order = batches(examples, tokenizer, tokens=512, seed=1, **position)
        return [next(order) for _ in range(count)]

    unbroken = some({}, 30)
    again = some({"position": unbroken[11][1]}, 18)
    for (batch, position), (other, elsewhere) in zip(unbroken[12:], again):
        assert position == elsewhere
        assert torch.equal(batch["input_ids"], other["input_ids"])


def test_training_lowers_the_loss(examples, tokenizer):
    run = Run(examples, tokenizer, TINY)
    run.train()
    assert run.tokens >= TINY.tokens
    assert sum(run.losses[-5:]) / 5 < 0.6 * sum(run.losses[:3]) / 3


def test_resumed_run_equals_an_unbroken_one(examples, tokenizer, tmp_path):
    unbroken = Run(examples, tokenizer, TINY)
    unbroken.train(steps=8)
    Run(examples, tokenizer, TINY, tmp_path / "run.pt").train(steps=3)
    resumed = Run(examples, tokenizer, TINY, tmp_path / "run.pt")
    resumed.train(steps=5)
    assert resumed.losses == unbroken.losses
    for name, weight in unbroken.model.state_dict().items():
        assert torch.equal(weight, resumed.model.state_dict()[name]), name


def test_checkpoint_of_another_recipe_is_refused(examples, tokenizer, tmp_path):
    Run(examples, tokenizer, TINY, tmp_path / "run.pt").train(steps=1)
    with pytest.raises(DataError, match="another recipe"):
        Run(examples, tokenizer, Recipe(hidden=64, layers=1, heads=2), tmp_path / "run.pt")


def test_padding_does_not_change_the_loss(examples, tokenizer):
    model = make_model(TINY, tokenizer).eval()
    rows = encode(tokenizer, [examples[0].texts("act")])
    short = collate([rows], packing=False)
    longer = collate([rows, [Encoded((0,) * 200, (IGNORED,) * 200)]], packing=False)
    torch.testing.assert_close(answer_loss(model, short), answer_loss(model, longer))


def test_saved_model_loads_with_transformers(examples, tokenizer, tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = make_model(TINY, tokenizer)
    save_model(model, tokenizer, tmp_path)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert AutoTokenizer.from_pretrained(tmp_path).eos_token_id == loaded.config.eos_token_id
    ids = torch.arange(1, 20)[None]
    torch.testing.assert_close(loaded(ids).logits, model(ids).logits)


def test_a_model_in_training_plays_as_agents_do(games, tokenizer):
    model = make_model(TINY, tokenizer)
    for masks in (True, False):
        figures = play_games(model, tokenizer, games[:4], step_format="react", masks=masks, limit=3)
        assert figures["games"] == 4 and (figures["no effect"] == 0) == masks


def test_without_data_it_makes_its_own_games_but_not_where_data_was_named(monkeypatch, tmp_path):
    monkeypatch.setenv("CONSTRAINED_DATA", str(tmp_path))
    games, source = training_games(None, made=2, seed=5)
    assert len(games) == 2 and "made" in source
    with pytest.raises(DataError, match="games_2.1.1_train"):
        training_games(str(tmp_path), made=2, seed=5)


def test_command_trains_saves_and_describes_a_model(monkeypatch, tmp_path):
    monkeypatch.setenv("CONSTRAINED_DATA", str(tmp_path))
    monkeypatch.setattr(train, "play_games", partial(play_games, limit=4))  # it writes at random, and on and on
    sizes = "--hidden 32 --layers 1 --heads 2 --inner 64 --entries 400 --tokens 3000 --batch 512 --made 4 --threads 1"
    main([*sizes.split(), "--out", str(tmp_path / "model"), "--work", str(tmp_path / "work"), "--precision", "fp32"])
    assert {path.name for path in (tmp_path / "model").iterdir()} >= {
        "README.md", "config.json", "generation_config.json", "model.safetensors",
        "tokenizer.json", "tokenizer_config.json",
    }  # fmt: skip
    card = (tmp_path / "model" / "README.md").read_text()
    assert "--tokens 3000" in card and str(tmp_path) not in card
    assert "| `knowagent` | masked | 1 |" in card

"""`tune`: broken off it ends as unbroken, the model it is given stays, and what goes wrong is said."""

import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from filelock import FileLock
from safetensors import SafetensorError
from safetensors.torch import load_file

from constrained.errors import DataError, ModelError, TrainingError
from constrained.models import load, load_adapters, load_roles
from constrained.training import trainer
from constrained.training.batching import BatchSampler, RowDataset, collate, lay_out_steps
from constrained.training.encoding import Span, TrainingText, encode_all
from constrained.training.settings import PRESETS
from constrained.training.tuning import Tuning, tune
from tests.forked import ended, forked
from tests.training.tiny import tiny_model

QUICK = Tuning(epochs=2, batch=2, accumulation=2, dropout=0.1, rate=1e-2)
WEIGHTS = "adapter_model.safetensors"


class Broken(Exception):
    pass


@pytest.fixture
def every_step(monkeypatch):
    """A checkpoint after each step."""
    monkeypatch.setattr(trainer, "SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(trainer, "SHARE_OF_TIME", float("inf"))


def break_after(monkeypatch, step):
    """Raise at the end of a step, before its checkpoint is written."""
    go_on = trainer.Progress.on_step_end

    def on_step_end(self, args, state, control, **more):
        if state.global_step == step:
            raise Broken
        go_on(self, args, state, control, **more)

    monkeypatch.setattr(trainer.Progress, "on_step_end", on_step_end)


@pytest.fixture(scope="module")
def unbroken(tiny, texts, tmp_path_factory):
    return tune(tiny, texts, QUICK, tmp_path_factory.mktemp("unbroken"))


# what comes of it


def test_an_adapter_that_loads_and_has_learned(tiny, texts, unbroken):
    assert sorted(file.name for file in unbroken.folder.iterdir() if file.name[0] != ".") == [
        "adapter_config.json",
        WEIGHTS,
        "tuning.json",
    ]
    adapted = load_adapters(tiny, {"a": unbroken.folder})["a"]
    assert load_roles(tiny, {"planner": unbroken.folder})["planner"].name == f"{tiny.name}+planner"
    assert mean_loss(adapted, texts) < mean_loss(tiny, texts)
    assert unbroken.steps == 10 and unbroken.left_out == 0 and unbroken.loss > 0 and unbroken.seconds > 0
    kept, _ = encode_all(tiny, texts, 4096)
    assert unbroken.tokens == 2 * sum(len(text.ids) for text in kept)


def mean_loss(loaded, texts) -> float:
    with torch.no_grad():
        return sum(sum_of_losses(loaded.model, [[text]], False)[0].item() for text in encode_all(loaded, texts, 256)[0])


def sum_of_losses(model, rows, packing):
    """The loss as torch has it, over all positions, and how many are learned."""
    batch = collate(rows, packing)
    labels = batch.pop("labels")
    del batch["logits_to_keep"]
    logits = model(**batch, use_cache=False).logits  # with a cache, positions tell texts no longer apart
    losses = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), reduction="sum")
    return losses, (labels[:, 1:] != -100).sum()


def test_the_given_model_stays_as_it_is(texts, tmp_path):
    model = tiny_model()
    before, state = model.weights_digest(), torch.random.get_rng_state()
    for tuning in (QUICK, replace(QUICK, whole=True)):
        tune(model, texts, replace(tuning, epochs=1), tmp_path / str(tuning.whole))
        assert model.weights_digest() == before
        assert all(weight.requires_grad and weight.grad is None for weight in model.model.parameters())
        assert model.model.config.use_cache and not model.model.training
    assert torch.equal(torch.random.get_rng_state(), state)


def test_called_again_it_returns_at_once(tiny, texts, unbroken, monkeypatch):
    break_after(monkeypatch, 1)
    assert tune(tiny, texts, QUICK, unbroken.folder) == unbroken


def test_the_seed_decides(tiny, texts, unbroken, tmp_path):
    same, other = (tune(tiny, texts, replace(QUICK, seed=seed), tmp_path / str(seed)) for seed in (0, 1))
    wanted = (unbroken.folder / WEIGHTS).read_bytes()
    assert (same.folder / WEIGHTS).read_bytes() == wanted != (other.folder / WEIGHTS).read_bytes()


def test_an_adapter_goes_on(tiny, texts, unbroken, tmp_path):
    further = tune(tiny, texts, replace(QUICK, rank=2, epochs=1), tmp_path / "further", adapter=unbroken.folder)
    assert json.loads((further.folder / "adapter_config.json").read_text())["r"] == QUICK.rank
    assert further.loss < tune(tiny, texts, replace(QUICK, epochs=1), tmp_path / "anew").loss


def test_whole_models_are_saved_with_their_tokenizer(tiny, texts, tmp_path):
    tuned = tune(tiny, texts, replace(QUICK, whole=True), tmp_path / "whole")
    saved = load(str(tuned.folder))
    assert saved.weights_digest() != tiny.weights_digest() and saved.model.config.use_cache
    assert saved.tokenizer.encode("go to desk 1") == tiny.tokenizer.encode("go to desk 1")
    assert mean_loss(saved, texts) < mean_loss(tiny, texts)


@pytest.mark.parametrize("other", [{"checkpointing": True}, {"targets": ("all-linear",)}, {"precision": "bf16"}])
def test_other_settings(tiny, texts, tmp_path, other, unbroken):
    tuned = tune(tiny, texts, replace(QUICK, **other), tmp_path)
    layers = len(load_file(tuned.folder / WEIGHTS))
    assert layers == (2 * 2 * 7 if "targets" in other else 2 * 2 * 2)
    assert abs(tuned.loss - unbroken.loss) < 0.3


# broken off


@pytest.mark.parametrize("step, packing", [(3, False), (5, False), (6, True)])
def test_broken_off_it_ends_as_unbroken(tiny, texts, tmp_path, monkeypatch, every_step, step, packing):
    tuning = replace(QUICK, packing=packing, epochs=8 if packing else 2)
    with monkeypatch.context() as inner:
        break_after(inner, step)
        with pytest.raises(Broken):
            tune(tiny, texts, tuning, tmp_path / "broken")
    assert not (tmp_path / "broken/adapter_config.json").exists()
    checkpoints = sorted(p.name for p in (tmp_path / "broken/checkpoints").glob("step-*"))
    assert checkpoints == [f"step-{step - 2}", f"step-{step - 1}"]
    broken, whole = (tune(tiny, texts, tuning, tmp_path / name) for name in ("broken", "unbroken"))
    assert (broken.folder / WEIGHTS).read_bytes() == (whole.folder / WEIGHTS).read_bytes()
    assert broken.loss == whole.loss and not (tmp_path / "broken/checkpoints").exists()


def test_all_weights_broken_off_end_as_unbroken(tiny, texts, tmp_path, monkeypatch, every_step, unbroken):
    tuning = replace(QUICK, whole=True, rate=1e-3)
    with monkeypatch.context() as inner:
        break_after(inner, 7)
        with pytest.raises(Broken):
            tune(tiny, texts, tuning, tmp_path / "broken")
    broken, whole = (tune(tiny, texts, tuning, tmp_path / name) for name in ("broken", "unbroken"))
    assert load(str(broken.folder)).weights_digest() == load(str(whole.folder)).weights_digest()


MANY = [TrainingText((Span(f"cabinet {n}", False), Span(f"go to {n}", True))) for n in range(40)]


def tune_and_die(folder):
    """Tune with a checkpoint after each step; the process is killed before the seventh is sealed."""
    trainer.SECONDS_BETWEEN, trainer.SHARE_OF_TIME = 0.0, float("inf")
    seal = trainer.seal

    def seal_and_die(part, folder, step):
        if step == 7:
            os.kill(os.getpid(), signal.SIGKILL)
        seal(part, folder, step)

    trainer.seal = seal_and_die
    tune(tiny_model(), MANY, QUICK, folder)


def test_killed_it_ends_as_unbroken(tmp_path):
    folder = tmp_path / "killed"
    assert ended(forked(lambda: tune_and_die(folder))) == -signal.SIGKILL and list(folder.glob("checkpoints/step-*"))
    assert not (folder / "adapter_config.json").exists()
    killed, unbroken = (tune(tiny_model(), MANY, QUICK, tmp_path / name) for name in ("killed", "unbroken"))
    assert killed.steps == 20 and killed.loss == unbroken.loss
    assert (folder / WEIGHTS).read_bytes() == (unbroken.folder / WEIGHTS).read_bytes()


def test_broken_off_while_the_result_is_written(tiny, texts, tmp_path, monkeypatch, unbroken):
    replace_file = os.replace

    def fail(source, target):
        if Path(target).name == "adapter_config.json":
            raise Broken
        replace_file(source, target)

    with monkeypatch.context() as inner:
        inner.setattr(os, "replace", fail)
        with pytest.raises(Broken):
            tune(tiny, texts, QUICK, tmp_path)
    assert not (tmp_path / "adapter_config.json").exists()
    assert tune(tiny, texts, QUICK, tmp_path).loss == unbroken.loss
    assert (tmp_path / WEIGHTS).read_bytes() == (unbroken.folder / WEIGHTS).read_bytes()


@pytest.mark.parametrize("damage", ["cut", "other bytes", "file missing", "list missing"])
def test_a_damaged_checkpoint_is_passed_over(tiny, texts, tmp_path, monkeypatch, every_step, unbroken, caplog, damage):
    with monkeypatch.context() as inner:
        break_after(inner, 5)
        with pytest.raises(Broken):
            tune(tiny, texts, QUICK, tmp_path)
    last = tmp_path / "checkpoints/step-4"
    file = last / "optimizer.pt"
    if damage == "cut":
        os.truncate(file, 100)
    elif damage == "other bytes":
        file.write_bytes(file.read_bytes()[:-1] + b"x")
    else:
        (last / "files.json" if damage == "list missing" else file).unlink()
    tune(tiny, texts, QUICK, tmp_path)
    (said,) = [record.getMessage() for record in caplog.records if "constrained" in record.name]
    assert "step-4 is damaged" in said and said.endswith("resuming from step-3")
    assert (tmp_path / WEIGHTS).read_bytes() == (unbroken.folder / WEIGHTS).read_bytes()


# rows


def test_packed_texts_have_the_loss_and_gradients_of_unpacked_ones(texts):
    model = tiny_model().model
    kept, _ = encode_all(tiny_model(), texts, 256)
    gradients, losses = [], []
    for rows, packing in (([[text] for text in kept[:5]], False), ([kept[:2], kept[2:5]], True)):
        model.zero_grad()
        loss, count = sum_of_losses(model, rows, packing)
        (loss / count).backward()
        losses.append((loss / count).item())
        gradients.append(torch.cat([weight.grad.flatten() for weight in model.parameters()]))
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert torch.allclose(*gradients, atol=1e-6)


def test_packing_fills_rows_and_learns_alike(tiny, texts, tmp_path):
    """With all texts in one step, packed and unpacked are the same training."""
    plain = Tuning(epochs=6, batch=20, accumulation=1, dropout=0.0, rate=1e-2, max_length=256)
    packed = replace(plain, packing=True)
    one, other = (tune(tiny, texts, tuning, tmp_path / str(tuning.packing)) for tuning in (plain, packed))
    assert one.steps == other.steps == 6 and one.tokens == other.tokens
    assert one.loss == pytest.approx(other.loss, rel=1e-4)


@pytest.mark.parametrize("packed", [None, 100])
def test_every_text_is_read_once_an_epoch(packed):
    lengths = [n % 37 + 1 for n in range(500)]
    steps = lay_out_steps(lengths, rows=8, epochs=2, seed=0, packed=packed)
    read = [text for step in steps for row in step for text in row]
    assert (
        len(read) == 1000 and sorted(read[:500]) == sorted(read[500:]) == list(range(500)) and read[:500] != read[500:]
    )
    assert all(len(step) <= 8 for step in steps)
    rows = [sum(lengths[text] for text in row) for step in steps for row in step]
    assert max(rows) <= (packed or 37)
    if packed:
        assert sum(rows) / len(rows) > 95
    else:  # rows of about the same length are read together
        padding = sum(max(lengths[row[0]] for row in step) * len(step) for step in steps) - sum(rows)
        assert padding < 0.1 * sum(rows)
    assert len(lay_out_steps(lengths, rows=8, epochs=0.5, seed=0, packed=packed)) == round(len(steps) / 4)


def test_processes_share_a_step_and_keep_step():
    steps = lay_out_steps([5] * 50, rows=2 * 3 * 4, epochs=1, seed=0)
    shares = [list(BatchSampler(steps, 2, 3, process, 4)) for process in range(4)]
    assert [len(share) for share in shares] == [len(steps) * 3] * 4 == [9] * 4
    assert sorted(row for share in shares for batch in share for row in batch) == [(n,) for n in range(50)]
    empty = collate([], False)
    assert empty["input_ids"].shape == (1, 1) and not len(empty["logits_to_keep"])
    assert [len(row) for row in (RowDataset(["a", "b", "c"])[(0, 2)], RowDataset(["a"])[(0,)])] == [2, 1]


# what goes wrong


def test_errors_say_what_to_do(tiny, texts, tmp_path, unbroken):
    folder = tmp_path / "new"
    with pytest.raises(TrainingError, match="(?s)no layer query_proj .*targets may be q_proj, k_proj, v_proj"):
        tune(tiny, texts, replace(QUICK, targets=("query_proj", "v_proj")), folder)
    with pytest.raises(TrainingError, match="can't be tuned from an adapter"):
        tune(tiny, texts, replace(QUICK, whole=True), folder, adapter=unbroken.folder)
    with pytest.raises(ModelError, match="no such folder"):
        tune(tiny, texts, QUICK, folder, adapter=tmp_path / "nowhere")
    with pytest.raises(ModelError, match="has an adapter already"):
        tune(load_adapters(tiny, {"a": unbroken.folder})["a"], texts, QUICK, folder)
    with pytest.raises(TrainingError, match="fp16 needs a GPU"):
        tune(tiny, texts, replace(QUICK, precision="fp16"), folder)
    with pytest.raises(TrainingError, match="no text to tune on"):
        tune(tiny, [], QUICK, folder)


@pytest.mark.parametrize(
    "wrong",
    [{"epochs": 0}, {"batch": 0}, {"schedule": "sine"}, {"dropout": 1.0}, {"precision": "int4"}, {"targets": "q_proj"}],
)
def test_settings_out_of_range(wrong):
    with pytest.raises(TrainingError, match=f"{next(iter(wrong))} is .*\n  hint: give "):
        Tuning(**wrong)


def test_the_papers_settings():
    assert PRESETS["knowagent"].batch * PRESETS["knowagent"].accumulation == 16  # the released script: 2 on 8 devices
    assert all(PRESETS[name].accumulation == 1 for name in ("small", "chooser"))
    assert PRESETS["knowagent"] == Tuning() and Tuning().targets == ("q_proj", "v_proj")
    lumos = PRESETS["lumos"]
    assert lumos.whole and lumos.batch * lumos.accumulation == 128 and lumos.schedule == "linear"


def test_another_tuning_is_not_mixed_in(tiny, texts, unbroken, tmp_path):
    folder = unbroken.folder
    with pytest.raises(DataError, match=r"other settings \(rate\)"):
        tune(tiny, texts, replace(QUICK, rate=1.0), folder)
    with pytest.raises(DataError, match="other texts"):
        tune(tiny, texts[1:], QUICK, folder)
    with pytest.raises(DataError, match="other base weights"):
        tune(tiny_model(seed=1), texts, QUICK, folder)
    with pytest.raises(DataError, match="other adapter to go on from"):
        tune(tiny, texts, QUICK, folder, adapter=folder)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(DataError, match="isn't of this run"):
        tune(tiny, texts, QUICK, tmp_path)
    (tmp_path / "tuning.json").write_text('{"run"')
    with pytest.raises(DataError, match="damaged"):
        tune(tiny, texts, QUICK, tmp_path)


def test_one_process_at_a_time(tiny, texts, tmp_path):
    with FileLock(tmp_path / ".tuning.json.lock"), pytest.raises(DataError, match="another process is tuning into"):
        tune(tiny, texts, QUICK, tmp_path)


def test_a_loss_that_is_no_number_ends_it(texts, tmp_path, every_step):
    model = tiny_model()
    with torch.no_grad():
        model.model.model.layers[0].mlp.down_proj.weight[0] = float("inf")
    with pytest.raises(TrainingError, match="the loss of step 1 is nan"):
        tune(model, texts, QUICK, tmp_path)


def test_weights_that_are_no_numbers_are_not_saved(tiny, texts, tmp_path, monkeypatch):
    """Gradients may be none where the loss is one: nothing but the weights shows it after the last step."""
    stop = trainer.Progress.on_step_end

    def spoil(self, args, state, control, model=None, **more):
        stop(self, args, state, control, **more)
        if state.global_step == state.max_steps:
            next(weight for weight in model.parameters() if weight.requires_grad).data[0] = float("nan")

    monkeypatch.setattr(trainer.Progress, "on_step_end", spoil)
    with pytest.raises(TrainingError, match="weights .*lora_A.* are not finite after step 10"):
        tune(tiny, texts, QUICK, tmp_path)
    assert not (tmp_path / "adapter_config.json").exists()


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"),
        RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 123 bytes"),
    ],
)
def test_no_memory_left(tiny, texts, tmp_path, monkeypatch, error):
    def full(*_, **__):
        raise error

    monkeypatch.setattr(tiny.model.__class__, "forward", full)
    with pytest.raises(TrainingError, match="(?s)no memory is left.*batch 1 with accumulation 4, or gradient check"):
        tune(tiny, texts, QUICK, tmp_path)


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
        RuntimeError("[enforce fail at inline_container.cc:672] . PytorchStreamWriter failed writing file data/0"),
    ],
)
def test_no_room_on_the_disk(tiny, texts, tmp_path, monkeypatch, every_step, unbroken, error):
    def full(*_):
        raise error

    with monkeypatch.context() as inner:
        inner.setattr(trainer, "seal", full)
        with pytest.raises(DataError, match="(?s)can't write to .*free some space and call again"):
            tune(tiny, texts, QUICK, tmp_path)
    assert tune(tiny, texts, QUICK, tmp_path).loss == unbroken.loss


def test_models_that_see_across_packed_texts_are_found(texts, tmp_path, monkeypatch):
    model = tiny_model()
    forward = model.model.__class__.forward

    def without_positions(self, *args, position_ids=None, **more):
        return forward(self, *args, **more)

    monkeypatch.setattr(model.model.__class__, "forward", without_positions)
    with pytest.raises(TrainingError, match="attend to each other"):
        tune(model, texts, replace(QUICK, packing=True), tmp_path)


def test_a_text_without_prompt_or_end(tiny, tmp_path):
    texts = [TrainingText((Span("go to desk 1\ngo to desk 2", True),), ends=False)]
    assert tune(tiny, texts, QUICK, tmp_path).steps == 2

"""A GGUF file is to transformers what its own reader makes of it: configuration, weights, token ids."""

from functools import cache

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from constrained.decoding.plain_llama import PlainLlama
from constrained.decoding.prefix_cache import PrefixCache
from constrained.errors import ModelError
from constrained.gguf_file import read_gguf
from constrained.models import load
from constrained.models.gguf import read_model
from tests.decoding.gguf_file import write_gguf
from tests.decoding.tiny import tiny_llama
from tests.smollm2 import smollm2_file

gguf = pytest.importorskip("gguf", reason="needs the extra gguf")

TEXTS = (
    "go to drawer 1",
    "  Two spaces,\ttabs\r\n\nand 12345 digits; don't.",
    "Ünïcödé, 中文, 🙂, \u200b and <|im_start|>user\nspecial<|im_end|> tokens </s>",
    "def f(x):\n    return {'a': [1, 2.5e-3]}\n",
    "",
)
CHAT = [
    {"role": "system", "content": "You are in a kitchen."},
    {"role": "user", "content": "Where is the egg?"},
    {"role": "assistant", "content": "In the fridge."},
    {"role": "user", "content": "Take it."},
]
SIZES = {
    "vocab_size": 300, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 256, "bos_token_id": 0, "eos_token_id": 1,
}  # fmt: skip


def tied_llama():
    model = tiny_llama(300)
    model.config.tie_word_embeddings = True
    return model


MODELS = {
    "llama": lambda: tiny_llama(300),
    "tied": tied_llama,
    "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**SIZES, tie_word_embeddings=False)),
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**SIZES)),
}


def same_model(path):
    """Hold a file's model to that of transformers' reader, and return both."""
    model, expected = (
        load(f"transformers:{path}").model,
        AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name),
    )
    ours, theirs = model.state_dict(), expected.state_dict()
    assert ours.keys() == theirs.keys()
    assert [name for name in ours if ours[name].dtype != theirs[name].dtype] == []
    assert [name for name in ours if not torch.equal(ours[name], theirs[name])] == []
    ours, theirs = model.config.to_dict(), expected.config.to_dict()
    unlike = {name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)}
    assert unlike <= {"_name_or_path", "_model_name_or_path", "quantization_config"}
    assert model.generation_config.to_dict() == expected.generation_config.to_dict()
    return model, expected


@pytest.mark.parametrize("model", MODELS)
def test_each_architecture(model, tmp_path):
    torch.manual_seed(0)
    same_model(write_gguf(tmp_path / "tiny.gguf", MODELS[model]()))


@pytest.mark.parametrize("kind", ["F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"])
def test_each_kind_that_fits_a_tiny_model(kind, tmp_path):
    same_model(write_gguf(tmp_path / "tiny.gguf", tiny_llama(300), kind=kind))


def test_a_general_model(monkeypatch):
    # Transformers' reader makes the table of names anew for each of 397 modules.
    monkeypatch.setattr(gguf, "get_tensor_name_map", cache(gguf.get_tensor_name_map))
    model, expected = same_model(smollm2_file())
    tokenizer = load("transformers:smollm2").tokenizer
    ids = tokenizer.apply_chat_template(CHAT, add_generation_prompt=True, return_dict=False)
    assert tokenizer.decode(ids).endswith("<|im_start|>user\nTake it.<|im_end|>\n<|im_start|>assistant\n")
    with torch.inference_mode():
        logits, others = (one(input_ids=torch.tensor([ids])).logits for one in (model, expected))
    assert torch.equal(logits, others)


@pytest.mark.parametrize("model", ["llama", "tied", "smollm2"])
def test_a_llama_runs_without_transformers_until_its_model_is_asked_for_and_the_logits_are_the_same(model, tmp_path):
    path = smollm2_file() if model == "smollm2" else write_gguf(tmp_path / "tiny.gguf", MODELS[model]())
    loaded = load(f"transformers:{path}", device="cpu")
    assert isinstance(loaded.runs, PlainLlama) and loaded.vocabulary.size == loaded.logits_width
    texts = [[5, 7, 9, 11, 13], [5, 7, 9, 20], [5, 7, 9, 20, 21]]  # the cache is cropped, and continued
    held = PrefixCache()
    logits = [held.next_logits(loaded.runs, ids) for ids in texts]
    ends, context, weights = loaded.eos_token_ids, loaded.max_context, loaded.parameters
    whole = load((loaded.model, loaded.tokenizer))
    assert loaded.runs is loaded.model and isinstance(loaded.model, LlamaForCausalLM)
    assert (ends, context, weights) == (whole.eos_token_ids, whole.max_context, whole.parameters)
    held = PrefixCache()
    assert all(torch.equal(one, held.next_logits(loaded.model, ids)) for one, ids in zip(logits, texts))


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_the_tokenizer(kind, tmp_path):
    path = write_gguf(tmp_path / "tiny.gguf", MODELS[kind](), tokenizer__chat_template="{{ messages[0].content }}")
    tokenizer, expected = (
        load(f"transformers:{path}").tokenizer,
        AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name),
    )
    assert [tokenizer.encode(text) for text in TEXTS] == [expected.encode(text) for text in TEXTS]
    assert tokenizer.special_tokens_map == expected.special_tokens_map
    assert tokenizer.chat_template == expected.chat_template == "{{ messages[0].content }}"
    assert tokenizer.backend_tokenizer.to_str() == expected.backend_tokenizer.to_str()


def test_another_type_of_weights(tmp_path):
    path = write_gguf(tmp_path / "tiny.gguf")
    whole, half = (
        load(f"transformers:{path}").model.state_dict(),
        load(f"transformers:{path}", dtype="bfloat16").model.state_dict(),
    )
    assert isinstance(load(f"transformers:{path}", dtype="bfloat16").runs, LlamaForCausalLM)
    assert all(torch.equal(half[name], whole[name].bfloat16()) for name in whole)


def test_what_is_read_can_be_trained_and_saved(tmp_path):
    loaded = load(f"transformers:{write_gguf(tmp_path / 'tiny.gguf')}")
    loss = loaded.model(input_ids=torch.tensor([[0, 5, 9]]), labels=torch.tensor([[0, 5, 9]])).loss
    loss.backward()
    assert loaded.model.model.layers[0].self_attn.q_proj.weight.grad.abs().sum() > 0
    loaded.model.save_pretrained(tmp_path / "saved")
    loaded.tokenizer.save_pretrained(tmp_path / "saved")
    assert torch.equal(load(tmp_path / "saved").model.lm_head.weight, loaded.model.lm_head.weight)


def renamed(path, before: bytes, after: bytes):
    assert len(before) == len(after) and before in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(before, after))
    return path


def test_what_is_not_known_is_left_to_transformers(tmp_path):
    path = write_gguf(tmp_path / "tiny.gguf")
    assert read_model(read_gguf(path)) is not None
    assert read_model(read_gguf(renamed(path, b"blk.1.ffn_up.weight", b"blk.1.ffn_ap.weight"))) is None
    assert (
        read_model(
            read_gguf(
                renamed(
                    path,
                    b"general.architecture\x08\0\0\0\5\0\0\0\0\0\0\0llama",
                    b"general.architecture\x08\0\0\0\5\0\0\0\0\0\0\0other",
                )
            )
        )
        is None
    )
    with pytest.raises(ModelError, match="can't be loaded: .*other"):
        load(f"transformers:{path}")


def test_metadata_that_contradict_the_tensors(tmp_path):
    path = write_gguf(tmp_path / "tiny.gguf")
    whole = path.read_bytes()
    many = b"llama.block_count\x04\0\0\0"
    path.write_bytes(whole.replace(many + b"\2\0\0\0", many + b"\xff\xff\xff\xff"))
    with pytest.raises(ModelError, match="tiny.gguf is damaged: 4,294,967,295 layers have 21 tensors"):
        load(f"transformers:{path}")
    wide = b"llama.feed_forward_length\x04\0\0\0"
    path.write_bytes(whole.replace(wide + b"\x40\0\0\0", wide + b"\xff\xff\xff\xff"))
    with pytest.raises(ModelError, match=r"ffn_gate.weight of shape \[4294967295, 32\] has the shape \[64, 32\]"):
        load(f"transformers:{path}")
    path.write_bytes(whole.replace(b"llama.block_count\x04\0\0\0\2", b"llama.block_count\x04\0\0\0\3"))
    with pytest.raises(ModelError, match="blk.2.attn_norm.weight of shape .* is missing"):
        load(f"transformers:{path}")

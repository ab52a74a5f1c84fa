"""Texts that a model writes in every way of this project, to hold a sharded one to a whole one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from accelerate import dispatch_model
from transformers import AutoModelForCausalLM

from constrained import Grammar, compile_grammar
from constrained.decoding import custom_generate
from constrained.decoding.device import DeviceTables
from constrained.decoding.generation import generate, generate_batch
from constrained.decoding.request import Request
from constrained.models import LoadedModel, load
from tests.decoding.tiny import tiny_llama, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
GRAMMAR = Grammar.from_lark(
    'start: "Thought: " /[a-z ]{1,12}/ "\\nAction: go to " ("desk 1" | "desk 10" | "drawer 1")\n'
)
PROMPTS = ["A room.", "You are in a room with a desk. ", "x"]


def texts(loaded: LoadedModel, temperature: float = 0.0) -> list[str]:
    compiled = compile_grammar(GRAMMAR, loaded.vocabulary)
    requests = [Request(p, compiled, 60, generator=torch.Generator().manual_seed(i)) for i, p in enumerate(PROMPTS)]
    alone = generate(loaded, PROMPTS[0], compiled, max_new_tokens=60)
    return [alone.text, *(one.text for one in generate_batch(loaded, requests, temperature=temperature))]


def by_generate(model: Any, device: str, tables: bool = False, **options: Any) -> list[list[int]]:
    prompts = torch.arange(10).reshape(2, 5) + 60
    compiled = compile_grammar(GRAMMAR, load((tiny_llama(len(TOKENIZER)), TOKENIZER)).vocabulary)
    grammar = DeviceTables.build(compiled, tokenizer=TOKENIZER, device=device) if tables else compiled
    out = model.generate(
        prompts.to(device), attention_mask=torch.ones_like(prompts).to(device), custom_generate=custom_generate,
        grammar=grammar, pad_token_id=1, do_sample=False, max_new_tokens=60, **options,
    )  # fmt: skip
    return out.tolist()


def every_way(loaded: LoadedModel) -> dict[str, Any]:
    """By the host's loop, sampled, by `generate`, with device tables; and the digest of the weights."""
    return {
        "texts": texts(loaded),
        "sampled": texts(loaded, 1.0),
        "generate": by_generate(loaded.model, "cpu"),
        "tables": by_generate(loaded.model, "cpu", tables=True, cache_implementation="static"),
        "digest": loaded.weights_digest(),
    }


def of_the_whole() -> dict[str, Any]:
    """Of the tiny model on one device: all of it, and beams."""
    whole = load((tiny_llama(len(TOKENIZER)), TOKENIZER))
    return every_way(whole) | {"beams": by_generate(whole.model, "cpu", num_beams=2)}


LAYERS = ["model.embed_tokens", "model.rotary_emb", "model.layers.0", "model.layers.1", "model.norm", "lm_head"]


def spread(places: list[str], folder: Path | None = None, io_same_device: bool = True) -> LoadedModel:
    """The tiny model, its parts at these places."""
    model = tiny_llama(len(TOKENIZER))
    dispatch_model(model, dict(zip(LAYERS, places)), main_device=places[0].replace("disk", "cpu"), offload_dir=folder)
    model._hf_hook.io_same_device = io_same_device
    return load((model, TOKENIZER))


def shared_by_two(folder: Path, rank: int, port: int) -> None:
    """As one of two processes that share the matrices of the model in a folder, write what it makes to ``RANK.json``.

    The processes find each other by what `torch.distributed.run` sets, too.
    """
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    model = AutoModelForCausalLM.from_pretrained(folder, tp_plan="auto")
    found = every_way(load((model, TOKENIZER)))
    weight = model.model.layers[0].self_attn.q_proj.weight
    shard = weight.to_local() if hasattr(weight, "to_local") else weight  # a plain tensor in transformers 4
    (folder / f"{rank}.json").write_text(json.dumps(found | {"shard": list(shard.shape)}))
    torch.distributed.destroy_process_group()  # else a thread of gloo's may abort the process at its end

"""The generation loop on the device: model, mask, choice and state, token after token, without asking the host.

Every shape is fixed: a static key-value cache, tables instead of an automaton, and finished rows that absorb padding.
On a GPU one step, model included, is one CUDA graph. `constrained.decoding.custom_generate`, which appends forced runs
in one pass, needs fewer passes of the model but looks at each token on the host; which is faster depends on the model,
the batch, and how much is forced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers import StaticCache

from constrained.decoding.device.capture import capture
from constrained.decoding.device.flag import AsyncFlag
from constrained.decoding.device.matcher import DeviceMatcher
from constrained.errors import ConstrainedError, ModelError


@dataclass(frozen=True)
class Written:
    """What a batch wrote.

    Attributes
    ----------
    tokens : torch.Tensor
        int64 ``[rows, steps]``, padded after each row's end-of-text token.
    complete : torch.Tensor
        bool ``[rows]``; False only where a row had no budget and ran out of tokens.
    pruned_mass : torch.Tensor or None
        float32 ``[rows, steps]``: probability that the model put on tokens outside the mask; 0 after the end.
    """

    tokens: torch.Tensor
    complete: torch.Tensor
    pruned_mass: torch.Tensor | None


@torch.no_grad()
def write(
    model: Any,
    input_ids: torch.Tensor,
    matcher: DeviceMatcher,
    *,
    max_new_tokens: int,
    attention_mask: torch.Tensor | None = None,
    pruned_mass: bool = False,
    graph: bool | None = None,
    generator: torch.Generator | None = None,
    **sampling: Any,
) -> Written:
    """Continue prompts, each row inside its grammar.

    Call ``matcher.set_budget(max_new_tokens)`` before it, and every text is whole.

    Parameters
    ----------
    model : transformers causal language model
        On the matcher's device, able to use a `StaticCache`.
    input_ids : torch.Tensor
        int64 ``[rows, prompt]``, padded on the left.
    matcher : DeviceMatcher
        Advanced past what is written.
    max_new_tokens : int
        Steps at most; a text's end-of-text token counts here, but a text that is whole needs none.
    attention_mask : torch.Tensor, optional
        int64 ``[rows, prompt]``, 0 for padding.
    pruned_mass : bool
    graph : bool, optional
        Capture a step as a CUDA graph; default: on a CUDA device.
    generator : torch.Generator, optional
    **sampling
        `temperature`, `top_k`, `top_p` of `DeviceMatcher.step`.

    Raises
    ------
    ConstrainedError
        A number or shape doesn't fit, or a graph was asked for on another device than CUDA.
    ModelError
        The model's logits don't fit the tables.
    """
    rows, prompt = input_ids.shape
    if max_new_tokens < 1 or rows != len(matcher) or prompt < 1:
        raise ConstrainedError(
            f"{max_new_tokens} new tokens for prompts of shape {(rows, prompt)} and {len(matcher)} matcher rows",
            "give one prompt a row, at least a token long, and 1 new token or more",
        )
    context = getattr(model.config, "max_position_embeddings", None)
    if context is not None and prompt + max_new_tokens > context:
        raise ModelError(
            f"{prompt} + {max_new_tokens} tokens don't fit in the model's context of {context}", "lower max_new_tokens"
        )
    device = input_ids.device
    seen = torch.ones(rows, prompt + max_new_tokens, dtype=torch.long, device=device)  # what is to come is causal's
    if attention_mask is not None:
        seen[:, :prompt] = attention_mask
    position = (seen[:, :prompt].cumsum(1) - 1).clamp_(min=0)
    cache = StaticCache(config=model.config, max_cache_len=prompt + max_new_tokens)
    out = torch.full((rows, max_new_tokens), matcher.pad, device=device)
    masses = torch.zeros(rows, max_new_tokens, device=device) if pruned_mass else None
    current = input_ids[:, -1:].clone()
    slot = torch.zeros(1, dtype=torch.long, device=device)

    def step(tokens: torch.Tensor, position: torch.Tensor) -> None:
        logits = model(tokens, attention_mask=seen, position_ids=position, past_key_values=cache, use_cache=True).logits
        chosen = matcher.step(logits[:, -1], pruned_mass=pruned_mass, generator=generator, **sampling).unsqueeze(1)
        current.copy_(chosen)
        out.index_copy_(1, slot, chosen)
        if masses is not None:
            masses.index_copy_(1, slot, matcher.pruned_mass.unsqueeze(1))
        slot.add_(1)

    step(input_ids, position)
    position = position[:, -1:] + 1

    def next_step() -> None:
        step(current, position)
        position.add_(1)

    if max_new_tokens > 1 and (graph or (graph is None and device.type == "cuda")):
        lengths = [layer.cumulative_length for layer in cache.layers]
        keep = [matcher.state, matcher.left, current, position, slot, out, *lengths]
        next_step, _ = capture(next_step, [*keep, *([] if masses is None else [masses])], generator=generator)
    flag, steps = AsyncFlag(device), 1
    while steps < max_new_tokens and not flag.look(matcher.finished.all()):
        next_step()
        steps += 1
    return Written(out[:, :steps], matcher.complete | matcher.finished, None if masses is None else masses[:, :steps])

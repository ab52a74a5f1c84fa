"""Adapters for tests."""

import torch
from peft import LoraConfig, get_peft_model


def tuned(model, seed, r, **options):
    """`model`, wrapped, with an adapter strong enough to change what it writes."""
    torch.manual_seed(seed)
    wrapped = get_peft_model(model, LoraConfig(r=r, lora_alpha=2 * r, init_lora_weights=False, **options))
    with torch.no_grad():
        for name, weight in wrapped.named_parameters():
            if weight.requires_grad:
                weight.mul_(25 if "lora_B" in name else 1)
    return wrapped

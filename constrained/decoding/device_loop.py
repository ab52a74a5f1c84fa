"""The loop without a host: masks, choice and state stay on the device, and nothing waits for a token.

Every token is asked, as only the device knows what was chosen; in return the host runs ahead and the device is never
idle. That all texts are over is learned some tokens late; meanwhile finished rows absorb padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import LogitsProcessorList
from transformers.generation import logits_process as hf

from constrained.automaton import CompiledGrammar
from constrained.decoding.call import Call
from constrained.decoding.device import AsyncFlag, DeviceMatcher, DeviceTables, capture
from constrained.decoding.output import ConstrainedOutput
from constrained.decoding.ragged_reader import RaggedReader
from constrained.errors import ConstrainedError

SETTINGS = {hf.TemperatureLogitsWarper: "temperature", hf.TopKLogitsWarper: "top_k", hf.TopPLogitsWarper: "top_p"}
"""The logits processors whose work the device's kernels do, and their one number."""


@dataclass(eq=False)
class Prompt:
    """A row: only its prompt is known on the host."""

    ids: list[int]


def sampler_settings(processors: LogitsProcessorList, sample: bool) -> dict[str, float]:
    """What `DeviceMatcher.step` is to do in the place of transformers' processors.

    Raises
    ------
    ConstrainedError
        A processor that the kernels know nothing of.
    """
    found = {"temperature": 1.0} if sample else {"temperature": 0.0}
    for processor in processors:
        name = SETTINGS.get(type(processor))
        if name is None:
            raise ConstrainedError(
                f"{type(processor).__name__} can't work with device tables", "leave it out, or pass a compiled grammar"
            )
        found[name] = getattr(processor, name)
    return found


def device_tables(grammar: Any, device: torch.device) -> DeviceTables:
    """`grammar` itself if it is tables, else tables of the compiled grammars in it."""
    if isinstance(grammar, DeviceTables):
        return grammar
    compiled = [grammar] if isinstance(grammar, CompiledGrammar) else grammar
    if not isinstance(compiled, Sequence) or not all(isinstance(one, CompiledGrammar) for one in compiled):
        raise ConstrainedError(
            "device tables are built from compiled grammars", "compile_grammar(grammar, vocabulary), one or a list"
        )
    return DeviceTables.build(compiled, device=device)


def grammar_numbers(tables: DeviceTables, prompts: int, copies: int) -> list[int]:
    """Each row's grammar in `tables`: one for all, or one a prompt."""
    known = len(tables.start)
    if known not in (1, prompts):
        raise ConstrainedError(
            f"tables of {known} grammars for {prompts} prompts", "build them of one, or one a prompt"
        )
    return [0 if known == 1 else prompt for prompt in range(prompts) for _ in range(copies)]


def write_on_device(
    reader: RaggedReader,
    matcher: DeviceMatcher,
    steps: int,
    settings: dict[str, float],
    *,
    generator: torch.Generator | None = None,
    measure: bool = False,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Write all rows to their ends; on a CUDA device with a static cache, a step (model, mask, choice) is one graph.

    Parameters
    ----------
    reader : RaggedReader
        Its texts are the prompts, none read yet.
    matcher : DeviceMatcher
        With the budgets set.
    steps : int
        Most tokens to write.
    settings : dict
        For `DeviceMatcher.step`.
    measure : bool
        Keep the pruned mass.

    Returns
    -------
    tokens : torch.Tensor
        int64 ``[rows, n]``, the matcher's padding behind each end.
    pruned_mass : torch.Tensor or None
        float32 ``[rows, n]``; of no meaning behind the end.
    """
    rows, device = len(matcher), matcher.state.device
    reach = max(len(text.ids) for text in reader.texts)
    out = torch.full((rows, steps), matcher.pad, device=device)
    masses = torch.zeros((rows, steps), device=device) if measure else None
    positions = torch.tensor([[len(text.ids)] for text in reader.texts], device=device)
    tokens = torch.zeros((rows, 1), dtype=torch.long, device=device)
    column = torch.zeros(1, dtype=torch.long, device=device)

    def choose(logits: torch.Tensor) -> None:
        tokens.copy_(matcher.step(logits, generator=generator, pruned_mass=measure, **settings).unsqueeze(1))
        out.index_copy_(1, column, tokens)
        if measure:
            masses.index_copy_(1, column, matcher.pruned_mass.unsqueeze(1))
        column.add_(1)

    def further() -> None:
        choose(reader.step(tokens, positions, reach))
        positions.add_(1)

    choose(reader.read_prompts())
    if device.type == "cuda" and reader.cache.static and steps > 1:
        changed = [matcher.state, matcher.left, out, positions, tokens, column, *([masses] if measure else [])]
        reach += 1
        further, _ = capture(further, changed, generator=generator)
    over, written = AsyncFlag(device), 1
    while written < steps and not over.look(matcher.finished.all()):
        reach += 1
        further()
        written += 1
    return out[:, :written], masses[:, :written] if measure else None


def generate_on_device(call: Call, grammar: Any) -> torch.Tensor | ConstrainedOutput:
    """`write_on_device` for a call of `model.generate`."""
    config = call.config
    unsupported = {
        "num_beams": config.num_beams > 1,
        "output_scores": config.output_scores,
        "stopping_criteria": bool(call.criteria),
        "streamer": call.streamer is not None,
    }
    for name, asked in unsupported.items():
        if asked:
            raise ConstrainedError(
                f"{name} would wait for the device at every token", "pass a compiled grammar instead"
            )
    tables = device_tables(grammar, call.model.device)
    pad = call.pad(tables.eos_token_ids)
    numbers = grammar_numbers(tables, len(call.prompts) // call.copies, call.copies)
    matcher = DeviceMatcher(tables, numbers, budget=call.rooms, pad_token_id=pad)
    reader = call.reader([Prompt(ids) for ids in call.prompts], static=call.model.device.type == "cuda")
    settings = sampler_settings(call.processors, config.do_sample)
    tokens, masses = write_on_device(
        reader, matcher, call.steps, settings, generator=call.generator, measure=call.measure
    )
    ends = torch.isin(tokens, tokens.new_tensor(tables.eos_token_ids))
    after = ends.long().cumsum(1) - ends.long() > 0  # behind the first end
    passes, used = tokens.shape[1], int((~after).sum(1).max())
    tokens = tokens[:, :used]
    sequences = torch.cat((call.input_ids, tokens.to(call.input_ids.device)), 1)
    if not config.return_dict_in_generate:
        return sequences
    return ConstrainedOutput(
        sequences=sequences,
        pruned_mass=None if masses is None else masses[:, :used].masked_fill(after[:, :used], torch.nan).cpu(),
        complete=(matcher.complete | matcher.finished).cpu(),
        forward_passes=passes,
    )

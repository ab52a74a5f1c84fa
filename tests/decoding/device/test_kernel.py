"""The Triton kernel against the torch reference: equal tokens, equal states, for equal logits and noise."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from constrained import Grammar, compile_grammar
from constrained.decoding import bitmask
from constrained.decoding.device import DeviceMatcher, DeviceTables
from tests.automaton.small_grammars import GRAMMARS
from tests.decoding.device.vocabularies import VOCABULARIES
from tests.decoding.device.walk import DEVICE, at

triton = pytest.importorskip("triton", reason="triton is not installed: pip install triton")
if DEVICE == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("no GPU, and triton was not started with TRITON_INTERPRET=1", allow_module_level=True)

NAMES = ["choices", "bounded text", "inside characters", "may be empty", "rules"]


def build(kind: str, narrow: int) -> DeviceTables:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("constrained.decoding.device.explore.NARROW", narrow)
        names = NAMES[1:2] if kind == "one word" else NAMES
        return DeviceTables.build([compile_grammar(GRAMMARS[n], VOCABULARIES[kind]) for n in names], device=DEVICE)


TABLES = {(kind, narrow): build(kind, narrow) for kind in VOCABULARIES for narrow in (0, 5, 256)}


@st.composite
def batches(draw):
    """Rows at any states with any budgets that can be kept, and logits of all sorts."""
    tables = TABLES[draw(st.sampled_from(sorted(TABLES)))]
    rows = draw(st.integers(1, 4))
    states = [draw(st.integers(0, tables.states - 1)) for _ in range(rows)]
    spare = st.one_of(st.integers(0, 3), st.just(10**9))
    left = [max(0, int(tables.fewest[s])) + draw(spare) for s in states]
    seed = draw(st.integers(0, 2**31))
    generator = torch.Generator().manual_seed(seed)
    width = tables.size + draw(st.sampled_from([0, 1, 31, 100]))
    logits = torch.randn(rows, width, generator=generator) * 3
    kind = draw(st.sampled_from(["numbers", "ties", "minus infinity", "nothing finite", "NaN", "infinity", "huge"]))
    strange = torch.rand(rows, width, generator=generator) < 0.6
    if kind == "ties":
        logits = logits.round().clamp(-1, 1)
    elif kind != "numbers":
        value = {"infinity": torch.inf, "NaN": torch.nan, "huge": 3.4e38}.get(kind, -torch.inf)
        logits[strange if kind != "nothing finite" else ...] = value
    logits = logits.to(draw(st.sampled_from([torch.float32, torch.bfloat16, torch.float16])))
    return tables, states, left, logits.to(DEVICE), seed


BLOCKS = st.sampled_from([64, 2048])
"""Logits of a block: with 64, several programs share a row, and the last to arrive puts together what they found."""


def side_by_side(tables, states, left, logits, block, seed=0, **options):
    """(tokens, matcher) of the reference and of the kernel."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("constrained.decoding.device.kernel_triton.BLOCK", block)
        matchers = [at(tables, states, left, backend, seed) for backend in ("torch", "triton")]
        return [(matcher.step(logits, **options).tolist(), matcher) for matcher in matchers]


@settings(max_examples=25)
@given(batches(), st.sampled_from([0.0, 0.7, 1.0, 30.0, "rows"]), st.booleans(), st.booleans(), BLOCKS)
def test_both_backends_choose_alike(batch, temperature, measured, sliced, block):
    tables, states, left, logits, seed = batch
    if sliced:  # a row stride of its own, as the last position's logits of a model have
        logits = torch.stack((logits, logits * 0), 1)[:, 0]
    if temperature == "rows":
        temperature = torch.linspace(0, 2, len(states), device=DEVICE)
    allowed = bitmask.expand(at(tables, states, left).mask(), tables.size)
    options = {"temperature": temperature, "pruned_mass": measured}
    (expected, reference), (found, kernel) = side_by_side(tables, states, left, logits, block, seed, **options)
    assert found == expected
    assert torch.equal(kernel.state, reference.state) and torch.equal(kernel.left, reference.left)
    for row, token in enumerate(expected):
        if states[row] == 0:
            assert token == tables.eos_token_ids[0] and reference.state[row] == 0
        else:
            assert allowed[row, token] and reference.left[row] == left[row] - (int(reference.state[row]) != 0)
    if measured:
        assert torch.allclose(kernel.pruned_mass, reference.pruned_mass, atol=1e-5)
        assert ((reference.pruned_mass >= 0) & (reference.pruned_mass <= 1)).all()


@settings(max_examples=12)
@given(
    batches(),
    st.sampled_from([0.5, 1.0, "rows"]),
    st.sampled_from([None, 1, 3, 500]),
    st.sampled_from([None, 0.3, 0.9, 1.0]),
    BLOCKS,
)
def test_both_backends_cut_alike(batch, temperature, top_k, top_p, block):
    tables, states, left, logits, seed = batch
    if temperature == "rows":
        temperature = torch.linspace(0, 2, len(states), device=DEVICE)
    options = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
    (expected, reference), (found, kernel) = side_by_side(tables, states, left, logits, block, seed, **options)
    assert found == expected
    assert torch.equal(kernel.state, reference.state) and torch.equal(kernel.left, reference.left)


@settings(max_examples=30)
@given(batches(), st.integers(-3, 3))
def test_the_apply_kernel_is_the_hosts(batch, more):
    tables, states, left, logits, _ = batch
    mask = at(tables, states, left).mask()
    mask = torch.nn.functional.pad(mask, (0, max(0, more))) if more > 0 else mask[:, : mask.shape[1] + more]
    if not mask.shape[1]:
        return
    from constrained.decoding.device import kernel_triton

    assert torch.equal(
        kernel_triton.apply(logits.clone(), mask).nan_to_num(nan=7.0),
        bitmask.apply(logits.clone(), mask).nan_to_num(nan=7.0),
    )


def test_a_vocabulary_larger_than_a_block():
    """Several rounds through the loops: real free text of GPT-2, whole and near the end of its budget."""
    from tests.automaton.tokenizers import vocabulary

    compiled = compile_grammar(Grammar.from_regex(r"[^\n]{1,5}x"), vocabulary("gpt2"))
    tables = DeviceTables.build(compiled, device=DEVICE)
    torch.manual_seed(1)
    logits = torch.randn(3, tables.size, device=DEVICE)
    for left in (1, 2, 100):
        chosen = [
            at(tables, [1, 1, 2], [left, left + 1, left], b).step(logits, pruned_mass=True) for b in ("torch", "triton")
        ]
        assert chosen[0].tolist() == chosen[1].tolist()


COMPILE = """
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
from constrained.decoding import bitmask_triton
from constrained.decoding.device import kernel_triton as k

def ptx(kernel, types, constants, **options):
    names = kernel.arg_names
    signature = {n: "constexpr" if n in constants else types.get(n, types[None]) for n in names}
    source = ASTSource(kernel, signature, constexprs={(names.index(n),): v for n, v in constants.items()})
    return compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 8, **options}).asm["ptx"]

strides = "logits_stride kept_stride mask_stride"
numbers = dict.fromkeys(f"{strides} width size words classes pad".split(), "i32")
floats = dict.fromkeys(["temperature", "pruned", "part_sums"], "*fp32")
floats |= {"key": "*i64", "logits": "*bf16", "kept": "*u8", "masks": "*u8", "tokens": "*i64"}
on = dict(NOISE=True, KEPT=True, PRUNED=True, SPLITS=32, BLOCK=k.BLOCK, LIST=k.LIST)
text = ptx(k._step, {None: "*i32", **numbers, **floats}, on, enable_fp_fusion=False)
assert "fma.rn.f32" not in text, "fused operations round otherwise than the reference"
assert "acq_rel" in text, "the last program to arrive sees what the others found"
assert ".entry" in ptx(bitmask_triton._apply, {None: "*u8", **numbers, **floats}, dict(BLOCK=k.BLOCK))
"""


def test_the_kernels_compile_for_a_gpu_without_one():
    """To machine code for compute capability 9.0; nothing is fused that the reference rounds twice."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    done = subprocess.run([sys.executable, "-c", COMPILE], check=False, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_an_unknown_backend_is_an_error():
    from constrained.errors import ConstrainedError

    with pytest.raises(ConstrainedError, match="no backend 'cuda'.*\n.*'triton' or 'torch'"):
        DeviceMatcher(TABLES["one word", 0], 1, backend="cuda")

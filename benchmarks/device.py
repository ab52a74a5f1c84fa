"""The cost of masks on the device: a step within a grammar over one without, and the apply kernel beside xgrammar's.

    constrained bench device --device cuda --json benchmarks/results/device_cuda.json

Every figure is a median over repeats. On a CUDA device the timed calls are captured as a graph and timed by events, so
that it is the device's time and not Python's; on the CPU the plain torch reference is timed by the clock. There are two
kinds of rows: *wide*, all in free text, where a mask row of the whole vocabulary is read; *text*, spread over the
states of a whole KnowAgent step. The model is a randomly initialised Llama of the vocabulary's width, one token at a
time.
"""

from __future__ import annotations

import argparse
import time

from benchmarks.engine import vocabularies
from benchmarks.reporting import add_json, describe_machine, markdown, report
from constrained import Grammar, Vocabulary, __version__, compile_grammar
from constrained.errors import ConstrainedError

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
EMBEDDED = "embedded"
"""The shipped model's vocabulary: small, and needs no data."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--batch", type=int, action="append", help=f"rows, repeatable; default: {BATCHES}")
    parser.add_argument("--vocabulary", choices=(EMBEDDED, *vocabularies.BY_SIZE), default="tekken")
    parser.add_argument("--dtype", choices=("float32", "bfloat16", "float16"), help="of logits and model "
                        "(default: bfloat16 on cuda, float32 on cpu)")  # fmt: skip
    parser.add_argument("--layers", type=int, default=8, help="of the model (default: 8)")
    parser.add_argument("--width", type=int, default=512, help="hidden size of the model (default: 512)")
    parser.add_argument("--repeats", type=int, default=30, help="of each measurement (default: 30)")
    add_json(parser)


def run_command(options: argparse.Namespace) -> int:
    import torch

    batches = sorted(set(options.batch or BATCHES))
    if batches[0] < 1 or options.repeats < 1 or options.layers < 1 or options.width < 8:
        raise ConstrainedError("a number is too small", "--batch, --repeats and --layers from 1, --width from 8")
    if options.device == "cuda" and not torch.cuda.is_available():
        raise ConstrainedError(
            "torch finds no CUDA device", "run it where there is one, or --device cpu: the torch reference"
        )
    began = time.perf_counter()
    vocabulary = _vocabulary(options.vocabulary)
    compiled = compile_grammar(knowagent_step(), vocabulary)
    from benchmarks.device_steps import CONTEXT, Bench
    from constrained.decoding.device import DeviceTables

    prepared = time.perf_counter()
    tables = DeviceTables.build(compiled, device=options.device)
    build = {
        "vocabulary seconds": prepared - began,
        "build seconds": time.perf_counter() - prepared,
        "states": tables.states,
        "wide states": tables.mask_row.shape[0],
        "mask rows": tables.masks.shape[0],
        "classes": tables.next.shape[1],
        "bytes": tables.nbytes,
    }
    dtype = getattr(torch, options.dtype or ("bfloat16" if options.device == "cuda" else "float32"))
    bench = Bench(tables, dtype, options.repeats, options.layers, options.width)
    rows = [bench.measure(batch, kind) for batch in batches for kind in ("wide", "text")]
    result = {
        "version": __version__,
        "hardware": hardware(options.device),
        "vocabulary": options.vocabulary,
        "size": vocabulary.size,
        "dtype": str(dtype).removeprefix("torch."),
        "model": {"layers": options.layers, "width": options.width, "context": CONTEXT},
        "tables": build,
        "host synchronisations per token": bench.synchronisations(batches[0]),
        "rows": rows,
    }
    return report(table(result), result, options)


def knowagent_step() -> Grammar:
    """The third KnowAgent step of a question, in the shipped format."""
    text = r"[^\]\n]{1,80}"
    action = Grammar.from_regex(rf"(Search|Lookup|Finish)\[{text}\]|Retrieve\[{text}\]")
    path = "Start->Search[Milhouse]->Retrieve[Allie Goertz]"
    return Grammar.from_lark("steps/knowagent").bind(N=["3"], PATH=[path], ACTION=action)


def hardware(device: str) -> dict[str, str | int]:
    """The machine, the device and the versions."""
    import torch

    found = {**describe_machine(), "torch": torch.__version__, "threads": torch.get_num_threads()}
    if device == "cuda":
        from importlib.metadata import PackageNotFoundError, version

        properties = torch.cuda.get_device_properties(0)
        found |= {"device": properties.name, "memory": properties.total_memory, "cuda": str(torch.version.cuda)}
        try:
            found["triton"] = version("triton")
        except PackageNotFoundError:
            found["triton"] = "none: torch kernels"
    return found


def table(result: dict) -> str:
    """The figures as a Markdown table, with a heading and notes."""
    hardware = result["hardware"]
    name = hardware.get("device", f"{hardware['processor']}, {hardware['threads']} threads")
    head = ("rows", "kind", "argmax", "masked step", "+ pruned mass", "sampled", "masked, sampled",
            "model, 1 token", "within the grammar", "overhead", "apply", "xgrammar's apply")  # fmt: skip
    keys = ("argmax", "step", "step with pruned mass", "sample", "step by chance", "decode", "decode within")
    cells = [
        [row["batch"], row["rows"], *(_seconds(row[k]) for k in keys), f"{row['overhead %']:+.1f} %",
         _seconds(row["apply"]), _seconds(row["apply xgrammar"])]
        for row in result["rows"]
    ]  # fmt: skip
    out = [
        f"{name}; {result['dtype']} logits of {result['size']:,} ({result['vocabulary']}); torch {hardware['torch']}",
        "Tables: {states:,} states, {wide states:,} wide, {bytes:,} bytes, {build seconds:.1f} s".format(
            **result["tables"]
        ),
        "",
        markdown(head, cells, left=2),
    ]
    waits = result["host synchronisations per token"]
    if waits is not None:
        out += ["", f"Host synchronisations per token in the loop: {waits:g}"]
    if any(row["apply equal"] is False for row in result["rows"]):
        out += ["", "xgrammar's apply left other logits than ours on the same mask."]
    return "\n".join(out)


def _seconds(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value * 1e6:.1f} µs" if value < 1e-3 else f"{value * 1e3:.2f} ms"


def _vocabulary(name: str) -> Vocabulary:
    if name == EMBEDDED:
        from constrained.models import load

        return load().vocabulary
    tokens = vocabularies.load(name)
    return Vocabulary(tokens.tokens, tokens.eos, tokens.special)

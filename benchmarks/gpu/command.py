"""Measure everything that needs a GPU in one command of ten minutes: tests, kernels beside XGrammar's, whole texts.

    constrained bench gpu --json benchmarks/results/gpu.json

The parts: *tests*, those that need a CUDA device; *kernels*, a masked step over one without a mask, and masks applied
beside XGrammar's kernel; *texts*, tokens a second of whole batches, free and by three loops that keep to the grammar.
The model is a Llama with random weights, by default as large as one of 7 billion. What there was no time for is left
out and said. On a CPU a small form of all of it runs (`--device cpu`), so that it works when there is a GPU.
"""

from __future__ import annotations

import argparse
import time

from tqdm import tqdm

from benchmarks.engine import vocabularies
from benchmarks.gpu import tests
from benchmarks.reporting import add_json, describe_machine, markdown, report, write_json
from constrained import __version__
from constrained.errors import ConstrainedError

BATCHES = (1, 8, 64, 512)
PARTS = ("tests", "kernels", "texts")
EMBEDDED = "embedded"
"""The shipped model's vocabulary: small, and needs no data."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--device", choices=("cuda", "cpu"), default="cuda", help="where it runs (default: cuda)")
    add("--part", choices=PARTS, action="append", help="repeatable; default: all")
    add("--minutes", type=float, default=10, help="start no part after so many (default: 10)")
    add("--batch", type=int, action="append", help=f"rows, repeatable; default: {BATCHES}; on a CPU 1 and 4")
    names = (EMBEDDED, *vocabularies.BY_SIZE)
    add("--vocabulary", choices=names, help="default: tekken; on a CPU the embedded model's")
    add("--dtype", choices=("float32", "bfloat16", "float16"), help="default: bfloat16, on a CPU float32")
    add("--layers", type=int, help="of the model (default: 32; on a CPU 2)")
    add("--width", type=int, help="hidden size of the model (default: 4096; on a CPU 64)")
    add("--repeats", type=int, default=10, help="of each measurement of a kernel (default: 10)")
    add_json(parser)


def run_command(options: argparse.Namespace) -> int:
    import torch

    cpu = options.device == "cpu"
    for name, here, there in (
        ("batch", [1, 4], list(BATCHES)), ("vocabulary", EMBEDDED, "tekken"), ("dtype", "float32", "bfloat16"),
        ("layers", 2, 32), ("width", 64, 4096),
    ):  # fmt: skip
        if getattr(options, name) is None:
            setattr(options, name, here if cpu else there)
    if min(*options.batch, options.repeats, options.layers) < 1 or options.width < 8 or options.minutes <= 0:
        raise ConstrainedError(
            "a number is too small",
            "--batch, --repeats and --layers from 1, --width from 8, --minutes above 0",
        )
    if not cpu and not torch.cuda.is_available():
        raise ConstrainedError(
            "torch finds no CUDA device", "run it where there is one, or --device cpu: a small form in plain torch"
        )
    result, parts = measure(options, set(options.part or PARTS))
    return report("\n\n".join(parts), result, options)


def measure(options: argparse.Namespace, wanted: set[str]) -> tuple[dict, list[str]]:
    """All figures, and the tables of them."""
    import torch

    from benchmarks.gpu.kernels import KINDS, Bench
    from benchmarks.gpu.texts import LOOPS, Texts
    from benchmarks.gpu.workload import Workload

    ends = time.monotonic() + 60 * options.minutes
    result: dict = {"command": "constrained bench gpu", "version": __version__, "hardware": hardware(options.device)}
    out = [" · ".join(f"{name} {value}" for name, value in result["hardware"].items())]
    if "tests" in wanted:
        result["tests"] = tests.run(options.device, seconds=0.4 * (ends - time.monotonic()))
        out.append(tests.table(result["tests"]))
    if wanted == {"tests"}:
        return result, out
    work = Workload.of(options)
    result |= {"workload": work.facts()}
    out.append("{vocabulary}, {dtype}; tables of {states:,} states, {bytes:,} bytes, {build seconds:.1f} s".format(
        **result["workload"]
    ))  # fmt: skip
    # Small batches first; batches that the time or the memory doesn't allow are left out and reported.
    batches, missing = sorted(set(options.batch)), []
    bench, texts = Bench(work, options.repeats), Texts(work)
    runs = [("kernels", batch, kind, bench) for batch in batches for kind in KINDS]
    runs += [("texts", batch, loop, texts) for batch in batches for loop in LOOPS]
    for part, batch, kind, of in tqdm([run for run in runs if run[0] in wanted], unit="row", leave=False, disable=None):
        name = f"{part} of {batch} rows, {kind}"
        if time.monotonic() > ends:
            missing.append(name)
            continue
        try:
            result.setdefault(part, []).append(of.measure(batch, kind))
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            missing.append(f"{name} (out of memory)")
        write_json(result, options)  # so that an interrupted run has what it measured
    if "kernels" in result:
        result["waits per token of the kernels"] = bench.waits(batches[0])
        out.append(kernel_table(result))
    if "texts" in result:
        out.append(text_table(result["texts"]))
    if missing:
        result["not measured"] = missing
        out.append("Not measured: " + "; ".join(missing))
    return result, out


def hardware(device: str) -> dict[str, str | int]:
    """The machine, the device and the versions."""
    from importlib.metadata import PackageNotFoundError, version

    import torch

    result = {**describe_machine(), "torch": torch.__version__, "threads": torch.get_num_threads()}
    if device == "cuda":
        properties = torch.cuda.get_device_properties(0)
        result |= {"device": properties.name, "memory": properties.total_memory, "cuda": str(torch.version.cuda)}
    for name in ("triton", "xgrammar"):
        try:
            result[name] = version(name)
        except PackageNotFoundError:
            result[name] = "none"
    return result


def kernel_table(result: dict) -> str:
    head = ("rows", "kind", "argmax", "masked step", "+ pruned mass", "sampled", "masked, sampled",
            "model, 1 token", "within the grammar", "overhead", "apply", "xgrammar's apply")  # fmt: skip
    keys = ("argmax", "step", "step with pruned mass", "sample", "step by chance", "decode", "decode within")
    cells = [
        [row["batch"], row["rows"], *(_seconds(row[k]) for k in keys), f"{row['overhead %']:+.1f} %",
         _seconds(row["apply"]), _seconds(row["apply xgrammar"])]
        for row in result["kernels"]
    ]  # fmt: skip
    out = [markdown(head, cells, left=2)]
    waits = result["waits per token of the kernels"]
    if waits is not None:
        out += ["", f"Waits for the device per token: {waits:g}"]
    if any(row["apply equal"] is False for row in result["kernels"]):
        out += ["", "xgrammar's apply left other logits than ours on the same mask."]
    return "\n".join(out)


def text_table(rows: list[dict]) -> str:
    free = {row["batch"]: row["tokens/s"] for row in rows if row["loop"] == "unconstrained"}
    head = ("rows", "loop", "tokens/s", "to unconstrained", "passes", "waits per token", "whole texts", "first call")
    cells = []
    for row in rows:
        if "reason" in row:
            cells.append([row["batch"], row["loop"], row["reason"], *[""] * 5])
            continue
        waits, passes = row["waits per token"], row["passes"]
        ratio = f"{row['tokens/s'] / free[row['batch']]:.2f}" if row["batch"] in free else "–"
        whole = "–" if row["whole"] is None else f"{row['whole']} of {row['batch']}"
        cells.append([
            row["batch"], row["loop"], f"{row['tokens/s']:,.0f}", ratio, "–" if passes is None else passes,
            "–" if waits is None else f"{waits:.2f}", whole, f"{row['first call']:.1f} s",
        ])  # fmt: skip
    return markdown(head, cells, left=2)


def _seconds(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value * 1e6:.1f} µs" if value < 1e-3 else f"{value * 1e3:.2f} ms"

"""Whole generation on the CPU: tokens a second within a grammar, beside unconstrained and each peer's processor.

    constrained bench generation --json benchmarks/results/engine_generation.json

KnowAgent steps are written by an untrained Llama of about 30 million weights over Tekken's 131,072 tokens, one text at
a time, with one thread, each engine in a process of its own; they take turns. Compiling a grammar is reported
separately.
"""

from __future__ import annotations

import argparse
from statistics import median

from tqdm import tqdm

from benchmarks.engine.engines import Refused
from benchmarks.engine.report import amount
from benchmarks.engine.vocabularies import load
from benchmarks.engine.worker import OverTime, Worker
from benchmarks.reporting import add_json, describe_machine, markdown, report
from constrained.cli.options import whole_number

UNCONSTRAINED = "unconstrained"
GENERATORS = (
    "ours", "xgrammar", "llguidance", "outlines (outlines_core)", "outlines (xgrammar)", "outlines (llguidance)",
    "lmformatenforcer",
)  # fmt: skip
VOCABULARY = "tekken"
STEPS = 2
ROUNDS = 2
LIMIT = 30.0
"""Time limit for one text or one grammar, in seconds."""
MODES = {"greedy": False, "sampled": True}
TARGET = 1.5
"""Our target for tokens a second, as a multiple of unconstrained."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = (UNCONSTRAINED, *GENERATORS)
    parser.add_argument("--engine", action="append", choices=names, help="repeatable; default: all")
    parser.add_argument("--steps", type=whole_number, default=STEPS, help=f"texts of each mode (default: {STEPS})")
    parser.add_argument(
        "--rounds", type=whole_number, default=ROUNDS, help=f"times each is written (default: {ROUNDS})"
    )
    add_json(parser)


def run_command(options: argparse.Namespace) -> int:
    names = [n for n in (UNCONSTRAINED, *GENERATORS) if not options.engine or n in options.engine or n == UNCONSTRAINED]
    figures = run(names, options.steps, options.rounds)
    weights = next(f["weights"] for f in figures.values() if "weights" in f)
    settings = {"vocabulary": VOCABULARY, "weights": weights, "steps": options.steps, "rounds": options.rounds}
    result = {"command": "constrained bench generation", "machine": describe_machine(), "settings": settings}
    return report(table(figures), result | {"engines": figures}, options)


def run(names: list[str], steps: int, rounds: int) -> dict[str, dict]:
    """The figures of each engine, or the reason why it failed.

    A first step of each is not counted: it warms up what is prepared on first use.
    """
    # imported here: torch and transformers take seconds
    from benchmarks.engine.generators import Generator

    tokens = load(VOCABULARY)
    workers = {name: Worker(name, Generator, name, tokens) for name in names}
    figures: dict[str, dict] = {name: {"texts": {mode: [] for mode in MODES}} for name in names}
    try:
        with tqdm(total=len(names) * (1 + rounds * len(MODES)), unit="turn", disable=None) as bar:
            for name in names:
                bar.set_description_str(f"{name} compiles")
                _try(figures[name], lambda n=name: _prepare(workers[n], figures[n], steps))
                bar.update()
            for mode, sample in list(MODES.items()) * rounds:
                for name in names:
                    bar.set_description_str(f"{name}, {mode}")
                    if "reason" not in figures[name]:
                        _try(figures[name], lambda n=name, m=mode, s=sample: figures[n]["texts"][m].extend(
                            workers[n].ask("write", number, s, seconds=LIMIT) for number in range(steps)
                        ))  # fmt: skip
                    bar.update()
            bar.set_description_str("done")
    finally:
        for worker in workers.values():
            worker.stop()
    for known in figures.values():
        _sum_up(known)
    return figures


def _try(figures: dict, do) -> None:
    try:
        do()
    except (Refused, OverTime) as error:
        figures["reason"] = str(error)


def _prepare(worker: Worker, figures: dict, steps: int) -> None:
    figures |= worker.start()
    worker.ask("prepare", steps, seconds=LIMIT)
    worker.ask("write", steps, False, seconds=2 * LIMIT)
    figures["compiles"] = [worker.ask("prepare", number, seconds=LIMIT) for number in range(steps)]


def _sum_up(figures: dict) -> None:
    """Replace an engine's texts by their totals and means."""
    texts_by_mode, compiles = figures.pop("texts"), figures.pop("compiles", [])
    if "reason" in figures:
        return
    figures["compile"] = median(compiles)
    for mode, texts in texts_by_mode.items():
        seconds, tokens = sum(t["seconds"] for t in texts), sum(t["tokens"] for t in texts)
        figures[mode] = {
            "tokens/s": tokens / seconds,
            "s/text": seconds / len(texts),
            "tokens/text": tokens / len(texts),
            "passes/text": sum(t["passes"] for t in texts) / len(texts),
            "forced share": sum(t["forced"] or 0 for t in texts) / tokens,
            "whole": sum(t["whole"] for t in texts),
            "texts": len(texts),
        }


def table(figures: dict[str, dict]) -> str:
    """All engines as a Markdown table, and ours compared in words."""
    ran = {name: known for name, known in figures.items() if "reason" not in known}
    head = ["", "", "compile", "tokens/s", "to unconstrained", "tokens/text", "passes/text", "s/text", "whole texts"]
    rows = []
    for mode in MODES:
        for name, known in ran.items():
            f = known[mode]
            ratio = f"{f['tokens/s'] / ran[UNCONSTRAINED][mode]['tokens/s']:.2f}" if UNCONSTRAINED in ran else "–"
            whole = "–" if name == UNCONSTRAINED else f"{f['whole']} of {f['texts']}"
            compiled = amount(known["compile"]) if known["compile"] else "–"
            means = (f"{f['tokens/text']:.0f}", f"{f['passes/text']:.0f}", f"{f['s/text']:.2f}")
            rows.append([mode, name, compiled, f"{f['tokens/s']:.1f}", ratio, *means, whole])
    lines = [markdown(head, rows, left=2), ""]
    for mode in MODES:
        lines += _compared(ran, mode)
    lines += [f"- {name}: {known['reason']}" for name, known in figures.items() if "reason" in known]
    return "\n".join(lines)


def _compared(ran: dict[str, dict], mode: str) -> list[str]:
    """Our speed relative to unconstrained and to the best peer whose texts were complete, in words."""
    if "ours" not in ran or UNCONSTRAINED not in ran:
        return []
    ours, free = ran["ours"][mode], ran[UNCONSTRAINED][mode]["tokens/s"]
    ratio = ours["tokens/s"] / free
    verdict = "reached" if ratio >= TARGET else "**not reached**"
    words = (
        f"- {mode}: ours {ratio:.2f} × unconstrained (target ≥ {TARGET}: {verdict}), "
        f"{100 * ours['forced share']:.0f} % of the tokens forced"
    )
    whole = {name: known[mode] for name, known in ran.items() if known[mode]["whole"] == known[mode]["texts"]}
    peers = {name: f["tokens/s"] for name, f in whole.items() if name not in ("ours", UNCONSTRAINED)}
    if peers:
        best = max(peers, key=peers.__getitem__)
        words += f"; {ours['tokens/s'] / peers[best]:.2f} × the best peer, {best}"
    return [words]

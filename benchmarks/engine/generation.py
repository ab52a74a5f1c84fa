"""Whole generation on the CPU: tokens a second inside a grammar, beside unconstrained and each peer's processor.

    constrained bench generation --json benchmarks/results/engine_generation.json

KnowAgent steps written by an untrained Llama of about 30 million weights over Tekken's 131,072 tokens, one text at a
time, one thread, each engine in a process of its own; they take turns. Compiling a grammar is told apart.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import median

from tqdm import tqdm

from benchmarks.engine.engines import Refused
from benchmarks.engine.report import amount
from benchmarks.engine.vocabularies import load
from benchmarks.engine.worker import OverTime, Worker
from benchmarks.reporting import describe_machine
from constrained.errors import ConstrainedError
from constrained.files import to_json, write_whole

UNCONSTRAINED = "unconstrained"
GENERATORS = (
    "ours", "xgrammar", "llguidance", "outlines (outlines_core)", "outlines (xgrammar)", "outlines (llguidance)",
    "lmformatenforcer",
)  # fmt: skip
VOCABULARY = "tekken"
STEPS = 2
ROUNDS = 2
LIMIT = 30.0
"""Seconds after which one text, or one grammar, is given up."""
MODES = {"greedy": False, "sampled": True}
TARGET = 1.5
"""Times the unconstrained tokens a second that ours are to reach."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `constrained bench generation`."""
    names = (UNCONSTRAINED, *GENERATORS)
    parser.add_argument("--engine", action="append", choices=names, help="repeatable; default: all")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"texts of each mode (default: {STEPS})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"times each is written (default: {ROUNDS})")
    parser.add_argument("--json", type=Path, help="write the figures to this file")


def run_command(options: argparse.Namespace) -> int:
    """Generate, print the table, write the JSON."""
    if options.steps < 1 or options.rounds < 1:
        raise ConstrainedError("--steps and --rounds are 1 or more")
    names = [n for n in (UNCONSTRAINED, *GENERATORS) if not options.engine or n in options.engine or n == UNCONSTRAINED]
    figures = run(names, options.steps, options.rounds)
    print(table(figures))
    if options.json:
        weights = next(f["weights"] for f in figures.values() if "weights" in f)
        settings = {"vocabulary": VOCABULARY, "weights": weights, "steps": options.steps, "rounds": options.rounds}
        result = {"command": "constrained bench generation", "machine": describe_machine(), "settings": settings}
        write_whole(options.json, to_json(result | {"engines": figures}))
    return 0


def run(names: list[str], steps: int, rounds: int) -> dict[str, dict]:
    """Figures by engine; of one that can't, the reason.

    A first step of each, not counted, warms up what is prepared on first use.
    """
    # here, for torch and transformers take seconds to import
    from benchmarks.engine.generators import Generator

    tokens = load(VOCABULARY)
    workers = {name: Worker(name, Generator, name, tokens) for name in names}
    figures: dict[str, dict] = {name: {"texts": {mode: [] for mode in MODES}} for name in names}
    try:
        with tqdm(total=len(names) * (1 + rounds * len(MODES)), unit="turn") as bar:
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
    """What the table shows, instead of an engine's texts one by one."""
    texts_by_mode, compiles = figures.pop("texts"), figures.pop("compiles", [])
    if "reason" in figures:
        return
    figures["compile"] = median(compiles)
    for mode, texts in texts_by_mode.items():
        seconds, count = sum(t["seconds"] for t in texts), sum(t["tokens"] for t in texts)
        figures[mode] = {
            "tokens/s": count / seconds,
            "s/text": seconds / len(texts),
            "tokens/text": count / len(texts),
            "passes/text": sum(t["passes"] for t in texts) / len(texts),
            "forced share": sum(t["forced"] or 0 for t in texts) / count,
            "whole": sum(t["whole"] for t in texts),
            "texts": len(texts),
        }


def table(figures: dict[str, dict]) -> str:
    """All engines, ours beside unconstrained and the best peer, in Markdown."""
    ran = {name: known for name, known in figures.items() if "reason" not in known}
    lines = [
        "|  |  | compile | tokens/s | to unconstrained | tokens/text | passes/text | s/text | whole texts |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for mode in MODES:
        for name, known in ran.items():
            f = known[mode]
            free = name == UNCONSTRAINED
            ratio = f["tokens/s"] / ran[UNCONSTRAINED][mode]["tokens/s"] if UNCONSTRAINED in ran else None
            lines.append(
                f"| {mode} | {name} | {amount(known['compile']) if known['compile'] else '–'} | {f['tokens/s']:.1f} "
                f"| {'–' if ratio is None else f'{ratio:.2f}'} | {f['tokens/text']:.0f} | {f['passes/text']:.0f} "
                f"| {f['s/text']:.2f} | {'–' if free else '{whole} of {texts}'.format(**f)} |"
            )
    lines.append("")
    for mode in MODES:
        lines += _compared(ran, mode)
    lines += [f"- {name}: {known['reason']}" for name, known in figures.items() if "reason" in known]
    return "\n".join(lines)


def _compared(ran: dict[str, dict], mode: str) -> list[str]:
    """Ours to unconstrained and to the best peer whose texts were whole, in words."""
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

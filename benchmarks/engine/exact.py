"""Exact counts of our engine: masks, forced text, bytes held. A ratchet: they may only get better.

    constrained bench engine --exact              compares with benchmarks/results/engine_exact.json
    constrained bench engine --exact --update     records

Masks don't depend on the implementation; memory is recorded for each (`kernel`, `python`).
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from benchmarks.engine.engines import Refused, engine, source
from benchmarks.engine.vocabularies import Tokens, load, spell
from benchmarks.engine.workloads import WORKLOADS, Case, Workload
from benchmarks.reporting import note_record
from benchmarks.result_files import RESULTS, read_record
from constrained.automaton import native
from constrained.errors import ConstrainedError
from constrained.files import to_json, write_whole

RECORD = RESULTS / "engine_exact.json"
MASKS = ("masks", "allowed tokens", "hash", "masks of one token")
"""Counts that every implementation must share; any difference is a fault."""


def implementation() -> str:
    """The implementation in use."""
    return "python" if native.kernel is None else "kernel"


def count(vocabulary, tokens: Tokens, workload: Workload) -> dict:
    """The counts of one workload, following its texts in order; raises Refused if our engine can't do it.

    Returns
    -------
    dict
        "vocabulary", its fingerprint, on which the counts depend; "masks", their number; "allowed tokens" in all of
        them; "hash" over them in order; "masks of one token"; "forced bytes", those bytes of the texts that
        `forced_text` predicted; and per implementation the "bytes" held after all texts of every grammar, and the
        "positions" of the first grammar's automaton if it is regular, all visited.
    """
    ours = engine("ours")
    digest = hashlib.blake2b(digest_size=16)
    masks = allowed = single = forced = held = 0
    for case in workload.cases:
        compiled = ours.compile(vocabulary, source(ours, workload.name, case))
        for text in case.texts:
            matcher, row, known, at = compiled.matcher(), vocabulary.rows, 0, 0
            for token in [*spell(tokens, text), None]:
                matcher.fill_bitmask(row)
                bits = int(np.bitwise_count(row.view(np.uint32)).sum())
                masks, allowed, single = masks + 1, allowed + bits, single + (bits == 1)
                digest.update(row.tobytes())
                # Bytes up to `known` have been predicted before: each counts once.
                until = at + len(matcher.forced_text())
                forced += max(0, until - max(known, at))
                known = max(known, until)
                if token is not None:
                    if not matcher.advance(token):
                        raise ConstrainedError(f"{workload.name}: token {token} of a valid text was refused")
                    at += len(tokens.tokens[token])
        held += compiled.nbytes
    first = workload.cases[0]
    known = {} if first.regular is None else {implementation(): _positions(vocabulary, workload.name, first)}
    return {
        "vocabulary": vocabulary.vocabulary.fingerprint[:16],
        "masks": masks,
        "allowed tokens": allowed,
        "hash": digest.hexdigest(),
        "masks of one token": single,
        "forced bytes": forced,
        "bytes": {implementation(): held},
        "positions": known,
    }


def _positions(vocabulary, workload: str, case: Case) -> int:
    ours = engine("ours")
    return ours.compile(vocabulary, source(ours, workload, case)).precompute()


def compare(before: dict, now: dict) -> tuple[list[str], list[str]]:
    """What got worse and what got better, in words."""
    worse = [f"{key}: {before[key]} is now {now[key]}" for key in MASKS if before[key] != now[key]]
    better = []
    pairs = [("forced bytes", -before["forced bytes"], -now["forced bytes"])]
    for held in ("bytes", "positions"):
        pairs += [(f"{held} ({k})", before[held][k], v) for k, v in now[held].items() if k in before[held]]
    for name, old, new in pairs:
        if new != old:
            (worse if new > old else better).append(f"{name}: {abs(old):,} is now {abs(new):,}")
    return worse, better


def run_command(vocabularies: list[str], workloads: list[str], update: bool, path: Path = RECORD) -> int:
    """Count, compare, and record if asked to; 1 if something got worse and is not recorded."""
    recorded = read_record(path, "constrained bench engine")
    fell = False
    for name in vocabularies:
        tokens = load(name)
        vocabulary = engine("ours").prepare(tokens)
        here = recorded.setdefault(name, {})
        for workload in workloads:
            label = f"{name}, {workload}"
            try:
                now = count(vocabulary, tokens, WORKLOADS[workload]())
            except Refused as error:
                print(f"{label}: refused: {str(error).splitlines()[0]}")
                continue
            # Counts of another version of the vocabulary can't be compared.
            before = here.get(workload)
            if before and before["vocabulary"] != now["vocabulary"] and not update:
                print(f"{label}: another vocabulary than the recorded one (another version of it?)")
                continue
            worse, better = compare(before, now) if before else ([], [])
            for words in worse:
                print(f"{label}: WORSE: {words}")
            for words in better:
                print(f"{label}: better: {words}")
            if not before:
                print(f"{label}: not on record: {now['masks']} masks, {now['forced bytes']} bytes forced")
            elif not worse and not better:
                print(f"{label}: as on record")
            fell = fell or bool(worse)
            if update:
                old = before or {"bytes": {}, "positions": {}}
                here[workload] = now | {held: {**old[held], **now[held]} for held in ("bytes", "positions")}
    if update:
        write_whole(path, to_json(recorded))
        note_record(path)
        print(f"recorded in {path.name}")
        return 0
    return 1 if fell else 0

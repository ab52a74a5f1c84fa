"""MaskBench (guidance-ai/jsonschemabench): JSON Schemas and instances, ours beside llguidance and XGrammar.

    constrained bench maskbench --limit 100 --json maskbench.json

The figures are the benchmark's own. TTFM is the time to the first mask: a schema is compiled, a text begun, its mask
computed. TBM is the time of one mask and of taking in its token. Both are CPU time, and what is loaded before the first
schema is left out of Python's garbage collection (`gc.freeze`), so that they are those of a machine with nothing else
to do. Each engine runs in a process of its own, as in the benchmark, with one thread; they take turns of 20 schemas.
Before its first turn, each computes a mask for {"type": "null"}: what it makes once for a vocabulary counts for none.
A schema passes if every instance is judged right. A second table has the times of the schemas that every engine loads:
who refuses what is hard has no time for it in the first. "ours-ordered" admits properties in the schema's order alone
(`any_order=False`). A schema that takes longer than `--seconds`, or ends its engine's process, counts as a compile
error. With several `--rounds` the least of each time counts, so that what disturbs one of them does not. Every finished
schema is a line of a file in `--output`; an interrupted run goes on with what is missing.

    constrained bench maskbench --exact           our verdicts and masks beside benchmarks/results/maskbench_exact.json
    constrained bench maskbench --exact --update  records them
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from tqdm import tqdm

from benchmarks.engine.engines import Refused, Session, engine
from benchmarks.engine.vocabularies import load, tokenizer
from benchmarks.engine.worker import OverTime, Worker
from benchmarks.reporting import add_exact, add_json, check_exact, describe_machine, markdown, note_record, report
from benchmarks.result_files import RESULTS, read_record
from constrained import Grammar, compile_grammar
from constrained.automaton.tokenizers import encode
from constrained.cli.options import whole_number
from constrained.environments.data import data_file
from constrained.errors import ConstrainedError, DataError
from constrained.files import to_json, write_whole

ENGINES = ("ours", "ours-ordered", "llguidance", "xgrammar")
RECORD = RESULTS / "maskbench_exact.json"
PERCENTILES = (25, 50, 75, 90, 95, 99, 99.9, 100)
TURN = 20
"""Schemas that an engine measures in one turn; short turns let other load on the machine affect all engines alike."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--data", type=Path, help="folder or .tar.xz of the schemas (default: the shared data's)")
    add("--engine", action="append", choices=ENGINES, help="repeatable; default: all")
    add("--limit", type=whole_number, help="only so many schemas, spread evenly over all")
    add("--seconds", type=whole_number, default=60, help="per schema and engine (default: 60)")
    add("--rounds", type=whole_number, default=1, help="how many times to measure every schema, in new processes each "
        "time; the least time counts (default: 1)")  # fmt: skip
    add("--output", type=Path, default=Path("runs/maskbench"), help="folder of the runs")
    add("--fresh", action="store_true", help="measure again what is finished")
    add_exact(parser, RECORD)
    add_json(parser)


def run_command(options: argparse.Namespace) -> int:
    check_exact(options)
    data = options.data or data_file("maskbench/schemas.tar.xz")
    try:
        cases = list(_cases(data))
    except (tarfile.ReadError, ValueError) as error:
        raise DataError(f"{data}: {error}", "give a folder or archive of MaskBench's schemas") from None
    if not cases or not all(isinstance(case, dict) and {"schema", "tests"} <= case.keys() for _, case in cases):
        raise DataError(f"{data} has no schemas of MaskBench", "each is a .json file with 'schema' and 'tests'")
    cases = cases[:: max(1, len(cases) // options.limit)][: options.limit] if options.limit else cases
    if options.exact:
        return _exact(cases, options.update)
    names = options.engine or list(ENGINES)
    path = options.output / "maskbench.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(path.with_name(f".{path.name}.lock"), timeout=0):
            if options.fresh:
                path.unlink(missing_ok=True)
            done = _finished(path)
            _measure_all(cases, names, options.seconds, options.rounds, path, done)
    except Timeout:
        raise DataError(f"another run is writing to {path}", "wait for it, or name another --output") from None
    wanted = {name for name, _ in cases}
    runs = {
        name: _least([r for r in done if r["engine"] == name and r["schema"] in wanted], options.rounds)
        for name in names
    }
    figures = {name: summary(found) for name, found in runs.items()}
    text = table(figures)
    by_all = set.intersection(*({r["schema"] for r in found if "error" not in r} for found in runs.values()))
    of_all = {name: _times([r for r in found if r["schema"] in by_all]) for name, found in runs.items()}
    if len(names) > 1:
        text += f"\n\nOf the {len(by_all):,} schemas that all of these load:\n\n{table(of_all)}"
    facts = {"command": _command(options), "machine": describe_machine()}
    return report(text, {**facts, "figures": figures, "loaded by all": of_all}, options)


def _finished(path: Path) -> list[dict]:
    """What earlier runs have measured; a last line that was cut short is dropped from the file."""
    data = path.read_bytes() if path.exists() else b""
    whole = data[: data.rfind(b"\n") + 1]
    done = []
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            done.append(json.loads(line))
            done[-1]["engine"], done[-1]["schema"], done[-1]["masks"]
        except (ValueError, LookupError, TypeError, RecursionError):
            raise DataError(f"{path}, line {number}: damaged", "take the line out, or measure --fresh") from None
    if whole != data:
        write_whole(path, whole)
    return done


def _measure_all(
    cases: list[tuple[str, dict]], names: list[str], seconds: int, rounds: int, path: Path, done: list[dict]
) -> None:
    """Measure what is not in `done`, and add it there and to the file."""
    measured = Counter((one["engine"], one["schema"]) for one in done)
    with path.open("a") as out, tqdm(total=len(cases) * len(names) * rounds, unit="schema", disable=None) as bar:
        for number in range(rounds):
            workers = {name: Worker(name, Measured, name) for name in names}
            try:
                for first in range(0, len(cases), TURN):
                    for name, (schema, case) in product(names, cases[first : first + TURN]):
                        if measured[name, schema] <= number:
                            done.append({"engine": name, "schema": schema, **_ask(workers[name], case, seconds)})
                            out.write(json.dumps(done[-1]) + "\n")
                            out.flush()
                        bar.update()
            finally:
                for worker in workers.values():
                    worker.stop()


def _least(records: list[dict], rounds: int) -> list[dict]:
    """One record for each schema: the least of each time over `rounds` rounds, or the error of one of them."""
    by_schema: dict[str, list[dict]] = {}
    for one in records:
        by_schema.setdefault(one["schema"], []).append(one)
    out = []
    for found in by_schema.values():
        found = found[:rounds]
        failed = next((one for one in found if "error" in one), None)
        masks = [min(times) for times in zip(*(one["masks"] for one in found))]
        out.append(failed or found[0] | {"ttfm": min(one["ttfm"] for one in found), "masks": masks})
    return out


def _ask(worker: Worker, case: dict, seconds: int) -> dict:
    """The measurements of one schema by an engine's process; "error" if it takes too long, or ends."""
    if not worker.running:
        try:
            worker.start()
        except Refused as error:
            raise ConstrainedError(f"{worker.name}: {error}", "choose the engines that run by --engine") from None
    try:
        return worker.ask("measure", case, seconds=seconds)
    except (OverTime, Refused) as error:
        return {"masks": [], "error": f"{type(error).__name__}: {error}"}


def _command(options: argparse.Namespace) -> str:
    limit = f" --limit {options.limit}" if options.limit else ""
    engines = "".join(f" --engine {name}" for name in options.engine or ())
    rounds = f" --rounds {options.rounds}" if options.rounds > 1 else ""
    return f"constrained bench maskbench{limit}{engines} --seconds {options.seconds}{rounds}"


def _cases(path: Path) -> Iterator[tuple[str, dict]]:
    if path.is_dir():
        for file in sorted(path.glob("*.json")):
            yield file.stem, json.loads(file.read_text())
        return
    with tarfile.open(path) as archive:
        for member in sorted(archive.getmembers(), key=lambda m: m.name):
            content = archive.extractfile(member) if member.name.endswith(".json") else None
            if content is not None:
                yield Path(member.name).stem, json.load(content)


def _compiler(name: str) -> Callable[[Any], Callable[[], Session]]:
    """A function that compiles a schema and returns a function that begins a text; one thread, over Tekken."""
    adapter = engine("ours" if name.startswith("ours") else name)
    vocabulary = adapter.prepare(load("tekken"))

    def compile_schema(schema) -> Any:
        if name.startswith("ours"):
            grammar = Grammar.from_json_schema(schema, any_order=name == "ours")
            return compile_grammar(grammar, vocabulary.vocabulary)
        text = json.dumps(schema)
        if name == "xgrammar":  # as the benchmark calls it where texts are to follow the standard
            return vocabulary.compiler.compile_json_schema(text, any_whitespace=True, strict_mode=False)
        import llguidance

        matcher = llguidance.LLMatcher(vocabulary.tokenizer, llguidance.LLMatcher.grammar_from_json_schema(text))
        if matcher.is_error():
            raise Refused(matcher.get_error().splitlines()[0])
        return matcher

    def begin(compiled) -> Session:
        session = adapter.start(vocabulary, compiled)
        if name == "llguidance":  # it accepts tokens that its mask excludes

            def advance(token: int) -> bool:
                return bool(session.mask[token >> 5] >> (token & 31) & 1) and compiled.consume_token(token)

            return replace(session, advance=advance)
        return session

    def compiled(schema) -> Callable[[], Session]:
        return partial(begin, compile_schema(schema))

    compiled({"type": "null"})().fill()  # tables that are made once for a vocabulary
    return compiled


class Measured:
    """An engine's verdicts and times; runs in its own process (see `benchmarks.engine.worker`)."""

    def __init__(self, name: str):
        self._compile = _compiler(name)

    def hello(self) -> dict:
        """Exclude the objects loaded so far from garbage collection, which would otherwise slow some masks."""
        gc.collect()
        gc.freeze()
        return {}

    def measure(self, case: dict) -> dict:
        """The verdicts and times (microseconds) of one schema."""
        gc.collect()  # free the previous schema's objects
        masks: list[float] = []
        out: dict[str, Any] = {"masks": masks}
        try:
            began = time.process_time()
            begin = self._compile(case["schema"])
            begin().fill()
            out["ttfm"] = round((time.process_time() - began) * 1e6, 1)
            for test in case["tests"]:
                text = json.dumps(test["data"], ensure_ascii=False)
                session, accepted = begin(), True
                fill, advance = session.fill, session.advance
                for token in encode(tokenizer("tekken"), text):
                    start = time.process_time()
                    fill()
                    accepted = advance(token)
                    masks.append(round((time.process_time() - start) * 1e6, 1))
                    if not accepted:
                        break
                if accepted != test["valid"]:
                    out["invalidation" if accepted else "validation"] = True
        except Exception as error:  # engines raise exceptions of many types
            out["validation" if "ttfm" in out else "error"] = f"{type(error).__name__}: {error}"[:300]
        return out


def summary(records: list[dict]) -> dict[str, float]:
    """The benchmark's figures of one engine."""
    compiled = [r for r in records if "error" not in r]
    wrong = [r for r in compiled if "invalidation" in r]
    refused = [r for r in compiled if "validation" in r and "invalidation" not in r]
    out: dict[str, float] = {
        "schemas": len(records), "passing": len(compiled) - len(wrong) - len(refused),
        "compile errors": len(records) - len(compiled), "validation errors": len(refused),
        "invalidation errors": len(wrong),
    }  # fmt: skip
    return out | _times(compiled)


def _times(compiled: list[dict]) -> dict[str, float]:
    out: dict[str, float] = {}
    for name, times in (("TTFM", [r["ttfm"] for r in compiled]), ("TBM", [t for r in compiled for t in r["masks"]])):
        if times:
            out[f"{name} avg (µs)"] = round(float(np.mean(times)), 1)
            for p in PERCENTILES:
                out[f"{name} p{p:g} (µs)"] = round(float(np.percentile(times, p)), 1)
    return out


def _exact(cases: list[tuple[str, dict]], update: bool) -> int:
    """Compare each schema's verdict, and a digest of its masks, with what is recorded; 1 if one differs."""
    compile_schema = _compiler("ours")
    recorded = read_record(RECORD, "constrained bench maskbench")
    differs = 0
    for schema, case in tqdm(cases, unit="schema", disable=None):
        digest = hashlib.blake2b(digest_size=8)
        try:
            begin = compile_schema(case["schema"])
            right = [_reads(begin(), test["data"], digest) == test["valid"] for test in case["tests"]]
            now = f"{'passing' if all(right) else 'wrong'} {digest.hexdigest()}"
        except ConstrainedError as error:
            now = f"refused: {error.message[:80]}"
        if recorded.get(schema, now) != now:
            differs += 1
            tqdm.write(f"{schema}: {recorded[schema]} is now {now}")
        recorded[schema] = now
    if update:
        write_whole(RECORD, to_json(recorded))
        note_record(RECORD)
        print(f"recorded in {RECORD.name}")
    passing = sum(recorded[schema].startswith("passing") for schema, _ in cases)
    print(f"{passing:,} of {len(cases):,} pass; {differs} differ from the record")
    return 0 if update else int(differs > 0)


def _reads(session: Session, value, digest) -> bool:
    """Whether a text is read to its end; its masks go into `digest`."""
    for token in encode(tokenizer("tekken"), json.dumps(value, ensure_ascii=False)):
        session.fill()
        digest.update(session.mask.tobytes())
        if not session.advance(token):
            return False
    return True


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


def table(figures: dict[str, dict[str, float]]) -> str:
    """The figures as a table of Markdown, an engine a column."""
    names = list(dict.fromkeys(key for one in figures.values() for key in one))
    return markdown(["", *figures], [[n, *(_figure(f.get(n, 0)) for f in figures.values())] for n in names])

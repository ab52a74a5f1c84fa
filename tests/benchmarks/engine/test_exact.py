"""The ratchet: counts of our engine on record, which may get better but not worse."""

from __future__ import annotations

import json

import pytest

from benchmarks.engine import exact
from benchmarks.engine.engines import engine
from benchmarks.engine.vocabularies import BY_SIZE, load
from benchmarks.engine.workloads import WORKLOADS
from benchmarks.result_files import read_record
from constrained.errors import DataError
from tests.data import shared

RECORDED = read_record(exact.RECORD, "constrained bench engine")

COUNTS = {
    "masks": 3, "allowed tokens": 10, "hash": "ab", "masks of one token": 1, "forced bytes": 20,
    "bytes": {"kernel": 100, "python": 50}, "positions": {"kernel": 7},
}  # fmt: skip

AFFORDABLE = [("phi3-mini", name) for name in WORKLOADS] + [
    ("gpt2", "step"), ("gpt2", "graph"), ("qwen2.5", "choices"), ("tekken", "bounded"), ("tekken", "calculator"),
]  # fmt: skip


@pytest.fixture(scope="module")
def prepared():
    known: dict = {}

    def prepare(name: str):
        if name == "tekken":
            pytest.importorskip("mistral_common")
        else:
            shared(f"tokenizers/{name}")
        if name not in known:
            tokens = load(name)
            known[name] = tokens, engine("ours").prepare(tokens)
        return known[name]

    return prepare


@pytest.mark.parametrize(("name", "workload"), AFFORDABLE)
def test_nothing_got_worse(name, workload, prepared):
    tokens, vocabulary = prepared(name)
    before, now = RECORDED[name][workload], exact.count(vocabulary, tokens, WORKLOADS[workload]())
    if before["vocabulary"] != now["vocabulary"]:
        pytest.skip(f"another version of {name} than that on record")
    worse, better = exact.compare(before, now)
    assert not worse, worse
    if better:
        print(f"{name}, {workload}: {better}; record it: constrained bench engine --exact --update")


def test_every_vocabulary_and_workload_is_on_record():
    assert set(RECORDED) == set(BY_SIZE) and all(set(known) == set(WORKLOADS) for known in RECORDED.values())


@pytest.mark.parametrize(
    ("change", "worse", "better"),
    [
        ({}, [], []),
        ({"hash": "ac"}, ["hash: ab is now ac"], []),
        ({"allowed tokens": 9}, ["allowed tokens: 10 is now 9"], []),
        ({"forced bytes": 19}, ["forced bytes: 20 is now 19"], []),
        ({"forced bytes": 1_021}, [], ["forced bytes: 20 is now 1,021"]),
        ({"bytes": {"kernel": 101}}, ["bytes (kernel): 100 is now 101"], []),
        ({"bytes": {"python": 49}}, [], ["bytes (python): 50 is now 49"]),
        ({"bytes": {"other": 999}}, [], []),
        ({"positions": {"kernel": 8}}, ["positions (kernel): 7 is now 8"], []),
    ],
)
def test_what_is_worse_and_what_is_better(change, worse, better):
    assert exact.compare(COUNTS, COUNTS | change) == (worse, better)


def test_the_command_tells_what_fell_and_records_only_when_asked(tmp_path, capsys):
    shared("tokenizers/phi3-mini")
    record = tmp_path / "exact.json"

    def run(update: bool = False) -> tuple[int, str]:
        code = exact.run_command(["phi3-mini"], ["choices"], update, record)
        return code, capsys.readouterr().out

    assert run()[0] == 0 and not record.exists()
    assert run(update=True)[0] == 0
    assert run() == (0, "phi3-mini, choices: as on record\n")
    known = json.loads(record.read_text())
    known["phi3-mini"]["choices"]["forced bytes"] += 1
    record.write_text(json.dumps(known))
    code, words = run()
    assert code == 1 and "WORSE: forced bytes" in words
    assert run(update=True)[0] == 0 and run()[0] == 0
    record.write_text("{")
    with pytest.raises(DataError, match="exact.json is damaged"):
        run()

"""`constrained bench engine`: engines in processes of their own, every mask judged, nothing left out silently."""

from __future__ import annotations

import importlib.util
import json
import os
import time
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.engine import command, correctness, engines, first, measure, report
from benchmarks.engine.comparison import Kept, record
from benchmarks.engine.correctness import Verdict
from benchmarks.engine.language import Chars, Choice, Seq
from benchmarks.engine.measure import PROBES, Times, probe
from benchmarks.engine.vocabularies import Tokens, load, spell, tokenizer
from benchmarks.engine.worker import OverTime, Worker
from benchmarks.engine.workloads import WORKLOADS, Case, Workload
from constrained.cli import main
from constrained.errors import ConstrainedError
from tests.data import shared

PEERS = [name for name in engines.PEERS if importlib.util.find_spec(name) and name != "llguidance"]
"""Those installed that need no tokenizer beside the tokens; llguidance has a test of its own."""
WORDS = [b"", *(bytes((b,)) for b in range(256)), b"desk", b" 1", b" 10", b"10", "é".encode(), b"go ", b"to ", b"a]"]
TOKENS = Tokens("bytes", WORDS, [0], [0])
NODE = Seq("go to ", Choice("desk 1", "desk 10", "a"), "[", Chars("]", negated=True), "]")
TEXT = "go to desk 10[né]"
WORKLOAD = Workload("probe", "a place", (Case({"root": NODE}, NODE, (TEXT,)),))
IDS = [[[WORDS.index(t) for t in (b"go ", b"to ", b"desk", b" 10", b"[", b"n", "é".encode(), b"]")]]]


def walk(name: str) -> measure.Walk:
    adapter = engines.engine(name)
    return measure.walk(adapter, adapter.prepare(TOKENS), WORKLOAD, IDS, keep=True)


def judged(name: str, masks: list[np.ndarray]) -> Verdict:
    where = correctness.prefixes(WORKLOAD.cases, IDS, TOKENS)
    correctness.clear_padding(masks, TOKENS)
    return correctness.judge(name, masks, correctness.exact_masks([], [], where, TOKENS), where, TOKENS)


def test_our_masks_are_those_of_the_referee():
    verdict = judged("ours", walk("ours").masks)
    assert verdict == Verdict(masks=len(IDS[0][0]) + 1)


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_is_driven_as_it_should_be(name):
    found = walk(name)
    verdict = judged(name, found.masks)
    assert len(found.times.masks) == len(found.times.advances) == len(IDS[0][0])
    if name == "lmformatenforcer":  # a byte that begins a character is none of its characters
        assert verdict.wrong and not verdict.refused
    else:
        assert verdict.correct


@pytest.mark.parametrize("name", ["ours", *PEERS])
def test_the_named_faults_are_probed(name):
    adapter = engines.engine(name)
    found = probe(adapter, adapter.prepare(TOKENS), TOKENS)
    assert set(found) == set(PROBES)
    assert all(found.values()) is (name != "outlines_core")


def test_llguidance_is_driven_over_its_tokenizer():
    pytest.importorskip("llguidance")
    shared("tokenizers/phi3-mini")
    tokens, adapter = load("phi3-mini"), engines.engine("llguidance")
    vocabulary = adapter.prepare(tokens)
    ids = [[spell(tokens, TEXT)]]
    masks = measure.walk(adapter, vocabulary, WORKLOAD, ids, keep=True).masks
    correctness.clear_padding(masks, tokens)
    where = correctness.prefixes(WORKLOAD.cases, ids, tokens)
    verdict = correctness.judge("llguidance", masks, correctness.exact_masks([], [], where, tokens), where, tokens)
    assert verdict.correct and 0 < verdict.one_cut < verdict.masks == len(ids[0][0]) + 1
    assert all(probe(adapter, vocabulary, tokens).values())


def flipped(masks: list[np.ndarray], row: int, token: int) -> list[np.ndarray]:
    masks = [rows.copy() for rows in masks]
    masks[0][row].view(np.uint32)[token >> 5] ^= np.uint32(1 << (token & 31))
    return masks


@pytest.mark.parametrize(
    ("row", "token", "words"),
    [
        (0, WORDS.index(b"x"), "allows b'x' after b''"),
        (5, WORDS.index(b"a]"), "lacks b'a]' after b'go to desk 10['"),
        (8, 0, "lacks the end of the text after b'go to desk 10[n\\xc3\\xa9]'"),
        (7, 0, "allows the end of the text after b'go to desk 10[n\\xc3\\xa9'"),
    ],
)
def test_one_wrong_bit_is_found_and_told(row, token, words):
    verdict = judged("peer", flipped(walk("ours").masks, row, token))
    assert verdict.wrong == 1 and not verdict.correct and verdict.example.startswith(words)


def test_one_way_to_cut_what_is_forced_is_not_wrong():
    masks = walk("ours").masks
    forced = flipped(masks, 1, WORDS.index(b"t"))  # "to " is left
    assert judged("peer", forced) == Verdict(masks=9, one_cut=1)
    both = flipped(forced, 1, WORDS.index(b"to "))
    assert judged("peer", both).wrong == 1, "no token at all is no way to cut it"


def test_a_text_cut_short_is_a_text_refused():
    verdict = judged("peer", [walk("ours").masks[0][:3]])
    assert verdict.refused == 1 and verdict.example == "peer refuses b'desk' after b'go to '"


def test_where_ours_are_wrong_the_referee_puts_the_exact_mask_right():
    right = walk("ours").masks
    wrong = flipped(right, 5, WORDS.index(b"]"))
    where = correctness.prefixes(WORKLOAD.cases, IDS, TOKENS)
    exact = correctness.exact_masks(wrong, [right], where, TOKENS)
    assert np.array_equal(exact[0], right[0])
    assert correctness.judge("ours", wrong, exact, where, TOKENS).wrong == 1
    assert correctness.judge("peer", right, exact, where, TOKENS).correct


def test_rows_of_a_batch_are_judged_at_their_own_places():
    cases = (*WORKLOAD.cases, Case({"root": Chars("a", 1, 3)}, Chars("a", 1, 3), ("aa",)))
    workload = Workload("batch", "rows", cases, batched=True)
    ids = [*IDS, [[WORDS.index(b"a")] * 2]]
    adapter = engines.engine("ours")
    found = measure.walk(adapter, adapter.prepare(TOKENS), workload, ids, keep=True)
    where = correctness.batch_prefixes(cases, ids, TOKENS, measure.BATCH_CALLS)
    correctness.clear_padding(found.masks, TOKENS)
    exact = correctness.exact_masks([], [], where, TOKENS)
    assert correctness.judge("ours", found.masks, exact, where, TOKENS) == Verdict(masks=2 * measure.BATCH_CALLS)


class Sleeper:
    """Something slow, and something that dies."""

    def __init__(self, refuse: bool):
        if refuse:
            import a_peer_that_is_not_installed  # noqa: F401

    def hello(self) -> dict:
        return {"pid": os.getpid(), "threads": os.environ["OMP_NUM_THREADS"]}

    def sleep(self, seconds: float) -> int:
        time.sleep(seconds)
        return os.getpid()

    def die(self) -> None:
        os._exit(3)


def test_an_engine_that_takes_too_long_is_stopped_and_begins_anew():
    worker = Worker("sleeper", Sleeper, False)
    try:
        first = worker.ask("sleep", 0, seconds=600)
        assert worker.started == {"pid": first, "threads": "1"} and first != os.getpid()
        with pytest.raises(OverTime, match="over 0 s"):
            worker.ask("sleep", 60, seconds=0.2)
        assert worker.ask("sleep", 0, seconds=600) != first
        with pytest.raises(engines.Refused, match=r"its process ended \(3\)"):
            worker.ask("die", seconds=600)
    finally:
        worker.stop()
    with pytest.raises(engines.Refused, match="not installed: No module named 'a_peer_that_is_not_installed'"):
        Worker("sleeper", Sleeper, True).start()


def times(masks: list[float], first: float = 0.5) -> Times:
    return Times(compile=[0.25], first=[first], masks=masks, advances=[0.125] * len(masks), nbytes=[100])


def test_a_moments_noise_is_no_masks_time():
    found = record([times([1.0, 2.0]), times([1.0, 90.0]), times([1.0, 2.0])], Verdict(masks=3), [], cases=1)
    assert found["worst"] == 2.0 and found["p50"] == 1.5 and found["bytes"] == 100 and found["repeats"] == 3


def measured(engine: str, workload: str, correct: bool = True, **figures) -> dict:
    verdict = {"masks": 3, "wrong": 0 if correct else 2, "one_cut": 0, "refused": 0, "example": "allows b'x' after b''"}
    usual = {"cases": 1, "of cases": 1, "compiles": 20, "repeats": 20, "no ahead": "", "status": "measured"}
    where = {"vocabulary": "v", "workload": workload, "engine": engine}
    return where | usual | {"verdict": verdict, "correct": correct} | figures


def test_the_best_peer_is_the_best_that_was_right():
    records = [
        measured("ours", "choices", first=1e-3, p50=4e-6),
        measured("xgrammar", "choices", first=6e-3, p50=8e-6),
        measured("outlines_core", "choices", correct=False, first=1e-6, p50=1e-9),
        {
            "vocabulary": "v",
            "workload": "choices",
            "engine": "lmformatenforcer",
            "status": "over time",
            "reason": "over 20 s",
        },
    ]
    first, p50 = report.rows(records, "v")
    assert first.best == "xgrammar" and first.ratio == pytest.approx(1 / 6) and first.reached is True
    assert p50.ratio == 0.5 and p50.reached is False, "half of the best, and yet over 3 µs"
    text = report.table(records, "v")
    assert "| 1 ms | **6 ms** | ~~1 µs~~ | 0.17 | ≤ 1/5 of best | reached |" in text
    assert "- outlines_core, choices: 2 of 3 masks wrong: allows b'x' after b''" in text
    assert "- lmformatenforcer, choices: over time: over 20 s" in text


def test_a_target_beside_one_named_peer():
    records = [measured("ours", "bounded", worst=2e-4), measured("xgrammar", "bounded", worst=1e-6)]
    assert [row.reached for row in report.rows(records, "v")] == [None], "llguidance did not run"
    records.append(measured("llguidance", "bounded", correct=False, worst=3e-3))
    assert [row.reached for row in report.rows(records, "v")] == [True]


def test_amounts():
    assert [report.amount(x) for x in (2.5, 0.0123, 4.5e-6, 9e-8)] == ["2.5 s", "12.3 ms", "4.5 µs", "90 ns"]
    assert [report.amount(x, True) for x in (12, 4_500, 123_456_789)] == ["12 B", "4.5 kB", "123 MB"]


def test_what_was_kept_survives_a_line_cut_short(tmp_path):
    path = tmp_path / "run.jsonl"
    kept = Kept(path)
    kept.add("v", "step", "ours", {"p50": 1})
    kept.add("v", None, "ours", {"version": "1"})
    path.write_text(path.read_text()[:-5], encoding="utf-8")
    again = Kept(path)
    assert again.find("v", "step", "ours")["p50"] == 1 and again.find("v", None, "ours") is None
    path.write_text("{broken}\n", encoding="utf-8")
    with pytest.raises(ConstrainedError, match="run.jsonl is damaged"):
        Kept(path)


def test_a_run_measures_draws_and_keeps_what_is_finished(tmp_path, capsys):
    shared("tokenizers/phi3-mini")
    command = ["bench", "engine", "--vocabulary", "phi3-mini", "--workload", "choices", "--workload", "step"]
    command += ["--engine", "ours", "--repeats", "1", "--seconds", "0.1", "--output", str(tmp_path)]
    files = ["--json", str(tmp_path / "all.json"), "--plot", str(tmp_path / "all.svg")]
    assert main([*command, *files]) == 0
    (path,) = tmp_path.glob("engine-*.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    assert [json.loads(line)["workload"] for line in lines] == [None, "step", "choices"]
    result = json.loads((tmp_path / "all.json").read_text())
    assert all(r["status"] == "measured" for r in result["measurements"])
    assert [r["verdict"]["wrong"] for r in result["measurements"][1:]] == [0, 0]
    assert {"processor", "cores"} < set(result["machine"]) and result["settings"]["repeats"] == 1
    assert "choices" in (tmp_path / "all.svg").read_text()
    assert main(command) == 0
    assert path.read_text().splitlines(keepends=True) == lines, "nothing is measured twice"
    out = capsys.readouterr().out
    assert "| **choices** | text → first mask |" in out and "≤ 3 µs, ≤ best" in out


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--update"], "use --exact --update"),
        (["--repeats", "0"], "positive"),
        (["--plot", "x.gif"], "ends in .svg"),
        (["--threads", "0"], "from 1 to 64"),
    ],
)
def test_wrong_options_are_told_before_anything_is_measured(given, words, capsys, tmp_path):
    assert main(["bench", "engine", "--output", str(tmp_path / "runs"), *given]) == 1
    assert words in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_batches_are_timed_on_several_threads(tmp_path, capsys, monkeypatch):
    shared("tokenizers/phi3-mini")
    few = WORKLOADS["batch"]()
    monkeypatch.setattr(command, "batch", lambda: replace(few, cases=few.cases[:2]))
    monkeypatch.setattr(command, "SIZES", (3,))
    path = tmp_path / "threads.json"
    assert main(["bench", "engine", "--threads", "2", "--vocabulary", "phi3-mini", "--json", str(path)]) == 0
    measured = json.loads(path.read_text())["measurements"]
    assert [(m["rows"], m["threads"]) for m in measured] == [(3, 1), (3, 2)]
    assert all(m["new"] > 0 and m["known"] > 0 for m in measured)
    assert "| phi3-mini | 3 | 2 |" in capsys.readouterr().out


def test_without_data_the_error_says_what_to_set(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("CONSTRAINED_DATA", str(tmp_path))
    tokenizer.cache_clear()  # other tests have read it
    load.cache_clear()
    command = ["bench", "engine", "--vocabulary", "gpt2", "--engine", "ours", "--output", str(tmp_path / "runs")]
    assert main(command) == 1
    assert "set CONSTRAINED_DATA" in capsys.readouterr().err


def test_first_masks_are_compared_from_the_same_text(monkeypatch):
    for peer in ("llguidance", "xgrammar"):
        pytest.importorskip(peer)
    few = replace(WORKLOADS["choices"](), cases=WORKLOADS["choices"]().cases[:2])
    monkeypatch.setattr(first, "choices", lambda: few)
    monkeypatch.setattr(first, "ROUNDS", 2)
    shared("tokenizers/gpt2/tokenizer.json")
    found = first.measure(load("gpt2"))
    assert found.keys() == first.SIDES.keys() and min(found.values()) > 0
    ours, _, theirs = (first.SIDES[name][2](few.cases[0]) for name in list(first.SIDES)[:3])
    assert ours == theirs  # one text for both
    shown = first.table([{"vocabulary": "gpt2", "seconds": found}])
    assert shown.count("100 %") >= 1 and shown.count("\n") == len(first.SIDES) + 1

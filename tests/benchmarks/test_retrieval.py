"""The retrieval benchmark: what it measures, and that the recall stays what it was."""

import json
from pathlib import Path

from benchmarks import retrieval
from constrained.environments.question.env import Question
from constrained.environments.question.passages import Collection, Passage
from tests.data import shared

RESULTS = json.loads((Path(retrieval.__file__).parent / "results" / "retrieval.json").read_text())["rows"]


def test_recall_is_the_share_of_supporting_pages_among_the_first():
    pages = [Passage(title, ("x",)) for title in "abcdefghij"]
    questions = [Question("1", "", "?", "", ("a", "e")), Question("2", "", "?", "", ("b", "z"))]
    assert retrieval.recall_of(lambda query, limit: pages[:limit], questions) == {
        "1": 0.25,
        "2": 0.5,
        "5": 0.75,
        "10": 0.75,
    }


def test_recall_is_not_below_what_was_recorded():
    shared("hotpotqa")
    recorded = [row for row in RESULTS if row["backend"] == "sqlite"]
    for found, before in zip(retrieval.measure("sqlite", progress=False), recorded, strict=True):
        assert (found["ranking"], found["questions"]) == (before["ranking"], 500)
        for depth, recall in before["recall"].items():
            assert found["recall"][depth] >= recall - 0.002  # SQLite's versions cut words a little differently


def test_made_up_passages_are_added_up_to_so_many_the_same_every_time():
    few = Collection.of([Passage("A", ("One.", "Two.")), Passage("B", ("Three.", "Four."))])
    more = retrieval.padded(few, 5)
    passages = list(more.read())
    assert passages[:2] == list(few.read()) and len(passages) == 5 and passages == list(more.read())
    assert {title.split()[0] for title in (p.title for p in passages)} <= {"A", "B"}
    assert len({few.fingerprint, more.fingerprint, retrieval.padded(few, 6).fingerprint}) == 3

"""Questions and passages from files; a malformed row is named."""

import gzip
import json

import pytest

from constrained import ActionKnowledge
from constrained.environments.question import suites
from constrained.environments.question.index import LocalIndex
from constrained.environments.question.passages import page_collection
from constrained.environments.question.suites import (
    hotpotqa_paragraphs,
    load_fever,
    load_hotpotqa,
    load_strategyqa,
    strategyqa_facts,
)
from constrained.environments.suite import open_suite
from constrained.errors import DataError
from tests.data import shared

HOTPOT = {
    "_id": "a1", "level": "easy", "question": "Who? ", "answer": "He",
    "supporting_facts": [["A &amp; B", 0], ["C", 1], ["C", 0]],
    "context": [["A &amp; B", ["First.", " Second."]], ["C", ["Third."]]],
}  # fmt: skip
STRATEGY = {"qid": "b2", "term": "A_B", "question": "Is it?", "answer": False, "facts": ["It is  not.", "It may be."]}
FEVER = {
    "id": 3,
    "label": "REFUTES",
    "claim": "It is.",
    "evidence": [[[1, 2, "A_-LRB-film-RRB-", 0], [1, 2, "B", 3]], [[4, 5, None, None]]],
}


def write(tmp_path, *rows, name="rows.jsonl"):
    path = tmp_path / name
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_hotpotqa_rows_are_questions_and_distinct_paragraphs(tmp_path):
    path = write(tmp_path, HOTPOT, {**HOTPOT, "_id": "a2"})
    first, second = load_hotpotqa(path)
    assert (first.name, first.kind, first.text, first.answer, first.pages) == (
        "a1",
        "easy",
        "Who?",
        "He",
        ("A & B", "C"),
    )
    assert second.name == "a2"
    passages = list(hotpotqa_paragraphs(path).read())
    assert [(p.title, p.text) for p in passages] == [("A & B", "First. Second."), ("C", "Third.")]


def test_strategyqas_facts_are_gathered_by_their_term(tmp_path):
    path = write(tmp_path, STRATEGY, {**STRATEGY, "qid": "b3", "answer": True, "facts": ["It may be.", "It was."]})
    assert [(q.name, q.kind, q.answer, q.pages) for q in load_strategyqa(path)] == [
        ("b2", "no", "no", ("A B",)),
        ("b3", "yes", "yes", ("A B",)),
    ]
    [passage] = strategyqa_facts(path).read()
    assert (passage.title, passage.sentences) == ("A B", ("It is not.", "It may be.", "It was."))


def test_fevers_claims_name_their_pages_as_wikipedia_does(tmp_path):
    [claim] = load_fever(write(tmp_path, FEVER))
    assert (claim.name, claim.kind, claim.answer, claim.pages) == ("3", "REFUTES", "REFUTES", ("A (film)", "B"))


@pytest.mark.parametrize(
    "load, good, change, message",
    [
        (load_hotpotqa, HOTPOT, {"answer": None}, "no text under 'answer'"),
        (load_hotpotqa, HOTPOT, {"level": 3}, "no text under 'level'"),
        (load_hotpotqa, HOTPOT, {"supporting_facts": None}, "no list under 'supporting_facts'"),
        (load_hotpotqa, HOTPOT, {"supporting_facts": [["C"]]}, "'supporting_facts' holds"),
        (hotpotqa_paragraphs, HOTPOT, {"context": [["C", "text"]]}, "'context' holds"),
        (hotpotqa_paragraphs, HOTPOT, {"context": [["C", ["a", 1]]]}, "is no list of texts"),
        (hotpotqa_paragraphs, HOTPOT, {"context": [["", ["a"]]]}, "needs a title"),
        (load_strategyqa, STRATEGY, {"answer": "yes"}, "no truth value under 'answer'"),
        (strategyqa_facts, STRATEGY, {"facts": [1]}, "no list of texts under 'facts'"),
        (load_fever, FEVER, {"id": "3"}, "no whole number under 'id'"),
        (load_fever, FEVER, {"label": "TRUE"}, "the label is 'TRUE'"),
        (load_fever, FEVER, {"evidence": [[[1, 2]]]}, "'evidence' is not"),
        (load_fever, FEVER, {"evidence": [[[1, 2, 3, 4]]]}, "'evidence' is not"),
    ],
)
def test_a_malformed_row_is_named(tmp_path, load, good, change, message):
    path = write(tmp_path, good, {**good, **change})
    with pytest.raises(DataError) as error:
        loaded = load(path)
        list(loaded.read())
    assert message in error.value.message and f"{path}, row 2" in error.value.message


def test_a_file_cut_short_is_named(tmp_path):
    path = tmp_path / "rows.json.gz"
    path.write_bytes(gzip.compress(json.dumps([HOTPOT] * 50).encode())[:-30])
    with pytest.raises(DataError, match="rows.json.gz"):
        load_hotpotqa(path)


def test_pages_of_ones_own_are_read_from_a_folder(tmp_path):
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "The_cat.txt").write_text("A cat sat. It slept.\n")
    (folder / "nothing.txt").write_text(" ")
    write(
        folder,
        {"title": "Dog", "text": "A dog ran. It barked."},
        {"title": "Cow", "sentences": ["Moo."]},
        name="a.jsonl",
    )
    wiki = {"id": "Fox_-LRB-film-RRB-", "text": "", "lines": "0\tA fox -LRB- red -RRB- .\tfox\tFox\n1\tIt ran .\n2\t"}
    write(folder, wiki, {"id": "", "text": "", "lines": ""}, name="wiki-001.jsonl")
    (folder / "notes.md").write_text("not a page")
    index = LocalIndex(page_collection(folder), folder=tmp_path)
    assert index.page("the cat").sentences == ("A cat sat.", "It slept.")
    assert index.page("Fox (film)").sentences == ("A fox ( red ) .", "It ran .")
    assert index.page("Dog").text == "A dog ran. It barked." and index.page("Cow").text == "Moo."
    assert index.page("nothing") is None and index.page("notes") is None


@pytest.mark.parametrize(
    "row, message",
    [
        ({"title": "x"}, "'text'"),
        ({"sentences": ["a"]}, "'title'"),
        ({"title": "x", "sentences": [1]}, "no list of texts"),
        ({"id": 1, "lines": ""}, "'id'"),
    ],
)
def test_a_malformed_page_is_named(tmp_path, row, message):
    with pytest.raises(DataError, match=f"row 1.*{message}"):
        list(page_collection(write(tmp_path, row)).read())


def test_a_folder_without_pages_is_named(tmp_path):
    with pytest.raises(DataError, match="no pages in"):
        page_collection(tmp_path)
    with pytest.raises(DataError, match="none.jsonl"):
        page_collection(tmp_path / "none.jsonl")


# the data itself


def test_the_suites_hold_all_their_questions(tmp_path, monkeypatch):
    shared("hotpotqa")
    shared("strategyqa")
    monkeypatch.setenv("CONSTRAINED_CACHE", str(tmp_path))
    hotpot, strategy = open_suite("hotpotqa"), open_suite("strategyqa")
    kinds = [task.kind for task in hotpot.tasks]
    assert {kind: kinds.count(kind) for kind in kinds} == {"easy": 86, "medium": 329, "hard": 85}
    assert (hotpot.name, hotpot.knowledge, hotpot.measures) == ("hotpotqa/local", "hotpotqa", ("success", "f1", "em"))
    assert len(strategy.tasks) == 2061 and strategy.measures == ("success", "accuracy")
    for suite in (hotpot, strategy):
        assert len({task.name for task in suite.tasks}) == len(suite.tasks)
        env = suite.tasks[0].make()
        env.step(f"Search[{env.task}]")
        assert env.passage.title == env.question.pages[0]
        env.step(f"Finish[{env.question.answer}]")
        assert set(env.outcome()) == set(suite.measures) and set(env.outcome().values()) == {1.0}
    seen = open_suite("hotpotqa_seen", limit=3)
    assert (seen.name, seen.knowledge, len(seen.tasks)) == ("hotpotqa_seen/local", "hotpotqa_seen", 3)
    assert [task.name for task in open_suite("hotpotqa", limit=3).tasks] == [task.name for task in hotpot.tasks[:3]]


def test_every_supporting_page_of_hotpotqa_is_among_its_paragraphs():
    shared("hotpotqa")
    passages = list(hotpotqa_paragraphs().read())
    titles = {passage.title for passage in passages}
    assert len(passages) == len(titles) == 4923
    for question in load_hotpotqa():
        assert len(question.pages) == 2 and titles.issuperset(question.pages)


@pytest.mark.parametrize("name, every, unwritable", [("hotpotqa", 1, 1), ("strategyqa", 10, 0)])
def test_gold_paths_are_admitted_and_score_full_marks(tmp_path, monkeypatch, name, every, unwritable):
    shared(name)
    monkeypatch.setenv("CONSTRAINED_CACHE", str(tmp_path))
    knowledge = ActionKnowledge.from_lark(name)
    refused = []
    for task in open_suite(name).tasks[::every]:
        env = task.make()
        question = env.question
        path = [f"Search[{question.text[:200]}]", *(f"Retrieve[{page}]" for page in question.pages)]
        path.append(f"Finish[{question.answer}]")
        for action in path:
            env.step(action)
            assert env.had_effect, action
        assert env.outcome() == dict.fromkeys(env.outcome(), 1.0)
        report = knowledge.check(path)
        if not (report.ok and report.finished):
            refused.append(question.answer)
    assert len(refused) == unwritable and all(len(answer) > 200 for answer in refused)


def test_fever_has_claims_and_says_that_its_pages_are_missing(tmp_path):
    file = shared("fever")
    claims = load_fever()
    assert len(claims) == 2000 and {claim.answer for claim in claims} == set(suites.LABELS)
    if not (file / "wiki-pages").exists():
        with pytest.raises(DataError, match="come without their pages"):
            open_suite("fever")
    assert open_suite("fever", split="live", limit=1).tasks[0].make().reset() == f"Claim: {claims[0].text}"
    page = write(tmp_path, {"title": "A", "text": "It is."})
    own = suites.fever(limit=2, index=LocalIndex(page_collection(page), folder=tmp_path))
    assert own.knowledge == "fever" and own.max_steps == 8 and own.tasks[0].make().step("Search[A]")[0] == "A: It is."


def test_questions_of_one_name_are_refused(tmp_path, monkeypatch):
    (tmp_path / "strategyqa").mkdir()
    with gzip.open(tmp_path / suites.STRATEGYQA, "wt") as file:
        json.dump([STRATEGY, STRATEGY], file)
    monkeypatch.setenv("CONSTRAINED_DATA", str(tmp_path))
    with pytest.raises(DataError, match="'b2' names several questions"):
        open_suite("strategyqa")


def test_an_unknown_split_is_refused():
    for name in ("hotpotqa", "strategyqa", "fever"):
        with pytest.raises(DataError, match="local, live"):
            open_suite(name, split="test")

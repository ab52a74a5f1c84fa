"""A local index: built once, found by words and by title, whatever the text, and never half there."""

import multiprocessing
import pickle
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.retrieval import by_words
from constrained.environments.question import sqlite_store
from constrained.environments.question.index import BACKENDS, LocalIndex, PassageIndex
from constrained.environments.question.passages import Collection, Passage
from constrained.environments.text_search import cut_words, query_terms
from constrained.errors import ConstrainedError, DataError, ToolError
from tests.environments.question.small import MILHOUSE, PAGES, SMALL

backends = pytest.mark.parametrize(
    "backend",
    [
        "sqlite",
        pytest.param("tantivy", marks=pytest.mark.skipif(not find_spec("tantivy"), reason="tantivy is not installed")),
    ],
)


@pytest.fixture(scope="module")
def indexes(tmp_path_factory):
    """The small index of each backend that is there."""
    there = [name for name in BACKENDS if name == "sqlite" or find_spec(name)]
    made = {name: LocalIndex(SMALL, name, tmp_path_factory.mktemp(name)) for name in there}
    yield made
    for index in made.values():
        index.close()


@backends
def test_the_page_that_a_question_describes_comes_first(indexes, backend):
    index = indexes[backend]
    assert isinstance(index, PassageIndex)
    found = index.search("Who was Milhouse in The Simpsons named after?")
    assert found[0] == MILHOUSE
    assert len(index.search("planet metal god", 2)) == 2


@backends
def test_a_page_that_only_the_best_one_names_is_found_too(indexes, backend):
    index = indexes[backend]
    question = "Who made the character Milhouse?"
    assert "Matt Groening" not in [p.title for p in by_words(index.store, question, 5)]
    assert [p.title for p in index.search(question)][:2] == ["Milhouse Van Houten", "Matt Groening"]


@backends
@pytest.mark.parametrize(
    "asked, title",
    [
        ("Milhouse Van Houten", "Milhouse Van Houten"),
        ("milhouse  van_houten", "Milhouse Van Houten"),
        ("Foley &amp; Lardner", "Foley & Lardner"),
        ('"Heroes" (album)', '"Heroes" (album)'),
        ("ŁÓDŹ", "Łódź"),
        ("東京", "東京"),
        ("not", "NOT"),
        ("Mercury", "Mercury"),
    ],
)
def test_a_page_is_retrieved_by_its_title(indexes, backend, asked, title):
    assert indexes[backend].page(asked).title == title


@backends
def test_a_title_that_is_not_there_has_similar_ones(indexes, backend):
    index = indexes[backend]
    assert index.page("Milhouse") is None and index.page("") is None
    assert index.similar("Milhouse")[0] == "Milhouse Van Houten"
    assert index.similar("Mercury planet")[0] == "Mercury (planet)"
    assert set(index.similar("mercury")) == {"Mercury", "Mercury (planet)", "Mercury (element)"}
    assert index.similar("Lodz") == ["Łódź"] or backend == "sqlite"  # SQLite's Ł has no plain letter
    assert index.similar("zzz") == [] == index.similar("") == index.search("")


HOSTILE = [
    '"', '""', "'; DROP TABLE page; --", "title:milhouse", "milhouse*", "-milhouse", "NOT", "NOT NOT", "a AND",
    "NEAR(a b)", "{title}: milhouse", "^milhouse", "(", ")", "milhouse OR", "\x00", "a\x00b", "\ud800", "%", "_",
    "\\", "[", "a" * 100_000, "( " * 10_000, "milhouse " * 50_000, "😀", "\u202emilhouse", "é" * 70,
    "+milhouse^2~", "/a.*b/",
    "title:[a TO z]",
]  # fmt: skip


WORDS = {word.lower() for page in PAGES for word in cut_words(f"{page.title} {page.text}")}


@backends
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_no_text_is_a_query_of_its_own(indexes, backend, text):
    index = indexes[backend]
    found = index.search(text)
    assert set(found) <= set(PAGES)
    assert bool(found) == (not WORDS.isdisjoint(query_terms(text)))
    assert index.page(text) is None or text == "NOT"
    assert set(index.similar(text)) <= {page.title for page in PAGES}


@backends
@given(text=st.text(st.characters(exclude_categories=()), max_size=40))
def test_whatever_is_asked_is_answered(indexes, backend, text):
    index = indexes[backend]
    assert set(index.search(text)) <= set(PAGES)
    assert index.page(text) in (None, *PAGES)
    index.similar(text)


@backends
@settings(max_examples=10)
@given(st.lists(st.text(st.characters(exclude_categories=()), min_size=1, max_size=20), min_size=1, max_size=5))
def test_whatever_has_a_title_and_a_text_can_be_stored_and_retrieved(tmp_path_factory, backend, texts):
    passages = [Passage(f"{i} {text}", (text, f"word{i}")) for i, text in enumerate(texts)]
    index = LocalIndex(Collection.of(passages), backend, tmp_path_factory.mktemp("any"))
    for i, passage in enumerate(passages):
        assert index.page(passage.title).sentences[-1] == f"word{i}"
        assert [p.sentences[-1] for p in index.search(f"word{i}")] == [f"word{i}"]
    index.close()


@backends
def test_it_is_built_once_and_opened_afterwards(tmp_path, backend):
    def unread():
        raise AssertionError("read again")

    first = LocalIndex(SMALL, backend, tmp_path)
    assert first.search("cartoonist")
    first.close()
    again = LocalIndex(Collection(SMALL.fingerprint, unread), backend, tmp_path)
    assert again.search("cartoonist") and len(list(tmp_path.iterdir())) == 1
    again.close()
    again.close()
    assert again.page("NOT")  # asked again, it opens again


@backends
def test_other_passages_are_another_index(tmp_path, backend):
    more = Collection.of([*PAGES, Passage("Pluto", ("Pluto was a planet.",))])
    assert more.fingerprint != SMALL.fingerprint
    assert LocalIndex(SMALL, backend, tmp_path).page("Pluto") is None
    assert LocalIndex(more, backend, tmp_path).page("Pluto") is not None


def cut(path):
    path.write_bytes(path.read_bytes()[:-5000])


def blank(path):
    path.write_bytes(bytes(len(path.read_bytes())))


def scribble(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 4096] = b"x" * 4096
    path.write_bytes(data)


def empty(path):
    path.write_bytes(b"")


def unfinished(path):
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM built")


@pytest.mark.parametrize("damage", [cut, blank, scribble, empty, unfinished])
def test_a_damaged_file_is_built_again_with_a_warning(tmp_path, damage):
    many = Collection.of(Passage(f"page {i}", (f"word{i} and more",)) for i in range(300))
    index = LocalIndex(many, "sqlite", tmp_path)
    assert index.page("page 7")
    index.close()
    [file] = tmp_path.iterdir()
    damage(file)
    with pytest.warns(RuntimeWarning, match="built again"):
        assert LocalIndex(many, "sqlite", tmp_path).search("word7")[0].title == "page 7"
    assert [f.name for f in tmp_path.iterdir()] == [file.name]


@pytest.mark.skipif(not find_spec("tantivy"), reason="tantivy is not installed")
@pytest.mark.parametrize("name", ["passages.json", "meta.json", "*.store", "*"])
def test_a_damaged_folder_is_built_again_with_a_warning(tmp_path, name):
    LocalIndex(SMALL, "tantivy", tmp_path).search("x")
    [folder] = tmp_path.iterdir()
    for file in list(folder.glob(name)):
        file.unlink() if name == "*" else file.write_bytes(file.read_bytes()[:10])
    with pytest.warns(RuntimeWarning, match="built again"):
        assert LocalIndex(SMALL, "tantivy", tmp_path).page("NOT")
    assert [f.name for f in tmp_path.iterdir()] == [folder.name]


def ask(index, barrier, answers):
    barrier.wait()
    answers.put([passage.title for passage in index.search("planet metal")])


@backends
def test_processes_that_build_at_once_get_along(tmp_path, backend):
    context = multiprocessing.get_context("fork")
    barrier, answers = context.Barrier(3), context.Queue()
    index = LocalIndex(SMALL, backend, tmp_path)
    processes = [context.Process(target=ask, args=(index, barrier, answers)) for _ in range(3)]
    for process in processes:
        process.start()
    found = [answers.get(timeout=600) for _ in processes]
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert found[0] and found.count(found[0]) == 3
    assert len(list(tmp_path.iterdir())) == 1


@backends
def test_it_can_be_sent_elsewhere_and_is_built_there(tmp_path, backend):
    sent = pickle.loads(pickle.dumps(LocalIndex(SMALL, backend, tmp_path / "there")))
    assert sent.page("NOT") and (tmp_path / "there").is_dir()


def test_a_fork_opens_the_file_for_itself(indexes):
    index = indexes["sqlite"]
    assert index.search("planet")
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(index.search, ("planet",)) == index.search("planet")


@backends
def test_threads_may_share_one(indexes, backend):
    index = indexes[backend]
    queries = ["planet", "Milhouse", "metal", "Poland", "cartoonist"] * 20
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(index.search, queries)) == [index.search(query) for query in queries]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="can't be written") as error:
        LocalIndex(SMALL, "sqlite", tmp_path / "file" / "folder").search("x")
    assert "CONSTRAINED_CACHE" in str(error.value)


def test_an_unknown_backend_is_refused():
    with pytest.raises(DataError, match="sqlite, tantivy"):
        LocalIndex(SMALL, "bing")


def test_without_tantivy_its_backend_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tantivy", None)
    with pytest.raises(ConstrainedError, match=r"constrained-agents\[tantivy\]"):
        LocalIndex(SMALL, "tantivy", tmp_path)


def test_passages_that_cannot_be_read_leave_nothing_behind(tmp_path):
    def broken():
        yield PAGES[0]
        raise DataError("row 2 is damaged")

    with pytest.raises(DataError, match="row 2"):
        LocalIndex(Collection("0" * 64, broken), "sqlite", tmp_path).search("x")
    assert list(tmp_path.iterdir()) == []


def test_a_search_that_takes_too_long_is_a_tools_failure(tmp_path, monkeypatch):
    many = Collection.of(Passage(f"page {i}", ("word " * 50,)) for i in range(3000))
    index = LocalIndex(many, "sqlite", tmp_path)
    assert index.store
    monkeypatch.setattr(sqlite_store, "QUERY_SECONDS", -1.0)
    with pytest.raises(ToolError, match="longer than"):
        index.search("word page")

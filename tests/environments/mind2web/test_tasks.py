"""Files in the published form are read; what is malformed is named with file, row and step."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrained.environments.mind2web import page
from constrained.environments.mind2web.env import mind2web
from constrained.environments.mind2web.page import elements, read_page
from constrained.environments.mind2web.tasks import Operation, read_tasks
from constrained.errors import DataError
from tests.environments.mind2web import rows


def test_a_file_of_tasks_is_read(tmp_path):
    first, second = read_tasks(rows.write(tmp_path / "train_0.json"))
    assert (first.name, first.website, first.domain) == ("401c4e6f", "united", "Travel")
    assert first.task == "Rent the cheapest car in Boston."
    assert [step.operation for step in first.steps[:3]] == [
        Operation("TYPE", "Boston"), Operation("SELECT", "Price, low to high"), Operation("CLICK"),
    ]  # fmt: skip
    assert first.steps[2].targets == {"12", "13"} and first.steps[3].targets == frozenset()
    assert first.steps[0].candidates == ("10", "11", "12", "20", "30", "32", "999")
    assert len(second.steps) == 2


def test_elements_have_the_role_and_text_that_the_page_gives_them():
    nodes = read_page(rows.PAGE)
    found = elements(nodes, ["3", "10", "11", "12", "14", "20", "30", "32", "999"])
    assert [element.label for element in found] == [
        "[div] Rent a car Search Price, low to high Price, high to low 2 -> 4 & more doors",
        "[textbox] Pick-up city", "[button] Search", "[link] Search", "[button] Search (2)", "[combobox] sort",
        "[option] 2 -> 4 & more doors", "[div]",
    ]  # fmt: skip
    assert [element.node for element in found if element.editable] == ["10", "32"]
    assert [element.choices for element in found if element.choices] == [("Price, low to high", "Price, high to low")]


def test_labels_are_never_equal():
    html = "".join(f'<a backend_node_id="{n}">{text}</a>' for n, text in enumerate(["x", "x (2)", "x", "x", "x (2)"]))
    labels = [element.label for element in elements(read_page(html), map(str, range(5)))]
    assert len(set(labels)) == 5


@given(st.text(alphabet='<>/="! abdivselctopn1\n&;-', max_size=200))
def test_any_text_is_a_page(html):
    assert all(isinstance(node.text, str) for node in read_page(f'<p backend_node_id="1">{html}').values())


def test_long_texts_are_cut_in_labels():
    html = '<div backend_node_id="1">' + "<p>word word</p>" * 50_000 + "</div>"
    (element,) = elements(read_page(html), ["1"])
    assert len(element.label) <= page.MAX_TEXT + len("[div] ")


@pytest.mark.parametrize(
    "task, message",
    [
        ({}, "row 2: no text under 'annotation_id'"),
        (rows.changed(None, "confirmed_task"), "row 2: no text under 'confirmed_task'"),
        (rows.changed([], "actions"), "row 2: 'action_reprs' must have a text for each"),
        (rows.changed([1, 2, 3, 4], "action_reprs"), "row 2: 'action_reprs' must have a text"),
        (rows.changed("x", "actions", 2), "row 2, step 3: not an object but a str"),
        (rows.changed(None, "actions", 0, "cleaned_html"), "row 2, step 1: no text under 'cleaned_html'"),
        (rows.changed({}, "actions", 1, "operation"), "row 2, step 2, operation: no text under 'op'"),
        (rows.changed("HOVER", "actions", 1, "operation", "op"), "step 2: the operation 'HOVER' is none of CLICK"),
        (rows.changed(7, "actions", 1, "operation", "value"), "step 2, operation: no text under 'value'"),
        (rows.changed("[]", "actions", 0, "pos_candidates"), "step 1: no list under 'pos_candidates'"),
        (rows.changed([3], "actions", 0, "neg_candidates"), "step 1, negative candidate 1: not an object but a int"),
        (rows.changed([{}], "actions", 0, "pos_candidates"), "positive candidate 1: no text under 'backend_node_id'"),
    ],
)
def test_a_malformed_row_is_named(tmp_path, task, message):
    path = rows.write(tmp_path / "train_0.json", [rows.TASK, task])
    with pytest.raises(DataError, match=message) as error:
        list(read_tasks(path))
    assert "train_0.json" in str(error.value)


def test_a_page_beyond_the_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("constrained.environments.mind2web.tasks.MAX_PAGE", 100)
    with pytest.raises(DataError, match="row 1, step 1: a page of .* over the limit of 100"):
        list(read_tasks(rows.write(tmp_path / "a.json")))


def test_the_suite_reads_a_split(tmp_path, monkeypatch):
    monkeypatch.setenv("CONSTRAINED_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"no test_domain_0.json[\s\S]*osunlp/Mind2Web"):
        mind2web()
    with pytest.raises(DataError, match="no split 'dev'"):
        mind2web(split="dev")
    rows.write(tmp_path / "mind2web/test_domain/test_domain_0.json")
    rows.write(tmp_path / "mind2web/test_domain/test_domain_1.json", [{**rows.SHORT, "annotation_id": "other"}])
    suite = mind2web()
    assert [task.name for task in suite.tasks] == ["401c4e6f", "short", "other"]
    assert [task.kind for task in mind2web(limit=1).tasks] == ["Travel"]
    env = pickle.loads(pickle.dumps(suite.tasks[2].make))()
    assert len(env.recorded.steps) == 2 and set(suite.measures) <= env.outcome().keys()

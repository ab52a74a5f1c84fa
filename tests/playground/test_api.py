"""What the page is told: findings with places, the graph, what may come next."""

import pytest

from constrained.grammar import read_source
from constrained.playground import bounds

ROOMS = """\
%declare _STEP
%declare PLACE THING

// Tidy up.
start: goto{PLACE}

// goto: go to PLACE.
goto{p}: "go to " p _STEP (goto{PLACE} | take{THING, p})

// take: take THING from where you stand; that ends the plan.
take{t, p}: "take " t " from " p
"""


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """What is asked here is harmless, and the machine may be busy: no time limit may decide."""
    monkeypatch.setattr(bounds, "CHECK_SECONDS", 120.0)


def test_a_sound_text_has_its_graph_text_and_slots(asking):
    answer = asking.check(ROOMS)
    assert answer["findings"] == [] and answer["slots"] == ["PLACE", "THING"]
    assert answer["knowledge"]["svg"].startswith("<svg") and "goto" in answer["knowledge"]["svg"]
    assert answer["knowledge"]["text"].startswith("Tidy up.")
    assert answer["version"] is None


def test_an_error_is_told_with_its_place_and_fix(asking):
    answer = asking.check(ROOMS.replace("take{THING, p})", "tke{THING, p})"))
    found = next(one for one in answer["findings"] if one["severity"] == "error")
    assert (found["code"], found["line"], found["column"]) == ("undefined-rule", 8, 42)
    assert found["fix"] and found["why"] and answer["knowledge"] is None


def test_a_grammar_without_actions_has_no_graph(asking):
    answer = asking.check('start: "a"+\n')
    assert answer["knowledge"] is None and answer["slots"] == []


def test_what_may_come_next(asking):
    desks = {"PLACE": ["desk 1", "desk 10"], "THING": {"desk 1": ["pen"], "desk 10": ["cup"]}}
    answer = asking.explain(ROOMS, "go to desk 1", **desks)
    assert answer["ok"] and answer["verdict"] == "complete" and answer["follow"] == ["goto", "take"]
    assert answer["bytes"] == [ord("0")]  # or the action is over
    texts = [token["text"] for token in answer["tokens"]["first"]]
    assert texts == [None, "0"] or texts == ["0", None]
    after = asking.explain(ROOMS, "go to desk 10->take ", **desks)
    assert after["forced"] == "cup from desk 10" and after["bytes"] == [ord("c")]
    assert after["expected"][0]["spot"]["line"] == 11


def test_a_path_that_does_not_fit_says_why(asking):
    answer = asking.explain(ROOMS, "take THING from PLACE")
    assert answer["verdict"] == "misordered" and "goto" in answer["reason"]
    assert answer["unbound"] == ["PLACE", "THING"]


@pytest.mark.parametrize("name", ["household", "hotpotqa", "lumos/maths"])
def test_what_ships_is_opened_as_a_copy_and_is_sound(asking, name):
    opened = asking.ask("/api/open", document=name)
    assert opened == {"text": read_source(name).text, "version": None}
    assert not [one for one in asking.check(opened["text"], name)["findings"] if one["severity"] == "error"]


@pytest.mark.parametrize("name", ["../setup", "/etc/passwd", "relations", "file", ""])
def test_nothing_else_can_be_opened(asking, name):
    assert "no document" in asking.ask("/api/open", document=name)["error"]["message"]


def test_a_text_imports_what_ships_and_what_is_beside_its_file(asking, with_file):
    alone = "%import relations (another)\n%declare P\nstart: s{P}\ns{p}: p another{P, p}\n"
    assert asking.check(alone)["findings"] == []
    assert asking.explain(alone, "a", P=["a", "b"])["bytes"] == [ord("b")]
    mine, file = with_file(None)
    (file.parent / "words.lark").write_text('WORD: "yes" | "no"\n')
    assert mine.check("%import .words.WORD\nstart: WORD\n", "file")["findings"] == []


@pytest.mark.parametrize(
    "status, fields, words",
    [
        (400, {"text": None}, "'text'"),
        (400, {"values": []}, "'values'"),
        (400, {"document": 1}, "'document'"),
        (400, {"tokenizer": "/etc"}, "no tokenizer"),
        (200, {"text": "x" * (bounds.TEXT + 1)}, "200,001 characters"),
        (200, {"text": 'start: "\ud800"'}, "lone surrogate"),
        (200, {"path": "x" * (bounds.PATH + 1)}, "20,001 characters"),
    ],
)
def test_a_request_of_another_form_is_refused(asking, status, fields, words):
    whole = {"text": ROOMS, "document": None, "values": {}, "path": "", "tokenizer": "embedded"}
    answer = asking.post("/api/explain", **{**whole, **fields})
    assert answer.status_code == status and words in answer.json()["error"]["message"]


def test_a_request_that_is_too_large_is_not_read(asking):
    data = b'{"text": "' + b"x" * bounds.REQUEST + b'"}'
    headers = {**asking.headers, "Content-Type": "application/json"}
    answer = asking.client.post("/api/check", content=data, headers=headers)
    assert answer.status_code == 413


@pytest.mark.parametrize("values", [{"THING": [1]}, {"THING": []}, {"THING": {"desk": 1}}, {"THIN": ["pen"]}])
def test_wrong_values_are_told_of(asking, values):
    assert "THIN" in asking.explain(ROOMS, "", **values)["error"]["message"]

"""A model, here one of random weights, drafts knowledge that loads; the same seed gives the same draft."""

import json

import pytest

from constrained import ActionKnowledge
from constrained.agents.distill import distill, example_lines
from constrained.cli import main
from constrained.errors import ConstrainedError
from constrained.knowledge.draft import draft
from tests.decoding.tiny import tiny
from tests.knowledge.drafting import scripted


@pytest.mark.parametrize("seed", range(3))
def test_a_model_of_random_weights_drafts_knowledge_that_loads(seed):
    model = tiny(context=2048)
    lines = []
    given = {"model": model, "actions": 2 + seed, "temperature": 1.0, "seed": seed, "line_tokens": 30}
    distilled = distill("plan a journey", **given, on_line=lines.append)
    assert len(distilled.knowledge().actions) == 2 + seed
    assert lines[0].startswith("Overview: ") and lines[-1].startswith("First: ")
    assert distilled.usage["completion_tokens"] == sum(len(line.tokens) for line in distilled.lines) > 50
    assert distilled.text.startswith("// Drafted by constrained distill (model ")
    if seed == 0:
        assert distill("plan a journey", **given).text == distilled.text


def test_a_context_too_short_for_the_whole_draft_still_gives_one():
    distilled = distill("plan a journey", model=tiny(context=256), actions=6, line_tokens=30)
    assert len(distilled.knowledge().actions) == 6


def test_the_example_is_a_draft_itself():
    """What models go by has the very form that they write in."""
    lines = example_lines(ActionKnowledge.from_lark("hotpotqa")).split("\n")
    first = [f" {lines[1].removeprefix('Overview: ').replace('ed. Begin', 'ed, begin')[:150]}.\n"]
    written = [line + "\n" for line in lines[3:8]] + [f" {line.partition(': ')[2]}\n" for line in lines[8:]]
    drafted = draft("a question", scripted(*first, *written))
    assert [a.name for a in drafted.actions] == ["Retrieve", "Search", "Lookup", "Finish"]
    shipped = ActionKnowledge.from_lark("hotpotqa").rules
    assert {name: set(after) for name, after in ActionKnowledge.from_lark(drafted.to_lark()).rules.items()} == {
        name: set(after) for name, after in shipped.items()
    }


@pytest.mark.parametrize("seed", range(3))
def test_with_given_actions_only_their_order_is_drafted(seed):
    lines, model = [], tiny(context=2048)
    drafted = distill("answer", model=model, temperature=2.0, seed=seed, actions_of="hotpotqa", on_line=lines.append)
    assert lines[0].startswith("The last action:") and lines[-1].startswith("First: ")
    knowledge = drafted.knowledge()
    assert set(knowledge.actions) == set(ActionKnowledge.from_lark("hotpotqa").actions)
    assert all(drafted.text.count(f"{name}[") >= 2 for name in ("Search", "Retrieve", "Lookup", "Finish"))
    assert any(not after for name, after in knowledge.rules.items() if name != "start")


ANY_ORDER = """\
%declare _STEP
%declare SHELF  // where one can go
%declare BOOK   // what stands there

// Sort books.
start: | go_to{SHELF} | take{BOOK, SHELF}

// go_to: go to a shelf.
go_to{s}: "go to " s _STEP start

// take: take a book from a shelf.
take{b, s}: "take " b " from " s _STEP start
"""


@pytest.mark.parametrize("seed", range(3))
def test_actions_with_slots_keep_them_and_get_an_order(seed):
    """The environment ends the task, so no action is the last one, and a path may end after each."""
    lines = []
    drafted = distill(
        "sort", model=tiny(context=2048), temperature=2.0, seed=seed, actions_of=ANY_ORDER, on_line=lines.append
    )
    assert [line.partition(":")[0] for line in lines] == ["After GoTo", "After Take", "First"]
    knowledge = drafted.knowledge().bind(SHELF=["shelf 1"], BOOK=["atlas"])
    go, _ = drafted.draft.actions
    admitted = "GoTo" in drafted.draft.first and "Take" in go.after
    assert knowledge.check(["go to shelf 1", "take atlas from shelf 1"]).ok == admitted


@pytest.mark.parametrize(
    "lender",
    [
        "household",
        "webshop",
        "household_form",
        ANY_ORDER.replace(' " from " s _STEP start', ' " from " s _STEP go_to{SHELF}'),
        ANY_ORDER.replace("start: | go_to{SHELF} |", "start: |"),
    ],
    ids=["state", "no order but of other form", "alternatives by name", "an order", "an action that comes never first"],
)
def test_actions_that_a_draft_cannot_write_are_refused(lender, capsys):
    assert main(["distill", "tidy up", "--actions-of", lender, "--json"]) == 1
    assert "can't lend its actions to a draft" in capsys.readouterr().err


def test_the_command_leaves_a_file(tmp_path, capsys):
    file = tmp_path / "train.lark"
    assert main(["distill", "plan a journey", "--actions", "2", "-o", str(file)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"wrote {file}: 2 actions, ") and "knows no language" in err
    assert len(ActionKnowledge.from_lark(file).actions) == 2
    assert main(["distill", "plan a journey", "-o", str(file)]) == 1
    assert "already exists" in capsys.readouterr().err


def test_the_command_gives_json(capsys):
    assert main(["distill", "plan a journey", "--actions", "1", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert len(data["actions"]) == 2 and "start: " in data["lark"]


def test_a_line_needs_tokens():
    with pytest.raises(ConstrainedError, match="line_tokens is 0"):
        distill("x", line_tokens=0)

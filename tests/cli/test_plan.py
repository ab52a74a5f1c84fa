"""constrained plan: shows the plan as it comes, or gives it as JSON; one clear error, and nothing half-written."""

import json
from pathlib import Path

import pytest

from constrained.cli import main
from constrained.models.source import EMBEDDED
from tests.decoding.tiny import tiny
from tests.environments.household.small_house import GAME_FILE

TASK = "put a mug in the cabinet"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with a random model, as `--model` takes it."""
    folder, loaded = tmp_path_factory.mktemp("model"), tiny(context=4096)
    loaded.model.save_pretrained(folder)
    loaded.tokenizer.save_pretrained(folder)
    return str(folder)


def run(capsys, *argv):
    code = main(list(argv))
    out, err = capsys.readouterr()
    return code, out, err


def test_json_and_nothing_else(capsys, model, tmp_path):
    file = tmp_path / "plans" / "plan.json"
    code, out, err = run(capsys, "plan", TASK, "--model", model, "--strategy", "act", "--max-steps", "3",
                         "--json", "--output", str(file))  # fmt: skip
    assert code == 0 and err == ""
    plan = json.loads(out)
    assert plan["task"] == TASK and len(plan["steps"]) == 3 and plan["invalid"] == plan["misordered"] == 0
    assert file.read_text() == out
    assert list(file.parent.iterdir()) == [file]


def test_same_seed_same_plan(capsys, model):
    argv = ("plan", TASK, "--model", model, "--strategy", "act", "--max-steps", "4", "--temperature", "1", "--json")
    paths = [json.loads(run(capsys, *argv, "--seed", seed)[1])["path"] for seed in ("1", "1", "2")]
    assert paths[0] == paths[1] != paths[2]


def test_the_plan_is_shown_as_it_comes(capsys, model):
    code, out, err = run(capsys, "plan", TASK, "--model", model, "--strategy", "react", "--max-steps", "2")
    assert code == 0 and err == ""
    lines = out.splitlines()
    assert lines[0] == f"Task: {TASK}" and "masks: state" in lines[1]
    assert any(line.startswith("You are in the middle of a room.") for line in lines)
    assert len([line for line in lines if line.startswith("     > ")]) == 2
    assert "Not solved in 2 steps" in out and "0 invalid, 0 misordered actions." in out
    assert lines[-1] == "Note: stopped at the limit of 2 steps"


def test_without_masks_wrong_actions_are_marked(capsys, model):
    code, out, _ = run(capsys, "plan", TASK, "--model", model, "--strategy", "act", "--max-steps", "2", "--no-masks")
    assert code == 0
    assert out.count("[invalid]") == 2 and "masks off" in out and "2 invalid" in out


def test_phases_are_told_apart(capsys):
    assert main(["plan", "put a mug in the coffeemachine", "--strategy", "wese", "--max-steps", "12"]) == 0
    shown = capsys.readouterr().out
    explored, acted = shown.split("[explore]\n")[1].split("[exploit]\n")
    assert explored.count("> ") == 12 and f"Solved in {acted.count('> ')} steps after 12 of earlier phases" in acted


def test_an_open_loop_plan_is_noted(capsys, model):
    code, out, _ = run(capsys, "plan", "Who was Milhouse named after?", "--knowledge", "hotpotqa", "--model", model,
                       "--strategy", "act", "--max-new-tokens", "90")  # fmt: skip
    assert code == 0
    assert "Planned in " in out and "Note: nothing was executed: there is no environment for 'hotpotqa'." in out


def test_a_game_file_has_its_own_task(capsys, model, tmp_path):
    game = tmp_path / "game.tw-pddl"
    game.write_text(GAME_FILE)
    argv = ("--model", model, "--strategy", "act", "--max-steps", "2", "--json")
    code, out, _ = run(capsys, "plan", "--game", str(game), *argv)
    assert code == 0
    plan = json.loads(out)
    assert plan["task"] == "put a clean mug in sinkbasin." and "cabinet 2" in plan["first_observation"]

    game.write_text(GAME_FILE[: len(GAME_FILE) // 2])
    code, out, err = run(capsys, "plan", "--game", str(game), *argv)
    assert code == 1 and out == "" and err.startswith("error: ") and "game.tw-pddl" in err


@pytest.mark.skipif(not (EMBEDDED / "model.safetensors").is_file(), reason="the embedded model is not in this checkout")
def test_the_embedded_model_is_the_default(capsys):
    code, out, _ = run(capsys, "plan", TASK, "--max-steps", "2", "--json")
    assert code == 0 and json.loads(out)["model"] == "embedded"


@pytest.mark.parametrize(
    "argv, message",
    [
        ([""], "the task is empty"),
        ([], "give a task, --game FILE or --pddl"),
        ([TASK, "--game", "x"], "give a task, --game FILE or --pddl"),
        ([TASK, "--max-steps", "0"], "max_steps is 0"),
        ([TASK, "--max-new-tokens", "0"], "max_new_tokens is 0"),
        ([TASK, "--knowledge", "nothing"], "no grammar file 'nothing'"),
        ([TASK, "--knowledge", "steps/act"], "act.lark: start is an action itself"),
        ([TASK, "--model", "/no/such/model"], "/no/such/model"),
        ([TASK, "--knowledge", "hotpotqa", "--max-steps", "1"], "no whole plan fits in 1 steps"),
        (["--game", "/no/such/game"], "/no/such/game"),
    ],
)
def test_bad_input_is_one_clear_error(capsys, model, tmp_path, argv, message):
    file = tmp_path / "plan.json"
    given = ["plan", *argv, "--json", "--output", str(file), *([] if "--model" in argv else ["--model", model])]
    code, out, err = run(capsys, *given)
    assert code == 1 and out == ""
    assert err.startswith("error: ") and message in err and "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("argv", [["plan", TASK, "--strategy", "magic"], ["plan", "--max-steps", "x"], ["fly"], []])
def test_unknown_options_are_usage_errors(capsys, argv):
    with pytest.raises(SystemExit) as stopped:
        main(argv)
    assert stopped.value.code == 2
    assert "usage: constrained" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--output", "--trace"])
def test_a_plan_never_replaces_its_knowledge(capsys, tmp_path, option):
    file = tmp_path / "mine.lark"
    file.write_text('%declare _STEP\nstart: "a"\n')
    assert main(["plan", "a task", "--knowledge", str(file), option, str(file)]) == 1
    assert "can't be the output" in capsys.readouterr().err
    assert file.read_text() == '%declare _STEP\nstart: "a"\n'
    assert main(["plan", "a task", "--output", str(tmp_path / "a"), "--trace", str(tmp_path / "a")]) == 1
    assert "same file" in capsys.readouterr().err


HOTEL = str(Path(__file__).parent.parent.parent / "examples" / "worlds" / "hotel.lark")


@pytest.mark.parametrize(
    "argv",
    [
        ["--knowledge", HOTEL, "book room r303 for bob"],
        [HOTEL, "book room r303 for bob"],
        [HOTEL, "book", "room", "r303", "for", "bob"],
        ["--knowledge", HOTEL, "book", "room", "r303", "for", "bob"],
    ],
    ids=["in full", "without --knowledge", "without quotes", "without quotes, with --knowledge"],
)
def test_a_world_is_played_with_a_sentence(capsys, argv):
    code, out, err = run(capsys, "plan", *argv)
    assert code == 0 and err == ""
    assert "Task: book room r303 for bob\nact, model search, knowledge hotel" in out and "Solved in 3 steps" in out


@pytest.mark.parametrize(
    "argv, message, hint",
    [
        ([HOTEL], "hotel.lark has no goal of its own", 'give a task: "book {R} for {G}"'),
        ([HOTEL, "book r303 for karl"], "names 'karl', which is no guest", "there are: alice, bob, carol"),
        ([HOTEL, "sing"], "'sing' is no goal of hotel.lark", 'its goals are "book {R} for {G}"'),
        (
            [HOTEL, "book r101 for bob"],
            "nothing makes free r101 true, which book needs for booked bob r101",
            "add the fact",
        ),
    ],
)
def test_a_task_that_a_world_cannot_do_is_one_clear_error(capsys, argv, message, hint):
    code, out, err = run(capsys, "plan", *argv)
    proven = "nothing makes" in message
    assert code == (3 if proven else 1)
    assert out == "" and err.startswith("error: ") and message in err and hint in err


@pytest.mark.parametrize("more", [["--seconds", "5"], ["--planner", "pyperplan"]])
def test_a_search_with_a_limit_needs_a_goal_too(capsys, more):
    code, out, err = run(capsys, "plan", HOTEL, "sing", *more)
    assert code == 1 and out == "" and "'sing' is no goal of hotel.lark" in err


def test_what_is_not_judged_is_neither_solved_nor_not_solved(capsys):
    code, out, _ = run(capsys, "plan", HOTEL, "sing", "--model", "random", "--max-steps", "2")
    assert code == 0 and "Ended in 2 steps" in out
    assert "Note: stopped at the limit of 2 steps; the outcome isn't judged" in out


HOTEL = str(Path(__file__).parents[2] / "examples" / "worlds" / "hotel.lark")
BOOK = "book room r303 for bob"


def test_a_knowledge_file_may_stand_before_or_after_the_task(capsys):
    for words in ([HOTEL, BOOK], [BOOK, HOTEL], [HOTEL, *BOOK.split()]):
        assert main(["plan", *words]) == 0
        assert "act, model search, knowledge hotel" in capsys.readouterr().out


@pytest.mark.parametrize("more", [["--knowledge", "household"], [HOTEL]])
def test_two_knowledge_files_are_one_clear_error(more, capsys):
    assert main(["plan", HOTEL, BOOK, *more]) == 1
    assert "more than one knowledge file" in capsys.readouterr().err


def test_examples_are_counted_from_zero(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["plan", HOTEL, BOOK, "--demonstrations=-1"])
    assert "argument --demonstrations" in capsys.readouterr().err


def test_what_was_planned_is_printed_even_if_the_file_cannot_be_written(tmp_path, capsys):
    assert main(["plan", HOTEL, BOOK, "--output", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert "Solved in 3 steps" in captured.out and "it is a folder" in captured.err

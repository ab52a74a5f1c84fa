"""Gold paths of ScienceWorld, shortened, and made into what a model learns."""

import dataclasses
import json
import random

import pytest

from constrained import ActionKnowledge
from constrained.chooser.reader import Reader
from constrained.chooser.story import Words, forms_of
from constrained.environments.scienceworld.scene import Scene
from tests.environments.scienceworld.present import needs_scienceworld
from tools.scienceworld_model.paths import direct, shortened
from tools.scienceworld_model.play import Play, written
from tools.scienceworld_model.scripts import SCRIPTS
from tools.scienceworld_model.train import MOMENTS, batches, examples, exchanged, loss_of, replays


def test_watching_becomes_waiting():
    gold = ["look around", "activate stove", *["examine water", "use thermometer on water"] * 6, "wait1"]
    shortest, whole = shortened(gold)
    assert shortest == ["activate stove", *["wait", "use thermometer on water"]]
    assert whole == gold[1:]


def test_walks_that_come_back_are_left_out():
    there = ["open door to hallway", "go to hallway"]
    lost = ["open door to foundry", "go to foundry", "go to outside"]
    assert direct([*lost, *there], "outside") == there
    done = ["go to foundry", "pick up pot", "go to outside"]
    assert direct(done, "outside") == done


def test_an_action_gets_the_names_of_the_environment():
    names = {1: ["pot", "metal pot", "pot in stove"], 2: ["water", "substance in metal pot"], 3: ["thermometer"]}
    scene, called = Scene(names, {}, [], {}), {1: "metal pot", 2: "water", 3: "thermometer"}
    assert written("examine substance in metal pot", scene, called) == "look at water"
    assert written("use thermometer on Pot", scene, called) == "use thermometer on metal pot"
    assert written("drop cup", scene, called) is None and written("dance", scene, called) is None


def test_a_name_with_a_preposition_is_cut_where_both_parts_are_known():
    names = {1: ["red cup", "red cup in studio"], 2: ["blue cup", "blue cup in table"], 3: ["table"]}
    scene = Scene(names, {}, [], {})
    called = {1: "red cup", 2: "blue cup", 3: "table"}
    assert written("pour red cup in studio in blue cup in table", scene, called) == "pour red cup into blue cup"
    assert written("put blue cup into table", scene, called) == "move blue cup to table"


SLOTS = {"FREE": [""], "WAIT": ["wait"], "THING": ["red box"], "SHUT": ["red box"], "HELD": []}
ROW = {
    "task": "boil", "variation": 3, "description": "Your task is to boil water.", "inventory": "",
    "look": "This room is called the kitchen. In it:\n\ta red box. The red box door is closed.\n", "steps": [
        {"action": "wait", "answer": "You wait.", "learn": False, "slots": SLOTS, "look": "", "inventory": ""},
        {"action": "open red box", "answer": "It is open.", "learn": True, "slots": SLOTS, "look": "", "inventory": ""},
    ],
}  # fmt: skip


@pytest.fixture
def replay(tmp_path):
    file = tmp_path / "paths.jsonl"
    file.write_text(json.dumps(ROW) + "\n" + json.dumps({"task": "boil", "variation": 4, "steps": []}) + "\n")
    (found,) = replays([file])
    return found


def test_an_example_is_what_was_read_what_was_admitted_and_what_was_done(replay):
    knowledge = ActionKnowledge.from_lark("scienceworld")
    words = Words.of(["box", "red", "wait"], forms_of(knowledge, {"OTHER": [], **SLOTS}))
    story, (moment,), repeated = examples(words, knowledge, replay)
    assert moment.step == 1 and len(story.blocks) == 3 and repeated[words.forms.index("<WAIT>")] == 0
    form, first, _ = moment.chosen
    assert (words.forms[form], moment.look.names[first]) == ("open <SHUT>", "red box") and moment.second is None
    each, right = loss_of(Reader(words).eval(), [(story, [moment])])
    assert each.shape == right.shape == (1,) and each.isfinite().all()


def test_of_each_task_as_many_replays_are_read():
    moments = list(range(100))
    groups = {"boil": [[("a", moments)]], "melt": [[(str(n), moments)] for n in range(9)]}
    drawn = [one for batch in batches(groups, 4, 50, random.Random(0)) for one in batch]
    assert len(drawn) == 8 and sum(story == "a" for story, _ in drawn) == 4
    assert all(len(some) == MOMENTS for _, some in drawn)


def test_colours_are_exchanged_alike_everywhere(replay):
    text = "if so, place it in red box; red box; blue box; red apple; unknown substance b; inclined planes (b, d)"
    replay = dataclasses.replace(replay, blocks=[text], views=[{"THING": ["red box"]}], actions=["open red box"])
    mixed = [exchanged(replay, random.Random(n)) for n in range(20)]
    assert len({one.blocks[0] for one in mixed}) > 10
    for one in mixed:
        boxes = [part.split()[-2] for part in one.blocks[0].split("; ")[:3]]
        assert boxes[0] == boxes[1] != boxes[2] and "red apple" in one.blocks[0]
        assert one.actions == [f"open {boxes[0]} box"] and one.views == [{"THING": [f"{boxes[0]} box"]}]


def test_paints_are_exchanged_with_what_they_mix_to(replay):
    text = "create red-orange paint\nred and yellow paint mix to produce orange paint; inventory: orange"
    replay = dataclasses.replace(replay, task="chemistry-mix-paint-tertiary-color", blocks=[text], views=[], actions=[])
    mixed = {exchanged(replay, random.Random(n)).blocks[0] for n in range(40)}
    assert text.replace("red", "blue").replace("blue-orange", "green-blue").replace("orange p", "green p") in mixed
    assert len(mixed) == 6 and all(one.endswith("; inventory: orange") for one in mixed)


def test_what_the_task_names_is_called_otherwise_everywhere(replay):
    task = "your task is to melt ice cream. first, focus on substance"
    replay = dataclasses.replace(replay, blocks=[task, "wait\nkitchen: ice cream"], views=[], actions=["eat ice cream"])
    names = {exchanged(replay, random.Random(n)).actions[0].removeprefix("eat ") for n in range(20)}
    assert len(names) > 10 and all(len(name.split()) == 2 for name in names)
    one = exchanged(replay, random.Random(1))
    name = one.actions[0].removeprefix("eat ")
    assert one.blocks == [block.replace("ice cream", name) for block in replay.blocks]


@pytest.mark.parametrize("task", ["melt", "inclined-plane-friction-unnamed-surfaces"])
def test_a_script_solves_a_training_variation(task):
    needs_scienceworld()
    from constrained.environments.scienceworld.simulator import borrow, give_back

    simulator = borrow()
    play = Play(simulator, task, simulator.variations(task, "train")[-1])
    SCRIPTS[task](play, [], random.Random(0))
    give_back(simulator)
    assert play.noted(False)["score"] == 1
    assert any(step["action"].startswith("focus") for step in play.steps)

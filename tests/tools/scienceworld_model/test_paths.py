"""Gold paths of ScienceWorld, shortened, and made into what a model learns."""

import random

from constrained.environments.scienceworld.scene import Scene
from tools.embedded_model.tokenizer import train_tokenizer
from tools.scienceworld_model.paths import direct, shortened, written
from tools.scienceworld_model.train import END_MARK, MARK, SHOWN, WORDS, balanced, encode, exchanged, marked


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


ROW = {
    "task": "boil", "description": "Your task is to boil water.", "look": "This room is called the kitchen. In it:",
    "inventory": "", "steps": [
        {"action": "wait", "answer": "You wait.", "learn": False, "look": "", "inventory": ""},
        {"action": "open red box", "answer": "It is open.", "learn": True, "look": "", "inventory": ""},
    ],
}  # fmt: skip


def test_only_actions_to_learn_are_marked():
    text = marked(ROW)
    assert f"Action 1: wait\nyou wait\nAction 2: {MARK}open red box{END_MARK}\nit is open" in text
    assert len(balanced([ROW])) == 3 and len(balanced([ROW] * 9)) == 36


def test_an_action_ends_with_the_end_token_and_weighs_more_than_what_is_shown():
    text = marked(ROW)
    tokenizer = train_tokenizer([text], 300, split=WORDS)
    ids, labels, weights = encode(tokenizer, text)
    assert len(ids) == len(labels) == len(weights) and set(weights) == {1.0, SHOWN}
    learnt = [label for label, weight in zip(labels, weights) if weight == 1.0]
    assert tokenizer.decode(learnt[:-1]) == "open red box" and learnt[-1] == tokenizer.eos_token_id
    written_whole = tokenizer(text.replace(MARK, "").replace(END_MARK, ""), add_special_tokens=False)["input_ids"]
    assert ids == written_whole[:-1]  # an action has the same tokens where it is written and where it is read


def test_colours_are_exchanged_alike_everywhere():
    text = "if so, place it in red box; red box; blue box; red apple; unknown substance b; inclined planes (b, d)"
    mixed = [exchanged(text, random.Random(n)) for n in range(20)]
    assert all("red apple" in one for one in mixed) and len(set(mixed)) > 10
    for one in mixed:
        boxes = [part.split()[-2] for part in one.split("; ")[:3]]
        assert boxes[0] == boxes[1] != boxes[2]

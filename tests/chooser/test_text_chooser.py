"""The chooser that reads words: what it sees of an episode, and that it takes what is admitted."""

import numpy as np
import pytest

from constrained import ActionKnowledge
from constrained.chooser.reader import Moment, Reader
from constrained.chooser.story import FEW, JUDGED, RECENT, Story, Words, blocks_of, forms_of, read
from constrained.chooser.text import EMBEDDED, TextChooser, load_reader
from constrained.decoding.choosers import Choice
from constrained.errors import DataError, ModelError
from constrained.models import load_roles
from tools.scienceworld_model.train import save_reader

LARK = """
%declare _STEP THING BOX TIME
start: | take{THING} | put{THING, BOX} | wait
take{t}: "take " t _STEP start
put{t, b}: "put " t " into " b _STEP start
wait: TIME _STEP start
"""
VIEW = {"THING": ["red apple", "lamp"], "BOX": ["green box", "red box"], "TIME": ["wait", "wait1"]}
TEXT = """put the red apple into the green box if it is above 50 degrees
kitchen: table: red apple, lamp off; green box; red box
Action 1: take red apple
you have it
inventory: red apple
Action 2: wait
it has 72 degrees"""


@pytest.fixture
def knowledge(tmp_path):
    file = tmp_path / "boxes.lark"
    file.write_text(LARK)
    return ActionKnowledge.from_lark(str(file)).bind_view(VIEW)


@pytest.fixture
def words(knowledge):
    return Words.of(sorted(set(read(TEXT)) | {">0", "<0", "wait1"}), forms_of(knowledge, VIEW))


def story_of(words):
    first, *blocks = blocks_of(TEXT)
    story = Story(words, first)
    for block in blocks:
        story.look(words.forms, VIEW)
        story.update(block)
    return story


def test_forms_are_actions_with_slots(words):
    assert words.forms == ("<TIME>", "put <THING> into <BOX>", "take <THING>")
    assert words.slots == ("BOX", "THING", "TIME")


def test_numbers_are_compared_with_those_of_the_task():
    assert read("72 degrees", [50]) == ["#", ">0", "degrees"] and read("-3", [50]) == ["#", "<0"]
    assert read("pot 3") == ["pot", "3"]


def test_a_story_knows_what_was_done_and_where_a_name_was_last_shown(words):
    story = story_of(words)
    assert story.steps == [(2, "red apple", ""), (0, "wait", "")]
    assert story.parse("put lamp into red box") == (1, "lamp", "red box")
    assert story.repeated("wait") == 1 and story.repeated("take red apple") == 0  # something new was seen after it
    look = story.look(words.forms, VIEW)
    lamp, apple, red = (look.names.index(name) for name in ("lamp", "red apple", "red box"))
    known = {number: word for word, number in words.words.items()}
    assert known[look.after[lamp, 0]] == "off"
    assert [known[i] for i in look.before[lamp] if i > 0] == ["kitchen", "table", "red", "apple"]
    in_task = 2 * RECENT
    assert look.features[apple, in_task] == 1 and look.features[red, in_task] == 1 and look.features[lamp, in_task] == 0
    done = look.features[apple, FEW + 3 * len(words.forms) :]
    assert done.tolist() == [0, 1, 0]


def test_words_that_are_not_known_are_told_apart(words):
    task = words.ids(["zorb", "lamp", "zorb", "gleeb"], 5).tolist()
    assert task[0] == task[2] != task[3] and 0 < task[0] < min(words.words.values()) <= task[1] and task[4] == 0


def test_what_was_measured_of_names_is_compared_with_each_other_and_with_the_task(words):
    task = "take lamp if it is above 50 degrees, else red apple if it is below 50 degrees"
    story = Story(words, f"{task}\nroom: red apple, with: block 7% down; lamp, with: block 12% down")
    story.update("wait\nit has 72 degrees\nroom: lamp; red apple, with: block 9% down")
    look = story.look(words.forms, {**VIEW, "THING": ["red apple", "lamp", "degrees"]})
    end = -len(words.slots)
    told = {name: look.features[i, end - JUDGED : end].tolist() for i, name in enumerate(look.names)}
    assert told["red apple"] == [1, pytest.approx(np.log1p(9), abs=0.01), 0, 1, 1]
    assert told["lamp"] == [1, pytest.approx(np.log1p(12), abs=0.01), 1, 0, 0] and told["red box"] == [0] * JUDGED


def test_the_network_scores_what_is_admitted_and_nothing_else(words, tmp_path):
    story, reader = story_of(words), Reader(words).eval()
    look = story.look(("<TIME>", "put <THING> into <BOX>"), VIEW)
    chosen = 1, look.names.index("lamp"), 0
    first, second = reader([story], [Moment(0, 2, look, chosen, story.second(look, "lamp"))])
    possible = {(words.forms[form], look.names[name]) for form, name in np.argwhere(first[0].isfinite().numpy())}
    assert possible == {("<TIME>", "wait"), ("<TIME>", "wait1")} | {
        ("put <THING> into <BOX>", name) for name in VIEW["THING"]
    }
    assert {look.names[i] for i in second[0].isfinite().nonzero()[:, 0]} == set(VIEW["BOX"])
    alone, _ = reader([story], [Moment(0, 2, look)])
    assert alone.allclose(first)


def test_it_takes_an_admitted_action_and_is_tired_of_repeating(words, knowledge, tmp_path):
    file = tmp_path / "small.safetensors"
    save_reader(file, Reader(words), {0: 1, 1: 5, 2: 5})
    chooser = load_roles(str(file))["policy"]
    assert isinstance(chooser, TextChooser) and chooser.name == "small" and len(chooser.digest) == 16
    actions = tuple(knowledge.next_actions())
    for text in (TEXT, f"{TEXT}\nAction 3: wait\nit has 71 degrees", TEXT):  # another episode may come in between
        assert chooser.choose(Choice("", actions, remembered=text, knowledge=knowledge)) in actions
    assert chooser.choose(Choice("", ("put lamp into red box",), remembered=TEXT, knowledge=knowledge)) == (
        "put lamp into red box"
    )
    tired = f"{TEXT}\nAction 3: wait\nit has 71 degrees"
    assert chooser.choose(Choice("", ("wait", "take lamp"), remembered=tired, knowledge=knowledge)) == "take lamp"
    with pytest.raises(ModelError, match="what a memory tells"):
        chooser.choose(Choice("", actions, knowledge=knowledge))


def test_other_files_are_refused(tmp_path):
    file = tmp_path / "other.safetensors"
    file.write_bytes(b"no weights")
    with pytest.raises(DataError, match="can't read"):
        load_reader(file)


def test_the_network_that_plays_scienceworld_is_loaded_by_its_name():
    chooser = load_roles("scienceworld")["policy"]
    assert chooser.name == "scienceworld" and EMBEDDED.stat().st_size < 10_000_000

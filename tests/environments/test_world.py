"""The problem in a `.lark` file is played as its lines say; what isn't known is learned from answers."""

import random

import pytest
import torch

from constrained import ActionKnowledge, generate_plan
from constrained.agents.episode import Episode
from constrained.agents.plan import Plan
from constrained.agents.scheduler import Rollout, schedule
from constrained.agents.settings import Settings
from constrained.chooser.chooser import GraphChooser
from constrained.chooser.graphs import FeatureVocabulary
from constrained.chooser.network import Network
from constrained.cli import main
from constrained.environments.world import WorldEnvironment
from constrained.errors import ConstrainedError, DataError, KnowledgeError, UnreachableError
from constrained.knowledge.world import read_world
from constrained.knowledge.world.belief_state import BeliefState
from constrained.planning.relaxed import Relaxed
from tests.environments.walk import WALK
from tests.knowledge.world.kitchen import KITCHEN


def test_answers_are_what_the_lines_above_a_rule_say():
    env = WorldEnvironment(read_world("world"))
    assert "lies:" not in env.reset() and env.task == "lies letter office"  # where things lie isn't known
    assert env.step("take letter") == ("Nothing happens.", 0.0, False) and not env.had_effect
    assert env.step("go to cellar")[0] == "Nothing happens."  # it is locked
    assert env.step("go to office")[0] == "You are in the office. You see a key."
    assert env.known.holds("lies", "key", "office") and env.known.ruled_out(("lies", "letter", "office"))
    assert env.step("take key")[0] == "Done." and env.known.of("held") == [("held", "key")]
    assert not env.known.of("lies")


def test_what_was_ruled_out_may_not_be():
    env = WorldEnvironment(read_world("world"))
    before = env.facts_now().optimistic
    assert ("lies", "key", "office") in before and ("lies", "letter", "hall") in before
    assert ("lies", "letter", "office") not in before  # the goal, which isn't reached
    env.step("go to office")
    now = env.facts_now()
    assert ("lies", "key", "office") not in now.optimistic and ("lies", "letter", "cellar") in now.optimistic
    assert "take key" in now.actions and "go to cellar" not in now.actions


@pytest.mark.parametrize("seed", range(3))
def test_a_random_choice_of_helpful_actions_reaches_the_goal(seed):
    env, rng = WorldEnvironment(read_world("world")), random.Random(seed)
    env.reset()
    for _ in range(100):
        now = env.facts_now()
        helpful = Relaxed.of(now.task).helpful(now.state, now.optimistic)
        texts = [text for text, meant in now.actions.items() if not helpful.isdisjoint(meant)]
        _, _, done = env.step(rng.choice(texts or list(now.actions)))
        if done:
            return
    raise AssertionError("not reached in 100 steps")


@pytest.mark.parametrize("lines", [WALK, f"{WALK}//: maybe key(r)\n"], ids=["all known", "not all known"])
def test_a_network_chooses_in_a_world_and_remembers_where_it_has_been(lines):
    torch.manual_seed(3)
    world = read_world(lines)
    network = Network(FeatureVocabulary(world.domain), width=16).eval()  # random weights
    plan = generate_plan(
        "find the key",
        ActionKnowledge.from_lark(lines),
        environment=WorldEnvironment(world),
        strategy="act",
        max_steps=30,
        model=GraphChooser(scorer=network.scorer()),
    )
    assert plan.steps and plan.invalid == 0
    if "maybe" not in lines:
        assert plan.success and len(plan.steps) <= 6, "in no room twice, while there is another"


@pytest.mark.parametrize("lines", [WALK, f"{WALK}//: maybe key(r)\n"], ids=["all known", "not all known"])
def test_a_run_that_is_continued_goes_where_it_would_have_gone(lines):
    torch.manual_seed(3)
    world = read_world(lines)
    network = Network(FeatureVocabulary(world.domain), width=16).eval()
    settings = Settings("act", "act", True, 8, None)

    def played(recorded=()):
        models = {"policy": GraphChooser(scorer=network.scorer())}
        plan = Plan("find the key", "walk", "act", "chooser", True, 0)
        episode = Episode(models, ActionKnowledge.from_lark(lines), plan, settings, WorldEnvironment(world))
        rollout = Rollout(episode, recorded=recorded)
        assert all(not one.failure for one in schedule([rollout]))
        return plan

    whole = played()
    assert len(whole.steps) > 2
    for done in range(1, len(whole.answers)):
        continued = played(whole.answers[:done])
        assert [step.action for step in continued.steps] == [step.action for step in whole.steps]


def test_what_a_task_asks_for_and_nobody_saw_is_imagined():
    lines = "\n".join(line for line in KITCHEN.splitlines() if not line.startswith(("//: object", "//: init")))
    world = read_world(lines.replace("//: goal some t: thing (hot(t), in(t, cupboard))\n", ""))
    known = BeliefState(world, "put a hot egg in fridge")
    known.read("On the fridge 1, you see nothing.")
    known.read("On the shelf 1, you see a cup 2, and a cup 1.")
    assert known.objects == {"fridge 1": "fridge", "shelf 1": "shelf", "cup 2": "cup", "cup 1": "cup"}
    assert known.imagined() == {"egg ?1": "egg", "fridge ?1": "fridge"}
    assert ("in", "egg ?1", "fridge 1") not in known.facts_now().optimistic  # its contents were told
    known.read("On the cupboard 1, you see an egg 3.")
    assert known.of("in", "egg 3") == [("in", "egg 3", "cupboard 1")]


def test_a_file_without_a_problem_is_not_played():
    with pytest.raises(DataError, match="no problem to play"):
        WorldEnvironment(read_world("household"))


def test_a_world_is_begun_checked_and_played(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "--world", "den"]) == 0 and main(["check", "den.lark"]) == 0
    assert main(["plan", "--knowledge", "den.lark"]) == 0
    printed = capsys.readouterr().out
    assert "model search, knowledge den, masks: state" in printed and "Solved in" in printed
    assert main(["plan", "--knowledge", "hotpotqa"]) != 0
    assert "has no problem of its own" in capsys.readouterr().err


ASKED = WALK.replace("//: goal", '//: goal "go to {R}": at(R)\n//: goal')


def test_a_sentence_goes_before_the_files_own_goal():
    plan = generate_plan("go to c", ASKED, strategy="act")
    assert plan.path == ["go to c"] and plan.task == "go to c" and plan.outcome == {"success": 1.0}
    own = WorldEnvironment(read_world(ASKED)).task
    assert generate_plan(own, ASKED, strategy="act").path == ["go to e"]


def test_a_sentence_goes_even_before_a_goal_that_cannot_be_reached():
    lines = ASKED.replace("//: fact", "//: fact never,").replace("//: goal some", "//: goal never, some")
    with pytest.raises(ConstrainedError, match="nothing makes never true"):
        WorldEnvironment(read_world(lines))
    assert generate_plan("go to c", lines).success


def test_a_sentence_of_no_goal_line_is_the_models_task_and_is_not_judged():
    plan = generate_plan("sing a song", ASKED, model="random", strategy="act", max_steps=40, seed=1)
    assert plan.success is None and plan.outcome == {} and plan.came_to == "not judged" and not plan.open_loop
    assert "isn't judged" in plan.note and '"go to {R}"' in plan.note
    assert 0 < len(plan.steps) < 40 and "stop" not in plan.path  # it has said that it is done
    shortest = generate_plan("sing a song", ASKED, model="none", strategy="act")
    assert len(shortest.steps) == 1


def test_a_search_needs_a_goal():
    with pytest.raises(ConstrainedError, match="a search needs a goal, .* 'sing a song' is no goal of .*\"go to {R}\""):
        generate_plan("sing a song", ASKED)


HIDDEN = """%declare _STEP BOX
//: type box
//: object red, blue: box
//: fact looked(box), trap(box), opened(box)
//: init trap(red)
//: goal opened({})
//: maybe trap(b) if not looked(b)
start: | look{{BOX}} | open{{BOX}}
//: needs not looked(b)
//: makes looked(b)
//: tells trap(b) by "There is a trap in {{b}}."
//: tells not trap(b) by "{{b}} is safe."
look{{b}}: "look into " b _STEP start
//: needs looked(b), not trap(b)
//: makes opened(b)
open{{b}}: "open " b _STEP start
"""


def test_a_search_finds_a_way_where_what_may_be_would_stand_in_it():
    assert generate_plan("opened blue", HIDDEN.format("blue"), strategy="act").path == ["look into blue", "open blue"]


def test_a_goal_out_of_reach_is_said_at_once():
    with pytest.raises(ConstrainedError, match="^<string>:6:10: .* nothing makes trap red false, which open needs for"):
        generate_plan("opened red", HIDDEN.format("red"), strategy="act")


ONE_KEY = """%declare _STEP ROOM
//: type room
//: object a, b: room
//: fact seen(room), key
//: init key
//: goal seen(a), seen(b)
start: | see{ROOM} | wait
//: needs key
//: makes seen(r), not key
see{r}: "see " r _STEP start
wait: "wait" _STEP start
"""


@pytest.mark.parametrize("model", [None, "random"])
def test_a_goal_that_no_order_leads_to_is_said_at_once(model):
    with pytest.raises(ConstrainedError, match="in whatever order the actions are done, none leads to it"):
        generate_plan("seen a and seen b", ONE_KEY, model=model)


def test_a_search_that_finds_nothing_says_so_and_wanders_no_further():
    environment = WorldEnvironment(read_world(ONE_KEY))
    with pytest.raises(UnreachableError, match="the goal can't be reached from here: in whatever order"):
        generate_plan(environment.task, ActionKnowledge.from_lark(ONE_KEY), environment=environment, strategy="act")


UNTOLD = """%declare _STEP PLACE
//: type place
//: object hall, cellar: place
//: fact at(one place), treasure(place), taken
//: init at(hall), treasure(cellar)
//: maybe treasure(p) if at(p)
//: goal taken
start: | go{PLACE} | take
//: makes at(p)
//: tells treasure(x) if at(x) by "In the {HOLE} is a treasure."
go{p}: "go to the " p _STEP start
//: needs some p: place (at(p), treasure(p))
//: makes taken
//: tells not treasure(p) if at(p) by "Nothing happens."
take: "take the treasure" _STEP start
"""


def test_a_search_in_vain_names_the_answers_that_are_never_given():
    def searched(hole: str) -> str:
        with pytest.raises(UnreachableError, match="can't be reached from here") as caught:
            generate_plan("taken", ActionKnowledge.from_lark(UNTOLD.replace("HOLE", hole)), strategy="act")
        return str(caught.value)

    assert "nothing says what stands for {room} of the answer in line 10" in searched("room")


BLIND = """%declare _STEP
//: fact key, open, light
//: init light
//: goal "open the door": open
start: | take | push
//: makes key
take: "take the key" _STEP start
//: needs key
//: makes open
push: "push the door" _STEP start
"""


def test_at_the_level_form_conditions_are_not_masked_but_judged():
    steps = [
        step
        for seed in range(8)
        for step in generate_plan("open the door", BLIND, model="random", level="form", seed=seed).steps
    ]
    assert {step.verdict == "ok" for step in steps} == {True, False}
    assert all((step.verdict == "ok") == step.had_effect for step in steps)


def test_a_search_keeps_to_the_order_rules():
    lines = WALK.replace("_STEP start", "_STEP [look]").replace("start: | go{ROOM}", "start: look").replace(
        "//: goal some r: room (at(r), key(r))", "//: goal key(e), at(c)"
    )  # fmt: skip
    plan = generate_plan("key e and at c", f'{lines}look: "look" _STEP go{{ROOM}}\n', strategy="act")
    assert plan.path == ["look", "go to c"] and plan.invalid == plan.misordered == 0


@pytest.mark.parametrize("model", [None, "search", "none"])
def test_a_world_without_objects_says_what_is_missing_and_how_to_give_it(model):
    lines = [line for line in WALK.splitlines() if not line.startswith(("//: object", "//: init", "//: goal"))]
    knowledge = ActionKnowledge.from_lark("\n".join(lines) + "\n")
    with pytest.raises(KnowledgeError, match="no objects, so nothing can stand in the slot ROOM") as caught:
        generate_plan("go to c", knowledge, model=model)
    assert "//: object NAME, ...: room" in caught.value.hint and "for_problem" in caught.value.hint


def test_a_slot_without_values_is_said_before_anything_is_played():
    with pytest.raises(KnowledgeError, match="the slot PLACE of .* is named after no type") as caught:
        generate_plan("go to c", ASKED.replace("ROOM", "PLACE"))
    assert caught.value.hint == "name it after a type (ROOM), or bind it: bind(PLACE=[...])"


def test_a_search_takes_what_may_be_for_true_until_an_answer_tells_otherwise():
    world = WorldEnvironment(read_world("world"))
    plan = generate_plan(world.task, ActionKnowledge.from_lark("world"), environment=world, strategy="act")
    assert plan.model == "search" and plan.success and len(plan.steps) < 20

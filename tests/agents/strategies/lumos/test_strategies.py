"""Lumos's two formulations: who is asked what, what is done, and that masks leave nothing else."""

import pytest

from constrained import ActionKnowledge, generate_plan
from constrained.agents.run_file import RunFile, read_run
from constrained.agents.settings import Settings
from constrained.agents.strategies.lumos.conversation import STOP, conversation, ground
from constrained.agents.suite_runner import header, play_suite
from constrained.environments.household import HouseholdEnv, make_game
from constrained.environments.suite import Suite, Task
from constrained.errors import GrammarError
from constrained.models import load
from tests.agents.alike import assert_alike
from tests.agents.random_model import RANDOM, random_model
from tests.agents.scripted import answer_with
from tests.agents.strategies.lumos.hall import GREETING, HOSTILE, Hall, played, rollout, seen
from tests.decoding.tiny import tiny
from tests.models.adapters import tuned


def test_iterative_plans_grounds_and_plans_again_with_the_result():
    asks = []
    plan = answer_with(rollout("lumos"), *(seen(asks, text) for text in (
        "Subgoal 1: Make yourself seen.", "wave[hello; you]", "; bow", "",
        "No, I will keep planning. Subgoal 2: Be polite once more.", "bow",
    )))  # fmt: skip
    assert plan.success and plan.invalid == plan.misordered == 0
    assert [request.role for request in asks] == ["planner", *3 * ["grounder"], "planner", "grounder"]
    assert [(s.subgoal, s.action, s.observation) for s in plan.steps] == [
        ("Subgoal 1: Make yourself seen.", "wave[hello; you]", "You wave[hello; you]."),
        ("Subgoal 1: Make yourself seen.", "bow", "You bow."),
        ("Subgoal 2: Be polite once more.", "bow", "You bow."),
    ]
    assert plan.trajectory.splitlines()[1:5] == [
        "Subgoal 1: Make yourself seen.", "Action 1: wave[hello; you]", "Observation 1: You wave[hello; you].",
        "Action 2: bow",
    ]  # fmt: skip
    assert asks[0].prompt == (
        "<|user|>\nPlease provide a reasonable subgoal-based plan to solve the given task.\n"
        "Task: You stand in a hall. Your task is to: be polite.\n<|assistant|>\n"
    )
    assert asks[4].prompt == asks[0].prompt + (
        "Subgoal 1: Make yourself seen.\n<|user|>\n"
        "The executed result for Subgoal 1 is You bow.. Should we stop planning?\n<|assistant|>\n"
    )
    assert "wave: wave to somebody; say what for." in asks[1].prompt
    assert asks[1].prompt.endswith("Subgoal to be grounded: Subgoal 1: Make yourself seen.\n<|assistant|>\n")
    assert asks[2].prompt == asks[1].prompt + "wave[hello; you]"
    assert asks[5].prompt.startswith(asks[2].prompt + "; bow\n<|user|>\nSubgoal to be grounded: Subgoal 2: ")
    assert "You bow" not in asks[5].prompt  # a grounder sees no results
    assert [step.completion_tokens for step in plan.steps] == [10, 5, 10]  # each with its subgoal's


def test_the_planner_stops():
    plan = answer_with(rollout("lumos"), "Subgoal 1: Wave.", "wave[a]", "", "Yes, I will stop planning.")
    assert [s.action for s in plan.steps] == ["wave[a]"] and plan.success is False


def test_onetime_writes_the_plan_then_all_actions():
    asks = []
    texts = "Subgoal 1: Wave.; Subgoal 2: Bow twice.", "wave[a]", "; bow", "; wave[b]", "; bow"
    plan = answer_with(rollout("lumos_onetime"), *(seen(asks, text) for text in texts))
    assert plan.success and [request.role for request in asks] == ["planner"] + 4 * ["grounder"]
    assert asks[1].prompt.endswith("Subgoals to be grounded: Subgoal 1: Wave.; Subgoal 2: Bow twice.\n<|assistant|>\n")
    assert {s.subgoal for s in plan.steps} == {texts[0]}


def test_numbers_and_actions_are_right_by_construction():
    one = rollout("lumos")
    one.start()
    may = one.request.grammar.matcher
    assert may("Subgoal 1: a").is_complete
    for wrong in ("Subgoal 2: a", "Subgoal 10: a", "Yes, I will stop planning.", "wave[a]"):
        with pytest.raises(GrammarError):
            may(wrong)


@pytest.mark.parametrize("strategy", ["lumos", "lumos_onetime"])
@pytest.mark.parametrize("seed", range(6))
def test_a_random_model_behind_masks_writes_nothing_invalid(strategy, seed):
    plan = played(rollout(strategy, temperature=1.5, seed=seed, max_steps=6, max_subgoals=3))
    assert plan.steps and plan.invalid == plan.misordered == 0


@pytest.mark.parametrize("tokens", [5, 30, 120, 400])
@pytest.mark.parametrize("embedded", [False, True])
def test_a_plan_keeps_to_its_tokens(tokens, embedded):
    house = {"policy": load()}, HouseholdEnv(make_game(3)), ActionKnowledge.from_lark("household")
    plan = played(rollout("lumos", *(house if embedded else ()), temperature=1.0, max_new_tokens=tokens))
    assert plan.usage["completion_tokens"] <= tokens and plan.invalid == 0
    assert plan.success or "limit" in plan.note or plan.answers[-1].text == STOP


def test_no_more_subgoals_than_the_limit():
    texts = ["Subgoal 1: a", "wave[a]", "", "No, I will keep planning. Subgoal 2: b", "wave[b]", ""]
    one = rollout("lumos", max_subgoals=2)
    assert answer_with(one, *texts).note == "stopped at the limit of 2 subgoals" and one.over


def test_a_turn_ends_somewhere():
    one = rollout("lumos", max_subgoals=1)
    answer_with(one, "Subgoal 1: a", "wave[a]", *9 * ["; wave[a]"])
    assert one.over and len(one.episode.plan.steps) == 10


@pytest.mark.parametrize("strategy", ["lumos", "lumos_onetime"])
@pytest.mark.parametrize("text", HOSTILE)
def test_without_masks_whatever_is_written_is_recorded(strategy, text):
    one = rollout(strategy, constrained=False, max_steps=4, max_subgoals=3)
    one.start()
    for _ in range(30):
        if not one.over:
            answer_with(one, text)
    assert one.over and len(one.episode.plan.steps) <= 4
    for step in one.episode.plan.steps:
        assert step.verdict == "ok" or step.reason


def test_without_masks_actions_are_told_apart_outside_brackets():
    plan = answer_with(rollout("lumos", constrained=False), "Subgoal 1: a", "wave[a; b]; wave[c]; bow", "nonsense")
    assert [s.action for s in plan.steps] == ["wave[a; b]", "wave[c]", "bow"] and plan.invalid == 0


def test_the_embedded_model_writes_its_thought_and_its_action_apart():
    embedded = load()
    one = rollout(
        "lumos", {"policy": embedded}, HouseholdEnv(make_game(3)), ActionKnowledge.from_lark("household"), max_steps=3
    )
    plan = played(one)
    assert [a.role for a in plan.answers] == 3 * ["planner", "grounder"] and plan.invalid == 0
    react = played(
        rollout(
            "react",
            {"policy": embedded},
            HouseholdEnv(make_game(3)),
            ActionKnowledge.from_lark("household"),
            max_steps=3,
        )
    )
    assert [s.subgoal for s in plan.steps] == [f"Subgoal {s.n}: {s.thought}" for s in react.steps]
    assert [s.action for s in plan.steps] == [s.action for s in react.steps]


def test_planner_and_grounder_may_be_models_of_their_own():
    other = random_model(seed=5)
    plan = generate_plan(
        "be polite", GREETING, environment=Hall(), strategy="lumos", model=(RANDOM.model, RANDOM.tokenizer),
        planner=(other.model, other.tokenizer), max_steps=2, temperature=1.0,
    )  # fmt: skip
    assert {a.role for a in plan.answers} == {"planner", "grounder"} == set(plan.usage_by_role)


@pytest.fixture
def adapters(tmp_path):
    """A planner's and a grounder's LoRA adapter of the embedded model, strong enough to be told from it."""
    for seed, name in enumerate(("planner", "grounder")):
        wrapped = tuned(load().model, seed, r=4, target_modules=["q_proj", "v_proj"])
        wrapped.save_pretrained(tmp_path / name)
    return {"planner": tmp_path / "planner", "grounder": tmp_path / "grounder"}


def test_planner_and_grounder_may_be_adapters_of_one_base(adapters):
    base = load()

    def texts(**roles):
        house = HouseholdEnv(make_game(3))
        plan = generate_plan(house.task, environment=house, strategy="lumos", model=base, max_steps=3, **roles)
        assert [a.role for a in plan.answers] == 3 * ["planner", "grounder"] and plan.invalid == plan.misordered == 0
        return [a.model for a in plan.answers], [a.text for a in plan.answers]

    untuned = texts()
    models, both = texts(**adapters)
    assert models == 3 * ["embedded+planner", "embedded+grounder"]
    planned = texts(planner=adapters["planner"])
    assert planned[0] == 3 * ["embedded+planner", "embedded"] and planned[1][0] == both[0] != untuned[1][0]
    assert texts() == untuned  # the base is as it was


def test_the_embedded_model_plans_a_household_ahead_in_its_own_form():
    def played_by(strategy):
        house = HouseholdEnv(make_game(0))
        return generate_plan(house.task, environment=house, strategy=strategy, max_steps=12)

    onetime, cot = played_by("lumos_onetime"), played_by("cot")
    assert onetime.path == cot.path and onetime.invalid == onetime.misordered == 0
    assert all(step.thought for step in onetime.steps)


@pytest.mark.parametrize("strategy", ["lumos", "lumos_onetime"])
def test_the_embedded_model_grounds_whatever_another_plans(strategy):
    house = HouseholdEnv(make_game(1))
    options = {"planner": (RANDOM.model, RANDOM.tokenizer), "temperature": 1.5, "max_steps": 3}
    plan = generate_plan(house.task, environment=house, strategy=strategy, **options)
    assert plan.steps and plan.invalid == plan.misordered == 0
    assert {"planner", "grounder"} == {answer.role for answer in plan.answers}


def test_a_conversation_goes_on_in_a_small_context():
    small = tiny(context=260)
    assert len(small.tokenizer.encode(conversation([], ground("t", GREETING.actions, "Subgoal 1: a")))) > 200
    for strategy in ("lumos", "lumos_onetime"):
        plan = played(rollout(strategy, {"policy": small}, temperature=1.0, max_steps=8, max_subgoals=5))
        assert plan.steps and plan.invalid == plan.misordered == 0


def suite():
    return Suite("hall", "greeting", [Task(f"hall {n}", "hall", Hall) for n in range(2)], 5)


def run(path, batch=1, stop_after=None):
    """What came of every task; broken off after so many lines, if asked for."""
    models, settings = (
        {"policy": RANDOM},
        Settings("lumos", "react", max_steps=3, temperature=1.0, max_new_tokens=500, seed=2),
    )
    with RunFile(path, header(suite(), GREETING, models, settings)) as file:
        write, left = file.write, [stop_after]

        def some(line):
            if left[0] == 0:
                raise KeyboardInterrupt
            left[0] = left[0] and left[0] - 1
            write(line)

        file.write = some
        return {task.name: end for task, end in play_suite(suite(), GREETING, models, settings, file, batch)}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return run(tmp_path_factory.mktemp("run") / "whole.jsonl", batch=2)


@pytest.mark.parametrize("lines", [1, 2, 5])
def test_a_run_broken_off_goes_on_where_it_was(whole, tmp_path, lines):
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run.jsonl", stop_after=lines)
    kept = list(read_run(tmp_path / "run.jsonl"))
    assert_alike(run(tmp_path / "run.jsonl"), whole)
    assert list(read_run(tmp_path / "run.jsonl"))[: len(kept)] == kept

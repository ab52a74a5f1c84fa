"""generate_plan: whatever the model, every action is admitted, and a plan ends whole within its limits."""

import json
from contextlib import redirect_stderr

import pytest

from benchmarks.household_solver import solve
from constrained import ActionKnowledge, ConstrainedError, Grammar, generate_plan, waiting
from constrained.agents.episode import Episode
from constrained.agents.plan import Plan, Step
from constrained.agents.scheduler import Rollout
from constrained.agents.settings import Settings
from constrained.agents.step_formats import FORMATS as STRATEGIES
from constrained.environments.household import HouseholdEnv, game_for_task, make_game
from constrained.errors import GrammarError, KnowledgeError, ModelError
from constrained.models import load
from constrained.models.source import EMBEDDED
from tests.agents.random_model import RANDOM, random_model
from tests.agents.scripted import answer_with
from tests.environments.household.small_house import small_house
from tests.terminal import Terminal, is_over, until

MUG = "put a mug in the cabinet"


def random_plan(task=MUG, knowledge="household", **options):
    return generate_plan(task, knowledge, model=(RANDOM.model, RANDOM.tokenizer), **options)


def same(plan):
    """A plan's data, times aside."""
    data = plan.to_dict()
    for step in data["steps"]:
        step.pop("seconds")
    for usage in (data["usage"], *data["usage_by_role"].values()):
        usage.pop("seconds")
    return data


# masks


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", [0, 1])
def test_with_masks_nothing_is_invalid_misordered_or_without_effect(strategy, seed):
    plan = random_plan(strategy=strategy, seed=seed, temperature=1.0, max_steps=16 if strategy == "act" else 4)
    assert plan.invalid == plan.misordered == 0
    assert all(step.verdict == "ok" and step.had_effect and step.action for step in plan.steps)
    assert plan.path == [step.action for step in plan.steps]
    env = HouseholdEnv(game_for_task(MUG, seed=seed))
    assert env.reset() == plan.first_observation
    for step in plan.steps:
        assert step.action in env.admissible()
        assert env.step(step.action)[0] == step.observation
        assert bool(step.thought) == (strategy != "act") and "\n" not in step.thought
    assert [step.n for step in plan.steps] == list(range(1, len(plan.steps) + 1))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_without_masks_the_same_model_is_wrong_and_nothing_is_pruned(strategy):
    plan = random_plan(strategy=strategy, temperature=1.0, max_steps=3, constrained=False)
    assert plan.invalid + plan.misordered == 3 and plan.path == []
    assert not plan.constrained and plan.pruned_mass == [0, 0, 0]
    assert all(step.reason and step.had_effect is False for step in plan.steps)


def test_pruned_mass_is_what_the_random_model_put_elsewhere():
    plan = random_plan(strategy="act", temperature=1.0, max_steps=6)
    asked = [step for step in plan.steps if step.forward_passes]
    assert asked and all(0 < step.pruned_mass <= step.max_pruned_mass <= 1 for step in asked)
    assert plan.pruned_mass == [step.pruned_mass for step in plan.steps]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_where_one_action_is_left_it_is_taken_without_asking(strategy):
    """The whole action is forced; it must not be taken for a part of the prompt."""
    text = '%declare _STEP\nstart: first\nfirst: "begin" _STEP last\nlast: "end it all"\n'
    plan = random_plan("x", text, strategy=strategy, temperature=1.0)
    assert plan.path == ["begin", "end it all"] and plan.invalid == 0
    if strategy == "act":
        assert plan.usage["forward_passes"] == 0


# seeds


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_same_seed_same_plan(strategy):
    options = {"strategy": strategy, "temperature": 1.0, "max_steps": 3}
    first, again = (random_plan(seed=5, **options) for _ in range(2))
    assert same(first) == same(again)
    other = random_plan(seed=6, **options)
    assert other.first_observation != first.first_observation or other.path != first.path


def test_sampling_alone_follows_the_seed():
    def path(seed):
        environment = HouseholdEnv(small_house())
        return random_plan(environment=environment, strategy="act", temperature=1.5, max_steps=8, seed=seed).path

    assert path(1) == path(1)
    assert len({tuple(path(seed)) for seed in range(4)}) > 1


# limits


def test_no_step_reads_the_weights_to_tell_what_kind_of_model_it_is(monkeypatch):
    """`isinstance` with a protocol looks at its attributes: a digest among them took 5 ms, seven times a step."""
    model = random_model()
    monkeypatch.setattr(model.model, "state_dict", lambda *_, **__: pytest.fail("the weights were read"))
    assert generate_plan("put a mug in the cabinet", model=model, strategy="act", max_steps=2).steps


def test_max_steps():
    for steps in (1, 2, 5):
        plan = random_plan(strategy="act", max_steps=steps)
        assert len(plan.steps) == steps
        assert plan.success is False and plan.note == f"stopped at the limit of {steps} steps"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_max_new_tokens_in_a_game_cut_no_step_short(strategy):
    for limit in (1, 40, 90, 170):
        plan = random_plan(strategy=strategy, temperature=1.0, max_steps=12, max_new_tokens=limit)
        assert plan.usage["completion_tokens"] <= limit
        assert plan.invalid == plan.misordered == 0
        assert plan.note.endswith(f"limit of {limit} tokens") or len(plan.steps) == 12
    assert plan.steps


@pytest.mark.parametrize("steps", [1, 2, 3, 6])
def test_an_open_loop_plan_is_whole_within_any_step_limit(steps):
    if steps == 1:  # a question takes a look and an answer at least
        with pytest.raises(ConstrainedError, match="no whole plan fits in 1 steps"):
            random_plan("Who?", "hotpotqa", strategy="act", max_steps=1)
        return
    for seed in range(2):
        plan = random_plan("Who?", "hotpotqa", strategy="act", temperature=1.0, max_steps=steps, seed=seed)
        check_question(plan, steps)


def check_question(plan, steps=12):
    assert plan.open_loop and plan.success is None
    assert 2 <= len(plan.steps) <= steps
    report = ActionKnowledge.from_lark("hotpotqa").check(plan.path)
    assert report.ok and report.finished
    assert plan.path[-1].startswith("Finish[") and plan.invalid == plan.misordered == 0


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_open_loop_plan_is_whole_within_any_token_limit_that_fits(strategy):
    fitted = []
    for limit in [*range(10, 70, 6), 100, 300]:
        try:
            plan = random_plan("Who?", "hotpotqa", strategy=strategy, temperature=1.0, max_new_tokens=limit, seed=limit)
        except ConstrainedError as error:
            assert f"no whole plan fits in 12 steps and {limit} tokens" in str(error)
            assert not fitted, f"{fitted} tokens were enough"
            continue
        fitted.append(limit)
        assert plan.usage["completion_tokens"] <= limit
        check_question(plan)
    assert fitted[0] <= 64


# what is planned


def test_a_household_task_is_staged_from_the_seed_and_played():
    plan = random_plan("Put two mugs in the cabinet.", strategy="act", max_steps=1, seed=3)
    assert not plan.open_loop and plan.success is False
    assert "Your task is to: put two mug in cabinet." in plan.first_observation
    assert plan.trajectory.startswith(plan.first_observation)
    assert plan.trajectory.endswith(f"Action 1: {plan.path[0]}\nObservation 1: {plan.steps[0].observation}")


def test_a_task_that_cannot_be_staged_gives_an_open_loop_plan_that_says_so():
    plan = random_plan("fly to the moon", strategy="act", temperature=1.0, max_steps=5)
    assert plan.open_loop and plan.success is None
    assert plan.note.startswith("nothing was executed: no household game can be made for the task 'fly to the moon'")
    assert 1 <= len(plan.steps) <= 5 and plan.invalid == plan.misordered == 0
    assert all(step.observation is None and step.had_effect is None for step in plan.steps)
    assert plan.path == [step.action for step in plan.steps]
    assert plan.trajectory.startswith("Task: fly to the moon\nAction 1: ")


def test_knowledge_without_an_environment_gives_an_open_loop_plan_that_says_so():
    plan = random_plan("Who?", "hotpotqa", strategy="act", max_new_tokens=80)
    assert plan.note == "nothing was executed: there is no environment for 'hotpotqa'."
    assert plan.first_observation == "" and plan.knowledge == "hotpotqa"


def test_an_open_loop_plan_without_masks_is_judged_but_not_mended():
    plan = random_plan("Who?", "hotpotqa", strategy="act", max_steps=2, constrained=False, temperature=1.0)
    assert plan.invalid == 2 and plan.open_loop and plan.steps[0].reason
    short = random_plan("Who?", "hotpotqa", strategy="react", max_new_tokens=30, constrained=False, temperature=1.0)
    assert short.usage["completion_tokens"] <= 30


def test_knowledge_can_be_text_a_path_or_an_object(tmp_path):
    text = '%declare _STEP\n%declare WORD\nstart: say\nsay: "say " WORD _STEP [say]\n'
    file = tmp_path / "talk.lark"
    file.write_text(text)
    knowledge = ActionKnowledge.from_lark(file).bind(WORD=Grammar.from_choices(["yes", "no"]))
    plan = random_plan("Speak.", knowledge, strategy="react", temperature=1.0, max_steps=3)
    assert plan.knowledge == "talk" and {*plan.path} <= {"say yes", "say no"} and 1 <= len(plan.path) <= 3
    with pytest.raises(GrammarError, match="slot WORD is not bound"):
        random_plan("Speak.", str(file))
    with pytest.raises(GrammarError, match="slot WORD is not bound"):
        random_plan("Speak.", text)


def test_a_game_that_is_won_ends_with_success():
    for seed in range(3):
        game = make_game(seed)
        plan = Plan(game.task, "household", "act", "expert", True, seed)
        models = {"policy": load((RANDOM.model, RANDOM.tokenizer))}
        settings = Settings("act", "act")
        episode = Episode(models, ActionKnowledge.from_lark("household"), plan, settings, HouseholdEnv(game))
        answer_with(Rollout(episode), *(f" {action}" for action in solve(game)))
        assert plan.success is True and plan.outcome == {"success": 1.0}
        assert plan.path == solve(game) and plan.note == ""


# reporting


def test_callbacks(capsys):
    started, steps = [], []
    plan = random_plan(
        strategy="act", max_steps=3, progress=True,
        on_start=lambda plan: started.append((plan.task, plan.first_observation, len(plan.steps))),
        on_step=steps.append,
    )  # fmt: skip
    assert started == [(MUG, plan.first_observation, 0)]
    assert steps == plan.steps
    assert capsys.readouterr().err == "", "progress is for terminals"


def test_progress_on_a_terminal(monkeypatch):
    monkeypatch.setattr(waiting, "AFTER", 0.0)
    monkeypatch.setattr(waiting, "TICK", 0.001)
    terminal = Terminal()
    with redirect_stderr(terminal):
        random_plan(strategy="act", max_steps=2, progress=True, on_step=lambda step: until(terminal, "step"))
    assert "step 2 … " in terminal.getvalue() and is_over(terminal)


def test_json_has_everything_and_comes_back():
    plan = random_plan(strategy="knowagent", temperature=1.0, max_steps=2)
    data = json.loads(plan.to_json())
    assert data == plan.to_dict()
    assert data["path"] == plan.path and data["pruned_mass"] == plan.pruned_mass
    assert data["usage"] == plan.usage and data["usage"]["completion_tokens"] > 0
    assert [Step(**step) for step in data["steps"]] == plan.steps
    assert json.loads(plan.to_json(indent=None)) == data and "\n" not in plan.to_json(indent=None)


def test_usage_adds_the_steps_up():
    plan = random_plan(strategy="react", temperature=1.0, max_steps=3)
    for key, total in plan.usage.items():
        assert total == pytest.approx(sum(getattr(step, key) for step in plan.steps))
    assert plan.usage["forced_tokens"] <= plan.usage["completion_tokens"]


# errors


@pytest.mark.parametrize(
    "options, kind, message",
    [
        ({"task": "  "}, ConstrainedError, "the task is empty"),
        ({"task": None}, ConstrainedError, "the task is None, not text"),
        ({"max_steps": 1.5}, ConstrainedError, "max_steps is 1.5"),
        ({"max_new_tokens": float("nan")}, ConstrainedError, "max_new_tokens is nan"),
        ({"strategy": ["act"]}, ConstrainedError, "no strategy"),
        ({"strategy": "wishful"}, ConstrainedError, "no strategy 'wishful'"),
        ({"planner": object()}, ModelError, "a object is not a causal language model"),
        ({"grounder": object()}, ModelError, "a object is not a causal language model"),
        ({"max_steps": 0}, ConstrainedError, "max_steps is 0"),
        ({"max_new_tokens": -3}, ConstrainedError, "max_new_tokens is -3"),
        ({"temperature": -1.0}, ConstrainedError, "temperature"),
        ({"knowledge": "no such knowledge"}, GrammarError, "no grammar file 'no such knowledge'"),
        ({"knowledge": 'start: "a"\n'}, KnowledgeError, "start is an action itself"),
        ({"device": "abacus"}, ModelError, "abacus"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(options, kind, message):
    with pytest.raises(kind, match=message):
        random_plan(**{"task": MUG, "max_steps": 1, **options})


def test_a_missing_model_is_an_error(tmp_path):
    with pytest.raises(ModelError, match="nowhere"):
        generate_plan(MUG, model=str(tmp_path / "nowhere"))
    with pytest.raises(ModelError):
        generate_plan(MUG, model=object())


# the model that ships

embedded = pytest.mark.skipif(
    not (EMBEDDED / "model.safetensors").is_file(), reason="the embedded model is not in this checkout"
)


@embedded
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_embedded_model_plans_with_nothing_else_given(strategy):
    plans = [generate_plan("put a clean mug in the coffeemachine", strategy=strategy, max_steps=8) for _ in range(2)]
    assert same(plans[0]) == same(plans[1])
    assert plans[0].model == "embedded" and plans[0].invalid == plans[0].misordered == 0
    assert all(step.had_effect for step in plans[0].steps)


@embedded
def test_the_embedded_model_wins_games():
    plans = [generate_plan(MUG, strategy="act", seed=seed, max_steps=30) for seed in range(6)]
    assert any(plan.success for plan in plans)
    assert all(plan.invalid == plan.misordered == 0 for plan in plans)


def test_a_file_of_the_household_name_that_asks_for_other_things_is_not_played_as_one(tmp_path):
    file = tmp_path / "household.lark"
    file.write_text(
        '%declare _STEP\n%declare CUP\nstart: pour{CUP}\npour{c}: "pour " c _STEP drink{c}\ndrink{c}: "drink " c\n'
    )
    plan = random_plan("have a cup", ActionKnowledge.from_lark(file).bind(CUP=["cup 1", "cup 10"]), strategy="act")
    assert plan.open_loop and plan.success is None and "no environment" in plan.note
    assert len(plan.path) == 2 and plan.path[1] == plan.path[0].replace("pour", "drink")

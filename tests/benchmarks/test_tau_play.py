"""tau2-bench's tasks and games: its own tools where a checkout is named, telecom's written anew elsewhere."""

import os
import random
from collections import Counter

import pytest

from benchmarks import tau, tau_play
from benchmarks.tau2_environment import DOMAINS, Tau2Domain, find_checkout
from benchmarks.tau_environment import TauEnv, reply_of
from benchmarks.telecom.environment import TelecomDomain
from benchmarks.telecom.goals import ASSERTIONS
from constrained.cli import main
from constrained.errors import DataError
from tests.data import shared


def checkout(name):
    """A domain of tau2-bench itself, which is no part of the data."""
    if not os.environ.get("TAU2_BENCH"):
        pytest.skip("needs tau2-bench's tools: set TAU2_BENCH to a checkout of sierra-research/tau2-bench")
    try:
        return Tau2Domain(name)
    except DataError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def domain():
    return TelecomDomain(shared("tau2/telecom.tar.xz"))


@pytest.fixture(scope="module")
def knowledge(domain):
    return domain.knowledge()


def game(domain, knowledge, name):
    return TauEnv(domain, next(task for task in domain.tasks() if name in task.name), knowledge)


def write(knowledge, name, **arguments):
    return knowledge.tools.write(name, arguments)


def test_gold_actions_reach_the_goal_and_nothing_else_does(domain):
    for task in domain.tasks():
        data, reached, calls = domain.data(task), domain.goal(task), []
        for _, name, arguments in task.steps:
            assert not reached(data, calls), task.name
            domain.call(data, name, arguments)
            calls.append((name, arguments))
        assert reached(data, calls), task.name


def test_the_assertions_are_those_of_the_tasks(domain):
    named = {one["func_name"] for task in domain.tasks() for one in task.criteria["env_assertions"]}
    assert named == set(ASSERTIONS)


def test_a_task_that_cannot_be_mended_is_done_by_handing_over(domain, knowledge):
    env = game(domain, knowledge, "lock_sim_card_pin")
    assert not env.fulfilled()
    _, reward, done = env.step(write(knowledge, "transfer_to_human_agents", summary="anything"))
    assert reward == 1.0 and done


@pytest.mark.parametrize(
    ("action", "counted"),
    [
        ("Please turn it off and on again.", "no call"),
        ('{"name": "toggle_warp", "arguments": {}}', "no call"),
        ('{"name": "get_details_by_id", "arguments": {"id": 7}}', "no call"),
        ('{"name": "toggle_airplane_mode", "arguments": {}}', "against the policy"),
    ],
)
def test_what_the_policy_refuses_is_counted_by_kind(domain, knowledge, action, counted):
    env = game(domain, knowledge, "airplane_mode_on")
    env.step(action)
    assert env.counts[counted] == env.counts["actions"] == 1
    assert sum(env.counts[key] for key in ("no call", "against the policy")) == 1


def test_a_call_against_the_policy_is_carried_out(domain, knowledge):
    env = game(domain, knowledge, "airplane_mode_on")
    _, reward, done = env.step(write(knowledge, "toggle_airplane_mode"))
    assert done and reward == 1.0 and env.counts["against the policy"] == 1


@pytest.mark.parametrize(
    ("name", "needed"),
    [
        ("airplane_mode_on", ["get_customer_by_phone", "toggle_airplane_mode"]),
        ("data_usage_exceeded", ["respond", "refuel_data"]),
        ("contract_end_suspension", ["transfer_to_human_agents"]),
    ],
)
def test_a_search_solves_a_task_by_admitted_calls(domain, knowledge, name, needed):
    env = game(domain, knowledge, name)
    tau_play.play_by_search(env, knowledge, 30)
    assert env.fulfilled() and not env.counts["no call"] + env.counts["against the policy"] + env.counts["errors"]
    made = Counter(call for call, _ in env.calls)
    assert all(made[one] for one in needed) and env.counts["actions"] <= 8


def test_a_search_that_yields_no_plan_plays_nothing(domain, knowledge, monkeypatch):
    env = game(domain, knowledge, "airplane_mode_on")
    tau_play.play_by_search(env, knowledge, 1)
    assert env.calls == []
    monkeypatch.setattr(tau_play, "SEARCHED", 3)
    tau_play.play_by_search(env, knowledge, 30)
    assert env.calls == [] and not env.fulfilled()


def test_a_copy_of_a_game_changes_nothing_in_it(domain, knowledge):
    env = game(domain, knowledge, "airplane_mode_on")
    before = env.digest()
    env.copy().step(write(knowledge, "toggle_airplane_mode"))
    assert env.digest() == before and not env.fulfilled() and not env.calls and not env.counts


def test_random_calls_are_admitted_and_another_seed_draws_others(domain, knowledge):
    played = []
    for seed in (0, 0, 1):
        env = game(domain, knowledge, "bad_vpn")
        tau_play.play_at_random(env, knowledge, 5, seed)
        assert env.counts["actions"] > 0 == env.counts["no call"] + env.counts["against the policy"]
        played.append(env.calls)
    assert played[0] == played[1] != played[2]


@pytest.mark.parametrize(
    ("instructions", "said"),
    [
        (
            "Be brief. You are willing to refuel 2.0 GB if necessary. Ask twice.",
            "willing to refuel 2.0 GB if necessary.",
        ),
        ("If the agent asks you to pay a bill, you accept. Never lie.", "you accept."),
        ("You are not willing to pay.", "go ahead."),
        ("", "go ahead."),
    ],
)
def test_a_scripted_user_says_what_they_agree_to(instructions, said):
    assert reply_of(instructions).startswith("Yes, please go ahead.") and reply_of(instructions).endswith(said)


def test_telecom_is_played_without_a_checkout(monkeypatch, capsys):
    monkeypatch.delenv("TAU2_BENCH", raising=False)
    monkeypatch.setenv("CONSTRAINED_DATA", str(shared("tau2/telecom.tar.xz").parent.parent))
    words = ["--play", "2", "--model", "random", "--domain", "telecom", "--max-steps", "3", "--seeds", "2"]
    assert main(["bench", "tau", *words]) == 0
    assert "| telecom (small) | random | on | 2 × 2 |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("folder", "message"), [(None, "tau2-bench's tools aren't there"), ("empty", "there is no src/tau2 in")]
)
def test_a_checkout_that_is_not_there_is_told(monkeypatch, tmp_path, folder, message):
    monkeypatch.delenv("TAU2_BENCH", raising=False)
    with pytest.raises(DataError, match=message):
        find_checkout(folder and tmp_path / folder)


def test_corrected_tasks_need_the_checkout(monkeypatch, capsys):
    monkeypatch.delenv("TAU2_BENCH", raising=False)
    assert main(["bench", "tau", "--domain", "retail", "--split", "tau2", "--costs", "0"]) == 1
    assert "tau2-bench's tools aren't there" in capsys.readouterr().err


# with tau2-bench itself


@pytest.mark.parametrize("name", ["retail", "airline"])
def test_corrected_gold_calls_are_admitted_unless_the_tools_refuse_them_too(name):
    domain = checkout(name)
    row = tau.replay_gold(domain, domain.knowledge(), "tau2", domain.tasks()[:6])
    assert row["actions"] - row["admitted"] == row["refused, not carried out"] <= 3
    assert row["lookups admitted"] == row["lookups"] > 0


@pytest.mark.parametrize("name", DOMAINS)
def test_gold_actions_of_tau2_reach_its_own_goal_and_leave_other_tasks_alone(name):
    domain = checkout(name)
    fresh = domain.digest(domain.data())
    for task in domain.tasks()[::12]:
        data, calls = domain.data(task), []
        for tool, arguments in task.actions:
            domain.call(data, tool, arguments)
            calls.append((tool, arguments))
        said = [("respond", {"content": words}) for words in task.own.evaluation_criteria.communicate_info or ()]
        assert domain.goal(task)(data, [*calls, *said]), task.name
    assert domain.digest(domain.data()) == fresh


def test_telecom_written_anew_plays_as_tau2_s_own(domain, knowledge):
    own = checkout("telecom")
    for task, other in list(zip(domain.tasks(), own.tasks()))[::4]:
        rng = random.Random(task.name)
        env, real = TauEnv(domain, task, knowledge), TauEnv(own, other, knowledge)
        assert env.reply == real.reply
        for _ in range(6):
            bound = knowledge.bind_view(env.view())
            begin = env.view()[rng.choice(bound.may_follow).upper()].begin
            action = tau_play.random_text(begin, rng, closed=0.5)
            assert env.step(action)[1:] == real.step(action)[1:], action

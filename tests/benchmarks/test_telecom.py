"""tau2-bench's telecom: gold actions of agent and user are admitted, mutations of them refused as the policy says."""

import itertools
import json
import lzma
import random
import re
import tarfile

import pytest

from benchmarks import tau
from benchmarks.telecom import command
from benchmarks.telecom.environment import AGENT_TOOLS, USER_TOOLS, TelecomDomain
from benchmarks.telecom.mutations import FREE, judge_mutations, mutations
from benchmarks.telecom.paths import follow, gold_path, gold_steps
from constrained.cli import main
from constrained.errors import DataError
from constrained.guard import Guard
from tests.data import shared


@pytest.fixture(scope="module")
def domain():
    return TelecomDomain(shared("tau2/telecom.tar.xz"))


@pytest.fixture(scope="module")
def knowledge(domain):
    return domain.knowledge()


@pytest.fixture(scope="module")
def guard(domain, knowledge):
    return Guard([*domain.infos, *domain.user_infos], knowledge.tools.policy)


def test_every_gold_action_is_admitted_the_agent_s_and_the_user_s(domain, knowledge, guard):
    for split in domain.splits():
        tasks = domain.tasks(split)
        row = tau.replay_gold(domain, knowledge, split, tasks, lambda *given: gold_steps(domain, guard, given[-1]))
        assert row["not admitted"] == [] and row["answered with an error"] == 0
        assert row["admitted"] == row["actions"] == sum(len(task.steps) for task in tasks) > 0
        assert row["lookups admitted"] == row["lookups"] > row["actions"]


def names(task):
    """The functions that a task begins with, but for those that all begin with."""
    return {one["func_name"] for one in task.initial} - {"set_user_info", "simulate_network_search"}


def test_gold_actions_are_admitted_where_two_things_are_wrong(domain, guard):
    pairs = 0
    for one, other in itertools.combinations(domain.tasks(), 2):
        kind = one.name.partition("]")[0]
        handed_over = any(step[1] == "transfer_to_human_agents" for step in (*one.steps, *other.steps))
        if not other.name.startswith(kind) or names(one) & names(other) or handed_over:
            continue
        abroad = next((task for task in (one, other) if "abroad" in task.instruction), one)
        both = abroad._replace(initial=(*one.initial, *other.initial), steps=(*one.steps, *other.steps))
        pairs += 1
        for step, point, _ in follow(domain, guard, both, gold_path(domain, both)):
            verdict = point.judge(step.tool, step.arguments, allowed=False)
            assert verdict or step.kind == "reply", (one.name, other.name, step, verdict.why)
    assert pairs > 30


def test_mutations_are_refused_but_for_those_that_the_policy_allows(domain, guard):
    rows = judge_mutations(domain, guard, domain.tasks())
    assert {row["kind"] for row in rows} >= {
        "a check left out", "an action before the one that comes first", "another line", "another customer",
    }  # fmt: skip
    for row in rows:
        assert all((row["kind"], one["tool"]) in FREE and one["calls"] == 1 for one in row["admitted"]), row
        assert row["refused"] == row["mutations"] - len(row["admitted"]) > 0
    assert sum(row["mutations"] for row in rows) > 600 and sum(len(row["admitted"]) for row in rows) <= len(FREE)


def test_masks_and_verdicts_agree_on_mutations(domain, knowledge, guard):
    tools, seen = knowledge.tools, 0
    for one in random.Random(0).sample([m for task in domain.tasks() for m in mutations(domain, task)], 60):
        *_, (step, point, _) = follow(domain, guard, one.task, one.path, one.instruction)
        masks = knowledge.bind_view(tools.view(point.memory)).judge(tools.write(step.tool, step.arguments))
        verdict = point.judge(step.tool, step.arguments, allowed=False)
        ordered = all(unmet.kind == "order" for unmet in verdict.unmet)
        assert bool(masks) is ordered, (one.kind, step)
        seen += not ordered
    assert seen > 40


def test_a_user_who_says_what_they_see_is_heard_as_their_tools_are(domain, guard):
    """The agent of a plain conversation has no other way to know what the phone shows."""
    task = next(task for task in domain.tasks() if "lock_sim_card" in task.name)
    *_, (_, point, _) = follow(domain, guard, task, gold_path(domain, task)[:2])
    point = point.spoke("What does it say of your SIM card?")
    asked = ("transfer_to_human_agents", {"summary": "The SIM card is locked."})
    assert not point.heard("No idea.").judge(*asked)
    assert point.heard("It says the SIM card is locked with a PIN.").judge(*asked)


@pytest.mark.parametrize(
    ("words", "abroad"),
    [
        ("I'm travelling in France.", True),
        ("I am on a trip.", True),
        ("I'm not abroad.", False),
        ("I don't travel.", False),
        ("I'm at home; data roaming is off.", False),
    ],
)
def test_roaming_is_for_those_who_say_that_they_travel(domain, guard, words, abroad):
    [task] = [task for task in domain.tasks() if "roaming_disabled_on" in task.name]
    path = gold_path(domain, task)
    *_, (step, point, _) = follow(domain, guard, task, path, f"My number is 555-123-2002. {words}")
    assert step.tool == "enable_roaming"
    assert bool(point.judge(step.tool, step.arguments)) is abroad


@pytest.mark.parametrize("written", ["(555) 123-2002", "555.123.2002", "5551232002", "+1 555 123 2002"])
def test_a_number_is_the_user_s_however_they_write_it(guard, written):
    found = guard.start.heard(f"Hello, my number is {written}.")
    assert found.judge("get_customer_by_phone", {"phone_number": "555-123-2002"})
    assert not found.judge("get_customer_by_phone", {"phone_number": "555-123-2001"})
    assert not found.judge("get_customer_by_name", {"full_name": "John Smith", "dob": "1985-06-15"})


def test_the_tools_answer_as_tau2_bench_s_own(domain):
    environment = pytest.importorskip("benchmarks.tau2_environment")
    try:
        own = environment.Tau2Domain("telecom")
    except DataError as error:
        pytest.skip(f"needs tau2-bench: set TAU2_BENCH to a checkout of it ({error.message})")
    rng, compared = random.Random(0), 0
    for task, theirs in zip(domain.tasks(), own.tasks(), strict=True):
        ours, real = domain.data(task), own.data(theirs)
        path = [(step.tool, step.arguments) for step in gold_path(domain, task) if step.kind != "reply"]
        others = [
            (name, {}) for name in USER_TOOLS if name.startswith(("check_", "run_", "can_")) and "app" not in name
        ]
        for name, arguments in [*path, *rng.sample(others, 5), *path]:
            assert domain.call(ours, name, arguments) == own.call(real, name, arguments), (task.name, name)
            compared += 1
    assert compared > 200


def test_every_tool_of_the_policy_is_there(domain, knowledge):
    left = {*AGENT_TOOLS, *USER_TOOLS} - knowledge.tools.calls.keys()
    assert left == {"connect_vpn"}  # no step asks for it
    assert knowledge.tools.policy.users == {*USER_TOOLS} - left


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (None, "can't read"),
        ({}, "can't read"),
        ({"db.toml": "plans = []", "user_db.toml": "[device]", "tasks_small.json": "[{}]"}, "can't read"),
        ({"db.toml": "plans = [", "user_db.toml": "", "tasks.json": "[]"}, "can't read"),
    ],
)
def test_a_damaged_file_is_one_clear_error(tmp_path, files, message):
    path = tmp_path / "telecom.tar.xz"
    if files is None:
        path.write_bytes(lzma.compress(b"no archive")[:-9])
    else:
        with tarfile.open(path, "w:xz") as archive:
            for name, text in files.items():
                (tmp_path / name).write_text(text)
                archive.add(tmp_path / name, f"telecom/{name}")
    with pytest.raises(DataError, match=message):
        TelecomDomain(path)


def test_the_command_prints_and_records(domain, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(command, "TelecomDomain", lambda: domain)
    record = tmp_path / "telecom.json"
    monkeypatch.setattr(command, "RECORD", record)
    words = ["bench", "tau", "--domain", "telecom", "--limit", "2", "--costs", "0"]
    assert main([*words, "--json", str(record)]) == 0
    assert re.search(r"\| small \| 2 \| 2 \| 1 \| 2 \|", capsys.readouterr().out)
    result = json.loads(record.read_text())
    assert command.compare(result, False) == 0
    worse = {**result, "gold": [{**result["gold"][0], "admitted": 1}]}
    assert command.compare(worse, False) == 1 and "WORSE: small: admitted: 2 is now 1" in capsys.readouterr().out
    assert command.compare(worse, True) == 0 and json.loads(record.read_text())["gold"][0]["admitted"] == 1

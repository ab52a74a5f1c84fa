"""Laws of every baseline with any model: rules are kept with masks on, nothing breaks without, runs are continued."""

import pytest

from constrained import ActionKnowledge
from constrained.agents.run_file import RunFile, read_run
from constrained.agents.scheduler import schedule
from constrained.agents.settings import Settings
from constrained.agents.strategies import STEP_FORMATS
from constrained.agents.suite_runner import header, play_suite
from constrained.decoding import generate
from constrained.environments.suite import open_suite
from constrained.models import load
from tests.agents.alike import assert_alike
from tests.agents.baselines import GENERAL, house, question
from tests.data import shared

STRATEGIES = ("cot", "reflexion", "fireact", "rewoo")


def played(rollout):
    for _ in schedule([rollout]):
        pass
    assert rollout.failure is None
    return rollout.episode.plan


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("make", [house, question])
def test_with_masks_a_random_model_breaks_no_rule(strategy, make):
    plan = played(make(strategy, temperature=1.0, seed=1, max_steps=2, trials=2))
    assert plan.steps and plan.invalid == plan.misordered == 0
    assert all(step.action and step.verdict == "ok" for step in plan.steps)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("make", [house, question])
def test_without_masks_its_garbage_is_judged_and_harms_nothing(strategy, make):
    plan = played(make(strategy, constrained=False, temperature=1.0, seed=1, max_steps=2, trials=2))
    assert plan.success is False and plan.invalid + plan.misordered == len(plan.steps) > 0


@pytest.mark.parametrize("strategy", ["react", "knowagent", "reflexion", "lumos", "lumos_onetime"])
def test_where_no_knowledge_is_told_no_prompt_says_the_rules(strategy):
    def prompts(told):
        rollout = question(strategy, knowledge_in_prompt=told, temperature=1.0, max_steps=2, trials=2)
        rollout.start()
        found = []
        while rollout.request is not None:
            found.append(rollout.request.prompt)
            compiled = rollout.request.grammar
            rollout.answer(generate(GENERAL, rollout.request.prompt, compiled, max_new_tokens=300,
                                    begun=rollout.request.begun))  # fmt: skip
        return "\n".join(found)

    assert "Retrieve[entity]" in prompts(told=True)
    assert "Retrieve[entity]" not in prompts(told=False)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_model_with_little_context_reads_what_there_is_room_for(strategy):
    stories = load(shared("models/stories260K"))
    plan = played(question(strategy, model=stories, max_steps=2, trials=2))
    assert plan.steps and plan.invalid == plan.misordered == 0


@pytest.mark.parametrize("strategy, broken_off", [("reflexion", 3), ("cot", 1)])
def test_a_run_broken_off_goes_on_from_its_record(strategy, broken_off, tmp_path):
    suite, knowledge = open_suite("household", limit=2), ActionKnowledge.from_lark("household")
    settings = Settings(strategy, STEP_FORMATS[strategy], max_steps=2, trials=2, temperature=1.0, seed=3)
    models = {"policy": GENERAL}

    def run(path):
        with RunFile(path, header(suite, knowledge, models, settings)) as file:
            return [end for _, end in play_suite(suite, knowledge, models, settings, file)]

    whole, broken = tmp_path / "whole.jsonl", tmp_path / "broken.jsonl"
    ends = run(whole)
    broken.write_text("".join(whole.read_text().splitlines(keepends=True)[: 1 + broken_off]))
    assert_alike(run(broken), ends)
    assert_alike(list(read_run(broken)), list(read_run(whole)))

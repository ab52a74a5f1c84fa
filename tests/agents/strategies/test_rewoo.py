"""ReWOO: a plan with references to evidence, workers that put it in, one answer at the end."""

import pytest

from constrained import ActionKnowledge, generate_plan
from constrained.agents.scheduler import schedule
from constrained.agents.strategies.rewoo import plan_form, put_in, read_plan
from tests.agents.baselines import GENERAL, house, may_say, question, resumed_anywhere, says

PLAN = (
    "Plan: Find who he was named after.\n#E1 = Search[Milhouse named after]\n"
    "Plan: Take the name out of it.\n#E2 = LLM[Who is it, given #E1?]\n"
    "Plan: Look the page up.\n#E3 = Retrieve[#E2]"
)


def test_plan_work_solve():
    rollout = question("rewoo")
    rollout.start()
    assert rollout.request.role == "planner" and "Search[topic]" in rollout.request.prompt
    says(rollout, PLAN)
    assert (
        "Who is it, given Milhouse Van Houten: Milhouse is a character" in rollout.request.prompt
    )  # evidence is put in
    says(rollout, "Matt Groening")
    solver = rollout.request.prompt
    assert "#E3 = Retrieve[#E2]\nEvidence: Matt Groening: Matt Groening (born 1954)" in solver
    plan = says(rollout, "Finish[Richard Nixon]")
    assert rollout.over and plan.success and plan.invalid == plan.misordered == 0
    assert plan.path == ["Search[Milhouse named after]", "Retrieve[Matt Groening]", "Finish[Richard Nixon]"]
    assert [s.thought for s in plan.steps] == ["Find who he was named after.", "Look the page up.", ""]
    assert sum(s.completion_tokens for s in plan.steps) == plan.usage["completion_tokens"]


@pytest.mark.parametrize(
    "wrong",
    [
        "Plan: x\n#E2 = Search[y]",  # the first is number 1
        "Plan: x\n#E1 = Search[#E1]",  # nothing is known yet
        "Plan: x\n#E1 = Search[y]\nPlan: x\n#E2 = Search[#E3]",
        "Plan: x\n#E1 = Search[y]\nPlan: x\n#E2 = Search[#E10]",  # is no #E1 with a 0 after it
        "Plan: x\n#E1 = Lookup[y]",  # nothing has been found to look in
        "Plan: x\n#E1 = LLM[y]\nPlan: x\n#E2 = Lookup[y]",
        "Plan: x\n#E1 = Dance[y]",
        "Plan: x\n#E1 = LLM[y]",  # the rules want something looked up before the answer
        "Plan: x\n#E1 = Finish[y]",
        "\n".join(f"Plan: x\n#E{n} = Search[y]" for n in range(1, 7)),  # no step would be left for the answer
    ],
)
def test_masks_number_refer_and_order_rightly(wrong):
    rollout = question("rewoo")
    assert not may_say(rollout, wrong)


def test_evidence_one_is_no_part_of_evidence_ten():
    evidence = {1: "one", 10: "ten"}
    assert put_in("#E1, #E10 and #E100", evidence) == "one, ten and #E100"
    assert put_in("#E1", {1: "see #E10", 10: "ten"}) == "see #E10"  # what is put in is not read again


def test_whatever_is_no_plan_is_passed_over():
    calls = read_plan("Sure!\nPlan: a\n#E1 = Search[b [c]]\nPlan: d\n#E2 Search[e]\n #E3=Lookup[f] \n\x1c#E4 = x")
    assert [(c.number, c.why, c.tool, c.input) for c in calls] == [(1, "a", "Search", "b [c]"), (3, "d", "Lookup", "f")]
    assert read_plan("") == []


def test_evidence_is_cut_to_what_an_argument_may_be():
    rollout = question("rewoo")
    says(rollout, "Plan: x\n#E1 = LLM[y]\nPlan: x\n#E2 = Search[#E1]", "abc]" * 75)
    (step,) = rollout.episode.plan.steps
    assert step.verdict == "ok" and step.action == f"Search[{('abc' * 67)[:200]}]"


def test_evidence_of_which_nothing_may_be_an_argument_is_not_searched_for():
    rollout = question("rewoo")
    plan = says(rollout, "Plan: x\n#E1 = LLM[y]\nPlan: x\n#E2 = Search[#E1]", "]]]")
    assert rollout.over and plan.steps == [] and "the rules don't admit an answer" in plan.note


def test_a_call_that_finds_nothing_does_not_stop_the_others():
    plan = says(
        question("rewoo"),
        "Plan: x\n#E1 = Search[zzz]\nPlan: x\n#E2 = Lookup[zzz]",
        "Finish[Nixon]",
    )
    assert [s.verdict for s in plan.steps] == ["ok"] * 3 and [s.had_effect for s in plan.steps] == [False, False, True]


def test_without_masks_a_bad_plan_is_judged_and_does_no_harm():
    rollout = question("rewoo", constrained=False)
    plan = says(rollout, "Plan: x\n#E1 = Lookup[a]\n#E2 = Dance[#E1]\n#E7 = Search[#E9]\n", "I don't know")
    assert rollout.over and not plan.success
    assert [s.verdict for s in plan.steps] == ["misordered", "invalid", "ok", "invalid"]


def test_it_goes_on_wherever_it_was_broken_off():
    texts = [PLAN, "Matt Groening", "Finish[Richard Nixon]"]
    assert resumed_anywhere(lambda: question("rewoo"), says(question("rewoo"), *texts).answers)


def test_where_tokens_run_out_it_says_so():
    rollout = question("rewoo", max_new_tokens=11)
    plan = says(rollout, "Plan: x\n#E1 = Search[y]", "Finish[x]") if rollout.request else rollout.episode.plan
    assert plan.note == "" or "limit of 11 tokens" in plan.note


def test_in_a_house_it_is_a_plan_written_ahead():
    texts = ["Thought 1: x\nAction 1: go to cabinet 1", "Thought 2: x\nAction 2: stop"]
    plan = says(house("rewoo"), *texts)
    assert plan.path == ["go to cabinet 1"]


def test_without_an_environment_the_calls_are_the_plan():
    model = (GENERAL.model, GENERAL.tokenizer)
    plan = generate_plan("Who?", "hotpotqa", strategy="rewoo", model=model, temperature=1.0, max_steps=4)
    assert plan.open_loop and plan.steps and plan.invalid == plan.misordered == 0


def test_a_random_model_breaks_no_rule():
    rollout = question("rewoo", temperature=1.0, seed=2, max_steps=3)
    for _ in schedule([rollout]):
        pass
    plan = rollout.episode.plan
    assert rollout.failure is None and plan.steps and plan.invalid == plan.misordered == 0


def test_knowledge_without_tools_that_take_a_text_is_told_about():
    text = '%declare _STEP\nstart: wave\n// wave.\nwave: "wave" _STEP bow\n// bow.\nbow: "bow"\n'
    model = (GENERAL.model, GENERAL.tokenizer)
    plan = generate_plan("x", ActionKnowledge.from_lark(text), strategy="rewoo", model=model)
    assert plan.steps == [] and "no plan can be made" in plan.note


def test_plans_that_could_not_be_ended_are_not_begun():
    after = {"start": ["Open", "Find"], "Open": ["Open"], "Find": ["Read"], "Read": []}
    assert plan_form(after, {"Read"}, 1) is None  # Find and Read take two lines
    form = plan_form(after, {"Read"}, 3)
    assert not form.is_prefix("Plan: x\n#E1 = Open") and not form.matches("Plan: x\n#E1 = Find[x]")
    assert form.matches("Plan: x\n#E1 = Find[x]\nPlan: x\n#E2 = LLM[#E1]\nPlan: x\n#E3 = Read[#E2, #E1]")
    assert not form.is_prefix("Plan: x\n#E1 = LLM[x]\nPlan: x\n#E2 = LLM")

"""Low-level subgoals and ReWOO's plans of the same annotations: admitted by the grammars, with the same actions."""

from dataclasses import replace

import pytest

from constrained.agents.strategies.rewoo import ASK, plan_form, read_plan
from constrained.environments.executor.actions import read_turn
from constrained.environments.executor.executor import Executor
from constrained.training.annotations import gsm8k
from constrained.training.annotations.annotation import AnnotatedStep as Step
from constrained.training.annotations.annotation import Annotation
from constrained.training.annotations.convert import converted, refused
from constrained.training.annotations.forms import low_level, rewoo_plan
from tests.data import shared
from tests.training.annotations.test_convert import gsm8k_row

KHAN = Annotation(
    "khan", "qa", "Are more people related to Genghis Khan than Julius Caesar?",
    (
        Step("Find out: How many kids had Caesar?", "R1 = KnowledgeQuery(Julius Caesar); R2 = ParagraphRetrieve(R1, "
             "Query: How many kids had Caesar?); R3 = QA([R2], Question: How many kids had Caesar?)"),
        Step("Find out: How many kids had Khan (all in all)?", "R4 = KnowledgeQuery(R3); R5 = ParagraphRetrieve(R4, "
             "Query: How many kids had Khan?); R6 = QA([R5, R3], Question: How many kids had Khan?)"),
        Step("Decide: Is the answer to Subgoal 2 greater than the answer to Subgoal 1?", "R7 = Calculator(R6 > R3)"),
    ), "yes", "decomposition",
)  # fmt: skip


def test_each_action_gets_a_subgoal_and_subgoals_are_named_anew():
    low = low_level(KHAN)
    assert [len(read_turn("qa", step.turn)) for step in low.steps] == [1] * 7
    assert "; ".join(step.turn for step in low.steps) == "; ".join(step.turn for step in KHAN.steps)
    assert [step.subgoal for step in low.steps] == [
        "Look up Julius Caesar.",
        "Find what the result of Subgoal 1 tells about: How many kids had Caesar?",
        "Answer: How many kids had Caesar?",
        "Look up the result of Subgoal 3.",
        "Find what the result of Subgoal 4 tells about: How many kids had Khan?",
        "Answer: How many kids had Khan?",
        "Decide: Is the answer to Subgoal 6 greater than the answer to Subgoal 3?",
    ]
    assert refused(low) is None and low_level(low).steps == low.steps


def test_equations_become_subgoals_that_come_to_the_same_answer():
    found = gsm8k.convert(gsm8k_row("How many meals?", "We know that p + m = 27 and p = 8m.\n#### 3"))
    low = low_level(found)
    assert [step.turn.partition(" = ")[2].partition("(")[0] for step in low.steps] == [
        "Define", "Define", "SetEquation", "SetEquation", "SolveEquation",
    ]  # fmt: skip
    assert refused(low) is None and [
        Executor("maths").execute("; ".join(s.turn for s in one.steps)) for one in (found, low)
    ] == ["3", "3"]


def test_a_plan_as_rewoo_writes_it():
    assert rewoo_plan(KHAN) == (
        "Plan: Find out: How many kids had Caesar?\n#E1 = Search[Julius Caesar]\n"
        "Plan: Answer: Find out: How many kids had Caesar?\n#E2 = LLM[How many kids had Caesar? Given #E1]\n"
        "Plan: Find out: How many kids had Khan (all in all)?\n#E3 = Search[#E2]\n"
        "Plan: Answer: Find out: How many kids had Khan (all in all)?\n"
        "#E4 = LLM[How many kids had Khan? Given #E3, #E2]\n"
        "Plan: Answer: Decide: Is #E4 greater than #E2?\n#E5 = LLM[Is #E4 greater than #E2?]"
    )


PAGE = "R1 = KnowledgeQuery(C# [language]); "


@pytest.mark.parametrize(
    "turn, calls",
    [
        (f"{PAGE}R2 = ParagraphRetrieve(R1, Query: q); R3 = QA([R2], Question: #1 [or] R10?)",
         ["Search[C language]", "LLM[1 or R10? Given #E1]"]),
        (f"{PAGE}R2 = QA([R1], Question: what?)", ["Search[C language]", "LLM[what? Given #E1]"]),
        (f"{PAGE}R2 = QA([R1], Question: {'x' * 121})", None),
    ],
)  # fmt: skip
def test_a_plan_holds_no_sign_that_means_something_in_it_and_no_text_too_long(turn, calls):
    plan = rewoo_plan(replace(KHAN, steps=(Step("Do it.", turn),)))
    assert (plan and [f"{call.tool}[{call.input}]" for call in read_plan(plan)]) == calls


def test_only_questions_have_a_plan_of_rewoos():
    with pytest.raises(ValueError, match="of maths"):
        rewoo_plan(replace(KHAN, space="maths"))


def test_strategyqas_annotations_in_both_forms_are_admitted():
    tools = ["Search", "Retrieve", "Lookup"]
    form = plan_form(dict.fromkeys(["start", *tools], tools), set(tools), 9)
    made = [row for row in converted("strategyqa", shared("strategyqa/train.json.gz"), limit=60) if row.annotation]
    plans = [plan for row in made if (plan := rewoo_plan(row.annotation))]
    assert len(plans) >= 50 and all(form.matches(plan) for plan in plans)
    for row in made[:20]:
        low = low_level(row.annotation)
        assert refused(low) is None and len(low.steps) >= len(row.annotation.steps)
    asked = [call for call in read_plan(rewoo_plan(made[0].annotation)) if call.tool == ASK]
    assert len(asked) == len(made[0].annotation.steps) == len(made[0].results)

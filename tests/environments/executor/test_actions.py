"""What Lumos's planner and grounder may write, and reading it back with the same files."""

import pytest

from constrained import compile_grammar
from constrained.agents.strategies.lumos.conversation import STOP
from constrained.agents.strategies.lumos.planner import (
    first_subgoal,
    next_subgoal,
    read_subgoal,
    whole_plan,
)
from constrained.environments.executor.actions import action_grammar, action_space, read_turn, slots
from constrained.errors import ActionError, ConstrainedError
from tests.automaton.tokenizers import tokenizer, vocabulary

# Lumos, appendices F.1 and F.2 and figure 3b: soda, Genghis Khan, who lived longer
PRINTED = {
    "R1 = Calculator(2 - 0.5); R2 = Calculator(R1 / 0.25)": "maths",
    "R1 = KnowledgeQuery(Julius Caesar); R2 = ParagraphRetrieve(R1, Query: How many kids did Julius Caesar have?); "
    "R3 = QA([R2], Question: How many kids did Julius Caesar have?); R4 = KnowledgeQuery(Genghis Khan); "
    "R5 = ParagraphRetrieve(R4, Query: How many kids did Genghis Khan have?); "
    "R6 = QA([R5], Question: How many kids did Genghis Khan have?); R7 = Calculator(R6 > R3)": "qa",
    "R1 = Type(Env, Query: Type Ricky Kej to search his songs, Text: Ricky Kej); "
    "R2 = Click(R1, Query: Click on the option to search for Ricky Rej)": "web",
}
EVERY_KIND = (
    "R1 = Define(x); R2 = Define(y); R3 = SetEquation(x + y = 10); R4 = SetEquation(R1 - 2*y = 1); "
    "R5, R6 = SolveEquation(R3, R4); R7 = SetEquation(x**2 < R5 + 20%); R8 = SolveInequality(R7); R9 = Count(R8); "
    "R10 = Calculator(-(R9 - 1)^2 // 3 % 4 + min(R5, sqrt(R6)) * pi); R11 = Code(sort R1 (or R10) up)"
)


def judge_turn(space, text, **shown):
    """The judgements on a turn's actions; what doesn't parse has no result, so that using it later is invalid, too."""
    judged, done = [], []
    for piece in text.split("; "):
        knowledge = action_space(space).bind_view(slots(space, done, **shown))
        judged.append(knowledge.judge(piece.strip().removesuffix(";")))
        if judged[-1]:
            done += read_turn(space, judged[-1].text)
    return judged


def admitted(space, turn):
    """Whether every action of a turn is in the masks' language where it comes."""
    actions = read_turn(space, turn)
    for i, action in enumerate(actions):
        knowledge = action_space(space).bind_view(slots(space, actions[:i]))
        if not action_grammar(knowledge.next_action(), i == 0).matches(action.text if i == 0 else f" {action.text}"):
            return False
    return "; ".join(a.text.removesuffix(";") for a in actions) == turn


@pytest.mark.parametrize("turn", PRINTED)
def test_the_turns_that_the_paper_prints_are_admitted(turn):
    assert admitted(PRINTED[turn], turn)


def test_every_kind_of_mathematical_action_is_admitted_where_it_comes():
    assert admitted("maths", EVERY_KIND)
    actions = read_turn("maths", EVERY_KIND)
    assert [action.results for action in actions[3:6]] == [(4,), (5, 6), (7,)]
    assert {action.kind for action in actions} == set(action_space("maths").actions)


def test_webshop_acts_on_what_the_page_shows():
    turn = (
        "R1 = Search(slim tops, size: large); R2 = Click(b09s3bn15c); R3 = FeatureRetrieve(R2, Query: size: large); "
        "R4 = Pick(Item_names: R1, Item_features: [R3], Query: tops); R5 = Click(R4)"
    )
    assert {verdict.verdict for verdict in judge_turn("webshop", turn, buttons=["b09s3bn15c", "< prev"])} == {"ok"}
    assert [v.verdict for v in judge_turn("webshop", "R1 = Click(buy now)", buttons=["< prev"])] == ["invalid"]


@pytest.mark.parametrize(
    "action",
    [
        "R5 = Calculator(1)",  # the next is R4
        "R4 = Calculator(R4)",
        "R4 = Calculator(R10)",
        "R4 = Calculator(R2 + 1)",  # an equation is no number
        "R4 = SolveEquation(R3)",  # nor a number an equation
        "R4 = SolveInequality(R2)",
        "R4 = SetEquation(z = 1)",  # z is no unknown
        "R4 = Count(R1)",
        "R4 = Code(double R9)",
        "R4 = Calculator((1 + 2)",
        "R4, R6 = SolveEquation(R2)",
    ],
)
def test_results_that_are_not_there_or_of_another_kind_cant_be_named(action):
    before = read_turn("maths", "R1 = Define(x); R2 = SetEquation(x = 3); R3 = Calculator(2 * R1)")
    knowledge = action_space("maths").bind_view(slots("maths", before))
    assert knowledge.judge("R4 = Calculator(R3 + x)")
    assert not knowledge.judge(action) and not action_grammar(knowledge.next_action(), True).matches(action)


def test_text_names_results_only_where_they_exist():
    before = read_turn("qa", "R1 = KnowledgeQuery(FDR)")
    knowledge = action_space("qa").bind_view(slots("qa", before))
    assert knowledge.judge("R2 = QA([R1], Question: Is the R in FDR (or R1) R-rated, R?)")
    for question in ("R2", "is R10 long", "(R3)", "an unclosed (", "one; two"):
        assert not knowledge.judge(f"R2 = QA([R1], Question: {question})")


def test_a_turn_without_masks_is_judged_action_by_action():
    turn = "R1 = KnowledgeQuery(Nile); R2 = ParagraphRetrieve(R5, Query: length?); R3 = QA([R1], Question: how long)"
    judged = judge_turn("qa", turn)
    assert [j.verdict for j in judged] == ["ok", "invalid", "invalid"] and "R5" not in judged[0].text
    assert [j.verdict for j in judge_turn("qa", "")] == ["invalid"]


@pytest.mark.parametrize("name", ["gpt2", "qwen2.5"])
def test_masks_over_real_tokenizers_lead_through_a_turn(name):
    encode = tokenizer(name).encode
    before = read_turn("qa", "R1 = KnowledgeQuery(Genghis Khan)")
    knowledge = action_space("qa").bind_view(slots("qa", before))
    compiled = compile_grammar(action_grammar(knowledge.next_action(), True), vocabulary(name))
    matcher = compiled.matcher()
    for token in encode("R2 = ParagraphRetrieve(R1, Query: How many kids had R1?);", add_special_tokens=False):
        assert token in matcher.allowed_token_ids() and matcher.advance(token)
    assert matcher.is_complete
    assert compiled.matcher("R2 = ParagraphRetrieve(").forced_text() == b"R1, Query: "


@pytest.mark.parametrize(
    "text, at",
    [("", 1), ("R1 = Calculator(", 17), ("R1 = Sum(1)", 3), ("R1 = Define(1);; R2", 16), ("x" * 9_000, None)],
)
def test_what_is_no_turn_says_where(text, at):
    with pytest.raises(ActionError, match=f"character {at}," if at else "9,000 characters"):
        read_turn("maths", text)


def test_an_unknown_space_names_the_known_ones():
    with pytest.raises(ConstrainedError, match="no action space 'chess'"):
        action_space("chess")


def test_the_planner_counts_its_subgoals_and_stops_in_time():
    assert first_subgoal().matches("Subgoal 1: Find it.") and not first_subgoal().is_prefix("Subgoal 2")
    turn = next_subgoal(2, most=2)
    assert turn.matches("No, I will keep planning. Subgoal 2: Say it.") and turn.matches(STOP)
    assert not turn.is_prefix("No, I will keep planning. Subgoal 3")
    assert next_subgoal(3, most=2).matches(STOP) and not next_subgoal(3, most=2).is_prefix("No")


def test_the_planner_is_read_back():
    assert read_subgoal("Subgoal 1: Find it.", 1) == "Find it."
    assert read_subgoal("No, I will keep planning. Subgoal 2: Say: it", 2) == "Say: it"
    assert read_subgoal(STOP, 2) is None
    assert read_subgoal(f"Subgoal 1: {STOP}", 1) == STOP
    with pytest.raises(ActionError, match="'Maybe' is no text of the grammar"):
        read_subgoal("Maybe", 2)


def test_a_whole_plan_is_numbered_by_construction():
    plan = whole_plan(3)
    text = "Subgoal 1: Find a, b; Subgoal 2: Add; Subgoal 3: Say"
    assert plan.matches(text)
    for wrong in ("Subgoal 2: a", "Subgoal 1: a; Subgoal 3: b", f"{text}; Subgoal 4: c", "Subgoal 1: a; "):
        assert not plan.matches(wrong)

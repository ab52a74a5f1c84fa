"""Questions as an environment: search, retrieve, look up, finish; and what goes wrong is said."""

import pickle
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrained import ActionKnowledge
from constrained.agents.demonstrations import check_demonstration
from constrained.environments.question.env import SHOWN_CHARACTERS, Question, QuestionEnv
from constrained.environments.question.index import LocalIndex
from constrained.environments.question.passages import Passage
from constrained.errors import GameError, ToolError
from tests.environments.protocols import is_suite_environment
from tests.environments.question.small import MILHOUSE, QUESTION, SMALL


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    made = LocalIndex(SMALL, folder=tmp_path_factory.mktemp("index"))
    yield made
    made.close()


@pytest.fixture
def env(index):
    made = QuestionEnv(QUESTION, index)
    made.reset()
    return made


def test_a_question_is_answered(env):
    assert is_suite_environment(env)
    assert env.reset() == "Question: Who was Milhouse in The Simpsons named after?" and env.task in env.reset()
    observation, reward, done = env.step("Search[Milhouse in The Simpsons]")
    assert observation == f"Milhouse Van Houten: {MILHOUSE.text} Also found: Matt Groening."
    assert (reward, done, env.had_effect) == (0.0, False, True)
    assert env.step("Lookup[NAMED]")[0] == f"(Result 1 / 2) {MILHOUSE.sentences[1]}"
    assert env.outcome() == {"success": 0.0, "f1": 0.0, "em": 0.0}
    assert env.step("Finish[the Richard Nixon]") == ("Answer is CORRECT", 1.0, True)
    assert env.outcome() == {"success": 1.0, "f1": 1.0, "em": 1.0} and env.done


def test_an_answer_that_is_partly_right_has_its_f1_as_reward(env):
    assert env.step("Finish[President Nixon]") == ("Answer is INCORRECT", 0.5, True)
    assert env.outcome() == {"success": 0.0, "f1": 0.5, "em": 0.0}


@pytest.mark.parametrize("answer, right", [("SUPPORTS", 1.0), ("supports", 1.0), ("REFUTES", 0.0), ("", 0.0)])
def test_labels_are_right_or_wrong(index, answer, right):
    claim = QUESTION.__class__("7", "SUPPORTS", "Milhouse has a friend.", "SUPPORTS")
    env = QuestionEnv(claim, index, ("accuracy",), "Claim")
    assert env.reset() == "Claim: Milhouse has a friend."
    assert env.step(f"Finish[{answer}]")[1:] == (right, True)
    assert env.outcome() == {"success": right, "accuracy": right}


def test_lookup_goes_on_from_result_to_result_and_then_says_so(env):
    env.step("Retrieve[Milhouse Van Houten]")
    assert env.step("Lookup[named]")[0].startswith("(Result 1 / 2) He was named")
    assert env.step("Lookup[named]")[0].startswith("(Result 2 / 2) Bart")
    assert (
        env.step("Lookup[named]")[0] == "No more results for 'named' in 'Milhouse Van Houten'." and not env.had_effect
    )
    assert env.step("Lookup[Bart]")[0].startswith("(Result 1 / 1)") and env.had_effect
    assert env.step("Lookup[named]")[0].startswith("(Result 1 / 2)")
    assert env.step("Lookup[Warsaw]")[0] == "No results for 'Warsaw' in 'Milhouse Van Houten'."
    assert env.step("Lookup[ ]")[0].startswith("No results") and not env.had_effect


def test_lookup_reads_the_passage_found_last_and_begins_anew_in_each(env):
    env.step("Search[Milhouse]")
    env.step("Lookup[is]")
    env.step("Retrieve[Mercury (planet)]")
    assert env.step("Lookup[is]")[0] == "(Result 1 / 1) Mercury is the planet nearest to the Sun."


def test_lookup_before_anything_was_found_has_no_effect(env):
    for failing in ("Search[???]", "Retrieve[zzz]"):
        env.step(failing)
        assert not env.had_effect
        assert env.step("Lookup[is]")[0] == "Lookup error: no passage has been found yet." and not env.had_effect


def test_a_title_that_is_not_there_leaves_the_passage_as_it_is(env):
    env.step("Retrieve[Mercury (planet)]")
    assert env.step("Retrieve[Milhouse]")[0] == "There is no page 'Milhouse'. Similar: Milhouse Van Houten."
    assert not env.had_effect and env.passage.title == "Mercury (planet)"
    assert env.step("Retrieve[zzz]")[0] == "There is no page 'zzz'. Nothing is similar."


def test_what_is_no_action_is_named_invalid(env):
    for text in ("", "Search", "Search[x", "search[x]", "Think[x]", "Search[x] Finish[y]x", "Search x]", "\x00"):
        observation, reward, done = env.step(text)
        assert observation.startswith("Invalid Action") and (reward, done, env.had_effect) == (0.0, False, False)


@given(
    name=st.sampled_from(["Search", "Retrieve", "Lookup"]),
    text=st.text(st.characters(exclude_categories=()), max_size=40),
)
def test_any_argument_has_an_answer_of_one_line(index, name, text):
    env = QuestionEnv(QUESTION, index)
    env.step("Search[Milhouse]")
    observation, reward, done = env.step(f"{name}[{text}]")
    assert observation and "\n" not in observation and (reward, done) == (0.0, False)


def test_brackets_in_an_argument_are_part_of_it(env):
    assert env.step("Finish[Richard [Nixon]]")[1] == 1.0


def test_an_answered_question_takes_no_more_actions_until_reset(env):
    env.step("Search[Milhouse]")
    env.step("Finish[x]")
    with pytest.raises(GameError, match="reset"):
        env.step("Search[x]")
    env.reset()
    assert env.passage is None and not env.done and env.outcome()["f1"] == 0.0
    assert env.view() == {"TITLE": {}, "KEYWORD": {}}


class Failing:
    """An index that takes too long."""

    def search(self, query, limit=5):
        raise ToolError("en.wikipedia.org did not answer within 10 s")

    page = similar = search


@pytest.mark.parametrize("action", ["Search[x]", "Retrieve[x]"])
def test_a_tool_that_fails_is_told_and_the_question_goes_on(action):
    env = QuestionEnv(QUESTION, Failing())
    assert env.step(action) == ("Search error: en.wikipedia.org did not answer within 10 s.", 0.0, False)
    assert not env.had_effect
    assert env.step("Finish[Richard Nixon]")[1] == 1.0


class OnePage:
    """An index with one page."""

    def __init__(self, *sentences):
        self.found = Passage("Long", sentences)

    def page(self, title):
        return self.found


def test_a_long_passage_is_shown_up_to_a_sentence_and_looked_up_to_its_end():
    env = QuestionEnv(QUESTION, OnePage(*["A sentence of some words."] * 200, "The last word."))
    shown = env.step("Retrieve[Long]")[0]
    assert len(shown) < SHOWN_CHARACTERS + 10 and shown.endswith("words. …")
    assert env.step("Lookup[last]")[0] == "(Result 1 / 1) The last word."
    assert len(QuestionEnv(QUESTION, OnePage("x" * 10_000)).step("Retrieve[Long]")[0]) < SHOWN_CHARACTERS + 10


def test_what_is_in_view_is_what_was_seen_and_can_still_be_found(env):
    env.step("Search[Milhouse]")
    view = env.view()
    assert "Matt Groening" in view["TITLE"] and "Milhouse Van Houten" not in view["TITLE"]
    assert "named" in view["KEYWORD"] and "was" not in view["KEYWORD"]
    env.step("Lookup[named]")
    assert "named" in env.view()["KEYWORD"]
    env.step("Lookup[named]")
    assert "named" not in env.view()["KEYWORD"] and "Nixon" in env.view()["KEYWORD"]


def test_an_environment_is_made_where_it_is_played(index):
    make = pickle.loads(pickle.dumps(partial(QuestionEnv, QUESTION, index)))
    assert make().step("Search[Milhouse]")[0] == QuestionEnv(QUESTION, index).step("Search[Milhouse]")[0]


def test_examples_are_other_questions_with_the_pages_that_answer_them(index):
    planet = Question("q2", "easy", "Which planet is nearest to the Sun?", "Mercury", ("Mercury (planet)",))
    others = (
        QUESTION,
        Question("q3", "easy", "Whose friend is Bart?", "Milhouse", ("Milhouse Van Houten",)),  # shares the page
        Question("q4", "easy", "Who painted it?", "Frida Kahlo", ("Matt Groening",)),  # the page doesn't say it
        Question("q5", "easy", "Where is it?", "Poland", ("Nowhere",)),  # no such page
        planet,
        Question("q6", "easy", "Is it liquid?", "yes", ("Mercury (element)", "Mercury")),
        Question("q7", "easy", "Is it a god?", "yes", ("Mercury",)),  # the same answer again
    )
    env = QuestionEnv(QUESTION, index, others=others)
    first, second = env.demonstrations(5)
    assert [step.action for step in first.steps] == ["Retrieve[Mercury (planet)]", "Finish[Mercury]"]
    assert first.task == planet.text and first.first_observation == f"Question: {planet.text}"
    assert first.steps[0].observation == "Mercury (planet): Mercury is the planet nearest to the Sun."
    assert [step.action for step in second.steps][-1] == "Finish[yes]" and len(second.steps) == 3
    assert env.demonstrations(1) == [first] and env.demonstrations(0) == []
    knowledge = ActionKnowledge.from_lark("hotpotqa")
    for example in (first, second):
        check_demonstration(example, knowledge)

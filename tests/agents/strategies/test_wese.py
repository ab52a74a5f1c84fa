"""WESE: look around, keep what was read as triples, begin anew and act on what the task needs of them."""

from functools import partial

import pytest

from constrained import ActionKnowledge, Grammar, generate_plan
from constrained.agents.episode import Episode
from constrained.agents.plan import Plan
from constrained.agents.scheduler import Rollout
from constrained.agents.settings import Settings
from constrained.agents.strategies.knowledge_graph import (
    MOST_TRIPLES,
    NAME_CHARACTERS,
    READ_CHARACTERS,
    Triple,
    names,
    read_triples,
)
from constrained.environments.household import HouseholdEnv, make_game
from constrained.models import load
from tests.agents.random_model import RANDOM, random_model
from tests.agents.scripted import answer_with, may
from tests.decoding.tiny import tiny
from tests.environments.household.small_house import small_house

MODEL = load((RANDOM.model, RANDOM.tokenizer))


def rollout(environment, knowledge, strategy="wese", models=None, recorded=(), step_format="act", **settings):
    plan = Plan(environment.task, knowledge, strategy, "random", True, 0)
    settings = Settings(strategy, step_format, **settings)
    models = models or {"policy": MODEL}
    episode = Episode(models, ActionKnowledge.from_lark(knowledge), plan, settings, environment)
    return Rollout(episode, name="task", recorded=recorded)


def house(**settings):
    return rollout(HouseholdEnv(small_house()), "household", **settings)


# in a household, whose texts are read by rule

LOOKING = [" go to table 1", " go to fridge 1", " open fridge 1", " go to shelf 1"]
DOING = [" go to shelf 1", " take mug 1 from shelf 1", " go to sinkbasin 1", " clean mug 1 with sinkbasin 1",
         " put mug 1 in/on sinkbasin 1"]  # fmt: skip


def test_exploring_comes_first_and_acting_begins_anew_with_what_was_found():
    playing = house(explore_steps=4, demonstrations=0)
    plan = answer_with(playing, *LOOKING)
    assert [(s.phase, s.n) for s in plan.steps] == [("explore", n) for n in (1, 2, 3, 4)]
    request = playing.request
    assert request.role == "policy" and "mug 1 | in/on | shelf 1" in request.prompt and "potato" not in request.prompt
    assert "Seen: mug 1 at shelf 1" in request.prompt
    plan = answer_with(playing, *DOING)
    assert plan.success and plan.note == "" and len(plan.last_phase) == 5
    assert plan.path == [action.strip() for action in DOING] and plan.invalid == plan.misordered == 0
    assert "[explore]" in plan.trajectory and "[exploit]" in plan.trajectory
    assert {role: usage["completion_tokens"] for role, usage in plan.usage_by_role.items()} == {
        "explorer": 20,
        "policy": 25,
    }


def test_exploring_changes_nothing_that_acting_finds():
    playing = house(explore_steps=4)
    answer_with(playing, *LOOKING)
    untouched = HouseholdEnv(small_house())
    assert playing.episode.surroundings.environment.truth.state == untouched.truth.state
    assert playing.episode.surroundings.environment.admissible() == untouched.admissible()


def test_only_what_shows_something_new_is_admitted_to_the_explorer():
    playing = house()
    playing.start()
    assert may(playing, " go to table 1") and not may(playing, " look") and not may(playing, " inventory")
    answer_with(playing, " go to fridge 1")
    assert may(playing, " open fridge 1") and not may(playing, " go to table 1")  # what is closed here comes first
    answer_with(playing, " open fridge 1")
    assert may(playing, " go to table 1")
    for action in (" go to fridge 1", " close fridge 1", " take potato 2 from fridge 1"):
        assert not may(playing, action)


def test_exploring_ends_when_everything_was_seen():
    env = HouseholdEnv(small_house())
    plan = generate_plan(env.task, environment=env, strategy="wese", model=MODEL, temperature=1.0, max_steps=1,
                         explore_steps=50, seed=3)  # fmt: skip
    explored = [s.action for s in plan.steps if s.phase == "explore"]
    assert len(explored) == len(set(explored)) < 50
    assert sum(action.startswith("open ") for action in explored) == len(env.truth.state.of("openable"))


@pytest.mark.parametrize("constrained", [True, False])
def test_the_explorer_may_end_its_exploration_where_the_setting_says_so(constrained):
    playing = house(explore_stop=True, explore_steps=9, constrained=constrained)
    playing.start()
    assert "write `stop` as the action" in playing.request.prompt
    assert not constrained or not may(playing, " stop")  # something has to be seen first
    plan = answer_with(playing, " go to table 1", " stop")
    assert [(s.phase, s.action) for s in plan.steps] == [("explore", "go to table 1")]
    assert playing.request.role == "policy" and "`stop`" not in playing.request.prompt
    plan = answer_with(playing, *DOING)
    assert plan.success and plan.invalid == plan.misordered == 0


def test_without_that_setting_it_goes_on():
    playing = house(explore_steps=9)
    answer_with(playing, " go to table 1")
    assert not may(playing, " stop") and playing.episode.stop is None


@pytest.mark.parametrize("seed", range(3))
def test_with_masks_neither_phase_is_ever_wrong(seed):
    env = HouseholdEnv(make_game(seed))
    plan = generate_plan(env.task, environment=env, strategy="wese", model=MODEL, temperature=1.0, seed=seed,
                         max_steps=2, explore_steps=6)  # fmt: skip
    assert [s.phase for s in plan.steps] == ["explore"] * 6 + ["exploit"] * 2
    assert plan.invalid == plan.misordered == 0 and all(s.had_effect for s in plan.steps)


def test_without_masks_the_same_strategy_runs_with_nothing_held_back():
    env = HouseholdEnv(make_game(1))
    plan = generate_plan(env.task, environment=env, strategy="wese", model=MODEL, temperature=1.0, constrained=False,
                         max_steps=2)  # fmt: skip
    assert [s.phase for s in plan.steps] == ["explore"] * 2 + ["exploit"] * 2
    assert plan.invalid + plan.misordered == 4


def test_what_the_strong_model_explores_is_counted_as_its_own():
    weak = random_model(seed=1)
    models = {"policy": MODEL, "explorer": weak}
    plan = answer_with(
        house(strategy="sese", models=models, explore_steps=2), " go to shelf 1", " go to fridge 1", *DOING
    )
    assert list(plan.usage_by_role) == ["policy"] and plan.success


def test_a_run_broken_off_while_exploring_goes_on_there():
    whole = house(explore_steps=4)
    answer_with(whole, *LOOKING, *DOING)
    plan = whole.episode.plan
    for kept in (2, 4, 6):
        again = house(explore_steps=4, recorded=plan.answers[:kept])
        again.start()
        for answer in plan.answers[kept:]:
            again.answer(answer)
        assert again.over and again.failure is None
        assert again.episode.plan.to_dict() == plan.to_dict()


def test_the_embedded_model_goes_straight_to_what_was_found():
    steps = {"react": [], "wese": []}
    for seed in (1, 2, 5):
        env = HouseholdEnv(make_game(seed))
        for strategy, counts in steps.items():
            plan = generate_plan(env.task, environment=env, strategy=strategy, level="goal")
            assert plan.invalid == plan.misordered == 0
            counts.append(len(plan.last_phase) if plan.success else 50)
    assert sum(steps["wese"]) < sum(steps["react"]), steps


# where a model must read


class Library:
    """Answers every search alike."""

    task = "What is Francine Smith in?"

    def __init__(self, answer="Wendy Schaal has voiced Francine Smith in American Dad!"):
        self.answer = answer

    def reset(self):
        return f"Question: {self.task}"

    def step(self, action):
        done = action.startswith("Finish[")
        return "" if done else self.answer, float(action == "Finish[American Dad]"), done


def asked(expected, text, playing):
    """Give `text` where the question is the one expected."""

    def check(request):
        assert request.role == expected, playing.episode.plan.note
        return text

    return check


def test_triples_name_what_was_observed_and_entities_are_nodes():
    playing = rollout(Library(), "hotpotqa", explore_steps=2)
    say = partial(asked, playing=playing)
    answer_with(playing, say("explorer", " Search[Francine]"))
    assert "Wendy Schaal has voiced" in playing.request.prompt and playing.request.role == "extractor"
    assert may(playing, "Wendy Schaal | voices | Francine Smith\nFrancine | is | Smith") and may(playing, "none")
    for text in ("Stan Smith | is | Francine", "Wendy Schaal | voices | Stan", "Wendy Schaal, voices, Francine", ""):
        assert not may(playing, text)
    answer_with(playing, "Wendy Schaal | voices | Francine Smith\nFrancine Smith | is in | American Dad")
    answer_with(playing, say("explorer", " Lookup[dad]"))  # shows nothing new: nothing is read
    assert may(playing, "American Dad\nWendy Schaal") and may(playing, "none")
    for text in ("American", "Stan Smith", "American Dad, Wendy Schaal", ""):
        assert not may(playing, text)
    answer_with(playing, say("extractor", "American Dad"))
    assert "Francine Smith | is in | American Dad" in playing.request.prompt
    assert "Wendy Schaal | voices" not in playing.request.prompt, "two hops away"
    plan = answer_with(playing, say("policy", " Search[American Dad]"), say("policy", " Finish[American Dad]"))
    assert plan.success and plan.invalid == plan.misordered == 0


def test_the_explorer_may_do_whatever_does_not_end_the_task():
    playing = rollout(Library(), "hotpotqa")
    answer_with(playing, " Search[x]", "none")
    assert may(playing, " Lookup[x]") and not may(playing, " Finish[x]")
    assert "Finish" not in playing.request.prompt and "another agent does the task" in playing.request.prompt


@pytest.mark.parametrize("answer", ["", " \n\t", "?!...", "|||", "\x00\x01"])
def test_where_nothing_is_named_nothing_is_asked(answer):
    class Tool(Library):
        def step(self, action):
            return answer, 0.0, False

    knowledge = '%declare _STEP\nstart: wait\nwait: "?" _STEP [wait]\n'
    plan = generate_plan("x", knowledge, environment=Tool(), strategy="wese", model=MODEL, max_steps=2)
    assert [a.role for a in plan.answers if a.role == "extractor"] == [] and len(plan.steps) == 4


def test_where_all_looks_alike_nothing_is_done_twice():
    knowledge = '%declare _STEP\nstart: act | end\nact: ("left" | "right") _STEP start\nend: "end"\n'
    plan = generate_plan("x", knowledge, environment=Library("?"), strategy="wese", model=MODEL, max_steps=9)
    explored = [step.action for step in plan.steps if step.phase == "explore"]
    assert len(explored) == 3 and set(explored[1:]) == {"left", "right"}  # the first saw the question


def test_long_observations_are_read_in_part():
    playing = rollout(Library("Ünïcode 中文 word " * 8000), "hotpotqa", explore_steps=1)
    answer_with(playing, " Search[x]")
    assert len(playing.request.prompt) < READ_CHARACTERS[0] + 1000
    plan = answer_with(playing, "Ünïcode | is | 中文", "中文")
    assert "Ünïcode | is | 中文" in playing.request.prompt and plan.invalid == 0


def test_names_are_runs_of_words_between_marks():
    found = names("Search[Dad]\nWendy Schaal (born 1954) voices \x00 Francine, of U.S. TV.")
    assert {"Wendy Schaal", "born 1954", "voices Francine", "U.S", "Dad"} <= set(found)
    assert not {"Wendy Schaal born", "Francine of", "Dad Wendy", "U.S. TV"} & set(found)
    assert names("x" * 100) == [] and len(names("word " * 10)) == 6
    assert max(map(len, names("longish " * 300))) <= NAME_CHARACTERS


def test_without_masks_what_is_no_triple_is_passed_over():
    text = "Sure! Here:\nmug 1 | in/on | desk 1\n| a | b\na | b | c | d\n x | y | z \n" + "a | b | c\n" * 99
    found = read_triples(text)
    assert found[:2] == [Triple("mug 1", "in/on", "desk 1"), Triple("x", "y", "z")] and len(found) == MOST_TRIPLES
    assert read_triples(f"{'x' * 99} | is | long") == read_triples("") == read_triples("none") == []


def test_a_random_model_writes_triples_that_parse():
    plan = generate_plan(Library.task, "hotpotqa", environment=Library(), strategy="wese", model=MODEL, temperature=1.0,
                         max_steps=1)  # fmt: skip
    text, chosen = (a.text for a in plan.answers if a.role == "extractor")
    assert text == "none" or len(read_triples(text)) == min(len(text.split("\n")), MOST_TRIPLES)
    assert set(chosen.split("\n")) <= {name for t in read_triples(text) for name in (t.head, t.tail)} | {"none"}
    assert plan.invalid == plan.misordered == 0


def test_the_explorer_reads_unless_another_model_does():
    weak, reader = tiny(seed=1), tiny(seed=2)
    episode = house(models={"policy": MODEL, "explorer": weak}).episode
    assert episode.writer.model("extractor") is episode.writer.model("explorer") is weak
    assert episode.writer.model("policy") is episode.writer.model("planner") is MODEL
    episode = house(models={"policy": MODEL, "explorer": weak, "extractor": reader}).episode
    assert episode.writer.model("extractor") is reader
    assert house(models={"policy": MODEL}).episode.writer.model("extractor") is MODEL


def test_a_tight_budget_of_tokens_stops_reading_before_acting():
    playing = rollout(Library(), "hotpotqa", explore_steps=1, max_new_tokens=100)
    answer_with(playing, " Search[x]")
    assert playing.request.role == "policy" and playing.episode.hints == ""


def test_the_grammars_are_the_ones_that_ship():
    triples = Grammar.from_lark("steps/triples").bind(NAME=["a", "b"])
    line = "a | is | b"
    assert triples.matches("\n".join([line] * MOST_TRIPLES)) and not triples.matches(
        "\n".join([line] * (MOST_TRIPLES + 1))
    )

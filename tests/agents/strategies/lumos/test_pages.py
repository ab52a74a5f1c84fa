"""Lumos on web pages and in a shop: its own actions on Mind2Web's recorded pages and WebShop's catalogue."""

from functools import partial

import pytest

from benchmarks.lumos.pages import GroundedShop, GroundedWeb
from benchmarks.lumos.suites import grounded, most_subgoals
from constrained import ActionKnowledge
from constrained.agents.episode import Episode
from constrained.agents.plan import Plan
from constrained.agents.scheduler import Rollout
from constrained.agents.settings import Settings
from constrained.environments.base import Environment
from constrained.environments.executor.actions import read_turn
from constrained.environments.mind2web.env import Mind2WebEnv
from constrained.environments.mind2web.tasks import read_tasks
from constrained.environments.suite import Suite, Task
from constrained.environments.webshop.catalogue import open_shop
from constrained.environments.webshop.env import WebshopEnv
from tests.agents.random_model import RANDOM
from tests.agents.scripted import answer_with
from tests.agents.strategies.lumos.hall import HOSTILE, played
from tests.environments.mind2web import rows
from tests.environments.webshop import small_catalogue as small

TYPE = "R1 = Type(Env, Query: the city of the pick-up, Text: Boston)"
SELECT = "R2 = Select(R1, Query: how to sort, Text: price, LOW to high)"

# Appendix G: search, look at both items' features, pick, buy.
SHOPPING = [
    "R1 = Search(tea tree shampoo)",
    "R2 = Click(b000000001)",
    "R3 = FeatureRetrieve(R2, Query: 8 fl oz with mint, cruelty free)",
    "R4 = Click(< prev)",
    "R5 = Pick(Item_names: R1, Item_features: [R3], Query: sulfate free shampoo with mint)",
    "R6 = Click(R5)",
    "R7 = Click(8 fl oz)",
    "R8 = Click(mint | sage)",
    "R9 = Click(buy now)",
]


@pytest.fixture
def web(tmp_path):
    """Opens the recorded task of two steps."""
    return partial(Mind2WebEnv, list(read_tasks(rows.write(tmp_path / "train_0.json")))[1])


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory):
    return open_shop(small.write(tmp_path_factory.mktemp("webshop")))


@pytest.fixture
def shop(catalogue):
    """Opens the shop for the shampoo."""
    return partial(WebshopEnv, catalogue, next(g for g in catalogue.goals if g.product.number == "B000000001"))


def rollout(environment, strategy="lumos", **settings):
    plan = Plan("q", environment.space, strategy, "tiny", True, 0)
    knowledge = ActionKnowledge.from_lark(f"lumos/{environment.space}")
    return Rollout(Episode({"policy": RANDOM}, knowledge, plan, Settings(strategy, "react", **settings), environment))


def test_the_described_elements_are_found_on_the_page(web):
    env = GroundedWeb(web)
    assert isinstance(env, Environment) and "Rent the cheapest car" in env.reset()
    assert env.view()["PAGE"] == ["Env"] and env.view()["N"] == ["1"]
    _, reward, done = env.step(TYPE)
    assert (reward, done, env.had_effect) == (1.0, False, True)
    assert env.view()["PAGE"] == ["R1"] and env.view()["N"] == ["2"]
    assert env.step(SELECT)[1:] == (1.0, True)
    assert env.outcome()["step_success"] == 1.0


@pytest.mark.parametrize(
    "action",
    ["", "[textbox] Pick-up city -> TYPE: Boston", "R1 = Click(R7, Query: search)", "R1 = Click(Env, Query: zebra)",
     "R1 = Select(Env, Query: sort, Text: zebra)", f"{TYPE}; {SELECT}"],
)  # fmt: skip
def test_what_cannot_be_done_on_a_page_counts_as_a_step_without_success(web, action):
    env = GroundedWeb(web)
    page, reward, _ = env.step(action)
    assert page.startswith("Error: ") and (reward, env.had_effect) == (0.0, False)
    assert env.outcome()["step_success"] == 0.0 and env.view()["N"] == ["1"]


def test_lumos_does_a_recorded_task_in_its_own_actions(web):
    plan = answer_with(rollout(GroundedWeb(web)), "Subgoal 1: Say where.", TYPE,
                       "No, I will keep planning. Subgoal 2: Sort by price.", SELECT)  # fmt: skip
    assert plan.success and plan.invalid == plan.misordered == 0 and plan.outcome["step_success"] == 1.0


def test_a_walk_like_the_papers_buys_the_right_item(shop):
    env = GroundedShop(shop)
    assert isinstance(env, Environment) and "sulfate free shampoo" in env.reset()
    said = [env.step(action) for action in SHOPPING]
    assert said[0][0].startswith("b000000001 - Tea Tree Shampoo") and " ** " in said[0][0]
    assert said[2][0].startswith("8 fl oz, ") and "rose" not in said[2][0]
    assert said[4][0] == "b000000001" and said[-1][1:] == (1.0, True)
    assert env.outcome()["success"] == 1.0


def test_what_results_can_be_used_for_follows_the_page(shop):
    env = GroundedShop(shop)
    seen = []
    for action in SHOPPING[:6]:
        env.step(action)
        seen.append({slot: list(env.view()[slot]) for slot in ("FOUND", "OPENED", "FEATURE", "ITEM")})
    assert [one["OPENED"] for one in seen] == [[], ["2"], ["2"], ["2"], ["2"], ["2", "6"]]
    assert [one["ITEM"] for one in seen] == [[], [], [], [], ["5"], []]  # on its own page it can't be clicked again
    assert seen[-1]["FOUND"] == ["1"] and seen[-1]["FEATURE"] == ["3"]


@pytest.mark.parametrize(
    "action",
    ["R1 = Click(buy now)", "R1 = FeatureRetrieve(R2, Query: x)", "R1 = Click(R4)", "nonsense", "",
     "R1 = Pick(Item_names: R1, Item_features: [R3], Query: x)", "search[tea tree]"],
)  # fmt: skip
def test_what_cannot_be_done_in_the_shop_changes_nothing(shop, action):
    env = GroundedShop(shop)
    assert env.step(action)[0].startswith("Error: ") and not env.had_effect
    assert env.view()["N"] == ["1"] and env.step(SHOPPING[0])[0].startswith("b000000001")


def test_a_search_is_possible_from_any_page(shop):
    env = GroundedShop(shop)
    for action in SHOPPING[:3]:
        env.step(action)
    assert env.step("R4 = Search(running shoes for R3)")[0].count("b000000002") == 1


@pytest.mark.parametrize("make", ["web", "shop"])
@pytest.mark.parametrize("seed", range(2))
def test_behind_masks_a_random_model_writes_nothing_invalid(make, seed, request):
    opened = {"web": GroundedWeb, "shop": GroundedShop}[make](request.getfixturevalue(make))
    plan = played(rollout(opened, temperature=1.5, seed=seed, max_steps=4, max_new_tokens=900))
    assert plan.steps and plan.invalid == plan.misordered == 0


@pytest.mark.parametrize("make", ["web", "shop"])
@pytest.mark.parametrize("text", HOSTILE)
def test_without_masks_whatever_is_written_is_recorded(make, text, request):
    opened = {"web": GroundedWeb, "shop": GroundedShop}[make](request.getfixturevalue(make))
    one = rollout(opened, constrained=False, max_steps=4, max_subgoals=3)
    one.start()
    for _ in range(30):
        if not one.over:
            answer_with(one, text)
    assert one.over and all(step.verdict == "ok" or step.reason for step in one.episode.plan.steps)


@pytest.mark.parametrize(
    ("suite", "made", "most"), [("mind2web/train", GroundedWeb, 15), ("webshop/test", GroundedShop, 5)]
)
def test_suites_are_played_in_lumos_own_space(suite, made, most, request):
    make = request.getfixturevalue({GroundedWeb: "web", GroundedShop: "shop"}[made])
    one = Suite(suite, suite.partition("/")[0], [Task("t", "k", make)], 40, ("success",))
    ours = grounded(one)
    assert ours.knowledge == f"lumos/{made.space}" and most_subgoals(one) == most
    assert isinstance(ours.tasks[0].make(), made)


@pytest.fixture
def shoes(catalogue):
    """Opens the shop for the running shoes: another product than the shampoos."""
    return partial(WebshopEnv, catalogue, next(g for g in catalogue.goals if g.product.number == "B000000002"))


def test_the_worked_examples_reach_other_goals_by_the_papers_walk(shoes):
    env = GroundedShop(shoes)
    shots = env.shots(2)
    assert 1 <= len(shots) <= 2 and env.shots(0) == [] and "running shoes" not in " ".join(s.task for s in shots)
    for shot in shots:
        subgoals, turns, results = zip(*shot.steps)
        assert subgoals[0].startswith("Search two") and subgoals[-1].startswith("Buy")
        assert turns[0].startswith("R1 = Search(") and turns[-1].endswith("Click(buy now)")
        assert results[-1].startswith("Thank you")
        assert "; ".join(turns).count(" = ") == len(read_turn("webshop", "; ".join(turns)))
        again = GroundedShop(
            partial(WebshopEnv, env._env._shop, next(g for g in env._env._shop.goals if g.instruction == shot.task))
        )
        for action in "; ".join(turns).split("; "):
            again.step(action)
        assert again.outcome()["success"] == 1.0


def test_planner_and_grounder_read_two_examples_before_their_task(shoes):
    one = rollout(GroundedShop(shoes), constrained=False, max_steps=8)
    shots = one.episode.surroundings.environment.shots(2)
    one.start()
    planned = one.request.prompt
    answer_with(one, "Subgoal 1: Search two relevant items.")
    grounded_prompt = one.request.prompt
    for shot in shots:
        assert f"Task: {shot.task}\n<|assistant|>\nSubgoal 1: {shot.steps[0][0]}" in planned
        assert f"The executed result for Subgoal 1 is {shot.steps[0][2]}" in planned
        assert f"<|assistant|>\n{shot.steps[0][1]}\n" in grounded_prompt
    assert planned.index(shots[-1].task) < planned.index("running shoes with rubber sole")
    assert grounded_prompt.rindex(
        "Subgoal to be grounded: Subgoal 1: Search two relevant items."
    ) > grounded_prompt.rindex("Click(buy now)")


@pytest.mark.parametrize(("count", "shown"), [(0, 0), (1, 1), (None, 1)])
def test_how_many_examples_are_shown_is_a_setting(shoes, count, shown):
    one = rollout(GroundedShop(shoes), constrained=False, demonstrations=count)
    one.start()
    assert min(one.request.prompt.count("Yes, I will stop planning."), 1) == shown

"""Shopping: what the page shows can be clicked, nothing else can, and the knowledge says the same."""

import random

import pytest

from constrained.agents.generate import generate_plan
from constrained.environments.webshop.catalogue import open_shop
from constrained.environments.webshop.env import WebshopEnv
from constrained.errors import GameError
from constrained.knowledge import ActionKnowledge
from tests.decoding.tiny import tiny
from tests.environments.protocols import is_suite_environment
from tests.environments.webshop import small_catalogue as small


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return open_shop(small.write(tmp_path_factory.mktemp("webshop")))


@pytest.fixture
def env(shop) -> WebshopEnv:
    return WebshopEnv(shop, next(goal for goal in shop.goals if goal.product.number == "B000000001"))


def play(env: WebshopEnv, *actions: str) -> str:
    page = ""
    for action in actions:
        page, _, _ = env.step(action)
        assert env.had_effect, action
    return page


def test_the_first_page_has_the_instruction_and_a_search(env):
    assert is_suite_environment(env)
    assert env.reset() == f"WebShop [SEP] Instruction: [SEP] {env.task} [SEP] Search"
    assert env.clickable() == [] and not any(env.view().values())


def test_results_come_ten_a_page(env):
    page = play(env, "search[hair conditioner]")
    assert "Back to Search [SEP] Page 1 (Total results: 26) [SEP] Next > [SEP] C0" in page
    assert len(env.view()["PRODUCT"]) == 10 and not env.view()["PREVIOUS"]
    second = play(env, "click[next >]")
    assert "Page 2 (Total results: 26) [SEP] < Prev [SEP] Next >" in second
    assert len(play(env, "click[Next >]").split(" [SEP] C0")) + len(env.view()["PRODUCT"]) > 6
    assert len(env.view()["PRODUCT"]) == 6 and not env.view()["NEXT"]
    assert play(env, "click[< prev]") == second


def test_a_product_is_shown_chosen_read_and_bought(env):
    page = play(env, "search[tea tree]", "click[b000000001]")
    assert page.endswith(
        "Back to Search [SEP] < Prev [SEP] size [SEP] 8 fl oz [SEP] 16 fl oz (pack of 2) [SEP] scent [SEP] mint | sage "
        "[SEP] rose [SEP] Tea Tree Shampoo for Dry Hair, Sulfate Free [SEP] Price: $12.99 [SEP] Rating: N.A. [SEP] "
        "Description [SEP] Features [SEP] Reviews [SEP] Buy Now"
    )
    assert play(env, "click[description]").endswith("< Prev [SEP] Washes gently. With essential oils.")
    assert play(env, "click[< prev]", "click[features]").endswith("Cruelty free [SEP] Made in Oregon")
    assert play(env, "click[< prev]") == page
    play(env, "click[8 Fl Oz]", "click[rose]", "click[mint | sage]")
    said, score, done = env.step("click[Buy Now]")
    assert (score, done) == (1.0, True) and said.endswith("[SEP] 1.0")
    assert env.outcome() == {"success": 1, "score": 1, "type": 1, "attributes": 1, "options": 1, "price": 1}
    assert not any(env.view().values()) and env.clickable() == []
    with pytest.raises(GameError, match="over"):
        env.step("click[buy now]")


def test_going_back_forgets_the_options(env):
    play(env, "search[tea tree]", "click[b000000001]", "click[8 fl oz]", "click[mint | sage]", "click[< prev]")
    play(env, "click[b000000001]", "click[buy now]")
    assert env.outcome()["score"] == pytest.approx(3 / 5) and not env.outcome()["success"]


@pytest.mark.parametrize("action", [
    "", "search", "search[]", "search[ ]", "search[a", "click[buy now]", "click[search]", "buy now", "think[a]", "[a]",
    "click[b000000001]", "x" * 100_000, "search[" + "[" * 1000, "\x00", "sear\ud800ch[a]",
])  # fmt: skip
def test_what_is_not_on_the_page_changes_nothing(env, action):
    first = env.reset()
    assert env.step(action) == (first, 0.0, False)
    assert not env.had_effect


def test_a_search_waits_for_the_search_page(env):
    page = play(env, "search[shoes]")
    assert env.step("search[rose shampoo]")[0] == page and not env.had_effect
    assert play(env, "click[back to search]") == env.reset()


@pytest.mark.parametrize("query", ["?!", '"', "AND", "NEAR(a b)", "zzz", "shampoo* OR text:", "'" * 50, "é ß 洗发水"])
def test_any_words_can_be_searched(env, query):
    page = play(env, f"search[{query}]")
    assert "Page 1 (Total results: " in page
    assert env.clickable()[-1] == "back to search"


def test_an_option_named_like_a_button_or_with_brackets(env):
    play(env, "search[rose shampoo]", "click[b00000000a]")
    assert env.view()["OPTION"] == ["one [size]"]
    play(env, "click[one [size]]", "click[features]")
    assert env.view()["OPTION"] == {}


def test_knowledge_and_shop_agree_at_every_step(env):
    knowledge, rng = ActionKnowledge.from_lark("webshop"), random.Random(4)
    bought = 0
    for _ in range(40):
        env.reset()
        place = knowledge.bind_view(env.view())
        for _ in range(15):
            clicks = [f"click[{button}]" for button in env.clickable()]
            if clicks:
                texts = {text.decode() for text in place.next_action().automaton.start.texts(1000)}
                assert texts == set(clicks)
            action = rng.choice(clicks) if clicks else f"search[{rng.choice(['hair', 'rose', 'shoes'])}]"
            place = place.after(action)
            _, _, done = env.step(action)
            assert env.had_effect
            if done:
                bought += 1
                assert place.may_end
                break
            place = place.bind_view(env.view())
    assert bought > 3


def test_an_agent_searches_and_then_clicks_what_is_shown(env):
    plan = generate_plan(env.task, "webshop", environment=env, strategy="act", model=tiny(context=4096), max_steps=3)
    assert plan.steps[0].action.startswith("search[")
    assert len(plan.steps) == 3 and all(step.had_effect for step in plan.steps)

"""The trace page in a real browser. The fixture `tab` fails on any error in the console and any request elsewhere."""

from __future__ import annotations

import re

import pytest

from constrained import ActionKnowledge, generate_plan
from constrained.pages.trace_page import run_data, trace_page
from tests.browser import watched
from tests.pages.traced import rewritten

expect = pytest.importorskip(
    "playwright.sync_api", reason="needs playwright: pip install -c constraints.txt .[test]"
).expect

HOSTILE = "</script><script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">"


@pytest.fixture
def open_run(tab, tmp_path):
    """Open the page of a run's file; returns the tab."""

    def opened(run, fragment="", page=tab):
        file = tmp_path / "trace.html"
        file.write_text(trace_page(run), encoding="utf-8")
        page.goto(f"{file.as_uri()}{fragment}")
        return page

    return opened


def step(tab) -> str:
    return tab.locator("#step-said").inner_text()


def current(tab):
    return tab.locator(".step[aria-current]")


def test_a_game_is_stepped_through_by_keys_and_by_mouse(open_run, traced):
    tab = open_run(traced)
    assert re.fullmatch(r"Step 1 of \d+", step(tab))
    tab.keyboard.press("j")
    tab.keyboard.press("ArrowRight")
    assert step(tab).startswith("Step 3 of ")
    tab.keyboard.press("k")
    assert step(tab).startswith("Step 2 of ") and current(tab).count() == 1
    tab.locator(".step .row").nth(4).click()
    assert step(tab).startswith("Step 5 of ")
    tab.get_by_role("button", name="Previous step").click()
    assert step(tab).startswith("Step 4 of ")
    first = tab.locator("#task-name").inner_text()
    tab.keyboard.press("]")
    assert step(tab).startswith("Step 1 of ") and tab.locator("#task-name").inner_text() != first
    tab.keyboard.press("[")
    assert tab.locator("#task-name").inner_text() == first


def marked(tab, which) -> list[str]:
    return [text.get_attribute("data-action") for text in tab.locator(f".graph {which}").all()]


def test_the_graph_shows_where_the_game_stands_and_what_was_open(open_run, traced):
    tab = open_run(traced)
    assert tab.locator(".graph rect.here").get_attribute("data-place") == "start"
    assert marked(tab, "text.took") == ["goto"]
    tab.keyboard.press("j")
    assert tab.locator(".graph rect.here").get_attribute("data-place") == "at"
    assert sorted(marked(tab, "text.open")) == sorted(tab.locator("#steps .names li").all_inner_texts()) != []
    assert tab.locator("#graph-said").inner_text().startswith("After goto, open: ")


@pytest.fixture(scope="module")
def open_loop(tmp_path_factory):
    """The file of a plan that was not executed, of knowledge whose actions follow each other directly."""
    run = tmp_path_factory.mktemp("plan") / "plan.jsonl"
    generate_plan("Who was Milhouse named after?", "hotpotqa", max_steps=2, trace=run)
    return run


def test_a_graph_of_boxes_marks_boxes_and_arrows(open_run, open_loop):
    tab = open_run(open_loop)
    assert marked(tab, "rect.here") == ["start"] and marked(tab, "text.here") == ["start"]
    assert tab.locator(".graph path.took").count() == 1
    [step] = run_data(open_loop)["tasks"][0]["steps"][:1]
    assert sorted(marked(tab, "text.open")) == sorted(step["open"]) and marked(tab, "text.took") == [step["took"]]
    assert "planned" in tab.locator("#task-about").inner_text()


def test_a_graph_as_a_table_marks_its_dots(open_run, open_loop, tmp_path):
    def table(lines):
        lines[0]["run"]["trace"]["svg"] = ActionKnowledge.from_lark("hotpotqa").to_svg(matrix=True)
        return lines

    tab = open_run(rewritten(open_loop, tmp_path / "table.jsonl", table))
    [step] = run_data(open_loop)["tasks"][0]["steps"][:1]
    dots = [
        (dot.get_attribute("data-from"), dot.get_attribute("data-to"))
        for dot in tab.locator(".graph circle.open").all()
    ]
    assert sorted(dots) == sorted(("start", name) for name in step["open"])
    assert tab.locator(".graph circle.took").get_attribute("data-to") == step["took"]
    assert marked(tab, "text.row.here") == ["start"]


def test_a_token_tells_its_probability_what_was_removed_and_the_rule(open_run, traced):
    tab = open_run(traced)
    tab.keyboard.press("n")
    inspector = tab.locator("#inspector")
    assert tab.locator(".token.chosen.lost").count() == 1
    for word in ("of what was allowed", "wanted: not allowed", "Why not"):
        assert word in inspector.inner_text()
    shares = [float(figure.strip(" <>%\u00a0")) for figure in inspector.locator(".figure").all_inner_texts()]
    assert 98 <= sum(shares) <= 102
    chosen = tab.locator(".token.chosen").inner_text()
    tab.keyboard.press("ArrowLeft")
    assert tab.locator(".token.chosen").inner_text() != chosen
    tab.keyboard.press("Escape")
    assert tab.locator(".token.chosen").count() == 0 and "Choose a token" in inspector.inner_text()


def test_forced_tokens_stand_together_and_say_so(open_run, traced):
    tab = open_run(traced)
    forced = tab.locator(".token.forced").first
    assert re.search(r"forced$", forced.get_attribute("aria-label"))
    forced.click()
    text = tab.locator("#inspector").inner_text()
    assert "The model was not asked for" in text and "Why not" not in text


def test_filters_leave_the_places_at_odds_that_they_name(open_run, traced):
    tab = open_run(traced)
    tab.get_by_role("tab", name="Not allowed").click()
    items = tab.locator("#odds .item")
    few = items.count()
    masses = [float(text.split("\u00a0%")[0].strip("> ")) for text in items.locator("strong").all_inner_texts()]
    assert masses == sorted(masses, reverse=True) and min(masses) >= 5
    tab.locator("#least").fill("0")
    assert items.count() > few
    tab.locator("#kind").select_option("action")
    tab.locator("#this-task").check()
    for item in items.all()[:5]:
        item.click()
        assert " · action · " in tab.locator("#inspector").inner_text()
    tab.locator("#least").fill("100")
    assert tab.locator("#odds-count").inner_text() == "None with these filters."


def test_tasks_are_searched_sorted_and_filtered(open_run, unmasked):
    tab = open_run(unmasked)
    names = tab.locator("#tasks .name")
    assert names.count() == 4
    tab.locator("#order").select_option("wrong")
    wrong = [
        int(found[1]) if (found := re.search(r"(\d+) wrong", text)) else 0
        for text in tab.locator("#tasks .item").all_inner_texts()
    ]
    assert wrong == sorted(wrong, reverse=True) and wrong[0] > 0
    tab.locator("#only-wrong").check()
    assert names.count() == sum(count > 0 for count in wrong)
    tab.keyboard.press("Escape")
    tab.keyboard.press("/")
    tab.keyboard.type("no such task")
    assert names.count() == 0 and tab.locator("#tasks-count").inner_text() == "0 of 4 tasks"


def test_without_masks_what_the_knowledge_says_of_an_action_is_shown(open_run, unmasked):
    tab = open_run(unmasked)
    assert "Tokens were not recorded" in tab.locator("#notes").inner_text()
    tab.keyboard.press("n")
    assert "invalid" in current(tab).locator(".verdict").last.inner_text()
    assert tab.locator(".reason").inner_text().startswith("The knowledge: ")
    assert "--trace" in tab.locator("#inspector").inner_text()


def test_a_place_has_an_address(open_run, traced):
    tab = open_run(traced)
    tab.keyboard.press("j")
    tab.keyboard.press("n")
    tab.wait_for_url(re.compile(r"#[^/]+/\d+/\d+$"))  # the page draws before it changes its address
    place, token = tab.url.split("#")[1], tab.locator(".token.chosen").inner_text()
    assert re.fullmatch(r"[^/]+/\d+/\d+", place)
    tab.goto("about:blank")
    again = open_run(traced, f"#{place}")
    assert again.locator(".token.chosen").inner_text() == token
    again.evaluate("location.hash = '#nothing/999/999'")
    expect(again.locator(".chosen")).to_have_count(0)


def test_a_game_plays_by_itself(tab, open_run, traced):
    tab.clock.install()  # the page's clock goes only where it is told to
    open_run(traced)
    tab.keyboard.press(" ")
    tab.clock.run_for(1500)  # one step a second and a half, nearly
    assert step(tab).startswith("Step 2 of ")
    tab.get_by_role("button", name="Pause").click()
    assert tab.locator("#play").get_attribute("aria-pressed") == "false"


def test_help_lists_the_keys(open_run, traced):
    tab = open_run(traced)
    tab.keyboard.press("?")
    assert (
        tab.get_by_role("dialog").is_visible()
        and "next token that the model wanted" in tab.locator("#keys").inner_text()
    )
    tab.keyboard.press("j")
    assert step(tab).startswith("Step 1 ")  # keys rest while the help is open
    tab.keyboard.press("Escape")
    assert tab.get_by_role("dialog").count() == 0


@pytest.mark.parametrize("width", [360, 390, 768, 1280])
def test_nothing_is_wider_than_the_screen(browser, open_run, traced, width):
    with watched(browser, viewport={"width": width, "height": 800}) as tab:
        open_run(traced, page=tab)
        for key in ("", "n"):
            if key:
                tab.keyboard.press(key)
            assert tab.evaluate("document.documentElement.scrollWidth") <= width
        if width < 720:  # what is told of a token doesn't cover it
            chosen = tab.locator(".token.chosen").bounding_box()
            assert 0 <= chosen["y"] < chosen["y"] + chosen["height"] <= tab.locator("#inspector").bounding_box()["y"]
            assert not tab.locator("#search").is_visible()
            tab.get_by_role("button", name="Tasks and filters").click()
            assert tab.locator("#search").is_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_theme_is_switched(browser, open_run, traced, theme):
    with watched(browser, color_scheme=theme) as tab:
        open_run(traced, page=tab)
        paper = "getComputedStyle(document.body).backgroundColor"
        before = tab.evaluate(paper)
        tab.locator("#theme").click()
        assert tab.evaluate(paper) != before


def hostile(lines):
    for line in lines:
        if "step" in line:
            line["step"] |= {"observation": HOSTILE, "thought": HOSTILE}
            line["answers"][0]["trace"]["prompt"] += HOSTILE
            for token in line["answers"][0]["trace"]["tokens"]:
                token["text"] = HOSTILE
            line["answers"][0]["trace"]["open"] = [HOSTILE]
    lines[0]["run"]["suite"] = HOSTILE
    picture = lines[0]["run"]["trace"]
    picture["knowledge"] = HOSTILE
    picture["svg"] = picture["svg"].replace(
        "<style>", "<script>document.title = 'taken'</script><a href='x'><style>", 1
    )
    picture["svg"] = (
        picture["svg"].replace("</style>", "</style></a>").replace("<rect ", "<rect onclick='x()' style='fill: red' ")
    )
    return lines


def test_what_a_run_holds_stays_text(open_run, traced, tmp_path):
    tab = open_run(rewritten(traced, tmp_path / "hostile.jsonl", hostile))
    assert tab.locator(".observation").inner_text() == HOSTILE
    assert tab.locator(".names li").inner_text() == HOSTILE
    assert tab.title() == "hostile.jsonl · trace"
    assert (
        tab.locator("main img, .graph script, .graph style, .graph a, .graph [onclick], .graph [style*=fill]").count()
        == 0
    )
    assert tab.locator(".graph rect").count() > 0
    tab.locator(".token").first.click()
    tab.locator("main summary").last.click()
    expect(tab.locator("main .prompt")).to_contain_text(HOSTILE)


def test_a_run_that_has_just_begun_and_one_under_way(open_run, traced, tmp_path):
    tab = open_run(rewritten(traced, tmp_path / "begun.jsonl", lambda lines: lines[:1]))
    assert tab.locator("#task-name").inner_text() == "No task is recorded yet"
    for key in "jknp[] /":
        tab.keyboard.press(key)
    tab = open_run(rewritten(traced, tmp_path / "going.jsonl", lambda lines: lines[:4]))
    assert "under way" in tab.locator("#task-about").inner_text()


@pytest.mark.parametrize("change", ["no picture", "another picture"])
def test_a_run_whose_knowledge_cannot_be_drawn(open_run, traced, tmp_path, change):
    def without(lines):
        lines[0]["run"]["knowledge"] = {"name": "mine", "digest": ""}
        lines[0]["run"]["trace"]["svg"] = (
            "" if change == "no picture" else "<!DOCTYPE svg [<!ENTITY a 'a'>]><svg>&a;</svg>"
        )
        return lines

    tab = open_run(rewritten(traced, tmp_path / "plain.jsonl", without))
    assert tab.locator(".graph svg").count() == 0
    assert tab.locator("#graph-said").inner_text().startswith("At the start, open: ")

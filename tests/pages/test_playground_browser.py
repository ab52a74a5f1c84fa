"""The playground as people use it, in a real browser. Everything is waited for by what is to be seen, never by time."""

import re

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from tests.browser import watched
from tests.playground.serving import serving

expect = pytest.importorskip("playwright.sync_api", reason="needs playwright").expect

ROOMS = """\
%declare _STEP
%declare PLACE

// Look around.
start: goto{PLACE}

// goto: go to PLACE.
goto{p}: "go to " p _STEP (goto{PLACE} | rest)

// rest: rest, which ends the plan.
rest: "rest"
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A playground without a file, with a tokenizer of single bytes beside the embedded one."""
    folder = tmp_path_factory.mktemp("tokenizers") / "single"
    folder.mkdir()
    single = Tokenizer(models.BPE({sign: i for i, sign in enumerate(pre_tokenizers.ByteLevel.alphabet())}, []))
    single.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    single.decoder = decoders.ByteLevel()
    single.save(str(folder / "tokenizer.json"))
    with serving("--port", "0", "--tokenizer", str(folder.parent)) as (found, _):
        yield found


@pytest.fixture
def rooms(tmp_path):
    """A file, and a playground with it."""
    file = tmp_path / "rooms.lark"
    file.write_text(ROOMS)
    with serving("--port", "0", str(file)) as (found, _):
        yield found, file


def opened(tab, address, text=None, view=None):
    """The playground with `text` in its editor, checked."""
    tab.goto(address)
    expect(tab.locator("#picture svg")).to_be_visible()
    if text is not None:
        write(tab, text)
    if view:
        tab.get_by_role("tab", name=view).click()
    return tab


def write(tab, text):
    """Put `text` in the editor's place."""
    editor = tab.get_by_role("textbox", name="Grammar, in Lark's syntax")
    editor.focus()
    tab.keyboard.press("Control+A")
    tab.keyboard.insert_text(text)


def test_errors_show_in_place_as_one_types_and_go_when_mended(tab, address):
    opened(tab, address, ROOMS)
    expect(tab.locator("#summary")).to_have_text("No findings.")
    expect(tab.locator("#picture svg")).to_contain_text("rest")
    write(tab, ROOMS.replace("| rest)", "| rst)"))
    expect(tab.locator(".cm-lintRange-error")).to_have_text("rst")
    finding = tab.locator("#findings li").filter(has_text="undefined-rule")
    expect(finding).to_contain_text("8:42")
    expect(tab.locator("#graph-state")).to_have_text("This is from before the errors.")
    expect(tab.locator("#picture")).to_have_class(re.compile("stale"))
    finding.get_by_role("button").click()
    expect(tab.get_by_role("textbox", name="Grammar, in Lark's syntax")).to_be_focused()
    expect(tab.locator(".cm-activeLine")).to_contain_text("goto{p}")
    write(tab, ROOMS.replace("rest", "pause"))
    expect(tab.locator(".cm-lintRange-error")).to_have_count(0)
    expect(tab.locator("#picture svg")).to_contain_text("pause")
    expect(tab.locator("#picture")).not_to_have_class(re.compile("stale"))


def test_the_text_is_what_a_model_reads(tab, address):
    opened(tab, address, ROOMS, "Text")
    expect(tab.locator("#prose")).to_contain_text("Look around.")
    expect(tab.locator("#prose")).to_contain_text("goto  -> goto, rest")


def test_what_may_come_next_in_bytes_and_tokens(tab, address):
    opened(tab, address, ROOMS, "What may come next")
    tab.get_by_text("Values of the slots").click()
    tab.get_by_label("PLACE").fill("desk 1\ndesk 10")
    tab.get_by_label("Path so far").fill("go to desk 1")
    explanation = tab.locator("#explanation")
    expect(explanation).to_contain_text("goto, rest")
    expect(explanation).to_contain_text("Next byte: 1 of 256")
    expect(explanation).to_contain_text("Next token: 2 of 801")
    expect(explanation.get_by_text("end of text")).to_be_visible()
    tab.get_by_label("Tokens of").select_option(label="single")
    expect(explanation).to_contain_text("Next token: 2 of 257")
    explanation.get_by_role("button", name="0", exact=True).last.click()
    expect(tab.get_by_label("Path so far")).to_have_value("go to desk 10")
    tab.get_by_label("Path so far").fill("go to desk 10->re")
    expect(explanation.locator(".forced")).to_have_text("st")
    explanation.get_by_role("button", name="rule rest, line 11").click()
    expect(tab.locator(".cm-activeLine")).to_have_text('rest: "rest"')


def test_a_path_that_does_not_fit_says_why(tab, address):
    opened(tab, address, ROOMS, "What may come next")
    tab.get_by_label("Path so far").fill("rest")
    expect(tab.locator("#explanation")).to_contain_text("misordered")
    expect(tab.locator("#explanation")).to_contain_text("may follow: goto")


def test_values_that_are_no_json_are_told_of(tab, address):
    opened(tab, address, ROOMS, "What may come next")
    tab.get_by_text("Values of the slots").click()
    tab.get_by_label("PLACE").fill('["desk 1"')
    expect(tab.locator("#slot-PLACE-problem")).to_contain_text("is not valid JSON")


def test_a_run_to_its_end(tab, address):
    opened(tab, address, view="Run")
    tab.get_by_role("button", name="Run", exact=True).click()
    expect(tab.locator("#run-state")).to_contain_text("Solved in")
    expect(tab.locator(".step").last).to_contain_text("put egg")
    expect(tab.locator("#figures")).to_contain_text("0 invalid")
    with tab.expect_popup() as opening:
        tab.get_by_role("link", name="Open as a trace page").click()
    expect(opening.value).to_have_title(re.compile("trace"))
    expect(opening.value.locator("body")).to_contain_text("put egg")


def test_a_run_without_masks_shows_what_is_wrong(tab, address):
    opened(tab, address, ROOMS, "Run")  # of which the embedded model knows nothing
    expect(tab.locator("#picture svg")).to_contain_text("rest")
    tab.get_by_label("Masks").uncheck()
    tab.get_by_label("Task").fill("rest")
    tab.get_by_label("Steps").fill("3")
    tab.get_by_role("button", name="Run", exact=True).click()
    expect(tab.locator("#run-state")).to_contain_text("Planned, nothing executed in 3 steps")
    expect(tab.locator("#figures")).to_contain_text("3 invalid")
    expect(tab.locator("#figures")).to_contain_text("no masks")
    expect(tab.locator(".step.invalid .reason")).to_have_count(3)


def test_a_run_is_stopped(tab, address):
    rules = "".join(f'a{n}: "act {n} " /[a-z]{{30}}/ _STEP a{n + 1}\n' for n in range(100))
    opened(tab, address, f'%declare _STEP\nstart: a0\n{rules}a100: "end"\n', "Run")
    expect(tab.locator("#summary")).to_contain_text("102 notes")
    tab.get_by_label("Task").fill("go on")
    tab.get_by_label("Steps").fill("200")
    tab.get_by_label("Strategy").select_option("act")
    tab.get_by_role("button", name="Run", exact=True).click()
    expect(tab.locator(".step").first).to_be_visible()
    tab.get_by_role("button", name="Stop").click()
    expect(tab.locator("#run-state")).to_have_text("Stopped.")
    tab.get_by_role("button", name="Run", exact=True).click()
    expect(tab.locator(".step").first).to_be_visible()
    tab.keyboard.press("Control+Enter")
    expect(tab.locator("#run-state")).to_have_text("Stopped.")


def test_a_file_is_saved_and_not_written_over_unseen(tab, rooms):
    address, file = rooms
    opened(tab, address)
    write(tab, ROOMS + "// mine\n")
    expect(tab.locator("#document-state")).to_have_text("not saved")
    tab.keyboard.press("Control+S")
    expect(tab.locator("#document-state")).to_have_text("saved")
    assert file.read_text() == ROOMS + "// mine\n"
    file.write_text(ROOMS + "// theirs\n")
    write(tab, ROOMS + "// mine again\n")
    expect(tab.locator("#notice")).to_contain_text("has changed on disk")
    tab.keyboard.press("Control+S")
    expect(tab.locator("#notice")).to_contain_text("has changed on disk")
    assert file.read_text() == ROOMS + "// theirs\n"
    tab.get_by_role("button", name="Keep my text").click()
    tab.keyboard.press("Control+S")
    expect(tab.locator("#document-state")).to_have_text("saved")
    assert file.read_text() == ROOMS + "// mine again\n"


def test_a_draft_survives_a_reload_and_there_is_a_way_back(tab, rooms):
    address, _ = rooms
    opened(tab, address)
    write(tab, ROOMS + "// a draft\n")
    expect(tab.locator("#document-state")).to_have_text("not saved")
    opened(tab, address)
    expect(tab.locator("#notice")).to_contain_text("This is your draft.")
    expect(tab.locator(".cm-content")).to_contain_text("// a draft")
    tab.get_by_role("button", name="Back to the original").click()
    expect(tab.locator("#document-state")).to_have_text("saved")
    expect(tab.locator(".cm-content")).not_to_contain_text("// a draft")


def test_the_syntax_and_our_conventions_are_coloured(tab, address):
    text = "%import relations (another)\n%declare _STEP PLACE\nstart: go{PLACE}\n"
    text += 'go{p}: "go to " another{PLACE, p} NUMBER _STEP start // on\nNUMBER: /[0-9]/\nat{r}: r\n'
    opened(tab, address, text)
    for kind, words in {
        "definition": ["start", "go", "NUMBER", "at"],
        "slot": ["PLACE", "PLACE", "PLACE"],
        "step": ["_STEP", "_STEP"],
        "parameter": ["p", "p", "r", "r"],
        "relation": ["another", "another"],
        "terminal": ["NUMBER"],
        "string": ['"go to "'],
        "regexp": ["/[0-9]/"],
        "comment": ["// on"],
        "keyword": ["%import", "%declare"],
    }.items():
        expect(tab.locator(f".tok-{kind}")).to_have_text(words)


def test_names_are_completed(tab, address):
    opened(tab, address, ROOMS + "\nfoo: go")
    tab.keyboard.type("t")
    expect(tab.locator(".cm-tooltip-autocomplete li")).to_have_text(["goto"])
    tab.locator(".cm-tooltip-autocomplete li").click()  # Enter is a line end for a moment after the list has opened
    expect(tab.locator(".cm-line").last).to_have_text("foo: goto")


def test_what_ships_opens_as_a_copy(tab, address):
    opened(tab, address)
    tab.get_by_label("Document").select_option("hotpotqa")
    expect(tab.locator("#picture svg")).to_contain_text("lookup")
    expect(tab.locator("#document-state")).to_have_text("a copy")
    expect(tab.get_by_role("button", name="Save")).to_be_hidden()


def test_what_is_typed_stays_text(tab, address):
    hostile = '</script><img src=x onerror="document.title=1">'
    opened(tab, address, ROOMS.replace("Look around.", hostile).replace("// rest:", f"// rest: {hostile}"), "Text")
    expect(tab.locator("#prose")).to_contain_text(hostile)
    tab.get_by_role("tab", name="What may come next").click()
    tab.get_by_label("Path so far").fill(hostile)
    expect(tab.locator("#explanation")).to_contain_text(hostile)
    assert tab.title() == "constrained - playground"


def test_the_keyboard_goes_everywhere(tab, address):
    opened(tab, address)
    for key, name in enumerate(["Graph", "Text", "What may come next", "Run"], 1):
        tab.keyboard.press(f"Alt+{key}")
        expect(tab.get_by_role("tab", name=name)).to_have_attribute("aria-selected", "true")
        expect(tab.get_by_role("tab", name=name)).to_be_focused()
    tab.keyboard.press("ArrowRight")
    expect(tab.get_by_role("tab", name="Graph")).to_be_focused()
    tab.keyboard.press("?")
    expect(tab.get_by_role("dialog", name="Keys")).to_be_visible()
    tab.keyboard.press("Escape")
    tab.keyboard.press("Alt+0")
    expect(tab.get_by_role("textbox", name="Grammar, in Lark's syntax")).to_be_focused()
    tab.keyboard.press("Tab")  # the editor keeps nobody in
    expect(tab.get_by_role("textbox", name="Grammar, in Lark's syntax")).not_to_be_focused()


@pytest.mark.parametrize("scheme, widths", [("light", (1280, 390, 360)), ("dark", (360, 390, 1280))])
def test_nothing_is_wider_than_the_screen(browser, address, scheme, widths):
    sizes = [{"width": width, "height": 800} for width in widths]
    with watched(browser, viewport=sizes[0], color_scheme=scheme) as tab:
        opened(tab, address, view="What may come next")
        tab.get_by_label("Path so far").fill("go to RECEPTACLE")
        expect(tab.locator("#explanation")).to_contain_text("Next token")
        for size in sizes:
            tab.set_viewport_size(size)
            for view in ("Graph", "Text", "What may come next", "Run"):
                tab.get_by_role("tab", name=view).click()
                assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), (size, view)


def test_the_theme_is_switched(tab, address):
    opened(tab, address)
    before = tab.locator("body").evaluate("(body) => getComputedStyle(body).backgroundColor")
    tab.get_by_role("button", name="Switch to dark colours").click()
    expect(tab.locator("body")).not_to_have_css("background-color", before)
    expect(tab.locator(".cm-editor")).not_to_have_css("background-color", before)

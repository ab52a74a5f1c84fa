"""The pictures of pages that the documents show, made anew: ``python -m tests.pages.screenshots [NAME ...]``.

One function a picture; each writes ``docs/NAME.png``. Needs Chromium and playwright, as the browser tests do.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from constrained import generate_plan
from constrained.pages.trace_page import trace_page
from tests.browser import chromium, watched
from tests.documents import blocks
from tests.playground.serving import serving

DOCS = Path(__file__).parents[2] / "docs"


def playground(browser, picture: Path) -> None:
    """The file of the page about the playground, a rule in it that nothing leads to, and what may come next."""
    text = next(block.text for block in blocks(DOCS / "playground.md") if block.file == "rooms.lark")
    with TemporaryDirectory() as folder:
        file = Path(folder, "rooms.lark")
        file.write_text(text + '\n// wait: wait a moment.\nwait: "wait" _STEP rest\n', encoding="utf-8")
        with (
            serving("--port", "0", str(file)) as (address, _),
            watched(browser, viewport={"width": 1280, "height": 800}) as tab,
        ):
            tab.goto(address)
            tab.get_by_role("tab", name="What may come next").click()
            tab.get_by_text("Values of the slots").click()
            tab.get_by_label("PLACE").fill("desk 1\ndesk 10")
            tab.get_by_label("THING").fill('{"desk 1": ["pen"], "desk 10": ["mug"]}')
            tab.get_by_text("Values of the slots").click()
            tab.get_by_label("Path so far").fill("go to desk 1->take pen from desk 1->bring pen to desk 1")
            tab.get_by_text("Next token: 2 of 801").wait_for()
            tab.locator(".cm-lintRange-warning").wait_for()
            tab.screenshot(path=picture)


def trace(browser, picture: Path, theme: str = "light") -> None:
    """A general model in a small world, at level `state`: what it wanted most while a condition didn't hold."""
    with TemporaryDirectory() as folder:
        run = Path(folder, "workshop.jsonl")
        world = DOCS.parent / "examples" / "worlds" / "workshop.lark"
        generate_plan("repair the red bike", world, strategy="act", model="smollm2", max_steps=8, trace=run)
        file = Path(folder, "trace.html")
        file.write_text(trace_page(run), encoding="utf-8")
        with watched(browser, viewport={"width": 1340, "height": 920}, color_scheme=theme) as tab:
            tab.goto(file.as_uri())
            tab.get_by_role("tab", name="Not allowed").click()
            tab.locator("#why").select_option("not now")
            tab.locator("#odds .item").first.click()
            tab.locator("#inspector h3").first.wait_for()
            tab.screenshot(path=picture)


def trace_dark(browser, picture: Path) -> None:
    """The same in dark colours."""
    trace(browser, picture, "dark")


PICTURES = (playground, trace, trace_dark)


def main(names: list[str]) -> None:
    """Make these pictures; all of them where none is named."""
    with chromium() as browser:
        for make in PICTURES:
            if not names or make.__name__ in names:
                make(browser, DOCS / f"{make.__name__}.png")


if __name__ == "__main__":
    main(sys.argv[1:])

"""The documentation as a site: it is built without a warning, leads nowhere that isn't there, and needs no network."""

from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import constrained.decoding
import constrained.models
from tests.browser import watched

DOCS = Path(__file__).parents[2] / "docs"
LOADING = {
    "img": "src",
    "script": "src",
    "link": "href",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "use": "href",
}

# Of Sphinx and its extensions among each other.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{kind}") for kind in ("DeprecationWarning", "PendingDeprecationWarning")
]


class References(HTMLParser):
    """What a page leads to, what it loads, and the places in it that can be led to."""

    def __init__(self, page: Path):
        super().__init__()
        self.leads, self.loads, self.places = [], [], set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.places.update(filter(None, (given.get("id"), given.get("name"))))
        if tag == "a" and given.get("href"):
            self.leads.append(given["href"])
        if LOADING.get(tag) in given and given.get("rel") not in ("search", "index", "next", "prev", "canonical"):
            self.loads.append(given[LOADING[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    build = pytest.importorskip("sphinx.cmd.build", reason="needs sphinx: pip install -c constraints.txt .[docs]")
    pytest.importorskip("myst_parser", reason="needs myst-parser: pip install -c constraints.txt .[docs]")
    pytest.importorskip("furo", reason="needs furo: pip install -c constraints.txt .[docs]")
    folder = tmp_path_factory.mktemp("site")
    assert build.build_main(["-q", "-W", "--keep-going", str(DOCS), str(folder)]) == 0, "a warning, printed above"
    return folder


def test_every_page_is_in_the_contents(site):
    contents = References(site / "index.html").leads
    for page in DOCS.glob("*.md"):
        assert page.stem == "index" or f"{page.stem}.html" in contents, page.name


def test_every_link_within_the_site_leads_somewhere(site):
    pages = {page: References(page) for page in site.rglob("*.html")}
    lost = defaultdict(list)
    for page, references in pages.items():
        for reference in references.leads + references.loads:
            parts = urlsplit(reference)
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if parts.scheme or parts.netloc:
                continue
            known = pages.get(target)
            if (
                not target.exists()
                or parts.fragment
                and known
                and unquote(parts.fragment) not in known.places | {"top"}
            ):
                lost[page.name].append(reference)
    assert len(pages) > 15 and not lost


def test_no_page_loads_anything_from_elsewhere(site):
    for page in site.rglob("*.html"):
        for reference in References(page).loads:
            parts = urlsplit(reference)
            assert parts.scheme in ("", "data") and not parts.netloc, (page.name, reference)
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert "url(http" not in text and "url(//" not in text and "@import" not in text, sheet.name


def test_the_page_of_commands_has_every_command_and_option(site):
    text = (site / "commands.html").read_text(encoding="utf-8")
    for said in (
        "constrained train self-learning",
        "constrained bench agents",
        "--test-masks",
        "the task, as a sentence",
    ):
        assert said in text, said


def test_every_name_that_is_exported_has_its_place_in_the_api(site):
    places = set().union(*(References(page).places for page in (site / "api").glob("*.html")))
    for module in (constrained, constrained.decoding, constrained.models):
        for name in module.__all__:
            shown = {place for place in places if place.startswith("constrained") and place.endswith(f".{name}")}
            assert shown, f"{module.__name__}.{name}"


@pytest.mark.parametrize("scheme, width", [("light", 1280), ("dark", 390)])
def test_pages_open_in_a_browser_and_fit_its_width(site, browser, scheme, width):
    with watched(browser, color_scheme=scheme, viewport={"width": width, "height": 800}) as page:
        for name in ("index", "commands", "api/core", "training"):
            page.goto((site / f"{name}.html").as_uri())
            assert page.locator("h1").is_visible()
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name


def test_the_search_finds_a_page(site, browser):
    with watched(browser) as page:
        page.goto((site / "search.html").as_uri() + "?q=pruned")
        page.locator("ul.search li a").nth(1).wait_for()  # they come one after the other


def test_a_block_is_copied_as_it_would_be_typed(site, browser):
    with watched(browser, permissions=["clipboard-read", "clipboard-write"]) as page:
        page.clock.install()  # "Copied" stays until this clock goes on
        page.goto((site / "environment_tutorial.html").as_uri())
        block = page.locator(".highlight-console").filter(has_text="--temperature 2")
        block.get_by_role("button", name="Copy").click()
        block.get_by_role("button", name="Copied").wait_for()
        typed = page.evaluate("navigator.clipboard.readText()")
    assert typed.startswith("constrained train self-learning --train library.py:games:0-40 ")
    assert typed.endswith("--batch 8 --dropout 0 --output learned\n") and typed.count("\n") == 3

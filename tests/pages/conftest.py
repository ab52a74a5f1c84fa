"""Fixtures for tests in a real browser."""

import pytest

from tests.browser import chromium, watched
from tests.pages.traced import play


@pytest.fixture(scope="session")
def traced(tmp_path_factory):
    """The file of a traced run, masks on."""
    return play(tmp_path_factory.mktemp("traced"), "--trace")


@pytest.fixture(scope="session")
def unmasked(tmp_path_factory):
    """The file of a run without masks, nor traces, whose model writes invalid actions."""
    return play(tmp_path_factory.mktemp("unmasked"), "--max-steps", "12", level="off", games=4)


@pytest.fixture(scope="module")  # not longer: Playwright holds the thread's event loop while it runs
def browser():
    with chromium() as started:
        yield started


@pytest.fixture
def tab(browser):
    """A page 1280 px wide that prints no error and asks no other machine for anything."""
    with watched(browser, viewport={"width": 1280, "height": 800}) as page:
        yield page

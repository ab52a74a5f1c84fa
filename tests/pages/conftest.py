"""Fixtures for tests in a real browser."""

import pytest

from tests.browser import chromium, watched


@pytest.fixture(scope="module")  # not longer: Playwright holds the thread's event loop while it runs
def browser():
    with chromium() as started:
        yield started


@pytest.fixture
def tab(browser):
    """A page 1280 px wide that prints no error and asks no other machine for anything."""
    with watched(browser, viewport={"width": 1280, "height": 800}) as page:
        yield page

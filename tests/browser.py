"""A real browser for tests: headless Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
"""As Debian, Ubuntu and Google call it. CHROMIUM in the environment comes before them."""

PATIENCE = 120_000
"""Milliseconds that something to be seen is waited for: machines that test are busy with other things."""

# A browser started by a test asks nobody for updates; as root, which test machines often are, it has no sandbox.
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


@contextmanager
def chromium() -> Iterator:
    """Playwright's `Browser`; skips the calling test, and says why, where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install -c constraints.txt .[test]")
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if not found:
        pytest.skip("needs Chromium (apt-get install chromium), or its path in CHROMIUM")
    api.expect.set_options(timeout=PATIENCE)
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def watched(browser, **options) -> Iterator:
    """A page of its own; AssertionError at last if it printed an error or asked another machine for anything.

    Parameters
    ----------
    options
        Of Playwright's `Browser.new_context`: ``color_scheme="dark"``, ``viewport={"width": 390, "height": 844}``.
    """
    troubles: list[str] = []
    context = browser.new_context(**options)
    try:
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("console", lambda said: troubles.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda asked: None if _local(asked.url) else troubles.append(f"asked for {asked.url}"))
        yield page
        assert not troubles, troubles
    finally:
        context.close()


def _local(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("file", "data", "blob", "about") or parts.hostname in ("127.0.0.1", "localhost")

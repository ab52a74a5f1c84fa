"""The tests' own eyes: a page that misbehaves is seen to."""

import pytest

from tests.browser import watched


@pytest.mark.parametrize(
    "script",
    [
        "console.error('a problem')",
        "setTimeout(() => { throw new Error('thrown') })",
        "new Image().src = 'http://192.0.2.1/pixel.png'",  # a network that is nobody's (RFC 5737)
    ],
)
def test_trouble_is_seen(browser, script):
    with pytest.raises(AssertionError), watched(browser) as tab:
        tab.goto("data:text/html,<title>Page</title>")
        tab.evaluate(script)
        tab.evaluate("new Promise((done) => setTimeout(done))")

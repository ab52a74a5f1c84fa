"""The frame of every page: what is in it stays data, and nothing is loaded from elsewhere."""

import json

import pytest

from constrained.pages.html_page import embedded_json, page

HOSTILE = [
    "</script><script>document.title = 'taken'</script>",
    "<!--",
    "<img src=x onerror=\"document.title = 'taken'\">",
    "\u2028",
    "é",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_data_stay_data(text):
    written = embedded_json({"text": text})
    assert "<" not in written
    assert json.loads(written) == {"text": text}


def test_a_browser_reads_the_data_and_runs_nothing_in_them(tab, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(page("<Title>", '<h1>Seen</h1><button id="theme"></button>', data=HOSTILE), encoding="utf-8")
    tab.goto(file.as_uri())
    assert tab.title() == "<Title>"
    assert tab.evaluate("JSON.parse(document.getElementById('data').textContent)") == HOSTILE


@pytest.mark.parametrize("system, other", [("light", "dark"), ("dark", "light")])
def test_the_theme_follows_the_system_until_it_is_switched(tab, tmp_path, system, other):
    file = tmp_path / "page.html"
    file.write_text(page("Page", '<button id="theme"></button>'), encoding="utf-8")
    tab.emulate_media(color_scheme=system)
    tab.goto(file.as_uri())

    def scheme():
        paper = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        return {"rgb(255, 255, 255)": "light", "rgb(20, 23, 28)": "dark"}[paper]

    assert scheme() == system
    tab.get_by_role("button", name=f"Switch to {other} colours").click()
    assert scheme() == other
    assert tab.get_by_role("button", name=f"Switch to {system} colours").is_visible()


@pytest.mark.parametrize(
    "attempt, refused",
    [
        ("fetch('http://127.0.0.1:9/').catch(() => {})", "connect-src"),
        ("document.body.innerHTML = '<img src=\"http://127.0.0.1:9/a.png\">'", "img-src"),
        (
            "document.body.innerHTML = '<p onclick=\"alert(1)\">'; document.querySelector('p').click()",
            "script-src-attr",
        ),
        ("document.body.append(Object.assign(document.createElement('script'), {text: '1'}))", "script-src-elem"),
    ],
)
def test_the_policy_refuses(browser, tmp_path, attempt, refused):
    file = tmp_path / "page.html"
    file.write_text(page("Page", ""), encoding="utf-8")
    tab = browser.new_page()
    tab.goto(file.as_uri())
    attempts = (
        "document.addEventListener('securitypolicyviolation', (event) => done(event.effectiveDirective)); " + attempt
    )
    assert tab.evaluate(f"new Promise((done) => {{ {attempts} }})") == refused
    tab.close()

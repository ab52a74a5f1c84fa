"""Nobody but the playground's own page, on this machine, is answered."""

import pytest

from constrained.pages import local_server


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "attacker.example:8750"},  # a name that points to this machine (DNS rebinding)
        {"Host": "127.0.0.1:8751"},
        {"Host": "127.0.0.1"},
        {"Origin": "http://attacker.example"},
        {"Origin": "http://127.0.0.1:8000"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {local_server.TOKEN: "guessed"},
        {local_server.TOKEN: ""},
        {local_server.TOKEN: "é".encode()},
    ],
)
def test_foreign_requests_are_refused(asking, headers):
    answer = asking.post("/api/check", headers, text="start:", document=None, values={})
    assert answer.status_code == 403 and "refused" in answer.json()["error"]["message"]


@pytest.mark.parametrize("headers", [{"Host": "attacker.example"}, {"Origin": "http://attacker.example"}])
def test_the_page_with_its_token_is_not_given_to_foreign_requests(asking, headers):
    answer = asking.client.get("/", headers={**asking.headers, **headers})
    assert answer.status_code == 403 and asking.playground.token not in answer.text


def test_the_page_is_given_to_this_machine(asking):
    for host in ("127.0.0.1", "localhost"):
        answer = asking.client.get("/", headers={"Host": f"{host}:{asking.playground.port}"})
        assert answer.status_code == 200 and asking.playground.token in answer.text
        assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'none'"
        assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", ["playground/main.js", "vendor/codemirror.js", "vendor/codemirror.LICENSE", "dom.js"])
def test_scripts_are_served(asking, path):
    assert asking.client.get(f"/static/{path}", headers=asking.headers).status_code == 200


@pytest.mark.parametrize(
    "path", ["playground/../page.py", "playground/%2e%2e%2f%2e%2e%2fpage.py", "pages/page.py", "playground/body.html"]
)
def test_nothing_else_is_served(asking, path):
    assert asking.client.get(f"/static/{path}", headers=asking.headers).status_code == 404


def test_before_a_run_there_is_no_trace(with_file):
    page, _ = with_file("start:")
    assert page.client.get("/trace", headers=page.headers).status_code == 404


def test_every_start_has_a_token_of_its_own(asking, with_file):
    other, _ = with_file("start:")
    assert other.playground.token != asking.playground.token

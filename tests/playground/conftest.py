"""A playground to ask, as its own page asks."""

from __future__ import annotations

import json

import pytest
from starlette.testclient import TestClient

from constrained.automaton.tokenizers import EMBEDDED
from constrained.pages import local_server
from constrained.playground.app import Playground, create_app
from constrained.playground.document import OpenFile

PORT = 8750


class Asking:
    """A page of the playground, without a browser."""

    def __init__(self, playground: Playground):
        self.playground = playground
        self.client = TestClient(create_app(playground), f"http://127.0.0.1:{PORT}")
        self.headers = {local_server.TOKEN: playground.token}

    def post(self, address: str, headers: dict | None = None, **data):
        sent = {**self.headers, "Content-Type": "application/json", **(headers or {})}
        return self.client.post(address, content=json.dumps(data), headers=sent)

    def ask(self, address: str, **data) -> dict:
        answer = self.post(address, **data)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def check(self, text: str, document: str | None = None) -> dict:
        return self.ask("/api/check", text=text, document=document)

    def explain(self, text: str, path: str, tokenizer: str = EMBEDDED, **values) -> dict:
        return self.ask("/api/explain", text=text, document=None, values=values, path=path, tokenizer=tokenizer)


@pytest.fixture(scope="module")
def asking():
    """A playground without a file."""
    playground = Playground(PORT, None, [EMBEDDED])
    yield Asking(playground)
    playground.close()


@pytest.fixture
def with_file(tmp_path):
    """A function from a text to a playground with a file of that text, and the file."""
    made = []

    def open_(text: str | None, name: str = "mine.lark"):
        file = tmp_path / name
        if text is not None:
            file.write_bytes(text.encode())
        made.append(Asking(Playground(PORT, OpenFile.open(str(file)), [EMBEDDED])))
        return made[-1], file

    yield open_
    for one in made:
        one.playground.close()

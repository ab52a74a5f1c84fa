"""llama.cpp's own server and llama-cpp-python's, each with a tiny model, on the loopback address."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

from constrained import Grammar
from constrained.cli import main
from constrained.decoding.remote import RemoteModel
from constrained.decoding.request import Request
from constrained.errors import ModelError
from tests.decoding.gguf_file import write_gguf
from tests.decoding.tiny import tiny_llama, tiny_tokenizer

KEY = "sk-secret-of-this-test"
ACTIONS = Grammar.from_choices(["go to desk 1", "go to desk 10", "take mug 1 from desk 1"])
SEARCH = Grammar.from_lark('start: "Search[" /[a-z é]{1,20}/ "]"\n')

COMMANDS = {
    "llama_cpp": """
import sys
sys.argv = ["server", "--model", MODEL, "--port", str(PORT), "--n_ctx", "16384", "--n_threads", "1"]
import llama_cpp.server.__main__ as server
server.main()
""",
    "xllamacpp": """
import time, xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path, parameters.port = MODEL, PORT
parameters.n_ctx, parameters.n_parallel = 65536, 4
server = xllamacpp.Server(parameters)
while True:
    time.sleep(1)
""",
}
"""Package -> a program that serves MODEL at PORT: llama-cpp-python's server; llama.cpp's own as a Python package."""


class Started:
    def __init__(self, package: str, model: str):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        program = f"MODEL, PORT = {model!r}, {port}\n{COMMANDS[package]}"
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen([sys.executable, "-c", program], **quiet)
        self.url = f"http://127.0.0.1:{port}/v1"
        for _ in range(3000):
            try:
                urllib.request.urlopen(f"{self.url}/models").close()
                return
            except OSError:
                assert self.process.poll() is None, "the server ended"
                time.sleep(0.2)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def gguf(tmp_path_factory):
    tokenizer = tiny_tokenizer()
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    return str(write_gguf(path, tiny_llama(len(tokenizer), context=16384), tokenizer))


@pytest.fixture(scope="module", params=COMMANDS)
def package(request):
    reason = "needs pip install 'llama-cpp-python[server]', or xllamacpp (make hosts)"
    pytest.importorskip({"llama_cpp": "llama_cpp.server"}.get(request.param, request.param), reason=reason)
    return request.param


@pytest.fixture(scope="module")
def url(package, gguf):
    server = Started(package, gguf)
    yield server.url
    server.kill()


def ask(action: Grammar, tokens: int = 40) -> Request:
    return Request("", action, tokens, messages=[{"role": "user", "content": "What next?"}])


def test_what_it_obeys_is_found_out_and_its_answers_are_admitted(url):
    model = RemoteModel(url)
    assert model.enforce == "grammar"
    for grammar in (ACTIONS, SEARCH):
        [written] = model.write([ask(grammar)])
        assert grammar.matches(written.text) and not written.replaced and written.completion_tokens > 0


@pytest.mark.parametrize("enforce", ["structured_outputs", "guided", "ebnf", "regex", "json_schema", "nothing"])
def test_what_it_does_not_obey_is_judged(url, enforce):
    for grammar in (ACTIONS, SEARCH):
        [written] = RemoteModel(url, enforce=enforce, attempts=2, retries=0).write([ask(grammar)])
        assert grammar.matches(written.text)


def test_a_json_schema_is_obeyed_by_llama_cpps_own_server(package, url):
    if package == "llama_cpp":
        pytest.skip("its Python server knows response_format without a schema only")
    [written] = RemoteModel(url, enforce="json_schema").write([ask(ACTIONS, 60)])
    assert ACTIONS.matches(written.text) and not written.replaced


def test_an_answer_that_is_cut_off_is_completed(url):
    [written] = RemoteModel(url, attempts=2).write([ask(SEARCH, 3)])
    assert written.replaced and written.text.startswith(written.replaced) and SEARCH.matches(written.text)


def test_a_grammar_that_may_be_too_large_for_it_is_no_error(url):
    endless = Grammar.from_regex(
        "(a|bc){0,60000}d",
    )
    [written] = RemoteModel(url, enforce="grammar", attempts=1, retries=0).write([ask(endless)])
    assert endless.matches(written.text)


def test_many_tasks_side_by_side_each_with_its_answer(url):
    actions = [Grammar.from_choices([f"go to desk {number}", f"open desk {number}"]) for number in range(24)]
    written = RemoteModel(url).write([ask(action) for action in actions])
    assert all(action.matches(one.text) and not one.replaced for action, one in zip(actions, written))


def test_a_household_game_from_the_command_line_without_the_key_in_a_log(url, monkeypatch, capsys, caplog):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    words = ["plan", "put a mug in the cabinet", "--strategy", "act", "--max-steps", "3", "--model", url]
    assert main(words) == 0
    out = capsys.readouterr()
    assert "0 invalid, 0 misordered" in out.out
    assert KEY not in out.out + out.err + caplog.text


def test_two_models_behind_two_servers_at_once(package, url, tmp_path):
    """Each by itself writes the same as both side by side, from two threads; they are different models."""
    tokenizer = tiny_tokenizer()
    gguf = write_gguf(tmp_path / "other.gguf", tiny_llama(len(tokenizer), seed=1, context=16384), tokenizer)
    server = Started(package, str(gguf))
    try:
        models = [RemoteModel(address) for address in (url, server.url)]
        alone = [model.write([ask(SEARCH)])[0].text for model in models]
        asked = [[ask(SEARCH) for _ in range(4)], [ask(ACTIONS) for _ in range(4)]]
        with ThreadPoolExecutor() as pool:
            crossed = zip(models * 2, [*asked, *reversed(asked)])
            first, other, *rest = pool.map(lambda pair: pair[0].write(pair[1]), crossed)
    finally:
        server.kill()
    assert all(SEARCH.matches(one.text) and not one.replaced for one in [*first, *rest[1]])
    assert all(ACTIONS.matches(one.text) and not one.replaced for one in [*other, *rest[0]])
    assert alone[0] != alone[1] and {one.model for one in first} != {one.model for one in other}


def test_a_server_that_ends_while_it_writes_is_one_clear_error(package, gguf):
    server = Started(package, gguf)
    model = RemoteModel(server.url, retries=0, api_key=KEY)
    assert model.enforce == "grammar"
    long = ask(Grammar.from_regex("([a-z]{100}){150}"), 15_000)
    threading.Timer(0.5, server.kill).start()
    for error in model.write([long, long]):
        assert isinstance(error, ModelError) and "no server answers" in error.message and KEY not in str(error)

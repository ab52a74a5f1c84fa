"""What is typed may be hostile: a job ends in time, costs no more than its process, and can be stopped."""

import json
import threading
import time
from pathlib import Path

import pytest

from constrained.grammar import read_source
from constrained.playground import bounds
from constrained.playground.app import JobError, Jobs, tokenizers_at
from constrained.subprocesses import START_SECONDS
from tests.data import shared
from tests.playground.serving import LONG, RUN


@pytest.fixture(scope="module")
def jobs():
    made = Jobs()
    yield made
    made.process.close()


def asked(text: str) -> dict:
    return {"text": text, "source": None, "values": {}, "path": "", "tokenizer": "embedded"}


def test_one_process_does_one_job_after_the_other(jobs):
    for _ in range(2):
        assert jobs.answer(("check", asked('start: "a"'), 60))["findings"] == []
    assert jobs.answer(("check", asked("start: b"), 60))["findings"][0]["code"] == "undefined-rule"


def test_a_job_that_takes_too_long_costs_its_process_and_no_more(jobs):
    with pytest.raises(JobError, match="longer than 0.001 seconds"):
        jobs.answer(
            ("tokenizer", asked(""), 60), ("check", asked("start: " + "| ".join(f'"{n}"' for n in range(9999))), 1e-3)
        )
    assert jobs.answer(("check", asked('start: "a"'), 60))["findings"] == []


@pytest.mark.parametrize(
    "text",
    [
        'start: "a"~1000000000 "b"~1000000000\n',
        "start: /" + "(a*)*" * 200 + "/\n",
        "start: " + "(" * 5000 + '"a"' + ")" * 5000 + "\n",
        "start: /(?=(a|b)*a(a|b){30})(a|b)*/\n",
        "start: x\n" + "".join(f"x{n if n else ''}: x{n + 1} x{n + 1}\n" for n in range(40)) + 'x40: "a"\n',
    ],
    ids=["repeats", "nested stars", "parentheses", "lookahead", "doubling"],
)
def test_hostile_grammars_end_in_time(asking, text):
    began = time.monotonic()
    for job, more in (("check", {}), ("explain", {"values": {}, "path": "aaaa", "tokenizer": "embedded"})):
        said = asking.ask(f"/api/{job}", text=text, document=None, **more)
        assert "findings" in said or "bytes" in said or said["error"]["message"]
    assert time.monotonic() - began < 2 * (bounds.CHECK_SECONDS + START_SECONDS)
    assert asking.check('start: "a"\n')["findings"] == []


@pytest.mark.parametrize("name, allowed", [("qwen2.5", 151_665), ("gpt2", 50_257), ("phi3-mini", 32_011)])
def test_tokens_of_real_tokenizers(jobs, name, allowed):
    (file,) = tokenizers_at(str(shared(f"tokenizers/{name}")))
    asking = [
        (job, {**asked('start: "go to " /[a-z]{1,9}/'), "path": "go ", "tokenizer": file}, 120)
        for job in ("tokenizer", "explain")
    ]
    tokens = jobs.answer(*asking)["tokens"]
    assert tokens["size"] == allowed and {"t", "to"} <= {token["text"] for token in tokens["first"]}


def test_a_process_that_dies_is_told_of_and_started_anew(jobs):
    jobs.answer(("check", asked('start: "a"'), 60))
    jobs.process.kill()
    assert jobs.answer(("check", asked('start: "a"'), 60))["findings"] == []


def test_a_run_says_its_steps_and_its_end(asking):
    household = asking.ask("/api/open", document="household")["text"]
    answer = asking.post(
        "/api/run", text=household, document="household", values={}, task="heat an egg and put it in the fridge",
        strategy="knowagent", masks=True, seed=7, steps=None,
    )  # fmt: skip
    lines = [line for line in map(json.loads, answer.text.splitlines()) if line]
    kinds = [next(iter(line)) for line in lines]
    assert kinds == ["start", *["step"] * (len(lines) - 2), "end"]
    end = lines[-1]["end"]
    assert end["success"] is True and end["invalid"] == end["misordered"] == 0
    assert end["steps"] == len(lines) - 2 and all(line["step"]["verdict"] == "ok" for line in lines[1:-1])
    page = asking.client.get("/trace", headers=asking.headers)
    assert page.status_code == 200 and lines[-2]["step"]["action"] in page.text


def test_a_copy_of_the_household_that_became_something_else_is_not_played(asking):
    text = '%declare _STEP PLACE\nstart: goto{PLACE}\ngoto{p}: "go to " p\n'
    assert not asking.check(text, "household")["knowledge"]["played"]
    assert asking.check(read_source("household").text, "household")["knowledge"]["played"]
    answer = asking.post(
        "/api/run", text=text, document="household", values={"PLACE": ["desk 1"]}, task="go", strategy="act",
        masks=True, seed=1, steps=None,
    )  # fmt: skip
    end = next(line["end"] for line in map(json.loads, answer.text.splitlines()) if "end" in line)
    assert end["path"] == ["go to desk 1"] and "nothing was executed" in end["note"]


def test_a_world_with_a_problem_is_played_and_its_facts_explain_what_cannot_be_done(asking):
    text = read_source("world").text
    assert asking.check(text)["knowledge"]["played"] == "world"
    answer = asking.post(
        "/api/run", text=text, document=None, values={}, task="", strategy="act", masks=True, seed=1, steps=None
    )
    end = next(line["end"] for line in map(json.loads, answer.text.splitlines()) if "end" in line)
    assert end["success"] and end["model"] == "search" and end["path"][-1] == "drop letter"
    assert asking.explain(text, "go to ")["impossible"]["go to cellar"] == "it needs not locked cellar"


def test_a_world_is_played_with_a_task_in_words(asking):
    text = (Path(__file__).parents[2] / "examples" / "worlds" / "hotel.lark").read_text(encoding="utf-8")
    for task, success in (("book r303 for bob", True), ("sing a song", None), ("", None)):
        answer = asking.post(
            "/api/run", text=text, document=None, values={}, task=task, strategy="act", masks=True, seed=1, steps=None
        )
        *_, last = (line for line in map(json.loads, answer.text.splitlines()) if line)
        if success:
            assert last["end"]["success"] and last["end"]["path"][-1] == "book room r303 for bob"
        else:
            assert "error" in last and "book {R} for {G}" in json.dumps(last)


def test_a_run_of_another_grammar_is_open_loop_and_says_so(asking):
    answer = asking.post(
        "/api/run", text=read_source("hotpotqa").text, document=None, values={}, task="Who?", strategy="act",
        masks=True, seed=1, steps=2,
    )  # fmt: skip
    end = next(line["end"] for line in map(json.loads, answer.text.splitlines()) if "end" in line)
    assert end["success"] is None and end["open_loop"] and "nothing was executed" in end["note"]


def test_one_run_at_a_time_and_it_can_be_stopped(jobs):
    said, errors = [], []

    def listen():
        try:
            for message in jobs.messages("run", {**RUN, "text": LONG}, 600):
                if message:
                    said.append(message)
                    going.set()
        except JobError as error:
            errors.append(error)

    going = threading.Event()
    thread = threading.Thread(target=listen)
    thread.start()
    assert going.wait(120)
    with pytest.raises(JobError, match="under way"):
        next(jobs.messages("run", RUN, 600))
    jobs.stop()
    thread.join(120)
    assert not thread.is_alive() and "stopped" in str(errors[0]) and not any("end" in one for one in said)


def test_who_stops_listening_ends_the_run(jobs):
    messages = jobs.messages("run", {**RUN, "text": LONG}, 600)
    next(message for message in messages if message)
    assert jobs.process.running
    messages.close()
    assert not jobs.process.running

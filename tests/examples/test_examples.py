"""Every program in `examples/` runs, and does what its first line says."""

import importlib.util
import json
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from constrained import ActionKnowledge
from constrained.models import load

FOLDER = Path(__file__).parent.parent.parent / "examples"


def example(name: str):
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_readme_lists_every_example():
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    for path in FOLDER.glob("*.py"):
        assert f"({path.name})" in text, path.name


@pytest.mark.parametrize("seed", range(3))
def test_the_text_world_is_played_to_its_end_without_an_invalid_action(seed, capsys):
    plan = example("text_world").main(["--seed", str(seed)])
    assert plan.invalid == plan.misordered == 0
    assert plan.path[-1].startswith("store ") or len([a for a in plan.path if a.startswith("enter ")]) == 3
    assert f"> {plan.path[-1]}" in capsys.readouterr().out


def test_the_tools_are_planned_in_the_order_that_the_rules_ask_for(capsys):
    knowledge, plan = example("tools").main([])
    assert knowledge.check(plan.path).ok
    names = [json.loads(call)["name"] for call in plan.path]
    assert names[0] == "find_flight" and names[-1] == "book_flight"
    assert "misordered" in capsys.readouterr().out


def test_the_policy_admits_what_was_shown_and_confirmed(capsys):
    verdicts = example("tool_policy").main()
    assert [verdict == "ok" for verdict in verdicts] == [False, True, True, False, True, False, True, False]
    assert "the customer hasn't said yes" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["plain_loop", "langgraph_node"])
def test_a_loop_makes_only_calls_that_the_policy_admits(name, monkeypatch, capsys):
    if name == "langgraph_node":
        pytest.importorskip("langgraph", reason="needs langgraph")
    monkeypatch.syspath_prepend(str(FOLDER))
    done = example(name).main([])
    shop = example("tool_policy")
    knowledge = ActionKnowledge.from_tools(shop.TOOLS, policy=shop.POLICY)
    memory = knowledge.tools.policy.initial
    assert len(done) == 6
    for action, result in done:
        knowledge = knowledge.bind_view(knowledge.tools.view(memory))
        assert knowledge.judge(action)
        memory, knowledge = knowledge.tools.told(memory, action, result), knowledge.after(action)


def test_the_planning_domain_admits_the_executable_plan_alone(capsys):
    knowledge = example("planning_domain").main()
    assert knowledge.check(["pick red kitchen", "move kitchen hall", "drop red hall"]).ok
    assert "pick blue kitchen\n" in capsys.readouterr().out
    assert not knowledge.check(["pick red kitchen", "pick blue kitchen"]).ok


def test_transformers_writes_admitted_actions_both_ways(capsys):
    knowledge, *written = example("transformers_generate").main([])
    assert all(knowledge.judge(action) for action in written)


@pytest.fixture(scope="module")
def address():
    server = example("server").make_server(load())
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def post(address: str, body: bytes) -> tuple[int, dict]:
    try:
        with urllib.request.urlopen(urllib.request.Request(address, body), timeout=600) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_the_server_answers_with_an_admitted_action(address):
    request = {"knowledge": "hotpotqa", "path": ["Search[Milhouse]"], "prompt": "Who was Milhouse?\n"}
    status, answer = post(address, json.dumps(request).encode())
    assert status == 200
    path = [*request["path"], answer["action"]]
    assert example("server").ActionKnowledge.from_lark("hotpotqa").check(path).ok


@pytest.mark.parametrize(
    "body, status, words",
    [
        (b"no JSON", 400, "not a request"),
        (b"{}", 400, "knowledge"),
        (b'{"knowledge": "nowhere"}', 422, "nowhere"),
        (b'{"knowledge": "hotpotqa", "path": ["Jump[]"]}', 422, "Jump[]"),
    ],
)
def test_the_server_says_what_is_wrong_with_a_request(address, body, status, words):
    code, answer = post(address, body)
    assert code == status and words in answer["error"]

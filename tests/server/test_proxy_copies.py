"""Copies of the proxy as processes: one that is killed, or told to end, loses no answer that a client was told of."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

from tests.guard.scripted import scripted
from tests.guard.shop import POLICY, TOOLS, asked, said, told, user
from tests.server.proxied import http, openai

CLIENTS, TASKS = 12, 240


@contextmanager
def copies(upstream, folder, number=1):
    """So many proxies, each a process: (process, address)."""
    (folder / "shop.lark").write_text(POLICY, encoding="utf-8")
    command = [sys.executable, "-m", "constrained", "serve", "--port", "0", "--upstream", upstream]
    paths = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    processes = [
        subprocess.Popen(
            [*command, "--knowledge", "shop.lark"], cwd=folder, env=paths, text=True,
            stdout=subprocess.PIPE, stderr=(folder / f"{copy}.log").open("w", encoding="utf-8"),
        )
        for copy in range(number)
    ]  # fmt: skip
    try:
        yield [(process, re.findall(r"http://[\d.:]+/v1", process.stdout.readline())[-1]) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
            process.stdout.close()


def conversation(task):
    return [user(f"Task {task}"), asked(("list_orders", {})), *told(json.dumps({"orders": [f"#{task}"]}))]


def answered(body):
    """The order of the task is looked up; of every third task, first an order that nobody listed."""
    task = body["messages"][0]["content"].split()[1]
    corrected = body["messages"][-1]["content"].startswith("Not carried out")
    wrong = int(task) % 3 == 0 and not corrected
    return {"paced": 0.01, "message": asked(("get_order", {"id": "#none" if wrong else f"#{task}"}))}


def test_when_a_copy_is_killed_under_load_exactly_what_clients_were_told_is_carried_out(tmp_path):
    carried_out, broken, lock = Counter(), [], threading.Lock()
    waiting = iter(range(TASKS))

    def ask(client, task, stream):
        """The calls of an answer; an error unless it is whole."""
        request = {"model": "m", "messages": conversation(task), "tools": TOOLS}
        answer = client.chat.completions.create(stream=stream, **request)
        if not stream:
            return [call.function for call in answer.choices[0].message.tool_calls]
        written, finished = {}, None
        for chunk in answer:
            for call in chunk.choices[0].delta.tool_calls or ():
                name, arguments = written.get(call.index, ("", ""))
                part = call.function
                written[call.index] = (name + (part.name or ""), arguments + (part.arguments or ""))
            finished = finished or chunk.choices[0].finish_reason
        assert finished == "tool_calls"
        return [openai.types.chat.chat_completion_message_tool_call.Function(name=n, arguments=a)
                for n, a in written.values()]  # fmt: skip

    def work(number, addresses, begun):
        clients = [openai.OpenAI(base_url=one, api_key="none", max_retries=0, timeout=60) for one in addresses]
        while True:
            with lock:
                task = next(waiting, None)
            if task is None:
                return
            for attempt in range(20):  # as a load balancer, or the client's own retries, would
                try:
                    calls = ask(clients[(task + number + attempt) % 2], task, stream=task % 2 == 0)
                    break
                except Exception as error:
                    with lock:
                        broken.append(error)
            else:
                raise AssertionError(f"task {task} was never answered")
            with lock:
                carried_out.update(f"{call.name} {json.loads(call.arguments)['id']}" for call in calls)
                if sum(carried_out.values()) > TASKS // 4:
                    begun.set()

    with scripted() as script, copies(script.url, tmp_path, 2) as [(first, one), (second, other)]:
        script.otherwise = answered
        begun = threading.Event()
        threads = [threading.Thread(target=work, args=(n, [one, other], begun)) for n in range(CLIENTS)]
        for thread in threads:
            thread.start()
        assert begun.wait(60)
        first.kill()
        for thread in threads:
            thread.join(120)
        assert second.poll() is None and first.wait() == -signal.SIGKILL
    # Each task's call was carried out once, and no other; clients saw nothing but broken connections.
    assert carried_out == {f"get_order #{task}": 1 for task in range(TASKS)}
    assert broken and all(isinstance(error, (openai.APIConnectionError, http.TransportError)) for error in broken)


def test_a_copy_that_is_told_to_end_ends_its_answers_first(tmp_path):
    with scripted() as script, copies(script.url, tmp_path) as [(process, address)]:
        client = openai.OpenAI(base_url=address, api_key="sk-secret", max_retries=0, timeout=60)
        script.answers = [{"paced": 0.2, "message": said("one two three four five six")}]
        stream = client.chat.completions.create(model="m", messages=conversation(1), tools=TOOLS, stream=True)
        words = [next(stream).choices[0].delta.content, next(stream).choices[0].delta.content]
        process.send_signal(signal.SIGTERM)
        until = time.monotonic() + 30
        while time.monotonic() < until:  # new clients are turned away, so that balancers ask another copy
            try:
                http.get(address.replace("/v1", "/ready"), timeout=5)
                time.sleep(0.02)
            except http.ConnectError:
                break
        else:
            raise AssertionError("it still listens")
        words += [chunk.choices[0].delta.content or "" for chunk in stream]
        assert "".join(words).strip() == "one two three four five six"
        assert process.wait(30) in (0, -signal.SIGTERM)
    lines = [json.loads(line) for line in (tmp_path / "0.log").read_text(encoding="utf-8").splitlines()]
    [record] = [line for line in lines if line["logger"] == "constrained.proxy"]
    assert record["attempts"] == 1 and "error" not in record and "sk-secret" not in str(lines)

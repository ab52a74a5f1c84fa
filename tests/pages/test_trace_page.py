"""What a page shows of a run's file, whole, broken off or damaged."""

import json
import tracemalloc

import pytest

from constrained import ActionKnowledge, generate_plan
from constrained.agents.run_file import digest
from constrained.errors import DataError
from constrained.models import load
from constrained.pages import trace_page as module
from constrained.pages.run_graph import RunGraph
from constrained.pages.trace_page import run_data, trace_page
from tests.decoding.tiny import tiny_llama, tiny_tokenizer
from tests.pages.traced import lines_of, rewritten


def tokens(data):
    return [token for task in data["tasks"] for step in task["steps"] for a in step["answers"] for token in a["tokens"]]


def test_every_step_and_token_of_a_traced_run_is_there(traced):
    data = run_data(traced)
    steps = [line for line in lines_of(traced) if "step" in line]
    assert data["traced"] and data["left_out"] == 0 and data["run"]["masks"]
    assert sum(len(task["steps"]) for task in data["tasks"]) == len(steps)
    for task in data["tasks"]:
        recorded = [line for line in steps if line["task"] == task["name"]]
        assert [step["action"] for step in task["steps"]] == [line["step"]["action"] for line in recorded]
        for step, line in zip(task["steps"], recorded):
            [answer], [raw] = step["answers"], line["answers"]
            shown = [(t["t"], t.get("p", 1), t.get("pruned", 0), t.get("forced", False)) for t in answer["tokens"]]
            assert shown == [(t["text"], t["p"], t["pruned"], t.get("forced", False)) for t in raw["trace"]["tokens"]]
            assert [data["texts"][at] for at in answer["some"]] == raw["trace"]["some"]


def test_a_title_is_the_task_without_the_chat_templates_tokens(tmp_path):
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    model = load((tiny_llama(len(tokenizer), context=4096), tokenizer))
    options = {"strategy": "react", "max_steps": 2, "trace": tmp_path / "run.jsonl"}
    generate_plan("What is it?", ActionKnowledge.from_lark("hotpotqa"), model=model, **options)
    data = run_data(tmp_path / "run.jsonl")
    assert [task["task"] for task in data["tasks"]] == ["What is it?"] and "<|im_start|>" in json.dumps(data)


def test_what_is_forbidden_keeps_its_reason_rule_and_line(traced):
    data = run_data(traced)
    recorded = [
        t["forbidden"]
        for line in lines_of(traced)
        if "step" in line
        for a in line["answers"]
        for t in a["trace"]["tokens"]
        if "forbidden" in t
    ]
    shown = [token["forbidden"] for token in tokens(data) if "forbidden" in token]
    order = {task["name"]: i for i, task in enumerate(data["tasks"])}
    assert len(shown) == len(recorded) > 0 and len(order) == 2
    said = {tuple(data["texts"][f[key]] for key in ("kind", "reason")) for f in shown if "reason" in f}
    assert said == {(f["kind"], f["reason"]) for f in recorded if "reason" in f} != set()


def test_prompts_are_kept_as_what_is_new_in_them(traced):
    data = run_data(traced)
    for task in data["tasks"]:
        prompt, prompts = "", []
        for answer in (answer for step in task["steps"] for answer in step["answers"]):
            same, rest = answer["prompt"]
            prompt = prompt[:same] + rest
            prompts.append(prompt)
        recorded = [line for line in lines_of(traced) if line.get("task") == task["name"] and "step" in line]
        assert prompts == [answer["trace"]["prompt"] for line in recorded for answer in line["answers"]]
        assert f"Task: {task['task'].rstrip('.')}\n" in prompts[0]


def test_each_step_says_where_it_stood_and_what_it_took(traced):
    for task in run_data(traced)["tasks"]:
        assert task["steps"][0]["place"] == "start"
        for step, after in zip(task["steps"], task["steps"][1:]):
            assert step["took"] in step["open"] and after["place"] == step["took"]
        assert task["steps"][-1]["took"] == "put"  # no step after it tells: the knowledge that ships does


def test_a_run_without_traces_walks_the_graph_by_the_rules(unmasked):
    data = run_data(unmasked)
    assert not data["traced"] and not data["run"]["masks"]
    assert data["knowledge"]["name"] == "household" and "<path" in data["knowledge"]["svg"]
    rules = ActionKnowledge.from_lark("household").rules
    steps = [step for task in data["tasks"] for step in task["steps"]]
    assert {step["verdict"] for step in steps} >= {"ok", "invalid"}
    for step in steps:
        assert step["verdict"] == "ok" or step["reason"]
        assert step["open"] == list(rules[step["place"]])
        assert "took" not in step or step["took"] in rules


def test_an_action_that_several_rules_could_write_is_not_named():
    """With free slots ScienceWorld's "wait" could be any text, `take cup` among them."""
    knowledge = ActionKnowledge.from_lark("scienceworld")
    graph = RunGraph.of({"knowledge": {"name": "scienceworld", "digest": digest(knowledge.to_text())}})
    step = {"action": "take cup", "verdict": "ok", "no_effect": False, "answers": []}
    steps = [dict(step), dict(step)]
    graph.locate(steps)
    assert steps[0]["place"] == "start" and "took" not in steps[0]
    assert "place" not in steps[1]


def test_knowledge_that_has_changed_since_is_not_taken_for_the_same(unmasked, tmp_path):
    def older(lines):
        lines[0]["run"]["knowledge"]["digest"] = "0" * 16
        return lines

    data = run_data(rewritten(unmasked, tmp_path / "older.jsonl", older))
    assert data["knowledge"] is None
    assert all("place" not in step for task in data["tasks"] for step in task["steps"])


def test_tasks_are_chosen_by_name_pattern_and_number(unmasked):
    names = [task["name"] for task in run_data(unmasked)["tasks"]]
    chosen = run_data(unmasked, tasks=[names[1]])
    assert [task["name"] for task in chosen["tasks"]] == [names[1]] and chosen["left_out"] == 3
    assert [task["name"] for task in run_data(unmasked, tasks=["*"], most=2)["tasks"]] == names[:2]
    with pytest.raises(DataError, match="no task 'nothing'.*"):
        run_data(unmasked, tasks=["nothing"])


def test_a_page_has_a_size_that_it_does_not_pass(unmasked, monkeypatch):
    whole = run_data(unmasked)
    monkeypatch.setattr(module, "MOST_BYTES", 3 * len(json.dumps(whole["tasks"][0])) // 2)
    data = run_data(unmasked)
    assert data["too_large"] and 1 <= len(data["tasks"]) < 4 and data["left_out"] == 4 - len(data["tasks"])

    monkeypatch.setattr(module, "MOST_BYTES", 1000)
    with pytest.raises(DataError, match="is larger than a page may be"):
        run_data(unmasked)


def test_a_long_line_takes_memory_in_proportion_and_a_longer_one_is_refused(traced, tmp_path):
    def lengthen(times):
        def edit(lines):
            line = next(line for line in lines if "step" in line)
            line["answers"][0]["trace"]["tokens"] *= times
            return lines

        return rewritten(traced, tmp_path / f"{times}.jsonl", edit)

    short = lengthen(1).stat().st_size
    long = lengthen(2_000)
    tracemalloc.start()
    page = module.render(run_data(long))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert long.stat().st_size > 20 * short and most < 40 * long.stat().st_size and len(page) > 20 * short
    with pytest.raises(DataError, match=r"line 2: longer than 8 MiB\n.*hint: give the .jsonl file of a run"):
        run_data(lengthen(8_000))


def test_a_task_without_an_end_is_there_without_one(traced, tmp_path):
    cut = rewritten(traced, tmp_path / "cut.jsonl", lambda lines: [line for line in lines if "end" not in line])
    with cut.open("a") as file:
        file.write('{"task": "half a li')  # being written
    data = run_data(cut)
    assert [task["end"] for task in data["tasks"]] == [None, None] and all(task["steps"] for task in data["tasks"])


def test_what_was_played_again_counts_once(traced, tmp_path):
    def again(lines):
        task = lines[1]["task"]
        return [*lines[:2], {"task": task, "again": True}, *lines[1:]]

    data = run_data(rewritten(traced, tmp_path / "again.jsonl", again))
    assert [len(t["steps"]) for t in data["tasks"]] == [len(t["steps"]) for t in run_data(traced)["tasks"]]


def test_a_run_that_has_only_begun_has_no_tasks(traced, tmp_path):
    assert run_data(rewritten(traced, tmp_path / "begun.jsonl", lambda lines: lines[:1]))["tasks"] == []


def wrong_token(lines):
    step = next(line for line in lines if "step" in line)
    step["answers"][0]["trace"]["tokens"][0]["p"] = float("nan")
    return lines


def endless(lines):
    next(line for line in lines if "step" in line)["step"]["n"] = float("inf")
    return lines


def no_step(lines):
    next(line for line in lines if "step" in line)["step"] = {"n": 1}
    return lines


def no_name(lines):
    next(line for line in lines if "step" in line)["task"] = ["a", "list"]
    return lines


def no_tokens(lines):
    next(line for line in lines if "step" in line)["answers"][0]["trace"] = {"prompt": ""}
    return lines


@pytest.mark.parametrize("damage", [wrong_token, endless, no_step, no_name, no_tokens])
def test_a_damaged_run_is_refused_with_its_place(traced, tmp_path, damage):
    run = rewritten(traced, tmp_path / "damaged.jsonl", damage)
    with pytest.raises(DataError, match=r"damaged.jsonl, line \d+: (damaged: |not a line of).+\n  hint: "):
        run_data(run)


@pytest.mark.parametrize(
    "text, problem",
    [
        ("", "is empty"),
        ("{}\n", "line 1: not a line of a run"),
        ('{"run": {}}\n[1]\n', "line 2"),
        ("\x00\n", "line 1"),
        ("[" * 200_000 + "\n", "line 1"),
        ("1" * 5_000 + "\n", "line 1"),
    ],
    ids=["empty", "no run", "no line of one", "bytes", "brackets", "digits"],
)
def test_a_file_of_something_else_is_refused(tmp_path, text, problem):
    file = tmp_path / "other.jsonl"
    file.write_text(text)
    with pytest.raises(DataError, match=problem):
        run_data(file)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(DataError, match="can't read"):
        run_data(tmp_path / "none.jsonl")


def test_half_a_character_in_a_run_can_be_written(unmasked, tmp_path):
    def half(lines):
        next(line for line in lines if "step" in line)["step"] |= {"observation": "\udce4", "action": "\udce4"}
        return lines

    page = trace_page(rewritten(unmasked, tmp_path / "half.jsonl", half))
    assert "\\udce4" in page and page.encode("utf-8")

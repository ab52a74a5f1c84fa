"""`constrained train sft`: each form of data becomes exactly the prompts that agents are asked; the command itself."""

import json
from argparse import ArgumentParser
from fractions import Fraction

import pytest

from constrained.agents.episode import Episode
from constrained.agents.plan import Plan
from constrained.agents.prompts import ALPACA
from constrained.agents.scheduler import Rollout
from constrained.agents.settings import Settings
from constrained.agents.strategies.lumos.conversation import Turn, conversation
from constrained.cli import main
from constrained.cli.options import add_tuning, tuning_of
from constrained.decoding import Generation
from constrained.environments.maths.env import MathsEnv
from constrained.errors import DataError
from constrained.knowledge import ActionKnowledge
from constrained.models import load_adapters
from constrained.training.settings import PRESETS
from constrained.training.sft_data import chat_form, fireact_steps, read_source
from tests.agents.baselines import GENERAL, question, says
from tests.data import shared
from tests.training.annotations.solutions import SODA

EPISODE = (
    "Thought: I look him up.\nAction: search[Milhouse]\nObservation: Milhouse is named after Richard Nixon.\n"
    "Thought: I have it.\nAction: finish[Richard Nixon]\nObservation: Episode finished, reward = True\n"
)
CHAT = [
    {"role": "system", "content": "Be short."},
    {"role": "user", "content": "Where is the mug?"},
    {"role": "assistant", "content": "On desk 1."},
    {"role": "user", "content": "Sure?"},
    {"role": "assistant", "content": "Yes."},
]


def write(path, rows):
    lines = path.suffix == ".jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows) if lines else json.dumps(rows), encoding="utf-8")
    return path


def pairs(texts) -> list[tuple[str, str]]:
    """What is read, and what is learned, of texts that learn their last span only."""
    assert all([span.learned for span in text.spans] == [False, True] and text.ends for text in texts)
    return [(text.spans[0].text, text.spans[1].text) for text in texts]


# Lumos


@pytest.mark.parametrize("strategy, formulation", [("lumos", "iterative"), ("lumos_onetime", "onetime")])
def test_lumos_texts_are_what_its_agents_are_asked(tmp_path, strategy, formulation):
    """The strategy is played with the very answers that are learned: its questions are the prompts."""
    source, out = write(tmp_path / "soda.jsonl", [SODA]), tmp_path / "out.jsonl"
    assert main(["import", "gsm8k", str(source), "-o", str(out)]) == 0
    rows = [row for row in map(json.loads, out.read_text().splitlines()) if row["formulation"] == formulation]
    texts = {
        row["module"]: pairs(read_source(str(write(tmp_path / f"{row['module']}.jsonl", [row])), GENERAL).texts)
        for row in rows
    }
    rollout = a_problem(strategy)
    rollout.start()
    left = {module: list(found) for module, found in texts.items()}
    while rollout.request is not None:
        prompt, answer = left[rollout.request.role].pop(0)
        assert rollout.request.prompt == prompt
        rollout.answer(Generation(answer, rollout.request.role))
    assert left == {"planner": [], "grounder": []} and rollout.episode.plan.success


def a_problem(strategy) -> Rollout:
    """Played without masks, so that an answer is a whole turn."""
    environment = MathsEnv(SODA["question"], Fraction(6))
    plan = Plan(environment.task, "lumos/maths", strategy, "script", False, 0)
    knowledge = ActionKnowledge.from_lark("lumos/maths")
    return Rollout(Episode({"policy": GENERAL}, knowledge, plan, Settings(strategy, "react", False), environment))


def test_lumos_data_leaves_out_what_is_played(tiny):
    shared("gsm8k/train.jsonl.gz")
    source = read_source("lumos-maths-planner-onetime", tiny, limit=60)
    assert source.rows == 60 and source.left_out["held out, to be played"] > 0
    assert len(source.texts) == source.rows - sum(source.left_out.values())
    both = read_source("lumos-maths", tiny, limit=60)
    parts = [read_source(f"lumos-maths-{part}", tiny, limit=60) for part in ("planner", "grounder")]
    assert len(both.texts) == sum(len(part.texts) for part in parts)


def test_lumos_data_for_maths_has_nothing_of_svamp_which_the_paper_only_tests_on(tiny):
    shared("svamp/SVAMP_first700.json"), shared("gsm8k/train.jsonl.gz")
    tested = {text.spans[0].text for text in read_source("lumos-svamp", tiny, limit=60).texts}
    assert tested and tested.isdisjoint(text.spans[0].text for text in read_source("lumos-maths", tiny, limit=60).texts)


# Alpaca


def test_alpaca_rows_are_prompt_and_response(tiny, tmp_path):
    rows = [
        {"instruction": "Add {these}.", "input": "1 2", "output": "3"},
        {"instruction": "Greet.", "input": "", "output": "Hello"},
        {"instruction": "Thought: not a step", "output": "Thought: neither\nAction: search[this]"},
    ]
    found = pairs(read_source(str(write(tmp_path / "a.json", rows)), tiny).texts)
    assert found[0] == (ALPACA[1].format(task="Add {these}.", known="1 2"), "3")
    assert found[1] == (ALPACA[0].format(task="Greet."), "Hello")
    assert found[2][1] == rows[2]["output"]


def test_fireact_texts_are_what_its_agent_is_asked(tmp_path):
    rollout = question("fireact")
    rollout.start()
    task = rollout.episode.plan.task
    steps = fireact_steps(EPISODE)
    source = write(tmp_path / "f.json", [{"instruction": task, "input": "", "output": EPISODE}])
    found = pairs(read_source(str(source), GENERAL).texts)
    assert rollout.request.prompt == found[0][0]
    said = [f"Thought:{answer}" for _, answer in found]
    assert said == [f"Thought: {step.thought}\nAction: {step.action}" for step in steps]
    says(rollout, said[0])
    observed = rollout.episode.steps[0].observation
    assert rollout.request.prompt == found[1][0].replace(steps[0].observation, observed)
    assert says(rollout, said[1]).success


def test_observations_and_the_end_of_the_episode_are_not_learned(tiny, tmp_path):
    source = write(tmp_path / "f.json", [{"instruction": "Who?", "input": "", "output": EPISODE}])
    texts = read_source(str(source), tiny).texts
    assert all("Observation" not in span.text for text in texts for span in text.spans if span.learned)
    assert not any("Episode finished" in span.text for text in texts for span in text.spans)


@pytest.mark.parametrize(
    "old, new, why",
    [
        ("reward = True", "reward = False", "the episode doesn't end with the right answer"),
        ("search[Milhouse]", "finish[Milhouse]", "misordered action: "),
        ("search[Milhouse]", "ask[Milhouse]", "invalid action: "),
        ("search[Milhouse]", "search[Mil]house]", "invalid action: "),
        ("I look him up.", "x" * 301, "not in the step format"),
    ],
)
def test_fireact_rows_that_the_grammars_refuse_are_told(tiny, tmp_path, old, new, why):
    row = {"instruction": "Who?", "input": "", "output": EPISODE.replace(old, new)}
    source = read_source(str(write(tmp_path / "f.jsonl", [row, {**row, "output": EPISODE}])), tiny)
    assert source.rows == 2 and len(source.texts) == 2
    ((reason, count),) = source.left_out.items()
    assert reason.startswith(why) and count == 1


def test_nearly_all_of_the_released_fireact_data_fits(tiny):
    source = read_source(str(shared("fireact/hotpotqa.json.gz")), tiny, limit=60)
    assert sum(source.left_out.values()) == 1  # one answers without looking anything up; of all 500, two are left out
    assert next(iter(source.left_out)).startswith("misordered action: finish is not admitted at the start")
    assert len(source.texts) > 2 * 59


# chats


def test_each_turn_of_the_assistant_is_a_text(tiny, tmp_path):
    found = pairs(read_source(str(write(tmp_path / "c.jsonl", [{"messages": CHAT}])), tiny).texts)
    assert [learned for _, learned in found] == ["On desk 1.", "Yes."]
    system = "<|system|>\nBe short.\n"
    assert found[0][0] == system + conversation([], "Where is the mug?")
    assert found[1][0] == system + conversation([Turn("Where is the mug?", "On desk 1.")], "Sure?")


def test_a_model_with_a_chat_form_reads_its_own(tiny, monkeypatch):
    template = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
    template += "{% if add_generation_prompt %}[assistant]{% endif %}"
    monkeypatch.setattr(tiny.tokenizer, "chat_template", template, raising=False)
    assert chat_form(tiny)(CHAT[1:2]) == "[user]Where is the mug?[assistant]"


@pytest.mark.parametrize(
    "row, message",
    [
        ({"text": "x"}, "row 1: neither 'messages' nor 'instruction'"),
        ({"messages": "hello"}, "row 1: no list under 'messages'"),
        ({"messages": ["hello"]}, "row 1, message 1: not an object but a str"),
        ({"messages": [{"role": "bot", "content": "x"}]}, "message 1: the role 'bot' is none of system, user"),
        ({"messages": [{"role": "user"}]}, "message 1: no text under 'content'"),
        ({"messages": CHAT[:2]}, "row 1: the assistant says nothing"),
        ({"instruction": "x", "output": 3}, "row 1: no text under 'output'"),
        ({"instruction": "x", "output": " "}, "row 1: the output is empty"),
    ],
)
def test_malformed_rows_are_named(tiny, tmp_path, row, message):
    path = write(tmp_path / "bad.jsonl", [row])
    with pytest.raises(DataError) as raised:
        read_source(str(path), tiny)
    assert str(path) in str(raised.value) and message in str(raised.value)


def test_no_such_data(tiny):
    with pytest.raises(DataError, match="no data 'lumos-web'\n  hint: there are lumos-maths, lumos-qa"):
        read_source("lumos-web", tiny)


# the command


def test_the_command_tunes_and_reports(tiny, tmp_path, capsys):
    model = tmp_path / "model"
    tiny.model.save_pretrained(model)
    tiny.tokenizer.save_pretrained(model)
    data = write(tmp_path / "c.jsonl", [{"messages": CHAT}] * 3)
    command = ["train", "sft", "--data", str(data), "--model", str(model), "--out", str(tmp_path / "out"),
               "--epochs", "2", "--batch", "2", "--accumulation", "1", "--rank", "2", "--targets", "q_proj", "k_proj",
               "--json", str(tmp_path / "report.json")]  # fmt: skip
    assert main(command) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith(f"adapter in {tmp_path / 'out'}: 6 steps, ")
    assert f"{data}: 6 texts of 3 rows\n" in shown.err
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["settings"]["rank"] == 2 and report["settings"]["rate"] == 1e-4
    assert report["data"][str(data)] == {"rows": 3, "texts": 6, "left out": {}}
    assert report["tuned"]["steps"] == 6 and report["tuned"]["left_out"] == 0
    assert load_adapters(tiny, {"a": tmp_path / "out"})
    assert main([*command, "--rate", "0.5"]) == 1
    assert "error: " in (err := capsys.readouterr().err) and "other settings (rate)" in err


def test_presets_and_what_changes_them():
    parser = ArgumentParser()
    add_tuning(parser)
    assert tuning_of(parser.parse_args([])) == PRESETS["knowagent"]
    assert tuning_of(parser.parse_args(["--preset", "lumos"])) == PRESETS["lumos"]
    given = tuning_of(parser.parse_args(["--preset", "lumos", "--no-whole", "--packing", "--targets", "all-linear"]))
    assert given.epochs == 2 and not given.whole and given.packing and given.targets == ("all-linear",)

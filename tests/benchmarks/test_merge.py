"""constrained bench merge: KnowAgent's released runs, filtered and merged by either rule."""

import json
from pathlib import Path

import pytest

from benchmarks import merge
from constrained.cli import main
from constrained.models import load
from constrained.training.released import ALFWORLD, HOTPOTQA, read_released
from constrained.training.sft_data import read_source
from tests.data import shared
from tests.decoding.tiny import tiny

RESULTS = Path(merge.__file__).parent / "results" / "merge.json"


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """The command, run once on all released runs: what it printed, its figures, the folder of training sets."""
    for benchmark in (HOTPOTQA, ALFWORLD):
        shared(f"knowagent/KnowAgent{benchmark}_llama-2-13b_D0.jsonl.gz")
    shared("alfworld/games_2.1.1_train.tar.xz")
    folder = tmp_path_factory.mktemp("merged")
    with pytest.MonkeyPatch.context() as patch:
        printed = []
        patch.setattr("builtins.print", lambda *words: printed.append(" ".join(map(str, words))))
        file = folder / "figures.json"
        assert main(["bench", "merge", "--show-drops", "1", "--json", str(file), "--output", str(folder)]) == 0
    return "\n".join(printed), json.loads(file.read_text()), folder


def test_the_figures_are_those_in_the_repository(everything):
    assert everything[1] == json.loads(RESULTS.read_text())


@pytest.mark.parametrize(
    "name, kept, merged, reasons",
    [
        ("hotpotqa-released", (132, 140), 184, {"not correct": 728}),
        ("hotpotqa-paper-hotpotqa", (132, 140), 184, {"not correct": 728}),
        ("alfworld-released", (134, 182), 218, {"not correct": 704}),
        ("alfworld-paper-household", (87, 109), 128, {"not correct": 704, "invalid action": 120}),
        ("alfworld-paper-alfworld_paper", (46, 60), 71,
         {"not correct": 704, "invalid action": 65, "misordered action": 145}),
    ],
)  # fmt: skip
def test_what_each_rule_keeps_and_why_it_drops_the_rest(everything, name, kept, merged, reasons):
    f = everything[1][name]
    assert tuple(f["kept"].values()) == kept and f["merged"] == merged
    assert sum(kept) - f["tasks of both rounds"] == merged
    assert {reason: sum(of.get(reason, 0) for of in f["dropped"].values()) for reason in reasons} == reasons
    assert sum(f["runs"].values()) == sum(kept) + sum(reasons.values())
    assert len(f["drops of correct runs"]) == sum(f["first offences"].values())
    assert sum(f["first offences"].values()) == sum(reasons.values()) - reasons["not correct"]
    assert all(drop["words"] and drop["action"] and drop["step"] > 0 for drop in f["drops of correct runs"])


def test_household_lark_forbids_just_what_the_game_answers_with_nothing_happens(everything):
    f = everything[1]["alfworld-paper-household"]
    assert f["of these not admitted"] == f["of these without effect"] == 424 and f["actions of correct runs"] == 3323


def test_the_printed_rules_leave_no_game_in_which_a_thing_is_treated_in_the_hand(everything):
    lines = (everything[2] / "alfworld-paper-alfworld_paper.jsonl").read_text().splitlines()
    verbs = {act["text"].split()[0] for line in lines for act in json.loads(line)["acts"]}
    assert verbs and not verbs & {"clean", "heat", "cool"}


def test_the_training_sets_hold_every_merged_run_as_it_was_written(everything):
    for name, f in everything[1].items():
        rows = [json.loads(line) for line in (everything[2] / f"{name}.jsonl").read_text().splitlines()]
        alpaca = json.loads((everything[2] / f"{name}.alpaca.json").read_text())
        assert len(rows) == len(alpaca) == f["merged"] == len({row["task"] for row in rows})
        for row, learned in zip(rows, alpaca):
            assert row["success"] and (learned["input"], learned["output"]) == (row["given"], row["text"])
            assert all(act["text"] in learned["output"] for act in row["acts"])
            if f["rule"] == "paper":
                assert all(act["verdict"] == "ok" for act in row["acts"])
        file, number = rows[-1]["source"].rsplit(":", 1)
        original = read_released(shared(f"knowagent/{file}"))[int(number) - 1]
        assert (original.task, original.text) == (rows[-1]["task"], rows[-1]["text"])
    words = {row["instruction"] for row in json.loads((everything[2] / "alfworld-released.alpaca.json").read_text())}
    assert len(words) == 1 and "take OBJECT from RECEPTACLE" in words.pop()


def test_sft_reads_the_training_sets(everything):
    tiny_model = tiny()
    source = read_source(
        str(everything[2] / "alfworld-paper-household.alpaca.json"), load((tiny_model.model, tiny_model.tokenizer))
    )
    assert (source.rows, len(source.texts), source.left_out) == (128, 128, {})
    prompt, response = source.texts[0].spans
    assert response.learned and not prompt.learned and response.text.startswith("> Think:")
    assert "goto: go to RECEPTACLE" in prompt.text and "Your task is to:" in prompt.text


def test_the_table_and_the_drops_are_shown(everything):
    out = everything[0]
    assert "| HotpotQA 500 + 500 | released | – | 132 | 140 | 184 |" in out
    assert "| ALFWorld 510 + 510 | paper | household | 87 | 109 | 128 |" in out
    assert "invalid action at step 6, 'go to shelf 3': stops fitting after 'go to shelf '" in out
    assert out.count(" at step ") == 2  # one of each reading that drops correct runs


def test_without_data_nothing_is_written(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("CONSTRAINED_DATA", str(tmp_path))
    assert main(["bench", "merge", "--output", str(tmp_path / "out"), "--json", str(tmp_path / "merge.json")]) == 1
    assert "set CONSTRAINED_DATA" in capsys.readouterr().err and list(tmp_path.iterdir()) == []


def test_fewer_than_no_drops_is_an_error(capsys):
    assert main(["bench", "merge", "--show-drops", "-1"]) == 1
    assert "--show-drops is -1" in capsys.readouterr().err

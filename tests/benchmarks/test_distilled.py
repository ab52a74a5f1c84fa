"""constrained bench distilled: drafts judge released runs, and the same games are played under their masks."""

import pytest

from benchmarks import distilled
from constrained.cli import main
from constrained.decoding.choosers import Uniform
from constrained.environments.suite import choose_suite
from constrained.knowledge import ActionKnowledge
from constrained.training.released import ALFWORLD, HOTPOTQA
from tests.data import shared

DRAFTED = distilled.KNOWLEDGE[ALFWORLD]["distilled"]


@pytest.mark.parametrize("benchmark, admitted", [(HOTPOTQA, (272, 10)), (ALFWORLD, (196, 0))])
def test_each_knowledge_judges_the_same_correct_runs(benchmark, admitted):
    shared(f"knowagent/KnowAgent{benchmark}_llama-2-13b_D0.jsonl.gz")
    shared("alfworld/games_2.1.1_train.tar.xz")
    found = distilled.judge_released(benchmark, distilled.KNOWLEDGE[benchmark].values())
    assert tuple(one["admitted runs"] for one in found.values()) == admitted
    assert {one["correct runs"] for one in found.values()} == {272 if benchmark == HOTPOTQA else 316}


def test_a_draft_of_alfworld_has_the_lent_slots_and_plays_its_games(tmp_path):
    """The environment's own knowledge judges: no action under the draft's masks is one that the game refuses."""
    shared("alfworld/games_2.1.1_valid_seen.tar.xz")
    lent = ActionKnowledge.from_lark(distilled.DRAFTS / "alfworld_actions.lark")
    drafted = ActionKnowledge.from_lark(DRAFTED)
    assert drafted.slots == lent.slots and set(drafted.actions) == set(lent.actions)
    suite = choose_suite("alfworld/valid_seen:2")
    played = distilled.play(suite, DRAFTED, Uniform(), "act", tmp_path)
    assert played["tasks"] == 2 and played["failed"] == played["invalid %"] == 0 and played["actions"]


def test_a_model_that_is_missing_is_told_before_anything_is_played(capsys, tmp_path):
    assert main(["bench", "distilled", "--model", str(tmp_path / "nothing.gguf")]) == 1
    assert "nothing.gguf" in capsys.readouterr().err

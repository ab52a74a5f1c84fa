"""The original engine behind our interface: the same game as ours, and errors that say what happened.

What needs the engine skips without it; `constrained bench original` compares on whole splits.
"""

import json
import os
import pickle
import random
import signal
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks import original
from constrained.environments.alfworld import env as alfworld
from constrained.environments.alfworld.env import AlfworldEnv
from constrained.environments.household.game import game_files
from constrained.environments.suite import open_suite
from constrained.errors import ConstrainedError, GameError
from constrained.knowledge import ActionKnowledge
from tests.data import shared

ARCHIVE = "alfworld/games_2.1.1_valid_seen.tar.xz"
engine = pytest.mark.skipif(
    any(find_spec(name) is None for name in alfworld.PACKAGES),
    reason='needs the original engine: pip install "constrained-agents[alfworld]"',
)


@pytest.fixture
def game() -> tuple[bytes, str]:
    shared(ARCHIVE)
    name, content = next(game_files("valid_seen"))
    return content, name


@pytest.fixture
def env(game):
    env = AlfworldEnv(*game)
    yield env
    env.close()


def test_without_the_engine_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setattr(alfworld, "PACKAGES", ("no_such_engine",))
    with pytest.raises(GameError, match=r"isn't installed: no no_such_engine[\s\S]*constrained-agents\[alfworld\]"):
        open_suite("alfworld-original")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[]", b'{"pddl_problem": "", "grammar": 3}'])
def test_a_damaged_file_is_refused_before_the_engine_starts(content):
    with pytest.raises(GameError, match="TASK/TRIAL"):
        AlfworldEnv(content, "TASK/TRIAL")


def test_a_game_that_was_not_begun_has_no_moment(game):
    env = AlfworldEnv(*game)
    assert env.task == "look at alarmclock under the desklamp."
    for ask in (env.admissible, lambda: env.step("look")):
        with pytest.raises(GameError, match="call reset"):
            ask()
    env.close()
    env.close()


def test_the_suite_has_the_games_of_a_split_in_their_order(game, monkeypatch):
    monkeypatch.setattr(alfworld, "PACKAGES", ())  # the engine starts with the first reset, which isn't asked here
    suite = open_suite("alfworld-original", limit=3)
    assert [task.kind for task in suite.tasks] == ["look_at_obj_in_light"] * 3
    env = pickle.loads(pickle.dumps(suite.tasks[0].make))()
    assert (suite.tasks[0].name, env.name) == (game[1], game[1])
    with pytest.raises(ConstrainedError, match="no split 'dev'"):
        open_suite("alfworld-original", split="dev")


@engine
def test_the_same_game_gives_the_same_observations():
    shared("alfworld/index.jsonl"), shared(ARCHIVE)
    figures = original.run("valid_seen", every=70, steps=25, progress=False)
    assert figures["differences"] == []
    assert figures["games"] == figures["won by their walkthrough"] == 2
    assert figures["answers identical"] == figures["moments compared"] > 60


@engine
def test_household_knowledge_drives_the_engine(env):
    env.reset()
    place, rng = ActionKnowledge.from_lark("household").bind_view(env.admissible()), random.Random(3)
    for _ in range(12):
        texts = place.next_action().automaton.start.texts(1000)
        action = rng.choice(sorted(text.decode() for text in texts))
        env.step(action)
        assert env.had_effect, action
        place = place.after(action).bind_view(env.admissible())


@engine
def test_an_engine_that_dies_is_named_and_the_game_can_be_begun_anew(env):
    first = env.reset()
    os.kill(env._process.pid, signal.SIGKILL)
    with pytest.raises(GameError, match=rf"died \(exit status -9\) over 'step' in {env.name}[\s\S]*reset"):
        env.step("look")
    assert env.reset() == first
    assert env.step("look")[0].endswith("you see nothing.")


@engine
def test_an_engine_that_hangs_is_ended(game):
    env = AlfworldEnv(*game)
    env.reset()
    env._answer_seconds = 0.5
    os.kill(env._process.pid, signal.SIGSTOP)
    with pytest.raises(GameError, match="took longer than 0.5 seconds"):
        env.step("look")
    env.close()


@engine
def test_a_game_that_the_engine_refuses_is_named(game):
    data = json.loads(game[0])
    cut = {**data, "pddl_problem": data["pddl_problem"][:3000]}
    env = AlfworldEnv(json.dumps(cut), "TASK/TRIAL")
    with pytest.raises(GameError, match="refused to open TASK/TRIAL"):
        env.reset()
    env.close()


@engine
def test_a_game_won_is_over_until_it_is_reset(game):
    env = AlfworldEnv(*game)
    env.reset()
    for action in original.walkthroughs()[game[1]]:
        _, reward, done = env.step(action)
    assert (reward, done, env.outcome()) == (1.0, True, {"success": 1.0})
    with pytest.raises(GameError, match="the game is over"):
        env.step("look")
    env.reset()
    assert env.outcome() == {"success": 0.0}
    env.close()


@engine
def test_games_that_say_move_are_played_in_the_words_of_those_that_say_put(game):
    """alfworld 0.4 makes games with a text grammar of its own; here it is given to a game of 2.1.1."""
    from alfworld.info import ALFRED_TWL2_PATH

    old = AlfworldEnv(*game)
    grammar = Path(ALFRED_TWL2_PATH).read_text().replace("UNKNOWN GOAL.", old.task)
    assert "move {o} to {r}" in grammar
    new = AlfworldEnv(json.dumps({**json.loads(game[0]), "grammar": grammar}), "moves")
    new.reset(), old.reset()
    for action in ("go to desk 1", "take mug 1 from desk 1", "put mug 1 in/on desk 1", "look", "go to bed 1"):
        assert new.admissible() == old.admissible()
        assert new.step(action) == old.step(action)
        assert new.had_effect
    new.close(), old.close()

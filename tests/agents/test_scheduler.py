"""Many episodes side by side come to what each comes to alone."""

from dataclasses import replace
from functools import partial

import pytest

from constrained import ActionKnowledge
from constrained.agents.episode import Episode
from constrained.agents.plan import Plan
from constrained.agents.scheduler import Rollout, schedule
from constrained.agents.settings import Settings
from constrained.agents.suite_runner import play
from constrained.decoding import Request
from constrained.environments.suite import open_suite
from constrained.models import load
from tests.agents.alike import assert_alike

EMBEDDED = {"policy": load()}
KNOWLEDGE = ActionKnowledge.from_lark("household")
GREEDY = Settings("knowagent", "knowagent", max_steps=5)
SAMPLED = Settings("act", "act", max_steps=6, temperature=1.0, seed=5)
FREE = Settings("react", "react", constrained=False, max_steps=3, temperature=0.7)
NAMES = ["greedy", "sampled", "without masks"]


def lines_by_task(games, settings, batch):
    found = {}
    for line in play(open_suite("household", limit=games).tasks, KNOWLEDGE, EMBEDDED, settings, batch=batch):
        found.setdefault(line["task"], []).append(line)
    return found


@pytest.mark.parametrize("settings, games, batch", [(GREEDY, 8, 5), (SAMPLED, 8, 8), (FREE, 6, 4)], ids=NAMES)
def test_household_games_side_by_side_leave_the_same_record(settings, games, batch):
    alone = lines_by_task(games, settings, 1)
    assert len(alone) == games and sum(map(len, alone.values())) > 2 * games
    assert_alike(lines_by_task(games, settings, batch), alone)


def test_models_and_samplings_of_all_kinds_in_one_batch():
    """Each is asked as it wants to be, whatever those beside it want."""

    def rollouts():
        tasks = open_suite("household", limit=6).tasks
        for i, task in enumerate(tasks):
            settings = replace([GREEDY, SAMPLED, FREE][i % 3], max_steps=3)
            plan = Plan(task.name, KNOWLEDGE.name, settings.strategy, "embedded", settings.constrained, settings.seed)
            yield Rollout(Episode(EMBEDDED, KNOWLEDGE, plan, settings, task.make()), name=task.name)

    def played(batch):
        made = list(dict.fromkeys(schedule(rollouts(), batch)))
        return {p.name: [(s.action, s.observation) for s in p.episode.plan.steps] for p in made}

    assert played(6) == played(1)


def asking(count, *prompts):
    """A strategy that asks for each prompt, and keeps what it is answered."""
    for prompt in prompts:
        yield Request(prompt, None, max_new_tokens=count)


def test_a_question_that_cannot_be_answered_fails_the_one_who_asked():
    prompts = ["Your task is to: look", "mug " * 2000, "", "You are in a room."]
    episode = partial(Episode, EMBEDDED, KNOWLEDGE, settings=Settings())
    rollouts = [
        Rollout(episode(Plan("", "", "", "", False, 0)), asking(5, prompt, "and then"), str(n))
        for n, prompt in enumerate(prompts)
    ]
    list(schedule(rollouts, 4))
    assert [p.over for p in rollouts] == [True] * 4
    assert [len(p.episode.plan.answers) for p in rollouts] == [2, 0, 2, 2]
    assert "fills the context" in str(rollouts[1].failure)
    assert [p.failure is None for p in rollouts] == [True, False, True, True]

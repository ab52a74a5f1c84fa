"""All tasks and variations as a suite."""

import pytest

from constrained.environments.scienceworld import ScienceWorldEnv
from constrained.environments.suite import open_suite
from constrained.errors import DataError


def test_the_test_split_begins_with_one_variation_of_each_task(simulator):
    suite = open_suite("scienceworld")
    assert suite.name == "scienceworld/test" and suite.knowledge == "scienceworld" and suite.max_steps == 50
    assert {task.kind for task in suite.tasks[:30]} == set(simulator.tasks) and len(simulator.tasks) == 30
    names = [task.name for task in suite.tasks]
    assert len(set(names)) == len(names) == sum(len(simulator.variations(name, "test")) for name in simulator.tasks)
    assert {open_suite("scienceworld", split="dev").tasks[i].kind for i in range(30)} == set(simulator.tasks)


def test_the_splits_part_the_variations(simulator):
    parts = [set(simulator.variations("boil", split)) for split in ("train", "dev", "test")]
    assert set().union(*parts) == set(range(30)) and sum(map(len, parts)) == 30


def test_a_task_opens_its_environment(installed):
    (task,) = open_suite("scienceworld", split="dev", limit=1).tasks
    env = task.make()
    assert isinstance(env, ScienceWorldEnv) and env.name == task.name
    env.close()


def test_a_split_that_is_not_there():
    with pytest.raises(DataError, match="no split 'valid'"):
        open_suite("scienceworld", split="valid")

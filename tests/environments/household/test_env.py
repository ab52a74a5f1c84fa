"""What the household tells of a task beyond its game: the names that the task is about."""

from constrained.environments.household import HouseholdEnv
from tests.environments.household.small_house import small_house


def entities(task, names):
    env = HouseholdEnv(small_house())
    env.task = task
    return env.entities(names)


def test_entities_are_of_the_kinds_that_the_task_names_what_is_wanted_first():
    names = ["desk 1", "mug 10", "desklamp 1", "mug 1", "nothing", "desktop 1", "opened"]
    assert entities("put a clean mug in desk.", names) == ["mug 10", "mug 1", "desk 1"]
    assert entities("look at mug under the desklamp", names) == ["mug 10", "mug 1", "desklamp 1"]
    assert entities("Bring me some mug near the desk, please!", names) == ["mug 10", "mug 1", "desk 1"]
    assert entities("", names) == entities("clean mug", []) == []

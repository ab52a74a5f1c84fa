"""The simulator, for tests that ask it itself."""

from collections.abc import Callable

import pytest

from tests.environments.scienceworld.present import needs_scienceworld


@pytest.fixture
def installed():
    needs_scienceworld()


@pytest.fixture
def simulator(installed):
    from constrained.environments.scienceworld.simulator import borrow, give_back

    simulator = borrow()
    yield simulator
    give_back(simulator)


_GOLD: dict[str, list[str]] = {}


@pytest.fixture
def gold(simulator) -> Callable[[str], list[str]]:
    """A function from a task to the actions by which the package's own agent solves it, which takes it seconds."""

    def actions(task: str) -> list[str]:
        if task not in _GOLD:
            _GOLD[task] = simulator.gold(task)
        return _GOLD[task]

    return actions

"""The simulator, for tests that ask it itself."""

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

"""The line about what is waited for: on a terminal alone, and gone afterwards, however it ends."""

import time
from contextlib import redirect_stderr

import pytest

from constrained import waiting as module
from constrained.waiting import waiting
from tests.terminal import Terminal, is_over, until


@pytest.fixture
def terminal(monkeypatch) -> Terminal:
    """Standard error is it while a test redirects there: pytest sets its own again after the fixtures."""
    monkeypatch.setattr(module, "AFTER", 0.0)
    monkeypatch.setattr(module, "TICK", 0.001)
    return Terminal()


def test_it_says_what_and_how_long_and_then_what_comes_next(terminal):
    with redirect_stderr(terminal), waiting("loading a model with a long name") as say:
        until(terminal, "loading a model with a long name … ")
        say("step 1")
        until(terminal, "step 1 … ")
        assert "name" not in terminal.shown
    assert is_over(terminal)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_nothing_is_left_after_an_error(terminal, error):
    with pytest.raises(error), redirect_stderr(terminal), waiting("loading"):
        until(terminal, "loading")
        raise error
    assert is_over(terminal)


def test_what_is_quick_shows_nothing(terminal, monkeypatch):
    monkeypatch.setattr(module, "AFTER", 3600.0)
    with redirect_stderr(terminal), waiting("loading") as say:
        time.sleep(0.01)
        say("step 1")
    assert terminal.getvalue() == ""


def test_nothing_is_shown_without_a_terminal_or_if_it_is_not_wanted(terminal, monkeypatch):
    with redirect_stderr(terminal), waiting("loading", show=False) as say:
        say("step 1")
    monkeypatch.setattr(terminal, "isatty", lambda: False)
    with redirect_stderr(terminal), waiting("loading"):
        assert is_over(terminal)
    assert terminal.getvalue() == ""


def test_a_terminal_that_is_gone_does_not_disturb(terminal, monkeypatch):
    def write(text):
        raise OSError("gone")

    monkeypatch.setattr(terminal, "write", write)
    with redirect_stderr(terminal), waiting("loading"):
        time.sleep(0.01)
    assert is_over(terminal)

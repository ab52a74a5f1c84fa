"""Answer a strategy's questions with given texts instead of a model's, each held against what may be written."""

from constrained.agents.messages import Answer
from constrained.errors import GrammarError


def answer_with(rollout, *texts):
    """Start `rollout` and answer its questions with `texts`, or with what each, a function, makes of the question."""
    if rollout.ask is None:
        rollout.start()
    for text in texts:
        ask = rollout.ask
        assert ask is not None, f"over before {text!r}: {rollout.failure or rollout.episode.plan.note}"
        text = text(ask) if callable(text) else text
        if ask.grammar is not None:
            assert ask.grammar.matcher(ask.begun + text).is_complete, f"{text!r} may not be written here"
        rollout.answer(Answer(text, ask.role, "script", 10, 5))
    if rollout.failure:
        raise rollout.failure
    return rollout.episode.plan


def may(playing, text):
    """Whether `text` may be written now."""
    try:
        return playing.ask.grammar.matcher(playing.ask.begun + text).is_complete
    except GrammarError:
        return False

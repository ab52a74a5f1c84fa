"""Answer a strategy's questions with given texts instead of a model's, each held against what may be written."""

from constrained.decoding import Generation
from constrained.errors import GrammarError


def answer_with(rollout, *texts):
    """Start `rollout` and answer its questions with `texts`, or with what each, a function, makes of the question."""
    if rollout.request is None:
        rollout.start()
    for text in texts:
        request = rollout.request
        assert request is not None, f"over before {text!r}: {rollout.failure or rollout.episode.plan.note}"
        text = text(request) if callable(text) else text
        if request.grammar is not None:
            assert request.grammar.matcher(request.begun + text).is_complete, f"{text!r} may not be written here"
        rollout.answer(Generation(text, request.role, "script", 10, 5))
    if rollout.failure:
        raise rollout.failure
    return rollout.episode.plan


def may(playing, text):
    """Whether `text` may be written now."""
    try:
        return playing.request.grammar.matcher(playing.request.begun + text).is_complete
    except GrammarError:
        return False

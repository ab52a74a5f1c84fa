"""Grammars, and the texts of rows, that the tests of all hosts share."""

from __future__ import annotations

from constrained import Grammar

CHOICES = ["go to desk 1", "go to desk 10", "go to drawer 1", "look", "é 中"]
GRAMMARS = {
    "choices": Grammar.from_choices(CHOICES),
    "regex": Grammar.from_regex(r"(a|b)+c{1,3}é?"),
    "step": Grammar.from_regex(r"Thought: [^\n]{1,12}\nAction 3: (go to desk 1|go to desk 10|take mug 1)"),
    "one text": Grammar.from_choices(["Start->go to desk 1"]),
}


def text_of(vocabulary, ids) -> str:
    """The text of generated ids up to the first end-of-text token; only padding may follow."""
    ids = [int(i) for i in ids]
    end = next((at for at, i in enumerate(ids) if i in vocabulary.eos_token_ids), len(ids))
    assert set(ids[end:]) <= vocabulary.special_set
    assert not set(ids[:end]) & vocabulary.special_set
    return b"".join(vocabulary.tokens[i] for i in ids[:end]).decode()

"""What JSON Schema says of a value: the `jsonschema` package; and texts to hold against it."""

from __future__ import annotations

import json
import random

from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for


def is_valid(schema, value) -> bool:
    """Whether `value` is valid."""
    return validator_for(schema, default=Draft202012Validator)(schema).is_valid(value)


def accepted(grammar, value) -> bool:
    """Whether the grammar admits `value`, with its objects' members in the order that they have."""
    return grammar.matches(json.dumps(value))


def random_text(grammar, rng: random.Random, longest: int = 400) -> bytes | None:
    """A text that the grammar's automaton writes by random bytes; None if it came to no end."""
    state, out = grammar.begin, bytearray()
    while len(out) < longest:
        following = sorted(state.first())
        if state.accepting and (not following or rng.random() < 0.3):
            return bytes(out)
        # closing what is open, where that is possible, so that most texts come to an end
        closing = [b for b in following if b in b'"]}']
        plain = [b for b in following if 0x20 <= b < 0x7F] or following
        byte = rng.choice(closing if closing and rng.random() < 0.4 else plain if rng.random() < 0.9 else following)
        out.append(byte)
        state = state.step(byte)
    return None

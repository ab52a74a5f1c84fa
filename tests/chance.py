"""How often tests draw at random."""

from hypothesis import settings


def times(few: int, many: int) -> int:
    """`few`; `many` under ``pytest --hypothesis-profile=thousands``, or a profile that asks for as much."""
    return many if settings().max_examples > 100 else few

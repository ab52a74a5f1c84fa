"""All texts of a finite grammar, read off its automaton: the oracle's other side."""

from __future__ import annotations

from constrained import Grammar


def texts(grammar: Grammar, limit: int = 20_000) -> set[str]:
    """Every text that `grammar` accepts (up to the end of an action), by walking all states."""
    found: set[str] = set()
    work = [(grammar.automaton.start, b"")]
    while work:
        state, read = work.pop()
        assert state.accepting or state.first(), f"dead end after {read!r}"
        if state.accepting:
            found.add(read.decode())
            assert len(found) <= limit, "not finite, or too many"
        for byte in state.first():
            after = state.step(byte)
            assert after is not None, f"{bytes([byte])!r} is offered after {read!r}, but not taken"
            work.append((after, read + bytes([byte])))
    return found

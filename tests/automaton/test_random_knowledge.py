"""Random small action knowledge with random gaps in its bindings, against its texts one by one."""

from __future__ import annotations

from hypothesis import assume, event, given, settings

from constrained import Grammar, GrammarError
from tests.automaton.brute import Language
from tests.automaton.cases import knowledge
from tests.grammar.oracles import completion

LONGEST = 13


@settings(max_examples=150)
@given(knowledge())
def test_a_text_begins_so_exactly_if_it_can_be_finished(case):
    text, bindings = case
    try:
        grammar = Grammar.from_lark(text)
    except GrammarError as error:
        assert "can't be eliminated" in error.message or "can ever be complete" in error.message
        return
    bound = grammar.bind(**bindings)
    listed = Language(bound, LONGEST)
    assume(len(listed.texts) < 4_000)
    try:
        start = bound.automaton.start
    except GrammarError as error:
        assert error.message == "with these bindings no text can be complete"
        assert not listed.texts
        event("no text at all")
        return
    event("whole paths" if "_STEP" in bindings else "one action")
    work = [(start, b"")]
    found = set()
    while work:
        state, begun = work.pop()
        if state.accepting:
            found.add(begun)
        if begun not in listed.prefixes:
            whole = begun + completion(bound, begun)
            assert len(whole) > LONGEST, f"{begun!r} begins no text"
        assert state.accepting or state.first(), f"dead end after {begun!r}"
        if len(begun) < LONGEST:
            work += [(state.step(b), begun + bytes((b,))) for b in state.first()]
    assert found == listed.texts
    texts = start.texts(200)  # by runs, where nothing need be chosen; None where there are more, or no end of them
    if texts is not None:
        event("all texts at once")
        assert [text for text in texts if len(text) <= LONGEST] == sorted(found)

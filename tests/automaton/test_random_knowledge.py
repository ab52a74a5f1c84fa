"""Random small action knowledge with random gaps in its bindings, against its texts one by one."""

from __future__ import annotations

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from constrained import Grammar, GrammarError
from tests.automaton.brute import Language
from tests.grammar.oracles import completion

LONGEST = 13

STARTS = [
    "goto{PLACE}",
    'at{"a"}',
    '"w"',
    'take{THING, "ab"}',
    '"x" near{SPOT, PLACE}',
    '("y" _STEP | "z") take{THING, "b"}',
]
AT = [
    '"."', "take{THING, p}", "fetch{THING, SPOT, p}", "goto{PLACE}", "open{SPOT, p, at{p}}", '"l" _STEP at{p}',
    "near{SPOT, p}", '"?" (take{THING, p} | fetch{THING, SPOT, p}) p', '("+" use{TOOL, p})~0..2 "!"', "pass{p, PLACE}",
    "goto{another{PLACE, p}}", '"b" before{PLACE, p}', "pass{first{PLACE}, next{PLACE, p}}", "take{here{THING, p}, before{PLACE, p}}",
    '"i" another{here{SPOT, p}, p}', "use{another{here{TOOL, p}, \"1\"}, PLACE}", "goto{another{another{PLACE, p}, \"a\"}}",
]  # fmt: skip
WITH = [
    '"d" t', "put{t, SPOT, p}", "use{TOOL, t}", "use{TOOL, t} use{TOOL, p}", "open{SPOT, p, with{t, p}}", "carry{t, PLACE}",
    '"(" keep{use{TOOL, t}} ")"', "[use{TOOL, t}] \"#\" p",
]  # fmt: skip
RULES = """
%import relations (another, before, first, next)
%import relations.at -> here
%declare _STEP PLACE THING SPOT TOOL
goto{p}: "g" p _STEP at{p}
take{t, p}: "t" t _STEP with{t, p}
fetch{t, s, p}: "f" t s _STEP with{t, s}
put{t, s, p}: "p" t s _STEP at{p}
open{s, p, then}: "o" s _STEP then
carry{t, p}: "c" p _STEP with{t, p}
near{s, p}: "n" s p [take{THING, s}]
pass{p, q}: q p use{TOOL, q} p
use{o, t}: "u" o t
keep{g}: g | "k" g
"""

some = lambda values: st.lists(st.sampled_from(values), max_size=2, unique=True)  # noqa: E731
alternatives = lambda values: st.lists(st.sampled_from(values), min_size=1, max_size=3, unique=True)  # noqa: E731


@st.composite
def knowledge(draw):
    text = RULES + "".join(
        f"{head}: {' | '.join(draw(alternatives(parts)))}\n"
        for head, parts in (("start", STARTS), ("at{p}", AT), ("with{t, p}", WITH))
    )
    places, things = ["a", "ab", "b"], ["m", "a"]
    bindings = {
        "PLACE": draw(st.lists(st.sampled_from(places), min_size=1, unique=True)),
        "THING": draw(st.dictionaries(st.sampled_from(places), some(things))),
        "SPOT": draw(st.dictionaries(st.sampled_from(places), some(places))),
        "TOOL": draw(st.dictionaries(st.sampled_from([*places, *things]), some(["1", "12", ""]))),
    }
    if draw(st.booleans()):
        bindings["_STEP"] = "\n"
    return text, bindings


@settings(max_examples=300)
@given(knowledge())
def test_a_text_begins_so_exactly_if_it_can_be_finished(case):
    text, bindings = case
    try:
        grammar = Grammar.from_lark(text)
    except GrammarError as error:
        assert "can't be turned round" in error.message or "can ever be complete" in error.message
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

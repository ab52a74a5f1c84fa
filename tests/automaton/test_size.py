"""How much is made: what generation reaches, not what the grammar could."""

from __future__ import annotations

import numpy as np
import pytest

from constrained import ActionKnowledge, Grammar, Vocabulary, compile_grammar
from constrained.automaton import native

BYTES = Vocabulary([*(bytes((b,)) for b in range(256)), b"go to ", b"take ", b" from ", b""], [259])
PLACES = [f"shelf {i}" for i in range(1, 51)]
THINGS = [f"mug {i}" for i in range(1, 101)]


def positions(compiled) -> int:
    return len(compiled.automaton.positions)


def view(at: str) -> dict:
    """50 receptacles, 100 objects of which half are here."""
    here = [at, PLACES[0] if at != PLACES[0] else PLACES[1]]
    return {
        "RECEPTACLE": [p for p in PLACES if p not in here],
        "REACH": {at: here},
        "OBJECT": {here[0]: THINGS[:50], here[1]: THINGS[50:]},
        "CLOSED": {at: here[1:]},
        "FITS": {at: here},
        "EXAMINABLE": {at: here + THINGS[:9]},
        "CLEANER": {at: here[:1]},
    }


def written(compiled, text: str) -> int:
    """Positions after a mask at every byte of `text`."""
    matcher = compiled.matcher()
    for byte in text.encode():
        mask = np.zeros((1, BYTES.words), np.int32)
        matcher.fill_bitmask(mask)
        assert matcher.advance(byte), text
    matcher.allowed_token_ids()
    assert matcher.is_complete
    return positions(compiled)


def test_a_house_of_50_receptacles_and_100_objects():
    knowledge = ActionKnowledge.from_lark("household").bind_view(view(PLACES[0]))
    compiled = compile_grammar(knowledge.next_action(), BYTES)
    assert positions(compiled) < 20, "compiling makes the first positions, no more"
    assert written(compiled, "go to shelf 17") < 120
    for place, action in (
        ("shelf 17", "take mug 77 from shelf 1"),
        ("shelf 17", "open shelf 1"),
        ("shelf 17", "put mug 77 in/on shelf 17"),
    ):
        knowledge = knowledge.after("go to shelf 17") if not knowledge.path else knowledge
        knowledge = knowledge.bind_view(view(place))
        compiled = compile_grammar(knowledge.next_action(), BYTES)
        assert positions(compiled) < 40
        assert written(compiled, action) < 250
        knowledge = knowledge.after(action)


def test_whole_paths_in_that_house():
    """With `_STEP` bound, 5,000 and more situations lie ahead; only those on the way are made."""
    knowledge = ActionKnowledge.from_lark("household")
    everywhere = {
        "REACH": {p: [p] for p in PLACES},
        "OBJECT": {p: THINGS[i::50] for i, p in enumerate(PLACES)},
        "FITS": {p: [p] for p in PLACES},
    }
    none = {s: {} for s in knowledge.grammar.slots}
    grammar = knowledge.grammar.bind(**{**none, "RECEPTACLE": PLACES, **everywhere, "_STEP": "\n"})
    compiled = compile_grammar(grammar, BYTES)
    assert positions(compiled) < 20
    assert written(compiled, "go to shelf 5\ntake mug 55 from shelf 5\ngo to shelf 9\nput mug 55 in/on shelf 9\n") < 500


def made(places: int, things: int, text: str) -> dict[str, list[int]]:
    """What is made, of each kind: by compiling, by the first mask, by all masks along `text`."""
    where, what = [f"shelf {i}" for i in range(10, 10 + places)], [f"mug {i}" for i in range(10, 10 + things)]
    rules = (
        "%import relations (another)\n%declare PLACE THING\n"
        'start: goto{PLACE}\ngoto{p}: "go to " p ", " (goto{another{PLACE, p}} | take{THING, p})\n'
        'take{t, p}: "take " t " from " p ", " put{t, another{PLACE, p}}\nput{t, p}: "put " t " on " p\n'
    )
    grammar = Grammar.from_lark(rules).bind(PLACE=where, THING=dict.fromkeys(where, what))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "kernel", None)
        compiled = compile_grammar(grammar, BYTES)
    matcher, counts = compiled.matcher(), []
    for byte in (None, None, *text.encode()):
        if len(counts) > 0:
            matcher.allowed_token_ids()
        assert byte is None or matcher.advance(byte)
        automaton = compiled.automaton
        counts.append(
            [len(automaton.positions), len(automaton.states), len(automaton.frames), automaton.frames.env_count]
        )
    kinds = zip(*(counts[0], counts[1], counts[-1]))
    return dict(zip(("positions", "states", "frames", "parameters"), map(list, kinds)))


def test_a_whole_path_in_a_house_of_50_places_and_100_things_at_each():
    """5,000 pairs, 250,000 situations: texts are read in as many places as in a small house, and the rest is a sum."""
    path = "go to shelf 12, go to shelf 11, take mug 19 from shelf 11, put mug 19 on shelf 13"
    small, large, double = made(5, 10, path), made(50, 100, path), made(100, 200, path)
    for kind in ("positions", "states"):
        compiled, first, whole = large[kind]
        assert compiled <= small[kind][0] and first <= small[kind][1] and whole <= small[kind][2] + 30, kind
    for kind in ("frames", "parameters"):
        assert max(large[kind]) < 5 * (50 + 100), kind
        assert all(twice <= 2 * once + 10 for once, twice in zip(large[kind], double[kind])), kind


@pytest.mark.parametrize(
    ("grammar", "text", "most"),
    [
        (Grammar.from_regex("[^\\n]{1,100000}\n"), "free text of any length\n", 80),
        (Grammar.from_regex("([a-z]{1,20} ){1,5000}[.]"), "a few words in a row .", 200),
        (Grammar.from_choices([f"item {i}" for i in range(20_000)]), "item 19999", 60),
        (Grammar.from_lark('start: "a" start | "b"\n'), "a" * 300 + "b", 8),
        (Grammar.from_lark('start: start "," "a" | "a"\n'), "a" + ",a" * 200, 12),
        (Grammar.from_lark('start: "a" odd | "."\nodd: "b" start\n'), "ab" * 200 + ".", 10),
    ],
)
def test_positions_grow_with_what_differs_not_with_counts(grammar, text, most):
    assert written(compile_grammar(grammar, BYTES), text) <= most


def test_counts_far_from_their_end_share_masks():
    compiled = compile_grammar(Grammar.from_regex("[a-z]{1,5000}!"), BYTES)
    matcher = compiled.matcher()
    for _ in range(300):
        matcher.allowed_token_ids()
        assert matcher.advance(ord("x"))
    assert len(compiled.masks._ids) < 8, "one mask for all that is further off than the longest token reaches"

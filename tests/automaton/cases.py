"""Random action knowledge with gaps in its bindings, and grammars with texts to read, for several test modules."""

from __future__ import annotations

from hypothesis import strategies as st

from constrained import ActionKnowledge, Grammar

STARTS = [
    "goto{PLACE}",
    'at{"a"}',
    '"w"',
    'take{THING, "ab"}',
    '"x" near{SPOT, PLACE}',
    '("y" _STEP | "z") take{THING, "b"}',
]
AT = [
    '"."',
    "take{THING, p}",
    "fetch{THING, SPOT, p}",
    "goto{PLACE}",
    "open{SPOT, p, at{p}}",
    '"l" _STEP at{p}',
    "near{SPOT, p}",
    '"?" (take{THING, p} | fetch{THING, SPOT, p}) p',
    '("+" use{TOOL, p})~0..2 "!"',
    "pass{p, PLACE}",
    "goto{another{PLACE, p}}",
    '"b" before{PLACE, p}',
    "pass{first{PLACE}, next{PLACE, p}}",
    "take{here{THING, p}, before{PLACE, p}}",
    '"i" another{here{SPOT, p}, p}',
    'use{another{here{TOOL, p}, "1"}, PLACE}',
    'goto{another{another{PLACE, p}, "a"}}',
]
WITH = [
    '"d" t',
    "put{t, SPOT, p}",
    "use{TOOL, t}",
    "use{TOOL, t} use{TOOL, p}",
    "open{SPOT, p, with{t, p}}",
    "carry{t, PLACE}",
    '"(" keep{use{TOOL, t}} ")"',
    '[use{TOOL, t}] "#" p',
]
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


STEP = (
    r"ActionPath [0-9]{1,2}: Start(->(Retrieve|Search|Lookup|Finish)\[[^\]\n]{1,60}\]){0,8}\n"
    r"Thought [0-9]{1,2}: [^\n]{1,300}\nAction [0-9]{1,2}: (Retrieve|Search|Lookup|Finish)\[[^\]\n]{1,60}\]"
)
HOUSE = Grammar.from_lark(
    '%declare PLACE THING\nstart: "> " take{THING, PLACE} | "> go to " PLACE\ntake{t, p}: "take " t " from " p " and say " t\n'  # noqa: E501
).bind(
    PLACE=["desk 1", "desk 10", "side table 2"],
    THING={"desk 1": ["mug 1", "mug 12", "crème brûlée"], "desk 10": ["mug 1"], "side table 2": []},
)

# name: (grammar, texts it has been read to)
CASES = {
    "a step": (
        Grammar.from_regex(STEP),
        (
            "",
            "Act",
            "ActionPath 3: Start->Search[Milhouse]",
            "ActionPath 3: Start\nThought 3: I",
            "ActionPath 3: Start->Sear",
        ),
    ),
    "near the end of a bounded text": (
        Grammar.from_regex(r"Search\[[^\]\n]{1,60}\]!"),
        ("Sear", "Search[", *("Search[" + "é" * count for count in (1, 40, 57, 58, 59, 60))),
    ),
    "inside a character": (
        Grammar.from_regex(r"[^\]\n]{1,9}\]|中[一-俿]{2}"),
        (b"\xe4", b"\xe4\xb8", b"\xf0\x9f", b"\xc3", "中".encode() + b"\xe4\xbe", b"12345678\xe2\x80"),
    ),
    "text at least and at most": (
        Grammar.from_regex("[a-z ]{8,12}(, [a-z ]{3,5}){0,2}[.]"),
        ("", "abcdefg", "abcdefghij", "abcdefghijkl, ab"),
    ),
    "an open object": (
        Grammar.from_json_schema({"properties": {"ab": True, "abc": {"type": "null"}, "name": {"type": "string"}}}),
        ("{", '{"', '{"a', '{"ab', '{"abc', '{"abcd', '{"na', '{"nameé', '{"\\'),
    ),
    "a bounded string": (
        Grammar.from_json_schema({"type": "string", "minLength": 2, "maxLength": 7}),
        ("", '"', '"a', '"ab', '"ab\\', '"abcd\\n', '"abcdefg'),
    ),
    "a pattern of bounded length": (
        Grammar.from_json_schema(
            {"type": "string", "minLength": 2, "maxLength": 9, "pattern": r"^(\S+\s+){0,2}[^a-cé]+$"}
        ),
        ("", '"', '"ab d', '"xyz  \\', '"\\u0', '"\\ud83d\\u', b'"a\xf0\x9f', '"12345678', '"x\\n\u2003é'),
    ),
    "anything": (Grammar.from_regex("(?s).*"), ("", "a\n", b"\xe4\xb8")),
    "ASCII only": (Grammar.from_regex("[ -~]{0,30}"), ("", "a" * 28)),
    "words of any script": (Grammar.from_regex(r"\w+( \w+)*"), ("", "été", "a ")),
    "all but digits": (Grammar.from_regex(r"[^\d]{2,40}7"), ("", "x", "x" * 38)),
    "groups counted": (Grammar.from_regex("(ab|c|de f){3,40}!"), ("", "ab", "cabc", "c" * 38, "c" * 40)),
    "text within text": (
        Grammar.from_regex(r'"([^"\\\n]|\\["\\n]){0,20}"(: [0-9]{1,3})?'),
        ("", '"', '"ab\\', '"ab\\"', '"' + "a" * 19, '"a"'),
    ),
    "text that ends in its own letters": (Grammar.from_regex("[a-z ]{1,20} the end"), ("a", "a th", "a" * 19)),
    "names that begin alike": (
        Grammar.from_choices([f"go to desk {i}" for i in range(1, 130)]),
        ("", "go to", "go to desk 1", "go to desk 12"),
    ),
    "slots tied together": (
        HOUSE,
        ("", "> t", "> take mug 1", "> take cr", "> take mug 1 from desk 1", "> take mug 1 from desk 10 and say "),
    ),
    "an action": (ActionKnowledge.from_lark("hotpotqa").grammar, ("", "Search[", "Search[" + "x" * 198)),
}

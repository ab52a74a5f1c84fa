"""Small grammars with all their texts, and vocabularies cut from those texts."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from constrained import Grammar, Vocabulary
from constrained.grammar.nodes import Choices, LiteralText
from tests.automaton.brute import Language

BYTES = [bytes((b,)) for b in range(256)]

GRAMMARS = {
    "choices": Grammar.from_choices(["go to desk 1", "go to desk 10", "go to desk", "look", ""]),
    "one text": Grammar.from_choices(["abcabc"]),
    "bounded text": Grammar.from_regex("[ab]{1,4}c?"),
    "text at least": Grammar.from_regex("[ab]{3,5}"),
    "text, then text": Grammar.from_regex("[ab]{0,2}[bc]{1,2}"),
    "inside characters": Grammar.from_regex("(é|è|中|丰|😀){1,2}a?"),
    "classes of many bytes": Grammar.from_regex("[é-ì中-丮]{1,2}!"),
    "ambiguous": Grammar.from_regex("(a|ab|abc){1,3}(bc|c)?"),
    "may be empty": Grammar.from_regex("(a?b?){0,2}"),
    "characters, or something else": Grammar.from_regex("([ab]|-c|-d){1,3}e?"),
    "as many as there must be": Grammar.from_regex("([ab]|-[ab]){2}([ab]|-){0,2}"),
    "counted groups": Grammar.from_regex("(ab?c){2,3}"),
    "rules": Grammar.from_lark('start: "(" item ("," item)~0..2 ")"\nitem: "a" | "bb" | "a" "bb"\n'),
    "tied slot": Grammar.from_lark('%declare S\nstart: t{S}\nt{x}: x "-" x\n').bind(S=["a", "ab", "b"]),
    "slot by key": Grammar.from_lark('%declare S P\nstart: p{P}\np{q}: q ":" t{S, q}\nt{s, q}: s\n').bind(
        P=["a", "ab", "b"], S={"a": ["x"], "ab": ["x", "xy"]}
    ),
    "relations": Grammar.from_lark(
        "%import relations (another, before, first, next)\n%declare S\nstart: line{first{S}}\n"
        'line{x}: "R" x "=" (before{S, x} | "(" two{another{S, x}} ")") [line{next{S, x}}]\ntwo{y}: y "," y\n'
    ).bind(S=["b", "a", "ab"]),
    "relations by key": Grammar.from_lark(
        "%import relations (another, at)\n%declare S G P\nstart: p{P}\n"
        'p{q}: at{G, q} "<" q ">" | q another{at{S, q}, "x"}\n'
    ).bind(
        P=["a", "ab", "b"],
        S={"a": ["y", "x", "xy"], "b": ["x"]},
        G={"a": ["u"], "ab": Grammar.from_choices(["u", "v"])},
    ),
    "unbound step": Grammar.from_lark('%declare _STEP\nstart: "ab" _STEP start | "a" | "abc" _STEP\n'),
}
TEXTS = {name: Language(grammar).texts for name, grammar in GRAMMARS.items()}


def vocabularies(name: str) -> dict[str, Vocabulary]:
    """Of many kinds, cut from a language's own texts."""
    texts = sorted(TEXTS[name])
    rnd = random.Random(name)
    pieces = {
        t[i:j] for t in texts[:: max(1, len(texts) // 20)] for i in range(len(t)) for j in range(i + 1, len(t) + 1)
    }
    pieces = rnd.sample(sorted(pieces), min(30, len(pieces))) + rnd.sample(
        sorted({t for t in texts if t}), min(3, len(texts) - (b"" in texts))
    )
    letters = sorted({bytes((b,)) for t in texts for b in t})
    # A special token may be written where it is a string of the grammar: these are pieces of texts, but no strings.
    kept = [b"<s>", *letters, *pieces, b"a", b""]
    special = [i for i, token in enumerate(kept) if token in pieces and token not in _strings(GRAMMARS[name])][:2]
    return {
        "bytes": Vocabulary([*BYTES, b""], [256]),
        "bytes and pieces": Vocabulary([*pieces, b"</s>", *BYTES, b"zz"], [len(pieces)]),
        "equal tokens": Vocabulary([*pieces, *letters, *pieces[:9], *letters[:3], b"", b""], [len(pieces) * 2]),
        "only pieces": Vocabulary([b"", *pieces, b"zz"], [0]),
        "only a few pieces": Vocabulary([*pieces[:6], b"<eos>"], [6]),
        "letters but one": Vocabulary([*letters[1:], *pieces[:12], b""], [len(letters) + 11]),
        "several EOS, special ids, wide": Vocabulary(
            kept, [len(letters) + len(pieces) + 2, 300, 0], [*special, 299], size=333
        ),
    }


def _strings(grammar: Grammar) -> set[bytes]:
    found = [
        node for rule in grammar.all_rules().values() for node in rule.nodes if isinstance(node, (LiteralText, Choices))
    ]
    texts = [(node.data, node.strings) for node in found if isinstance(node, LiteralText)]
    texts += [item for node in found if isinstance(node, Choices) for item in node.strings.items()]
    return {text[start:end] for text, spans in texts for start, end in spans}


letters = st.sampled_from(["a", "b", "é", "[ab]", "[aé]", "(a|é)", "(ab|a)", "[^c]"])
parts = st.tuples(letters, st.sampled_from(["", "", "?", "{2}", "{0,2}", "{1,3}"])).map("".join)
patterns = st.lists(st.lists(parts, min_size=1, max_size=3).map("".join), min_size=1, max_size=2).map("|".join)
tokens = st.lists(
    st.sampled_from(
        [
            "a",
            "b",
            "aa",
            "ab",
            "ba",
            "aab",
            "é",
            "aé",
            "éa",
            "éé",
            "c",
            "abé",
            b"\xc3",
            b"\xa9",
            b"a\xc3",
            b"\xa9a",
            b"\xa9\xc3",
        ]
    ),
    min_size=1,
    max_size=12,
)

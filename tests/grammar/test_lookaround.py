"""Regexes that look around: exactly `re`'s language, or a refusal with an example.

`re` itself is the oracle.
"""

# one case, one line

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings

from constrained import Grammar, GrammarError, LimitError, Limits, Vocabulary, compile_grammar
from constrained.grammar import nodes
from constrained.grammar.source import SourceSpan
from tests.automaton.brute import expected_mask, finishing
from tests.grammar.looking import ALPHABET, patterns
from tests.grammar.oracles import assert_same_language, words

I, S, A, M = re.IGNORECASE, re.DOTALL, re.ASCII, re.MULTILINE  # noqa: E741  # as in `re`

PATTERNS = [
    (r"a(?=b)b", 0, "ab", 4),
    (r"a(?=b).", 0, "abc", 3),
    (r"a(?!b).", 0, "abc", 3),
    (r"(?!if\b)[a-z]+", 0, "ifx", 5),
    (r"(?!(?:if|in)\b)[a-z]+", 0, "ifn", 4),
    (r"(?<=a)b|ab", 0, "ab", 3),
    (r"a*(?<=aa)b", 0, "ab", 5),
    (r'"(?:(?!").)*"', 0, '"a\n', 5),
    (r'"(?:(?!ab).)*"', 0, '"ab', 6),
    (r"/\*(?:(?!\*/)[\s\S])*\*/", 0, "/*a", 7),
    (r'".*?(?<!\\)(\\\\)*?"', 0, '"\\a', 6),
    (r'"""(?!").*?(?<!\\)(\\\\)*?"""', 0, '"\\', 8),
    (r"\bfoo\b|a\b.\b", 0, "foa -", 3),
    (r"(?:\b\w+\b ?)+", 0, "ab ", 5),
    (r"\w+\b.\b\w*", 0, "aé -", 4),
    (r"\w+\b.\b\w*", A, "aé -", 4),
    (r"a\Bb|\B|\Ba", 0, "ab", 3),
    (r"(?:\B-|\Ba|b)*", 0, "ab-", 5),
    (r"a$\n?", 0, "a\n", 3),
    (r"(?:a$|\n)*", 0, "a\n", 5),
    (r"(?:^a*$\n?)+", M, "a\n", 5),
    (r"a$(\nb)?", M, "ab\n", 4),
    (r"(?:^a|\nb|c)*", M, "abc\n", 5),
    (r"(?:\Aa|b\Z|a)*", M, "ab\n", 4),
    (r"(?:a^b|a$b)?c", 0, "abc", 3),
    (r"(?:a|^)b(?:$|c)", 0, "abc\n", 4),
    (r"(a$)?", 0, "a\n", 3),
    (r"a\b|\Bb", 0, "ab ", 3),
    (r"(?:(?=a)a|b)*", 0, "ab", 5),
    (r"(?=.*\d)(?=.*[a-z])[a-z0-9]{2,4}", 0, "a1-", 5),
    (r"(?!.*aa)[ab]*", 0, "ab", 6),
    (r"(?!.*(?:ab|ba)$)[ab]*", 0, "ab", 6),
    (r"(?<!a(?=bb))b*a?b*", 0, "ab", 6),
    (r"(a|(?<=a(?=ba))b|b(?!b))*", 0, "ab", 7),
    (r"(?:(?<=(?<!a)b)a|b)*", 0, "ab", 6),
    (r"(?:(?<!(?<=a)b)a|b)*", 0, "ab", 6),
    (r"(?:a|b|(?<=a.a)c)*", 0, "abc", 5),
    (r"(?:a|(?<=aa|ba)b|b(?<!bbb))*", 0, "ab", 7),
    (r"x(?<=^x)y", 0, "xy", 3),
    (r"(?!)|a", 0, "a", 2),
    (r"(?=)a(?<=)", 0, "a", 2),
    (r"(?:a(?!a)|b(?!b)){1,4}", 0, "ab", 6),
    (r"(?:a?(?!a)){3}b?", 0, "ab", 6),
    (r"(?:(?=a)a?){3}", 0, "ab", 6),
    (r"(?:(?=a)a?|b){2,3}c?", 0, "abc", 5),
    (r"((?!b)|b)*a", 0, "ab", 4),
    (r"(?=(a|b)+c)a*b*c", 0, "abc", 5),
    (r"(?=(?!a)[ab])(?:ba|ab|a)+", 0, "ab", 5),
    (r"(?!(?!a)b)[ab]{2}", 0, "ab", 3),
    (r"\Aa\Z|(?<!b)\Z", 0, "ab", 3),
    (r".*\b.*", 0, "a -", 4),
    (r".*(?<=a.b).*", S, "ab\n", 5),
    (r"(?!AB)[a-c]+", I, "abcABC", 3),
    (r"(?i:(?<!a)b|a)+b?", 0, "aAbB", 4),
    (r"(?:a|ab)(?<!ab)(?:c|bc)", 0, "abc", 4),
    (r"[a-c]{2,4}(?<!b)(?!c)(?:c|d)?", 0, "abcd", 5),
    (r"(?=a|é)\w|(?!\w)[^é]", 0, "aé-", 2),
    (r"(?<=[^a])b|[^b](?<!é)", 0, "aébc", 2),
    (r"\$(?=\d)[\d,]+(?<!,)(?:\.\d\d)?", 0, "$1,.", 6),
]


@pytest.mark.parametrize(("pattern", "flags", "alphabet", "longest"), PATTERNS)
def test_a_pattern_means_what_re_says(pattern, flags, alphabet, longest):
    compiled = re.compile(pattern, flags)
    grammar = Grammar.from_regex(pattern, flags)
    assert assert_same_language(grammar, lambda t: compiled.fullmatch(t) is not None, alphabet, longest)


ATOMIC = [
    (r"(?>a|ab)c", "abc", 4),
    (r"(?>ab|a)b?c", "abc", 5),
    (r"a*+b", "ab", 4),
    (r"(?>a*?)b", "ab", 4),
    (r"(?>a*)ab|b", "ab", 4),
    (r"(?:aba|ab|a){2}+", "ab", 6),
    (r"(?>(?:aba|ab|a){2})", "ab", 6),
    (r"(?>a?b??)+c", "abc", 5),
    (r"(?>(?>a|ab)(?:b|c)?)c", "abc", 5),
    (r"(?=(?>a*)b)[ab]*", "ab", 4),
    (r"(?>(?=ab)a|b)+", "ab", 5),
    (r"(?>(|a)*)b", "ab", 4),
    (r"(?>(?:a??){3})b", "ab", 4),
    (r"(?>(a?){2,3}?)b", "ab", 5),
    (r"(?>a(?!b)|ab)c?", "abc", 4),
    (r"(?>a+)(?<=aa)b", "ab", 5),
    (r'"(?>[^"\\]+|\\.)*+"', '"a\\', 6),
    (r"(?:(?>a|b)(?>ab|a))*", "ab", 6),
    (r"(?<=(?>a|b))c|a", "abc", 3),
]


@pytest.mark.parametrize(("pattern", "alphabet", "longest"), ATOMIC)
def test_an_atomic_group_keeps_to_the_first_way(pattern, alphabet, longest):
    compiled = re.compile(pattern)
    assert assert_same_language(
        Grammar.from_regex(pattern), lambda t: compiled.fullmatch(t) is not None, alphabet, longest
    )


def test_what_a_possessive_repeat_leaves_nothing_of_matches_nothing():
    with pytest.raises(GrammarError, match="matches no text at all"):
        Grammar.from_regex("a*+a")


def test_an_atomic_group_at_the_end_of_a_terminal_sees_what_follows():
    compiled = re.compile(r"(?>a+)(?:,(?>a+))*")
    assert_same_language(
        Grammar.from_lark('start: A ("," A)*\nA: /(?>a+)/\n'), lambda t: compiled.fullmatch(t) is not None, "a,", 6
    )
    assert_same_language(Grammar.from_lark("start: A+\nA: /a++/\n"), lambda t: bool(t) and set(t) == {"a"}, "a,", 5)


@settings(max_examples=120)
@given(patterns)
def test_random_patterns(pattern):
    try:
        compiled = re.compile(pattern)
    except re.error:  # a lookbehind of no fixed width
        with pytest.raises(GrammarError, match="look-behind requires fixed-width pattern"):
            Grammar.from_regex(pattern)
        return
    good = {text for text in words(ALPHABET, 5) if compiled.fullmatch(text)}
    try:
        grammar = Grammar.from_regex(pattern)
    except GrammarError as error:
        assert isinstance(error, LimitError) or ("matches no text at all" in str(error) and not good)
        return
    assert {text for text in words(ALPHABET, 5) if grammar.matches(text)} == good
    begun = {text[:i] for text in good for i in range(len(text) + 1)}
    assert all(grammar.is_prefix(text) for text in begun)


# what it is made into


def test_one_character_looked_at_beside_one_read_stays_a_set():
    """A bounded repeat stays a counter: nothing is unrolled."""
    for pattern in (r'"(?:(?!").){1,100000}"', r'"(?:.(?<!")){1,100000}"', r'"(?:(?![\\])(?!").){1,100000}"'):
        (rule,) = Grammar.from_regex(pattern).rules.values()
        assert any(isinstance(n, nodes.Repeat) and n.high == 100000 for n in nodes.walk(rule.body))


def test_what_comes_after_the_last_assertion_stays_as_it_is_written():
    grammar = Grammar.from_regex(r"(?!if\b)[a-z]{1,100000}")
    assert any(
        isinstance(n, nodes.Repeat) and n.high == 99999 for r in grammar.rules.values() for n in nodes.walk(r.body)
    )
    assert not grammar.nests


@pytest.mark.parametrize(
    ("pattern", "alphabet"), [(r"(?!ab\b)[ab]{1,3}-?", "ab-"), (r"(?:a(?!b)|b|(?<=b)c){1,4}", "abc")]
)
def test_masks_are_exact(pattern, alphabet):
    """After every beginning: the tokens that can be finished, and EOS where the text is whole."""
    texts = {t.encode() for t in words(alphabet, 4) if re.fullmatch(pattern, t)}
    tokens = [b"<eos>", *(t.encode() for t in words(alphabet, 2) if t)]
    vocabulary = Vocabulary(tokens, eos_token_ids=[0], special_ids=[0])
    compiled, fewest = compile_grammar(Grammar.from_regex(pattern), vocabulary), finishing(texts, vocabulary)
    ids = {token: i for i, token in enumerate(tokens)}
    for begun in {t[:i] for t in texts for i in range(len(t) + 1)}:
        matcher = compiled.matcher()
        assert all(matcher.advance(ids[begun[i : i + 1]]) for i in range(len(begun)))
        assert matcher.allowed_token_ids().tolist() == expected_mask(begun, texts, fewest, vocabulary)


def test_action_knowledge_may_look_around():
    grammar = Grammar.from_lark(
        '%declare _STEP\nstart: go | "Finish"\ngo: "Go[" NAME "]" _STEP start\nNAME: /(?!nowhere\\b)[a-z]+/\n'
    )
    assert (
        grammar.is_prefix("Go[nowheres]") and grammar.is_prefix("Go[nowhere") and not grammar.is_prefix("Go[nowhere]")
    )


def test_what_it_is_made_into_knows_where_the_terminal_is_written():
    grammar = Grammar.from_lark('start: A\nA: B+\nB: /a(?!a)/ | "b"\n')
    texts = [n for rule in grammar.rules.values() for n in nodes.walk(rule.body) if isinstance(n, nodes.LiteralText)]
    spans = [SourceSpan(*nodes.place_of(n)) for n in texts]
    assert spans and {(span.definition, span.line, span.column) for span in spans} == {("B", 3, 4)}


# limits

HOSTILE = [
    r"(?=.*a.{30})(?=.*b.{30}).*",
    r".*(?<=a.{12}).*b",
    ".*(?<=" + "a" * 2000 + ")b",
    r"(?!x)" + "(a?){10}" * 20,
    r"(?=a)(((((a?){3}){3}){3}){3}){3}",
    "(?!a{100000}b)a*",
    "(?:(?=a)|b)*" * 50,
    r"(?!(?:a|b)*a(?:a|b){14})[ab]*",
]


@pytest.mark.parametrize("pattern", HOSTILE)
def test_an_automaton_that_grows_too_large_is_refused_by_name(pattern):
    with pytest.raises(LimitError) as caught:
        Grammar.from_regex(pattern)
    assert caught.value.limit == "lookaround"


@pytest.mark.parametrize("pattern", ["(?!c)" + "a?b?" * 450, "(?:" * 60 + "(?=a)a?" + "){2}" * 60])
def test_too_many_optional_parts_are_refused(pattern):
    with pytest.raises(GrammarError, match="too many consecutive parts beside lookaround may be empty"):
        Grammar.from_regex(pattern)


def test_the_limit_may_be_raised():
    pattern = r"(?=.*a.{3})(?=.*b.{3}).*"
    with pytest.raises(LimitError):
        Grammar.from_regex(pattern, limits=Limits(lookaround=1000))
    grammar = Grammar.from_regex(pattern, limits=Limits(lookaround=1_000_000))
    assert grammar.matches("ab" + "c" * 3) and not grammar.matches("ab" + "c" * 2)


def test_a_limit_passed_by_a_terminal_says_where():
    with pytest.raises(LimitError) as caught:
        Grammar.from_lark('start: "a" B ";"\nB: "b" /(?=[ab]*a[ab]{30};)[ab]*/ ";"\n')
    assert (caught.value.limit, caught.value.line, caught.value.column) == ("lookaround", 2, 8)
    assert caught.value.context == 'B: "b" /(?=[ab]*a[ab]{30};)[ab]*/ ";"\n       ^'


def test_too_many_rules_for_what_may_follow_a_token_name_it_and_the_remedy():
    text = 'start: NAME (KEY NAME)*\nKEY: "as" | "cross" | "join" | "select"\n'
    text += "NAME: /(?!(?:as|cross|join|select)\\b)[a-z]+%s/\n"
    with pytest.raises(LimitError) as caught:
        Grammar.from_lark(text % "", limits=Limits(nodes=400))
    assert (caught.value.limit, caught.value.line, caught.value.column) == ("nodes", 3, 7)
    assert r"end the token with \b" in caught.value.hint
    Grammar.from_lark(text % r"\b", limits=Limits(nodes=400))


def test_one_terminal_among_many_neighbours_is_worked_out_once_for_those_it_tells_apart():
    uses = " | ".join(f'"{chr(0x4E00 + i)}" A "{chr(0x4E00 + i)}"' for i in range(300))
    grammar = Grammar.from_lark(f"start: {uses} | A\nA: /(?!if\\b)[a-z]+/\n")
    assert len(grammar.rules) < 6
    assert grammar.matches("一if一") and grammar.matches("ifs") and not grammar.matches("if")


def test_a_token_read_in_many_places_is_written_once():
    places = " | ".join(f'"{number}" WORD "."' for number in range(200))
    grammar = Grammar.from_lark(f"start: {places}\nWORD: /(?!if|else|while)[a-z]+/")
    assert sum(len(rule.nodes) for rule in grammar.rules.values()) < 2_000
    assert grammar.matches("7word.") and not grammar.matches("7while.")

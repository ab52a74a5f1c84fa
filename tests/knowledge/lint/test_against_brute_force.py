"""The checks against plain enumeration, over random files."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrained import Grammar, GrammarError, Vocabulary
from constrained.grammar import nodes as n
from constrained.grammar.regex import regex_node
from constrained.knowledge.lint import ERROR, TokenCover, check_file
from constrained.knowledge.lint.unbounded import bounded_pattern
from tests.grammar.grammars import layered, recursive

# names, and ways that never finish: rules as lists of alternatives of (name or None for text, may be left out)

NAMES = ("start", "ra", "rb", "rc", "rd")

symbol = st.tuples(st.sampled_from([*NAMES, None, None]), st.sampled_from([False, False, True]))
alternative = st.lists(symbol, min_size=1, max_size=3)
files = st.lists(st.lists(alternative, min_size=1, max_size=2), min_size=1, max_size=len(NAMES))


def written(file) -> str:
    def spelled(name, optional):
        text = name or '"x"'
        return f"[{text}]" if optional else text

    return "".join(
        f"{name}: {' | '.join(' '.join(spelled(*s) for s in alternative) for alternative in alternatives)}\n"
        for name, alternatives in zip(NAMES, file)
    )


def reachable(file) -> set[str]:
    found, work = set(), ["start"]
    while work:
        name = work.pop()
        if name not in found:
            found.add(name)
            if NAMES.index(name) < len(file):
                work += [s for alternative in file[NAMES.index(name)] for s, _ in alternative if s]
    return found


def finishes(file, name: str, depth: int) -> bool:
    """Whether a derivation no deeper than `depth` ends; one deeper than there are rules only repeats itself."""
    if depth == 0:
        return False
    return any(
        all(optional or s is None or finishes(file, s, depth - 1) for s, optional in alternative)
        for alternative in file[NAMES.index(name)]
    )


@settings(max_examples=150, deadline=None)
@given(files)
def test_names_and_ways_that_never_finish(file):
    defined = set(NAMES[: len(file)])
    used = {s for alternatives in file for alternative in alternatives for s, _ in alternative if s}
    findings = check_file(written(file)).findings

    def named(code):
        return {re.search(r"'(\w+)'", f.message)[1] for f in findings if f.code == code}

    assert named("undefined-rule") == used - defined
    assert named("unused-rule") == defined - reachable(file)
    if used <= defined:
        stuck = {name for name in reachable(file) if not finishes(file, name, len(NAMES))}
        blamed = named("never-finishes")
        assert blamed <= stuck and bool(blamed) == bool(stuck)
        # who mends all that is blamed has mended all
        mended = [[[(None, False)]] if name in blamed else rule for name, rule in zip(NAMES, file)]
        assert not [f for f in check_file(written(mended)).findings if f.code == "never-finishes"]


@settings(max_examples=100, deadline=None)
@given(st.one_of(layered(), recursive()))
def test_what_is_refused_has_an_error_and_what_is_not_has_none(text):
    try:
        Grammar.from_lark(text)
        refused = False
    except GrammarError:
        refused = True
    errors = {f.code for f in check_file(text).findings if f.severity == ERROR}
    if refused:
        assert errors
    else:
        assert errors <= {"never-finishes", "matches-nothing"}  # in what is left out


# actions that can't be told apart

pieces = st.sampled_from(["a", "b", "ab", "[ab]", "a?", "(?:ab|b)", "a{1,2}", "[^a]"])
patterns = st.lists(pieces, min_size=1, max_size=3).map("".join)
LETTERS = "abc"
TEXTS = ["".join(t) for length in range(1, 7) for t in product(LETTERS, repeat=length)]


@settings(max_examples=150, deadline=None)
@given(st.lists(patterns.filter(lambda p: not re.fullmatch(p, "")), min_size=2, max_size=3))
def test_actions_that_can_be_confused(found):
    names = [f"act{i}" for i in range(len(found))]
    rules = "".join(f"{name}: /{pattern}/ _STEP [start]\n" for name, pattern in zip(names, found))
    findings = check_file(f"%declare _STEP\nstart: {' | '.join(names)}\n{rules}").findings
    texts = {name: {t for t in TEXTS if re.fullmatch(pattern, t)} for name, pattern in zip(names, found)}

    same = {(a, b) for a in names for b in names if a < b and texts[a] & texts[b]}
    assert {tuple(re.findall(r"'(act\d)'", f.message)) for f in findings if f.code == "ambiguous-actions"} == same
    for finding in findings:
        if finding.code == "ambiguous-actions":
            one, other = re.findall(r"'(act\d)'", finding.message)
            assert re.search("`(.*)`", finding.message)[1] in texts[one] & texts[other]
        elif finding.code == "action-begins-another":
            text = re.search("`(.*)`", finding.message)[1]
            one, other = re.findall(r"'(act\d)'", finding.message)
            assert text in texts[one] and any(longer.startswith(text) for longer in texts[other])

    def longer(one, other):
        return any(y.startswith(x) and y != x for x in texts[one] for y in texts[other])

    begins = {(a, b) for a in names for b in names if a != b and longer(a, b)}
    told = {tuple(re.findall(r"'(act\d)'", f.message)) for f in findings if f.code == "action-begins-another"}
    # two that share a text are told of once, as such
    assert told <= begins and set(begins - told) <= same | {(b, a) for a, b in same}
    open_ended = {re.search(r"'(act\d)'", f.message)[1] for f in findings if f.code == "open-ended-action"}
    assert open_ended == {name for name in names if longer(name, name)}


@pytest.mark.parametrize(
    ("character", "expected"),
    [
        ("[a-z+]", ["endless-list"]),  # "]" stands at the end alone, however deeply expressions nest
        ("[a-z+\\]]", ["endless-list", "open-ended-action"]),
    ],
)
def test_an_action_that_nests_without_bound_and_its_last_character(character, expected):
    rules = f'go: "go [" sum "]" _STEP [start]\nsum: NAME | "(" sum ")"\nNAME: /{character}{{1,3}}/\n'
    findings = check_file(f"%declare _STEP\nstart: go\n{rules}").findings
    assert sorted({f.code for f in findings} - {"no-definition-comment"}) == expected


# endless repeats

expressions = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", r"\*", r"[*+]", r"\d"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("(?:{0[0]}|{0[1]})".format),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,}", "{0,3}", "*?", "+?"])).map(
            "(?:{0[0]}){0[1]}".format
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(expressions, st.text("ab*+1", max_size=5))
def test_the_bound_that_is_proposed(pattern, text):
    bounded = bounded_pattern(pattern)
    assert bool(re.fullmatch(bounded, text)) == bool(re.fullmatch(pattern, text))
    assert not any(isinstance(part, n.Repeat) and part.high is None for part in n.walk(regex_node(bounded)))
    if not any(isinstance(part, n.Repeat) and part.high is None for part in n.walk(regex_node(pattern))):
        assert bounded == pattern


# tokens


@settings(max_examples=200, deadline=None)
@given(
    st.sets(st.text("abc", min_size=1, max_size=3).map(str.encode), min_size=1, max_size=4),
    st.text("abc", min_size=1, max_size=4).map(str.encode),
)
def test_what_tokens_can_cover(tokens, data):
    reach = len(data) + 2 * 3
    grown = {b""}
    covered = False
    while grown and not covered:
        grown = {text + token for text in grown for token in tokens if len(text + token) <= reach}
        covered = any(data in text for text in grown)
    assert (TokenCover(Vocabulary(list(tokens), [len(tokens)])).gap(data) is None) == covered

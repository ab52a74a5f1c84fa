"""Every case of the `.cases` files: what an oracle says, what the engine says, and what its masks let through."""

from __future__ import annotations

import random
import re
from functools import lru_cache
from pathlib import Path

import pytest
from lark.exceptions import LarkError

from constrained import Grammar, Vocabulary, compile_grammar
from tests.conformance.cases import LONG, Case, Text, oracle_case, read_cases, unescape
from tests.grammar.chart import Chart
from tests.grammar.oracles import completion, lark_accepts

CASES = [case for path in sorted(Path(__file__).parent.glob("*.cases")) for case in read_cases(path)]
BYTES = [bytes((b,)) for b in range(256)]
SHORT = 60
"""Characters up to which an oracle is asked whether some end completes a text."""


def params(of_engine: bool = True):
    """All cases; those that the engine is known to be wrong about are expected to fail."""
    return [
        pytest.param(
            case,
            id=f"{case.place.split('.')[0]}: {case.name}",
            marks=[pytest.mark.xfail(reason=case.fault, strict=True)] if case.fault and of_engine else [],
        )
        for case in CASES
    ]


def oracle(case: Case, folder: Path):
    """A function from a text to a list: for each length, whether the text's first characters are a whole text."""
    case = oracle_case(case)
    if case.kind == "regex":
        pattern = re.compile(case.body, case.flags)
        return lambda text: [pattern.fullmatch(text[:n]) is not None for n in range(len(text) + 1)]
    if case.kind == "choices":
        values = {unescape(line) for line in case.body.split("\n")}
        return lambda text: [text[:n] in values for n in range(len(text) + 1)]
    return lru_cache(Chart(*written(case, folder)).complete)


def written(case: Case, folder: Path) -> tuple[str, str, str]:
    """A lark grammar's text, its start, and where it stands."""
    source = case.source(folder)
    return (
        (source, case.start, "<string>")
        if isinstance(source, str)
        else (source.read_text("utf-8"), case.start, str(source))
    )


def lark_says(case: Case, folder: Path):
    """lark's parser's own word on a text."""
    text, start, path = written(oracle_case(case), folder)
    return lark_accepts(text, start, source_path=None if path == "<string>" else path)


def judged(case: Case, text: Text) -> str:
    """What the oracles judge in the text's place."""
    return text.small if oracle_case(case).kind == "lark" else text.text


def test_there_are_enough_cases_and_no_two_alike():
    assert len(CASES) >= 400
    names = [case.name for case in CASES]
    assert not {n for n in names if names.count(n) > 1}
    bodies = [(c.kind, c.flags, c.body, c.start, *c.files.values(), *c.binds.items()) for c in CASES]
    assert not {b for b in bodies if bodies.count(b) > 1}
    for case in CASES:
        signs = {t.sign for t in case.texts}
        assert "+" in signs and len({t.text for t in case.texts}) == len(case.texts), case.name
        assert signs - {"+"} or re.fullmatch("every text.*", case.name), case.name


@pytest.mark.parametrize("case", params(of_engine=False))
def test_the_oracles_agree_with_the_labels(case, tmp_path):
    complete = oracle(case, tmp_path)
    for text in case.texts:
        assert complete(judged(case, text))[-1] == (text.sign == "+"), text
    if oracle_case(case).kind == "lark":
        try:
            judge = lark_says(case, tmp_path)
            differs = [t for t in case.texts if judge(judged(case, t)) != (t.sign == "+")]
        except (LarkError, ValueError) as error:
            differs = [error]
        assert bool(differs) == bool(case.chart_only), differs or "lark's parser does not differ"


@pytest.mark.parametrize("case", params())
def test_whole_texts_and_beginnings(case, tmp_path):
    grammar, complete = case.grammar(tmp_path), oracle(case, tmp_path)
    rnd = random.Random(case.name)
    ends = {t.text[i:] for t in case.texts if t.sign == "+" and len(t.text) <= SHORT for i in range(len(t.text))}
    ends = rnd.sample(sorted(ends), min(8, len(ends)))
    for text in case.texts:
        assert grammar.matches(text.text) == (text.sign == "+"), text
        assert grammar.is_prefix(text.text) == (text.sign != "-"), text
        if text.sign == "+" and len(text.text) <= LONG:
            assert all(grammar.is_prefix(text.text[:i]) for i in range(len(text.text))), text
        elif text.sign == "~" and len(begun := judged(case, text)) <= LONG:
            whole = (begun.encode() + completion(grammar, begun.encode())).decode()
            assert complete(whole)[-1], f"nothing completes {text}: not even {whole!r}"
        elif text.sign == "-" and len(text.text) <= SHORT:
            for end in ends:
                assert not complete(text.text + end)[-1], f"{end!r} completes {text}"
        if text.dies is not None:
            assert grammar.is_prefix(text.text[: text.dies]) and not grammar.is_prefix(text.text[: text.dies + 1]), text


@pytest.mark.parametrize("case", params())
def test_masks_let_through_what_is_accepted_however_it_is_cut(case, tmp_path):
    grammar = case.grammar(tmp_path)
    complete = oracle(case, tmp_path)
    rnd = random.Random(case.name)
    vocabulary = pieces(case, rnd)
    matcher = compile_grammar(grammar, vocabulary).matcher()
    eos = vocabulary.eos_token_ids[0]
    for text in case.texts:
        data = text.text.encode()
        whole = whole_at(complete(text.text), text.text) if len(data) <= LONG else {}
        for greed in (0, 0.7, 1) if len(data) <= LONG else (1,):
            matcher.reset()
            at = 0
            for token in cut(data, vocabulary, rnd, greed):
                if len(data) <= LONG:
                    assert matcher.is_complete == (eos in matcher.allowed_token_ids()) == (at in whole), (text, at)
                allowed = token in matcher.allowed_token_ids() if len(data) <= LONG or rnd.random() < 0.02 else None
                went = matcher.advance(token)
                assert allowed in (went, None), (text, at)
                if not went:
                    break
                at += len(vocabulary.tokens[token])
            if text.sign == "+":
                assert at == len(data) and matcher.advance(eos), (text, at)
            elif text.sign == "~":
                assert at == len(data) and not matcher.advance(eos), (text, at)
            else:
                assert at < len(data), text
                if text.dies is not None:
                    lived, died = (len(text.text[: text.dies + i].encode()) for i in (0, 1))
                    assert at < died and (greed or at >= lived), text
    check_a_whole_mask(case, grammar, matcher, vocabulary, rnd)


def check_a_whole_mask(case: Case, grammar: Grammar, matcher, vocabulary: Vocabulary, rnd: random.Random):
    """At the beginning and somewhere inside, the mask holds just the tokens that begin a text."""
    inside = rnd.choice([t.text.encode() for t in case.texts if t.sign == "+" and len(t.text) <= LONG] or [b""])
    for begun in {b"", inside[: rnd.randint(0, len(inside))]}:
        matcher.reset()
        assert all(matcher.advance(byte) for byte in begun)
        expected = [i for i, t in enumerate(vocabulary.tokens) if t and grammar.is_prefix(begun + t)]
        assert [i for i in matcher.allowed_token_ids() if i not in vocabulary.eos_token_ids] == expected, begun


def whole_at(complete: list[bool], text: str) -> set[int]:
    """Lengths in bytes of the beginnings of `text` that are whole texts."""
    return {len(text[:n].encode()) for n, is_whole in enumerate(complete) if is_whole}


def pieces(case: Case, rnd: random.Random) -> Vocabulary:
    """All bytes (a byte's id is its value), pieces of the case's texts cut anywhere, and EOS."""
    found = set()
    for text in case.texts:
        data = text.text.encode()[:LONG]
        found |= {data[i : i + rnd.randint(2, 5)] for i in range(len(data))} - set(BYTES) - {b""}
    chosen = rnd.sample(sorted(found), min(40, len(found)))
    return Vocabulary([*BYTES, *chosen, b""], [256 + len(chosen)])


def cut(data: bytes, vocabulary: Vocabulary, rnd: random.Random, greed: float):
    """Ids of tokens that spell `data`: bytes for greed 0, the longest ones for 1, any in between."""
    longer = {}
    for i, token in enumerate(vocabulary.tokens[256:-1], 256):
        longer.setdefault(token[0], []).append(i)
    at = 0
    while at < len(data):
        fit = [i for i in longer.get(data[at], ()) if data.startswith(vocabulary.tokens[i], at)]
        if fit and rnd.random() < greed:
            token = max(fit, key=lambda i: len(vocabulary.tokens[i])) if greed == 1 else rnd.choice(fit)
        else:
            token = data[at]
        yield token
        at += len(vocabulary.tokens[token])

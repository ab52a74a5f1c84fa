"""The law of the device: at every place a text can come to, it allows what the host's matcher allows."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from constrained import Grammar, Vocabulary, compile_grammar
from constrained.decoding.device import DeviceMatcher, DeviceTables
from constrained.errors import VocabularyError
from tests.automaton.small_grammars import (
    GRAMMARS,
    patterns,
    tokens,
    vocabularies,
)
from tests.decoding.device.walk import DEVICE, side_by_side


@pytest.fixture(params=[0, 3, 256])
def narrow(request, monkeypatch):
    """States as mask rows and classes, as lists, and both in one table."""
    monkeypatch.setattr("constrained.decoding.device.explore.NARROW", request.param)


@pytest.mark.parametrize("name", GRAMMARS)
def test_masks_and_steps_are_the_hosts(name, narrow):
    places = 0
    for vocabulary in vocabularies(name).values():
        try:
            compiled = compile_grammar(GRAMMARS[name], vocabulary)
        except VocabularyError:
            continue
        tables = DeviceTables.build(compiled, device=DEVICE)
        places += len(side_by_side(compiled, tables, most=100))
    assert places > 10


@pytest.mark.parametrize("name", GRAMMARS)
@pytest.mark.parametrize("kind", ["equal tokens", "letters but one", "several EOS, special ids, wide"])
def test_budgets_are_the_hosts(name, kind, narrow):
    vocabulary = vocabularies(name)[kind]
    try:
        compiled = compile_grammar(GRAMMARS[name], vocabulary)
    except VocabularyError:
        return
    tables = DeviceTables.build(compiled, device=DEVICE)
    least = compiled.matcher().fewest_tokens()
    assert int(tables.fewest[tables.start[0]]) == least
    for budget in (least, least + 1, least + 3):
        side_by_side(compiled, tables, budget=budget, most=60)
    if least:
        with pytest.raises(VocabularyError, match=f"row 1: the shortest way to finish takes {least}") as caught:
            DeviceMatcher(tables, 2, budget=[least, least - 1])
        assert caught.value.hint == "raise max_new_tokens"


def test_control_tokens_are_admitted_where_the_host_admits_them(narrow):
    vocabulary = Vocabulary([*(bytes((b,)) for b in range(256)), b"[X]", b""], [257], [256])
    grammar = Grammar.from_lark('start: "a"~0..3 ("[X]" "b" | "[X]" | "c") /[ab\\[]/')
    compiled = compile_grammar(grammar, vocabulary)
    tables = DeviceTables.build(compiled, device=DEVICE)
    assert len(side_by_side(compiled, tables, most=100)) > 10
    assert 256 in tables.ids.tolist() or any(row[8] & 1 for row in tables.masks.tolist())


@settings(max_examples=30)
@given(st.lists(patterns, min_size=1, max_size=3), tokens, st.booleans(), st.integers(0, 4), st.integers(0, 5))
def test_random_grammars_in_one_table(found, words, with_bytes, extra, narrow):
    words = [w.encode() if isinstance(w, str) else w for w in words]
    if with_bytes:
        words += [b"a", b"b", b"\xc3", b"\xa9"]
    vocabulary = Vocabulary([*words, b""], [len(words)])
    compiled = []
    for pattern in found:
        try:
            compiled.append(compile_grammar(Grammar.from_regex(pattern), vocabulary))
        except VocabularyError:
            continue
    if not compiled:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("constrained.decoding.device.explore.NARROW", narrow)
        tables = DeviceTables.build(compiled, device=DEVICE)
    for number, one in enumerate(compiled):
        side_by_side(one, tables, number, most=60)
        least = one.matcher().fewest_tokens()
        side_by_side(one, tables, number, budget=least + extra, most=40)


def test_a_real_vocabulary(narrow):
    """Every token of GPT-2 at every place within a few tokens, under a bound and a budget."""
    from tests.automaton.tokenizers import vocabulary

    grammar = Grammar.from_regex(r"(Search|Lookup)\[[^\]\n]{1,6}\]")
    compiled = compile_grammar(grammar, vocabulary("gpt2"))
    tables = DeviceTables.build(compiled, device=DEVICE)
    assert len(side_by_side(compiled, tables, most=40)) >= 20


def test_a_batch_of_different_grammars_is_its_rows(narrow):
    names = ["choices", "rules", "bounded text", "inside characters"]
    vocabulary = Vocabulary([bytes((b,)) for b in range(256)] + [b"desk", b"ab", b""], [258])
    compiled = [compile_grammar(GRAMMARS[name], vocabulary) for name in names]
    tables = DeviceTables.build(compiled, device=DEVICE)
    order = [2, 0, 3, 1, 0]
    batch = DeviceMatcher(tables, order, budget=[9, 20, 5, 11, 20])
    singles = [DeviceMatcher(tables, [g], budget=b) for g, b in zip(order, [9, 20, 5, 11, 20])]
    torch.manual_seed(0)
    for _ in range(24):
        assert torch.equal(batch.mask(), torch.cat([s.mask() for s in singles]))
        logits = torch.randn(5, vocabulary.size, device=DEVICE)
        chosen = batch.step(logits)
        assert chosen.tolist() == [s.step(logits[i : i + 1]).item() for i, s in enumerate(singles)]
    assert batch.finished.all()

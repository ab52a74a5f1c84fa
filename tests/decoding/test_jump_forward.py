"""Text that must come next is appended in the tokenizer's own words."""

import pytest
from transformers import AutoTokenizer

from constrained import Grammar, Vocabulary, compile_grammar
from constrained.decoding.jump_forward import jump_forward
from tests.data import shared
from tests.decoding.tiny import tiny_tokenizer

BEFORE = "You see a desk 1"
TOKENIZERS = ["gpt2", "phi3-mini", "qwen2.5"]
COMMANDS = [
    "go to drawer 1",
    "go to drawer 10",
    "go to desk 1",
    "take mug 1 from drawer 1",
    "put mug 1 in/on coffeemachine 1",
    "Search[The Simpsons]",
    "use desklamp 1",
    "examiné 中文 2",
]


@pytest.fixture(scope="module", params=TOKENIZERS)
def real(request):
    tokenizer = AutoTokenizer.from_pretrained(shared(f"tokenizers/{request.param}"))
    return tokenizer, Vocabulary.from_tokenizer(tokenizer)


def start(tokenizer_and_vocabulary, grammar):
    tokenizer, vocabulary = tokenizer_and_vocabulary
    return tokenizer, compile_grammar(grammar, vocabulary).matcher()


def spelled(matcher, ids) -> bytes:
    return b"".join(matcher.compiled.vocabulary.tokens[i] for i in ids)


def own_cut(tokenizer, text: str, behind: str) -> list[int]:
    """The tokens the tokenizer cuts `text` into behind `behind`, which must be a place where it cuts."""
    lead = tokenizer.encode(behind, add_special_tokens=False)
    ids = tokenizer.encode(behind + text, add_special_tokens=False)
    assert ids[: len(lead)] == lead
    return ids[len(lead) :]


@pytest.mark.parametrize("lead", ["\nAction 3: ", "Start->go to desk 1->", "\nThought 12: I see é. "])
def test_a_run_is_what_the_tokenizer_says_whichever_command_follows(real, lead):
    tokenizer, matcher = start(real, Grammar.from_choices([lead + command for command in COMMANDS]))
    ids = jump_forward(matcher, tokenizer, BEFORE.encode())
    assert 0 < len(spelled(matcher, ids)) <= len(lead.encode())
    for command in COMMANDS:
        assert own_cut(tokenizer, lead + command, BEFORE)[: len(ids)] == ids


def test_a_text_without_any_choice_is_forced_to_its_end(real):
    text = "\nActionPath 3: Start->go to desk 1->take mug 1 from desk 1 é中"
    tokenizer, matcher = start(real, Grammar.from_choices([text]))
    ids = jump_forward(matcher, tokenizer, BEFORE.encode())
    assert spelled(matcher, ids) == text.encode()
    assert ids == own_cut(tokenizer, text, BEFORE)
    assert matcher.is_complete and matcher.forced_text() == b""


def test_the_end_is_left_to_the_model_where_a_longer_token_reaches_past_it(real):
    tokenizer, matcher = start(real, Grammar.from_choices(["Action 1: go to desk 1", "Action 1: take mug 1"]))
    ids = jump_forward(matcher, tokenizer, b"\n")
    # " go" and " take" are tokens, so the space before them is not cut off from them.
    assert spelled(matcher, ids) == b"Action 1:"
    assert matcher.forced_text() == b" "
    assert jump_forward(matcher, tokenizer, b"\nAction 1:") == []


def test_the_budget_has_the_last_word():
    """The tokenizer's own cut is longer than the shortest one: where that doesn't fit, nothing is forced."""
    tokenizer = tiny_tokenizer()
    vocabulary = Vocabulary(
        [bytes(token) for token in Vocabulary.from_tokenizer(tokenizer).tokens] + [b"zyx"], eos_token_ids=[1]
    )
    matcher = compile_grammar(Grammar.from_choices(["zyx"]), vocabulary).matcher()
    matcher.set_budget(1)
    assert jump_forward(matcher, tokenizer, b"") == []
    assert len(matcher.allowed_token_ids()) == 1
    matcher.set_budget(3)
    assert spelled(matcher, jump_forward(matcher, tokenizer, b"")) == b"zyx"


def test_a_run_that_begins_inside_a_character_is_left_to_the_model():
    tokenizer = tiny_tokenizer(258)  # single bytes only
    matcher = compile_grammar(Grammar.from_choices(["é!"]), Vocabulary.from_tokenizer(tokenizer)).matcher()
    first = int(matcher.allowed_token_ids()[0])
    matcher.advance(first)
    assert jump_forward(matcher, tokenizer, "é".encode()[:1]) == []


def test_a_run_that_ends_inside_a_character_stops_before_it():
    tokenizer = tiny_tokenizer(258)
    matcher = compile_grammar(Grammar.from_choices(["ab é", "ab è"]), Vocabulary.from_tokenizer(tokenizer)).matcher()
    assert matcher.forced_text() == b"ab \xc3"
    assert spelled(matcher, jump_forward(matcher, tokenizer, b"")) == b"ab "


def test_spelled_out_special_tokens_are_not_taken_for_them():
    tokenizer = tiny_tokenizer()
    matcher = compile_grammar(Grammar.from_choices(["a</s>b"]), Vocabulary.from_tokenizer(tokenizer)).matcher()
    assert 1 not in jump_forward(matcher, tokenizer, b"")
    assert matcher.forced_text() in (b"a</s>b", b"</s>b")

"""Texts as tokens: learned where they are to be, as the agents encode them, never cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from constrained.decoding.generation import prompt_ids
from constrained.errors import TrainingError
from constrained.models import load
from constrained.training.encoding import IGNORED, Span, TrainingText, digest, encode_all, encoded
from tests.data import shared
from tests.training.tiny import tiny_model

MIXED = TrainingText(
    (Span("Thought 1: ", False), Span("look\n", True), Span("Seen: desk 1\n", False), Span("go on", True))
)


def learned(loaded, tokens) -> str:
    return loaded.tokenizer.decode([label for label in tokens.labels if label != IGNORED])


def test_only_learned_spans_are_learned_with_the_end(tiny):
    tokens = encoded(tiny, MIXED)
    assert learned(tiny, tokens) == "look\ngo on<|end|>"
    assert tiny.tokenizer.decode(tokens.ids) == "Thought 1: look\nSeen: desk 1\ngo on<|end|>"
    assert all(label in (IGNORED, token) for token, label in zip(tokens.ids, tokens.labels, strict=True))


def test_an_end_after_what_is_not_learned_is_not_learned(tiny):
    spans = (Span("a", False), Span("b c", True), Span("d", False))
    assert learned(tiny, encoded(tiny, TrainingText(spans))) == "b c"
    assert encoded(tiny, TrainingText(spans, ends=False)).ids == encoded(tiny, TrainingText(spans)).ids[:-1]


def test_the_first_token_can_not_be_learned(tiny):
    tokens = encoded(tiny, TrainingText((Span("go to desk 1", True),)))
    assert tokens.labels[0] == IGNORED and tokens.labels[1:] == tokens.ids[1:]


@pytest.fixture(scope="module", params=["models/stories260K", "tokenizers/qwen2.5", "tokenizers/gpt2"])
def other(request):
    folder = shared(request.param)
    if request.param.startswith("models"):
        return load(str(folder))
    return tiny_model(AutoTokenizer.from_pretrained(folder))


@pytest.mark.parametrize("answer", ["go to desk 1", " go to desk 1", "\nAction: é–☃", "1", "x" * 300])
def test_spans_keep_their_bytes_whatever_the_tokenizer(other, answer):
    """SentencePiece puts a space in front of a text; inside one there must be none."""
    text = TrainingText((Span("Once upon a time\n", False), Span(answer, True)), ends=False)
    tokens = encoded(other, text)
    written = b"".join(other.vocabulary.tokens[label] for label in tokens.labels if label != IGNORED)
    assert written == answer.encode()
    prompt = prompt_ids(other, "Once upon a time\n")
    assert list(tokens.ids[: len(prompt)]) == prompt


@given(st.lists(st.tuples(st.text(min_size=1, max_size=20), st.booleans()), min_size=1, max_size=5))
def test_any_text_comes_back(parts):
    loaded = load()
    tokens = encoded(loaded, TrainingText(tuple(Span(*part) for part in parts)))
    spelled = b"".join(loaded.vocabulary.tokens[token] for token in tokens.ids[:-1])
    assert spelled == "".join(text for text, _ in parts).encode()


def test_long_texts_are_left_out_and_counted(tiny):
    long = TrainingText((Span("desk " * 500, False), Span("go", True)))
    kept, left_out = encode_all(tiny, [MIXED, long, MIXED], 4096)
    assert [text.ids for text in kept] == [encoded(tiny, MIXED).ids] * 2 and left_out == 1
    with pytest.raises(TrainingError, match=r"(?s)longer than 256 tokens \(the context of .*use a model with a longer"):
        encode_all(tiny, [long], 4096)
    with pytest.raises(
        TrainingError, match=r"(?s)longer than 5 tokens \(max_length\); the shortest has .*raise max_length"
    ):
        encode_all(tiny, [MIXED], 5)


def test_nothing_to_learn_is_said(tiny):
    with pytest.raises(TrainingError, match="no text to tune on"):
        encode_all(tiny, [], 100)
    with pytest.raises(TrainingError, match="text 2 has nothing to learn"):
        encode_all(tiny, [MIXED, TrainingText((Span("a", False),))], 100)


def test_a_digest_tells_labels_order_and_tokens_apart(tiny):
    a, b = (encoded(tiny, TrainingText((Span("x", False), Span(text, True)))) for text in ("a", "b"))
    other = encoded(tiny, TrainingText((Span("x", False), Span("a", False), Span("", True))))
    assert a.ids == other.ids
    assert len({digest(texts) for texts in ([a, b], [b, a], [a], [other, b])}) == 4
    assert digest([a, b]) == digest([a, b])

"""What search sees of a text: its words, and keys by which titles are found."""

from hypothesis import given
from hypothesis import strategies as st

from constrained.environments.question.passages import cut_sentences
from constrained.environments.text_search import (
    MAX_CHARACTERS,
    MAX_TERMS,
    clean_title,
    cut_words,
    name_key,
    query_terms,
    title_key,
)  # fmt: skip


def test_words_are_what_lies_between_signs():
    assert cut_words('Foley & Lardner\'s "Heroes" (1977)') == ["Foley", "Lardner", "s", "Heroes", "1977"]
    assert cut_words("Łódź, 東京は हिन्दी") == ["Łódź", "東京は", "हिन्दी"]
    assert cut_words("caf\u0065\u0301") == ["café"]


def test_a_querys_stop_words_go_unless_there_is_nothing_else():
    assert query_terms("Who was the Doctor in Doctor Who") == ["doctor"]
    assert query_terms("The Who") == ["the", "who"]


def test_a_query_has_few_words_however_long_it_is():
    assert len(query_terms(" ".join(map(str, range(10_000))))) == MAX_TERMS
    assert query_terms("x" * 10**6) == ["x" * MAX_CHARACTERS]


def test_titles_are_found_whatever_their_case_spaces_and_entities():
    assert clean_title("Foley_&amp;_Lardner ") == "Foley & Lardner"
    assert title_key("  FOLEY &amp; lardner") == title_key("Foley & Lardner")
    assert title_key("Straße") == title_key("STRASSE")


def test_a_page_is_named_without_what_tells_it_from_others():
    assert name_key("Mercury (planet)") == name_key("Mercury") == "mercury"
    assert name_key('"Heroes" (album)') == "heroes"
    assert name_key("(500) Days of Summer") == "500 days of summer"
    assert name_key("(album)") == "album"


@given(st.text())
def test_any_text_is_cut_into_words_of_letters_digits_and_marks(text):
    for term in query_terms(text):
        assert term and '"' not in term and not any(c.isspace() for c in term)
    assert all(cut_words(text))


def test_sentences_end_where_the_next_begins():
    text = 'He met Dr. No in the U.S. Army. "Was it 3.5 km?" It was! J. R. Smith left.\nA line'
    assert cut_sentences(text) == [
        "He met Dr. No in the U.S. Army.", '"Was it 3.5 km?"', "It was!", "J. R. Smith left.", "A line",
    ]  # fmt: skip
    assert cut_sentences("東京は首都。大きい。") == ["東京は首都。", "大きい。"]


@given(st.text(alphabet='Ab1.!?"\n ()é', max_size=60))
def test_no_character_but_space_is_lost_between_sentences(text):
    assert "".join("".join(cut_sentences(text)).split()) == "".join(text.split())

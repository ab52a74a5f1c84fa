"""Similarity of short texts: variations of a word problem, spellings of a product's attribute."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from constrained.environments.text_search import cut_words

_LETTERS = re.compile(r"[a-z]+")


class VariationFinder:
    """Finds the questions that another question is a variation of: the same words with other numbers.

    Two questions are variations of each other if they share half of their words (Jaccard similarity of at least 1/2).
    Only questions that share one of their rarest words are compared: two sets with half in common must have such a
    word (prefix filtering; Chaudhuri, Ganti and Kaushik, 2006).
    """

    def __init__(self, questions: Sequence[str]):
        self._words = [question_words(question) for question in questions]
        self._count = Counter(word for words in self._words for word in words)
        self._with_word: defaultdict[str, list[int]] = defaultdict(list)
        for index, words in enumerate(self._words):
            for word in self._rarest(words):
                self._with_word[word].append(index)

    def similar(self, question: str) -> list[int]:
        """The indices of the questions that this one is a variation of, ascending."""
        words = question_words(question)
        candidates = sorted({index for word in self._rarest(words) for index in self._with_word.get(word, ())})
        return [i for i in candidates if 2 * len(words & self._words[i]) >= len(words | self._words[i])]

    def _rarest(self, words: frozenset[str]) -> list[str]:
        # Sets of n and m words with a Jaccard similarity of 1/2 share at least n/2 words, so one of any n - n/2 + 1.
        ordered = sorted(words, key=lambda word: (self._count[word], word))
        return ordered[: len(ordered) - (len(ordered) + 1) // 2 + 1]


def question_words(question: str) -> frozenset[str]:
    """The distinct words of a question, without its numbers."""
    return frozenset(_LETTERS.findall(question.casefold()))


def families(questions: Sequence[str]) -> list[int]:
    """For each question the index of the first one in its family: variations, and variations of these."""
    from networkx import Graph, connected_components  # takes a fifth of a second to import

    finder = VariationFinder(questions)
    variations = Graph((i, other) for i, question in enumerate(questions) for other in finder.similar(question))
    first = {i: min(family) for family in connected_components(variations) for i in family}
    return [first.get(i, i) for i in range(len(questions))]


def token_set_ratio(left: str, right: str) -> int:
    """The similarity of two texts' sets of words, in percent.

    The common words are compared with all words of either text, and those with each other; the best of the three
    counts. It is 100 if all words of one text are in the other.
    """
    first, second = word_set(left), word_set(right)
    if not first or not second:
        return 0
    common = first & second
    if common and (first <= second or second <= first):
        return 100
    shared = " ".join(sorted(common))
    whole = [" ".join([*sorted(common), *sorted(rest)]) for rest in (first - common, second - common)]
    return round(100 * max(ratio(shared, whole[0]), ratio(shared, whole[1]), ratio(*whole)))


def word_set(text: str) -> set[str]:
    """A text's words in lower case."""
    return {word.lower() for word in cut_words(text)}


def ratio(left: str, right: str) -> float:
    """Twice the length of the longest common subsequence over the length of both texts together."""
    length = len(left) + len(right)
    return 2 * _common_subsequence(left, right) / length if length else 1.0


def _common_subsequence(left: str, right: str) -> int:
    """The length of the longest common subsequence, with the table's rows as bits of a number (Hyyrö, 2004)."""
    # Bit i of `row` is 0 where the table's row rises at position i; a carry moves each rise to its first match.
    full = (1 << len(left)) - 1
    positions: dict[str, int] = {}
    for index, character in enumerate(left):
        positions[character] = positions.get(character, 0) | 1 << index
    row = full
    for character in right:
        matched = row & positions.get(character, 0)
        row = (row + matched | row - matched) & full
    return len(left) - row.bit_count()

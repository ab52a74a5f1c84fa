"""Questions as a text environment: look things up in an index of passages, then answer.

The actions are those of ``grammars/hotpotqa.lark`` (KnowAgent, appendix B): Search, Retrieve,
Lookup, Finish.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from constrained.environments.base import Binding
from constrained.environments.question.index import PassageIndex
from constrained.environments.question.passages import Passage
from constrained.environments.question.scores import MEASURES, exact_match
from constrained.environments.question.words import STOP_WORDS, cut_words
from constrained.errors import GameError, ToolError

FOUND = 5
"""Passages that a search lists: the best with its text, the others with their titles."""
SHOWN_CHARACTERS = 1_200
"""Characters of a passage that an observation shows; Lookup reads all of it."""

# These words, and "Search error", are those by which KnowAgent's released code tells such runs.
INVALID = "Invalid Action. There are Search[topic], Retrieve[title], Lookup[keyword], Finish[answer]."
_ACTION = re.compile(r"\s*(Search|Retrieve|Lookup|Finish)\[(.*)\]\s*", re.DOTALL)


@dataclass(frozen=True)
class Question:
    """A question with its answer.

    Attributes
    ----------
    name : str
        Its own among the questions of a file.
    kind : str
        For breakdowns: HotpotQA's level, FEVER's label.
    text, answer : str
    pages : tuple of str
        Titles of the pages that the answer rests on, where known.
    """

    name: str
    kind: str
    text: str
    answer: str
    pages: tuple[str, ...] = ()


class QuestionEnv:
    """Answer one question.

    Parameters
    ----------
    question : Question
    index : PassageIndex
        May be shared by many environments; it opens itself, and `close` leaves it open.
    measures : sequence of str
        Of `scores.MEASURES`; the first is the reward of an answer.
    word : str
        What the text is called: "Question", or "Claim".

    Attributes
    ----------
    task : str
        The question.
    had_effect : bool
        Whether the last action found something, or was an answer. What finds nothing changes nothing: the
        passage read last stays where it was.
    passage : Passage or None
        What was found last, which Lookup reads.
    done : bool
        Whether an answer was given.
    """

    def __init__(
        self, question: Question, index: PassageIndex, measures: tuple[str, ...] = ("f1", "em"), word: str = "Question"
    ):
        self.question, self.index, self.measures = question, index, tuple(measures)
        self.task = question.text
        self._word = word
        self.reset()

    def reset(self) -> str:
        """Forget what was found, and return the question."""
        self.had_effect = True
        self.done = False
        self.passage: Passage | None = None
        self._titles: dict[str, None] = {}
        self._keyword: str | None = None
        self._given = 0
        self._outcome = dict.fromkeys(("success", *self.measures), 0.0)
        return f"{self._word}: {self.question.text}"

    def step(self, action: str) -> tuple[str, float, bool]:
        """Do one action.

        An index that fails or takes too long is answered "Search error", without effect.

        Returns
        -------
        observation : str
            One line.
        reward : float
            Of an answer its score, else 0.
        done : bool
            Whether this was an answer.

        Raises
        ------
        GameError
            The question has been answered.
        """
        if self.done:
            raise GameError("the question has been answered", hint="call reset() to ask it again")
        match = _ACTION.fullmatch(action)
        self.had_effect = False
        if match is None:
            return INVALID, 0.0, False
        name, argument = match[1], " ".join(match[2].split())
        if name == "Finish":
            return self._finish(argument)
        look = {"Search": self._search, "Retrieve": self._retrieve, "Lookup": self._lookup}[name]
        try:
            return look(argument), 0.0, False
        except ToolError as error:
            return f"Search error: {error.message}.", 0.0, False

    def view(self) -> dict[str, Binding]:
        """Return the slots of ``grammars/hotpotqa_seen.lark``.

        Returns
        -------
        dict
            TITLE: titles seen and not open now; KEYWORD: words of the passage found last that
            Lookup still finds. Empty mappings where there are none.
        """
        passage = self.passage
        titles = [title for title in self._titles if passage is None or title != passage.title]
        words: dict[str, None] = {}
        if passage is not None:
            words = {word: None for word in cut_words(passage.text) if word.lower() not in STOP_WORDS}
            if self._keyword is not None and self._given == len(self._sentences_with(self._keyword)):
                words = {word: None for word in words if word.lower() != self._keyword.lower()}
        return {"TITLE": titles or {}, "KEYWORD": list(words) or {}}

    def outcome(self) -> dict[str, float]:
        """Return success (an exact match) and the measures; all 0 while there is no answer."""
        return dict(self._outcome)

    def memory(self, first_observation: str) -> None:
        """Return None: what was found is the history."""
        return

    def close(self) -> None:
        """Nothing to free: the index serves others, too."""

    def _search(self, topic: str) -> str:
        found = self.index.search(topic, FOUND)
        if not found:
            return f"Nothing was found about {topic!r}."
        self._titles.update(dict.fromkeys(passage.title for passage in found))
        others = "; ".join(passage.title for passage in found[1:])
        return self._open(found[0]) + (f" Also found: {others}." if others else "")

    def _retrieve(self, title: str) -> str:
        page = self.index.page(title)
        if page is not None:
            self._titles[page.title] = None
            return self._open(page)
        similar = self.index.similar(title, FOUND)
        self._titles.update(dict.fromkeys(similar))
        others = f"Similar: {'; '.join(similar)}." if similar else "Nothing is similar."
        return f"There is no page {title!r}. {others}"

    def _lookup(self, keyword: str) -> str:
        if self.passage is None:
            return "Lookup error: no passage has been found yet."
        if keyword != self._keyword:
            self._keyword, self._given = keyword, 0
        with_keyword = self._sentences_with(keyword)
        if self._given == len(with_keyword):
            return f"No {'more ' if self._given else ''}results for {keyword!r} in {self.passage.title!r}."
        self._given += 1
        self.had_effect = True
        return f"(Result {self._given} / {len(with_keyword)}) {with_keyword[self._given - 1]}"

    def _finish(self, answer: str) -> tuple[str, float, bool]:
        gold = self.question.answer
        scores = {measure: MEASURES[measure](answer, gold) for measure in self.measures}
        self._outcome = {"success": exact_match(answer, gold), **scores}
        self.done = self.had_effect = True
        return f"Answer is {'CORRECT' if self._outcome['success'] else 'INCORRECT'}", scores[self.measures[0]], True

    def _open(self, passage: Passage) -> str:
        self.passage, self._keyword, self._given = passage, None, 0
        self.had_effect = True
        return f"{passage.title}: {_beginning(passage)}"

    def _sentences_with(self, keyword: str) -> list[str]:
        wanted = keyword.casefold()
        return [s for s in self.passage.sentences if wanted and wanted in s.casefold()]


def _beginning(passage: Passage) -> str:
    """As many whole sentences as are shown, at least the beginning of the first."""
    shown = ""
    for sentence in passage.sentences:
        if len(shown) + len(sentence) >= SHOWN_CHARACTERS:
            return f"{shown or sentence[:SHOWN_CHARACTERS]} …"
        shown += f" {sentence}" if shown else sentence
    return shown

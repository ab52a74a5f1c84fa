"""Question answering as a text environment (look things up in an index of passages, then answer), and its scores.

The actions are those of ``grammars/hotpotqa.lark`` (KnowAgent, appendix B): Search, Retrieve, Lookup, Finish. Answers
are scored by HotpotQA's F1 and exact match, labels by accuracy. Answers are normalised as in SQuAD (Rajpurkar et al.,
2016) and HotpotQA's official evaluation, which counts "yes", "no" and "noanswer" only if they match exactly.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from constrained.environments.base import Binding
from constrained.environments.question.index import PassageIndex
from constrained.environments.question.passages import Passage
from constrained.environments.text_search import STOP_WORDS, cut_words
from constrained.errors import GameError, ToolError
from constrained.knowledge.demonstration import Demonstrated, Demonstration

FOUND = 5
"""Passages that a search lists: the best with its text, the others by title."""
EXAMPLES_TRIED = 50
"""Other questions of which worked examples are made, at most."""
JUDGED = frozenset(("yes", "no", "SUPPORTS", "REFUTES", "NOT ENOUGH INFO"))
"""Answers that no page names."""
SHOWN_CHARACTERS = 1_200
"""Most characters of a passage that an observation shows; Lookup searches all of it."""

# KnowAgent's released code recognises failed actions by these words and by "Search error".
INVALID = "Invalid Action. There are Search[topic], Retrieve[title], Lookup[keyword], Finish[answer]."
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_WHOLE = frozenset(("yes", "no", "noanswer"))
_ACTION = re.compile(r"\s*(Search|Retrieve|Lookup|Finish)\[(.*)\]\s*", re.DOTALL)


@dataclass(frozen=True)
class Question:
    """A question with its answer."""

    name: str  # unique among the questions of a file
    kind: str  # for breakdowns: HotpotQA's level, FEVER's label
    text: str
    answer: str
    pages: tuple[str, ...] = ()  # titles of the pages that the answer rests on, if known
    supporting: tuple[str, ...] = ()  # the sentences that it rests on, if known


class QuestionEnv:
    """Answer one question.

    Parameters
    ----------
    index : PassageIndex
        May be shared by many environments.
    measures : sequence of str
        Keys of `MEASURES`; the first is the reward of an answer.
    word : str
        The word before the question in observations: "Question", or "Claim".
    others : sequence of Question
        Questions with their answers, of which worked examples are made.

    Attributes
    ----------
    task : str
        The question.
    had_effect : bool
        Whether the last action found something or was an answer. An action that finds nothing changes nothing.
    passage : Passage or None
        The passage found last, which Lookup searches.
    done : bool
        Whether an answer was given.
    """

    def __init__(
        self,
        question: Question,
        index: PassageIndex,
        measures: Sequence[str] = ("f1", "em"),
        word: str = "Question",
        others: Sequence[Question] = (),
    ):
        self.question, self.index, self.measures, self.others = question, index, tuple(measures), others
        self.task = question.text
        self._word = word
        self.reset()

    def reset(self) -> str:
        """Forget the passages found, and return the question."""
        self.had_effect = True
        self.done = False
        self.passage: Passage | None = None
        self._titles: dict[str, None] = {}
        self._keyword: str | None = None
        self._given = 0
        self._outcome = dict.fromkeys(("success", *self.measures), 0.0)
        return f"{self._word}: {self.question.text}"

    def supporting(self) -> tuple[str, ...]:
        """The sentences that the answer rests on; empty if the data doesn't name them."""
        return self.question.supporting

    def step(self, action: str) -> tuple[str, float, bool]:
        """Do one action.

        If the index fails or takes too long, the answer is "Search error", without effect.

        Returns
        -------
        observation : str
            One line.
        reward : float
            The score of an answer, else 0.
        done : bool
            Whether the action was an answer.

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
        """The slots of ``grammars/hotpotqa_seen.lark``, as empty mappings if they have no values.

        TITLE: the titles seen, except that of the open passage; KEYWORD: the words of that passage that Lookup still
        finds.
        """
        passage = self.passage
        titles = [title for title in self._titles if passage is None or title != passage.title]
        words: dict[str, None] = {}
        if passage is not None:
            words = {word: None for word in cut_words(passage.text) if word.lower() not in STOP_WORDS}
            if self._keyword is not None and self._given == len(self._sentences_with(self._keyword)):
                words = {word: None for word in words if word.lower() != self._keyword.lower()}
        return {"TITLE": titles or {}, "KEYWORD": list(words) or {}}

    def demonstrations(self, count: int) -> list[Demonstration]:
        """Up to `count` of the other questions as their sources answer them: each page is retrieved, then the answer.

        They share no page with this question. A page that the index lacks, or that doesn't name the answer as far as
        an observation shows it, makes no example; two in a row don't have the same answer.
        """
        result: list[Demonstration] = []
        for other in self.others[:EXAMPLES_TRIED]:
            if len(result) >= count:
                break
            if other.name == self.question.name or set(other.pages) & set(self.question.pages):
                continue
            example = answered(other, self.index, self.measures, self._word)  # type: ignore[arg-type]  # by identity
            if example and not (result and result[-1].steps[-1].action == example.steps[-1].action):
                result.append(example)
        return result

    def outcome(self) -> dict[str, float]:
        """Success (an exact match) and the measures; all 0 until there is an answer."""
        return dict(self._outcome)

    def _search(self, topic: str) -> str:
        match = self.index.search(topic, FOUND)
        if not match:
            return f"Nothing was found about {topic!r}."
        self._titles.update(dict.fromkeys(passage.title for passage in match))
        further = "; ".join(passage.title for passage in match[1:])
        return self._open(match[0]) + (f" Also found: {further}." if further else "")

    def _retrieve(self, title: str) -> str:
        page = self.index.page(title)
        if page is not None:
            self._titles[page.title] = None
            return self._open(page)
        similar = self.index.similar(title, FOUND)
        self._titles.update(dict.fromkeys(similar))
        suggested = f"Similar: {'; '.join(similar)}." if similar else "Nothing is similar."
        return f"There is no page {title!r}. {suggested}"

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
        sentences = self.passage.sentences if self.passage else ()
        return [sentence for sentence in sentences if wanted and wanted in sentence.casefold()]


@lru_cache(maxsize=EXAMPLES_TRIED)
def answered(question: Question, index: PassageIndex, measures: Sequence[str], word: str) -> Demonstration | None:
    """A demonstration of a question's answer; None if the index lacks a page that it needs. Cached."""
    env, steps = QuestionEnv(question, index, measures, word), list[Demonstrated]()
    for action in (*(f"Retrieve[{page}]" for page in question.pages), f"Finish[{question.answer}]"):
        observation, _, _ = env.step(action)
        if not env.had_effect:
            return None
        steps.append(Demonstrated(action, observation))
    observations = " ".join(step.observation for step in steps[:-1])
    shown = question.answer in observations or question.answer in JUDGED
    return Demonstration(question.text, tuple(steps), env.reset()) if len(steps) > 1 and shown else None


def _beginning(passage: Passage) -> str:
    """As many whole sentences as fit in an observation, at least the beginning of the first."""
    shown = ""
    for sentence in passage.sentences:
        if len(shown) + len(sentence) >= SHOWN_CHARACTERS:
            return f"{shown or sentence[:SHOWN_CHARACTERS]} …"
        shown += f" {sentence}" if shown else sentence
    return shown


def normalise(answer: str) -> str:
    """An answer in lower case without punctuation, articles and extra space."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, gold: str) -> float:
    """1.0 if the normalised answers are the same, else 0.0; for labels this is the accuracy."""
    return float(normalise(answer) == normalise(gold))


def f1(answer: str, gold: str) -> float:
    """The harmonic mean of precision and recall of the answer's words, 0 to 1."""
    predicted, wanted = normalise(answer), normalise(gold)
    if predicted != wanted and not _WHOLE.isdisjoint((predicted, wanted)):
        return 0.0
    words, gold_words = predicted.split(), wanted.split()
    same = sum((Counter(words) & Counter(gold_words)).values())
    return 2 * same / (len(words) + len(gold_words)) if same else 0.0


MEASURES: dict[str, Callable[[str, str], float]] = {"f1": f1, "em": exact_match, "accuracy": exact_match}
"""Name in tables -> function of (answer, gold answer)."""

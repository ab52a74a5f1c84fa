"""Question answering: look things up in passages, local or live, then answer."""

from constrained.environments.question.env import Question, QuestionEnv
from constrained.environments.question.index import LocalIndex, PassageIndex
from constrained.environments.question.passages import Collection, Passage, page_collection
from constrained.environments.question.wikipedia import Wikipedia

__all__ = [
    "Collection",
    "LocalIndex",
    "Passage",
    "PassageIndex",
    "Question",
    "QuestionEnv",
    "Wikipedia",
    "page_collection",
]

"""HotpotQA, StrategyQA and FEVER: their questions, the passages that come with them, and the suites.

HotpotQA (Yang et al., 2018) is read from its "distractor" files. StrategyQA (Geva et al., 2021) comes with facts; its
answers are yes or no. FEVER's claims (Thorne et al., 2018) come with the titles of the pages that decide them, but not
with the pages: give FEVER's own dump (``wiki-pages``, see `passages.page_collection`), or use live Wikipedia.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from constrained.environments.data import data_file, fields, is_text_list, read_rows
from constrained.environments.question.env import Question, QuestionEnv
from constrained.environments.question.index import LocalIndex, PassageIndex
from constrained.environments.question.passages import Collection, Passage, fever_text, make_passage, page_collection
from constrained.environments.question.wikipedia import Wikipedia
from constrained.environments.suite import Suite, Task, check_split
from constrained.environments.text_search import clean_title
from constrained.errors import DataError

HOTPOTQA = "hotpotqa/hotpot_train_500_with_context.json.gz"
"""The 500 training questions that KnowAgent learned from: 86 easy, 329 medium, 85 hard."""
STRATEGYQA = "strategyqa/train.json.gz"
"""All 2,061 questions whose answers are public."""
FEVER = "fever/paper_dev_first2000.jsonl.gz"
"""The first 2,000 claims of FEVER's development set."""
FEVER_PAGES = "fever/wiki-pages"
"""The folder of FEVER's pages in the data folder."""

SPLITS = ("local", "live")
"""The sources in which questions are looked up: the passages that come with them, or live Wikipedia."""
LABELS = ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO")


def hotpotqa(
    *, split: str | None = None, limit: int | None = None, seed: int = 0, index: PassageIndex | None = None
) -> Suite:
    """HotpotQA's 500 questions; F1 and exact match within 10 steps, as in KnowAgent.

    Parameters
    ----------
    split : {"local", "live"}, optional
        See `SPLITS`; default: "local".
    limit : int, optional
        Only this many questions, the first ones.
    seed : int
        Has no effect: the questions have a fixed order.
    index : PassageIndex, optional
        Another index to look things up in.

    Raises
    ------
    DataError
        There is no such split, or the data is missing or malformed.
    """
    return _suite("hotpotqa", load_hotpotqa, hotpotqa_paragraphs, split, limit, index, ("f1", "em"))


def hotpotqa_seen(
    *, split: str | None = None, limit: int | None = None, seed: int = 0, index: PassageIndex | None = None
) -> Suite:
    """`hotpotqa` with knowledge that admits only titles and words seen before: Retrieve and Lookup always succeed."""
    suite = hotpotqa(split=split, limit=limit, seed=seed, index=index)
    return replace(suite, name=suite.name.replace("hotpotqa", "hotpotqa_seen"), knowledge="hotpotqa_seen")


def strategyqa(
    *, split: str | None = None, limit: int | None = None, seed: int = 0, index: PassageIndex | None = None
) -> Suite:
    """StrategyQA's 2,061 questions over all their facts; arguments as for `hotpotqa`."""
    return _suite("strategyqa", load_strategyqa, strategyqa_facts, split, limit, index, ("accuracy",))


def fever(
    *, split: str | None = None, limit: int | None = None, seed: int = 0, index: PassageIndex | None = None
) -> Suite:
    """FEVER's first 2,000 development claims within 8 steps, as in WESE; arguments as for `hotpotqa`.

    "local" needs FEVER's dump of Wikipedia in `FEVER_PAGES` of the data folder.

    Raises DataError: as `hotpotqa`, and if there are no pages.
    """
    return _suite("fever", load_fever, _fever_pages, split, limit, index, ("accuracy",), 8, "Claim")


def _fever_pages() -> Collection:
    folder = data_file(FEVER).parents[1] / FEVER_PAGES
    if not folder.exists():
        raise DataError(
            f"FEVER's claims come without their pages, and there is no {folder}",
            hint='put FEVER\'s wiki-pages there, use the split "live", or give index=LocalIndex(page_collection(...))',
        )
    return page_collection(folder)


def _suite(
    name: str,
    load: Callable[[], list[Question]],
    passages: Callable[[], Collection],
    split: str | None,
    limit: int | None,
    index: PassageIndex | None,
    measures: tuple[str, ...],
    steps: int = 10,
    word: str = "Question",
) -> Suite:
    """Make a suite of questions, to look up in `index`, or by the split in live Wikipedia or `passages`."""
    source = check_split(name, split, SPLITS)
    if index is None:
        index = Wikipedia() if source == "live" else LocalIndex(passages())
    else:
        source = "own index"
    every = load()
    questions = every[:limit]
    repeated = [name for name, count in Counter(question.name for question in questions).items() if count > 1]
    if repeated:
        raise DataError(f"{repeated[0]!r} names several questions", "results are kept by name: use each name once")
    tasks = [Task(q.name, q.kind, partial(QuestionEnv, q, index, measures, word, every)) for q in questions]
    return Suite(f"{name}/{source}", name, tasks, steps, ("success", *measures))


def load_hotpotqa(path: str | Path | None = None) -> list[Question]:
    """The questions of a file of HotpotQA with their level as kind; default: `HOTPOTQA`.

    Raises DataError: the file is missing or damaged, or a row is malformed; the message says which.
    """
    questions = []
    for where, row in read_rows(path or data_file(HOTPOTQA)):
        name, level, text, answer = fields(where, row, _id=str, level=str, question=str, answer=str)
        facts = [(clean_title(title), number) for title, number in _pairs(where, row, "supporting_facts", int)]
        titles = tuple(dict.fromkeys(title for title, _ in facts))
        questions.append(Question(name, level, text.strip(), answer.strip(), titles, _sentences(where, row, facts)))
    return questions


def _sentences(where: str, row: dict, facts: list[tuple[str, object]]) -> tuple[str, ...]:
    """The sentences that a row's supporting facts name; some name one more than a paragraph has, which is left out."""
    if "context" not in row:
        return ()
    paragraphs = {clean_title(title): sentences for title, sentences in _pairs(where, row, "context", list)}
    result = []
    for title, number in facts:
        sentences = paragraphs.get(title, [])
        if isinstance(sentences, list) and isinstance(number, int) and 0 <= number < len(sentences):
            result.append(f"{title}: {str(sentences[number]).strip()}")
    return tuple(result)


def hotpotqa_paragraphs(path: str | Path | None = None) -> Collection:
    """The paragraphs of all questions of a file, each once; default: `HOTPOTQA`."""
    return Collection.of_files([Path(path or data_file(HOTPOTQA))], read_paragraphs)


def read_paragraphs(files: list[Path]) -> Iterator[Passage]:
    """Yield the distinct paragraphs of HotpotQA's files in their order. Raises DataError: a row is malformed."""
    seen: set[bytes] = set()  # digests: the training set has 900,000 paragraphs
    for file in files:
        for where, row in read_rows(file):
            for title, sentences in _pairs(where, row, "context", list):
                if not is_text_list(sentences):
                    raise DataError(f"{where}: the paragraph {title!r} is no list of texts")
                passage = make_passage(where, title, sentences)
                digest = hashlib.blake2b(repr(passage).encode(), digest_size=16).digest()
                if digest not in seen:
                    seen.add(digest)
                    yield passage


def _pairs(where: str, row: dict, name: str, kind: type) -> list[tuple[str, object]]:
    """A row's list of [title, something of that type]."""
    [pairs] = fields(where, row, **{name: list})
    for pair in pairs:
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], kind)):
            raise DataError(f"{where}: {name!r} holds {str(pair)[:60]}, which is no title with {kind.__name__}")
    return [(title, value) for title, value in pairs]


def load_strategyqa(path: str | Path | None = None) -> list[Question]:
    """The questions of a file of StrategyQA with the answer as kind; default: `STRATEGYQA`.

    Raises DataError: as `load_hotpotqa`.
    """
    questions = []
    for where, row in read_rows(path or data_file(STRATEGYQA)):
        name, term, text, yes = fields(where, row, qid=str, term=str, question=str, answer=bool)
        answer = "yes" if yes else "no"
        facts = tuple(map(str, row["facts"])) if isinstance(row.get("facts"), list) else ()
        questions.append(Question(name, answer, text.strip(), answer, (clean_title(term),), facts))
    return questions


def strategyqa_facts(path: str | Path | None = None) -> Collection:
    """The facts of a file as passages, one for each term that questions are about; default: `STRATEGYQA`."""
    return Collection.of_files([Path(path or data_file(STRATEGYQA))], read_facts)


def read_facts(files: list[Path]) -> Iterator[Passage]:
    """Yield a passage for each of StrategyQA's terms: the facts of all its questions, each once.

    Raises DataError: a row is malformed.
    """
    facts: dict[str, dict[str, None]] = {}
    first_row: dict[str, str] = {}
    for file in files:
        for where, row in read_rows(file):
            term, listed = fields(where, row, term=str, facts=list[str])
            facts.setdefault(term, {}).update(dict.fromkeys(listed))
            first_row.setdefault(term, where)
    for term, sentences in facts.items():
        if any(sentence.strip() for sentence in sentences):
            yield make_passage(first_row[term], term, sentences)


def load_fever(path: str | Path | None = None) -> list[Question]:
    """The claims of a file of FEVER with their label as kind and answer; default: `FEVER`.

    Raises DataError: as `load_hotpotqa`.
    """
    claims = []
    for where, row in read_rows(path or data_file(FEVER)):
        number, label, text, evidence = fields(where, row, id=int, label=str, claim=str, evidence=list)
        if label not in LABELS:
            raise DataError(f"{where}: the label is {label!r}", hint=f"labels are {', '.join(LABELS)}")
        try:
            titles = [title for annotation in evidence for _, _, title, _ in annotation if title is not None]
            pages = dict.fromkeys(clean_title(fever_text(title)) for title in titles)
        except (TypeError, ValueError, AttributeError) as error:
            raise DataError(f"{where}: 'evidence' is not a list of lists of four: {error}") from error
        claims.append(Question(str(number), label, text.strip(), label, tuple(pages)))
    return claims

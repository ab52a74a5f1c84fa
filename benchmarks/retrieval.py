"""Search for HotpotQA's 500 questions: are the two supporting pages found?

    constrained bench retrieval [--backend NAME] [--passages N] [--json FILE]

The question is the query, and the 4,923 paragraphs of all questions are searched. Recall at k is the share of the two
supporting pages among the first k found; at 1 it can't exceed 0.5. "words" is bm25 alone, "words and names" is the
environment's ranking (constrained/environments/question/index.py, which says how its constants were chosen).
`--passages 100000` adds passages of shuffled sentences, to measure the cost of a larger collection; it doesn't show how
well the pages of a real one are distinguished.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from tqdm import tqdm

from benchmarks.reporting import add_json, describe_machine, markdown, report
from constrained import __version__
from constrained.cli.options import whole_number
from constrained.environments.question.env import Question
from constrained.environments.question.index import BACKENDS, LocalIndex, Store
from constrained.environments.question.passages import Collection, Passage
from constrained.environments.question.suites import hotpotqa_paragraphs, load_hotpotqa
from constrained.environments.text_search import query_terms

DEPTHS = (1, 2, 5, 10)


def by_words(store: Store, query: str, limit: int) -> list[Passage]:
    """The passages that hold most of the query's words, best first."""
    return [passage for passage, _ in store.matching(query_terms(query), limit)]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--backend", action="append", choices=BACKENDS, help="repeatable; default: those installed")
    parser.add_argument("--questions", type=whole_number, metavar="N", help="only the first N")
    parser.add_argument("--passages", type=int, default=0, metavar="N", help="add made-up ones up to N (default: none)")
    add_json(parser)


def run_command(options: argparse.Namespace) -> int:
    installed = [name for name in BACKENDS if name == "sqlite" or find_spec(name)]
    backends = options.backend or installed
    rows = [row for backend in backends for row in measure(backend, options.questions, options.passages)]
    facts = {"command": "constrained bench retrieval", "version": __version__, "machine": describe_machine()}
    return report(table(rows), {**facts, "rows": rows}, options)


def measure(backend: str, most: int | None = None, passages: int = 0, progress: bool = True) -> list[dict]:
    """Build an index in an empty folder and search it, with each ranking.

    Parameters
    ----------
    backend : str
    most : int, optional
        Questions, from the first.
    passages : int
        Passages in all, including made-up ones.
    progress : bool

    Returns
    -------
    list of dict
        Recall at each of `DEPTHS`, seconds to build, bytes on disk, milliseconds a query (mean).
    """
    questions = [question for question in load_hotpotqa() if question.pages][:most]
    paragraphs = padded(hotpotqa_paragraphs(), passages)
    with tempfile.TemporaryDirectory() as folder:
        index = LocalIndex(paragraphs, backend, folder)
        began = time.perf_counter()
        store = index.store
        seconds = time.perf_counter() - began
        held = sum(1 for _ in paragraphs.read())
        size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
        rows = []
        for ranking, search in {"words": partial(by_words, store), "words and names": index.search}.items():
            bar = tqdm(questions, desc=f"{backend}, {ranking}", unit="question", disable=not progress)
            began = time.perf_counter()
            recall = recall_of(search, bar)
            spent = 1000 * (time.perf_counter() - began) / len(questions)
            rows.append({
                "backend": backend, "ranking": ranking, "passages": held, "questions": len(questions), "recall": recall,
                "build seconds": seconds, "bytes": size, "ms/query": spent,
            })  # fmt: skip
        index.close()
    return rows


def padded(collection: Collection, count: int) -> Collection:
    """The collection with made-up passages added up to `count`, always the same ones."""
    return Collection(f"{collection.fingerprint}-{count}", partial(_padded, collection, count))


def _padded(collection: Collection, count: int) -> Iterator[Passage]:
    real = list(collection.read())
    yield from real
    sentences = [sentence for passage in real for sentence in passage.sentences]
    chance = random.Random(0)
    for number in range(len(real), count):
        yield Passage(f"{chance.choice(real).title} {number}", tuple(chance.sample(sentences, 4)))


def recall_of(search: Callable[[str, int], list[Passage]], questions) -> dict[str, float]:
    """The mean share of a question's supporting pages among the first k passages, for each k of `DEPTHS`."""
    recall = dict.fromkeys(DEPTHS, 0.0)
    asked: list[Question] = []
    for question in questions:
        asked.append(question)
        titles = [passage.title for passage in search(question.text, max(DEPTHS))]
        for k in DEPTHS:
            recall[k] += len(set(question.pages).intersection(titles[:k])) / len(question.pages)
    return {str(k): total / len(asked) for k, total in recall.items()}


def table(rows: list[dict]) -> str:
    """The figures as a Markdown table."""
    head = ["backend", "ranking", "passages", *(f"recall@{k}" for k in DEPTHS), "built in", "size", "ms/query"]
    cells = [
        [row["backend"], row["ranking"], f"{row['passages']:,}", *(f"{row['recall'][str(k)]:.3f}" for k in DEPTHS),
         f"{row['build seconds']:.1f} s", f"{row['bytes'] / 1e6:.1f} MB", f"{row['ms/query']:.1f}"]
        for row in rows
    ]  # fmt: skip
    return markdown(head, cells, left=2)

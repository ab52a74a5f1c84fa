"""A local index of passages, built once and kept on disk, with a search for questions that need several pages.

A search by words alone (bm25) finds the page that a question describes, and misses the page that only this first page
mentions. Therefore a passage also gets points for being named in the question, and in the best passages so far, as if
a reader followed a link. That is one hop, as in HotpotQA's bridge questions (Yang et al., 2018, section 2).
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from collections.abc import Collection as Names
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

from constrained.environments.question import sqlite_store, tantivy_store
from constrained.environments.question.passages import Collection, Passage
from constrained.environments.question.sqlite_store import SqliteStore
from constrained.environments.question.tantivy_store import TantivyStore
from constrained.environments.text_search import (
    MAX_CHARACTERS,
    STOP_WORDS,
    cut_words,
    name_key,
    phrase_key,
    query_terms,
    title_key,
)
from constrained.errors import DataError
from constrained.files import cache_folder

Store: TypeAlias = SqliteStore | TantivyStore
"""Passages on disk, found by words or by title."""

BACKENDS: dict[str, tuple[Callable[..., None], Callable[..., Store]]] = {
    "sqlite": (sqlite_store.build, SqliteStore),
    "tantivy": (tantivy_store.build, TantivyStore),
}
"""Name -> functions that build and open a store."""

# The next four were chosen by hand on the 500 questions that `constrained bench retrieval` measures, so its recall is
# somewhat flattered. Neighbouring values (shares of 0.3 to 0.7 and 0.2 to 0.4, 2 to 4 passages) gave a recall at 5 of
# 0.89 to 0.92, words alone 0.78.
CANDIDATES = 60
"""Passages that the search by words alone yields."""
NAMED_IN_QUESTION = 0.5
"""Points for being named in the question, as a share of the best score."""
NAMED_IN_PASSAGE = 0.3
"""Points for being named in one of the best passages, as a share of that passage's score."""
FOLLOWED = 2
"""Number of best passages that are searched for names."""

LONGEST_NAME = 6
"""Most words of a name."""
WORDS_READ = 200
"""Most words of a text that are searched for names."""


@runtime_checkable
class PassageIndex(Protocol):
    """An index in which `QuestionEnv` looks things up. Every text is a valid query; each method may raise ToolError."""

    def search(self, query: str, limit: int = 5) -> list[Passage]:
        """The passages about a topic, a question or a term, best first."""
        ...

    def page(self, title: str) -> Passage | None:
        """The page with this title, ignoring case and spaces."""
        ...

    def similar(self, title: str, limit: int = 5) -> list[str]:
        """Similar titles, most similar first."""
        ...

    def close(self) -> None:
        """Close files and connections; safe to call twice."""
        ...


class LocalIndex:
    """An index on this machine.

    It can be pickled: a worker that receives it opens the same files, or builds its own.

    Parameters
    ----------
    backend : str
        "sqlite" (the standard library's FTS5), or "tantivy" (the extra of that name) for collections of millions: over
        100,000 passages it is ten times faster.
    folder : path-like, optional
        The folder that holds built indexes; default: ``$CONSTRAINED_CACHE``, or ``constrained`` in the user's cache
        folder.

    Raises
    ------
    DataError
        There is no such backend, or it isn't installed. The first query also raises it, if the index can't be built.
    """

    def __init__(self, collection: Collection, backend: str = "sqlite", folder: str | Path | None = None):
        if backend not in BACKENDS:
            raise DataError(f"no index backend {backend!r}", hint=f"there are: {', '.join(BACKENDS)}")
        if backend == "tantivy":
            tantivy_store.import_tantivy()
        self.collection = collection
        self.backend = backend
        self.folder = Path(folder) if folder else cache_folder()
        self._store: Store | None = None

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_store": None}

    @property
    def store(self) -> Store:
        """The passages on disk, which are indexed at the first use."""
        if self._store is None:
            fingerprint, passages = self.collection.fingerprint, self.collection.read
            path = self.folder / f"passages-{fingerprint[:32]}.{self.backend}"
            build, opener = BACKENDS[self.backend]
            self._store = open_or_build(
                path, lambda fresh: build(fresh, passages(), fingerprint), partial(opener, fingerprint=fingerprint)
            )
        return self._store

    def search(self, query: str, limit: int = 5) -> list[Passage]:
        """As `PassageIndex.search`; see `ranked`."""
        return ranked(self.store, query, limit)

    def page(self, title: str) -> Passage | None:
        """As `PassageIndex.page`."""
        return self.store.titled(title_key(title))

    def similar(self, title: str, limit: int = 5) -> list[str]:
        """As `PassageIndex.similar`: titles that share a word with `title`, or else titles of texts that do."""
        # Titles by their words first, because the words of a title may occur in any text.
        terms = query_terms(title)
        matches = self.store.matching(terms, CANDIDATES, titles_only=True) or self.store.matching(terms, limit)
        key = title_key(title[:MAX_CHARACTERS])
        similarity = {p.title: SequenceMatcher(None, key, title_key(p.title)).ratio() for p, _ in matches}
        return sorted(similarity, key=lambda title: -similarity[title])[:limit]

    def close(self) -> None:
        """As `PassageIndex.close`; the next query opens the store again."""
        if self._store is not None:
            self._store.close()
            self._store = None


def ranked(store: Store, query: str, limit: int) -> list[Passage]:
    """The best passages for a question, best first; equally good ones in the store's order."""
    # Words first; then the passages that the question names; then those that the best of these name (one hop).
    scores = dict(store.matching(query_terms(query), max(CANDIDATES, limit)))
    _add_named(scores, store, cut_words(query), NAMED_IN_QUESTION * max(scores.values(), default=1.0))
    for passage, score in sorted(scores.items(), key=lambda item: -item[1])[:FOLLOWED]:
        _add_named(scores, store, cut_words(passage.text), NAMED_IN_PASSAGE * score, source=passage)
    return sorted(scores, key=lambda passage: -scores[passage])[:limit]


def _add_named(
    scores: dict[Passage, float], store: Store, words: Sequence[str], points: float, source: Passage | None = None
) -> None:
    """Add points to the passages that words name; passages with the same name share the points.

    `source`: the passage that the words come from, which gets no points itself. In its running text names begin with a
    capital letter or a digit; a question may be written carelessly.
    """
    # Every sequence of words that may be a name, then those that some passage has, then of these the longest.
    words = words[:WORDS_READ]
    spans: dict[int, dict[int, str]] = defaultdict(dict)  # start -> end -> the words between, as a name's key
    for start, word in enumerate(words):
        if source is None or word[0].isupper() or word[0].isdigit():
            for end in range(start + 1, min(start + LONGEST_NAME, len(words)) + 1):
                spans[start][end] = phrase_key(words[start:end])
        if len(word) < 3 or word.lower() in STOP_WORDS:
            spans[start].pop(start + 1, None)
    named = defaultdict(list)
    for passage in store.named({key for ends in spans.values() for key in ends.values()}):
        named[name_key(passage.title)].append(passage)
    # The name of many passages is worth less: its points are divided by the root of their number.
    for key in _longest(spans, named):
        for passage in named[key]:
            if passage != source:
                scores[passage] = scores.get(passage, 0.0) + points / len(named[key]) ** 0.5


def _longest(spans: dict[int, dict[int, str]], names: Names[str]) -> dict[str, None]:
    """The names in a text from left to right, each as long as possible, without overlaps."""
    longest: dict[str, None] = {}
    read_to = 0
    for start, ends in spans.items():
        end = max((end for end, key in ends.items() if key in names), default=0)
        if start >= read_to and end:
            longest[ends[end]] = None
            read_to = end
    return longest


def open_or_build(target: Path, build: Callable[[Path], None], opener: Callable[[Path], Store]) -> Store:
    """Open the store at `target`; build it first if it doesn't exist or is damaged.

    It is built in a folder beside `target` and renamed, so no process sees an incomplete store. Two processes may do so
    at the same time: they build the same store, and one of the two is kept.

    Parameters
    ----------
    target : Path
        A file or a folder, depending on `build`.
    build : callable
        Writes the store to a path that doesn't exist.
    opener : callable
        Opens the store; raises FileNotFoundError if there is none, DataError if it is damaged.

    Raises
    ------
    DataError
        The folder can't be written.
    """
    try:
        return opener(target)
    except OSError:
        pass  # the store doesn't exist; if the folder can't be written, building it raises the error
    except DataError as error:
        warnings.warn(f"{error.message}: it is built again", RuntimeWarning, stacklevel=2)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as scratch:
            fresh = Path(scratch, "new")
            build(fresh)
            return _move(fresh, target, opener, Path(scratch))
    except OSError as error:
        raise DataError(
            f"the index {target} can't be written: {error}", hint="set CONSTRAINED_CACHE to a folder with free space"
        ) from error


def _move(fresh: Path, target: Path, opener: Callable[[Path], Store], scratch: Path) -> Store:
    """Rename `fresh` to `target`, and open it. A folder that is already there is another process's, or damaged."""
    for attempt in range(3):
        try:
            os.replace(fresh, target)
            break
        except OSError:
            try:
                return opener(target)
            except FileNotFoundError:
                continue
            except DataError:
                os.replace(target, scratch / f"old {attempt}")
    return opener(target)

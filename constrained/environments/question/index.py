"""A local index of passages, built once and kept on disk, and the search for questions that need several pages.

Words alone (bm25) find the page that a question describes, and miss the one that only this page
names. Therefore a passage also gets points for being named: in the question, and in the best
passages so far, as a reader would follow a link. That is one hop, as in HotpotQA's bridge questions
(Yang et al., 2018, section 2).
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
"""Name -> what builds a store, and what opens one."""

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
"""How many of the best passages are read for names."""

LONGEST_NAME = 6
"""Words of a name, at most."""
WORDS_READ = 200
"""Words of a text in which names are looked for."""


@runtime_checkable
class PassageIndex(Protocol):
    """Where `QuestionEnv` looks things up. Every text is a valid query; each method may raise ToolError."""

    def search(self, query: str, limit: int = 5) -> list[Passage]:
        """Return the passages about a topic, a question or a term, best first."""
        ...

    def page(self, title: str) -> Passage | None:
        """Return the page of exactly this title, but for case and spaces."""
        ...

    def similar(self, title: str, limit: int = 5) -> list[str]:
        """Return titles like this one, most similar first."""
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
        "sqlite" (the standard library's FTS5), or "tantivy" (the extra of that name) for
        collections of millions.
    folder : path-like, optional
        Where built indexes are kept; default: ``$CONSTRAINED_CACHE``, or ``constrained`` in the
        user's cache folder.

    Raises
    ------
    DataError
        There is no such backend, or it isn't installed. The first query raises it, too,
        if the index can't be built.
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
        """The passages on disk, built if they aren't there."""
        if self._store is None:
            fingerprint, passages = self.collection.fingerprint, self.collection.read
            path = self.folder / f"passages-{fingerprint[:32]}.{self.backend}"
            build, opened = BACKENDS[self.backend]
            self._store = open_or_build(
                path, lambda fresh: build(fresh, passages(), fingerprint), partial(opened, fingerprint=fingerprint)
            )
        return self._store

    def search(self, query: str, limit: int = 5) -> list[Passage]:
        """As `PassageIndex.search`; see `ranked`."""
        return ranked(self.store, query, limit)

    def page(self, title: str) -> Passage | None:
        """As `PassageIndex.page`."""
        return self.store.titled(title_key(title))

    def similar(self, title: str, limit: int = 5) -> list[str]:
        """As `PassageIndex.similar`: titles that share a word with it, or else titles of texts that do."""
        terms = query_terms(title)
        found = self.store.matching(terms, CANDIDATES, titles_only=True) or self.store.matching(terms, limit)
        wanted = title_key(title[:MAX_CHARACTERS])
        similarity = {p.title: SequenceMatcher(None, wanted, title_key(p.title)).ratio() for p, _ in found}
        return sorted(similarity, key=lambda title: -similarity[title])[:limit]

    def close(self) -> None:
        """As `PassageIndex.close`; the next query opens it again."""
        if self._store is not None:
            self._store.close()
            self._store = None


def ranked(store: Store, query: str, limit: int) -> list[Passage]:
    """Return the best passages for a question, best first; equal ones in the store's order."""
    scores = dict(store.matching(query_terms(query), max(CANDIDATES, limit)))
    _add(scores, store, cut_words(query), NAMED_IN_QUESTION * max(scores.values(), default=1.0))
    for passage, score in sorted(scores.items(), key=lambda item: -item[1])[:FOLLOWED]:
        # In running text names begin with a capital letter or a digit; a question may be written carelessly.
        _add(scores, store, cut_words(passage.text), NAMED_IN_PASSAGE * score, capitals=True, but=passage)
    return sorted(scores, key=lambda passage: -scores[passage])[:limit]


def _add(
    scores: dict[Passage, float],
    store: Store,
    words: Sequence[str],
    share: float,
    capitals: bool = False,
    but: Passage | None = None,
) -> None:
    """Add to the scores of the passages named among the words; passages of the same name share the points."""
    words = words[:WORDS_READ]
    spans: dict[int, dict[int, str]] = defaultdict(dict)  # start -> end -> the words between, as a name's key
    for start, word in enumerate(words):
        if not capitals or word[0].isupper() or word[0].isdigit():
            for end in range(start + 1, min(start + LONGEST_NAME, len(words)) + 1):
                spans[start][end] = phrase_key(words[start:end])
        if len(word) < 3 or word.lower() in STOP_WORDS:
            spans[start].pop(start + 1, None)
    named = defaultdict(list)
    for passage in store.named({key for ends in spans.values() for key in ends.values()}):
        named[name_key(passage.title)].append(passage)
    for key in _longest(spans, named):
        for passage in named[key]:
            if passage != but:
                scores[passage] = scores.get(passage, 0.0) + share / len(named[key]) ** 0.5


def _longest(spans: dict[int, dict[int, str]], names: Names[str]) -> dict[str, None]:
    """Return the names in a text from left to right, each as long as possible, none within another."""
    found: dict[str, None] = {}
    read_to = 0
    for start, ends in spans.items():
        end = max((end for end, key in ends.items() if key in names), default=0)
        if start >= read_to and end:
            found[ends[end]] = None
            read_to = end
    return found


def open_or_build(target: Path, build: Callable[[Path], None], opened: Callable[[Path], Store]) -> Store:
    """Open the store at `target`; build it first if there is none or a damaged one.

    It is built in a folder beside `target` and renamed, so no process sees an incomplete one. Two
    processes may do so at once: they build the same, and one of the two is kept.

    Parameters
    ----------
    target : Path
        A file or a folder, as `build` makes it.
    build : callable
        Writes the store to a path that doesn't exist.
    opened : callable
        Opens the store; FileNotFoundError if there is none, DataError if it is damaged.

    Raises
    ------
    DataError
        The folder can't be written.
    """
    try:
        return opened(target)
    except OSError:
        pass  # not there; where nothing can be written, building it says why
    except DataError as error:
        warnings.warn(f"{error.message}: it is built again", RuntimeWarning, stacklevel=2)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as scratch:
            fresh = Path(scratch, "new")
            build(fresh)
            return _moved(fresh, target, opened, Path(scratch))
    except OSError as error:
        raise DataError(
            f"the index {target} can't be written: {error}", hint="let CONSTRAINED_CACHE name a folder with room"
        ) from error


def _moved(fresh: Path, target: Path, opened: Callable[[Path], Store], scratch: Path) -> Store:
    """Rename what was built to `target`. A folder that is already there is another process's, or the damaged one."""
    for attempt in range(3):
        try:
            os.replace(fresh, target)
            break
        except OSError:
            try:
                return opened(target)
            except FileNotFoundError:
                continue
            except DataError:
                os.replace(target, scratch / f"old {attempt}")
    return opened(target)

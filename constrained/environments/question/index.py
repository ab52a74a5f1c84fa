"""A local index of passages, built once and kept on disk; what every index answers."""

from __future__ import annotations

from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from typing import Protocol, runtime_checkable

from constrained.environments.question import sqlite_store, tantivy_store
from constrained.environments.question.passages import Collection, Passage
from constrained.environments.question.ranking import CANDIDATES, ranked
from constrained.environments.question.store import Store, built
from constrained.environments.question.words import MAX_CHARACTERS, query_terms, title_key
from constrained.errors import DataError
from constrained.files import cache_folder

BACKENDS = ("sqlite", "tantivy")


@runtime_checkable
class PassageIndex(Protocol):
    """Where `QuestionEnv` looks things up. Any text may be asked; each may raise ToolError."""

    def search(self, query: str, limit: int = 5) -> list[Passage]:
        """Return the passages about a topic, a question or a term, best first."""
        ...

    def page(self, title: str) -> Passage | None:
        """Return the page of exactly this title, but for case and spaces."""
        ...

    def similar(self, title: str, limit: int = 5) -> list[str]:
        """Return titles like this one, most alike first."""
        ...

    def close(self) -> None:
        """Let go of files and connections; safe to call twice."""
        ...


class LocalIndex:
    """Passages on this machine.

    It can be pickled: a worker that gets it opens the same files, or builds them where it is.

    Parameters
    ----------
    collection : Collection
    backend : str
        "sqlite" (the standard library's FTS5), or "tantivy" (the extra of that name) for
        collections of millions.
    folder : path-like, optional
        Where built indexes are kept; default: ``$CONSTRAINED_CACHE``, or ``constrained`` in the
        user's cache folder.

    Raises
    ------
    DataError
        There is no such backend, or it isn't installed. The first question may raise it, too:
        when the index can't be built.
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
            engine, opened = {
                "sqlite": (sqlite_store, sqlite_store.SqliteStore),
                "tantivy": (tantivy_store, tantivy_store.TantivyStore),
            }[self.backend]
            fingerprint = self.collection.fingerprint
            self._store = built(
                self.folder / f"passages-{fingerprint[:32]}.{self.backend}",
                lambda path: engine.build(path, self.collection.read(), fingerprint),
                partial(opened, fingerprint=fingerprint),
            )
        return self._store

    def search(self, query: str, limit: int = 5) -> list[Passage]:
        """As `PassageIndex.search`; see `ranking`."""
        return ranked(self.store, query, limit)

    def page(self, title: str) -> Passage | None:
        """As `PassageIndex.page`."""
        return self.store.titled(title_key(title))

    def similar(self, title: str, limit: int = 5) -> list[str]:
        """As `PassageIndex.similar`: those that share a word with it, or else whose text does."""
        terms = query_terms(title)
        found = self.store.matching(terms, CANDIDATES, titles_only=True) or self.store.matching(terms, limit)
        asked = title_key(title[:MAX_CHARACTERS])
        likeness = {p.title: SequenceMatcher(None, asked, title_key(p.title)).ratio() for p, _ in found}
        return sorted(likeness, key=lambda t: -likeness[t])[:limit]

    def close(self) -> None:
        """As `PassageIndex.close`; asked again, it opens again."""
        if self._store is not None:
            self._store.close()
            self._store = None

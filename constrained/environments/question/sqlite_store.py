"""A store of passages in SQLite's FTS5, from the standard library: one file, read by any number of processes."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from constrained.environments.question.passages import MAX_NAMED, STORE_VERSION, TITLE_WEIGHT, Passage
from constrained.environments.text_search import any_of, name_key, title_key
from constrained.errors import DataError, ToolError

QUERY_SECONDS = 10.0
"""Time limit of one query."""
CHECKED_BYTES = 64 << 20
"""Largest file that is checked completely when it is opened (5 ms for 10 MB); of larger files only the length is."""

_SCHEMA = """
CREATE TABLE page (id INTEGER PRIMARY KEY, title TEXT, name TEXT, content TEXT);
CREATE TABLE built (version INTEGER, fingerprint TEXT, passages INTEGER);
CREATE VIRTUAL TABLE words USING fts5 (title, text, content = '', tokenize = 'porter unicode61 remove_diacritics 2');
"""
_INDEXES = "CREATE INDEX by_title ON page (title); CREATE INDEX by_name ON page (name);"
_MATCHING = """
SELECT content, score
FROM (SELECT rowid AS id, -bm25(words, ?, 1.0) AS score FROM words WHERE words MATCH ? ORDER BY score DESC, id LIMIT ?)
JOIN page USING (id) ORDER BY score DESC, id
"""


def build(path: Path, passages: Iterable[Passage], fingerprint: str) -> None:
    """Write the passages to a new file; the row that marks the file as complete is written last.

    Raises DataError: SQLite can't write it, or was built without FTS5.
    """
    try:
        with closing(sqlite3.connect(path)) as connection, connection:
            # No journal is needed, because an incomplete file is thrown away.
            connection.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;" + _SCHEMA)
            number = 0
            for number, passage in enumerate(passages, 1):
                row = (number, title_key(passage.title), name_key(passage.title), passage.to_json())
                connection.execute("INSERT INTO page VALUES (?, ?, ?, ?)", row)
                connection.execute(
                    "INSERT INTO words (rowid, title, text) VALUES (?, ?, ?)", (number, passage.title, passage.text)
                )
            connection.execute("INSERT INTO words (words) VALUES ('optimize')")
            connection.executescript(_INDEXES)  # last: filling them row by row is slower
            connection.execute("INSERT INTO built VALUES (?, ?, ?)", (STORE_VERSION, fingerprint, number))
        with path.open("rb") as file:
            os.fsync(file.fileno())
    except sqlite3.Error as error:
        raise DataError(
            f"SQLite can't build the index {path}: {error}",
            hint="if it was built without FTS5, install the extra `tantivy` and use that backend",
        ) from error


class SqliteStore:
    """A file written by `build`.

    Parameters
    ----------
    fingerprint : str
        The fingerprint of the collection that the file must hold.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    DataError
        The file is damaged, cut short, or holds other passages.
    """

    def __init__(self, path: Path, fingerprint: str):
        self._path = path
        self._lock = threading.Lock()
        self._opened: tuple[int, sqlite3.Connection] | None = None
        size = path.stat().st_size
        pages, page_size = (self._ask(f"PRAGMA {name}")[0][0] for name in ("page_count", "page_size"))
        if size != pages * page_size or (size <= CHECKED_BYTES and self._ask("PRAGMA quick_check") != [("ok",)]):
            raise self._damaged("it is cut short or changed")
        if [row[:2] for row in self._ask("SELECT * FROM built")] != [(STORE_VERSION, fingerprint)]:
            raise self._damaged("it is incomplete, or holds other passages")

    def matching(self, terms: list[str], limit: int, titles_only: bool = False) -> list[tuple[Passage, float]]:
        """The passages that best match the words, with their bm25 scores (above 0), best first."""
        if not terms:
            return []
        query = any_of(terms)
        rows = self._ask(_MATCHING, TITLE_WEIGHT, f"{{title}} : ({query})" if titles_only else query, limit)
        return [(Passage.from_json(content), score) for content, score in rows]

    def named(self, keys: Iterable[str]) -> list[Passage]:
        """The passages with one of these names (`name_key`), at most `MAX_NAMED`."""
        # One parameter for all keys, because a statement takes only few parameters.
        wanted = json.dumps(sorted(set(keys)))
        query = "SELECT content FROM json_each(?) JOIN page ON page.name = json_each.value ORDER BY page.id LIMIT ?"
        return [Passage.from_json(content) for (content,) in self._ask(query, wanted, MAX_NAMED)]

    def titled(self, key: str) -> Passage | None:
        """The passage with this title (`title_key`); the first, if there are several."""
        rows = self._ask("SELECT content FROM page WHERE title = ? ORDER BY id LIMIT 1", key)
        return Passage.from_json(rows[0][0]) if rows else None

    def close(self) -> None:
        """Close the file; the next query opens it again."""
        with self._lock:
            if self._opened and self._opened[0] == os.getpid():
                self._opened[1].close()
            self._opened = None

    def _ask(self, query: str, *values: object) -> list[tuple]:
        with self._lock:
            try:
                connection = self._connection()
                until = time.monotonic() + QUERY_SECONDS
                connection.set_progress_handler(lambda: time.monotonic() > until, 1_000)
                return connection.execute(query, values).fetchall()
            except sqlite3.DatabaseError as error:
                if "interrupted" in str(error):
                    raise ToolError(f"the search took longer than {QUERY_SECONDS:g} s") from error
                raise self._damaged(str(error)) from error

    def _connection(self) -> sqlite3.Connection:
        """This process's connection: a connection must not be shared across a fork."""
        if self._opened is None or self._opened[0] != os.getpid():
            uri = f"{self._path.resolve().as_uri()}?mode=ro&immutable=1"
            self._opened = os.getpid(), sqlite3.connect(uri, uri=True, check_same_thread=False)
        return self._opened[1]

    def _damaged(self, why: str) -> DataError:
        return DataError(f"the index {self._path} can't be used: {why}", hint="delete it: it is built again")

"""Words of texts, and full-text search in memory (Okapi BM25, SQLite's FTS5).

`TextIndex` is for short lists, such as a shop's products or a page's elements. Collections of passages are kept on disk
and ranked by titles too: see `constrained.environments.question.index`. Queries are reduced to words before they reach
an index, so no text is read as query syntax.
"""

from __future__ import annotations

import html
import re
import sqlite3
import unicodedata
from collections.abc import Iterable

MAX_CHARACTERS = 2_000
"""Most characters of a query that are read."""
MAX_TERMS = 64
"""Most words of a query that are searched for."""

STOP_WORDS = frozenset(
    "a an and are as at be been both by did do does for from had has have he her his how in into is it its "
    "of on or she that the their them they this to was were what when where which who whom whose why will with".split()
)
"""Words in nearly every passage: searching for them costs time and does not tell passages apart."""

_WORD = re.compile(r"[^\W_]+")
_DISAMBIGUATION = re.compile(r"\s*\([^()]*\)\s*$")


def cut_words(text: str) -> list[str]:
    """The words of a text in order, as written, with combining marks such as vowel signs."""
    if text.isascii():
        return _WORD.findall(text)
    text = unicodedata.normalize("NFC", text)
    return "".join(c if c.isalnum() or unicodedata.category(c)[0] == "M" else " " for c in text).split()


def query_terms(query: str) -> list[str]:
    """The distinct words to search for, in lower case; stop words only if there are no others."""
    words = list(dict.fromkeys(word.lower() for word in cut_words(query[:MAX_CHARACTERS])))
    content_words = [word for word in words if word not in STOP_WORDS]
    return (content_words or words)[:MAX_TERMS]


def any_of(terms: Iterable[str]) -> str:
    """An FTS5 query for texts with any of the terms, which are quoted so that none is an operator."""
    return " OR ".join(f'"{term}"' for term in terms)


def clean_text(text: str) -> str:
    """A text with one space between words, and "?" for lone surrogates, which can't be written to files."""
    return " ".join(text.encode("utf-8", "replace").decode().split())


def clean_title(title: str) -> str:
    """A title as it is shown: clean, with HTML entities decoded and spaces for underscores."""
    return clean_text(unicodedata.normalize("NFC", html.unescape(title)).replace("_", " "))


def title_key(title: str) -> str:
    """A key that all spellings of a title share: case and Unicode width don't matter."""
    return unicodedata.normalize("NFKC", clean_title(title)).casefold()


def name_key(title: str) -> str:
    """The key of the name by which texts mention a page: its title without "(band)" or the like at the end."""
    return phrase_key(cut_words(_DISAMBIGUATION.sub("", title)) or cut_words(title))


def phrase_key(words: Iterable[str]) -> str:
    """The key of a name with these words."""
    return " ".join(words).casefold()


class TextIndex:
    """A full-text index in memory. `texts`: key and text."""

    def __init__(self, texts: Iterable[tuple[str, str]]):
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._database.execute("CREATE VIRTUAL TABLE texts USING fts5(key UNINDEXED, text, tokenize='porter')")
        self._database.executemany("INSERT INTO texts VALUES (?, ?)", texts)

    def search(self, query: str, limit: int) -> list[str]:
        """The keys of at most `limit` texts with any of the query's words, best first."""
        terms = query_terms(query)
        if not terms:
            return []
        rows = self._database.execute(
            "SELECT key FROM texts WHERE texts MATCH ? ORDER BY bm25(texts), rowid LIMIT ?", (any_of(terms), limit)
        )
        return [key for (key,) in rows]

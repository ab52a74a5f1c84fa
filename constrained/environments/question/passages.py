"""Passages, and collections of them that are read from files.

`page_collection` reads your own pages, or FEVER's dump of Wikipedia, from a file or a folder of files:

- ``.jsonl`` and ``.json``, compressed or not, with rows that have a ``title`` and ``text`` or ``sentences``;
- the same with rows of FEVER's ``wiki-pages`` (``id``, and ``lines``: number, tab, sentence, links);
- ``.txt``: the file's name is the title.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from constrained.environments.data import fields, read_rows
from constrained.environments.text_search import clean_text, clean_title
from constrained.errors import DataError
from constrained.files import file_digest

STORE_VERSION = 1
"""Version of the files on disk and of how words are cut: raise it when either changes."""
TITLE_WEIGHT = 4
"""Weight of a word in a title relative to the text (bm25); 1 to 5 differ by 0.02 in recall."""
MAX_NAMED = 200
"""Most passages that one look-up of names returns."""

_ENDINGS = (".jsonl", ".jsonl.gz", ".json", ".json.gz", ".txt")
_FEVER_SIGNS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}", "-COLON-": ":"}
_SENTENCE_END = re.compile(r"""[.!?…][\])"'”’»]*\s+(?=[\["'“‘«(]*[^\W_a-zß-öø-ÿ])|\n+|[。！？]""")
# No sentence ends within "U.S. Army", "J. R. Tolkien", "Dr. No", "vs. Them".
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\"“])(?:\w|(?:\w\.)+\w|Mr|Mrs|Ms|Dr|St|Jr|Sr|No|vs|etc|Prof|Gen|Col|Lt|Sgt|Rev|ca?)\.\s+$"
)


@dataclass(frozen=True)
class Passage:
    """A titled text, such as a page's first paragraph, in sentences."""

    title: str
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        """The sentences, joined."""
        return " ".join(self.sentences)

    def to_json(self) -> str:
        """The passage in the form that stores keep."""
        return json.dumps([self.title, self.sentences], ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> Passage:
        """A stored passage."""
        title, sentences = json.loads(text)
        return cls(title, tuple(sentences))


@dataclass(frozen=True)
class Collection:
    """A source of passages, read only when an index has to be built."""

    fingerprint: str  # a SHA-256 of everything that determines the passages
    # Returns the passages, in order; can be pickled, so that a worker on another machine can build its own index.
    read: Callable[[], Iterable[Passage]]

    @classmethod
    def of(cls, passages: Iterable[Passage]) -> Collection:
        """A collection of passages that are in memory."""
        kept = tuple(make_passage(f"passage {i}", p.title, p.sentences) for i, p in enumerate(passages, 1))
        digest = hashlib.sha256()
        for passage in kept:
            digest.update(passage.to_json().encode() + b"\n")
        return cls(digest.hexdigest(), partial(tuple, kept))

    @classmethod
    def of_files(cls, paths: Iterable[Path], reader: Callable[[list[Path]], Iterator[Passage]]) -> Collection:
        """The collection that `reader` (a module-level function) reads from files, identified by their content.

        Raises DataError: a file can't be read.
        """
        files = list(paths)
        digest = hashlib.sha256(f"{reader.__module__}.{reader.__qualname__}".encode())
        for path in files:
            try:
                digest.update(bytes.fromhex(file_digest(path)))
            except OSError as error:
                raise DataError(f"can't read {path}: {error}") from error
        return cls(digest.hexdigest(), partial(reader, files))


def make_passage(where: str, title: str, sentences: Iterable[str]) -> Passage:
    """A passage for an index: with a clean title, and sentences without space around them.

    Raises DataError: it has no title or no text; the message begins with `where`.
    """
    sentences_kept = tuple(text for sentence in sentences if (text := clean_text(sentence)))
    title = clean_title(title)
    if not title or not sentences_kept:
        raise DataError(f"{where}: a passage needs a title and text")
    return Passage(title, sentences_kept)


def page_collection(path: str | Path) -> Collection:
    """The pages in a file or in a folder's files.

    Raises DataError: there are no such files. Reading the collection raises it for a malformed row.
    """
    path = Path(path)
    files = sorted(f for f in path.iterdir() if f.name.endswith(_ENDINGS)) if path.is_dir() else [path]
    if not files:
        raise DataError(f"no pages in {path}", hint=f"pages are read from files ending in {', '.join(_ENDINGS)}")
    return Collection.of_files(files, read_pages)


def read_pages(files: list[Path]) -> Iterator[Passage]:
    """Yield the pages of files; pages without text, which FEVER has, are skipped."""
    for file in files:
        if file.suffix == ".txt":
            try:
                sentences = cut_sentences(file.read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError) as error:
                raise DataError(f"can't read {file}: {error}") from error
            if sentences:
                yield make_passage(str(file), file.stem, sentences)
            continue
        for where, row in read_rows(file):
            title, sentences = _page(where, row)
            if any(sentence.strip() for sentence in sentences):
                yield make_passage(where, title, sentences)


def _page(where: str, row: dict) -> tuple[str, list[str]]:
    """A row's title and sentences."""
    if "lines" in row:
        title, lines = fields(where, row, id=str, lines=str)
        sentences = [line.split("\t")[1] for line in lines.split("\n") if line.count("\t")]
        return fever_text(title), [fever_text(sentence) for sentence in sentences]
    if "sentences" in row:
        title, sentences = fields(where, row, title=str, sentences=list[str])
        return title, sentences
    title, text = fields(where, row, title=str, text=str)
    return title, cut_sentences(text)


def fever_text(text: str) -> str:
    """A title or sentence as in Wikipedia: FEVER writes brackets and colons as "-LRB-" and the like."""
    for sign, character in _FEVER_SIGNS.items():
        text = text.replace(sign, character)
    return text


def cut_sentences(text: str) -> list[str]:
    """The sentences of a text, without space around them; line breaks end sentences, too."""
    sentences, start = [], 0
    for end in _SENTENCE_END.finditer(text):
        piece = text[start : end.end()]
        if end.group().startswith(".") and _ABBREVIATION.search(piece[-12:]):
            continue
        sentences.append(piece.strip())
        start = end.end()
    return [sentence for sentence in (*sentences, text[start:].strip()) if sentence]

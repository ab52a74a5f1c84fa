"""A store of passages in tantivy (the optional extra ``tantivy``), for collections of millions: one folder."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from constrained.environments.question.passages import MAX_NAMED, STORE_VERSION, TITLE_WEIGHT, Passage
from constrained.environments.text_search import name_key, title_key
from constrained.errors import DataError, needs_extra

HEAP_BYTES = 128 << 20
"""Memory for building an index."""
_MANIFEST = "passages.json"
_STEMMED = "stemmed"


def build(path: Path, passages: Iterable[Passage], fingerprint: str) -> None:
    """Write the passages to a new folder; the list of its files, which marks it as complete, is written last.

    Raises DataError: tantivy isn't installed, or can't write.
    """
    tantivy = import_tantivy()
    path.mkdir()
    try:
        index = tantivy.Index(_schema(tantivy), path=str(path))
        index.register_tokenizer(_STEMMED, _analyzer(tantivy))
        writer = index.writer(HEAP_BYTES, 1)  # one thread: the same passages give the same index
        for number, passage in enumerate(passages, 1):
            document = tantivy.Document()
            # The title is repeated in the text to give it weight. As a field with its own score, a word that is rare
            # in titles would outweigh all others (recall at 5 of 0.68 instead of 0.78).
            for field, text in {
                "title": passage.title,
                "text": " ".join([passage.title] * TITLE_WEIGHT + [passage.text]),
                "key": title_key(passage.title),
                "name": name_key(passage.title),
            }.items():
                document.add_text(field, text)
            document.add_bytes("content", passage.to_json().encode())
            document.add_unsigned("number", number)
            writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()
    except (ValueError, OSError) as error:
        raise DataError(f"tantivy can't build the index {path}: {error}") from error
    sizes = {file.name: file.stat().st_size for file in path.iterdir() if not file.name.startswith(".")}
    facts = {"version": STORE_VERSION, "fingerprint": fingerprint, "sizes": sizes}
    (path / _MANIFEST).write_text(json.dumps(facts), encoding="utf-8")


class TantivyStore:
    """A folder written by `build`.

    Parameters
    ----------
    fingerprint : str
        The fingerprint of the collection that the folder must hold.

    Raises
    ------
    FileNotFoundError
        There is no such folder.
    DataError
        The folder is damaged, incomplete, or holds other passages; or tantivy isn't installed.
    """

    def __init__(self, path: Path, fingerprint: str):
        self._tantivy = import_tantivy()
        self._path = path
        path.stat()
        try:
            facts = json.loads((path / _MANIFEST).read_text(encoding="utf-8"))
            whole = all((path / name).stat().st_size == size for name, size in facts["sizes"].items())
            if not whole or (facts["version"], facts["fingerprint"]) != (STORE_VERSION, fingerprint):
                raise ValueError("it is incomplete, or holds other passages")
            index = self._tantivy.Index.open(str(path))
            index.config_reader("Manual")
            self._searcher = index.searcher()
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise self._damaged(error) from error
        self._schema = index.schema
        self._analyzer = _analyzer(self._tantivy)

    def matching(self, terms: list[str], limit: int, titles_only: bool = False) -> list[tuple[Passage, float]]:
        """As `SqliteStore.matching`."""
        # Queries are built as objects, so no text is read as query syntax.
        query, either = self._tantivy.Query, self._tantivy.Occur.Should
        field = "title" if titles_only else "text"
        tokens = dict.fromkeys(token for term in terms for token in self._analyzer.analyze(term))
        parts = [(either, query.term_query(self._schema, field, token)) for token in tokens]
        return self._find(query.boolean_query(parts), limit) if parts else []

    def named(self, keys: Iterable[str]) -> list[Passage]:
        """As `SqliteStore.named`."""
        wanted = sorted(set(keys))
        if not wanted:
            return []
        query = self._tantivy.Query.term_set_query(self._schema, "name", wanted)
        return [passage for passage, _ in self._find(query, MAX_NAMED)]

    def titled(self, key: str) -> Passage | None:
        """As `SqliteStore.titled`."""
        passages = self._find(self._tantivy.Query.term_query(self._schema, "key", key), MAX_NAMED)
        return passages[0][0] if passages else None

    def close(self) -> None:
        """Do nothing: the files are memory-mapped, and released with the object."""

    def _find(self, query, limit: int) -> list[tuple[Passage, float]]:
        try:
            hits = self._searcher.search(query, limit).hits
            result = [(self._searcher.doc(address), score) for score, address in hits]
            result.sort(key=lambda hit: (-hit[1], hit[0].get_first("number")))
            return [(Passage.from_json(document.get_first("content")), score) for document, score in result]
        except (ValueError, OSError) as error:
            raise self._damaged(error) from error

    def _damaged(self, why: object) -> DataError:
        return DataError(f"the index {self._path} can't be used: {why}", hint="delete it: it is built again")


def import_tantivy():
    with needs_extra("tantivy", "the index backend tantivy", "tantivy"):
        import tantivy
    return tantivy


def _schema(tantivy):
    schema = tantivy.SchemaBuilder()
    schema.add_text_field("title", tokenizer_name=_STEMMED, index_option="freq")
    schema.add_text_field("text", tokenizer_name=_STEMMED, index_option="freq")
    schema.add_text_field("key", tokenizer_name="raw", index_option="basic")
    schema.add_text_field("name", tokenizer_name="raw", index_option="basic")
    schema.add_bytes_field("content", stored=True, indexed=False)
    schema.add_unsigned_field("number", stored=True)
    return schema.build()


def _analyzer(tantivy):
    """An analyzer like FTS5's: words in lower case, without diacritics, with English endings removed."""
    steps = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for step in (tantivy.Filter.lowercase(), tantivy.Filter.ascii_fold(), tantivy.Filter.stemmer("english")):
        steps = steps.filter(step)
    return steps.build()

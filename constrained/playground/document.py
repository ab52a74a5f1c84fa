"""What is written in the editor: the file it comes from, if any, and what goes back into it."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from constrained.errors import DataError
from constrained.files import write_whole
from constrained.grammar import read_source, shipped_names
from constrained.grammar.source import SHIPPED, Source
from constrained.playground import bounds

TYPED = "typed.lark"
"""The name of a text that is in no file."""

FILE = "file"
"""What pages call the file that the playground was opened with; other documents go by a shipped name."""


@dataclass(frozen=True)
class Document:
    """A file that is open in the playground.

    Attributes
    ----------
    path : Path
        Where it is, links followed, so that saving writes the file itself.
    """

    path: Path

    @classmethod
    def open(cls, name: str) -> Document:
        """A `.lark` file; it need not be there yet.

        Raises
        ------
        DataError
            It can't be read or written, or is too large.
        """
        path = Path(name).expanduser()
        if not path.exists() and not path.resolve().parent.is_dir():
            raise DataError(f"there is no folder {path.resolve().parent}", "make it first, or name another file")
        document = cls(path.resolve())
        document.read()
        return document

    def read(self) -> dict:
        """The "text" that is on disk, and its "version"; both None where there is no file.

        Raises
        ------
        DataError
            It can't be read, or is too large.
        """
        try:
            if not self.path.exists():
                return {"text": None, "version": None}
            if not self.path.is_file():
                raise DataError(f"{self.path} is no file", "name a .lark file")
            if self.path.stat().st_size > 4 * bounds.TEXT:
                raise DataError(f"{self.path} is too large for the playground", f"it takes {bounds.TEXT:,} characters")
            data = self.path.read_bytes()
            text = data.decode("utf-8-sig")
        except OSError as error:
            raise DataError(f"can't read {self.path}: {error.strerror}", "give the path of a .lark file") from None
        except UnicodeDecodeError as error:
            raise DataError(f"{self.path} is not UTF-8 text: {error}", "save it as UTF-8") from None
        # pages know one kind of line end
        return {"text": text.replace("\r\n", "\n").replace("\r", "\n"), "version": sha256(data).hexdigest()}

    def save(self, text: str, version: str | None) -> dict:
        """Write `text`, if the file is still that `version`.

        Lines end as they did in the file.

        Returns
        -------
        dict
            "saved", and the file's "version" now.

        Raises
        ------
        DataError
            It can't be written.
        """
        there = self.read()
        if there["version"] != version:
            return {"saved": False, "version": there["version"]}
        if there["text"] is not None and b"\r\n" in self.path.read_bytes():
            text = text.replace("\n", "\r\n")
        try:
            write_whole(self.path, text)
        except OSError as error:
            raise DataError(
                f"can't write {self.path}: {error.strerror}", "see whether the folder can be written to"
            ) from None
        return {"saved": True, "version": self.read()["version"]}


def source_of(request: dict) -> Source:
    """The text of a request as a source: under its document's name, and with its folder to import from."""
    path = request["source"]
    return Source(request["text"], Path(path).name if path else TYPED, Path(path) if path else None)


def path_of(name: str | None, document: Document | None) -> str | None:
    """Where a document that a page names is; None for a text that is in no file.

    Raises
    ------
    DataError
        There is no such document.
    """
    if name is None:
        return None
    if name == FILE and document is not None:
        return str(document.path)
    if name not in shipped_names():
        raise DataError(f"no document {name!r}", "reload the page")
    return str(SHIPPED / f"{name}.lark")


def shipped_text(name: str) -> str:
    """The text of a grammar that ships.

    Raises
    ------
    DataError
        None goes by that name.
    """
    return read_source(Path(path_of(name, None))).text

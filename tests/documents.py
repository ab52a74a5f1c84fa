"""Runs what a page of the documentation shows: its fenced blocks, in order, in a folder of the page's own.

- `lark`: loads, as action knowledge where it has `_STEP`, else as a grammar.
- `lark error`: is refused; the `text` block after it is the exact message.
- `python`: runs; all of a page in one namespace. With a file name it is a program, which `$ python FILE` runs.
- `console`: each line `$ constrained ...` or `$ python FILE` prints exactly the lines after it, where `...` stands for
  any lines, and `…` for any text within a line.

A file name after the language (`lark kitchen.lark`) writes the block into the folder. Blocks that begin with
`# needs` are for elsewhere, and other languages are left alone.
"""

from __future__ import annotations

import io
import os
import re
import runpy
import shlex
import sys
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from constrained import ActionKnowledge, Grammar
from constrained.cli import main
from constrained.errors import ConstrainedError

_FENCE = re.compile(r"^```(\w*)[ \t]*([^\n`]*)\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block.

    Attributes
    ----------
    language : str
    words : tuple of str
        What stands after the language.
    text : str
    place : str
        Page and line of its first line.
    line : int
    """

    language: str
    words: tuple[str, ...]
    text: str
    place: str
    line: int

    @property
    def file(self) -> str | None:
        """The file that it is written to, if it has a name."""
        return next((word for word in self.words if "." in word), None) if self.language else None

    @property
    def elsewhere(self) -> bool:
        """Whether it needs what tests don't have."""
        return self.text.startswith("# needs")


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    out = []
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start(3)) + 1
        out.append(Block(found[1], tuple(found[2].split()), found[3], f"{page.name}:{line}", line))
    return out


def run_page(page: Path, folder: Path, given: dict | None = None) -> dict:
    """Run the blocks of `page` in `folder`; AssertionError where something is not as the page says.

    Parameters
    ----------
    given : dict, optional
        Names that its Python code finds already there.

    Returns
    -------
    dict
        The names that its Python code left.
    """
    names = {"__name__": page.stem, **(given or {})}
    found = blocks(page)
    with _inside(folder):
        for block, after in zip(found, [*found[1:], None]):
            if block.file:
                Path(block.file).write_text(block.text, encoding="utf-8")
            if block.elsewhere:
                continue
            if block.language == "lark":
                _run_lark(block, after)
            elif block.language == "python" and not block.file:
                exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), names)
            elif block.language == "console":
                _run_console(block)
    return names


@contextmanager
def _inside(folder: Path):
    before, columns, paths, modules = Path.cwd(), os.environ.get("COLUMNS"), [*sys.path], set(sys.modules)
    os.chdir(folder)
    os.environ["COLUMNS"] = "80"  # what argparse wraps its help to
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        os.chdir(before)
        sys.path[:] = paths
        for name in {path.stem for path in folder.glob("*.py")} - modules:
            sys.modules.pop(name, None)  # another page may have another file of that name
        os.environ.pop("COLUMNS")
        if columns is not None:
            os.environ["COLUMNS"] = columns


def _run_lark(block: Block, after: Block | None) -> None:
    reader = ActionKnowledge if re.search(r"(?m)^%declare.*\b_STEP\b", block.text) else Grammar
    given = Path(block.file) if block.file else block.text
    if "error" not in block.words:
        try:
            reader.from_lark(given)
        except ConstrainedError as error:
            raise AssertionError(f"{block.place} does not load: {error}") from None
        return
    assert after and after.language == "text", f"{block.place}: no text block with the message comes after it"
    try:
        reader.from_lark(given)
    except ConstrainedError as error:
        assert str(error).splitlines() == after.text.splitlines(), f"{block.place}: another message:\n{error}"
    else:
        raise AssertionError(f"{block.place} is not refused")


def _run_console(block: Block) -> None:
    assert block.text.startswith("$ "), f"{block.place}: a console block begins with a command"
    for part in re.split(r"(?m)^\$ ", block.text)[1:]:
        command, _, expected = part.replace("\\\n", "").partition("\n")
        printed = printed_by(command)
        assert matches_lines(printed, expected), f"{block.place}: $ {command}\n{printed}"


def printed_by(command: str) -> str:
    """What a command prints, standard error included."""
    program, *arguments = shlex.split(command)
    assert program in ("constrained", "python"), f"only `constrained` and `python` are run, not {command!r}"
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        try:
            if program == "python":
                (file,) = arguments
                runpy.run_path(file, run_name="__main__")
            else:
                main(arguments)
        except SystemExit:  # --help, or a usage error
            pass
    return out.getvalue()


def matches_lines(printed: str, expected: str) -> bool:
    """Whether the lines are the same, blanks at their ends aside; `...` stands for any lines, `…` for any text."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line.rstrip()).replace("…", ".*?") + "\n"
        for line in expected.rstrip().splitlines()
    )
    lines = [line.rstrip() for line in printed.rstrip().splitlines()]
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in lines)) is not None

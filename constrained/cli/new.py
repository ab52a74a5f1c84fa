"""`constrained new`: a file to start from."""

from __future__ import annotations

from pathlib import Path

from constrained.errors import ConstrainedError, DataError
from constrained.grammar import read_source, shipped_names

TEMPLATE = "template"


def add_parser(commands) -> None:
    names = ", ".join(name for name in shipped_names() if name != TEMPLATE)
    parser = commands.add_parser(
        "new",
        help="write a commented file of action knowledge to start from",
        description="Write NAME.lark: a small complete domain whose comments explain it. It is never written over "
        "a file that is there.",
        epilog="example: constrained new kitchen && constrained show kitchen.lark",
    )
    parser.add_argument("name", metavar="NAME", help="the file, with or without .lark")
    parser.add_argument(
        "--from", dest="source", default=TEMPLATE, metavar="SHIPPED", help=f"start from a copy of: {names}"
    )
    parser.set_defaults(run=run)


def run(arguments) -> int:
    path = Path(arguments.name)
    if not path.stem or path.is_dir():
        raise DataError(f"{arguments.name!r} is no name of a file", "for example: constrained new kitchen")
    path = path if path.suffix == ".lark" else path.with_name(path.name + ".lark")
    if arguments.source not in shipped_names():
        raise ConstrainedError(f"no grammar {arguments.source!r} ships", f"one of: {', '.join(shipped_names())}")
    text = read_source(arguments.source).text
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise DataError(f"{path} is there already", "choose another name: a file is never written over") from None
    print(f"wrote {path}\nnext: constrained check {path}, constrained show {path}")
    return 0

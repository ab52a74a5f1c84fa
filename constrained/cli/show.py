"""`constrained show`: the action graph as text or as a picture."""

from __future__ import annotations

from pathlib import Path
from shutil import get_terminal_size

from constrained.errors import KnowledgeError
from constrained.files import write_whole
from constrained.grammar import shipped_names
from constrained.knowledge import ActionKnowledge


def add_parser(commands) -> None:
    parser = commands.add_parser(
        "show",
        help="draw the action graph of a knowledge file",
        description="Show which action may follow which: as lines of text, as Mermaid, or as a picture. Actions that "
        "come after the same ones and before the same ones share a box; where boxes and arrows would be a tangle, the "
        "picture is a table.",
        epilog="example: constrained show hotpotqa --output hotpotqa.svg",
    )
    parser.add_argument("knowledge", nargs="?", help="shipped name or path of a .lark file; none: list what ships")
    parser.add_argument("--output", metavar="FILE", help="write FILE: .svg for a picture, .mmd or .md for Mermaid")
    parser.add_argument("--mermaid", action="store_true", help="print Mermaid text")
    parser.add_argument(
        "--matrix", action="store_true", help="let the picture be a table, however few actions there are"
    )
    parser.add_argument("--text", action="store_true", help="print the knowledge as the model reads it")
    parser.set_defaults(run=run)


def run(arguments) -> int:
    if arguments.knowledge is None:
        print("\n".join(shipped_names()))
        return 0
    knowledge = ActionKnowledge.from_lark(arguments.knowledge)
    if not arguments.output:
        if arguments.matrix:
            raise KnowledgeError("--matrix is for a picture", "add --output FILE.svg")
        print(_text(arguments, knowledge), end="")
        return 0
    kind = Path(arguments.output).suffix.lower()
    mermaid = knowledge.to_mermaid()
    forms = {".svg": knowledge.to_svg(matrix=arguments.matrix), ".mmd": mermaid, ".md": f"```mermaid\n{mermaid}```\n"}
    if kind not in forms:
        raise KnowledgeError(f"can't draw a {kind or 'file without ending'}", "use .svg, .mmd or .md")
    write_whole(arguments.output, forms[kind])
    print(f"wrote {arguments.output}")
    return 0


def _text(arguments, knowledge: ActionKnowledge) -> str:
    if arguments.text:
        return knowledge.to_text() + "\n"
    if arguments.mermaid:
        return knowledge.to_mermaid()
    return knowledge.to_table(get_terminal_size((100, 24)).columns)

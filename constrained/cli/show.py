"""`constrained show`: the action graph as a picture."""

from __future__ import annotations

from pathlib import Path

from constrained.cli.output import write_whole
from constrained.errors import KnowledgeError
from constrained.grammar import shipped_names
from constrained.knowledge import ActionKnowledge


def add_parser(commands) -> None:
    parser = commands.add_parser(
        "show",
        help="draw the action graph of a knowledge file",
        description="Draw which action may follow which. Without --output: Mermaid text on standard output.",
        epilog="example: constrained show hotpotqa --output hotpotqa.svg",
    )
    parser.add_argument("knowledge", nargs="?", help="shipped name or path of a .lark file; none: list what ships")
    parser.add_argument("--output", metavar="FILE", help="write FILE: .svg for a picture, .mmd or .md for Mermaid")
    parser.add_argument("--text", action="store_true", help="print the knowledge as the model reads it")
    parser.set_defaults(run=run)


def run(arguments) -> int:
    if arguments.knowledge is None:
        print("\n".join(shipped_names()))
        return 0
    knowledge = ActionKnowledge.from_lark(arguments.knowledge)
    if arguments.text:
        print(knowledge.to_text())
    elif not arguments.output:
        print(knowledge.to_mermaid(), end="")
    else:
        kind = Path(arguments.output).suffix.lower()
        mermaid = knowledge.to_mermaid()
        forms = {".svg": knowledge.to_svg(), ".mmd": mermaid, ".md": f"```mermaid\n{mermaid}```\n"}
        if kind not in forms:
            raise KnowledgeError(f"can't draw a {kind or 'file without ending'}", "use .svg, .mmd or .md")
        write_whole(arguments.output, forms[kind])
        print(f"wrote {arguments.output}")
    return 0

"""`constrained show`: the action graph as text or as a picture."""

from __future__ import annotations

from pathlib import Path
from shutil import get_terminal_size

from constrained.cli.parser import examples
from constrained.errors import KnowledgeError
from constrained.files import write_whole
from constrained.grammar import shipped_names
from constrained.knowledge import ActionKnowledge, Knowledge


def add_parser(commands) -> None:
    parser = commands.add_parser(
        "show",
        help="draw the action graph of a .lark file",
        description="Show which action may follow which, as text, as Mermaid, or as a picture. Actions that come "
        "before and after the same others share a box; a graph with too many arrows becomes a table.",
        epilog=examples("constrained show hotpotqa", "constrained show hotpotqa --output hotpotqa.svg"),
    )
    add = parser.add_argument
    add(
        "knowledge", nargs="?", metavar="FILE", help="a .lark file, or the name of one that ships (default: list these)"
    )
    add("--output", metavar="FILE", help="write FILE: .svg for a picture, .mmd or .md for Mermaid")
    add("--mermaid", action="store_true", help="print Mermaid text")
    add("--matrix", action="store_true", help="with --output FILE.svg: draw a table even for a small graph")
    add("--text", action="store_true", help="print the knowledge as models read it in the prompt")
    parser.set_defaults(run=run)


def run(arguments) -> int:
    if arguments.knowledge is None:
        print("\n".join(shipped_names()))
        return 0
    knowledge = ActionKnowledge.from_lark(arguments.knowledge)
    if arguments.output:
        return _write(arguments, knowledge)
    if arguments.matrix:
        raise KnowledgeError("--matrix is for a picture", "add --output FILE.svg")
    if arguments.text:
        print(knowledge.to_text())
    elif arguments.mermaid:
        print(knowledge.to_mermaid(), end="")
    else:
        print(knowledge.to_table(get_terminal_size((100, 24)).columns), end="")
    return 0


def _write(arguments, knowledge: Knowledge) -> int:
    suffix = Path(arguments.output).suffix.lower()
    if suffix == ".svg":
        text = knowledge.to_svg(matrix=arguments.matrix)
    elif suffix in (".mmd", ".md"):
        text = knowledge.to_mermaid() if suffix == ".mmd" else f"```mermaid\n{knowledge.to_mermaid()}```\n"
    else:
        raise KnowledgeError(f"can't draw a {suffix or 'file without ending'}", "use .svg, .mmd or .md")
    write_whole(arguments.output, text)
    print(f"wrote {arguments.output}")
    return 0

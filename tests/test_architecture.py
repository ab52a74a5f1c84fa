"""Dependencies point one way: no import cycles, no room imports from a room above it. A class name has one meaning."""

import ast
from pathlib import Path

import networkx
import pytest

ROOT = Path(__file__).parent.parent
ROOMS = (
    "interrupts version errors arguments limits files waiting gguf_file html subprocesses grammar automaton "
    "planning knowledge guard decoding chooser models environments agents training pages playground server "
    "language_server cli"
).split()
"""From the bottom up; above them all stand the package itself, which exports from every room, and `__main__`."""


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in (ROOT / "constrained").rglob("*.py")}


def imported(path: Path) -> set[str]:
    """The modules of ours that a file imports anywhere: at its top, in functions, for types alone."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            full = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else node.module for name in full}
    return found & MODULES.keys()


@pytest.fixture(scope="module")
def graph() -> networkx.DiGraph:
    edges = ((name, other) for name, path in MODULES.items() for other in imported(path) if other != name)
    return networkx.DiGraph(edges)


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else "constrained"


def test_no_modules_import_each_other_in_a_circle(graph):
    assert list(networkx.simple_cycles(graph, length_bound=8)) == []
    assert networkx.is_directed_acyclic_graph(graph)


def test_every_import_goes_to_the_same_room_or_one_below(graph):
    order = [*ROOMS, "constrained", "__main__"]
    level = {module: order.index(room(module)) for module in graph}
    assert [(a, b) for a, b in graph.edges if level[a] < level[b]] == []


def test_the_library_needs_nothing_that_is_not_installed_with_it():
    for name, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not {"tests", "tools", "examples"} & {one.split(".")[0] for one in names}, name


def test_a_class_name_stands_in_one_module():
    """One meaning a name, also across rooms; names with an underscore are their module's own."""
    modules: dict[str, list[str]] = {}
    for name, path in MODULES.items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules.setdefault(node.name, []).append(name)
    assert {name: found for name, found in modules.items() if len(found) > 1} == {}

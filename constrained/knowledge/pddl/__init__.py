"""Planning domains to action knowledge: `import_pddl`."""

from constrained.knowledge.pddl.imported import Imported, import_pddl

__all__ = ["Imported", "import_pddl"]

"""`PddlEnvironment`: any planning problem as an environment, from its PDDL files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from constrained.environments.base import Binding
from constrained.environments.facts import FactsEnvironment
from constrained.errors import DataError
from constrained.knowledge import ActionKnowledge, Knowledge
from constrained.knowledge.pddl import import_pddl
from constrained.planning.facts import Fact, FactSet
from constrained.planning.model import Problem
from constrained.planning.query import NOTHING
from constrained.planning.reachable import require_reachable
from constrained.planning.wording import fact_lines

MAX_BYTES = 8_000_000
"""Most bytes of a PDDL file: enough for 4,000,000 characters."""


class PddlEnvironment(FactsEnvironment):
    """Play a planning problem: actions change the facts as the domain defines.

    Parameters
    ----------
    domain : str or Path
        PDDL: the path of a file, or its text.
    problem : str, Path or Problem
        The same, or a problem that was read.
    texts : mapping of str to str, optional
        Action -> how it is written, such as ``"go to {r}"``; by default its name and arguments.
    knowledge : ActionKnowledge, optional
        Knowledge with conditions and effects, which then defines the actions and how they are written; `domain` may be
        None.

    Attributes
    ----------
    knowledge : ActionKnowledge
        The given knowledge or the imported domain, at the start of the problem; for the others see `FactsEnvironment`.

    Raises
    ------
    PddlError
        The domain or the problem can't be parsed, contains something unsupported, or has a goal that can't be reached
        even if nothing were ever undone; with file, line and column.
    """

    TASK_LINE = f"\n{FactsEnvironment.TASK_LINE}"

    def __init__(
        self,
        domain: str | Path | None,
        problem: str | Path | Problem,
        *,
        texts: Mapping[str, str] = NOTHING,
        knowledge: ActionKnowledge | None = None,
    ):
        if knowledge is None:
            text, source = read_pddl(domain if domain is not None else "")
            knowledge = import_pddl(text, texts=texts, source=source).knowledge()
        read = (problem,) if isinstance(problem, Problem) else read_pddl(problem)
        self.knowledge = knowledge.for_problem(*read)
        assert self.knowledge.facts is not None
        require_reachable(self.knowledge.facts.task)
        super().__init__(self.knowledge.facts, "do anything that is possible")

    def lines(self) -> Iterator[str]:
        """The problem's objects and the facts that hold, in words."""
        task = self.facts.task
        return fact_lines(task.domain, task.objects, sorted(self.facts.state), task.spell)

    def do(self, action: str) -> str:
        """The facts that have changed; for an impossible action, the conditions that don't hold."""
        if not self.had_effect:
            return f"Nothing happens: {self.facts.why_not(action)}."
        before, self.facts = self.facts.state, self.facts.after(action)
        now = self.facts.state
        changes = self._words(now.difference(before))
        changes += [f"not {words}" for words in self._words(before.difference(now))]
        return f"Now: {', '.join(changes)}." if changes else "Nothing changes."

    def twin(self, problem: Problem, task: str) -> PddlEnvironment:
        return PddlEnvironment(None, problem, knowledge=self.knowledge)

    def applicable(self) -> list[str]:
        """The actions that are possible now, as they are written."""
        return list(self.facts.actions)

    def view(self) -> dict[str, Binding]:
        """The objects of each type, for knowledge whose slots are named after types."""
        task = self.facts.task
        return {
            slot: [task.spell(name) for name in task.of_type(kind)] for slot, kind in self.knowledge.slot_types.items()
        }

    def form(self, knowledge: Knowledge) -> Knowledge:
        """`knowledge` with the problem's objects, without its facts."""
        return knowledge.with_facts(self.facts).without_facts

    def _words(self, facts: FactSet | set[Fact]) -> list[str]:
        return sorted(" ".join(map(self.facts.task.spell, fact)) for fact in facts)


def read_pddl(given: str | Path) -> tuple[str, str]:
    """A PDDL text and its name, for messages; `given` is a file's path or the text itself.

    Raises
    ------
    DataError
        The file can't be read, or is too large.
    """
    if isinstance(given, str) and "(" in given:
        return given, "pddl"
    path = Path(given)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise DataError(
                f"{path} has more than {MAX_BYTES:,} bytes", "give one domain or problem, not several joined"
            )
        return data.decode("utf-8-sig"), path.name
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"can't read {path}: {error}", "give the path of a PDDL file, or its text") from None

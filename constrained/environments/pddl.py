"""`PddlEnvironment`: any planning problem as an environment, from its PDDL files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from constrained.environments.base import Binding
from constrained.environments.facts import FactsEnvironment
from constrained.errors import DataError
from constrained.knowledge import ActionKnowledge
from constrained.knowledge.pddl import import_pddl
from constrained.knowledge.world_state import WorldState
from constrained.planning.facts import Fact, State
from constrained.planning.relaxed import require_reachable
from constrained.planning.task import Task
from constrained.planning.wording import NO_TEXTS, condition_words, fact_lines

MAX_BYTES = 8_000_000
"""Bytes of a PDDL file: those of 4,000,000 characters at most."""


class PddlEnvironment(FactsEnvironment):
    """A planning problem that is played: actions change the facts as the domain says.

    Parameters
    ----------
    domain, problem : str or Path
        PDDL: paths of files, or texts.
    texts : mapping of str to str, optional
        Action -> how it is written, such as ``"go to {r}"``; by default its name and arguments.
    knowledge : ActionKnowledge, optional
        Knowledge that says what its actions need and change; then it gives the actions, as it writes them, and `domain`
        may be None.

    Attributes
    ----------
    knowledge : ActionKnowledge
        At the start of the problem, to plan with; default: the domain, imported.
    task : str
        The goal in words.
    facts : WorldState
        Where the problem stands now: its planning task, and the facts that hold.
    had_effect : bool
        Whether the last action was possible.
    done : bool
        Whether the goal holds.

    Raises
    ------
    PddlError
        The domain or the problem doesn't parse, contains what isn't supported, or has a goal that can't be reached even
        if nothing were ever undone; with file, line and column.
    """

    def __init__(
        self,
        domain: str | Path | None,
        problem: str | Path,
        *,
        texts: Mapping[str, str] = NO_TEXTS,
        knowledge: ActionKnowledge | None = None,
    ):
        if knowledge is None:
            text, source = read_pddl(domain if domain is not None else "")
            knowledge = import_pddl(text, texts=texts, source=source).knowledge()
        self.knowledge = knowledge.for_problem(*read_pddl(problem))
        assert self.knowledge.facts is not None
        require_reachable(self.knowledge.facts.task)
        self.facts: WorldState = self.knowledge.facts
        self._initial = self.facts
        self.task = goal_words(self.facts.task)
        self.had_effect = False
        self.done = False

    def reset(self) -> str:
        """Start at the problem's initial facts; the answer names objects, facts and goal."""
        self.facts = self._initial
        self.had_effect, self.done = False, self._reached_goal()
        return "\n".join([*self.lines(), "", f"Your task is to: {self.task}"])

    def lines(self) -> Iterator[str]:
        """The problem's objects, and the facts that hold."""
        task = self.facts.task
        return fact_lines(task.domain, task.objects, sorted(self.facts.state), task.spell)

    def step(self, action: str) -> tuple[str, float, bool]:
        """Do an action; what is not possible changes nothing, and the answer says which condition is missing."""
        self.had_effect = action in self.facts.actions
        if not self.had_effect:
            return f"Nothing happens: {self.facts.why_not(action)}.", 0.0, self.done
        before, self.facts = self.facts.state, self.facts.after(action)
        task, now = self.facts.task, self.facts.state
        changes = fact_words(task, now.difference(before))
        changes += [f"not {words}" for words in fact_words(task, before.difference(now))]
        self.done = self._reached_goal()
        answer = f"Now: {', '.join(changes)}." if changes else "Nothing changes."
        return answer, float(self.done), self.done

    def applicable(self) -> list[str]:
        """The actions that are possible now, as they are written."""
        return list(self.facts.actions)

    def view(self) -> dict[str, Binding]:
        """The objects of each type, for knowledge whose slots are named after types."""
        task = self.facts.task
        return {
            slot: [task.spell(name) for name in task.of_type(kind)] for slot, kind in self.knowledge.slot_types.items()
        }

    def facts_now(self) -> WorldState:
        """The facts that hold now: all are known."""
        return self.facts

    def form(self, knowledge: ActionKnowledge) -> ActionKnowledge:
        """`knowledge` with the problem's objects, and without its facts."""
        return knowledge.told(self.facts).form

    def _reached_goal(self) -> bool:
        return self.facts.task.reached_goal(self.facts.state)


def goal_words(task: Task) -> str:
    """A task's goal in words."""
    return condition_words(task.goal, task) if task.goal is not None else "do anything that is possible"


def fact_words(task: Task, facts: State | set[Fact]) -> list[str]:
    """Facts as texts, sorted."""
    return sorted(" ".join(map(task.spell, fact)) for fact in facts)


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

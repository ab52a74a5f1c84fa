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
from constrained.planning.query import NOTHING
from constrained.planning.relaxed import require_reachable
from constrained.planning.wording import condition_words, fact_lines

MAX_BYTES = 8_000_000
"""Most bytes of a PDDL file: enough for 4,000,000 characters."""


class PddlEnvironment(FactsEnvironment):
    """Play a planning problem: actions change the facts as the domain defines.

    Parameters
    ----------
    domain, problem : str or Path
        PDDL: paths of files, or texts.
    texts : mapping of str to str, optional
        Action -> how it is written, such as ``"go to {r}"``; by default its name and arguments.
    knowledge : ActionKnowledge, optional
        Knowledge with conditions and effects, which then defines the actions and how they are written; `domain` may be
        None.

    Attributes
    ----------
    knowledge : ActionKnowledge
        The given knowledge or the imported domain, at the start of the problem.
    task : str
        The goal in words.
    facts : WorldState
        The planning task and the facts that hold now.
    had_effect : bool
        Whether the last action was possible.
    done : bool
        Whether the goal holds.

    Raises
    ------
    PddlError
        The domain or the problem can't be parsed, contains something unsupported, or has a goal that can't be reached
        even if nothing were ever undone; with file, line and column.
    """

    def __init__(
        self,
        domain: str | Path | None,
        problem: str | Path,
        *,
        texts: Mapping[str, str] = NOTHING,
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
        goal = self.facts.task.goal
        self.task = "do anything that is possible" if goal is None else condition_words(goal, self.facts.task)
        self.had_effect = False
        self.done = False

    def reset(self) -> str:
        """Start at the problem's initial facts; the observation names objects, facts and goal."""
        self.facts = self._initial
        self.had_effect, self.done = False, self._reached_goal()
        return "\n".join([*self.lines(), "", f"Your task is to: {self.task}"])

    def lines(self) -> Iterator[str]:
        """Return the problem's objects and the facts that hold, in words."""
        task = self.facts.task
        return fact_lines(task.domain, task.objects, sorted(self.facts.state), task.spell)

    def step(self, action: str) -> tuple[str, float, bool]:
        """Do an action; an impossible action changes nothing, and the answer names the missing condition."""
        self.had_effect = action in self.facts.actions
        if not self.had_effect:
            return f"Nothing happens: {self.facts.why_not(action)}.", 0.0, self.done
        before, self.facts = self.facts.state, self.facts.after(action)
        now = self.facts.state
        changes = self._words(now.difference(before))
        changes += [f"not {words}" for words in self._words(before.difference(now))]
        self.done = self._reached_goal()
        answer = f"Now: {', '.join(changes)}." if changes else "Nothing changes."
        return answer, float(self.done), self.done

    def applicable(self) -> list[str]:
        """Return the actions that are possible now, as they are written."""
        return list(self.facts.actions)

    def view(self) -> dict[str, Binding]:
        """Return the objects of each type, for knowledge whose slots are named after types."""
        task = self.facts.task
        return {
            slot: [task.spell(name) for name in task.of_type(kind)] for slot, kind in self.knowledge.slot_types.items()
        }

    def facts_now(self) -> WorldState:
        """Return the facts that hold now: all of them are known."""
        return self.facts

    def form(self, knowledge: ActionKnowledge) -> ActionKnowledge:
        """Return `knowledge` with the problem's objects, without its facts."""
        return knowledge.told(self.facts).form

    def _reached_goal(self) -> bool:
        return self.facts.task.reached_goal(self.facts.state)

    def _words(self, facts: State | set[Fact]) -> list[str]:
        return sorted(" ".join(map(self.facts.task.spell, fact)) for fact in facts)


def read_pddl(given: str | Path) -> tuple[str, str]:
    """Return a PDDL text and its name, for messages; `given` is a file's path or the text itself.

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

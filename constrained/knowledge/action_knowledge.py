"""`ActionKnowledge`: which actions an agent may take, and in which order, read from one `.lark` file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from constrained.arguments import TEXT, checked
from constrained.automaton import Grammar
from constrained.errors import GrammarError, KnowledgeError
from constrained.grammar import read_lark, read_source
from constrained.grammar.source import Source
from constrained.grammar.source_map import SourceMap
from constrained.knowledge.action_graph import START
from constrained.knowledge.base import Knowledge, read_path
from constrained.knowledge.demonstration import Demonstration
from constrained.knowledge.path_state import PathState, PossibleActions
from constrained.knowledge.world import World, read_world
from constrained.knowledge.world_state import WorldState
from constrained.planning.model import Problem
from constrained.planning.problem import read_problem_of
from constrained.planning.task import PlanningTask


class ActionKnowledge(Knowledge):
    """Actions, the rules of their order, and slots (KnowAgent, section 3.1), at one point of a path.

    :meth:`after` returns the knowledge after one more action. Objects are immutable, so a search can hold many.

    Parameters
    ----------
    name, state, comments, demonstrations, source_map
        As `Knowledge`.
    world : World, optional

    Attributes
    ----------
    world : World or None
        What actions need and change, if the file says so.
    """

    def __init__(
        self,
        name: str,
        state: PathState | PossibleActions,
        comments: Mapping[str, str],
        *,
        world: World | None = None,
        demonstrations: Sequence[Demonstration] = (),
        source_map: SourceMap | None = None,
    ):
        super().__init__(name, state, comments, demonstrations=demonstrations, source_map=source_map)
        self.world = world

    # reading

    @classmethod
    @checked(GrammarError, start=TEXT)
    def from_lark(
        cls, text_or_path: str | Path | Source, start: str = START, *, source_map: bool = False
    ) -> ActionKnowledge:
        """Read a shipped name ("hotpotqa", "household"), a `.lark` file, or its text.

        Parameters
        ----------
        text_or_path : str or Path
        start : str
            The rule to begin with.
        source_map : bool
            Keep where each piece is written, so that explanations and traces can name the rule and the line.

        Raises
        ------
        GrammarError
            As `Grammar.from_lark`.
        KnowledgeError
            The grammar has no actions.
        """
        source = read_source(text_or_path)
        read = read_lark(source)
        written = SourceMap(read) if source_map else None
        grammar = Grammar.from_rules(written.read if written else read, start)
        return cls.from_grammar(grammar, source, start, source_map=written, world=read_world(source))

    @classmethod
    def from_grammar(
        cls,
        grammar: Grammar,
        source: Source,
        start: str = START,
        *,
        source_map: SourceMap | None = None,
        world: World | None = None,
    ) -> Self:
        """Make the knowledge of a grammar that was read from `source`.

        Raises KnowledgeError: the grammar has no actions.
        """
        name, state, comments, demonstrations = read_path(grammar, source, start)
        return cls(name, state, comments, world=world, demonstrations=demonstrations, source_map=source_map)

    # the world

    def for_problem(self, problem: Problem | str, source: str = "problem") -> Self:
        """The knowledge at the start of a problem: slots have its objects as values, and its facts hold.

        Parameters
        ----------
        problem : Problem or str
            A problem of the knowledge's domain, or its PDDL text.
        source : str
            The text's name, for messages.

        Raises
        ------
        KnowledgeError
            The knowledge doesn't say what its actions need and change.
        PddlError
            The problem doesn't parse, or names what isn't declared.
        """
        if self.world is None:
            raise KnowledgeError(
                f"{self.name} doesn't say what its actions need and change", "give them `//:` lines, or import PDDL"
            )
        if isinstance(problem, str):
            problem = read_problem_of(self.world.domain, problem, source)
        task = PlanningTask(self.world.domain, problem)
        return self.with_facts(WorldState(self.world, task, task.initial))

    def with_facts(self, facts: WorldState) -> Self:
        """The knowledge at the same point of the path, with these facts about the world.

        Facts about another domain are ignored.
        """
        if self.world is None or not set(facts.task.schemas) <= set(self.world.rules):
            return self
        if self.facts is not None and self.facts.task is facts.task:
            world_state = self.facts.in_state(facts.state, facts.optimistic)
            return self._with_state(PossibleActions(self.state.order, world_state))
        task = facts.task
        values = {slot: [task.spell(name) for name in task.of_type(kind)] for slot, kind in self.slot_types.items()}
        order = self.state.order.bound(self.grammar.bind(**{slot: names or {} for slot, names in values.items()}))
        return self._with_state(PossibleActions(order, WorldState(self.world, task, facts.state, facts.optimistic)))

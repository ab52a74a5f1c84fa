"""`ActionKnowledge`: which actions an agent may take, and in which order, read from one `.lark` file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, overload

from constrained.arguments import TEXT, checked
from constrained.automaton import Grammar
from constrained.errors import GrammarError, KnowledgeError
from constrained.grammar import read_lark, read_source
from constrained.grammar.json_schema import Options
from constrained.grammar.source import Source
from constrained.grammar.source_map import SourceMap
from constrained.knowledge.action_graph import START
from constrained.knowledge.base import Knowledge, path_start
from constrained.knowledge.demonstration import Demonstration
from constrained.knowledge.path_state import PathState, PossibleActions
from constrained.knowledge.tool_knowledge import CallKnowledge, ToolKnowledge
from constrained.knowledge.tool_policy import Policy
from constrained.knowledge.world import World, read_world
from constrained.knowledge.world_state import WorldState
from constrained.limits import DEFAULT, Limits
from constrained.limits import KIND as LIMITS
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
        name, state, comments, demonstrations = path_start(grammar, source, start)
        return cls(name, state, comments, world=world, demonstrations=demonstrations, source_map=source_map)

    @overload
    @classmethod
    def from_tools(
        cls,
        tools: Any,
        *,
        policy: None = None,
        call_format: str = "json",
        follow: Mapping[str, Iterable[str]] | None = None,
        end: Iterable[str] | None = None,
        closed: bool = True,
        whitespace: str = "single",
        any_order: bool = False,
        lenient: bool = False,
        name: str = "tools",
        limits: Limits = DEFAULT,
    ) -> CallKnowledge: ...

    @overload
    @classmethod
    def from_tools(
        cls,
        tools: Any,
        *,
        policy: str | Path | Policy,
        call_format: str = "json",
        closed: bool = True,
        any_order: bool = False,
        lenient: bool = False,
        some: bool = False,
        limits: Limits = DEFAULT,
    ) -> ToolKnowledge: ...

    @classmethod
    @checked(KnowledgeError, call_format=TEXT, whitespace=TEXT, name=TEXT, limits=LIMITS)
    def from_tools(
        cls,
        tools: Any,
        *,
        call_format: str = "json",
        follow: Mapping[str, Iterable[str]] | None = None,
        end: Iterable[str] | None = None,
        closed: bool = True,
        whitespace: str = "single",
        any_order: bool = False,
        lenient: bool = False,
        name: str = "tools",
        policy: str | Path | Policy | None = None,
        some: bool = False,
        limits: Limits = DEFAULT,
    ) -> CallKnowledge:
        """Make an action of each tool of a list: it writes a call whose arguments follow their JSON Schema.

        The result is a `CallKnowledge`, with a policy a `ToolKnowledge`: each is a `Knowledge`, and none an
        `ActionKnowledge`, which is what one `.lark` file says.

        Parameters
        ----------
        tools : list, dict, str or Path
            Tools in the form of OpenAI, MCP (also a whole ``tools/list`` result, or the JSON-RPC message with it) or
            Anthropic: as Python values, as JSON text, as the path of a file, or the address of an MCP server
            (``https://...``, extra ``mcp``). A list may also hold functions,
            dataclasses and pydantic models, which are read by their type hints and docstrings. Schemas may name types
            as programming languages do: ``dict``, ``float``, ``ArrayList`` and others
            (`constrained.knowledge.type_names.NAMES`).
        call_format : str
            "json": ``{"name": ..., "arguments": {...}}``; "hermes": that within ``<tool_call>`` lines, which is also
            Qwen's format; "llama": "parameters" for "arguments"; or your own text with NAME and ARGUMENTS in it.
        follow : mapping of str to list of str, optional
            Tool -> the tools that may follow it, "start" -> those that may come first. After a tool that isn't a key,
            any tool may follow. A tool named "start" is the action, and here the key, ``start_``.
        end : list of str, optional
            Tools after which a plan may end; default: any.
        closed : bool
            Objects whose schema lists properties, and doesn't mention others, admit no others.
        whitespace, any_order, lenient, limits
            As in `Grammar.from_json_schema`; the keywords that `lenient` ignored are listed in `grammar.left_out`.
        name : str
        policy : str, Path or Policy, optional
            A `.lark` file whose rules name the tools, and whose ``//:`` lines say what results tell and what calls need
            (see `constrained.knowledge.tool_policy`). It replaces `follow` and `end`. The result is a `ToolKnowledge`,
            whose `tools` give the values of its slots.
        some : bool
            The list may lack tools that the policy's rules name, even all: these are not called, but the path so far
            may hold calls of them.

        Raises
        ------
        KnowledgeError
            There is no such tool or format, or a tool's schema is refused.
        GrammarError
            The file can't be read, or is not JSON.
        """
        options = Options(limits, any_order, closed, lenient)
        if policy is not None:
            return ToolKnowledge.under(tools, policy, call_format, options, some=some)
        return CallKnowledge.of(tools, call_format, follow, end, whitespace, options, name)

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

"""`ActionKnowledge`: which actions an agent may take, and in which order, read from one `.lark` file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from constrained.arguments import SEVERAL, TEXT, WHOLE, checked
from constrained.automaton import Grammar
from constrained.automaton.automaton import MAX_TEXTS
from constrained.errors import GrammarError, KnowledgeError
from constrained.grammar import read_lark, read_source
from constrained.grammar.json_schema import Options
from constrained.grammar.lark_outline import rule_comments
from constrained.grammar.nodes import EMPTY, STEP
from constrained.grammar.source import Source
from constrained.grammar.source_map import SourceMap
from constrained.knowledge.action_graph import START, ActionGraph
from constrained.knowledge.commands import slot_values
from constrained.knowledge.demonstration import Demonstration, read_demonstrations
from constrained.knowledge.description import graph_table, needs_in_words, prompt_text, written_forms
from constrained.knowledge.path_state import PathState, PossibleActions, replaced
from constrained.knowledge.picture import to_html, to_mermaid, to_svg
from constrained.knowledge.report import INVALID, Judgement, Report, counted
from constrained.knowledge.tool_calls import CallForm, calls_in
from constrained.knowledge.tool_policy import Policy, read_policy
from constrained.knowledge.tool_policy.faults import check_policy
from constrained.knowledge.tools import (
    Toolbox,
    call_form,
    joined_comments,
    overview,
    read_tools,
    rule_names,
    tool_comments,
    tool_rules,
    toolbox,
)
from constrained.knowledge.world import World, read_world
from constrained.knowledge.world_state import WorldState
from constrained.limits import DEFAULT, Limits
from constrained.limits import KIND as LIMITS
from constrained.planning.model import ROOT, Problem
from constrained.planning.problem import read_problem_of
from constrained.planning.task import Task
from constrained.planning.wording import squeezed


class ActionKnowledge:
    """Actions, the rules of their order, and slots (KnowAgent, section 3.1), at one point of a path.

    :meth:`after` returns the knowledge after one more action. Objects are immutable, so a search can hold many.

    Attributes
    ----------
    name : str
    state : PathState
        The actions done, and what may follow.
    comments : dict of str to str
        Rule -> the comment above it.
    source_map : SourceMap or None
        Where each piece of the grammar is written, if `from_lark` was asked to keep that.
    world : World or None
        What actions need and change, if the file says so.
    facts : WorldState or None
        What is known of the world at this point of the path; then only actions whose conditions hold are admitted.
    tools : Toolbox or None
        The tools under a policy, if it was read with one.
    demonstrations : tuple of Demonstration
        The worked examples in the file's comments.
    """

    def __init__(self, name: str, state: PathState, comments: Mapping[str, str], source_map: SourceMap | None = None):
        self.name = name
        self.state = state
        self.comments = comments
        self.source_map = source_map
        self.world: World | None = None
        self.facts: WorldState | None = None
        self.tools: Toolbox | None = None
        self.calls: CallForm | None = None
        self.demonstrations: tuple[Demonstration, ...] = ()

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
        knowledge = cls.from_grammar(grammar, source, start, written)
        knowledge.world = read_world(source)
        return knowledge

    @classmethod
    def from_grammar(
        cls, grammar: Grammar, source: Source, start: str = START, source_map: SourceMap | None = None
    ) -> ActionKnowledge:
        """Make the knowledge of a grammar that was read from `source`.

        Raises KnowledgeError: the grammar has no actions.
        """
        graph = ActionGraph(grammar.rules, start)
        if not graph.actions or START in graph.rules[START]:
            itself = START in graph.rules[START]
            raise KnowledgeError(
                f"{source.name}: {'start is an action itself' if itself else 'there are no actions'}",
                hint="an action is a rule that writes text; `%declare _STEP`, end each action with it, and "
                "let start name those that may come first",
            )
        name = source.path.stem if source.path else "knowledge"
        comments = rule_comments(source.text)
        comments[START] = comments.get(start, "")
        knowledge = cls(name, PathState(grammar, graph), comments, source_map)
        knowledge.demonstrations = tuple(read_demonstrations(source.text))
        return knowledge

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
    ) -> ActionKnowledge:
        """Make an action of each tool of a list: it writes a call whose arguments follow their JSON Schema.

        Parameters
        ----------
        tools : list, dict, str or Path
            Tools in the form of OpenAI, MCP (also a whole ``tools/list`` result, or the JSON-RPC message with it) or
            Anthropic: as Python values, as JSON text, or as the path of a file. A list may also hold functions,
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
            (see `constrained.knowledge.tool_policy`). It replaces `follow` and `end`. The result's `tools` gives the
            values of its slots.
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
        listed = read_tools(tools, limits, may_be_empty=some and policy is not None)
        options = Options(limits, any_order, closed, lenient)
        # With a policy, the order is that of its file's rules, and calls stand in slots that are bound at each step.
        if policy is not None:
            read = policy if isinstance(policy, Policy) else read_policy(policy)
            knowledge = cls.from_grammar(Grammar.from_lark(read.source), read.source)
            knowledge.tools = toolbox(listed, read, call_format, options)
            knowledge.calls = knowledge.tools.form
            check_policy(knowledge.tools.policy, knowledge.slots, knowledge.calls.schemas, some=some)
            comments = {**knowledge.comments, **knowledge.actions}
            knowledge.comments = joined_comments(comments, tool_comments(listed), overview(call_format))
            return knowledge
        # Without a policy, the calls are part of the grammar.
        grammar = tool_rules(listed, call_format, follow, end, whitespace, options)
        grammar.left_out = tuple(options.left_out)
        state = PathState(grammar, ActionGraph(grammar.rules, START))
        described = tool_comments(listed)
        rule_of = rule_names(list(described))
        comments = {START: overview(call_format), **{rule_of[tool]: text for tool, text in described.items()}}
        knowledge = cls(name, state, comments)
        knowledge.calls = call_form(listed, call_format, whitespace, options)
        return knowledge

    def _with_state(self, state: PathState, facts: WorldState | None = None) -> ActionKnowledge:
        other = copy(self)
        other.state, other.facts = state, facts or self.facts
        return other

    def _at(self, step: PathState | PossibleActions) -> ActionKnowledge:
        return self._with_state(step) if isinstance(step, PathState) else self._with_state(step.state, step.facts)

    @checked(KnowledgeError, actions=SEVERAL, overview=TEXT)
    def only(self, actions: Iterable[str], overview: str) -> ActionKnowledge:
        """The knowledge with only some of its actions; where a removed action could come, the path may end.

        Parameters
        ----------
        actions : iterable of str
        overview : str
            Replaces the file's own overview.

        Raises
        ------
        KnowledgeError
            There is no such action, or none of them can come first.
        """
        names = set(actions)
        if unknown := names - set(self.actions):
            raise KnowledgeError(
                f"no action {sorted(unknown)[0]!r} in {self.name}", hint=f"the actions are: {', '.join(self.actions)}"
            )
        rules = replaced(self.grammar.rules, set(self.actions) - names, EMPTY)
        graph = ActionGraph(rules, self.graph.start)
        if not graph.actions:
            raise KnowledgeError(f"{self.name}: no path begins with {' or '.join(sorted(names)) or 'no action'}")
        other = self._with_state(PathState(self.grammar.with_rules(rules, self.grammar.start), graph))
        other.comments = {**self.comments, START: overview}
        return other

    # actions, rules and slots

    @property
    def grammar(self) -> Grammar:
        """The grammar of the rest of the path, with the slots as they are bound now."""
        return self.state.grammar

    @property
    def graph(self) -> ActionGraph:
        """The graph of the actions: which may follow which."""
        return self.state.graph

    @property
    def actions(self) -> dict[str, str]:
        """Action -> its definition (the comment above its rule)."""
        return {a: self.comments.get(a, "") for a in self.graph.actions}

    @property
    def rules(self) -> dict[str, tuple[str, ...]]:
        """Action -> the actions that may follow it; "start" -> those that may begin."""
        return dict(self.graph.rules)

    @property
    def slots(self) -> frozenset[str]:
        """The names of the slots."""
        return self.grammar.slots - {STEP}

    def bind(self, **values: Any) -> ActionKnowledge:
        """The knowledge with slots bound (see `Grammar.bind`); rebinding costs microseconds.

        Raises
        ------
        KnowledgeError
            An unknown slot, or an empty list.
        """
        for name in values:
            if name not in self.slots:
                known = ", ".join(sorted(self.slots)) or "none"
                raise KnowledgeError(f"no slot {name!r} in {self.name}", hint=f"the slots are: {known}")
        try:
            return self._with_state(self.state.bound(self.grammar.bind(**values)))
        except GrammarError as error:
            raise KnowledgeError(error.message, hint=error.hint) from None

    @checked(KnowledgeError, view=SEVERAL)
    def bind_view(self, view: Mapping[str, Any] | Iterable[str]) -> ActionKnowledge:
        """The knowledge bound to what an environment shows: the values of slots, or the commands admissible now.

        Slots that the view doesn't mention, or maps to an empty list, have no value now; names in the view that aren't
        slots are ignored. Where facts are known, slots named after a type keep its objects.
        """
        view = view if isinstance(view, Mapping) else slot_values(self.grammar, view)
        of_types = self.slot_types if self.facts is not None else ()
        values = {slot: view.get(slot, {}) for slot in self.slots if slot not in of_types}
        if not values:
            return self
        return self.bind(
            **{slot: {} if isinstance(value, (list, tuple)) and not value else value for slot, value in values.items()}
        )

    # one action at a time

    @property
    def path(self) -> tuple[str, ...]:
        """The actions done."""
        return self.state.path

    @property
    def last(self) -> str:
        """The rule of the last action done; "start" before the first."""
        return self.state.last

    @property
    def may_end(self) -> bool:
        """Whether the path may end here: the rules admit it, and the goal, if there is one, holds."""
        return self._step.may_end

    @property
    def may_follow(self) -> list[str]:
        """The actions that may come next, with arguments that exist now."""
        return self._step.may_follow

    @property
    def _step(self) -> PathState | PossibleActions:
        return self.state if self.facts is None else PossibleActions(self.state, self.facts)

    @checked(KnowledgeError, steps_left=WHOLE)
    def next_action(self, steps_left: int | None = None) -> Grammar:
        """The grammar of the actions that may come next, without the empty text.

        Parameters
        ----------
        steps_left : int, optional
            Admit only actions from which the path can end within this many steps, this one included.

        Raises
        ------
        KnowledgeError
            No action may come next.
        """
        return self._step.next_action(steps_left)

    def next_actions(self, limit: int = MAX_TEXTS) -> list[str]:
        """The texts of the actions that may come next, sorted.

        Raises KnowledgeError: no action may come next; or they can't be listed, because they contain free text or there
        are more than `limit`.
        """
        texts = self.next_action().texts(limit)
        if texts is None:
            raise KnowledgeError(
                f"the next actions of {self.name} can't be listed: they contain free text, or are more than {limit:,}",
                hint="next_action() is their grammar",
            )
        return texts

    def judge(self, action: Any) -> Judgement:
        """Judge `action` as the next one: ok, invalid or misordered, with the reason.

        A tool call may be given as text, or as a dictionary. It is judged by its values: spacing, the order of keys,
        and the spelling of strings and numbers don't matter.
        """
        return self._judged(action)[0]

    def _judged(self, action: Any) -> tuple[Judgement, PathState | PossibleActions]:
        """The verdict on `action`, and the state after it."""
        judgement, step = self._step.judged(self._as_written(action))
        if self.calls is not None and judgement.verdict == INVALID and (fault := self.calls.fault(action)):
            judgement = replace(judgement, reason=fault)
        return judgement, step

    def _as_written(self, action: Any) -> Any:
        """A tool call in the form that the masks write; other actions, and calls admitted as they are, unchanged."""
        if self.calls is None or (isinstance(action, str) and self.state.judge(action)):
            return action
        text = self.calls.text(action)
        if self.state.judge(text).verdict != INVALID or self.calls.fault(action):
            return text
        # Its values may be admitted in another order or spelling, as where a policy chooses among values of its own.
        opening = self.state.anywhere()
        return (opening and self.calls.find(action, opening)) or text

    def after(self, action: Any) -> ActionKnowledge:
        """The knowledge after one more action, with the action's effects on the facts.

        Raises
        ------
        KnowledgeError
            The action is not admitted here.
        """
        return self._at(self._step.after(self._as_written(action)))

    def check(self, actions: Iterable[Any], views: Iterable[Mapping[str, Any]] | None = None) -> Report:
        """Judge a path. An invalid action doesn't change the state; after a misordered one, the path goes on.

        Where facts are known, an action whose conditions don't hold changes nothing.

        Parameters
        ----------
        actions : iterable
            Actions. Tool calls may also be dictionaries, or stand in messages (OpenAI's and Anthropic's); only the
            assistant's messages are looked at.
        views : iterable of mapping, optional
            For each action, the values of the slots before it.
        """
        if isinstance(actions, (str, bytes)):
            raise KnowledgeError("a path is a list of actions, not one text", hint=f"check([{actions!r}])")
        if self.calls is not None:
            actions = calls_in(actions)
        report, knowledge = Report(), self
        if views is not None and not isinstance(views, Iterable):
            raise KnowledgeError(f"views are {views!r:.80}", "give the values of the slots before each action")
        # Views are taken one by one: an endless iterator of them is fine, a short one is an error.
        remaining = iter(views) if views is not None else None
        for action in actions:
            if remaining is not None:
                view = next(remaining, None)
                if view is None:
                    raise KnowledgeError("there are fewer views than actions", "give one view for each action")
                knowledge = knowledge.bind_view(view)
            judgement, step = knowledge._judged(action)
            report.steps.append(judgement)
            knowledge = knowledge._at(step)
        report.finished = knowledge.may_end
        return report

    # the world

    @property
    def form(self) -> ActionKnowledge:
        """The knowledge without facts: only the grammar decides which action may come next."""
        other = copy(self)
        other.facts = None
        return other

    def for_problem(self, problem: Problem | str, source: str = "problem") -> ActionKnowledge:
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
        task = Task(self.world.domain, problem)
        return self.told(WorldState(self.world, task, task.initial))

    def told(self, facts: WorldState) -> ActionKnowledge:
        """The knowledge at the same point of the path, with these facts about the world.

        Facts about another domain are ignored.
        """
        if self.world is None or not set(facts.task.schemas) <= set(self.world.rules):
            return self
        if self.facts is not None and self.facts.task is facts.task:
            return self._with_state(self.state, self.facts.told(facts.state, facts.optimistic))
        task = facts.task
        values = {slot: [task.spell(name) for name in task.of_type(kind)] for slot, kind in self.slot_types.items()}
        state = self.state.bound(self.grammar.bind(**{slot: names or {} for slot, names in values.items()}))
        return self._with_state(state, WorldState(self.world, task, facts.state, facts.optimistic))

    @property
    def own_world(self) -> World | None:
        """The world of the `.lark` file, if the file states a problem, too."""
        return self.world if self.world is not None and self.world.problem is not None else None

    @cached_property
    def slot_types(self) -> dict[str, str]:
        """Slot -> the type it is named after; its values are the type's objects."""
        if self.world is None:
            return {}
        kinds = {squeezed(kind): kind for kind in (ROOT, *self.world.domain.types)}
        return {slot: kinds[squeezed(slot)] for slot in self.slots if squeezed(slot) in kinds}

    # for people and models

    def to_text(self) -> str:
        """The prompt text: overview, definitions, rules and principle (KnowAgent, section 3.2.2).

        Beside its definition stands how an action is written, in the words of its rule, and what it needs.
        """
        rules, graph = self.grammar.rules, self.graph
        needs = {} if self.world is None else needs_in_words(rules, graph, self.world)
        # A call's form is the overview's; its arguments are a grammar of their own, which no few words show.
        forms = {} if self.calls is not None and self.tools is None else written_forms(graph, rules)
        return prompt_text(graph, self.comments, forms, needs)

    def to_mermaid(self) -> str:
        """The action graph as Mermaid text."""
        return to_mermaid(self.graph)

    def to_svg(self, *, matrix: bool = False) -> str:
        """The action graph as SVG: boxes and arrows, or a table (with `matrix`, or where there are too many)."""
        return to_svg(self.name, self.graph, self.comments, matrix)

    def to_table(self, width: int = 100) -> str:
        """The action graph as lines of text, wrapped to `width` characters."""
        return graph_table(self.name, self.graph, len(self.slots), width)

    def __repr__(self) -> str:
        return f"ActionKnowledge({self.name!r}: {counted(len(self.actions), 'action')}, after {self.last})"

    def _repr_html_(self) -> str:
        """The graph, then each action with its definition and what may follow it."""
        unbound = self.grammar.unbound()
        bound = sorted(self.slots.difference(unbound))
        return to_html(self.name, self.graph, self.comments, bound, unbound, self.path)

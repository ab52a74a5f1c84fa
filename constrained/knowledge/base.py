"""`Knowledge`: what masks, agents, guards and servers ask of any knowledge, at one point of a path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple, Self

from constrained.arguments import SEVERAL, TEXT, WHOLE, checked
from constrained.automaton import Grammar
from constrained.automaton.automaton import MAX_TEXTS
from constrained.errors import GrammarError, KnowledgeError
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
from constrained.knowledge.report import Judgement, Report, counted
from constrained.knowledge.world import World
from constrained.knowledge.world_state import WorldState
from constrained.planning.model import ROOT
from constrained.planning.wording import squeezed


class ReadPath(NamedTuple):
    """What a `.lark` file says of the paths over its actions."""

    name: str
    state: PathState
    comments: dict[str, str]
    demonstrations: Sequence[Demonstration]


def path_start(grammar: Grammar, source: Source, start: str = START) -> ReadPath:
    """The start of a path over the actions of a grammar that was read from `source`.

    Raises KnowledgeError: the grammar has no actions.
    """
    graph = ActionGraph(grammar.all_rules(), start)
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
    return ReadPath(name, PathState(grammar, graph), comments, tuple(read_demonstrations(source.text)))


class Knowledge:
    """Actions, the rules of their order, and slots (KnowAgent, section 3.1), at one point of a path.

    :meth:`after` returns the knowledge after one more action. Objects are immutable, so a search can hold many.

    Parameters
    ----------
    name : str
    state : PathState or PossibleActions
    comments : mapping of str to str
    demonstrations : sequence of Demonstration
    source_map : SourceMap, optional

    Attributes
    ----------
    name : str
    state : PathState or PossibleActions
        The actions done, and what may follow.
    comments : dict of str to str
        Rule -> the comment above it.
    demonstrations : tuple of Demonstration
        The worked examples in the file's comments.
    source_map : SourceMap or None
        Where each piece of the grammar is written, if `from_lark` was asked to keep that.
    world : World or None
        What actions need and change; None if nothing says so.
    """

    world: World | None = None

    def __init__(
        self,
        name: str,
        state: PathState | PossibleActions,
        comments: Mapping[str, str],
        *,
        demonstrations: Sequence[Demonstration] = (),
        source_map: SourceMap | None = None,
    ):
        self.name, self.state, self.comments = name, state, comments
        self.demonstrations, self.source_map = tuple(demonstrations), source_map

    def _with_state(self, state: PathState | PossibleActions) -> Self:
        other = copy(self)
        other.state = state
        return other

    @checked(KnowledgeError, actions=SEVERAL, overview=TEXT)
    def only(self, actions: Iterable[str], overview: str) -> Self:
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
        rules = replaced(self.grammar.all_rules(), set(self.actions) - names, EMPTY)
        graph = ActionGraph(rules, self.graph.start)
        if not graph.actions:
            raise KnowledgeError(f"{self.name}: no path begins with {' or '.join(sorted(names)) or 'no action'}")
        order = PathState(self.grammar.with_rules(rules, self.grammar.start), graph)
        other = self._with_state(order if self.facts is None else PossibleActions(order, self.facts))
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

    def bind(self, **values: Any) -> Self:
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
    def bind_view(self, view: Mapping[str, Any] | Iterable[str]) -> Self:
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
        return self.state.may_end

    @property
    def may_follow(self) -> list[str]:
        """The actions that may come next, with arguments that exist now."""
        return self.state.may_follow

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
        return self.state.next_action(steps_left)

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
        return self.state.judged(action)

    def after(self, action: Any) -> Self:
        """The knowledge after one more action, with the action's effects on the facts.

        Raises
        ------
        KnowledgeError
            The action is not admitted here.
        """
        return self._with_state(self.state.after(action))

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
        actions = self._actions_in(actions)
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
            knowledge = knowledge._with_state(step)
        report.finished = knowledge.may_end
        return report

    def _actions_in(self, given: Iterable[Any]) -> Iterable[Any]:
        """The actions among what `check` is given."""
        return given

    # the world

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

    @property
    def facts(self) -> WorldState | None:
        """What is known of the world at this point; then only actions whose conditions hold are admitted."""
        return self.state.facts

    def with_facts(self, facts: WorldState) -> Self:
        """The knowledge at the same point of the path, with these facts; without a world, facts are ignored."""
        return self

    @property
    def without_facts(self) -> Self:
        """The knowledge without facts: only the grammar decides which action may come next."""
        return self._with_state(self.state.order)

    # for people and models

    def to_text(self) -> str:
        """The prompt text: overview, definitions, rules and principle (KnowAgent, section 3.2.2).

        Beside its definition stands how an action is written, in the words of its rule, and what it needs.
        """
        rules, graph = self.grammar.all_rules(), self.graph
        needs = {} if self.world is None else needs_in_words(rules, graph, self.world)
        return prompt_text(graph, self.comments, self._written_forms(), needs)

    def _written_forms(self) -> dict[str, str]:
        """Action -> how it is written."""
        return written_forms(self.graph, self.grammar.all_rules())

    def invented_examples(self, count: int) -> Sequence[Demonstration]:
        """At most `count` worked examples that can be made up from the knowledge itself: of actions, none."""
        return ()

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
        return f"{type(self).__name__}({self.name!r}: {counted(len(self.actions), 'action')}, after {self.last})"

    def _repr_html_(self) -> str:
        """The graph, then each action with its definition and what may follow it."""
        unbound = self.grammar.unbound()
        bound = sorted(self.slots.difference(unbound))
        return to_html(self.name, self.graph, self.comments, bound, unbound, self.path)

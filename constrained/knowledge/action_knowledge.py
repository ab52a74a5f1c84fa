"""`ActionKnowledge`: what an agent may do, from one `.lark` file.

An object is a place on a path, too: :meth:`after` gives the knowledge after one more
action. Objects never change, so a search can hold many.
"""

from __future__ import annotations

from collections.abc import Iterable

from constrained import html
from constrained.automaton.automaton import State
from constrained.errors import GrammarError, KnowledgeError
from constrained.grammar import Grammar, read_lark, read_source
from constrained.grammar import nodes as n
from constrained.grammar.json_schema import Options
from constrained.grammar.source import Source
from constrained.grammar.source_map import SourceMap
from constrained.knowledge.action_graph import START, ActionGraph
from constrained.knowledge.comments import rule_comments
from constrained.knowledge.continuation import continuation, nonempty
from constrained.knowledge.description import following, graph_table, knowledge_text
from constrained.knowledge.diagnosis import stops_fitting
from constrained.knowledge.picture import to_mermaid, to_svg
from constrained.knowledge.report import INVALID, MISORDERED, OK, Judgement, Report, counted
from constrained.knowledge.step_limit import within
from constrained.knowledge.tools import read_tools, tool_comments, tool_rules
from constrained.knowledge.unordered import Anywhere, opening
from constrained.limits import DEFAULT, Limits


class ActionKnowledge:
    """Actions, the rules of their order, and slots (KnowAgent, section 3.1).

    Attributes
    ----------
    name : str
    grammar : Grammar
        Of whole paths, with the slots bound so far.
    last : str
        The action that a path has come through last; "start" before the first.
    written : SourceMap or None
        Where each piece of the grammar is written, if that was asked for.
    """

    def __init__(
        self,
        name: str,
        grammar: Grammar,
        graph: ActionGraph,
        comments: dict[str, str],
        written: SourceMap | None = None,
    ):
        self.name = name
        self.grammar = grammar
        self.graph = graph
        self.comments = comments
        self.written = written
        self.path: tuple[str, ...] = ()
        self.last: str = START
        self._anywhere: Anywhere | None = None
        self._actions: Grammar | None = None
        self._judged: tuple[str, tuple[Judgement, State | None]] | None = None

    @classmethod
    def from_lark(cls, text_or_path, start: str = "start", *, spots: bool = False) -> ActionKnowledge:
        """Read a shipped name ("hotpotqa", "household"), a `.lark` file, or its text.

        Parameters
        ----------
        text_or_path : str or Path
        start : str
            The rule to begin with.
        spots : bool
            Keep where each piece is written, so that explanations and traces name rule and line; it is read twice.

        Raises
        ------
        GrammarError
            As `Grammar.from_lark`.
        KnowledgeError
            The grammar has no actions.
        """
        source = read_source(text_or_path)
        rules, slots = read_lark(source)
        written = SourceMap(source, rules) if spots else None
        grammar = Grammar.from_rules(written.rules if written else rules, slots, start, source)
        made = cls.from_grammar(grammar, source, start)
        made.written = written
        return made

    @classmethod
    def from_grammar(cls, grammar: Grammar, source: Source, start: str = "start") -> ActionKnowledge:
        """The knowledge in a grammar that was read from `source`.

        Raises
        ------
        KnowledgeError
            The grammar has no actions.
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
        return cls(name, grammar, graph, {**comments, START: comments.get(start, "")})

    @classmethod
    def from_tools(
        cls,
        tools,
        *,
        call_format: str = "json",
        follow=None,
        end=None,
        closed: bool = True,
        whitespace: str = "single",
        any_order: bool = False,
        lenient: bool = False,
        name: str = "tools",
        limits: Limits = DEFAULT,
    ) -> ActionKnowledge:
        """Each tool of a list as an action that writes a call of it, its arguments by their JSON Schema.

        Parameters
        ----------
        tools : list, dict, str or Path
            Tools in the form of OpenAI, MCP (also a whole ``tools/list`` result) or Anthropic,
            as Python values, as JSON text, or as the path of a file.
        call_format : str
            "json": ``{"name": ..., "arguments": {...}}``; "hermes": that within ``<tool_call>``
            lines, as Qwen writes it, too; "llama": "parameters" for "arguments"; or a text of
            your own with NAME and ARGUMENTS in it.
        follow : mapping of str to list of str, optional
            Tool -> the tools that may follow it, "start" -> those that may begin; any, for a
            tool that is not named.
        end : list of str, optional
            Tools after which a plan may be over; default: any.
        closed : bool
            Objects that list properties, and say nothing of others, admit no others.
        whitespace, any_order, lenient, limits
            As in `Grammar.from_json_schema`; what `lenient` left out is in `grammar.left_out`.
        name : str

        Raises
        ------
        KnowledgeError
            There is no such tool or format, or a tool's schema is refused.
        GrammarError
            The file can't be read, or is not JSON.
        """
        found, options = read_tools(tools, limits), Options(limits, any_order, closed, lenient)
        grammar = tool_rules(found, call_format, follow, end, whitespace, options)
        grammar.left_out = tuple(options.left_out)
        return cls(name, grammar, ActionGraph(grammar.rules, START), tool_comments(found, call_format))

    def _replace(self, grammar: Grammar, path=None, last=None) -> ActionKnowledge:
        other = ActionKnowledge(self.name, grammar, self.graph, self.comments, self.written)
        other.path = self.path if path is None else path
        other.last = last or self.last
        return other

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
        """What can be bound."""
        return self.grammar.slots - {"_STEP"}

    def bind(self, **values) -> ActionKnowledge:
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
            return self._replace(self.grammar.bind(**values))
        except GrammarError as error:
            raise KnowledgeError(error.message, hint=error.hint) from None

    def bind_view(self, view) -> ActionKnowledge:
        """Bound to what an environment shows: its values for our slots, nothing for the others."""
        none = {s: {} for s in self.slots}
        return self.bind(**{**none, **{k: v for k, v in view.items() if k in self.slots}})

    def to_text(self) -> str:
        """The prompt's overview, rules, definitions and principle (KnowAgent, section 3.2.2)."""
        return knowledge_text(self)

    def to_mermaid(self) -> str:
        """The action graph as Mermaid text."""
        return to_mermaid(self)

    def to_svg(self, *, matrix: bool = False) -> str:
        """The action graph as an SVG picture: boxes and arrows, or (always with `matrix`) a table where they are many."""
        return to_svg(self, matrix)

    def to_table(self, width: int = 100) -> str:
        """The action graph as lines of text, wrapped to `width` characters."""
        return graph_table(self, width)

    def __repr__(self) -> str:
        return f"ActionKnowledge({self.name!r}: {counted(len(self.actions), 'action')}, after {self.last})"

    def _repr_html_(self) -> str:
        """The graph, then each action with its definition and what may follow it."""
        graph, unbound = self.graph, self.grammar.unbound()
        bound = sorted(self.slots.difference(unbound))
        rows = [
            [html.code(name), html.plain(words), html.plain(following(graph, name))]
            for name, words in self.actions.items()
        ]
        facts = [
            f"<strong>{html.plain(self.name)}</strong>: {counted(len(rows), 'action')}",
            html.plain(self.comments.get(START, "")),
            f"first: {html.plain(following(graph, START))}",
            f"slots with values: {html.plain(', '.join(bound))}" if bound else "",
            f"slots to be bound: {html.plain(', '.join(unbound))}" if unbound else "",
            f"so far: {' → '.join(map(html.code, self.path[-3:]))}" if self.path else "",
        ]
        picture = html.picture(self.to_svg(), f"Action graph of {self.name}")
        return html.output(*map(html.paragraph, facts), picture, html.table(["action", "definition", "then"], rows))

    # one action at a time

    def next_action(self, steps_left: int | None = None) -> Grammar:
        """The grammar of the actions that may come next; never of the empty text.

        Parameters
        ----------
        steps_left : int, optional
            Only actions from which the path can end within so many, this one included.

        Raises
        ------
        KnowledgeError
            No action may come next.
        """
        grammar = self.grammar if steps_left is None else within(self.grammar, steps_left)
        grammar = self._next if grammar is self.grammar else nonempty(grammar)
        start = opening(grammar)
        if start is None or not start.first():
            raise KnowledgeError(
                f"no action is admitted after {self.path[-1] if self.path else 'the start'!r}"
                + (f" with {steps_left} steps left" if steps_left is not None else ""),
                hint="bind the slots to what is there now, or let the rules end here",
            )
        return grammar

    @property
    def _next(self) -> Grammar:
        """The actions that may come next, read by `next_action` and `judge` alike."""
        if self._actions is None:
            self._actions = nonempty(self.grammar)
        return self._actions

    def _without(self, actions) -> Grammar:
        """The grammar from here, some actions left out."""
        rules = {
            name: n.Rule(name, n.NEVER, r.params, r.line) if name in actions else r
            for name, r in self.grammar.rules.items()
        }
        return self.grammar.with_rules(rules, self.grammar.start)

    def only(self, actions: Iterable[str], overview: str) -> ActionKnowledge:
        """The knowledge with no actions but some; where another stood, the path may be over.

        Parameters
        ----------
        actions : iterable of str
        overview : str
            What the rest is for, instead of the file's own overview.

        Raises
        ------
        KnowledgeError
            There is no such action, or none of them can come first.
        """
        kept = set(actions)
        if unknown := kept - set(self.actions):
            raise KnowledgeError(
                f"no action {sorted(unknown)[0]!r} in {self.name}", hint=f"the actions are: {', '.join(self.actions)}"
            )
        rules = {
            name: n.Rule(name, n.EMPTY, r.params, r.line) if name in self.actions and name not in kept else r
            for name, r in self.grammar.rules.items()
        }
        graph = ActionGraph(rules, self.graph.start)
        if not graph.actions:
            raise KnowledgeError(f"{self.name}: no path begins with {' or '.join(sorted(kept)) or 'no action'}")
        grammar = self.grammar.with_rules(rules, self.grammar.start)
        return ActionKnowledge(self.name, grammar, graph, {**self.comments, START: overview}, self.written)

    @property
    def may_end(self) -> bool:
        """The path may be over here."""
        return self.grammar.automaton.start.accepting

    @property
    def may_follow(self) -> list[str]:
        """The actions that may come next, with the arguments that are there."""
        return [a for a in self.graph.rules[self.last] if self.begin(a)]

    def judge(self, action: str) -> Judgement:
        """ok, invalid or misordered, and why, for `action` as the next one."""
        return self._judge(action)[0]

    def after(self, action: str) -> ActionKnowledge:
        """The knowledge after one more action.

        Raises
        ------
        KnowledgeError
            The action is not admitted here.
        """
        judgement, state = self._judge(action)
        if not judgement:
            raise KnowledgeError(f"{action!r} is {judgement.verdict}: {judgement.reason}")
        return self.moved(action, judgement.action, state)

    def check(self, actions) -> Report:
        """Judge a path. An invalid action leaves the place unchanged; a misordered one counts
        once, and the path goes on after it.
        """
        if isinstance(actions, (str, bytes)):
            raise KnowledgeError("a path is a list of actions, not one text", hint=f"check([{actions!r}])")
        report, place = Report(), self
        for action in actions:
            judgement, state = place._judge(action)
            report.steps.append(judgement)
            if state is not None:
                place = place.moved(action, judgement.action, state)
        report.finished = place.may_end
        return report

    def moved(self, action: str, name: str, state: State) -> ActionKnowledge:
        """The knowledge after the text `action`, an instance of the rule `name`, that came to `state`."""
        node = continuation(state.ends(), self.grammar.limits)
        return self._replace(self.grammar.with_start(node), (*self.path, action), name)

    def _judge(self, action: str) -> tuple[Judgement, State | None]:
        """The judgement, and the state after the action; kept, as who judges an action often takes it next."""
        if self._judged is None or self._judged[0] != action:
            self._judged = action, self._judge_anew(action)
        return self._judged[1]

    def _judge_anew(self, action: str) -> tuple[Judgement, State | None]:
        data = action_bytes(action)
        begun = opening(self._next)
        here = begun.read(data) if action and begun else None
        if here is not None and here.accepting:
            return Judgement(action, OK, self._name_here(here, data)), here
        start = self._at_any_point.any_action()
        there = start.read(data) if action and start else None
        if there is not None and there.accepting:
            allowed = self.may_follow
            names = self._at_any_point.names(data)
            name = next((a for a in names if a in allowed), names[0])
            after = "at the start" if not self.path else f"after {self.path[-1]!r}"
            reason = f"{name} is not admitted {after}; may follow: {', '.join(allowed) or 'nothing'}"
            if name in allowed:
                why = stops_fitting(begun, data, allowed)
                reason = f"{name} with these arguments is not admitted {after}: {why}"
            return Judgement(action, MISORDERED, name, reason), self._at_any_point.action(name).read(data)
        lenient = Anywhere(self.grammar, self.graph, none=n.EMPTY)
        reason = stops_fitting(start, data, self.actions, lenient.any_action())
        return Judgement(action, INVALID, lenient.nearest(data), reason), None

    @property
    def _at_any_point(self) -> Anywhere:
        if self._anywhere is None:
            self._anywhere = Anywhere(self.grammar, self.graph)
        return self._anywhere

    def begin(self, action: str) -> State | None:
        """The state before the next action, if that is to be `action`; None if it can't be."""
        state = opening(self._without({a for a in self.graph.actions if a != action}))
        return state if state and state.first() else None

    def _name_here(self, here: State, data: bytes) -> str | None:
        """The action that `data`, admitted here, is: several may write the same text elsewhere."""
        ended = {self.graph.ended_by(rest.node) if rest else None for rest in here.ends()}
        if len(ended) == 1 and ended <= set(self.graph.rules[self.last]):
            return ended.pop()
        names = self._at_any_point.names(data)
        if len(names) > 1:
            begun = ((a, self.begin(a)) for a in names)
            names = [a for a, state in begun if state and (end := state.read(data)) and end.accepting] or names
        return names[0] if names else None


def action_bytes(action: str) -> bytes:
    """`action` as UTF-8; KnowledgeError if it is no text."""
    if not isinstance(action, str):
        raise KnowledgeError(f"an action is text, not {type(action).__name__}")
    try:
        return action.encode()
    except UnicodeEncodeError:
        raise KnowledgeError(f"the action {action!a} has a lone surrogate, which is not text") from None

"""`ActionKnowledge`: what an agent may do, from one `.lark` file.

An object is a place on a path, too: :meth:`after` gives the knowledge after one more
action. Objects never change, so a search can hold many.
"""

from __future__ import annotations

from constrained.automaton.automaton import State
from constrained.errors import KnowledgeError
from constrained.grammar import Grammar, read_lark, read_source
from constrained.grammar import nodes as n
from constrained.knowledge.comments import rule_comments
from constrained.knowledge.draw import to_mermaid, to_svg
from constrained.knowledge.graph import START, ActionGraph
from constrained.knowledge.report import INVALID, MISORDERED, OK, Judgement, Report
from constrained.knowledge.resume import continuation
from constrained.knowledge.text import knowledge_text

_SHOWN = 6
"""Alternatives that a reason names."""


class ActionKnowledge:
    """Actions, the rules of their order, and slots (KnowAgent, section 3.1).

    Attributes
    ----------
    name : str
    grammar : Grammar
        Of whole paths, with the slots bound so far.
    """

    def __init__(self, name: str, grammar: Grammar, graph: ActionGraph, comments: dict[str, str]):
        self.name = name
        self.grammar = grammar
        self.graph = graph
        self.comments = comments
        self.path: tuple[str, ...] = ()
        self._last: str = START
        self._anywhere: Grammar | None = None

    @classmethod
    def from_lark(cls, text_or_path, start: str = "start") -> ActionKnowledge:
        """Read a shipped name ("hotpotqa", "household"), a `.lark` file, or its text.

        Raises
        ------
        GrammarError
            As `Grammar.from_lark`.
        KnowledgeError
            The grammar has no actions.
        """
        source = read_source(text_or_path)
        rules, slots = read_lark(source)
        grammar = Grammar.from_rules(rules, slots, start, source)
        graph = ActionGraph(grammar.rules, start)
        if not graph.rules[START]:
            raise KnowledgeError(
                f"{source.name} has no actions",
                hint="an action is a rule that writes text; `%declare _STEP` and end each action with it",
            )
        name = source.path.stem if source.path else "knowledge"
        return cls(name, grammar, graph, rule_comments(source.text))

    def _replace(self, grammar: Grammar, path=None, last=None) -> ActionKnowledge:
        other = ActionKnowledge(self.name, grammar, self.graph, self.comments)
        other.path = self.path if path is None else path
        other._last = last or self._last
        return other

    @property
    def actions(self) -> dict[str, str]:
        """Action -> its definition (the comment above its rule)."""
        return {a: self.comments.get(a, "") for a in self.graph.rules if a != START}

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
        GrammarError
            An unknown slot, or an empty list.
        """
        return self._replace(self.grammar.bind(**values))

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

    def to_svg(self) -> str:
        """The action graph as an SVG picture."""
        return to_svg(self)

    # one action at a time

    def next_action(self, steps_left: int | None = None) -> Grammar:
        """The grammar of the actions that may come next.

        Parameters
        ----------
        steps_left : int, optional
            Only actions from which the path can end within so many, this one included.

        Raises
        ------
        KnowledgeError
            No action may come next.
        """
        grammar = self.grammar
        if steps_left is not None:
            late = {a for a in self.graph.rules if self.graph.distance.get(a, 1 << 30) > steps_left}
            if late - {START}:
                rules = {
                    name: n.Rule(name, n.NEVER, r.params, r.line) if name in late else r
                    for name, r in grammar.rules.items()
                }
                grammar = Grammar(rules, grammar.start, grammar.slots, grammar.bindings)
        if not any(q.first() for q in grammar.automaton.start.positions):
            raise KnowledgeError(
                f"no action is admitted after {self.path[-1] if self.path else 'the start'!r}"
                + (f" with {steps_left} steps left" if steps_left is not None else ""),
                hint="bind the slots to what is there now, or let the rules end here",
            )
        return grammar

    @property
    def may_end(self) -> bool:
        """The path may be over here."""
        return self.grammar.automaton.start.accepting

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
        return self._moved(action, judgement.action, state)

    def check(self, actions) -> Report:
        """Judge a path. An invalid action leaves the place unchanged; a misordered one counts
        once, and the path goes on after it.
        """
        report, place = Report(), self
        for action in actions:
            judgement, state = place._judge(action)
            report.steps.append(judgement)
            if state is not None:
                place = place._moved(action, judgement.action, state)
        report.finished = place.may_end
        return report

    def _moved(self, action: str, name: str, state: State) -> ActionKnowledge:
        ends = state.ends()
        node = continuation(ends + ([None] if len(ends) < sum(not q.first() for q in state.positions) else []))
        return self._replace(self.grammar.with_start(node), (*self.path, action), name)

    def _judge(self, action: str) -> tuple[Judgement, State | None]:
        if not isinstance(action, str):
            raise KnowledgeError(f"an action is text, not {type(action).__name__}")
        data = action.encode("utf-8", "replace")
        here = self.grammar.automaton.read(data) if action else None
        if here is not None and here.accepting:
            return Judgement(action, OK, self._name_of(data)), here
        anywhere = self._everywhere()
        there = anywhere.automaton.read(data) if action else None
        if there is not None and there.accepting:
            name = self._name_of(data)
            after = "at the start" if not self.path else f"after {self.path[-1]!r}"
            allowed = ", ".join(self.graph.rules[self._last]) or "nothing"
            reason = f"{name} is not admitted {after}; may follow: {allowed}"
            if name in self.graph.rules[self._last]:
                reason = f"{name} with these arguments is not admitted {after}: {self._expected(data)}"
            return Judgement(action, MISORDERED, name, reason), there
        name = self._name_of(data, prefix=True)
        return Judgement(action, INVALID, name, self._expected(data, anywhere)), None

    def _expected(self, data: bytes, grammar: Grammar | None = None) -> str:
        """Where `data` stops fitting, and what could have come there."""
        state = (grammar or self.grammar).automaton.start
        at = 0
        for byte in data:
            after = state.step(byte)
            if after is None:
                break
            state, at = after, at + 1
        known = data[:at].decode("utf-8", "ignore")
        if not at:
            return f"no admitted action begins like this; the actions are {', '.join(self.actions)}"
        options = _options(state)
        more = f", expected {options}" if options else ""
        return f"stops fitting after {known!r}{more}"

    def _everywhere(self) -> Grammar:
        """Any action at any point, its arguments any values that can reach its parameters."""
        if self._anywhere is None:
            self._anywhere = self.grammar.with_start(n.alt([self._free(a) for a in self.actions]))
        return self._anywhere

    def _free(self, action: str) -> n.Node:
        rule = self.grammar.rules[action]
        values = {}
        for name in rule.params:
            texts = self._reaching(action, name, set()) | self._held(name)
            values[name] = tuple(sorted(texts)) or n.Scoped(n.EMPTY, {})
        return n.Scoped(rule.body, values)

    def _reaching(self, rule: str, param: str, seen: set) -> set[bytes]:
        """Every value that the slots now have for a parameter, through all calls."""
        out: set[bytes] = set()
        if (rule, param) in seen:
            return out
        seen.add((rule, param))
        for caller, arg in self.graph.arguments.get((rule, param), ()):
            if isinstance(arg, n.Slot):
                value = self.grammar.bindings.get(arg.name, ())
                if isinstance(value, dict):
                    out.update(t for texts in value.values() for t in texts)
                elif isinstance(value, tuple):
                    out.update(value)
            elif isinstance(arg, n.Literal):
                out.add(arg.data)
            elif isinstance(arg, n.Var):
                out |= self._reaching(caller, arg.name, seen)
        return out

    def _held(self, param: str) -> set[bytes]:
        """The values that earlier actions gave a parameter of this name."""
        out = set()
        for node in n.walk(self.grammar.start):
            value = node.values.get(param) if isinstance(node, n.Scoped) else None
            if isinstance(value, bytes):
                out.add(value)
        return out

    def _name_of(self, data: bytes, prefix: bool = False) -> str | None:
        """The action that `data` is (or begins like, longest match), in the file's order."""
        best, longest = None, 0
        for action in self.actions:
            state = self.grammar.with_start(self._free(action)).automaton.start
            length = 0
            for byte in data:
                state = state.step(byte)
                if state is None:
                    break
                length += 1
            if state is not None and state.accepting:
                return action
            if length > longest:
                best, longest = action, length
        return best if prefix else None


def _options(state: State) -> str:
    """A few of the texts that could come at `state`."""
    from constrained.automaton import positions as p

    texts: list[str] = []
    for q in state.positions:
        if isinstance(q, p.InChoices):
            texts += [v[q.depth :].decode("utf-8", "replace") for v in q.values[q.low : q.high]]
        elif isinstance(q, p.InLiteral):
            texts.append(q.data[q.at :].decode("utf-8", "replace"))
        elif isinstance(q, p.InText):
            texts.append("free text")
    texts = list(dict.fromkeys(texts))
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return ", ".join(repr(t) if t != "free text" else t for t in texts[:_SHOWN]) + more



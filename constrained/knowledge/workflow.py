"""`import_dot`: turn a workflow, drawn as a graph in Graphviz's DOT language, into a draft of action knowledge.

Each node becomes a rule: an action, written as the node's label, or, where the shape is a diamond, a check, which is
only a choice. Edges say what may follow; their labels stand beside as comments, since a grammar doesn't know whether
they hold.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from constrained.errors import GrammarError
from constrained.grammar.traverse import reached
from constrained.knowledge.action_graph import START
from constrained.knowledge.action_knowledge import ActionKnowledge
from constrained.knowledge.dot_graph import DotGraph, read_dot
from constrained.limits import DEFAULT, Limits

_CHECKS = ("diamond", "mdiamond")


@dataclass
class Workflow:
    """A workflow as action knowledge.

    Attributes
    ----------
    graph : DotGraph
    text : str
        The `.lark` file.
    notes : list of str
        What the draft had to decide, for a person to look at.
    """

    graph: DotGraph
    text: str = ""
    notes: list[str] = field(default_factory=list)

    def knowledge(self) -> ActionKnowledge:
        """The file, loaded."""
        return ActionKnowledge.from_lark(self.text)


def import_dot(text: str, *, source: str = "graph", limits: Limits = DEFAULT) -> Workflow:
    """Turn a directed graph into a draft of action knowledge.

    Parameters
    ----------
    text : str
        The graph, in DOT.
    source : str
        The file's name, for messages and the draft's first line.
    limits : Limits

    Raises
    ------
    GrammarError
        The graph can't be read (see `read_dot`), or has no nodes.
    """
    graph = read_dot(text, source, limits)
    workflow = Workflow(graph)
    _WorkflowDrafter(workflow, source, limits).draft()
    return workflow


class _WorkflowDrafter:
    def __init__(self, workflow: Workflow, source: str, limits: Limits):
        self.workflow, self.graph, self.notes = workflow, workflow.graph, workflow.notes
        self.source, self.limits = source, limits
        self.after: dict[str, dict[str, list[str]]] = {name: {} for name in self.graph.nodes}
        for edge in self.graph.edges:
            labels = self.after[edge.tail].setdefault(edge.head, [])
            if edge.label and edge.label not in labels:
                labels.append(edge.label)

    def draft(self) -> None:
        nodes = self.graph.nodes
        if not nodes:
            raise GrammarError("the graph has no nodes", "draw at least one: a -> b;", source=self.source)
        # A rule, its text, the step and each follower are names of the .lark file.
        symbols = 4 * len(nodes) + 2 * len(self.graph.edges)
        self.limits.check("symbols", symbols, f"{self.source}: the draft has {symbols:,} symbols", "split the graph")
        first = self.roots()
        self.begun = first[0] if len(first) == 1 and first[0].lower() == START and self.after[first[0]] else ""
        self.rules = self.rule_names()
        self.texts = self.action_texts()
        self.checks = self.choices()
        self.ends = self.loose_ends()
        lines = [*self.head(), *self.start(first)]
        for name in nodes:
            if name != self.begun:
                lines += self.rule(name)
        self.workflow.text = "\n".join(lines) + "\n"

    # the graph

    def roots(self) -> list[str]:
        """The nodes where a plan may begin: those without an edge in, and one of each part that has none such."""
        entered = {edge.head for edge in self.graph.edges if edge.head != edge.tail}
        result = [name for name in self.graph.nodes if name not in entered]
        seen = set(reached(result, self.after.__getitem__))

        def unseen(name: str) -> set[str]:
            return self.after[name].keys() - seen

        for name in self.graph.nodes:
            if name not in seen:
                result.append(name)
                seen.update(reached([name], unseen))
                self.notes.append(f"each node around {name!r} follows another: the draft lets a plan begin with it")
        return result

    def choices(self) -> set[str]:
        """The checks: diamonds that something follows. One that leads back to itself through checks is an action."""
        checks = {
            name for name, node in self.graph.nodes.items() if node.shape.lower() in _CHECKS and self.after[name]
        } - {self.begun}
        # Peel off, again and again, checks that no other check leads to: what is left lies on circles, or behind them.
        before = Counter(head for name in checks for head in self.after[name] if head in checks)
        free = [name for name in checks if not before[name]]
        circular = set(checks)
        while free:
            name = free.pop()
            circular.discard(name)
            for head in self.after[name]:
                if head in checks:
                    before[head] -= 1
                    if not before[head]:
                        free.append(head)
        for name in self.graph.nodes:
            if name in circular:
                self.notes.append(
                    f"check {name!r} is on a circle of checks, or behind one: the draft makes it an action"
                )
        return checks - circular

    def loose_ends(self) -> set[str]:
        """Actions after which the draft lets a plan end, though none of the graph's ends can be reached from them."""
        before: dict[str, list[str]] = {name: [] for name in self.graph.nodes}
        for edge in self.graph.edges:
            before[edge.head].append(edge.tail)
        ending = set(reached([name for name in self.graph.nodes if not self.after[name]], before.__getitem__))
        result = set()

        def open_before(name: str) -> set[str]:
            return set(before[name]) - ending

        for name in self.graph.nodes:
            if name not in ending and name not in self.checks and name != self.begun:
                result.add(name)
                ending.update(reached([name], open_before))
                self.notes.append(f"no end can be reached from {name!r}: the draft lets a plan end after it")
        return result

    def rule_names(self) -> dict[str, str]:
        """Node -> the name of its rule: that of the node in lower case, with `_` between words."""
        taken, names = {START}, {}
        for name in self.graph.nodes:
            plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
            plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+", "_", plain).strip("_").lower()
            rule = plain if plain[:1].isalpha() else f"node_{plain}".rstrip("_")
            number = 2
            base = rule
            while rule in taken:
                rule, number = f"{base}_{number}", number + 1
            taken.add(rule)
            names[name] = rule
        return names

    # the text

    def head(self) -> Iterator[str]:
        graph = f"the graph {_comment(self.graph.name)} of " if self.graph.name else ""
        yield f"// Drafted by constrained import dot from {graph}{_comment(self.source)}, for a person to refine."
        yield "// An edge says what may follow; its label stands beside it as a comment, which nothing checks."
        yield ""
        if any(self.after[name] for name in self.graph.nodes if name not in self.checks):
            yield "%declare _STEP  // ends one action: there the environment answers"
            yield ""

    def start(self, first: list[str]) -> Iterator[str]:
        if self.begun:
            yield f"// {_comment(self.graph.nodes[self.begun].label)}"
            yield self.choice(START, self.after[self.begun])
        else:
            yield "// Where a plan begins."
            yield self.choice(START, {name: [] for name in first})

    def rule(self, name: str) -> Iterator[str]:
        node, rule, after = self.graph.nodes[name], self.rules[name], self.after[name]
        yield ""
        if name in self.checks:
            yield f"// {_comment(node.label or name)}"
            yield self.choice(rule, after)
            return
        yield f"// {rule}: {_comment(node.label or name)}"
        for head, labels in after.items():
            if labels:
                yield f"// then {self.rules[head]}: {_comment('; '.join(labels))}"
        text = json.dumps(self.texts[name], ensure_ascii=False)
        if not after:
            yield f"{rule}: {text}"
            return
        inner = " | ".join(self.rules[head] for head in after)
        if name in self.ends:
            inner = f"[{inner}]"
        elif len(after) > 1:
            inner = f"({inner})"
        yield f"{rule}: {text} _STEP {inner}"

    def action_texts(self) -> dict[str, str]:
        """Node -> how its action is written: its label, with its name behind it where another has the same."""
        labels = {name: (node.label or name).replace("->", "→") for name, node in self.graph.nodes.items()}
        same = Counter(label.casefold() for label in labels.values())
        result: dict[str, str] = {}
        taken = set()
        for name, label in labels.items():
            text = label if same[label.casefold()] == 1 else f"{label} ({_comment(name).replace('->', '→')})"
            base, number = text, 2
            while text.casefold() in taken:
                text, number = f"{base} {number}", number + 1
            taken.add(text.casefold())
            result[name] = text
        return result

    def choice(self, rule: str, after: dict[str, list[str]]) -> str:
        """A rule that is a choice, one alternative a line, each with its condition."""
        lines = []
        for head, labels in after.items():
            why = _comment("; ".join(labels))
            lines.append(f"{self.rules[head]}  // {why}" if why else self.rules[head])
        return f"{rule}: " + "\n    | ".join(lines)


def _comment(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())

"""Read directed graphs in Graphviz's DOT language: nodes with labels and shapes, edges with labels.

Read is what says which node may follow which: node and edge statements, chains, subgraphs (also as ends of edges),
ports, defaults of labels and shapes, quoted names with escapes and ``+``, comments. How a graph is drawn is ignored.
Undirected graphs and HTML-like labels are refused. The language: https://graphviz.org/doc/info/lang.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NoReturn

from constrained.grammar.source import Source
from constrained.limits import DEFAULT, Limits

_TOKEN = re.compile(
    r"""
    (?P<space>[\s\ufeff]+|//[^\n]*|/\*.*?\*/|(?m:^)\#[^\n]*)
    | (?P<text>"(?:[^"\\]|\\.)*")
    | (?P<name>(?:[A-Za-z_]|[^\x00-\x7f])(?:\w|[^\x00-\x7f])*|-?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?))
    | (?P<sign>->|--|[{}\[\]=;,:+])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_KEYWORDS = ("strict", "graph", "digraph", "node", "edge", "subgraph")
_FIELDS = re.compile(r"<[^<>]*>|[{}|]")
"""What shapes "record" have in their labels besides words."""


@dataclass
class DotNode:
    """A node: its name, its label as plain text, its shape, and the offset where it is first named."""

    name: str
    label: str
    shape: str
    at: int


@dataclass
class DotEdge:
    """An edge from `tail` to `head`, with its label as plain text."""

    tail: str
    head: str
    label: str = ""


@dataclass
class DotGraph:
    """A directed graph; nodes in the order in which they are first named."""

    name: str = ""
    nodes: dict[str, DotNode] = field(default_factory=dict)
    edges: list[DotEdge] = field(default_factory=list)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int

    def is_sign(self, *signs: str) -> bool:
        return self.kind == "sign" and self.text in signs

    def is_word(self, *words: str) -> bool:
        return self.kind == "name" and self.text.lower() in words


@dataclass
class _Scope:
    """A graph or subgraph that is being read: its nodes, its defaults, and the statement begun in it."""

    node: dict[str, str]
    edge: dict[str, str]
    at: int
    members: dict[str, None] = field(default_factory=dict)
    left: list[str] | None = None  # the end of an edge that was read last
    arrow: bool = False  # whether an edge's other end must follow
    first_edge: int = 0  # the first edge of the chain that is being read


def read_dot(text: str, source: str = "graph", limits: Limits = DEFAULT) -> DotGraph:
    """Read a directed graph.

    Parameters
    ----------
    text : str
    source : str
        The file's name, for messages.
    limits : Limits
        `characters` of the text, `symbols` (nodes and edges), `depth` of subgraphs.

    Raises
    ------
    GrammarError
        The text is no directed graph of DOT, or has an HTML-like label; with line, column and a caret.
    LimitError
        It is larger than the limits allow.
    """
    limits.check("characters", len(text), f"{source} has {len(text):,} characters", "give a smaller graph")
    return _DotParser(Source(text, source, None), limits).read()


class _DotParser:
    def __init__(self, source: Source, limits: Limits):
        self.source, self.limits, self.graph = source, limits, DotGraph()
        self.tokens = self._tokens()
        self.position = 0

    def fail(self, message: str, hint: str, at: int) -> NoReturn:
        raise self.source.error(message, hint, *self.source.line_column(at))

    # tokens

    def _tokens(self) -> list[_Token]:
        text, at, tokens = self.source.text, 0, []
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                self._not_a_token(at)
            if match.lastgroup != "space":
                tokens.append(_Token(match.lastgroup or "", match[0], at))
            at = match.end()
        return [*tokens, _Token("end", "", len(text))]

    def _not_a_token(self, at: int) -> NoReturn:
        if self.source.text[at] == "<":
            hint = 'write the words as text: label="…"'
            self.fail("an HTML-like label: only plain text becomes words of an action", hint, at)
        if self.source.text[at] == '"':
            self.fail("a text that is not closed", 'end it with "', at)
        if self.source.text.startswith("/*", at):
            self.fail("a comment that is not closed", "end it with */", at)
        self.fail(f"unexpected {self.source.text[at]!r}", "names with other characters are written in quotes", at)

    @property
    def next(self) -> _Token:
        return self.tokens[self.position]

    def take(self) -> _Token:
        token = self.next
        self.position += token.kind != "end"
        return token

    def wanted(self, what: str, hint: str) -> NoReturn:
        token = repr(self.next.text[:40]) if self.next.kind != "end" else "the end of the file"
        self.fail(f"expected {what}, not {token}", hint, self.next.at)

    def sign(self, sign: str, hint: str) -> None:
        if not self.next.is_sign(sign):
            self.wanted(f"{sign!r}", hint)
        self.take()

    def name(self, what: str) -> str:
        """A name, or a text in quotes, which may be joined with `+`; its escapes stay."""
        token = self.next
        if token.kind not in ("name", "text"):
            self.wanted(what, 'a name is letters, digits and _, or in quotes: "…"')
        self.take()
        if token.kind == "name":
            return token.text
        parts = [token.text[1:-1]]
        while self.next.is_sign("+"):
            self.take()
            if self.next.kind != "text":
                self.wanted("a text in quotes after +", '"…" + "…"')
            parts.append(self.take().text[1:-1])
        return "".join(parts).replace("\\\n", "").replace('\\"', '"')

    # statements

    def read(self) -> DotGraph:
        if self.next.is_word("strict"):
            self.take()
        if self.next.is_word("graph"):
            self.fail("an undirected graph says no order", "write digraph, and edges as a -> b", self.next.at)
        if not self.next.is_word("digraph"):
            self.wanted("digraph", "a graph begins with: digraph NAME {")
        self.take()
        if not self.next.is_sign("{"):
            self.graph.name = self.name("the graph's name, or {")
        opening = self.next.at
        self.sign("{", "a graph begins with: digraph NAME {")
        scopes = [_Scope({}, {}, opening)]
        while scopes:
            self._statement(scopes)
        if self.next.kind != "end":
            self.wanted("the end of the file", "give one graph a file")
        return self.graph

    def _statement(self, scopes: list[_Scope]) -> None:
        """Read one step: a statement, or an end of an edge; subgraphs are opened and closed here, without recursion."""
        scope, token = scopes[-1], self.next
        if token.kind == "end":
            self.fail("a graph that is not closed", "end it with }", scope.at)
        if scope.arrow and not (token.is_sign("{") or token.is_word("subgraph")):
            self._end(scope, [self._node(scope)])
        elif token.is_sign("}"):
            self.take()
            scopes.pop()
            if scopes:
                scopes[-1].members |= scope.members
                self._end(scopes[-1], list(scope.members), subgraph=True)
        elif token.is_sign(";", ","):
            self.take()
        elif token.is_sign("{") or token.is_word("subgraph"):
            self.take()
            if not token.is_sign("{"):
                if not self.next.is_sign("{"):
                    self.name("the subgraph's name, or {")
                self.sign("{", "a subgraph is written: subgraph NAME { … }")
            self.limits.check(
                "depth", len(scopes) + 1, "subgraphs nest too deeply", "nest them less", **self._at(token)
            )
            scopes.append(_Scope({**scope.node}, {**scope.edge}, token.at))
        elif token.is_word("graph", "node", "edge"):
            self.take()
            defaults = {"node": scope.node, "edge": scope.edge}.get(token.text.lower(), {})
            if not self.next.is_sign("["):
                self.wanted(f"[ after {token.text}", 'a node of this name is written in quotes: "…"')
            defaults.update(self._attributes())
        elif token.kind == "text" or not self.tokens[self.position + 1].is_sign("="):
            self._end(scope, [self._node(scope)])
        else:
            self._assignment()

    def _at(self, token: _Token) -> dict[str, object]:
        line, column = self.source.line_column(token.at)
        return {"line": line, "column": column, "source": self.source.name}

    def _assignment(self) -> tuple[str, str]:
        key = self.name("the name of an attribute")
        if not self.next.is_sign("="):
            return key.lower(), "true"  # as in [bold]
        self.take()
        return key.lower(), self.name(f"the value of {key[:40]}")

    def _attributes(self) -> dict[str, str]:
        result = {}
        while self.next.is_sign("["):
            opening = self.take().at
            while not self.next.is_sign("]"):
                if self.next.kind == "end":
                    self.fail("a list of attributes that is not closed", "end it with ]", opening)
                key, value = self._assignment()
                result[key] = value
                if self.next.is_sign(";", ","):
                    self.take()
            self.take()
        return result

    def _node(self, scope: _Scope) -> str:
        """A node's name and port; the node is made where it is named first."""
        token = self.next
        if token.kind == "name" and token.text.lower() in _KEYWORDS:
            self.wanted("a node", 'a node of this name is written in quotes: "…"')
        name = self.name("a node")
        while self.next.is_sign(":"):
            self.take()
            self.name("a port")
        scope.members[name] = None
        if name not in self.graph.nodes:
            shape = scope.node.get("shape", "")
            self.graph.nodes[name] = DotNode(name, _words(scope.node.get("label", "\\N"), name, shape), shape, token.at)
            self._count(token)
        return name

    def _count(self, token: _Token) -> None:
        count = len(self.graph.nodes) + len(self.graph.edges)
        self.limits.check("symbols", count, "more nodes and edges", "give a smaller graph", **self._at(token))

    def _end(self, scope: _Scope, names: list[str], subgraph: bool = False) -> None:
        """Take up an end of an edge, or a whole node statement."""
        token, chain = self.next, scope.left is not None
        if scope.left is None:
            scope.first_edge = len(self.graph.edges)
        else:
            for tail in scope.left:
                for head in names:
                    self.graph.edges.append(DotEdge(tail, head))
                    self._count(token)
        scope.left, scope.arrow = names, False
        if token.is_sign("--"):
            self.fail("an edge without direction says no order", "write a -> b", token.at)
        if token.is_sign("->"):
            self.take()
            scope.arrow = True
            return
        attributes = self._attributes()
        if chain:
            made = self.graph.edges[scope.first_edge :]
            self.graph.edges[scope.first_edge :] = self._drawn(made, {**scope.edge, **attributes}, token)
        elif not subgraph:
            node = self.graph.nodes[names[0]]
            node.shape = attributes.get("shape", node.shape)
            if "label" in attributes:
                node.label = _words(attributes["label"], node.name, node.shape)
        scope.left = None

    def _drawn(self, edges: Iterable[DotEdge], given: dict[str, str], token: _Token) -> list[DotEdge]:
        """The edges as an arrow shows them; invisible ones only place nodes."""
        style, direction = given.get("style", ""), given.get("dir", "forward").lower()
        if "invis" in style:
            return []
        if direction == "none":
            self.fail("an edge without direction says no order", "leave out dir=none", token.at)
        label = given.get("label", given.get("xlabel", ""))
        result = []
        for edge in edges:
            words = _words(label, f"{edge.tail}->{edge.head}", "")
            ways = [] if direction == "back" else [(edge.tail, edge.head)]
            ways += [(edge.head, edge.tail)] if direction in ("back", "both") else []
            result += [DotEdge(tail, head, words) for tail, head in ways]
        return result


def _words(label: str, name: str, shape: str) -> str:
    """A label as words on one line; what DOT writes with a backslash is replaced."""

    def plain(match: re.Match[str]) -> str:
        return {"N": name, "E": name, "G": "", "L": "", "T": "", "H": ""}.get(
            match[1], " " if match[1] in "nlr" else match[1]
        )

    if "record" in shape.lower():
        label = _FIELDS.sub(" ", label)
    return " ".join("".join(c if c.isprintable() else " " for c in _ESCAPE.sub(plain, label)).split())

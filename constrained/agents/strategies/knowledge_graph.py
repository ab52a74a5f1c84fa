"""The knowledge graph of WESE (section 3.2): triples read from observations, and retrieval of those that a task needs.

An environment whose texts have a known form extracts triples and the task's entities by rules of its own. Otherwise a
model writes them under masks (`grammars/steps/triples.lark` and `entities.lark`): heads and tails are words of the
observation or of the action before it, entities are nodes of the graph, so it can't invent any.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from constrained.agents.episode import Episode
from constrained.agents.messages import Requests
from constrained.agents.plan import Step
from constrained.agents.prompts import instruction_that_fits
from constrained.agents.step_formats import shipped_grammar
from constrained.automaton import Grammar
from constrained.environments.base import WithTriples
from constrained.knowledge.commands import on_one_line

if TYPE_CHECKING:  # networkx takes a fifth of a second to import
    from networkx import MultiDiGraph

BETWEEN = " | "
"""Separates head, relation and tail. Not a comma or a bracket: these are frequent in names."""

READ_CHARACTERS = (2000, 1000, 500, 200)
"""Characters of an observation, or of a list of names, that a prompt may show: the first that fits is taken."""

NAME_WORDS = 6
NAME_CHARACTERS = 60
"""Limits on the name of an entity."""

MOST_TRIPLES = 12
MOST_ENTITIES = 10
"""Limits on one text, as in the grammars."""

TRIPLES_TOKENS = 300
ENTITIES_TOKENS = 150

_TRIPLES = """\
Write what the observation says that may help with the task, as facts: one a line, in the form
head | relation | tail
such as
mug 1 | in/on | cabinet 3
Head and tail are names in the observation's own words, the relation says how the first relates to the second. \
Write none if there is nothing."""

_ENTITIES = "Which of the names below is the task about? Write each on a line of its own, or none."

_NONE = "none"

_LINE = re.compile(re.escape(BETWEEN).join([r"([^|\n]+)"] * 3))
_PIECES = re.compile(r"[\n|,;:!?\"“”()\[\]{}]|\.(?!\S)")


class Triple(NamedTuple):
    """One fact; its text is ``mug 1 | in/on | cabinet 3``."""

    head: str
    relation: str
    tail: str

    def __str__(self) -> str:
        return BETWEEN.join(self)


def knowledge_graph(triples: Iterable[tuple[str, str, str]]) -> MultiDiGraph:
    """Build the graph (Algorithm 1): entities are nodes, relations edges from head to tail.

    Unlike the paper's adjacency matrix, it keeps two relations between the same two entities.
    """
    from networkx import MultiDiGraph

    graph = MultiDiGraph()
    for head, relation, tail in triples:
        graph.add_edge(head, tail, relation)
    return graph


def around(graph: MultiDiGraph, entities: Iterable[str], limit: int | None = None, hops: int = 1) -> list[Triple]:
    """The triples between each entity and its neighbours (Algorithm 2), in the order of the entities.

    Neighbours are on either side of a relation, as the paper's text says: the printed loop would find where a thing is
    from the thing, but not from its location. Entities that aren't in the graph have no neighbours.

    Parameters
    ----------
    graph : MultiDiGraph
    entities : iterable of str
    limit : int, optional
        Most triples to return; those of fewer hops come first.
    hops : int
        With 2, the triples of the neighbours follow, and so on.
    """
    result: dict[Triple, None] = {}
    reached = dict.fromkeys(entity for entity in entities if entity in graph)
    new = list(reached)
    for _ in range(hops):
        neighbours: list[str] = []
        for entity in new:
            edges = (*graph.out_edges(entity, keys=True), *graph.in_edges(entity, keys=True))
            triples = [Triple(head, relation, tail) for head, tail, relation in edges if head != tail]
            result.update(dict.fromkeys(triples))
            neighbours += [end for triple in triples for end in (triple.head, triple.tail)]
        new = [entity for entity in dict.fromkeys(neighbours) if entity not in reached]
        reached.update(dict.fromkeys(new))
    return list(result)[:limit]


def extract(episode: Episode, step: Step, role: str) -> Requests[list[Triple]]:
    """Extract the triples from the observation after `step`, by rule or by the model of `role`."""
    observation = step.observation or ""
    if isinstance(episode.surroundings.environment, WithTriples):
        return [Triple(*triple) for triple in episode.surroundings.environment.triples(observation)]

    def question(characters: int) -> str:
        observed = f"Action: {on_one_line(step.action)}\nObservation: {observation[:characters]}"
        return f"{_TRIPLES}\n\nTask: {episode.plan.task}\n{observed}\nFacts:"

    candidates = names(f"{step.action}\n{observation[: READ_CHARACTERS[0]]}")
    if not candidates:
        return []
    grammar = shipped_grammar("steps/triples").bind(NAME=candidates)
    return read_triples((yield from _extractor_text(episode, role, question, grammar, TRIPLES_TOKENS)))


def task_entities(episode: Episode, graph: MultiDiGraph, role: str) -> Requests[list[str]]:
    """Choose the nodes of the graph that the task is about (Algorithm 2, line 1)."""
    environment, nodes = episode.surroundings.environment, list(graph.nodes)
    if isinstance(environment, WithTriples):
        return list(environment.entities(nodes))

    def question(characters: int) -> str:
        listed = "\n".join([*nodes, ""])[:characters].rpartition("\n")[0]
        return f"{_ENTITIES}\n\nTask: {episode.plan.task}\nNames:\n{listed}\nThe task is about:"

    readable = [node for node in nodes if node != _NONE and "\n" not in node]  # so that each line names one node
    if not readable:
        return []
    grammar = shipped_grammar("steps/entities").bind(NODE=readable)
    text = yield from _extractor_text(episode, role, question, grammar, ENTITIES_TOKENS)
    lines = text.split("\n") if episode.settings.constrained else map(str.strip, text.split("\n"))
    return [node for node in dict.fromkeys(lines) if node in readable][:MOST_ENTITIES]


def names(text: str) -> list[str]:
    """The possible names in a text: sequences of up to `NAME_WORDS` words without punctuation between them."""
    result: dict[str, None] = {}
    for piece in _PIECES.split(text):
        words = [word for word in piece.split() if word.isprintable()]
        for start in range(len(words)):
            for end in range(start + 1, min(start + NAME_WORDS, len(words)) + 1):
                name = " ".join(words[start:end]).strip("'‘’")
                if len(name) <= NAME_CHARACTERS and any(map(str.isalnum, name)):
                    result[name] = None
    return list(result)


def read_triples(text: str) -> list[Triple]:
    """The triples in a text, one a line; without masks there may be other lines between them.

    No name or relation contains a line break or a bar, so a text written under the grammar is read exactly.
    """
    lines = (_LINE.fullmatch(line.strip()) for line in text.split("\n"))
    triples = (Triple(*map(str.strip, line.groups())) for line in lines if line)
    return [triple for triple in triples if all(0 < len(part) <= NAME_CHARACTERS for part in triple)][:MOST_TRIPLES]


def _extractor_text(
    episode: Episode, role: str, question: Callable[[int], str], grammar: Grammar, tokens: int
) -> Requests[str]:
    """Ask the extractor's model; the answer is empty if the plan has fewer than `tokens` left.

    `question` returns the question with at most that many characters of the text to read.
    """
    left, model = episode.writer.tokens_left(), episode.writer.model(role)
    if left is not None and left < tokens:
        return ""
    prompt = instruction_that_fits(model, map(question, READ_CHARACTERS))
    answer = yield from episode.ask(prompt, grammar, role=role, max_new_tokens=tokens, stop="\n\n")
    return answer.text if answer else ""

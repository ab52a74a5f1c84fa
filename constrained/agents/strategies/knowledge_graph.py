"""The knowledge graph of WESE (section 3.2): what was read as triples, and the part of it that a task needs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # networkx takes a fifth of a second to import: only who explores pays for it
    from networkx import MultiDiGraph


import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from constrained.agents.messages import Asking
from constrained.agents.plan import Step
from constrained.agents.prompts import first_that_fits, in_chat_form
from constrained.automaton import Grammar

if TYPE_CHECKING:  # they import us; networkx takes a fifth of a second
    from networkx import MultiDiGraph

    from constrained.agents.episode import Episode

BETWEEN = " | "
"""Between head, relation and tail, as texts have a triple; names with commas and brackets are frequent in questions."""


class Triple(NamedTuple):
    """One fact; its text is ``mug 1 | in/on | cabinet 3``."""

    head: str
    relation: str
    tail: str

    def __str__(self) -> str:
        return BETWEEN.join(self)


def knowledge_graph(triples: Iterable[tuple[str, str, str]]) -> MultiDiGraph:
    """Algorithm 1: entities are nodes, relations edges from head to tail.

    Unlike the adjacency matrix printed there, two relations between the same two entities are both kept.
    """
    from networkx import MultiDiGraph

    graph = MultiDiGraph()
    for head, relation, tail in triples:
        graph.add_edge(head, tail, relation)
    return graph


def one_hop(graph: MultiDiGraph, entities: Iterable[str], limit: int | None = None) -> list[Triple]:
    """Algorithm 2: the triples between each entity and its neighbours, in the order of the entities.

    Neighbours are those on either side of a relation, as the text has it: the printed loop would find a thing's
    place by the thing, and not by the place.

    Parameters
    ----------
    graph : MultiDiGraph
    entities : iterable of str
        Those that aren't in the graph have no neighbours.
    limit : int, optional
        At most so many triples.
    """
    found: dict[Triple, None] = {}
    for entity in entities:
        if entity in graph:
            edges = (*graph.out_edges(entity, keys=True), *graph.in_edges(entity, keys=True))
            found.update(dict.fromkeys(Triple(head, relation, tail) for head, tail, relation in edges if head != tail))
    return list(found)[:limit]


READ_CHARACTERS = (2000, 1000, 500, 200)
"""Characters of an observation, or of a list of names, that are read: as many as the model's context has room for."""

NAME_WORDS = 6
NAME_CHARACTERS = 60
"""The longest name of an entity."""

MOST_TRIPLES = 12
MOST_ENTITIES = 10
"""Of one text, as the grammars bound them."""

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
"""What is written where nothing is named."""

_LINE = re.compile(re.escape(BETWEEN).join([r"([^|\n]+)"] * 3))
_PIECES = re.compile(r"[\n|,;:!?\"“”()\[\]{}]|\.(?!\S)")


def extract(episode: Episode, step: Step, role: str) -> Asking[list[Triple]]:
    """The facts in what was observed after `step`, by rule or by the model of `role`."""
    environment = episode.environment
    if hasattr(environment, "triples"):
        return [Triple(*triple) for triple in environment.triples(step.observation)]

    def question(characters: int) -> str:
        observed = f"Action: {step.action}\nObservation: {step.observation[:characters]}"
        return f"{_TRIPLES}\n\nTask: {episode.plan.task}\n{observed}\nFacts:"

    found = names(f"{step.action}\n{step.observation[: READ_CHARACTERS[0]]}")
    if not found:
        return []
    prompt = _prompt(episode, role, question)
    text = yield from _written(episode, role, prompt, _grammar("triples").bind(NAME=found), TRIPLES_TOKENS)
    return read_triples(text)


def task_entities(episode: Episode, graph: MultiDiGraph, role: str) -> Asking[list[str]]:
    """The nodes of the graph that the task is about (Algorithm 2, line 1)."""
    environment, nodes = episode.environment, list(graph.nodes)
    if hasattr(environment, "entities"):
        return environment.entities(nodes)
    if not nodes:
        return []

    def question(characters: int) -> str:
        listed = "\n".join([*nodes, ""])[:characters].rpartition("\n")[0]
        return f"{_ENTITIES}\n\nTask: {episode.plan.task}\nNames:\n{listed}\nThe task is about:"

    prompt = _prompt(episode, role, question)
    written = [node for node in nodes if node != _NONE and "\n" not in node]  # each a line, and no other one
    if not written:
        return []
    text = yield from _written(episode, role, prompt, _grammar("entities").bind(NODE=written), ENTITIES_TOKENS)
    lines = text.split("\n") if episode.settings.constrained else map(str.strip, text.split("\n"))
    return [node for node in dict.fromkeys(lines) if node in written][:MOST_ENTITIES]


def names(text: str) -> list[str]:
    """What may be called by a name in `text`: runs of up to `NAME_WORDS` words with no mark between them."""
    found: dict[str, None] = {}
    for piece in _PIECES.split(text):
        words = [word for word in piece.split() if word.isprintable()]
        for start in range(len(words)):
            for end in range(start + 1, min(start + NAME_WORDS, len(words)) + 1):
                name = " ".join(words[start:end]).strip("'‘’")
                if len(name) <= NAME_CHARACTERS and any(map(str.isalnum, name)):
                    found[name] = None
    return list(found)


def read_triples(text: str) -> list[Triple]:
    """The triples in a text; without masks, other lines may stand between them.

    No name or relation holds a line break or a bar, so what the grammar wrote is read exactly.
    """
    lines = (_LINE.fullmatch(line.strip()) for line in text.split("\n"))
    found = (tuple(map(str.strip, line.groups())) for line in lines if line)
    return [Triple(*parts) for parts in found if all(0 < len(part) <= NAME_CHARACTERS for part in parts)][:MOST_TRIPLES]


def _written(episode: Episode, role: str, prompt: str, grammar: Grammar, tokens: int) -> Asking[str]:
    """What the extractor writes; nothing, where the plan's tokens are running out."""
    left = episode.left()
    if left is not None and left < tokens:
        return ""
    answer = yield from episode.ask(prompt, grammar, role=role, max_new_tokens=tokens, stop="\n\n")
    return answer.text


def _prompt(episode: Episode, role: str, question: Callable[[int], str]) -> str:
    """The prompt of a question, with as many characters of what is read as the context has room for."""
    loaded = episode.loaded(role)
    return first_that_fits(loaded, (in_chat_form(loaded, question(characters)) for characters in READ_CHARACTERS))


@cache
def _grammar(name: str) -> Grammar:
    return Grammar.from_lark(f"steps/{name}")

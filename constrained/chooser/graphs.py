"""Facts, goal and actions of a planning state as arrays, for `network`.

Objects are the nodes. A predicate of two or more arguments links them; those of one argument, types and constants are
features of nodes, those without arguments features of all nodes. A fact that can change has three kinds: true, wanted
(in the goal, and false) or had (in the goal, and true). An action is represented by its objects, and by the goal facts
that its plain effects would make true or false. Names are not used: predicates, types and actions are numbered by the
domain's signature, and objects have no number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from constrained.chooser.signature import Signature, signature
from constrained.planning import Domain, Fact, FactSet, GroundAction, PlanningTask
from constrained.planning.model import Condition, Junction, Literal
from constrained.planning.task import ground

TRUE, WANTED, HAD = range(3)
"""Kinds of a fact."""


class FeatureVocabulary:
    """Numbers for the nodes, links and actions of a domain's graphs.

    Parameters
    ----------
    domain : Domain

    Attributes
    ----------
    signature : Signature
    features : dict of tuple to int
        Features of nodes: types, constants, and kinds of facts with one argument or none.
    links : dict of (str, int) to int
        Predicate of two or more arguments and kind -> number.
    slots : list of int
        For each kind of link, the number of its first argument's slot; a slot is a place in a kind of link.
    actions : dict of str to int
    effects : dict of str to tuple of Literal
        Action -> the literals of its plain effects.
    """

    def __init__(self, domain: Domain):
        self.domain = domain
        self.signature: Signature = signature(domain)
        names = self.signature
        self.features: dict[tuple, int] = {}
        self.links: dict[tuple[str, int], int] = {}
        self.slots: list[int] = []
        self.slot_count = 0
        # All numbers follow the order of the signature, so that domains of one structure share weights. Facts that can
        # change have three kinds, others one.
        for name in names.types:
            self.features["type", name] = len(self.features)
        for constant in names.constants:
            self.features["constant", constant] = len(self.features)
        for predicate in names.predicates:
            arity = len(domain.predicates[predicate])
            for kind in (TRUE, WANTED, HAD) if predicate in domain.fluents else (TRUE,):
                if arity < 2:
                    self.features[predicate, kind] = len(self.features)
                    continue
                self.links[predicate, kind] = len(self.links)
                self.slots.append(self.slot_count)
                self.slot_count += arity
        # Effects are in an order that doesn't depend on the file: added facts first, then by predicate and arguments.
        schemas = {action.name: action for action in domain.actions}
        self.actions = {name: number for number, name in enumerate(names.actions)}
        self.parameters = [len(schemas[name].parameters) for name in names.actions]
        rank = {name: number for number, name in enumerate(names.predicates)}
        self.effects: dict[str, tuple[Literal, ...]] = {}
        for name in names.actions:
            numbers = {p.name: n for n, p in enumerate(schemas[name].parameters)}
            plain = [effect.literal for effect in schemas[name].effects if effect.plain]
            self.effects[name] = tuple(
                sorted(plain, key=lambda e: (not e.positive, rank[e.predicate], [numbers.get(t, -1) for t in e.terms]))
            )


@dataclass
class Example:
    """A state as arrays.

    Attributes
    ----------
    nodes : int
    features : ndarray of int64, shape (n, 2)
        Node and feature.
    everywhere : ndarray of int64, shape (n,)
        Features of all nodes.
    links : ndarray of int64, shape (n, 3)
        Slot, number of the fact, node.
    facts : int
        How many facts the links belong to.
    actions : list of (ndarray, ndarray, ndarray)
        For each action of the domain: the positions of its ground actions, shape (n,), their objects, shape (n,
        parameters), and which effects make a wanted fact true (positive ones) or a goal fact false, shape (n, effects).
    count : int
        How many ground actions there are.
    """

    nodes: int
    features: np.ndarray
    everywhere: np.ndarray
    links: np.ndarray
    facts: int
    actions: list[tuple[np.ndarray, np.ndarray, np.ndarray]]
    count: int


class Encoder:
    """Makes examples of one task's states; the parts that never change are computed once.

    Parameters
    ----------
    vocabulary : FeatureVocabulary
    task : PlanningTask
    goal : iterable of tuple of str, optional
        The facts of the goal; default: those of the task's.
    """

    def __init__(self, vocabulary: FeatureVocabulary, task: PlanningTask, goal: Iterable[Fact] | None = None):
        self.vocabulary = vocabulary
        self.node = {name: number for number, name in enumerate(task.objects)}
        self._parameters = {a.name: [p.name for p in a.parameters] for a in vocabulary.domain.actions}
        self.goal = frozenset(goal_facts(task.goal) if goal is None else goal)
        self._features: list[tuple[int, int]] = []
        for name, kind in task.objects.items():
            for wider in task.domain.wider(kind):
                if ("type", wider) in vocabulary.features:
                    self._features.append((self.node[name], vocabulary.features["type", wider]))
            if ("constant", name) in vocabulary.features:
                self._features.append((self.node[name], vocabulary.features["constant", name]))
        fluents = task.domain.fluents
        names = vocabulary.signature.predicates
        self._changing = [name for name in names if name in fluents]
        static = [fact for name in names if name not in fluents for fact in sorted(task.initial.of(name))]
        self._links: list[tuple[int, int, int]] = []
        self._facts = self._add(((fact, TRUE) for fact in static), self._features, [], self._links, 0)

    def encode(self, state: FactSet, actions: Sequence[GroundAction]) -> Example:
        """A state and the actions to choose from."""
        features, links, everywhere = list(self._features), list(self._links), list[int]()
        facts = self._add(self._kinds(state), features, everywhere, links, self._facts)
        return Example(
            len(self.node),
            np.array(features, dtype=np.int64).reshape(-1, 2),
            np.array(everywhere, dtype=np.int64),
            np.array(links, dtype=np.int64).reshape(-1, 3),
            facts,
            self._actions(state, actions),
            len(actions),
        )

    def _kinds(self, state: FactSet) -> Iterator[tuple[Fact, int]]:
        """Facts with their kinds, sorted, as sums of floats depend on the order, and sets have none."""
        for name in self._changing:
            for fact in sorted(state.of(name)):
                yield fact, TRUE
        for fact in sorted(self.goal):
            yield fact, HAD if fact in state else WANTED

    def _add(
        self,
        facts: Iterable[tuple[Fact, int]],
        features: list[tuple[int, int]],
        everywhere: list[int],
        links: list[tuple[int, int, int]],
        number: int,
    ) -> int:
        # By arity: a feature of all nodes, of one node, or a link between several, each in its slot of the fact.
        known, numbers, node = self.vocabulary.features, self.vocabulary.links, self.node
        for fact, kind in facts:
            key = fact[0], kind
            if key in known:
                if len(fact) == 1:
                    everywhere.append(known[key])
                elif fact[1] in node:
                    features.append((node[fact[1]], known[key]))
            elif key in numbers and all(name in node for name in fact[1:]):
                slot = self.vocabulary.slots[numbers[key]]
                links += [(slot + place, number, node[name]) for place, name in enumerate(fact[1:])]
                number += 1
        return number

    def _actions(
        self, state: FactSet, actions: Sequence[GroundAction]
    ) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        words = self.vocabulary
        by_action: list[tuple[list[int], list[list[int]], list[list[bool]]]] = [([], [], []) for _ in words.actions]
        # By action of the domain, because each has a layer of its own in the network.
        for position, action in enumerate(actions):
            at, objects, changes = by_action[words.actions[action.action]]
            at.append(position)
            objects.append([self.node[name] for name in action.arguments])
            names = dict(zip(self._parameters[action.action], action.arguments))
            made = [(ground(effect, names), effect.positive) for effect in words.effects[action.action]]
            changes.append([fact in self.goal and not (positive and fact in state) for fact, positive in made])
        return [
            (
                np.array(at, dtype=np.int64),
                np.array(objects, dtype=np.int64).reshape(len(at), words.parameters[number]),
                np.array(changes, dtype=np.float32).reshape(len(at), len(words.effects[name])),
            )
            for (name, number), (at, objects, changes) in zip(words.actions.items(), by_action)
        ]


def goal_facts(goal: Condition | None) -> Iterator[Fact]:
    """The facts in a goal's conjunction; its quantifiers and disjunctions are ignored."""
    match goal:
        case Literal(predicate, terms, True) if not any(term.startswith("?") for term in terms):
            yield predicate, *terms
        case Junction("and", parts):
            for part in parts:
                yield from goal_facts(part)

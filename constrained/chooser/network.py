"""A small graph network that scores a state's actions: messages along facts, the same weights for all objects.

In each round, every fact combines its objects' features, by its kind and their places in it, and sends each of them a
message; an object keeps the largest of its messages (as in Ståhlberg, Bonet and Geffner, "Learning general optimal
policies with graph neural networks", 2022, who score states instead). An action's score comes from its objects, from
the largest of all objects' features, and from the goal facts that it would make true or false. Rounds share their
weights, so their number can be raised for larger problems.

This is the network that is trained; `scorer` computes the same without torch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from constrained.chooser.graphs import Example, FeatureVocabulary
from constrained.chooser.scorer import FEWEST_ROUNDS, MOST_ROUNDS, Scorer

WIDTH = 48
"""Features of an object."""


@dataclass
class Batch:
    """Several examples as one graph.

    Attributes
    ----------
    features : Tensor of float32, shape (nodes, features)
    graph : Tensor of int64, shape (nodes,)
        The example that each node belongs to.
    links : list of (int, Tensor, Tensor)
        For each slot in use: its number, then facts and nodes, both of int64, shape (n,).
    facts : int
    actions : list of (Tensor, Tensor, Tensor)
        As `Example.actions`.
    owner : Tensor of int64, shape (actions,)
        The example that each action belongs to.
    examples : int
    rounds : int
    """

    features: torch.Tensor
    graph: torch.Tensor
    links: list[tuple[int, torch.Tensor, torch.Tensor]]
    facts: int
    actions: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]
    owner: torch.Tensor
    examples: int
    rounds: int


def collate(vocabulary: FeatureVocabulary, examples: Sequence[Example]) -> Batch:
    """Join examples of one domain into a batch."""
    # Nodes, facts and actions of all examples are numbered through, by the sums of those before.
    sizes = [example.nodes for example in examples]
    nodes = np.cumsum([0, *sizes])
    facts = np.cumsum([0, *(example.facts for example in examples)])
    actions = np.cumsum([0, *(example.count for example in examples)])
    features = np.zeros((nodes[-1], len(vocabulary.features) + 1), dtype=np.float32)
    features[:, -1] = 1
    for example, start in zip(examples, nodes):
        features[example.features[:, 0] + start, example.features[:, 1]] = 1
        features[start : start + example.nodes, example.everywhere] = 1
    links = np.concatenate([
        example.links + np.array([0, fact, node]) for example, fact, node in zip(examples, facts, nodes)
    ])  # fmt: skip
    # Links by slot, so that each slot's weights are used in one product.
    links = links[np.argsort(links[:, 0], kind="stable")]
    used, starts = np.unique(links[:, 0], return_index=True)
    cuts = [*starts, len(links)]
    grouped = torch.from_numpy(links)
    by_action = []
    for number in range(len(vocabulary.actions)):
        parts = [example.actions[number] for example in examples]
        by_action.append((
            torch.from_numpy(np.concatenate([at + start for (at, _, _), start in zip(parts, actions)])),
            torch.from_numpy(np.concatenate([objects + start for (_, objects, _), start in zip(parts, nodes)])),
            torch.from_numpy(np.concatenate([changes for _, _, changes in parts])),
        ))  # fmt: skip
    return Batch(
        torch.from_numpy(features),
        torch.from_numpy(np.repeat(np.arange(len(examples)), sizes)),
        [(int(slot), grouped[a:b, 1], grouped[a:b, 2]) for slot, a, b in zip(used, cuts, cuts[1:])],
        int(facts[-1]),
        by_action,
        torch.from_numpy(np.repeat(np.arange(len(examples)), [example.count for example in examples])),
        len(examples),
        min(MOST_ROUNDS, max(FEWEST_ROUNDS, max(sizes))),
    )


class Network(nn.Module):
    """Scores of actions.

    Parameters
    ----------
    vocabulary : FeatureVocabulary
    width : int
        Features of an object.
    """

    def __init__(self, vocabulary: FeatureVocabulary, width: int = WIDTH):
        super().__init__()
        self.vocabulary, self.width = vocabulary, width
        slots = max(1, vocabulary.slot_count)
        # `read` takes what an object tells a fact in its slot, `tell` what the fact tells it back.
        self.embed = nn.Linear(len(vocabulary.features) + 1, width)
        self.read = nn.Parameter(torch.randn(slots, width, width) / math.sqrt(width))
        self.bias = nn.Parameter(torch.zeros(slots, width))
        self.tell = nn.Parameter(torch.randn(slots, width, width) / math.sqrt(width))
        self.update = nn.Sequential(nn.Linear(3 * width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))
        self.norm = nn.LayerNorm(width)
        self.score = nn.ModuleList(
            nn.Sequential(
                nn.Linear(width * (parameters + 1) + len(vocabulary.effects[name]), 2 * width),
                nn.ReLU(),
                nn.Linear(2 * width, 1),
            )
            for name, parameters in zip(vocabulary.actions, vocabulary.parameters)
        )

    def forward(self, batch: Batch, rounds: int | None = None) -> torch.Tensor:
        """The scores (logits) of all actions, float32, shape (actions,)."""
        hidden = self.embed(batch.features)
        order = torch.cat([nodes for _, _, nodes in batch.links]) if batch.links else None
        facts = torch.cat([facts for _, facts, _ in batch.links]) if batch.links else None
        # A round: each fact sums what its objects tell it, by slot, and tells each of them something back. An object
        # keeps the largest of what it is told, so the number of its facts doesn't matter.
        for _ in range(rounds or batch.rounds):
            told = torch.zeros_like(hidden)
            if order is not None and facts is not None:
                heard = [hidden[nodes] @ self.read[slot] + self.bias[slot] for slot, _, nodes in batch.links]
                fact = hidden.new_zeros(batch.facts, self.width).index_add(0, facts, torch.cat(heard)).relu()
                messages = torch.cat([fact[of] @ self.tell[slot] for slot, of, _ in batch.links])
                told = told.scatter_reduce(0, order[:, None].expand_as(messages), messages, "amax")
            hidden = self.norm(
                hidden + self.update(torch.cat([hidden, told, self._largest(hidden, batch)[batch.graph]], 1))
            )
        # An action is scored from its objects in their order, the whole state, and the goal facts that it changes.
        largest = self._largest(hidden, batch)
        scores = hidden.new_zeros(len(batch.owner))
        for layer, (at, objects, changes) in zip(self.score, batch.actions):
            if len(at):
                read = torch.cat([hidden[objects].flatten(1), largest[batch.owner[at]], changes], 1)
                scores = scores.index_put((at,), layer(read)[:, 0])
        return scores

    @classmethod
    def of(cls, scorer: Scorer) -> Network:
        """The network with the weights of a scorer."""
        network = cls(scorer.vocabulary, scorer.width)
        network.load_state_dict({name: torch.from_numpy(values) for name, values in scorer.weights.items()})
        return network.eval()

    def scorer(self) -> Scorer:
        """What computes the scores of this network as it is now."""
        weights = {name: value.detach().numpy().copy() for name, value in self.state_dict().items()}
        return Scorer(self.vocabulary, self.width, weights)

    def _largest(self, known: torch.Tensor, batch: Batch) -> torch.Tensor:
        """The largest value of each feature over an example's objects, float32, shape (examples, width)."""
        low = known.new_full((batch.examples, self.width), -1e4)
        return low.scatter_reduce(0, batch.graph[:, None].expand_as(known), known, "amax")


def imitation_loss(scores: torch.Tensor, batch: Batch, good: torch.Tensor) -> torch.Tensor:
    """Mean negative logarithm of the probability that a good action is chosen, a scalar.

    Parameters
    ----------
    scores : Tensor of float32, shape (actions,)
    batch : Batch
    good : Tensor of bool, shape (actions,)
        At least one for each example.
    """

    def total(values: torch.Tensor) -> torch.Tensor:
        # The logarithm of a sum of exponentials for each example; its largest value is taken out for precision.
        top = values.new_full((batch.examples,), -torch.inf).scatter_reduce(0, batch.owner, values, "amax").detach()
        summed = values.new_zeros(batch.examples).index_add(0, batch.owner, (values - top[batch.owner]).exp())
        return top + summed.log()

    return (total(scores) - total(scores.masked_fill(~good, -1e9))).mean()

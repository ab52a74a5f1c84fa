"""The scores of a trained graph network, with NumPy: to import torch takes longer than most searches.

The computation is that of `network.Network`, which is for training; the two are compared in the tests.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from constrained.chooser.graphs import Example, FeatureVocabulary

FEWEST_ROUNDS, MOST_ROUNDS = 10, 32
"""Rounds of messages: as many as there are objects, within these bounds."""

LOWEST = -1e4
"""Below all features of an object."""

EPSILON = 1e-5
"""Added to the variance, as in torch's ``LayerNorm``."""


class Scorer:
    """Scores the actions of one state.

    Parameters
    ----------
    vocabulary : FeatureVocabulary
    width : int
        Features of an object.
    weights : mapping of str to ndarray of float32
        By the names of `Network`'s parameters.

    Raises
    ------
    ValueError
        The weights are of another network.
    """

    def __init__(self, vocabulary: FeatureVocabulary, width: int, weights: Mapping[str, np.ndarray]):
        self.vocabulary, self.width, self.weights = vocabulary, width, weights
        expected, found = shapes(vocabulary, width), {name: values.shape for name, values in weights.items()}
        for name in sorted(expected.keys() | found.keys()):
            if expected.get(name) != found.get(name):
                raise ValueError(f"{name} is {found.get(name)} in it, and {expected.get(name)} here")

    def __call__(self, example: Example, rounds: int | None = None) -> np.ndarray:
        """The scores (logits) of all actions, float32, shape (actions,)."""
        features = np.zeros((example.nodes, len(self.vocabulary.features) + 1), np.float32)
        features[:, -1] = 1
        features[example.features[:, 0], example.features[:, 1]] = 1
        features[:, example.everywhere] = 1
        hidden = self._linear("embed", features)
        links = _Links(example.links)
        for _ in range(rounds or min(MOST_ROUNDS, max(FEWEST_ROUNDS, example.nodes))):
            largest = np.broadcast_to(hidden.max(0, initial=LOWEST), hidden.shape)
            messages = self._messages(hidden, links)
            hidden = self._norm(hidden + self._layers("update", np.concatenate([hidden, messages, largest], 1)))
        largest = hidden.max(0, initial=LOWEST)
        scores = np.zeros(example.count, np.float32)
        for number, (at, objects, changes) in enumerate(example.actions):
            if len(at):
                everywhere = np.broadcast_to(largest, (len(at), self.width))
                read = np.concatenate([hidden[objects].reshape(len(at), -1), everywhere, changes], 1)
                scores[at] = self._layers(f"score.{number}", read)[:, 0]
        return scores

    def _messages(self, known: np.ndarray, links: _Links) -> np.ndarray:
        """The largest message to each object, at least 0, float32, shape (nodes, width)."""
        told = np.zeros_like(known)
        if links.parts:
            read, bias, tell = (self.weights[name] for name in ("read", "bias", "tell"))
            heard = [known[links.nodes[part]] @ read[slot] + bias[slot] for slot, part in links.parts]
            order, starts, _ = links.by_fact
            fact = np.maximum(np.add.reduceat(np.concatenate(heard)[order], starts), 0)
            messages = [fact[links.facts[part]] @ tell[slot] for slot, part in links.parts]
            order, starts, nodes = links.by_node
            told[nodes] = np.maximum(np.maximum.reduceat(np.concatenate(messages)[order], starts), 0)
        return told

    def _layers(self, name: str, given: np.ndarray) -> np.ndarray:
        return self._linear(f"{name}.2", np.maximum(self._linear(f"{name}.0", given), 0))

    def _linear(self, name: str, given: np.ndarray) -> np.ndarray:
        return given @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def _norm(self, given: np.ndarray) -> np.ndarray:
        centred = given - given.mean(1, keepdims=True)
        scaled = centred / np.sqrt((centred * centred).mean(1, keepdims=True) + EPSILON)
        return scaled * self.weights["norm.weight"] + self.weights["norm.bias"]


class _Links:
    """The links of an example in the order of their slots, so that each slot's weights are used in one product."""

    def __init__(self, links: np.ndarray):
        slots, self.facts, self.nodes = links[np.argsort(links[:, 0], kind="stable")].T
        _, starts, used = _grouped(slots)
        ends = [*starts[1:], len(slots)]
        self.parts = [(slot, slice(start, end)) for slot, start, end in zip(used, starts, ends)]
        self.by_fact, self.by_node = _grouped(self.facts), _grouped(self.nodes)


def _grouped(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The order that brings equal numbers together, where each group then begins, and its number."""
    order = np.argsort(numbers, kind="stable")
    found, starts = np.unique(numbers[order], return_index=True)
    return order, starts, found


def shapes(vocabulary: FeatureVocabulary, width: int) -> dict[str, tuple[int, ...]]:
    """The names of a network's parameters, with their shapes."""
    slots = max(1, vocabulary.slot_count)

    def linear(name: str, read: int, made: int) -> dict[str, tuple[int, ...]]:
        return {f"{name}.weight": (made, read), f"{name}.bias": (made,)}

    sizes = linear("embed", len(vocabulary.features) + 1, width)
    sizes |= {"read": (slots, width, width), "bias": (slots, width), "tell": (slots, width, width)}
    sizes |= linear("update.0", 3 * width, 2 * width) | linear("update.2", 2 * width, width)
    sizes |= {"norm.weight": (width,), "norm.bias": (width,)}
    for number, (name, parameters) in enumerate(zip(vocabulary.actions, vocabulary.parameters)):
        read = width * (parameters + 1) + len(vocabulary.effects[name])
        sizes |= linear(f"score.{number}.0", read, 2 * width) | linear(f"score.{number}.2", 2 * width, 1)
    return sizes

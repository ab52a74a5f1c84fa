"""The network of a text chooser: it scores forms of actions with the names that they may use.

A recurrent network reads the actions and their results; attention looks up the task; every name is read by itself,
with its features (`constrained.chooser.story`). The score of a form with a name is the product of a query of the
form and a key of the name: a pointer network (Vinyals et al., 2015) over the admitted actions, which are scored against
the text as in He et al., "Deep reinforcement learning with a natural language action space" (2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from constrained.chooser.story import BLOCK, JUDGED, NAME, PAIRS, TASK, NetworkInput, Story, Words

JUDGES = 16
"""Width of the products that choose between names by the task's words."""
LATELY = 4
"""Blocks that are read for such a choice."""


@dataclass
class Moment:
    """One choice: its story and step, the input, and the answer if it is known.

    Attributes
    ----------
    story : int
    step : int
    look : NetworkInput
    chosen : tuple of int
        Form, first name, second name; -1: unknown or none.
    second : ndarray of float16, shape (names, PAIRS), or None
        Features of the second names, once the first is known.
    """

    story: int
    step: int
    look: NetworkInput
    chosen: tuple[int, int, int] = (-1, -1, -1)
    second: np.ndarray | None = None


class Reader(nn.Module):
    """Scores of forms with their names.

    Parameters
    ----------
    words : Words
    width : int
        Of a name.
    embedded : int
        Of a word.
    dropout : float
    """

    def __init__(self, words: Words, width: int = 128, embedded: int = 64, dropout: float = 0.0):
        super().__init__()
        self.words, self.width, self.embedded, self.dropout = words, width, embedded, dropout
        forms = len(words.forms)
        self.embed = nn.Embedding(words.numbers, embedded, padding_idx=0)
        self.form = nn.Embedding(forms + 2, embedded)
        self.begin = nn.Linear(embedded, width)
        self.read = nn.GRU(4 * embedded, width, batch_first=True)
        self.context = nn.Conv1d(embedded, width, 3, padding=1)
        self.ask = nn.Linear(width + embedded, width)
        self.name = nn.Sequential(
            nn.Linear(4 * embedded + words.features, 2 * width), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(2 * width, width),
        )  # fmt: skip
        self.state = nn.Sequential(
            nn.Linear(4 * width + 2 * embedded, 2 * width), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(2 * width, width), nn.ReLU(), nn.Dropout(dropout),
        )  # fmt: skip
        self.wanted = nn.Linear(width, forms * width)
        self.likely = nn.Linear(width, forms)
        self.repeats = nn.Parameter(torch.zeros(forms, PAIRS))
        self.judged, self.trust = nn.Linear(2 * embedded, JUDGED), nn.Parameter(torch.ones(forms + 1))
        self.judge_of, self.judge_on = nn.Linear(3 * embedded + width, JUDGES), nn.Linear(embedded, JUDGES)
        self.wanted_second = nn.Sequential(
            nn.Linear(2 * width + embedded, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)
        )
        self.name_second = nn.Linear(PAIRS, width)
        slots = [[*words.of_form(number), -1, -1][:2] for number in range(forms)]
        self.slots: torch.Tensor
        self.register_buffer("slots", torch.tensor(slots), persistent=False)

    def mean(self, ids: torch.Tensor) -> torch.Tensor:
        """The mean of words' vectors, over the last dimension."""
        if self.training and self.dropout:
            ids = ids * (torch.rand(ids.shape) > self.dropout / 2)
        return self.embed(ids).sum(-2) / (ids > 0).sum(-1, keepdim=True).clamp(min=1)

    def forward(self, stories: Sequence[Story], moments: Sequence[Moment]) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Score the admitted actions.

        Returns
        -------
        first : Tensor of float32, shape (moments, forms, names)
            Scores of forms with their first names; -inf where that isn't admitted.
        second : Tensor of float32, shape (moments, names), or None
            Of the second names; None if no moment has a form and a first name.
        """
        # 1. The stories: a recurrent network reads action and result of each block; attention looks up the task.
        task = torch.from_numpy(np.stack([self.words.ids(story.task, TASK) for story in stories])).long()
        heard, said = self._heard(stories, self.begin(self.mean(task)).tanh())
        keys = self.context(self.embed(task).transpose(1, 2)).relu().transpose(1, 2)
        at = torch.tensor([(moment.story, moment.step) for moment in moments])
        now = F.dropout(heard[at[:, 0], at[:, 1]], self.dropout, self.training)
        last = self.mean(torch.from_numpy(np.stack([stories[m.story].blocks[m.step] for m in moments])).long())
        lately = said[at[:, :1], (at[:, 1:] - torch.arange(LATELY)).clamp(min=0)].mean(1)
        own = keys[at[:, 0]]
        weights = (own @ self.ask(torch.cat([now, last], -1))[:, :, None])[..., 0] / self.width**0.5
        weights = weights.masked_fill(task[at[:, 0]] == 0, -1e9).softmax(-1)
        asked = (weights[:, None] @ own)[:, 0]

        # 2. The names: those of all moments in one long list (`flat`), or in a row for each moment (`padded`).
        looks = [moment.look for moment in moments]
        sizes = [len(look.names) for look in looks]
        rows = torch.repeat_interleave(torch.arange(len(looks)), torch.tensor(sizes))
        columns = torch.cat([torch.arange(size) for size in sizes])

        def flat(field: str, axis: int = 0) -> torch.Tensor:
            return torch.from_numpy(np.concatenate([getattr(look, field) for look in looks], axis))

        def padded(values: torch.Tensor, fill: float = 0.0) -> torch.Tensor:
            out = values.new_full((len(looks), max(sizes), *values.shape[1:]), fill)
            return out.index_put((rows, columns), values)

        features = flat("features").float()
        parts = [self.mean(flat(field).long()) for field in ("name", "after", "before", "asked")]
        hidden = self.name(torch.cat([*parts, features], -1))
        names = padded(hidden)
        top = padded(hidden, -1e4).amax(1)
        middle = names.sum(1) / torch.tensor(sizes)[:, None]
        whole = self.mean(task)[at[:, 0]]
        state = self.state(torch.cat([now, last, whole, asked, top, middle], -1))
        # 3. How well a name fits what the task asks of it.
        slots = len(self.words.slots)
        # The task's request has products of its own, which needn't be learned through the layers above.
        facts = features[:, -slots - JUDGED : -slots]
        shown = padded(parts[1], -1e4).amax(1)
        asking = self.judge_of(torch.cat([whole, lately, shown, now], -1))[rows] * self.judge_on(parts[3])
        judgement = padded((facts * self.judged(torch.cat([whole[rows], parts[3]], -1))).sum(-1) + asking.sum(-1))

        # 4. Each form's query with each name's key, and how often the two were used together.
        forms = len(self.words.forms)
        wanted = self.wanted(state).view(len(looks), forms, self.width)
        scores = wanted @ names.transpose(1, 2) / self.width**0.5 + self.likely(state)[..., None]
        pairs = flat("pairs", 1).float().transpose(0, 1)  # names, forms, features
        scores = scores + padded((pairs * self.repeats).sum(-1)).transpose(1, 2)
        scores = scores + self.trust[:-1, None] * judgement[:, None]
        # 5. Only admitted forms, and of each only names that its first slot holds.
        in_slots = features[:, -slots:] > 0
        nameless = columns == 0  # the first is no name
        first, other = self.slots[:, 0], self.slots[:, 1]
        allowed = torch.where(first >= 0, in_slots[:, first], nameless[:, None])
        admitted = torch.from_numpy(np.stack([look.admitted for look in looks]))
        allowed = padded(allowed & admitted[rows]).bool().transpose(1, 2)
        scores = scores.masked_fill(~allowed, -torch.inf)

        # 6. The second name, where form and first name are known: in training, and for the best first names in play.
        chosen = torch.tensor([moment.chosen for moment in moments])
        if not any(moment.second is not None for moment in moments):
            return scores, None
        index = torch.arange(len(looks))
        query = self.wanted_second(
            torch.cat([state, names[index, chosen[:, 1].clamp(min=0)], self.form(chosen[:, 0].clamp(min=0))], -1)
        )
        empty = [np.zeros((size, PAIRS), np.float16) for size in sizes]
        pairs = torch.from_numpy(
            np.concatenate([m.second if m.second is not None else e for m, e in zip(moments, empty)])
        )
        seconds = names + padded(self.name_second(pairs.float()))
        second = (seconds @ query[..., None])[..., 0] / self.width**0.5 + self.trust[-1] * judgement
        slot = other[chosen[:, 0].clamp(min=0)]
        fits = padded(in_slots[torch.arange(len(rows)), slot[rows].clamp(min=0)]).bool()
        return scores, second.masked_fill(~fits, -torch.inf)

    def _heard(self, stories: Sequence[Story], task: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The state after each block, and each block by itself; shape (stories, blocks, features)."""
        longest = max(len(story.blocks) for story in stories)
        blocks = np.zeros((len(stories), longest, BLOCK), np.int16)
        names = np.zeros((len(stories), longest, 2, NAME), np.int16)
        forms = np.full((len(stories), longest), len(self.words.forms), np.int64)
        for i, story in enumerate(stories):
            blocks[i, : len(story.blocks)] = story.blocks
            names[i, 1 : len(story.blocks)] = story.done
            forms[i, 1 : len(story.blocks)] = [form for form, *_ in story.steps]
        forms[forms < 0] = len(self.words.forms) + 1
        used = self.mean(torch.from_numpy(names).long()).flatten(2)
        said = self.mean(torch.from_numpy(blocks).long())
        return self.read(torch.cat([self.form(torch.from_numpy(forms)), used, said], -1), task[None])[0], said

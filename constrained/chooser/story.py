"""The input of a text chooser: the episode as words, and the names that actions may use, with their last context.

The text is a memory's: the task, then blocks that begin with "Action N: ACTION" and go on with the answer and the view.
No domain is built in: the words of a name are compared with the task, the last actions and their answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from zlib import crc32

import numpy as np

_WORD = re.compile(r"[a-z']+|-?\d+(?:\.\d+)?")
_BLOCK = re.compile(r"^Action \d+: ", re.MULTILINE)
_PREPOSITION = re.compile(r"^(?:to|in|on) (?=\w)")
_SLOT = re.compile(r"<([A-Z_]+)>")
RECENT = 4
"""Actions that every name is compared with."""
NAME, AFTER, BEFORE, ASKED, BLOCK, TASK = 8, 6, 6, 18, 48, 112
"""Words that are read of a name, after and before the place where it was last shown, before it in the task, of a block
and of the task."""
JUDGED = 5
"""Features of a name about its measurement, and whether the task's condition for it holds."""
FEW = 2 * RECENT + 12 + JUDGED
"""Features of a name apart from its slots, and from its comparisons with the last action of each form."""
NEAR = 9
"""Words before a name in the task that are a condition."""
COMPARED = {">0": "above", "<0": "below"}
"""Comparison of a number with the task's first number -> the task's word for it."""
MEANT = 0.7
"""Share of a name's words that must stand beside a number for the number to belong to the name."""
UNKNOWN = 8
"""Numbers for unknown words, assigned by their spelling."""
PAIRS = 3
"""Features of a form with its first name, and of the second name with the first."""


@dataclass(frozen=True)
class Words:
    """The vocabulary of a network: words, forms of actions, slots.

    Attributes
    ----------
    words : dict of str to int
        From `UNKNOWN` + 1 on; 0 stands for no word, those between for words that aren't known.
    forms : tuple of str
        Actions with their slots in angle brackets: "open <SHUT>".
    slots : tuple of str
        Of the forms' names.
    """

    words: dict[str, int]
    forms: tuple[str, ...]
    slots: tuple[str, ...]

    @classmethod
    def of(cls, words: Sequence[str], forms: Sequence[str]) -> Words:
        slots = sorted({slot for form in forms for slot in _SLOT.findall(form)})
        return cls({word: i for i, word in enumerate(words, UNKNOWN + 1)}, tuple(forms), tuple(slots))

    @property
    def features(self) -> int:
        """Number of features of a name."""
        return FEW + 3 * len(self.forms) + len(self.slots)

    def of_form(self, number: int) -> list[int]:
        """The slots of a form, by number."""
        return [self.slots.index(slot) for slot in _SLOT.findall(self.forms[number])]

    @property
    def numbers(self) -> int:
        """How many numbers there are for words."""
        return len(self.words) + UNKNOWN + 1

    def number(self, word: str) -> int:
        """The number of a word."""
        return self.words.get(word) or 1 + crc32(word.encode()) % UNKNOWN

    def ids(self, text: Sequence[str], length: int) -> np.ndarray:
        """Words as numbers, int16, shape (length,)."""
        result = [self.number(word) for word in text[:length]]
        return np.array(result + [0] * (length - len(result)), np.int16)

    def bag(self, text: Sequence[str]) -> np.ndarray:
        """Which words a text has, float32, shape (numbers,)."""
        bag = np.zeros(self.numbers, np.float32)
        bag[[self.number(word) for word in text]] = 1
        return bag


def forms_of(knowledge, view: Mapping[str, Sequence[str]]) -> list[str]:
    """The forms of the actions that are admitted when the slots have these values."""
    marked = {s: [""] if list(v) == [""] else [f"<{s}>"] if v else [] for s, v in view.items()}
    return knowledge.bind_view(marked).next_actions()


def read(text: str, numbers: Sequence[float] = ()) -> list[str]:
    """The words of a text; a number is followed by how it compares with those of the task."""
    features = []
    for word in _WORD.findall(text.lower()):
        if not word[-1].isdigit() or (not numbers and len(word) == 1):
            features.append(word)
        else:
            features.append(word if len(word) == 1 else "#")
            features += [f"{'>' if float(word) > one else '<'}{i}" for i, one in enumerate(numbers)]
    return features


@dataclass
class NetworkInput:
    """The input of a network before an action.

    Attributes
    ----------
    names : list of str
        The first is "", for forms without names.
    name, after, before, asked : ndarray of int16, shape (names, words)
        Words of the name, and those about it.
    features : ndarray of float16, shape (names, features)
        The last of them: by slot, whether the name is one of its values.
    pairs : ndarray of float16, shape (forms, names, PAIRS)
        How often and when a form was used with the name as its first.
    admitted : ndarray of bool, shape (forms,)
    """

    names: list[str]
    name: np.ndarray
    after: np.ndarray
    before: np.ndarray
    asked: np.ndarray
    features: np.ndarray
    pairs: np.ndarray
    admitted: np.ndarray


class _Name:
    """A name: its words, the task's words before it, its uses by place, and its best recent context."""

    def __init__(self, name: str, words: Words, task: list[str]):
        own, text = name_words(name), f" {' '.join(task)} "
        self.own, self.bag, self.ids = set(own), words.bag(own), words.ids(own, NAME)
        self.in_task = f" {name} " in text
        # The longest part of the name that the task mentions, and the words before it there.
        asked: list[str] = []
        for size in range(len(own), 0, -1):
            runs = [own[i : i + size] for i in range(len(own) - size + 1)]
            at = [i for i in range(len(task)) if task[i : i + size] in runs]
            asked = [word for i in at for word in task[max(0, i - NEAR) : i]]
            if asked:
                break
        self.asked = words.ids(asked, ASKED)
        # "If its temperature is above 50 ..., place it in NAME": the comparison nearest before the name.
        near = reversed(text[1 : max(text.find(f" {name} ", 1), 1)].split()[-NEAR:])
        self.condition = next((word for word in near if word in COMPARED.values()), "")
        self.uses: tuple[list[int], list[int]] = [], []
        self.share, self.when, self.told = 0.0, -100, -1.0
        self.before: list[str] = []
        self.after: list[str] = []

    def match(self, segments: Sequence[tuple[int, list[str], list[str], list[str], float]]) -> None:
        """Look for the name in a block."""
        for block, part, before, after, told in segments:
            share = len(self.own.intersection(part)) / len(self.own) if self.own else 0
            if share and share >= self.share:
                kept = self.told if share == self.share else -1
                self.told = max(told, kept) if share > MEANT else -1
                self.share, self.when, self.before = share, block, before
                self.after = [word for word in part if word not in self.own] + after


class Story:
    """An episode as far as it has been read.

    Parameters
    ----------
    words : Words
    text : str
        The first block: its first line is the task.
    """

    def __init__(self, words: Words, text: str):
        self.words = words
        task, _, rest = text.partition("\n")
        numbers = [float(word) for word in _WORD.findall(task) if word[-1].isdigit()]
        self._numbers = [number for number in dict.fromkeys(numbers) if abs(number) >= 10][:3]
        self.task = read(task)
        self._names: dict[str, _Name] = {}
        self._segments: list[tuple[int, list[str], list[str], list[str], float]] = []
        self._compared = ""
        # What every name is compared with, as bags of words: the names of the last actions, the task, the last block;
        # then of each form the two names of its last use, and the result of that.
        forms = len(words.forms)
        self._references = np.zeros((2 * RECENT + 2 + 3 * forms, words.numbers), np.float32)
        self._references[2 * RECENT] = words.bag(self.task)
        self._pairs: dict[tuple, list[int]] = {}
        self.steps: list[tuple[int, str, str]] = []
        self.blocks: list[np.ndarray] = []
        self.done = np.zeros((0, 2, NAME), np.int16)
        self._changed = 0
        self._view: Mapping[str, Sequence[str]] = {}
        self._read_block(rest)

    def update(self, text: str) -> None:
        """Read a block without its first words: an action and its result."""
        action, _, rest = text.partition("\n")
        form, *names = step = self.parse(action)
        n = len(self.steps)
        self.steps.append(step)
        entries = [self._name(name) for name in names]
        self.done = np.concatenate([self.done, [[name.ids for name in entries]]])
        for place, name in enumerate(entries):
            name.uses[place].append(n)
        self._pairs.setdefault((form, names[0]), []).append(n)
        self._pairs.setdefault((names[0], names[1]), []).append(n)
        # The newest action comes first among the recent ones; the oldest drops out.
        references, forms = self._references, len(self.words.forms)
        references[2 : 2 * RECENT] = references[: 2 * RECENT - 2].copy()
        references[:2] = [name.bag for name in entries]
        if form >= 0:
            base = 2 * RECENT + 2 + form
            references[base], references[base + forms] = references[:2]
            references[base + 2 * forms] = self.words.bag(read(rest))
        self._read_block(rest)

    def parse(self, action: str) -> tuple[int, str, str]:
        """The form of an action, -1 if it is unknown, and its first and second name, "" if it has none."""
        fitting: list[tuple[int, str, str]] = []
        for number, pattern, slots in _patterns(self.words.forms):
            if match := pattern.fullmatch(action):
                first, second = (*match.groups(), "", "")[:2]
                fitting.append((number, first, second))
                if all(name in self._view.get(slot, ()) for slot, name in zip(slots, match.groups())):
                    return fitting[-1]
        return fitting[0] if fitting else (-1, "", "")

    def look(self, forms: Sequence[str], view: Mapping[str, Sequence[str]]) -> NetworkInput:
        """The network's input before an action, given the admitted forms and the values of the slots."""
        words, self._view = self.words, view
        # The names that can be used now, and the slots that hold each of them.
        slots = {slot: number for number, slot in enumerate(words.slots) if view.get(slot)}
        members: dict[str, list[int]] = {"": []}
        for slot, number in slots.items():
            for name in view[slot]:
                members.setdefault(name, []).append(number)
        names, now = list(members), len(self.steps)
        entries = [self._name(name) for name in names]
        bags = np.stack([name.bag for name in entries])
        shared = bags @ self._references.T / np.maximum(bags.sum(1, keepdims=True), 1)
        # Features by name: shares of its words in the references, then its context and uses, at the end its slots.
        features = np.zeros((len(names), words.features), np.float16)
        features[:, : shared.shape[1]] = shared
        at = shared.shape[1]
        numbers = [name.told for name in entries if name.told >= 0]
        for i, entry in enumerate(entries[1:], 1):
            one, two = entry.uses
            fits = 0 if not entry.condition or not self._compared else 1 if entry.condition == self._compared else -1
            features[i, at : at + 10 + JUDGED] = (
                entry.share, 1 / (1 + now - entry.when), entry.when == now, entry.in_task, np.log1p(len(one)),
                np.log1p(len(two)), 1 / (now - one[-1]) if one else 0, 1 / (now - two[-1]) if two else 0, bool(one),
                bool(two), entry.told >= 0, np.log1p(max(entry.told, 0)), min(numbers, default=0) < entry.told,
                0 <= entry.told < max(numbers, default=0), fits,
            )  # fmt: skip
            features[i, [words.features - len(words.slots) + number for number in members[names[i]]]] = 1
        # Features by form and first name: how often they were used together, when,
        # and how often since something new was last seen.
        pairs = np.zeros((len(words.forms), len(names), PAIRS), np.float16)
        places = {name: i for i, name in enumerate(names)}
        for (form, name), uses in self._pairs.items():
            if isinstance(form, int) and form >= 0 and name in places:
                since = sum(use >= self._changed for use in uses)
                pairs[form, places[name]] = np.log1p(len(uses)), 1 / (now - uses[-1]), np.log1p(since)
        return NetworkInput(
            names, np.stack([name.ids for name in entries]),
            np.stack([words.ids(name.after, AFTER) for name in entries]),
            np.stack([words.ids(name.before[-BEFORE:], BEFORE) for name in entries]),
            np.stack([name.asked for name in entries]), features, pairs, np.isin(words.forms, list(forms)),
        )  # fmt: skip

    def second(self, look: NetworkInput, first: str) -> np.ndarray:
        """The features of each name as the second one, float16, shape (names, PAIRS)."""
        bag, now = self._name(first).bag, len(self.steps)
        pairs = np.zeros((len(look.names), PAIRS), np.float16)
        for i, name in enumerate(look.names[1:], 1):
            own, uses = self._name(name).bag, self._pairs.get((first, name), ())
            pairs[i] = own @ bag / max(1, own.sum()), np.log1p(len(uses)), 1 / (now - uses[-1]) if uses else 0
        return pairs

    def repeated(self, action: str) -> int:
        """How often an action was done since something new was last seen."""
        key = self.parse(action)
        return sum(step == key for step in self.steps[self._changed :])

    def _read_block(self, rest: str) -> None:
        block = len(self.steps)
        lines = rest.split("\n") if rest else []
        everything = read(rest, self._numbers)
        for word in read(lines[0], self._numbers) if lines and ": " not in lines[0] else ():
            self._compared = COMPARED.get(word, self._compared)
        self.blocks.append(self.words.ids(everything, BLOCK))
        self._references[2 * RECENT + 1] = self.words.bag(everything)
        if any(": " in line for line in lines):
            self._changed = block
        # Cut the block into segments that a name may be found in: "PLACE: item; item", and items at their punctuation.
        # Each has the words beside it, and the largest number after it.
        fresh = len(self._segments)
        for line in lines:
            head, _, body = line.partition(": ") if ": " in line else ("", "", line)
            place = read(head)
            for item in body.split("; "):
                texts = re.split(r"[:,()]| (?=to |in |on )", item)
                parts = [read(_PREPOSITION.sub("", part), self._numbers) for part in texts]
                for i, part in enumerate(parts):
                    if part:
                        left = [*place[:2], *(word for other in parts[:i] for word in other)]
                        right = [word for other in parts[i + 1 :] for word in other]
                        numbers = [
                            float(word) for word in _WORD.findall(" ".join(texts[i + 1 :])) if word[-1].isdigit()
                        ]
                        self._segments.append((block, part, left, right, max(numbers, default=-1)))
        for name in self._names.values():
            name.match(self._segments[fresh:])

    def _name(self, name: str) -> _Name:
        if name not in self._names:
            self._names[name] = _Name(name, self.words, self.task)
            self._names[name].match(self._segments)
        return self._names[name]


def name_words(name: str) -> list[str]:
    """The words of a name."""
    return _WORD.findall(name.lower())


@lru_cache(maxsize=8)
def _patterns(forms: tuple[str, ...]) -> list[tuple[int, re.Pattern[str], list[str]]]:
    """The forms by number, those with the most words of their own first, with their slots."""
    order = sorted(range(len(forms)), key=lambda number: -len(_SLOT.sub("", forms[number])))
    return [(n, re.compile(_SLOT.sub("(.+)", forms[n])), _SLOT.findall(forms[n])) for n in order]


def blocks_of(text: str) -> list[str]:
    """The blocks of a memory's text up to an empty line; those after the first without their first words."""
    return _BLOCK.split(text.partition("\n\n")[0])

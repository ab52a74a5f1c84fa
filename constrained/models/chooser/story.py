"""What a text chooser sees: the episode as words, and each name that an action may use with where it was last shown.

The text is a memory's: the task, then blocks that begin with "Action N: ACTION" and go on with what was answered and
seen. Nothing here knows a domain: a name is compared by its words with the task, the last actions and their answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

_WORD = re.compile(r"[a-z']+|-?\d+(?:\.\d+)?")
_BLOCK = re.compile(r"^Action \d+: ", re.MULTILINE)
_SLOT = re.compile(r"<([A-Z_]+)>")
RECENT = 4
"""Actions that every name is compared with."""
NAME, AFTER, BEFORE, ASKED, BLOCK, TASK = 8, 6, 6, 12, 48, 112
"""Words that are read of a name, after and before the place where it was last shown, before it in the task, of a block
and of the task."""
FEW = 2 * RECENT + 12
"""Features of a name apart from its slots, and from its comparisons with the last action of each form."""
PAIRS = 3
"""Features of a form with its first name, and of the second name with the first."""


@dataclass(frozen=True)
class Words:
    """What a network knows: words, forms of actions, slots.

    Attributes
    ----------
    words : dict of str to int
        From 2 on; 0 stands for no word, 1 for others.
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
        return cls({word: i for i, word in enumerate(words, 2)}, tuple(forms), tuple(slots))

    @property
    def features(self) -> int:
        """Number of features of a name."""
        return FEW + 3 * len(self.forms) + len(self.slots)

    def of_form(self, number: int) -> list[int]:
        """The slots of a form, by number."""
        return [self.slots.index(slot) for slot in _SLOT.findall(self.forms[number])]

    def ids(self, text: Sequence[str], length: int) -> np.ndarray:
        """Words as numbers, int16, shape (length,)."""
        found = [self.words.get(word, 1) for word in text[:length]]
        return np.array(found + [0] * (length - len(found)), np.int16)


def forms_of(knowledge, view: Mapping[str, Sequence[str]]) -> list[str]:
    """The forms of the actions that are admitted when the slots have these values."""
    marked = {s: [""] if list(v) == [""] else [f"<{s}>"] if v else [] for s, v in view.items()}
    return knowledge.bind_view(marked).next_actions()


def read(text: str, numbers: Sequence[float] = ()) -> list[str]:
    """The words of a text; a number is followed by how it compares with those of the task."""
    found = []
    for word in _WORD.findall(text.lower()):
        number = _number(word)
        if number is None or (not numbers and len(word) == 1):
            found.append(word)
        else:
            found.append(word if len(word) == 1 else "#")
            found += [f"{'>' if number > one else '<'}{i}" for i, one in enumerate(numbers)]
    return found


def _number(word: str) -> float | None:
    return float(word) if word[-1].isdigit() else None


@dataclass
class Look:
    """What a network reads before an action.

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
        told = [number for word in _WORD.findall(task) if (number := _number(word)) is not None]
        self._numbers = [number for number in dict.fromkeys(told) if abs(number) >= 10][:3]
        self.task = read(task)
        self._bags: dict[str, np.ndarray] = {}
        self._sets: dict[str, set[str]] = {}
        self._best: dict[str, tuple[float, int, list[str], list[str]]] = {}
        self._segments: list[tuple[int, set[str], list[str], list[str], list[str]]] = []
        self._asked: dict[str, np.ndarray] = {}
        forms = len(words.forms)
        self._references = np.zeros((2 * RECENT + 2 + 3 * forms, len(words.words) + 2), np.float32)
        self._references[2 * RECENT] = self._bag_of(self.task)
        self._uses: list[dict[str, list[int]]] = [{}, {}]
        self._pairs: dict[tuple, list[int]] = {}
        self.steps: list[tuple[int, str, str]] = []
        self.blocks: list[np.ndarray] = []
        self.done = np.zeros((0, 2, NAME), np.int16)
        self._changed = 0
        self._view: Mapping[str, Sequence[str]] = {}
        self._read_block(rest)

    def update(self, text: str) -> None:
        """Take in a block without its first words: the action, and what came of it."""
        action, _, rest = text.partition("\n")
        form, *names = step = self.parse(action)
        n = len(self.steps)
        self.steps.append(step)
        self.done = np.concatenate([self.done, [[self.words.ids(name_words(name), NAME) for name in names]]])
        for place, name in enumerate(names):
            if name:
                self._uses[place].setdefault(name, []).append(n)
        self._pairs.setdefault((form, names[0]), []).append(n)
        self._pairs.setdefault((names[0], names[1]), []).append(n)
        references, forms = self._references, len(self.words.forms)
        references[2 : 2 * RECENT] = references[: 2 * RECENT - 2].copy()
        first, second = (self._bag(name) for name in names)
        references[0], references[1] = first, second
        if form >= 0:
            base = 2 * RECENT + 2
            references[base + form], references[base + forms + form] = first, second
            references[base + 2 * forms + form] = self._bag_of(read(rest))
        self._read_block(rest)

    def parse(self, action: str) -> tuple[int, str, str]:
        """The form of an action, -1 if it is unknown, and its first and second name, "" if it has none."""
        fitting: list[tuple[int, str, str]] = []
        for number, pattern, slots in _patterns(self.words.forms):
            found = pattern.fullmatch(action)
            if found:
                first, second = (*found.groups(), "", "")[:2]
                fitting.append((number, first, second))
                if all(name in self._view.get(slot, ()) for slot, name in zip(slots, found.groups())):
                    return fitting[-1]
        return fitting[0] if fitting else (-1, "", "")

    def look(self, forms: Sequence[str], view: Mapping[str, Sequence[str]]) -> Look:
        """What is read before an action of these forms, when the slots have these values."""
        words, self._view = self.words, view
        slots = {slot: number for number, slot in enumerate(words.slots) if view.get(slot)}
        members: dict[str, list[int]] = {"": []}
        for slot, number in slots.items():
            for name in view[slot]:
                members.setdefault(name, []).append(number)
        names, now, references = list(members), len(self.steps), self._references
        bags = np.stack([self._bag(name) for name in names])
        sizes = np.maximum(bags.sum(1, keepdims=True), 1)
        shared = bags @ references.T / sizes
        features = np.zeros((len(names), words.features), np.float16)
        features[:, : shared.shape[1]] = shared
        at = shared.shape[1]
        after, before = np.zeros((len(names), AFTER), np.int16), np.zeros((len(names), BEFORE), np.int16)
        for i, name in enumerate(names):
            if not name:
                continue
            score, when, left, right = self._shown(name)
            after[i], before[i] = words.ids(right, AFTER), words.ids(left[-BEFORE:], BEFORE)
            used = [self._uses[place].get(name, ()) for place in (0, 1)]
            features[i, at : at + 10] = (
                score, 1 / (1 + now - when), when == now, f" {name} " in f" {' '.join(self.task)} ",
                np.log1p(len(used[0])), np.log1p(len(used[1])), 1 / (now - used[0][-1]) if used[0] else 0,
                1 / (now - used[1][-1]) if used[1] else 0, bool(used[0]), bool(used[1]),
            )  # fmt: skip
            features[i, [words.features - len(words.slots) + number for number in members[name]]] = 1
        pairs = np.zeros((len(words.forms), len(names), PAIRS), np.float16)
        places = {name: i for i, name in enumerate(names)}
        for (form, name), uses in self._pairs.items():
            if isinstance(form, int) and form >= 0 and name in places:
                since = sum(use >= self._changed for use in uses)
                pairs[form, places[name]] = np.log1p(len(uses)), 1 / (now - uses[-1]), np.log1p(since)
        return Look(
            names, np.stack([words.ids(name_words(name), NAME) for name in names]), after, before,
            np.stack([self._before_in_task(name) for name in names]), features, pairs,
            np.isin(words.forms, list(forms)),
        )  # fmt: skip

    def second(self, look: Look, first: str) -> np.ndarray:
        """Features of each name as the second, float16, shape (names, PAIRS)."""
        bag, now = self._bag(first), len(self.steps)
        found = np.zeros((len(look.names), PAIRS), np.float16)
        for i, name in enumerate(look.names):
            if name:
                own = self._bag(name)
                uses = self._pairs.get((first, name), ())
                found[i] = own @ bag / max(1, own.sum()), np.log1p(len(uses)), 1 / (now - uses[-1]) if uses else 0
        return found

    def repeated(self, action: str) -> int:
        """How often an action was done since something new was last seen."""
        key = self.parse(action)
        return sum(step == key for step in self.steps[self._changed :])

    def _read_block(self, rest: str) -> None:
        block = len(self.steps)
        lines = rest.split("\n") if rest else []
        everything = read(rest, self._numbers)
        self.blocks.append(self.words.ids(everything, BLOCK))
        self._references[2 * RECENT + 1] = self._bag_of(everything)
        if any(": " in line for line in lines):
            self._changed = block
        fresh = len(self._segments)
        for line in lines:
            head, _, body = line.partition(": ") if ": " in line else ("", "", line)
            place = read(head)
            for item in body.split("; "):
                parts = [read(part, self._numbers) for part in re.split(r"[:,()]| (?=to |in |on )", item)]
                for i, part in enumerate(parts):
                    if part:
                        left = [*place[:2], *(word for other in parts[:i] for word in other)]
                        right = [word for other in parts[i + 1 :] for word in other]
                        self._segments.append((block, set(part), part, left, right))
        for name in self._best:
            self._match(name, fresh)

    def _shown(self, name: str) -> tuple[float, int, list[str], list[str]]:
        if name not in self._best:
            self._best[name] = (0.0, -100, [], [])
            self._match(name, 0)
        return self._best[name]

    def _match(self, name: str, start: int) -> None:
        own = self._sets.get(name)
        if own is None:
            own = self._sets[name] = set(name_words(name))
        best, when, left, right = self._best[name]
        for block, words, part, before, after in self._segments[start:]:
            common = len(own & words)
            if common and common / len(own) >= best:
                best, when = common / len(own), block
                left, right = before, [word for word in part if word not in own] + after
        self._best[name] = best, when, left, right

    def _before_in_task(self, name: str) -> np.ndarray:
        found = self._asked.get(name)
        if found is None:
            own, words = name_words(name), []
            for size in range(len(own), 0, -1):
                runs = [own[i : i + size] for i in range(len(own) - size + 1)]
                for at in range(len(self.task)):
                    if self.task[at : at + size] in runs:
                        words += self.task[max(0, at - 6) : at]
                if words:
                    break
            found = self._asked[name] = self.words.ids(words, ASKED)
        return found

    def _bag(self, name: str) -> np.ndarray:
        found = self._bags.get(name)
        if found is None:
            found = self._bags[name] = self._bag_of(name_words(name))
        return found

    def _bag_of(self, words: Sequence[str]) -> np.ndarray:
        bag = np.zeros(len(self.words.words) + 2, np.float32)
        bag[[self.words.words.get(word, 1) for word in words]] = 1
        bag[0] = 0
        return bag


def name_words(name: str) -> list[str]:
    """The words of a name."""
    return _WORD.findall(name.lower())


@lru_cache(maxsize=8)
def _patterns(forms: tuple[str, ...]) -> list[tuple[int, re.Pattern[str], list[str]]]:
    """The forms by number, those with the most words of their own first, with their slots."""
    order = sorted(range(len(forms)), key=lambda number: -len(_SLOT.sub("", forms[number])))
    return [(n, re.compile(_SLOT.sub("(.+)", forms[n])), _SLOT.findall(forms[n])) for n in order]


def blocks_of(text: str) -> list[str]:
    """The blocks of a memory's text; those after the first without their first words."""
    return _BLOCK.split(text)

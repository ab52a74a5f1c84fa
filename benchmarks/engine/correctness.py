"""Whether an engine's masks are right.

Ours are compared first; wherever two engines differ over a token, a referee that is neither decides: Python's `re`
over bytes, or for nested expressions a hand-written checker (`Case.referee`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from benchmarks.engine.vocabularies import Tokens
from benchmarks.engine.workloads import Case

SAMPLE = 12
"""Disputed tokens of one mask that the referee is asked about; more would decide the same."""


@dataclass
class Verdict:
    """What became of an engine's masks over one workload.

    Attributes
    ----------
    masks : int
        Compared.
    wrong : int
        Masks with a token too many or one too few.
    one_cut : int
        Masks narrower only in this: where the text is forced they allow one way to cut it (meant to be the
        tokenizer's own), not every way. Sound, and meant so; not counted as wrong.
    refused : int
        Texts of the language that were refused midway.
    example : str
        The first fault, in words.
    """

    masks: int = 0
    wrong: int = 0
    one_cut: int = 0
    refused: int = 0
    example: str = ""

    @property
    def correct(self) -> bool:
        return not (self.wrong or self.refused)


@dataclass
class Place:
    """Where a mask was taken: after `text` of a case; `following` is the token that the tokenizer writes next."""

    case: Case
    text: bytes
    following: int | None
    referee: Callable[[bytes], bool] = field(repr=False)


def places(cases: tuple[Case, ...], ids: list[list[list[int]]], tokens: Tokens) -> list[list[Place]]:
    """Per text, case by case, the places of its masks."""
    found = []
    for case, texts in zip(cases, ids):
        referee = _lazily(case.referee)
        for text in texts:
            spelled = [tokens.tokens[i] for i in text]
            found.append([
                Place(case, b"".join(spelled[:n]), following, referee) for n, following in enumerate([*text, None])
            ])  # fmt: skip
    return found


def batch_places(cases: tuple[Case, ...], ids: list[list[list[int]]], tokens: Tokens, calls: int) -> list[list[Place]]:
    """Per call of a batch, its rows' places: see `measure`, which lets them begin and go on alike."""
    rows = places(cases, ids, tokens)
    at = [row * 5 % (len(row_places) - 1) for row, row_places in enumerate(rows)]
    found = []
    for _ in range(calls):
        found.append([row_places[n] for row_places, n in zip(rows, at)])
        at = [1 if n == len(row_places) - 1 else n + 1 for row_places, n in zip(rows, at)]
    return found


def _lazily(make: Callable[[], Callable[[bytes], bool]]) -> Callable[[bytes], bool]:
    known: list[Callable[[bytes], bool]] = []

    def ask(data: bytes) -> bool:
        if not known:
            known.append(make())
        return known[0](data)

    return ask


def clear_padding(masks: list[np.ndarray], tokens: Tokens) -> None:
    """Clear, in place, the bits of the last words that stand for no token: nobody reads them."""
    left = tokens.size % 32
    if left:
        for rows in masks:
            rows[:, -1] &= (1 << left) - 1


def exact_mask(place: Place, tokens: Tokens) -> np.ndarray:
    """The mask at a place, every token tried by the referee."""
    bits = np.zeros(tokens.words * 32, np.uint8)
    for i, token in enumerate(tokens.tokens):
        if token and place.referee(place.text + token):
            bits[i] = 1
    if place.case.whole(place.text):
        bits[tokens.eos] = 1
    return np.packbits(bits, bitorder="little").view(np.int32)


def exact_masks(
    ours: list[np.ndarray], others: list[list[np.ndarray]], where: list[list[Place]], tokens: Tokens
) -> list[np.ndarray]:
    """Our masks, put right wherever another engine's differ and the referee finds ours wrong.

    Parameters
    ----------
    ours : list of ndarray of int32, shape [n, words]
        Per text or call; empty where our engine refused the workload: then every mask is the referee's.
    others : list of such lists
    where : list of list of Place
    tokens : Tokens
    """
    if not ours:
        return [np.array([exact_mask(place, tokens) for place in there]) for there in where]
    found = []
    for number, there in enumerate(where):
        rows = np.zeros((len(there), tokens.words), np.int32)
        count = len(ours[number]) if number < len(ours) else 0
        rows[:count] = ours[number] if count else 0
        for n in range(count, len(there)):
            rows[n] = exact_mask(there[n], tokens)
        for masks in others:
            theirs = masks[number][:count] if number < len(masks) else rows[:0]
            for n in np.flatnonzero((theirs != rows[: len(theirs)]).any(axis=1)):
                if _is_one_cut(theirs[n], rows[n], tokens):
                    continue
                if _ours_is_wrong(rows[n], theirs[n], there[n], tokens):
                    rows[n] = exact_mask(there[n], tokens)
        found.append(rows)
    return found


def _ours_is_wrong(ours: np.ndarray, other: np.ndarray, place: Place, tokens: Tokens) -> bool:
    """Whether the referee is against ours on one of a sample of the tokens that two masks differ over."""
    differing = ids(ours ^ other)
    for token in differing[:: max(1, len(differing) // SAMPLE)].tolist():
        if token in tokens.eos:
            right = place.case.whole(place.text)
        else:
            word = tokens.tokens[token]
            right = bool(word) and place.referee(place.text + word)
        if right != bool(ours[token >> 5] >> (token & 31) & 1):
            return True
    return False


def _is_one_cut(row: np.ndarray, right: np.ndarray, tokens: Tokens) -> bool:
    """Whether the text is forced, and the mask allows some of the ways to cut it, but not all."""
    if not row.any() or (row & ~right).any():
        return False
    words = [tokens.tokens[i] for i in ids(right)]
    longest = max(words, key=len)
    return all(word and longest.startswith(word) for word in words)


def judge(
    name: str, masks: list[np.ndarray], exact: list[np.ndarray], where: list[list[Place]], tokens: Tokens
) -> Verdict:
    """Compare an engine's masks with the exact ones.

    Parameters
    ----------
    name : str
        Of the engine, for the example.
    masks, exact : list of ndarray of int32, shape [n, words]
        Per text or call.
    where : list of list of Place
    tokens : Tokens
    """
    verdict = Verdict()
    for rows, right, there in zip(masks, exact, where):
        count = min(len(rows), len(right))
        verdict.masks += count
        if len(rows) < len(there) and len(rows) <= len(right):
            verdict.refused += 1
            place = there[len(rows) - 1]
            token = "?" if place.following is None else repr(tokens.tokens[place.following])
            verdict.example = verdict.example or f"{name} refuses {token} after {_tail(place.text)}"
        for n in np.flatnonzero((rows[:count] != right[:count]).any(axis=1)):
            _judge_mask(verdict, rows[n], right[n], there[n], tokens)
    return verdict


def _judge_mask(verdict: Verdict, row: np.ndarray, right: np.ndarray, place: Place, tokens: Tokens) -> None:
    extra, missing = ids(row & ~right), ids(~row & right)
    if _is_one_cut(row, right, tokens):
        verdict.one_cut += 1
        return
    verdict.wrong += 1
    if not verdict.example:
        token, fault = (extra[0], "allows") if len(extra) else (missing[0], "lacks")
        what = "the end of the text" if token in tokens.eos else repr(tokens.tokens[token])
        more = len(extra) + len(missing) - 1
        verdict.example = f"{fault} {what} after {_tail(place.text)}" + (f", and {more} more" if more else "")


def ids(row: np.ndarray) -> np.ndarray:
    """Token ids of a packed row, ascending."""
    return np.flatnonzero(np.unpackbits(np.ascontiguousarray(row).view(np.uint8), bitorder="little"))


def _tail(text: bytes) -> str:
    return repr((b"..." if len(text) > 40 else b"") + text[-40:])

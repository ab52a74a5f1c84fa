"""Check an engine's masks.

Masks are compared with ours; where two engines differ on a token, an independent referee decides: Python's `re` over
bytes, or a hand-written checker for nested expressions (`Case.referee`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from benchmarks.engine.vocabularies import Tokens
from benchmarks.engine.workloads import Case

SAMPLE = 12
"""Disputed tokens of one mask that are put to the referee; more would give the same result."""


@dataclass
class Verdict:
    """The result for an engine's masks over one workload.

    Attributes
    ----------
    masks : int
        Masks compared.
    wrong : int
        Masks with a token too many or too few.
    one_cut : int
        Masks that, where the text is forced, allow only one tokenization of it (meant to be the tokenizer's own). That
        is sound and intended; not counted as wrong.
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
class Prefix:
    """Where a mask was taken: after `text` of a case; `following` is the next token of the tokenizer."""

    case: Case
    text: bytes
    following: int | None
    referee: Callable[[bytes], bool] = field(repr=False)


def prefixes(cases: tuple[Case, ...], ids: list[list[list[int]]], tokens: Tokens) -> list[list[Prefix]]:
    """Per text, case by case, the prefixes at which masks are taken."""
    result = []
    for case, texts in zip(cases, ids):
        referee = _lazily(case.referee)
        for text in texts:
            spelled = [tokens.tokens[i] for i in text]
            result.append([
                Prefix(case, b"".join(spelled[:n]), following, referee) for n, following in enumerate([*text, None])
            ])  # fmt: skip
    return result


def batch_prefixes(
    cases: tuple[Case, ...], ids: list[list[list[int]]], tokens: Tokens, calls: int
) -> list[list[Prefix]]:
    """Per call of a batch, the prefixes of its rows; `measure` starts and advances them in the same way."""
    rows = prefixes(cases, ids, tokens)
    at = [row * 5 % (len(row_prefixes) - 1) for row, row_prefixes in enumerate(rows)]
    result = []
    for _ in range(calls):
        result.append([row_prefixes[n] for row_prefixes, n in zip(rows, at)])
        at = [1 if n == len(row_prefixes) - 1 else n + 1 for row_prefixes, n in zip(rows, at)]
    return result


def _lazily(make: Callable[[], Callable[[bytes], bool]]) -> Callable[[bytes], bool]:
    known: list[Callable[[bytes], bool]] = []

    def ask(data: bytes) -> bool:
        if not known:
            known.append(make())
        return known[0](data)

    return ask


def clear_padding(masks: list[np.ndarray], tokens: Tokens) -> None:
    """Clear, in place, the bits of the last words that stand for no token."""
    left = tokens.size % 32
    if left:
        for rows in masks:
            rows[:, -1] &= (1 << left) - 1


def exact_mask(prefix: Prefix, tokens: Tokens) -> np.ndarray:
    """The exact mask at a prefix: the referee tries every token."""
    bits = np.zeros(tokens.words * 32, np.uint8)
    for i, token in enumerate(tokens.tokens):
        if token and prefix.referee(prefix.text + token):
            bits[i] = 1
    if prefix.case.whole(prefix.text):
        bits[tokens.eos] = 1
    return np.packbits(bits, bitorder="little").view(np.int32)


def exact_masks(
    ours: list[np.ndarray], others: list[list[np.ndarray]], where: list[list[Prefix]], tokens: Tokens
) -> list[np.ndarray]:
    """Our masks, corrected where another engine's differ and the referee finds ours wrong.

    Parameters
    ----------
    ours : list of ndarray of int32, shape [n, words]
        Per text or call; empty if our engine refused the workload: then every mask is the referee's.
    others : list of such lists
    where : list of list of Prefix
    tokens : Tokens
    """
    if not ours:
        return [np.array([exact_mask(prefix, tokens) for prefix in there]) for there in where]
    result = []
    # Ours count as right until another engine differs and the referee sides with it. Masks that we don't have (our
    # engine refused midway) are all the referee's.
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
        result.append(rows)
    return result


def _ours_is_wrong(ours: np.ndarray, other: np.ndarray, prefix: Prefix, tokens: Tokens) -> bool:
    """Whether the referee contradicts our mask on one of a sample of the disputed tokens."""
    # Evenly spread over the disputed tokens; one contradiction is enough, as the whole mask is then made anew.
    differing = ids(ours ^ other)
    for token in differing[:: max(1, len(differing) // SAMPLE)].tolist():
        if token in tokens.eos:
            right = prefix.case.whole(prefix.text)
        else:
            word = tokens.tokens[token]
            right = bool(word) and prefix.referee(prefix.text + word)
        if right != bool(ours[token >> 5] >> (token & 31) & 1):
            return True
    return False


def _is_one_cut(row: np.ndarray, right: np.ndarray, tokens: Tokens) -> bool:
    """Whether the text is forced and the mask allows some of its tokenizations, but not all."""
    if not row.any() or (row & ~right).any():
        return False
    words = [tokens.tokens[i] for i in ids(right)]
    longest = max(words, key=len)
    return all(word and longest.startswith(word) for word in words)


def judge(
    name: str, masks: list[np.ndarray], exact: list[np.ndarray], where: list[list[Prefix]], tokens: Tokens
) -> Verdict:
    """Compare the masks of the engine `name` with the exact ones, per text or call."""
    verdict = Verdict()
    for rows, right, there in zip(masks, exact, where):
        count = min(len(rows), len(right))
        verdict.masks += count
        if len(rows) < len(there) and len(rows) <= len(right):
            verdict.refused += 1
            prefix = there[len(rows) - 1]
            token = "?" if prefix.following is None else repr(tokens.tokens[prefix.following])
            verdict.example = verdict.example or f"{name} refuses {token} after {_tail(prefix.text)}"
        for n in np.flatnonzero((rows[:count] != right[:count]).any(axis=1)):
            _judge_mask(verdict, rows[n], right[n], there[n], tokens)
    return verdict


def _judge_mask(verdict: Verdict, row: np.ndarray, right: np.ndarray, prefix: Prefix, tokens: Tokens) -> None:
    extra, missing = ids(row & ~right), ids(~row & right)
    if _is_one_cut(row, right, tokens):
        verdict.one_cut += 1
        return
    verdict.wrong += 1
    if not verdict.example:
        token, fault = (extra[0], "allows") if len(extra) else (missing[0], "lacks")
        what = "the end of the text" if token in tokens.eos else repr(tokens.tokens[token])
        more = len(extra) + len(missing) - 1
        verdict.example = f"{fault} {what} after {_tail(prefix.text)}" + (f", and {more} more" if more else "")


def ids(row: np.ndarray) -> np.ndarray:
    """Token ids of a packed row, ascending."""
    return np.flatnonzero(np.unpackbits(np.ascontiguousarray(row).view(np.uint8), bitorder="little"))


def _tail(text: bytes) -> str:
    return repr((b"..." if len(text) > 40 else b"") + text[-40:])

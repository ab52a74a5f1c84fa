"""A vocabulary: the tokens as bytes, in the order in which masks walk them, and which of them are free text."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from constrained.arguments import SEVERAL, WHOLE, check, checked
from constrained.automaton import native, vocabulary_cache
from constrained.automaton.control_tokens import MARK, ControlTokens
from constrained.automaton.endings import Endings, which_are
from constrained.automaton.tokenizers import end_ids, open_tokenizer, read_tokenizer
from constrained.errors import VocabularyError
from constrained.grammar.charset import CharSet

_HEAD = np.zeros(256, np.int8)  # length by first byte; 0: not a first byte
_HEAD[:0x80] = 1
_HEAD[0xC2:0xE0] = 2
_HEAD[0xE0:0xF0] = 3
_HEAD[0xF0:0xF5] = 4
_PAYLOAD = np.array([0, 0x7F, 0x1F, 0x0F, 0x07])

UTF8_BYTES = frozenset(range(256)) - {0xC0, 0xC1, *range(0xF5, 0x100)}
"""Those that occur in UTF-8."""

LONGEST = 4_096
"""Bytes of a token, at most."""


class Vocabulary:
    """Tokens as bytes, with the ids that end a text.

    Parameters
    ----------
    tokens : sequence of bytes
        Token id -> its bytes; empty for ids that stand for no text.
    eos_token_ids : iterable of int
        Ids that end a text; at least one.
    special_ids : iterable of int
        Ids never allowed by content (EOS ids are special by themselves), except where a grammar's own text names a
        token that has bytes: see :class:`constrained.automaton.control_tokens.ControlTokens`.
    size : int, optional
        Width of the model's logits where it is larger than the tokenizer; the ids beyond
        are never allowed. Default: ``len(tokens)``, or the largest EOS id + 1.

    Attributes
    ----------
    size : int
        Ids run from 0 to ``size - 1``; masks have ``ceil(size / 32)`` words.
    sorted_ids : ndarray of int32
        Ids of the tokens that stand for text, ascending by their bytes; equal ones next to
        each other, ascending by id.
    lengths : ndarray of int32
        Bytes of each of these.
    flat : ndarray of uint8
        Their bytes, one after the other.

    Raises
    ------
    VocabularyError
        No token, one that is not bytes, no EOS id, or an id out of range.
    """

    @checked(VocabularyError, tokens=SEVERAL, special_ids=SEVERAL, size=WHOLE)
    def __init__(
        self,
        tokens: Sequence[bytes],
        eos_token_ids: Iterable[int],
        special_ids: Iterable[int] = (),
        *,
        size: int | None = None,
    ):
        tokens = [t if type(t) is bytes else _bytes(t, i) for i, t in enumerate(tokens)]
        self.tokens = tokens  # sets the cached property
        self._set_ids(len(tokens), eos_token_ids, special_ids, size)
        skip = self.special_set
        order = sorted((i for i, t in enumerate(tokens) if t and i not in skip), key=tokens.__getitem__)
        if not order:
            raise VocabularyError("the vocabulary has no token that stands for text")
        self.sorted_ids = np.array(order, np.int32)
        self.sorted_tokens = [tokens[i] for i in order]
        self.lengths = np.fromiter(map(len, self.sorted_tokens), np.int32, len(order))
        if self.longest > LONGEST:  # the recursion of a walk is as deep as the longest token
            raise VocabularyError(f"a token of {self.longest:,} bytes: there may be {LONGEST:,}")
        self.flat = np.frombuffer(b"".join(self.sorted_tokens), np.uint8)

    def _set_ids(self, count: int, eos_token_ids, special_ids, size: int | None) -> None:
        self.eos_token_ids = sorted(_ids("eos_token_ids", () if eos_token_ids is None else eos_token_ids))
        if not self.eos_token_ids:
            raise VocabularyError(
                "the vocabulary has no EOS token, so no text could ever end",
                hint="pass eos_token_ids=[...], the ids the model ends a text with",
            )
        highest = max(count - 1, self.eos_token_ids[-1])
        self.size = max(highest + 1, size or 0)
        self.special_ids = sorted(_ids("special_ids", special_ids) | set(self.eos_token_ids))
        bad = [i for i in self.special_ids if not 0 <= i < self.size]
        if bad:
            raise VocabularyError(f"special token id {bad[0]} is outside 0..{self.size - 1}")

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Vocabulary:
        """The vocabulary that :meth:`arrays` described; it is trusted to be sorted."""
        self = cls.__new__(cls)
        self.all_lengths, self.all_flat = arrays["all_lengths"], arrays["all_flat"]
        self.sorted_ids, self.lengths, self.flat = arrays["sorted_ids"], arrays["lengths"], arrays["flat"]
        self._set_ids(len(self.all_lengths), arrays["eos_token_ids"], arrays["special_ids"], int(arrays["size"]))
        return self

    def arrays(self) -> dict[str, np.ndarray]:
        """All of the vocabulary as arrays, for storage; `from_arrays` is the inverse."""
        return {
            "size": np.array(self.size, np.int64),
            "eos_token_ids": np.array(self.eos_token_ids, np.int64),
            "special_ids": np.array(self.special_ids, np.int64),
            "all_lengths": self.all_lengths,
            "all_flat": self.all_flat,
            "sorted_ids": self.sorted_ids,
            "lengths": self.lengths,
            "flat": self.flat,
        }

    @classmethod
    @checked(VocabularyError, size=WHOLE, special_ids=SEVERAL)
    def from_tokenizer(
        cls,
        tokenizer,
        *,
        eos_token_ids: Iterable[int] | None = None,
        size: int | None = None,
        special_ids: Iterable[int] = (),
        cache: bool | str | os.PathLike | None = None,
    ) -> Vocabulary:
        """The vocabulary of a tokenizer.

        Parameters
        ----------
        tokenizer : transformers' fast ones and its `MistralCommonBackend`, tokenizers.Tokenizer, mistral-common's
            (Tekken and SentencePiece), vLLM's for Mistral, SentencePieceProcessor, or tiktoken.Encoding
        eos_token_ids : iterable of int, optional
            All the ids that end a text (a model's generation config may know several);
            default: the tokenizer's own.
        size : int, optional
            Width of the model's logits.
        special_ids : iterable of int
            Control tokens beside those that the tokenizer flags as special, for tokenizers that forget to.
        cache : bool or path-like, optional
            A folder to keep the prepared vocabulary in, by the tokenizer's content; True: the
            user's cache folder (``$CONSTRAINED_CACHE``, or ``~/.cache/constrained``).
        """
        eos = None if eos_token_ids is None else sorted(_ids("eos_token_ids", eos_token_ids))
        more = sorted(_ids("special_ids", special_ids))
        place = vocabulary_cache.locate(tokenizer, cache, eos, size, more) if cache else None
        arrays = vocabulary_cache.load(*place) if place else None
        if arrays is not None:
            return cls.from_arrays(arrays)
        tokens, own_eos, special = read_tokenizer(tokenizer)
        eos = own_eos if eos is None else eos
        if not eos:
            raise VocabularyError(
                f"the tokenizer {getattr(tokenizer, 'name_or_path', '') or type(tokenizer).__name__}"
                " names no EOS token, so no text could ever end",
                hint="set tokenizer.eos_token, or pass eos_token_ids=[...]",
            )
        made = cls(tokens, eos, special.union(more), size=size)
        if place:
            vocabulary_cache.store(made.arrays(), *place)
        return made

    def __reduce__(self) -> tuple:
        """For `pickle` and `copy`: only the arrays; what is derived from them is computed again."""
        return type(self).from_arrays, (self.arrays(),)

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"Vocabulary({len(self.sorted_ids)} tokens, size {self.size}, EOS {self.eos_token_ids})"

    @cached_property
    def special_set(self) -> frozenset[int]:
        """Special ids, EOS ids among them."""
        return frozenset(self.special_ids)

    @cached_property
    def control_tokens(self) -> ControlTokens:
        """The special tokens that a grammar can name."""
        return ControlTokens(self.tokens[i] for i in self._control_ids)

    @property
    def _control_ids(self) -> list[int]:
        return [i for i in self.special_ids if i < len(self.tokens) and i not in self.eos_token_ids]

    @cached_property
    def marked(self) -> Vocabulary:
        """The vocabulary for grammars that name control tokens: each of these tokens is its text after a mark byte.

        No other token contains the mark's byte, so a control token can't be spelled by other tokens.
        """
        tokens = [b"" if MARK in token else token for token in self.tokens]
        for i in self._control_ids:
            tokens[i] = self.tokens[i] and MARK + self.tokens[i]
        return Vocabulary(tokens, self.eos_token_ids, size=self.size)

    @cached_property
    def words(self) -> int:
        """int32 words of one mask row."""
        return (self.size + 31) // 32

    @cached_property
    def all_lengths(self) -> np.ndarray:
        """Bytes of every token by id, special ones included, int32."""
        return np.fromiter(map(len, self.tokens), np.int32, len(self.tokens))

    @cached_property
    def all_flat(self) -> np.ndarray:
        """All tokens' bytes by id, one after the other, uint8."""
        return np.frombuffer(b"".join(self.tokens), np.uint8)

    @cached_property
    def tokens(self) -> list[bytes]:
        """Token id -> its bytes; empty for ids that stand for no text."""
        return _cut(self.all_flat, self.all_lengths)

    @cached_property
    def sorted_tokens(self) -> list[bytes]:
        """Tokens that stand for text, in the order of :attr:`sorted_ids`."""
        return _cut(self.flat, self.lengths)

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where each sorted token starts in :attr:`flat`, int64."""
        return np.concatenate(([0], np.cumsum(self.lengths, dtype=np.int64)[:-1]))

    @cached_property
    def ranks(self) -> np.ndarray:
        """Token id -> its index among the sorted tokens, int32 ``[size]``; -1 for no text."""
        out = np.full(self.size, -1, np.int32)
        out[self.sorted_ids] = np.arange(len(self.sorted_ids), dtype=np.int32)
        return out

    @cached_property
    def longest(self) -> int:
        """Bytes of the longest token."""
        return int(self.lengths.max())

    @cached_property
    def text(self) -> TokenTexts:
        """Facts about the characters of each token (`TokenTexts`)."""
        return TokenTexts(self.flat, self.offsets, self.lengths)

    def most_of(self, wanted: frozenset[int]) -> int:
        """The greatest number of bytes in one token that are among `wanted`."""
        if wanted not in self._most:
            self._most[wanted] = int(np.add.reduceat(which_are(self.flat, wanted), self.offsets, dtype=np.int32).max())
        return self._most[wanted]

    @cached_property
    def _most(self) -> dict[frozenset[int], int]:
        return {}

    @cached_property
    def endings(self) -> Endings:
        """The tokens that may end an item of an array."""
        return Endings(self.sorted_tokens, self.sorted_ids, self.flat, self.offsets, self.pack)

    @cached_property
    def kernel_tokens(self):
        """The vocabulary for the C kernel (`native.kernel.Tokens`)."""
        tokens = native.kernel.Tokens(self.flat, self.lengths, self.sorted_ids, self.ranks, self.size)
        tokens.prepare_text()  # takes some milliseconds, by which the first mask would otherwise be late
        return tokens

    @cached_property
    def single_bytes(self) -> frozenset[int]:
        """Bytes that are a token by themselves."""
        return frozenset(self.flat[self.offsets[self.lengths == 1]].tolist())

    @cached_property
    def spells_all(self) -> bool:
        """Whether each byte of UTF-8 is a token by itself, so that every text can be written."""
        return self.single_bytes >= UTF8_BYTES

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over tokens, EOS and special ids: equal for equal vocabularies."""
        digest = hashlib.sha256(f"{self.size}|{self.eos_token_ids}|{self.special_ids}|".encode())
        digest.update(self.all_lengths.astype("<i4").tobytes())
        digest.update(self.all_flat.tobytes())
        return digest.hexdigest()

    def pack(self, ids: np.ndarray) -> np.ndarray:
        """A mask row, int32 ``[words]``, with the bits of `ids` set."""
        bits = np.zeros(self.words * 32, np.uint8)
        bits[ids] = 1
        return np.packbits(bits, bitorder="little").view(np.int32)

    @cached_property
    def _spellings(self) -> frozenset[bytes]:
        return frozenset(self.sorted_tokens)

    def fewest_tokens(self, data: bytes) -> list[int]:
        """The end of each token when `data` is split into the fewest tokens.

        Raises
        ------
        ValueError
            No sequence of tokens spells `data`.
        """
        spellings = self._spellings
        best = [0] + [len(data) + 1] * len(data)  # fewest tokens of each prefix; len(data) + 1: none known
        before = [0] * (len(data) + 1)
        for start in range(len(data)):
            if best[start] > len(data):
                continue
            for end in range(start + 1, min(len(data), start + self.longest) + 1):
                if data[start:end] in spellings and best[end] > best[start] + 1:
                    best[end], before[end] = best[start] + 1, start
        if best[-1] > len(data):
            raise ValueError(f"no tokens spell {data!r}")
        ends, at = [], len(data)
        while at:
            ends.append(at)
            at = before[at]
        return ends[::-1]


def _cut(flat: np.ndarray, lengths: np.ndarray) -> list[bytes]:
    data = flat.tobytes()
    ends = np.cumsum(lengths, dtype=np.int64).tolist()
    return [data[start:end] for start, end in zip([0, *ends], ends)]


def _ids(name: str, given: Iterable[int]) -> set[int]:
    """Token ids as a set. Raises VocabularyError: they aren't whole numbers."""
    check(name, given, SEVERAL, VocabularyError)
    ids = list(given)
    for one in ids:
        check(f"a token id of {name}", one, WHOLE, VocabularyError)
    return {int(one) for one in ids}


def _bytes(token, index: int) -> bytes:
    if not isinstance(token, (bytes, bytearray, memoryview)):
        raise VocabularyError(
            f"token {index} is not bytes but {type(token).__name__}", hint="give each token as the bytes it writes"
        )
    return bytes(token)


def open_vocabulary(name: str) -> Vocabulary:
    """The vocabulary of :func:`open_tokenizer`'s tokenizer; if no token ends a text, an id is added that does."""
    tokenizer = open_tokenizer(name)
    tokens, eos, special = read_tokenizer(tokenizer)
    eos = eos or end_ids(tokenizer, name)
    return Vocabulary(tokens, eos or [len(tokens)], special)


class TokenTexts:
    """Facts about every token of a vocabulary, in its sorted order.

    Attributes
    ----------
    whole : ndarray of bool
        The token is one or more whole characters.
    characters : ndarray of int32
        How many characters begin in it (meaningful where `whole`).
    """

    def __init__(self, flat: np.ndarray, offsets: np.ndarray, lengths: np.ndarray):
        count = len(lengths)
        owner = np.repeat(np.arange(count, dtype=np.int32), lengths)
        ends = offsets + lengths
        continues = (flat & 0xC0) == 0x80
        heads = np.flatnonzero(~continues)
        tokens = owner[heads]
        expected = _HEAD[flat[heads]].astype(np.int64)
        following = np.append(heads[1:], len(flat))
        room = np.minimum(following, ends[tokens]) - heads  # bytes up to the next character's first byte
        well_formed = (expected > 0) & (room == expected)
        points = _code_points(flat, heads, expected, well_formed)
        broken = ~well_formed | (points < 0)
        self.whole = np.ones(count, bool)
        self.whole[tokens[broken]] = False
        self.whole[continues[offsets]] = False  # begins inside a character
        self.characters = np.bincount(tokens, minlength=count).astype(np.int32)
        good = self.whole[tokens]
        self._tokens = tokens[good]
        self._points, self._index = np.unique(points[good], return_inverse=True)
        self._sets: dict[int, tuple[np.ndarray, CharSet]] = {}

    def inside(self, chars: CharSet) -> np.ndarray:
        """bool per sorted token: whole characters, all of them in `chars`."""
        cached = self._sets.get(id(chars))
        if cached is None:
            starts = np.array([a for a, _ in chars.ranges])
            ends = np.array([b for _, b in chars.ranges])
            at = np.searchsorted(starts, self._points, side="right") - 1
            member = (at >= 0) & (self._points <= ends[at])
            result = self.whole.copy()
            result[self._tokens[~member[self._index]]] = False
            cached = self._sets[id(chars)] = (result, chars)
        return cached[0]


def _code_points(flat, heads, expected, well_formed) -> np.ndarray:
    """Code point of each well-formed character, -1 for overlong forms and surrogates."""
    points = np.zeros(len(heads), np.int64)
    for length, least in ((1, 0), (2, 0x80), (3, 0x800), (4, 0x10000)):
        at = np.flatnonzero(well_formed & (expected == length))
        value = flat[heads[at]].astype(np.int64) & _PAYLOAD[length]
        for i in range(1, length):
            value = (value << 6) | (flat[heads[at] + i] & 0x3F)
        bad = (value < least) | (value > 0x10FFFF) | ((value >= 0xD800) & (value <= 0xDFFF))
        points[at] = np.where(bad, -1, value)
    return points

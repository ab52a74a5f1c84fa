"""The part of an automaton that generation can reach, as tensors on a device."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from constrained.automaton import CompiledGrammar, Vocabulary
from constrained.decoding.device import storage
from constrained.decoding.device.explore import NEVER, BuildLimits, Exploration, fewest_tokens, forced_runs
from constrained.errors import VocabularyError

MAX_STATES = 100_000
"""States of all the grammars of a table together."""

MAX_BYTES = 512 << 20
"""Bytes of all the tensors of a table together."""

MAX_SECONDS = 300.0
"""Time a build may take."""

ROUNDED_BYTES = 64 << 20
"""Tables larger than this are not given spare room (see `with_room`)."""


@dataclass(frozen=True)
class DeviceTables:
    """Grammars over one vocabulary, laid out for kernels; shared by any number of `DeviceMatcher`.

    States are numbers; 0 is *finished*, after an end-of-text token. A state that allows few tokens (narrow) lists
    them; one that allows many (wide) has a mask, shared with every state that allows the same, and its next states by
    token class (see `explore.TokenClasses`). All tensors are int32 and lie on one device.

    Attributes
    ----------
    size, eos_token_ids, fingerprint
        Of the vocabulary.
    grammars : tuple of str
        A digest of each grammar.
    start : torch.Tensor, shape [grammars]
        Start state of each grammar.
    wide : torch.Tensor, shape [states]
        The state's row in `mask_row` and `next`; -1 if it is narrow.
    offsets : torch.Tensor, shape [states + 1]
        Where the tokens of each narrow state lie in `ids` and `after`.
    ids, after : torch.Tensor, shape [listed]
        Allowed tokens, ascending in each state, and the states they lead to.
    mask_row : torch.Tensor, shape [wide]
        The wide state's row in `masks`.
    masks : torch.Tensor, shape [distinct, words]
        Packed: bit ``i % 32`` of word ``i // 32`` is 1 where token ``i`` is allowed.
    class_of : torch.Tensor, shape [size]
        Token -> its class.
    next : torch.Tensor, shape [wide, classes]
        The state after a token of the class; -1 where not allowed.
    fewest : torch.Tensor, shape [states]
        Fewest tokens to the end, the end-of-text token not counted: 0 where complete, -1 for finished.
    horizon : torch.Tensor, shape [states]
        From this many tokens left on, a budget rules nothing out.
    run_ids, run_after : torch.Tensor, shape [states, RUN]
        The forced run: tokens that must come next, for which the model isn't asked, and the state after each of them.
    run_length : torch.Tensor, shape [states]
        Tokens of the forced run.
    longest_list, longest_run : int
        Tokens of the longest list, and of the longest forced run.
    truncated : bool
        Some states were left out: the masks are sound, but not complete (see `build`).
    depth : int
        Greatest nesting of what can be written: how often one construct is open at once, such as the sum in
        ``sum: item ("+" item)*`` with ``item: "(" sum ")" | ...``, twice inside of ``(1+``. 0: no rule nests.
    """

    size: int
    eos_token_ids: tuple[int, ...]
    fingerprint: str
    grammars: tuple[str, ...]
    start: torch.Tensor
    wide: torch.Tensor
    offsets: torch.Tensor
    ids: torch.Tensor
    after: torch.Tensor
    mask_row: torch.Tensor
    masks: torch.Tensor
    class_of: torch.Tensor
    next: torch.Tensor
    fewest: torch.Tensor
    horizon: torch.Tensor
    run_ids: torch.Tensor
    run_after: torch.Tensor
    run_length: torch.Tensor
    longest_list: int
    longest_run: int
    truncated: bool = False
    depth: int = 0

    @classmethod
    def build(
        cls,
        compiled: CompiledGrammar | Sequence[CompiledGrammar],
        *,
        tokenizer: Any = None,
        device: torch.device | str = "cpu",
        max_states: int = MAX_STATES,
        max_bytes: int = MAX_BYTES,
        max_seconds: float = MAX_SECONDS,
        truncate: bool = False,
        depth: int | None = None,
    ) -> DeviceTables:
        """Visit every state of the grammars' automata at the end of a token.

        A state costs from 0.1 ms (a few allowed tokens) to some tens of ms (free text over a large vocabulary);
        progress is shown on the terminal where it takes seconds. Keep what took long: `save`, `load`.

        Parameters
        ----------
        compiled : CompiledGrammar or sequence of CompiledGrammar
            Over one vocabulary; grammar ``g`` starts in state ``start[g]``.
        tokenizer : optional
            The model's: spells text that must come next. Without it, only tokens without an alternative are forced.
        device : torch.device or str
        max_states, max_bytes, max_seconds
            Limits; grammars pass them in practice if repeats with large bounds are nested, or if texts nest without
            end.
        truncate : bool
            Keep the `max_states` nearest to the start (in tokens; some thousands for nested expressions) and leave out
            the others, with every token that leads to them or to what can't be finished without them: every text
            written is still whole, but deeper nesting, say, isn't written.
        depth : int, optional
            Leave out what nests deeper, in the same way: the bound for grammars whose texts nest without end. `depth`
            of the tables, and their `repr`, say what came of it.

        Raises
        ------
        GrammarError
            A limit was passed: which, and how to raise it.
        VocabularyError
            No grammar, or grammars over different vocabularies.
        """
        compiled = _as_list(compiled)
        if not compiled:
            raise VocabularyError("no grammar to build tables from", hint="pass at least one compiled grammar")
        vocabulary = compiled[0].vocabulary
        for other in compiled[1:]:
            if other.vocabulary is not vocabulary and other.vocabulary.fingerprint != vocabulary.fingerprint:
                raise VocabularyError(
                    "the grammars are compiled for different vocabularies", hint="compile them all with the same one"
                )
        exploration = Exploration(compiled, BuildLimits(max_states, max_bytes, max_seconds, truncate, depth))
        exploration.walk()
        grammars = tuple(storage.grammar_digest(item.grammar) for item in compiled)
        arrays, truncated, depth = _assemble(exploration)
        arrays |= forced_runs(exploration, arrays, tokenizer)
        tensors = {name: torch.from_numpy(np.ascontiguousarray(array, np.int32)) for name, array in arrays.items()}
        return cls._of(vocabulary, grammars, tensors, truncated, depth).to(device)

    @classmethod
    def _of(
        cls, vocabulary: Vocabulary, grammars: Sequence[str], tensors: Any, truncated: bool, depth: int
    ) -> DeviceTables:
        return cls(
            size=vocabulary.size,
            eos_token_ids=tuple(vocabulary.eos_token_ids),
            fingerprint=vocabulary.fingerprint,
            grammars=tuple(grammars),
            longest_list=int(tensors["offsets"].diff().max()),
            longest_run=int(tensors["run_length"].max()),
            truncated=truncated,
            depth=depth,
            **tensors,
        )

    @property
    def device(self) -> torch.device:
        return self.wide.device

    @property
    def states(self) -> int:
        """Number of states, the finished one included."""
        return self.wide.shape[0]

    @property
    def words(self) -> int:
        """int32 words of a mask."""
        return (self.size + 31) // 32

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors."""
        return sum(t.numel() * t.element_size() for t in self.tensors().values())

    def __repr__(self) -> str:
        return (
            f"DeviceTables({len(self.start)} grammars, {self.states} states, {self.mask_row.shape[0]} of them wide, "
            f"{self.masks.shape[0]} mask rows, {self.next.shape[1]} classes, {self.nbytes:,} bytes on {self.device}"
            + (f", nesting {self.depth} deep" if self.depth else "")
            + (", truncated)" if self.truncated else ")")
        )

    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensors by their names."""
        values = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {name: value for name, value in values if isinstance(value, torch.Tensor)}

    def to(self, device: torch.device | str) -> DeviceTables:
        """The same tables on another device."""
        moved: dict[str, Any] = {name: tensor.to(device) for name, tensor in self.tensors().items()}
        return replace(self, **moved)

    @cached_property
    def room(self) -> tuple:
        """The sizes of the tensors of `with_room`: tables with equal sizes can use the same tensors."""
        round_up = (lambda n: n) if self.nbytes > ROUNDED_BYTES else (lambda n: 1 << (n - 1).bit_length() if n else 0)
        shapes = {name: list(tensor.shape) for name, tensor in self.tensors().items()}
        for name in shapes.keys() - {"class_of"}:
            shapes[name][0] = round_up(shapes[name][0])
        shapes["next"][1] = round_up(shapes["next"][1])
        longest = round_up(self.longest_list), round_up(self.longest_run)
        return self.size, self.device, longest, tuple((name, tuple(shape)) for name, shape in sorted(shapes.items()))

    def with_room(self) -> DeviceTables:
        """A copy whose tensors have room for other tables of the same :attr:`room`."""
        _, device, (longest_list, longest_run), shapes = self.room
        empty: dict[str, Any] = {name: torch.zeros(s, dtype=torch.int32, device=device) for name, s in shapes}
        copied = replace(self, longest_list=longest_list, longest_run=longest_run, **empty)
        copied.overwrite(self)
        return copied

    def overwrite(self, other: DeviceTables) -> None:
        """Copy `other`, of the same :attr:`room`, into these tables' tensors, which keep their addresses."""
        for name, tensor in other.tensors().items():
            getattr(self, name)[tuple(map(slice, tensor.shape))] = tensor

    def save(self, path: str | Path) -> None:
        """Write the tables to a file, whole or not at all, also with several processes at it.

        Raises
        ------
        OSError
            The file can't be written.
        """
        facts = {
            "vocabulary": self.fingerprint,
            "size": str(self.size),
            "eos_token_ids": json.dumps(self.eos_token_ids),
            "grammars": json.dumps(self.grammars),
            "truncated": json.dumps(self.truncated),
            "depth": str(self.depth),
        }
        storage.save(path, self.tensors(), facts)

    @classmethod
    def load(
        cls,
        path: str | Path,
        vocabulary: Vocabulary,
        *,
        compiled: CompiledGrammar | Sequence[CompiledGrammar] | None = None,
        device: torch.device | str = "cpu",
    ) -> DeviceTables:
        """Read tables that `save` wrote.

        Parameters
        ----------
        path : str or Path
        vocabulary : Vocabulary
            The one the grammars were compiled for.
        compiled : CompiledGrammar or sequence of CompiledGrammar, optional
            The grammars that the tables must have been built from.
        device : torch.device or str

        Raises
        ------
        DataError
            No such file, another kind or version of file, tables of other grammars, or a damaged file.
        VocabularyError
            The tables were built for another vocabulary.
        """
        digests = None if compiled is None else [storage.grammar_digest(item.grammar) for item in _as_list(compiled)]
        tensors, facts = storage.load(path, vocabulary, digests)
        truncated, depth = facts.get("truncated") == "true", int(facts.get("depth", 0))
        return cls._of(vocabulary, json.loads(facts["grammars"]), tensors, truncated, depth).to(device)


def _as_list(compiled: CompiledGrammar | Sequence[CompiledGrammar]) -> list[CompiledGrammar]:
    return [compiled] if isinstance(compiled, CompiledGrammar) else list(compiled)


def _assemble(explored: Exploration) -> tuple[dict[str, np.ndarray], bool, int]:
    """The tables' arrays by their names, whether states were left out, and the greatest nesting."""
    # Narrow states in the order of their numbers, one list after the other; wide ones have rows of their own.
    vocabulary, counts = explored.vocabulary, np.array(explored.counts, np.int64)
    wide = np.where(counts < 0, np.cumsum(counts < 0) - 1, -1)
    listed = np.maximum(counts, 0)
    offsets = np.concatenate(([0], np.cumsum(listed)))
    source, ids, after = (
        np.repeat(np.arange(len(counts)), listed),
        np.concatenate(explored.ids),
        np.concatenate(explored.after),
    )
    # Every edge (state, next state) of either kind, for the distances to the end.
    next, masks, mask_row = explored.classes.table(), explored.masks, np.array(explored.mask_row, np.int32)
    wide_source = np.repeat(np.flatnonzero(wide >= 0), [len(e) for e in explored.wide_edges])
    wide_target = np.concatenate([np.empty(0, np.int64), *explored.wide_edges])
    edges = np.concatenate((source, wide_source)), np.concatenate((after, wide_target))
    fewest = fewest_tokens(*edges, len(wide))
    if (fewest[explored.start] == NEVER).any():
        raise explored.limits.exceeded("no text can be finished within the states that are kept", "max_states")
    if (fewest == NEVER).any():  # dead ends: states left out, or (without some single bytes) what can't be finished
        keep = fewest[after] < NEVER
        source, ids, after = source[keep], ids[keep], after[keep]
        offsets = np.searchsorted(source, np.arange(len(wide) + 1))
        next[(next >= 0) & (fewest[next] == NEVER)] = -1
        masks = [vocabulary.pack(np.flatnonzero(row[explored.classes.of_token] >= 0)) for row in next]
        mask_row = np.arange(len(next), dtype=np.int32)
        alive = fewest[edges[1]] < NEVER
        edges = edges[0][alive], edges[1][alive]
    # A token is ruled out once fewer are left than its next state needs: the largest such number is the horizon.
    horizon = np.zeros(len(wide), np.int32)
    np.maximum.at(horizon, edges[0], fewest[edges[1]] + 1)
    arrays = {
        "start": explored.start,
        "wide": wide,
        "offsets": offsets,
        "ids": ids,
        "after": after,
        "mask_row": mask_row,
        "masks": np.array(masks, np.int32).reshape(-1, vocabulary.words),
        "class_of": explored.classes.of_token,
        "next": next,
        "fewest": fewest,
        "horizon": horizon,
    }
    return arrays, explored.truncated, int(np.array(explored.levels)[fewest < NEVER].max())

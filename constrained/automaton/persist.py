"""Compiled grammars on disk: the grammar's tree, and the masks that are known so far.

Nothing in a file is run, and nothing is believed without a look: every index is checked, the
grammar is held to the same limits as one that is read, and what refers to something refers
to what stands before it, so that nothing goes round. Only a mask's tokens are taken at the
file's word, as a model's weights are.

Masks are kept by position (see `masks.py`). A position is its fields and a stack of frames; a
frame a node, an environment and the frame below. All of these are tables here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import numpy as np

from constrained.automaton import arrays_file
from constrained.automaton import positions as p
from constrained.automaton.grammar_tables import GrammarReader, GrammarWriter, at
from constrained.automaton.vocabulary import Vocabulary
from constrained.errors import DataError, GrammarError, LimitError, VocabularyError
from constrained.grammar import nodes as n
from constrained.limits import DEFAULT, Limits

KIND = "compiled grammar"
VERSION = 2

LITERAL, CHOICES, TEXT = range(3)


def save(compiled, path: str | os.PathLike) -> None:
    """Write a CompiledGrammar and its masks to `path`, whole or not at all.

    Raises
    ------
    OSError
        It can't be written.
    """
    tables = GrammarWriter()
    root = tables.grammar(compiled.grammar)
    writer = _PositionWriter(tables, compiled.automaton)
    positions, masks = [], []
    for position, ids in compiled.masks.known():
        described = writer.position(position)
        if described is not None:
            positions.append(described)
            masks.append(ids)
    facts = {
        "vocabulary": compiled.vocabulary.fingerprint,
        "root": root,
        **tables.facts(),
        "derived": writer.derived,
        "envs": writer.envs,
        "positions": positions,
    }
    arrays = {**tables.arrays(), "frames": np.array(writer.frames, np.int32).reshape(-1, 3)}
    arrays_file.write(path, KIND, VERSION, facts, {**arrays, **_masks_to_arrays(masks, compiled.vocabulary)})


def load(path: str | os.PathLike, vocabulary: Vocabulary, limits: Limits = DEFAULT):
    """The CompiledGrammar that :func:`save` wrote; no mask that was known then is computed again.

    Raises
    ------
    DataError
        No such file, or one that is damaged, of another version, or can't be.
    VocabularyError
        It was compiled for another vocabulary.
    LimitError
        The grammar costs more than `limits` allow.
    """
    from constrained.automaton.matcher import CompiledGrammar  # which has this as its method

    facts, arrays = arrays_file.read(path, KIND, VERSION)
    try:
        if facts["vocabulary"] != vocabulary.fingerprint:
            raise VocabularyError(
                f"{path} was compiled for another vocabulary",
                hint="load it with the tokenizer, EOS ids and size it was compiled with, or compile the grammar again",
            )
        tables = GrammarReader(facts, arrays, limits)
        compiled = CompiledGrammar(at(tables.grammars, facts["root"]), vocabulary)
        reader = _PositionReader(facts, arrays, tables, compiled.automaton)
        masks = _masks_from_arrays(arrays, len(facts["positions"]), vocabulary)
        for described, ids in zip(facts["positions"], masks):
            compiled.masks.restore(reader.position(described), ids)
    except (LimitError, VocabularyError, DataError):
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, GrammarError) as error:
        raise DataError(f"{path} is no compiled grammar: {error}") from None
    return compiled


def _masks_to_arrays(masks: list[np.ndarray], vocabulary: Vocabulary) -> dict[str, np.ndarray]:
    """Masks as ids where they are few, as packed rows (each different one once) where they are many.

    ``which``: per mask, the number of ids, or -1 - the row's index.
    """
    few, which = [np.empty(0, np.int32)], []
    rows: dict[bytes, int] = {}
    for ids in masks:
        if len(ids) <= vocabulary.words:
            few.append(np.asarray(ids, np.int32))
            which.append(len(ids))
        else:
            which.append(-1 - rows.setdefault(vocabulary.pack(ids).tobytes(), len(rows)))
    return {
        "which": np.array(which, np.int32),
        "ids": np.concatenate(few),
        "rows": np.frombuffer(b"".join(rows), np.int32).reshape(len(rows), vocabulary.words),
    }


def _masks_from_arrays(arrays, count: int, vocabulary: Vocabulary) -> Iterable[np.ndarray]:
    which, every, rows = arrays["which"], arrays["ids"], arrays["rows"]
    few = which[which >= 0].astype(np.int64)
    if which.shape != (count,) or every.shape != (int(few.sum()),) or rows.shape[1:] != (vocabulary.words,):
        raise ValueError("its masks don't go together")
    if which.dtype != np.int32 or every.dtype != np.int32 or rows.dtype != np.int32:
        raise ValueError("its masks are of another type")
    start = 0
    for number in which.tolist():
        if number < 0:
            bits = np.unpackbits(at(rows, -1 - number).view(np.uint8), bitorder="little")
            ids = np.flatnonzero(bits).astype(np.int32)
        else:
            ids = every[start : start + number]
            start += number
        if len(ids) and (ids[0] < 0 or ids[-1] >= vocabulary.size or (np.diff(ids) <= 0).any()):
            raise ValueError("a mask's ids are out of order")
        if (vocabulary.ranks[ids] < 0).any():
            raise ValueError("a mask allows ids that stand for no text")
        yield ids


class _PositionWriter:
    """Positions, frames and environments as tables."""

    def __init__(self, tables: GrammarWriter, automaton):
        self.tables = tables
        self.derived: list = []  # nodes that the automaton made: counted repeats, rests of sequences
        self.envs: list = []
        self.frames: list[tuple[int, int, int]] = []
        self._made = automaton.made_nodes()
        self._derived: dict[int, int] = {}
        self._envs: dict[int, int] = {}
        self._frames: dict[int, int] = {}

    def position(self, q: p.Position) -> list | None:
        """`q` described; None for one that can't be told apart from outside (it is computed again)."""
        try:
            rest = self.frame(q.rest)
            if isinstance(q, p.InLiteral):
                return [LITERAL, rest, self.tables.text(q.data), q.at]
            if isinstance(q, p.InChoices):
                return [CHOICES, rest, self.tables.values(q.values), q.low, q.high, q.depth, q.bind]
            if isinstance(q, p.InText):
                return [TEXT, rest, self.tables.charset(q.chars), q.inside, q.low, q.high]
        except KeyError:
            pass
        return None

    def frame(self, frame: p.Frame | None) -> int:
        chain = []
        while frame is not None and frame.number not in self._frames:
            if frame.node is None:
                raise KeyError("a fork")
            chain.append(frame)
            frame = frame.next
        found = -1 if frame is None else self._frames[frame.number]
        for part in reversed(chain):
            self.frames.append((self.node(part.node), self.env(part.env), found))
            found = self._frames[part.number] = len(self.frames) - 1
        return found

    def node(self, node: n.Node) -> int:
        """0 or more: a node of the grammar; below: one that was made, -1 - its index."""
        if node in self.tables.nodes:
            return self.tables.nodes[node]
        if id(node) not in self._derived:
            origin = self._made[id(node)]
            if isinstance(origin, n.Seq):
                made = ["rest", self.node(origin)]
            else:
                made = ["repeat", self.node(node.item), node.low, node.high]
            self.derived.append(made)
            self._derived[id(node)] = -len(self.derived)
        return self._derived[id(node)]

    def env(self, env: p.Env) -> int:
        if id(env) not in self._envs:
            values = []
            for name, value in env.values.items():
                if isinstance(value, p.Thunk):
                    values.append([name, "grammar", self.node(value.node), self.env(value.env)])
                elif isinstance(value, p.Unbound):
                    values.append([name, "values", self.tables.values(value.values)])
                else:
                    values.append([name, "text", self.tables.text(value)])
            self.envs.append([self.tables.numbers[id(env.grammar)], env.level, values])
            self._envs[id(env)] = len(self.envs) - 1
        return self._envs[id(env)]


class _PositionReader:
    """The same tables, turned into positions of a new automaton."""

    def __init__(self, facts: dict, arrays: dict, tables: GrammarReader, automaton):
        self.tables, self.automaton = tables, automaton
        for values in tables.values:
            automaton.list_of(values)
        self.derived: list[n.Node] = []
        for kind, *fields in facts["derived"]:
            if kind == "rest":
                origin = self.node(fields[0])
                if not isinstance(origin, n.Seq) or not origin.items:
                    raise ValueError("the rest of what is no sequence")
                self.derived.append(automaton.rest_of(origin))
            else:
                item, low, high = fields
                self.tables.check_counts(low, high)
                self.derived.append(automaton.repeat(self.node(item), low, high))
        self.envs: list[p.Env] = []
        for number, level, values in facts["envs"]:
            if level not in (0, 1):
                raise ValueError("no such level")
            self.envs.append(automaton.env(at(self.tables.grammars, number), dict(map(self.value, values)), level))
        self.frames: list[p.Frame] = []
        table = arrays["frames"]
        automaton.limits.check("positions", len(table), "too many frames in the file")
        for node, env, below in table.tolist():
            below = None if below == -1 else at(self.frames, below)
            self.frames.append(automaton.frame(self.node(node), at(self.envs, env), below))

    def node(self, number: int) -> n.Node:
        return at(self.tables.nodes, number) if number >= 0 else at(self.derived, -1 - number)

    def value(self, given: list):
        name, kind, *fields = given
        if kind == "grammar":
            return str(name), p.Thunk(self.node(fields[0]), at(self.envs, fields[1]))
        if kind == "values":
            return str(name), p.Unbound(at(self.tables.values, fields[0]))
        return str(name), at(self.tables.texts, fields[0])

    def position(self, described: list) -> p.Position:
        kind, rest, what, *fields = described
        frame = None if rest == -1 else at(self.frames, rest)
        if kind == LITERAL:
            data = at(self.tables.texts, what)
            at(data, fields[0])
            return self.automaton.in_literal(data, fields[0], frame)
        if kind == CHOICES:
            values, (low, high, depth, bind) = at(self.tables.values, what), fields
            at(values, low), at(values, high - 1), at(values[low], depth)
            if low >= high or values[low][:depth] != values[high - 1][:depth]:
                raise ValueError("choices that don't agree")
            return self.automaton.in_choices(values, low, high, depth, None if bind is None else str(bind), frame)
        if kind != TEXT:
            raise ValueError("no such kind of position")
        inside, low, high = fields
        chars = at(self.tables.charsets, what)
        inside = None if inside is None else _inside(chars, tuple(inside))
        self.tables.check_counts(low, high)
        return self.automaton.in_text(chars, inside, low, high, frame)


def _inside(chars, state: tuple) -> tuple:
    """`state` if it is one within a character of `chars`."""
    work, seen = [s for s in chars.edges(None).values() if s[0]], set()
    while work:
        one = work.pop()
        if one == state:
            return one
        if one not in seen:
            seen.add(one)
            work += [s for s in chars.edges(one).values() if s[0]]
    raise ValueError("no such place inside a character")

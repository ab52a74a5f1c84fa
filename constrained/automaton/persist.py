"""Compiled grammars on disk: the grammar's tree, and the masks that are known so far.

The tree is saved rather than the text it was read from: a grammar need not have one (what may
follow an action has none), a `.lark` file imports others, and masks refer to nodes. Masks are kept
by position (see `masks.py`). A position is its fields and a stack of frames; a frame is a node, an
environment and the frame below. All of these are tables here, whose entries refer to others by index.

Nothing in a file is run, and nothing is trusted: every index is checked, the grammar is held to the
same limits as one that is read, and each entry refers only to entries before it, so that there are
no cycles. Only a mask's tokens are taken at the file's word, as a model's weights are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import numpy as np

from constrained.automaton import arrays_file
from constrained.automaton.automaton import Automaton, Grammar
from constrained.automaton.masks import Masks
from constrained.automaton.positions import (
    Env,
    Fork,
    Frame,
    InChoices,
    InExcept,
    InJsonText,
    InLiteral,
    InLoop,
    InText,
    Position,
    Stack,
    Thunk,
    Unbound,
)
from constrained.automaton.vocabulary import Vocabulary
from constrained.errors import DataError, GrammarError, LimitError, VocabularyError
from constrained.grammar import nodes as n
from constrained.grammar.charset import MAX_CODE_POINT, CharSet, charset
from constrained.grammar.grammar import ContextFreeGrammar
from constrained.grammar.json_text import JsonText, Table
from constrained.grammar.members import Members, Names
from constrained.grammar.nodes import related
from constrained.grammar.traverse import uses_relations
from constrained.limits import Limits

KIND = "compiled grammar"
VERSION = 4

MAX_DEPTH = 500
"""Nodes within each other; no grammar that is read nests as deeply."""


class Compiled(Protocol):
    """A grammar compiled over a vocabulary."""

    masks: Masks


AnyCompiled = TypeVar("AnyCompiled", bound=Compiled)


def save(path: str | os.PathLike, grammar: ContextFreeGrammar, masks: Masks) -> None:
    """Write `grammar`, and those of its `masks` that are known, to `path`, whole or not at all.

    Raises
    ------
    OSError
        It can't be written.
    """
    tables = GrammarWriter()
    root = tables.grammar(grammar)
    writer = _PositionWriter(tables, masks.automaton)
    positions, rows = [], []
    for position, ids in masks.known():
        described = writer.position(position)
        if described is not None:
            positions.append(described)
            rows.append(ids)
    facts = {
        "vocabulary": masks.vocabulary.fingerprint,
        "root": root,
        **tables.facts(),
        "derived": writer.derived,
        "envs": writer.envs,
        "positions": positions,
    }
    frames = np.array(writer.frames, np.int32).reshape(-1, 3)
    arrays_file.write(path, KIND, VERSION, facts, {"frames": frames, **_mask_arrays(rows, masks.vocabulary)})


def load(
    path: str | os.PathLike,
    vocabulary: Vocabulary,
    limits: Limits,
    compile: Callable[[ContextFreeGrammar, Vocabulary], AnyCompiled],
) -> AnyCompiled:
    """What :func:`save` wrote, its grammar compiled by `compile`; no mask that was known then is computed again.

    Raises
    ------
    DataError
        No such file, or one that is damaged, of another version, or can't be.
    VocabularyError
        It was compiled for another vocabulary.
    LimitError
        The grammar costs more than `limits` allow.
    """
    facts, arrays = arrays_file.read(path, KIND, VERSION)
    try:
        if facts["vocabulary"] != vocabulary.fingerprint:
            raise VocabularyError(
                f"{path} was compiled for another vocabulary",
                hint="load it with the tokenizer, EOS ids and size it was compiled with, or compile the grammar again",
            )
        tables = _GrammarReader(facts, limits)
        compiled = compile(_at(tables.grammars, facts["root"]), vocabulary)
        reader = _PositionReader(facts, arrays, tables, compiled.masks.automaton)
        masks = _read_masks(arrays, len(facts["positions"]), vocabulary)
        for described, ids in zip(facts["positions"], masks):
            compiled.masks.restore(reader.position(described), ids)
    except (LimitError, VocabularyError, DataError):
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, GrammarError) as error:
        raise DataError(f"{path} is no compiled grammar: {error}") from None
    return compiled


def _ascii(values: tuple[bytes, ...]) -> tuple[bytes, ...]:
    if not all(map(bytes.isascii, values)):
        raise ValueError("texts beyond ASCII")
    return values


def _at(table: Sequence[Any] | np.ndarray, index: Any) -> Any:
    """``table[index]``, an index from a file: ValueError if there is no such entry."""
    if type(index) is not int or not 0 <= index < len(table):
        raise ValueError(f"no entry {index!r} among {len(table)}")
    return table[index]


def _text(data: bytes) -> str:
    """Bytes as JSON holds them: each a character below 256."""
    return data.decode("latin-1")


def _bytes(text: Any) -> bytes:
    if not isinstance(text, str):
        raise ValueError(f"{text!r} is no text")
    return text.encode("latin-1")


# masks


def _mask_arrays(masks: list[np.ndarray], vocabulary: Vocabulary) -> dict[str, np.ndarray]:
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


def _read_masks(arrays: dict[str, np.ndarray], count: int, vocabulary: Vocabulary) -> Iterator[np.ndarray]:
    which, every, rows = arrays["which"], arrays["ids"], arrays["rows"]
    few = which[which >= 0].astype(np.int64)
    if which.shape != (count,) or every.shape != (int(few.sum()),) or rows.shape[1:] != (vocabulary.words,):
        raise ValueError("its masks don't go together")
    if which.dtype != np.int32 or every.dtype != np.int32 or rows.dtype != np.int32:
        raise ValueError("its masks are of another type")
    start = 0
    for number in which.tolist():
        if number < 0:
            bits = np.unpackbits(_at(rows, -1 - number).view(np.uint8), bitorder="little")
            ids = np.flatnonzero(bits).astype(np.int32)
        else:
            ids = every[start : start + number]
            start += number
        if len(ids) and (ids[0] < 0 or ids[-1] >= vocabulary.size or (np.diff(ids) <= 0).any()):
            raise ValueError("a mask's ids are out of order")
        if (vocabulary.ranks[ids] < 0).any():
            raise ValueError("a mask allows ids that stand for no text")
        yield ids


# grammars


class GrammarWriter:
    """Tables of the grammars given to it: their nodes, sets of characters and lists of texts."""

    def __init__(self) -> None:
        self.nodes: dict[n.Node, int] = {}  # by identity
        self.numbers: dict[int, int] = {}  # of grammars, by identity
        self._grammars: list[dict] = []
        self._nodes: list[list] = []
        self._charsets: dict[CharSet, int] = {}
        self._values: dict[tuple[bytes, ...], int] = {}
        self.tables: dict[Table, int] = {}  # by identity

    def grammar(self, grammar: ContextFreeGrammar) -> int:
        """Its index."""
        if id(grammar) not in self.numbers:
            ordered = grammar.of_rules(uses_relations)
            bindings = [
                [name, *self._bound(value, grammar.orders[name] if ordered else None)]
                for name, value in grammar.bindings.items()
            ]
            self._grammars.append(
                {
                    "rules": [[r.name, self.node(r.body), list(r.params), r.line] for r in grammar.rules.values()],
                    "start": self.node(grammar.start),
                    "slots": sorted(grammar.slots),
                    "bindings": bindings,
                }
            )
            self.numbers[id(grammar)] = len(self._grammars) - 1
        return self.numbers[id(grammar)]

    def _bound(self, value, order) -> list:
        """What a slot is bound to; `order`: its texts in the order given, None where that plays no part."""
        if isinstance(value, ContextFreeGrammar):
            return ["grammar", self.grammar(value)]
        if isinstance(value, dict):
            return ["by key", [[_text(k), *self._bound(v, order and order[k])] for k, v in value.items()]]
        if order is None or order == value:
            return ["values", self.values(value)]
        return ["values", self.values(value), list(map(_text, order))]

    def node(self, root: n.Node) -> int:
        """Its index; what is below it comes first."""
        work = [root]
        while work:
            node = work[-1]
            waiting = [child for child in n.scoped_children(node) if child not in self.nodes]
            if node in self.nodes or not waiting:
                work.pop()
                if node not in self.nodes:
                    self._nodes.append(self._describe(node))
                    self.nodes[node] = len(self._nodes) - 1
            else:
                work.extend(waiting)
        return self.nodes[root]

    def values(self, values: tuple[bytes, ...]) -> int:
        return self._values.setdefault(values, len(self._values))

    def charset(self, chars: CharSet) -> int:
        return self._charsets.setdefault(chars, len(self._charsets))

    def facts(self) -> dict:
        """The tables, as JSON values."""
        return {
            "grammars": self._grammars,
            "nodes": self._nodes,
            "charsets": [chars.ranges for chars in self._charsets],
            "tables": [[table.starts, table.classes, table.after, table.ends] for table in self.tables],
            "values": [list(map(_text, values)) for values in self._values],
        }

    def _describe(self, node: n.Node) -> list:
        match node:
            case n.EMPTY | n.NEVER:  # one object each
                return ["empty" if node is n.EMPTY else "never"]
            case n.Literal(data):
                return ["literal", _text(data)]
            case n.Chars(chars):
                return ["chars", self.charset(chars)]
            case n.Choices(values):
                return ["choices", self.values(values)]
            case JsonText(written, _, high):
                index = node.table and self.tables.setdefault(node.table, len(self.tables))
                return ["json text", self.node(written), index, high]
            case n.Except(chars, values):
                return ["except", self.charset(chars), self.values(values)]
            case n.Seq(items):
                return ["seq", [self.nodes[item] for item in items]]
            case n.Alt(items):
                return ["alt", [self.nodes[item] for item in items]]
            case n.Repeat(item, low, high):
                return ["repeat", self.nodes[item], low, high]
            case n.Call(rule, args):
                return ["call", rule, [self.nodes[arg] for arg in args]]
            case n.Var(name):
                return ["var", name]
            case n.Slot(name):
                return ["slot", name]
            case n.Related(relation):
                return ["related", relation, [self.nodes[part] for part in n.children(node)]]
            case Members(of):
                names = [[_text(text), i] for text, i in of.names.items()]
                variants = [[[self.nodes[part], bits] for part, bits in given] for given in of.values]
                parts = [-1 if part is n.NEVER else self.nodes[part] for part in (of.others, of.last, of.between)]
                return ["members", names, variants, of.required, *parts, of.shown, of.low, of.high, of.condition]
            case n.Scoped(inner, values):
                return ["scoped", self.nodes[inner], [[name, *self._given(v)] for name, v in values.items()]]
        raise TypeError(f"no kind of node: {node!r}")

    def _given(self, value: bytes | tuple[bytes, ...] | n.Node) -> list:
        """What a scope gives a parameter."""
        if isinstance(value, n.Node):
            return ["node", self.nodes[value]]
        return ["text", _text(value)] if isinstance(value, bytes) else ["values", self.values(value)]


class _GrammarReader:
    """The tables read back, each entry checked; ValueError and the like where one can't be."""

    def __init__(self, facts: dict, limits: Limits):
        self.limits = limits
        self.values = [self._read_values(values) for values in facts["values"]]
        self.charsets = [self._charset(ranges) for ranges in facts["charsets"]]
        self.tables = [_table(*described) for described in facts["tables"]]
        limits.check("nodes", len(facts["nodes"]), "too many nodes in the file")
        self.nodes: list[n.Node] = []
        depths: dict[n.Node, int] = {}
        for described in facts["nodes"]:
            node = self._node(described)
            depths[node] = 1 + max((depths[child] for child in n.scoped_children(node)), default=0)
            if depths[node] > MAX_DEPTH:
                raise ValueError("nodes are nested too deeply")
            self.nodes.append(node)
        self.grammars: list[ContextFreeGrammar] = []
        for given in facts["grammars"]:
            self.grammars.append(self._grammar(given))

    def check_counts(self, low: Any, high: Any) -> None:
        """ValueError unless they can be the bounds of a repeat."""
        if type(low) is not int or low < 0 or not (high is None or (type(high) is int and high >= max(low, 1))):
            raise ValueError(f"a repeat of {low!r} to {high!r}")
        self.limits.check("repeat", max(low, high or 0), "a repeat in the file")

    def _read_values(self, texts: list) -> tuple[bytes, ...]:
        self.limits.check("values", len(texts), "too many texts in a list of the file")
        values = tuple(map(_bytes, texts))
        if not values or any(a >= b for a, b in pairwise(values)):
            raise ValueError("no texts, or texts out of order")
        return values

    @staticmethod
    def _charset(ranges) -> CharSet:
        for low, high in ranges:
            if type(low) is not int or type(high) is not int or not 0 <= low <= high <= MAX_CODE_POINT:
                raise ValueError("no range of characters")
        found = charset((low, high) for low, high in ranges)
        if not found:
            raise ValueError("an empty set of characters")
        return found

    def _node(self, described: list) -> n.Node:
        match described:
            case ["empty"]:
                return n.EMPTY
            case ["never"]:
                return n.NEVER
            case ["literal", str(text)] if text:
                return n.Literal(_bytes(text))
            case ["chars", chars]:
                return n.Chars(_at(self.charsets, chars))
            case ["choices", values]:
                return n.Choices(_at(self.values, values))
            case ["except", chars, values]:
                return n.Except(_at(self.charsets, chars), _ascii(_at(self.values, values)))
            case ["json text", written, index, high]:
                self.check_counts(0, high)
                table = None if index is None else _at(self.tables, index)
                return JsonText(_at(self.nodes, written), lambda: table, high)
            case ["seq", list(items)]:
                return n.Seq(self._below(items))
            case ["alt", list(items)]:
                return n.Alt(self._below(items))
            case ["repeat", item, low, high]:
                self.check_counts(low, high)
                return n.Repeat(_at(self.nodes, item), low, high)
            case ["call", str(rule), list(args)]:
                return n.Call(rule, self._below(args))
            case ["var", str(name)]:
                return n.Var(name)
            case ["slot", str(name)]:
                return n.Slot(name)
            case ["related", str(relation), list(parts)]:
                return related(relation, self._below(parts))
            case ["members", list(names), list(values), *others]:
                return self._members(names, values, *others)
            case ["scoped", inner, list(values)]:
                return n.Scoped(_at(self.nodes, inner), dict(map(self._given, values)))
        raise ValueError(f"no node: {described!r}")

    def _members(self, names: list, values: list, required, others, last, between, shown, low, high, rows) -> n.Node:
        self.check_counts(low, high)
        found = tuple(tuple((_at(self.nodes, i), bits) for i, bits in variants) for variants in values)
        indices = {_bytes(text): i for text, i in names}
        numbers = [required, shown, low, *indices.values(), *(bits for variants in found for _, bits in variants)]
        numbers += [number for row in rows for number in row]
        every = all(type(number) is int and number >= 0 for number in numbers) and low > 0 and all(found)
        every = every and all(i < len(found) and max(to) < at for at, (i, *to) in enumerate(rows, 2))
        if not every or set(indices.values()) != set(range(len(found))) or required >> len(found) or b"" in indices:
            raise ValueError("no members")
        free, ending = (n.NEVER if i == -1 else _at(self.nodes, i) for i in (others, last))
        condition = tuple(map(tuple, rows))
        made = Names(
            indices, found, required, free, ending, shown, _at(self.nodes, between), low, high, condition
        ).start()
        if made is n.NEVER:
            raise ValueError("members that never end")
        return made

    def _below(self, indices: list) -> tuple[n.Node, ...]:
        return tuple(_at(self.nodes, index) for index in indices)

    def _given(self, described: list) -> tuple[str, Any]:
        match described:
            case [str(name), "text", text]:
                return name, _bytes(text)
            case [str(name), "values", values]:
                return name, _at(self.values, values)
            case [str(name), "node", index] if isinstance(_at(self.nodes, index), n.Scoped):
                return name, self.nodes[index]
        raise ValueError(f"a scope's value can't be {described!r}")

    def _grammar(self, given: dict) -> ContextFreeGrammar:
        rules = {}
        for name, body, params, line in given["rules"]:
            if not all(isinstance(x, str) for x in (name, *params)) or not (line is None or type(line) is int):
                raise ValueError("no rule")
            rules[name] = n.Rule(name, _at(self.nodes, body), tuple(params), line)
        slots = frozenset(map(str, given["slots"]))
        bindings: dict[str, Any] = {}
        orders: dict[str, Any] = {}
        for name, kind, *value in given["bindings"]:
            if name not in slots:
                raise ValueError(f"no slot {name!r}")
            if kind == "by key":
                pairs = [(_bytes(key), self._bound(*one)) for key, *one in value[0]]
                bindings[name] = {key: one for key, (one, _) in pairs}
                orders[name] = {key: order for key, (_, order) in pairs}
            else:
                bindings[name], orders[name] = self._bound(kind, *value)
        start = _at(self.nodes, given["start"])
        for rule in rules.values():
            _check_names(rule.body, set(rule.params), rules, slots)
        _check_names(start, set(), rules, slots)
        return Grammar(rules, start, slots, bindings, self.limits, orders)

    def _bound(self, kind: str, index: int, order: Sequence[str] = ()) -> tuple:
        """What a slot is bound to, at a key or at all, and its texts in order."""
        if kind == "grammar":
            return _at(self.grammars, index), ()
        values = _at(self.values, index)
        given = tuple(map(_bytes, order))
        if kind != "values" or (order and tuple(sorted(given)) != values):
            raise ValueError("values that are no order of themselves")
        return values, given or values


def _check_names(root: n.Node, params: set[str], rules: dict[str, n.Rule], slots: frozenset[str]) -> None:
    """ValueError if something at or below `root` refers to what isn't there."""
    work = [(root, params)]
    while work:
        top, known = work.pop()
        for node in n.walk(top):
            match node:
                case n.Call(rule, args) if rule not in rules or len(args) != len(rules[rule].params):
                    raise ValueError(f"no rule {rule!r} with {len(args)} arguments")
                case n.Var(name) if name not in known:
                    raise ValueError(f"no parameter {name!r}")
                case n.Slot(name) if name not in slots:
                    raise ValueError(f"no slot {name!r}")
                case n.Scoped(inner, values):
                    work.append((inner, set(values)))
                    work += [(value, set()) for value in values.values() if isinstance(value, n.Node)]


# positions


class _PositionWriter:
    """Positions, frames and environments as tables."""

    def __init__(self, tables: GrammarWriter, automaton: Automaton):
        self.tables = tables
        self.derived: list[list] = []  # nodes that the automaton made: counted repeats, tails of sequences
        self.envs: list[list] = []
        self.frames: list[tuple[int, int, int]] = []
        self._origins: dict[int, Any] = dict(automaton.frames.derived_nodes())
        for node, index in tables.nodes.items():
            if isinstance(node, Members):
                self._origins |= {id(made): [*what, index] for made, what in node.of.made()}
        self._derived: dict[int, int] = {}
        self._envs: dict[int, int] = {}
        self._frames: dict[int, int] = {}

    def position(self, q: Position) -> list | None:
        """`q` described; None for one that refers to what isn't saved (it is computed again)."""
        try:
            rest = self._frame(q.rest)
            match q:
                case InLiteral():
                    return ["literal", rest, _text(q.data), q.at]
                case InChoices():
                    return ["choices", rest, self.tables.values(q.values), q.low, q.high, q.depth, q.bind]
                case InExcept():
                    return [
                        "except",
                        rest,
                        self.tables.charset(q.chars),
                        self.tables.values(q.values),
                        q.low,
                        q.high,
                        q.depth,
                    ]
                case InJsonText():
                    return ["json text", rest, self.tables.tables[q.table], q.state, q.left, q.inside]
                case InText():
                    loop = [self._node(q.loop.item), self._env(q.loop.env)] if isinstance(q, InLoop) else []
                    return ["text", rest, self.tables.charset(q.chars), q.inside, q.low, q.high, *loop]
        except KeyError:
            pass
        return None

    def _frame(self, frame: Stack) -> int:
        chain = []
        below = frame
        while below is not None and below.number not in self._frames:
            if isinstance(below, Fork):
                raise KeyError("a fork")
            chain.append(below)
            below = below.next
        found = -1 if below is None else self._frames[below.number]
        for part in reversed(chain):
            self.frames.append((self._node(part.node), self._env(part.env), found))
            found = self._frames[part.number] = len(self.frames) - 1
        return found

    def _node(self, node: n.Node) -> int:
        """0 or more: a node of the grammar; below: a derived one, -1 - its index."""
        if node in self.tables.nodes:
            return self.tables.nodes[node]
        if id(node) not in self._derived:
            origin = self._origins[id(node)]
            if isinstance(origin, list):
                made = origin
            elif isinstance(origin, n.Repeat):
                made = ["repeat", self._node(origin.item), origin.low, origin.high]
            else:
                made = ["tail", self._node(origin)]
            self.derived.append(made)
            self._derived[id(node)] = -len(self.derived)
        return self._derived[id(node)]

    def _env(self, env: Env) -> int:
        if id(env) not in self._envs:
            values = []
            for name, value in env.values.items():
                if isinstance(value, Thunk):
                    values.append([name, "grammar", self._node(value.node), self._env(value.env)])
                elif isinstance(value, Unbound):
                    values.append([name, "values", self.tables.values(value.values)])
                else:
                    values.append([name, "text", _text(value)])
            self.envs.append([self.tables.numbers[id(env.grammar)], env.level, values])
            self._envs[id(env)] = len(self.envs) - 1
        return self._envs[id(env)]


class _PositionReader:
    """The same tables, turned into positions of a new automaton."""

    def __init__(self, facts: dict, arrays: dict[str, np.ndarray], tables: _GrammarReader, automaton: Automaton):
        self.tables, self.positions, self.looped = tables, automaton.positions, automaton.closure.looped
        frames = automaton.frames
        for values in tables.values:
            frames.text_list(values)
        self.derived: list[n.Node] = []
        for described in facts["derived"]:
            match described:
                case ["tail", index] if isinstance(origin := self._node(index), n.Seq) and origin.items:
                    self.derived.append(frames.tail(origin))
                case ["members" | "rest" as what, *state, base] if isinstance(of := self._node(base), Members):
                    self.derived.append(of.of.again(what, *state))
                case ["repeat", item, low, high]:
                    self.tables.check_counts(low, high)
                    self.derived.append(frames.repeat(self._node(item), low, high))
                case _:
                    raise ValueError(f"no derived node: {described!r}")
        self.envs: list[Env] = []
        for number, level, values in facts["envs"]:
            if level not in (0, 1):
                raise ValueError("no such level")
            self.envs.append(frames.env(_at(tables.grammars, number), dict(map(self._value, values)), level))
        self.frames: list[Frame] = []
        automaton.limits.check("positions", len(arrays["frames"]), "too many frames in the file")
        for node, env, below in arrays["frames"].tolist():
            self.frames.append(frames.frame(self._node(node), _at(self.envs, env), self._frame(below)))

    def _frame(self, index: Any) -> Stack:
        return None if index == -1 else _at(self.frames, index)

    def _node(self, index: Any) -> n.Node:
        return _at(self.tables.nodes, index) if index >= 0 else _at(self.derived, -1 - index)

    def _value(self, described: list) -> tuple[str, bytes | Thunk | Unbound]:
        match described:
            case [str(name), "grammar", node, env]:
                return name, Thunk(self._node(node), _at(self.envs, env))
            case [str(name), "values", values]:
                return name, Unbound(_at(self.tables.values, values))
            case [str(name), "text", text]:
                return name, _bytes(text)
        raise ValueError(f"no parameter's value: {described!r}")

    def position(self, described: list) -> Position:
        match described:
            case ["literal", rest, text, at]:
                data = _bytes(text)
                _at(data, at)
                return self.positions.literal(data, at, self._frame(rest))
            case ["choices", rest, index, low, high, depth, None | str() as bind]:
                values = _at(self.tables.values, index)
                _at(values, low), _at(values, high - 1), _at(values[low], depth)
                if low >= high or values[low][:depth] != values[high - 1][:depth]:
                    raise ValueError("choices that don't agree")
                return self.positions.choices(values, low, high, depth, bind, self._frame(rest))
            case ["except", rest, index, texts, low, high, depth]:
                values = _ascii(_at(self.tables.values, texts))
                _at(values, low), _at(values, high - 1)
                if low >= high or not len(values[low]) >= depth >= 0 or values[low][:depth] != values[high - 1][:depth]:
                    raise ValueError("texts that don't agree")
                chars = _at(self.tables.charsets, index)
                return self.positions.unlike(chars, values, low, high, depth, self._frame(rest))
            case ["json text", rest, index, state, left, inside]:
                table = _at(self.tables.tables, index)
                if {type(state), type(inside), type(left or 0)} != {int} or not table.has_place(state, left, inside):
                    raise ValueError("no such place in a text")
                return self.positions.json_text(table, state, left, inside, self._frame(rest))
            case ["text", rest, index, inside, low, high, *loop]:
                chars = _at(self.tables.charsets, index)
                inside = None if inside is None else _inside(chars, tuple(inside))
                self.tables.check_counts(low, high)
                if not loop:
                    return self.positions.text(chars, inside, low, high, self._frame(rest))
                item, env = loop
                found = self.looped(self._node(item), _at(self.envs, env))
                if found is None or found[0].chars is not chars:
                    raise ValueError("no loop")
                return self.positions.loop(chars, inside, low, high, self._frame(rest), found[1])
        raise ValueError(f"no position: {described!r}")


def _table(starts: list, classes: list, after: list, ends: list) -> Table:
    numbers = [*starts, *classes, *(to for row in after for to in row)]
    if not starts or not after or {type(number) for number in numbers} != {int} or {*map(type, ends)} != {bool}:
        raise ValueError("no table of an automaton")
    table = Table(tuple(starts), tuple(classes), tuple(map(tuple, after)), tuple(ends))
    table.check()
    return table


def _inside(chars: CharSet, state: tuple) -> tuple:
    """`state` if it is one within a character of `chars`."""
    work, seen = [after for after in chars.edges(None).values() if after[0]], set()
    while work:
        one = work.pop()
        if one == state:
            return one
        if one not in seen:
            seen.add(one)
            work += [after for after in chars.edges(one).values() if after[0]]
    raise ValueError("no such state inside a character")

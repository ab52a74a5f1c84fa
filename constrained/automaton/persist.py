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
from collections.abc import Iterable, Sequence

import numpy as np

from constrained.automaton import arrays_file
from constrained.automaton import positions as p
from constrained.automaton.vocabulary import Vocabulary
from constrained.errors import DataError, GrammarError, LimitError, VocabularyError
from constrained.grammar import nodes as n
from constrained.grammar.charset import MAX_CODE_POINT, CharSet, charset
from constrained.grammar.grammar import Grammar
from constrained.grammar.relations import related, uses_relations
from constrained.limits import DEFAULT, Limits

KIND = "compiled grammar"
VERSION = 2

LITERAL, CHOICES, TEXT = range(3)

MAX_DEPTH = 500
"""Nodes within each other; no grammar that is read nests as deeply."""


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


def at(table: Sequence, index: int):
    """``table[index]``, an index from a file: ValueError if there is no such place."""
    if type(index) is not int or not 0 <= index < len(table):
        raise ValueError(f"no place {index!r} among {len(table)}")
    return table[index]


def below(node: n.Node) -> tuple[n.Node, ...]:
    """The nodes that `node` refers to."""
    if isinstance(node, n.Scoped):
        return (node.node, *(v for v in node.values.values() if isinstance(v, n.Node)))
    return n.children(node)


class GrammarWriter:
    """Tables of the grammars, nodes, sets of characters, texts and lists of texts given to it."""

    def __init__(self):
        self.nodes: dict[n.Node, int] = {}  # by identity
        self.numbers: dict[int, int] = {}  # of grammars, by identity
        self._grammars: list[dict] = []
        self._nodes: list[list] = []
        self._charsets: dict[CharSet, int] = {}
        self._texts: dict[bytes, int] = {}
        self._values: dict[tuple, int] = {}

    def grammar(self, grammar: Grammar) -> int:
        """Its number."""
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
        if isinstance(value, Grammar):
            return ["grammar", self.grammar(value)]
        if isinstance(value, dict):
            return ["by key", [[self.text(k), *self._bound(v, order and order[k])] for k, v in value.items()]]
        if order is None or order == value:
            return ["values", self.values(value)]
        return ["in order", self.values(value), list(map(self.text, order))]

    def node(self, root: n.Node) -> int:
        """Its number; what is below it comes first."""
        work = [root]
        while work:
            node = work[-1]
            waiting = [c for c in below(node) if c not in self.nodes]
            if node in self.nodes or not waiting:
                work.pop()
                if node not in self.nodes:
                    self._nodes.append(self._describe(node))
                    self.nodes[node] = len(self._nodes) - 1
            else:
                work.extend(waiting)
        return self.nodes[root]

    def text(self, data: bytes) -> int:
        return self._texts.setdefault(data, len(self._texts))

    def values(self, values: tuple[bytes, ...]) -> int:
        return self._values.setdefault(values, len(self._values))

    def charset(self, chars: CharSet) -> int:
        return self._charsets.setdefault(chars, len(self._charsets))

    def facts(self) -> dict:
        return {
            "grammars": self._grammars,
            "nodes": self._nodes,
            "charsets": [chars.ranges for chars in self._charsets],
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """Lists of texts as ``[first, count]`` of ``members``, which are texts' numbers."""
        members = [self.text(text) for values in self._values for text in values]
        counts = np.array([len(values) for values in self._values], np.int64)
        return {
            "members": np.array(members, np.int64),
            "counts": counts,
            "text_lengths": np.array([len(t) for t in self._texts], np.int64),
            "text_bytes": np.frombuffer(b"".join(self._texts), np.uint8),
        }

    def _describe(self, node: n.Node) -> list:
        if node is n.EMPTY or node is n.NEVER:  # one object each
            return ["empty" if node is n.EMPTY else "never"]
        if isinstance(node, n.Literal):
            return ["literal", self.text(node.data)]
        if isinstance(node, n.Chars):
            return ["chars", self.charset(node.chars)]
        if isinstance(node, n.Choices):
            return ["choices", self.values(node.values)]
        if isinstance(node, (n.Seq, n.Alt)):
            return ["seq" if isinstance(node, n.Seq) else "alt", [self.nodes[i] for i in node.items]]
        if isinstance(node, n.Repeat):
            return ["repeat", self.nodes[node.item], node.low, node.high]
        if isinstance(node, n.Call):
            return ["call", node.rule, [self.nodes[a] for a in node.args]]
        if isinstance(node, (n.Var, n.Slot)):
            return ["var" if isinstance(node, n.Var) else "slot", node.name]
        if isinstance(node, n.Related):
            return ["related", node.relation, [self.nodes[part] for part in n.children(node)]]
        values = []
        for name, value in node.values.items():
            if isinstance(value, bytes):
                values.append([name, "text", self.text(value)])
            elif isinstance(value, tuple):
                values.append([name, "values", self.values(value)])
            else:
                values.append([name, "node", self.nodes[value]])
        return ["scoped", self.nodes[node.node], values]


class GrammarReader:
    """The tables read back, each entry checked; ValueError and the like where one can't be."""

    def __init__(self, facts: dict, arrays: dict[str, np.ndarray], limits: Limits):
        self.limits = limits
        self.texts = self._read_texts(arrays["text_lengths"], arrays["text_bytes"])
        self.values = self._read_values(arrays["counts"], arrays["members"])
        self.charsets = [self._charset(ranges) for ranges in facts["charsets"]]
        limits.check("nodes", len(facts["nodes"]), "too many nodes in the file")
        self.nodes: list[n.Node] = []
        self._depths: dict[n.Node, int] = {}
        for kind, *fields in facts["nodes"]:
            node = self._node(kind, fields)
            depth = 1 + max((self._depths[c] for c in below(node)), default=0)
            if depth > MAX_DEPTH:
                raise ValueError("nodes are nested too deeply")
            self.nodes.append(node)
            self._depths[node] = depth
        self.grammars: list[Grammar] = []
        for given in facts["grammars"]:
            self.grammars.append(self._grammar(given))

    def check_counts(self, low: int, high: int | None) -> None:
        """ValueError unless they can be the bounds of a repeat."""
        if type(low) is not int or low < 0 or not (high is None or (type(high) is int and high >= max(low, 1))):
            raise ValueError(f"a repeat of {low!r} to {high!r}")
        self.limits.check("repeat", max(low, high or 0), "a repeat in the file")

    def _read_texts(self, lengths: np.ndarray, data: np.ndarray) -> list[bytes]:
        if lengths.ndim != 1 or (lengths < 0).any() or data.shape != (int(lengths.sum()),) or data.dtype != np.uint8:
            raise ValueError("its texts don't go together")
        every, start, out = data.tobytes(), 0, []
        for length in lengths.tolist():
            out.append(every[start : start + length])
            start += length
        return out

    def _read_values(self, counts: np.ndarray, members: np.ndarray) -> list[tuple[bytes, ...]]:
        if counts.ndim != 1 or (counts < 1).any() or members.shape != (int(counts.sum()),):
            raise ValueError("its lists of texts don't go together")
        start, out = 0, []
        numbers = members.tolist()
        for count in counts.tolist():
            self.limits.check("values", count, "too many texts in a list of the file")
            values = tuple(at(self.texts, i) for i in numbers[start : start + count])
            if any(a >= b for a, b in zip(values, values[1:])):
                raise ValueError("texts out of order")
            start += count
            out.append(values)
        return out

    @staticmethod
    def _charset(ranges) -> CharSet:
        for low, high in ranges:
            if type(low) is not int or type(high) is not int or not 0 <= low <= high <= MAX_CODE_POINT:
                raise ValueError("no range of characters")
        found = charset((low, high) for low, high in ranges)
        if not found:
            raise ValueError("an empty set of characters")
        return found

    def _node(self, kind: str, fields: list) -> n.Node:
        if kind == "empty":
            return n.EMPTY
        if kind == "never":
            return n.NEVER
        if kind == "literal":
            data = at(self.texts, fields[0])
            if not data:
                raise ValueError("an empty literal")
            return n.Literal(data)
        if kind == "chars":
            return n.Chars(at(self.charsets, fields[0]))
        if kind == "choices":
            return n.Choices(at(self.values, fields[0]))
        if kind in ("seq", "alt"):
            return (n.Seq if kind == "seq" else n.Alt)(tuple(at(self.nodes, i) for i in fields[0]))
        if kind == "repeat":
            self.check_counts(fields[1], fields[2])
            return n.Repeat(at(self.nodes, fields[0]), fields[1], fields[2])
        if kind == "call":
            return n.Call(str(fields[0]), tuple(at(self.nodes, i) for i in fields[1]))
        if kind == "var":
            return n.Var(str(fields[0]))
        if kind == "slot":
            return n.Slot(str(fields[0]))
        if kind == "related":
            return related(fields[0], tuple(at(self.nodes, i) for i in fields[1]))
        if kind != "scoped":
            raise ValueError(f"no kind of node {kind!r}")
        tables = {"text": self.texts, "values": self.values, "node": self.nodes}
        values = {str(name): at(tables[what], i) for name, what, i in fields[1]}
        if any(isinstance(v, n.Node) and not isinstance(v, n.Scoped) for v in values.values()):
            raise ValueError("a scope's value is no scope")
        return n.Scoped(at(self.nodes, fields[0]), values)

    def _grammar(self, given: dict) -> Grammar:
        rules = {}
        for name, body, params, line in given["rules"]:
            if not all(isinstance(x, str) for x in (name, *params)) or not (line is None or type(line) is int):
                raise ValueError("no rule")
            rules[name] = n.Rule(name, at(self.nodes, body), tuple(params), line)
        slots = frozenset(map(str, given["slots"]))
        bindings, orders = {}, {}
        for name, kind, *value in given["bindings"]:
            if name not in slots:
                raise ValueError(f"no slot {name!r}")
            if kind == "by key":
                pairs = [(at(self.texts, key), self._bound(*one)) for key, *one in value[0]]
                bindings[name] = {key: one for key, (one, _) in pairs}
                orders[name] = {key: order for key, (_, order) in pairs}
            else:
                bindings[name], orders[name] = self._bound(kind, *value)
        start = at(self.nodes, given["start"])
        for rule in rules.values():
            _check(rule.body, set(rule.params), rules, slots)
        _check(start, set(), rules, slots)
        return Grammar(rules, start, slots, bindings, self.limits, orders)

    def _bound(self, kind: str, number: int, order: Sequence[int] = ()) -> tuple:
        """What a slot is bound to, at a key or at all, and its texts in order."""
        if kind == "grammar":
            return at(self.grammars, number), ()
        values = at(self.values, number)
        given = tuple(at(self.texts, i) for i in order)
        if kind not in ("values", "in order") or (order and tuple(sorted(given)) != values):
            raise ValueError("values that are no order of themselves")
        return values, given or values


def _check(root: n.Node, params: set[str], rules: dict[str, n.Rule], slots: frozenset[str]) -> None:
    """ValueError if something at or below `root` refers to what isn't there."""
    work = [(root, params)]
    while work:
        top, known = work.pop()
        for node in n.walk(top):
            if isinstance(node, n.Call):
                if node.rule not in rules or len(node.args) != len(rules[node.rule].params):
                    raise ValueError(f"no rule {node.rule!r} with {len(node.args)} arguments")
            elif isinstance(node, n.Var):
                if node.name not in known:
                    raise ValueError(f"no parameter {node.name!r}")
            elif isinstance(node, n.Slot):
                if node.name not in slots:
                    raise ValueError(f"no slot {node.name!r}")
            elif isinstance(node, n.Scoped):
                work.append((node.node, set(node.values)))
                work += [(value, set()) for value in node.values.values() if isinstance(value, n.Node)]

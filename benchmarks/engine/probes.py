"""Small grammars that ask one question: faults known of some engine, and free text."""

from __future__ import annotations

from types import ModuleType

from benchmarks.engine.engines import source
from benchmarks.engine.language import Chars, Choice, Node, Repeat, Seq
from benchmarks.engine.vocabularies import Tokens
from benchmarks.engine.workloads import Case


def _regular(node: Node) -> Case:
    return Case({"root": node}, node, ())


FREE_TEXT = _regular(Seq("Search[", Chars("]\n", negated=True), "]"))
"""Its first mask needs whatever an engine prepares for free text."""

PROBES: dict[str, tuple[Case, bytes, bytes]] = {
    "a(cb)* allows c after a": (_regular(Seq("a", Repeat(Seq("cb")))), b"a", b"c"),
    "a(cb)* allows c after acb": (_regular(Seq("a", Repeat(Seq("cb")))), b"acb", b"c"),
    "desk_1|desk_10 allows 0 after desk_1": (_regular(Choice("desk_1", "desk_10")), b"desk_1", b"0"),
}
"""What is asked: the grammar, the text written, and the byte that must be allowed next."""


def probe(adapter: ModuleType, vocabulary, tokens: Tokens) -> dict[str, bool]:
    """The named faults: whether the byte that may come next is allowed, after tokens of single bytes."""
    single: dict[bytes, list[int]] = {}
    for i, token in enumerate(tokens.tokens):
        if len(token) == 1:
            single.setdefault(token, []).append(i)
    found = {}
    for name, (case, text, following) in PROBES.items():
        session = adapter.start(vocabulary, adapter.compile(vocabulary, source(adapter, "probe", case)))
        session.fill()
        for byte in text:
            session.advance(single[bytes((byte,))][-1])
            session.fill()
        found[name] = any(bool(session.mask[i >> 5] >> (i & 31) & 1) for i in single[following])
    return found

"""Languages by listing their texts, masks by trying every token: slow, plain, and no part of the engine."""

from __future__ import annotations

from collections import deque

from constrained import Grammar, Vocabulary
from constrained.grammar import STEP
from constrained.grammar import nodes as n

Text = tuple[bytes, bool]
"""Bytes, and whether an action ended there (so that nothing more is read)."""


class Language:
    """Every text of a grammar up to a length, by the meaning of its nodes.

    A slot that is a template argument is given one value where the template is called, and the body is listed
    with that value in place of the parameter.
    """

    def __init__(self, grammar: Grammar, longest: int = 60):
        self.grammar, self.longest = grammar, longest
        self.known: dict[tuple, frozenset[Text]] = {}
        self.keep: list = []
        while True:
            before = dict(self.known)
            texts = self.of(grammar.start, {})
            if self.known == before:
                break
        self.texts = {text for text, _ in texts}
        self.prefixes = {text[:i] for text in self.texts for i in range(len(text) + 1)}

    def of(self, node: n.Node, env: dict) -> frozenset[Text]:
        if isinstance(node, n.LiteralText):
            return self.cut([(node.data, False)])
        if isinstance(node, n.Chars):
            chars = (chr(c) for a, b in node.chars.ranges for c in range(a, b + 1))
            return self.cut([(c.encode(), False) for c in chars])
        if isinstance(node, n.Choices):
            return self.cut([(v, False) for v in node.values])
        if isinstance(node, n.Alt):
            return frozenset().union(*(self.of(i, env) for i in node.items))
        if isinstance(node, n.Seq):
            out = frozenset([(b"", False)])
            for item in node.items:
                out = self.then(out, lambda item=item: self.of(item, env))
            return out
        if isinstance(node, n.Repeat):
            return self.repeat(node, env)
        if isinstance(node, n.Var):
            value = env[node.name]
            return self.cut([(value, False)]) if isinstance(value, bytes) else self.rule(*value)
        if isinstance(node, n.Slot):
            value = self.grammar.bindings.get(node.name)
            if node.name == STEP and value is None:
                return frozenset([(b"", True)])
            if isinstance(value, Grammar):
                return self.cut([(t, False) for t in Language(value, self.longest).texts])
            return self.cut([(v, False) for v in value])
        if isinstance(node, n.Related):
            values = self.related(node, env)
            if isinstance(values, Grammar):
                return self.cut([(t, False) for t in Language(values, self.longest).texts])
            return self.cut([(v, False) for v in values])
        assert isinstance(node, n.RuleRef)
        out = frozenset()
        for values in self.arguments(node, env):
            out |= self.rule(self.grammar.rules[node.rule].body, values)
        return out

    def rule(self, body: n.Node, env: dict) -> frozenset[Text]:
        """The texts of a body, so far: it may be being listed already."""
        key = (id(body), tuple(sorted((k, v if isinstance(v, bytes) else id(v)) for k, v in env.items())))
        if key not in self.known:
            self.known[key] = frozenset()
            self.keep.append((body, env))
        if key not in (active := self.__dict__.setdefault("active", set())):
            active.add(key)
            self.known[key] |= self.of(body, env)
            active.discard(key)
        return self.known[key]

    def arguments(self, node: n.RuleRef, env: dict) -> list[dict]:
        params = self.grammar.rules[node.rule].params
        ways: list[dict] = [{}]
        for i in reversed(range(len(node.args))):
            arg = node.args[i]
            further = []
            for way in ways:
                bound = self.grammar.bindings.get(arg.name) if isinstance(arg, n.Slot) else None
                before = node.args[i - 1] if i else None
                is_key = isinstance(before, n.Slot) and isinstance(self.grammar.bindings.get(before.name), dict)
                if isinstance(arg, n.Var):
                    values = [env[arg.name]]
                elif isinstance(arg, n.LiteralText):
                    values = [arg.data]
                elif isinstance(arg, n.Choices) and is_key:
                    values = arg.values
                elif isinstance(bound, dict):
                    values = bound.get(way[params[i + 1]], ())
                    if isinstance(values, Grammar):
                        node = n.Related("at", arg, n.LiteralText(way[params[i + 1]]))
                        nodes = self.__dict__.setdefault("nodes", {})
                        values = [self.piece(nodes.setdefault((arg.name, node.to.data), node), {})]
                elif isinstance(arg, n.Related) and not isinstance(found := self.related(arg, env), Grammar):
                    values = found
                elif isinstance(bound, tuple):
                    values = bound
                else:
                    self.keep.append(env)
                    values = [self.piece(arg, env)]
                further += [{**way, params[i]: v} for v in values]
            ways = further
        return ways

    def related(self, node: n.Related, env: dict):
        """The values of a relation, by its words in `grammars/relations.lark`."""
        order = self.grammar.orders[node.slot.name]
        to = node.to and (env[node.to.name] if isinstance(node.to, n.Var) else node.to.data)
        if node.relation == "at":
            value = self.grammar.bindings[node.slot.name].get(to, ())
            return value if isinstance(value, Grammar) else order.get(to, ())
        if isinstance(node.values, n.Related):
            order = self.related(node.values, env)
        listed = [i for i, value in enumerate(order) if value == to]
        return {
            "another": [value for value in order if value != to],
            "next": [order[i + 1] for i in listed if i + 1 < len(order)],
            "before": [value for i in listed for value in order[:i]],
            "first": list(order)[:1],
        }[node.relation]

    def piece(self, arg: n.Node, env: dict) -> tuple:
        """A node as an argument, one object for one meaning."""
        key = (id(arg), tuple(sorted((k, v if isinstance(v, bytes) else id(v)) for k, v in env.items())))
        return self.__dict__.setdefault("pieces", {}).setdefault(key, (arg, env))

    def repeat(self, node: n.Repeat, env: dict) -> frozenset[Text]:
        item, layer, count = self.of(node.item, env), frozenset([(b"", False)]), 0
        out = layer if node.low == 0 else frozenset()
        seen: set[frozenset] = set()
        while node.high is None or count < node.high:
            layer, count = self.then(layer, lambda: item), count + 1
            if count >= node.low:
                if layer <= out or (layer in seen and node.high is None):
                    break
                out |= layer
            seen.add(layer)
            if not layer:
                break
        return out

    def then(self, first: frozenset[Text], second) -> frozenset[Text]:
        through = [t for t, ended in first if not ended]
        ended = [(t, True) for t, e in first if e]
        after = second() if through else ()
        return self.cut([*ended, *((a + b, e) for a in through for b, e in after)])

    def cut(self, texts) -> frozenset[Text]:
        return frozenset(t for t in texts if len(t[0]) <= self.longest)


def spellings(vocabulary: Vocabulary) -> dict[int, bytes]:
    """Ids that stand for text -> their bytes."""
    special = set(vocabulary.special_ids) | set(vocabulary.eos_token_ids)
    return {i: t for i, t in enumerate(vocabulary.tokens) if t and i not in special}


def finishing(texts: set[bytes], vocabulary: Vocabulary) -> dict[bytes, int]:
    """Beginning of a text that tokens can complete -> the fewest tokens that do (of a finite language)."""
    prefixes = {t[:i] for t in texts for i in range(len(t) + 1)}
    tokens = set(spellings(vocabulary).values())
    fewest = dict.fromkeys(texts, 0)
    queue = deque(texts)
    while queue:
        text = queue.popleft()
        for token in tokens:
            before = text[: len(text) - len(token)]
            if token and text.endswith(token) and before in prefixes and before not in fewest:
                fewest[before] = fewest[text] + 1
                queue.append(before)
    return fewest


def expected_mask(
    begun: bytes, texts: set[bytes], fewest: dict[bytes, int], vocabulary: Vocabulary, left=None
) -> list[int]:
    """Ids allowed after `begun`: tokens after which the text can be finished (in `left` - 1 more), and EOS."""
    out = [
        i
        for i, token in spellings(vocabulary).items()
        if fewest.get(begun + token, 1 << 30) <= (1 << 29 if left is None else left - 1)
    ]
    return sorted(out + (list(vocabulary.eos_token_ids) if begun in texts else []))


def same(grammar: Grammar, longest: int = 60) -> Language:
    """Exactly the listed texts, exactly their beginnings, and no dead end."""
    listed = Language(grammar, longest)
    assert listed.texts
    found, work = set(), [(grammar.automaton.start, b"")]
    while work:
        state, text = work.pop()
        assert text in listed.prefixes, f"{text!r} begins no text"
        if state.accepting:
            found.add(text)
        assert state.accepting or state.first(), f"dead end after {text!r}"
        work += [(state.step(b), text + bytes((b,))) for b in state.first()]
    assert found == listed.texts
    start = grammar.automaton.start
    assert start.texts(len(found)) == sorted(found) and start.texts(len(found) - 1) is None
    return listed

"""Control tokens that a grammar names: the string `"[TOOL_CALLS]"` can be written as the token of that text.

A control token is one that its tokenizer flags as special (`Vocabulary.special_ids`), EOS tokens apart. Free text never
admits one, although its text would fit: chat templates and servers act on the token, not on its characters. But a
string of a `.lark` file that is exactly a token's text may mean it, as the tokenizer itself would read that text. Texts
that come from elsewhere (slots, choices, JSON Schemas, regular expressions) never do.

In such a grammar's automaton, the token is its text after a byte that no UTF-8 has. So nothing else reads it, and the
automaton, masks, budgets and tables need not know of it. (llguidance marks special tokens with the same byte; there the
grammar asks for them in a notation of its own.)
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from constrained.grammar import nodes
from constrained.grammar.deferred_rules import DeferredRules
from constrained.grammar.grammar import ContextFreeGrammar, OneValue, SlotValue, grammars_in
from constrained.grammar.nodes import Choices, LazyText, LiteralText, Node, Rule, RuleRef, Scoped, Slot, Spans
from constrained.grammar.traverse import fold, uses_relations

MARK = b"\xff"
"""What a control token's text begins with in an automaton."""


class ControlTokens:
    """The texts of a vocabulary's control tokens."""

    def __init__(self, texts: Iterable[bytes]):
        self._texts = frozenset(filter(None, texts))

    def admitted(self, grammar: ContextFreeGrammar) -> ContextFreeGrammar:
        """`grammar`, with the tokens admitted where it names them; `grammar` itself if it names none."""
        if not self._texts or isinstance(grammar.rules, DeferredRules):  # those of a JSON Schema never name one
            return grammar
        start, extended = grammar.start, grammar
        if type(start) is not RuleRef or start.args:
            start = self._node(start, grammar.of_rules(_looks_up))
        if grammar.of_rules(self._occur):
            extended = grammar.extended(self._rules, start)
        elif start is not grammar.start:
            extended = grammar.with_start(start)
        within = [name for name, value in grammar.bindings.items() if any(True for _ in grammars_in(value))]
        bindings = {name: self._bound(grammar.bindings[name]) for name in within}
        same = all(bindings[name] is grammar.bindings[name] for name in within)
        return extended if same else extended.with_bindings({**grammar.bindings, **bindings})

    def _bound(self, value: SlotValue) -> SlotValue:
        if not isinstance(value, dict):
            return self._one_bound(value)
        result = {key: self._one_bound(one) for key, one in value.items()}
        return value if all(result[key] is one for key, one in value.items()) else result

    def _one_bound(self, value: OneValue) -> OneValue:
        return value.derived(self.admitted) if isinstance(value, ContextFreeGrammar) else value

    def _occur(self, rules: dict[str, Rule]) -> bool:
        """Whether some rule names a control token."""
        return any(self._in(node) for rule in rules.values() for node in rule.nodes)

    def _in(self, node: Node) -> bool:
        if isinstance(node, LiteralText):
            return bool(self._tokens(node.data, node.strings))
        return isinstance(node, Choices) and any(self._tokens(*item) for item in node.strings.items())

    def _tokens(self, data: bytes, strings: Spans) -> list[tuple[int, int]]:
        """Those of a text's strings that are control tokens."""
        return [(start, end) for start, end in strings if data[start:end] in self._texts]

    def _rules(self, rules: dict[str, Rule]) -> dict[str, Rule]:
        keys = _looks_up(rules)
        return {name: Rule(name, self._node(rule.body, keys), rule.params, rule.line) for name, rule in rules.items()}

    def _node(self, node: Node, keys: bool) -> Node:
        """A copy of the tree in which control tokens are admitted; with `keys` (see `_looks_up`) not in arguments."""
        if not any(isinstance(part, LazyText) or self._in(part) for part in nodes.walk(node, scopes=True)):
            return node
        leaf = partial(self._leaf, keys=keys)
        return fold(node, leaf, nodes.seq, nodes.alt, lambda old, item: nodes.repeat(item, old.low, old.high))

    def _leaf(self, node: Node, keys: bool) -> Node:
        match node:
            case LazyText():
                return LazyText(lambda: self._node(node.node, keys), node.longest)
            case Scoped():
                values = {k: self._leaf(v, keys) if isinstance(v, Scoped) else v for k, v in node.values.items()}
                return Scoped(self._node(node.node, keys), values)
            case RuleRef(rule, args) if args and not keys:
                return RuleRef(rule, tuple(map(self._argument, args)))
            case LiteralText() if self._in(node):
                return self._text(node.data, node.strings)
            case Choices() if self._in(node):
                named = {value: spans for value, spans in node.strings.items() if self._tokens(value, spans)}
                plain = nodes.choices((value for value in node.values if value not in named), node.place)
                return nodes.alt([plain, *(self._text(value, spans) for value, spans in named.items())])
        return node

    def _argument(self, node: Node) -> Node:
        """An argument whose values may also be written with all of their control tokens (a parameter has one value)."""
        if isinstance(node, (LiteralText, Choices)) and self._in(node):
            values = (node.data,) if isinstance(node, LiteralText) else node.values
            strings = {node.data: node.strings} if isinstance(node, LiteralText) else node.strings
            return nodes.choices([*values, *(self._marked(*item) for item in strings.items())], node.place)
        return node

    def _marked(self, data: bytes, strings: Spans) -> bytes:
        for start, _ in reversed(self._tokens(data, strings)):
            data = data[:start] + MARK + data[start:]
        return data

    def _text(self, data: bytes, strings: Spans) -> Node:
        parts: list[Node] = []
        done = 0
        for start, end in self._tokens(data, strings):
            token = data[start:end]
            parts += [nodes.literal(data[done:start]), nodes.choices([token, MARK + token])]
            done = end
        return nodes.seq([*parts, nodes.literal(data[done:])])


def _looks_up(rules: dict[str, Rule]) -> bool:
    """Whether an argument's value may be used as a key that selects a slot's values."""
    calls = (call for rule in rules.values() for call in rule.find(RuleRef))
    return uses_relations(rules) or any(isinstance(arg, Slot) for call in calls for arg in call.args)

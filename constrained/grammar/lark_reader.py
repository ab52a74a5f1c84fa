"""`.lark` text -> rules. lark itself reads the file (imports, templates, escapes, errors);
here its tree becomes nodes.
"""

from __future__ import annotations

import re
from functools import cache, partial

from lark.exceptions import LarkError
from lark.grammar import NonTerminal, Terminal
from lark.lexer import PatternRE, PatternStr
from lark.load_grammar import _literal_to_pattern, load_grammar

from constrained.errors import GrammarError
from constrained.grammar import nodes
from constrained.grammar.assertions import looks
from constrained.grammar.charset import charset
from constrained.grammar.nodes import Call, Chars, Node, Place, Rule, Slot, Var
from constrained.grammar.regex import regex_node
from constrained.grammar.source import SHIPPED, Source, definitions, explain
from constrained.grammar.surroundings import Token
from constrained.limits import DEFAULT, Limits

IGNORED = "$ignore"
"""The rule of what `%ignore` admits after a text's last token."""

_ESCAPED_STRING = r'"(?:[^"\\\n]|\\.)*"'
"""`common.ESCAPED_STRING` as lark in effect reads it: its lazy repeat stops at the first quote that is not escaped."""

_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE, "l": 0, "u": 0}
_OPERATORS = {"?": (0, 1), "*": (0, None), "+": (1, None)}


def read_lark(source: Source, limits: Limits = DEFAULT) -> tuple[dict[str, Rule], frozenset[str]]:
    """Rules by name, and the names of the declared slots.

    Raises
    ------
    GrammarError
        With line, column, the line itself and a caret where lark tells them.
    """
    limits.check("characters", len(source.text), f"grammar text of {len(source.text)} characters", source=source.name)
    name = str(source.path) if source.path else "<string>"
    try:
        loaded, _ = load_grammar(source.text, name, [str(SHIPPED)], True)
        return _Reader(source, loaded, limits).read()
    except GrammarError:
        raise
    except (LarkError, OSError, ValueError) as error:
        raise explain(source, error) from None
    except RecursionError:
        what = "groups are nested too deeply, or files import each other"
        raise source.error(what, hint="name the inner groups as rules") from None


@cache
def _escaped_string():
    """What lark's `common` defines as ESCAPED_STRING."""
    loaded, _ = load_grammar("%import common.ESCAPED_STRING\nstart: ESCAPED_STRING\n", "<string>", [], True)
    return loaded.term_defs[0][1][0]


class _Reader:
    def __init__(self, source: Source, loaded, limits: Limits):
        self.source = source
        self.limits = limits
        self.loaded = loaded
        self.term_trees = {name: tree for name, (tree, _) in loaded.term_defs}
        self.slots = frozenset(n for n, t in self.term_trees.items() if t is None)
        self.templates = {name for name, params, *_ in loaded.rule_defs if params}
        self.terms: dict[str, Node] = {}
        self.looking: dict[str, tuple] = {}  # definition -> where in it a regex looks around, as `error` takes it
        self.lines = {name: lines[0] for name, lines in definitions(source.text).items()}
        self.within: list[str] = []  # the definitions being read, outermost first
        self.params: tuple[str, ...] = ()
        self.token_params: set[tuple[str, str]] = set()  # (rule, parameter) that may stand for a token
        self.in_terminal = False
        self.gap: Node | None = None  # what %ignore admits between tokens

    def read(self) -> tuple[dict[str, Rule], frozenset[str]]:
        if self.loaded.ignore:
            ignored = [self.looked(self.terminal(name), name) for name in self.loaded.ignore]
            self.gap = nodes.repeat(nodes.alt(ignored), 0, None)
            self.token_params = self.find_token_params()
        rules = {}
        for name, params, tree, _ in self.loaded.rule_defs:
            self.params = tuple(params)
            if tree is None:
                raise self.source.error(f"rule '{name}' is declared but not defined", name)
            self.within = [name]
            rules[name] = Rule(name, self.node(tree), self.params, self.lines.get(name))
        if self.gap is not None:
            rules[IGNORED] = Rule(IGNORED, self.gap)
        return rules, self.slots

    def error(self, message: str, token, hint: str | None = None, further: int = 0, within=None) -> GrammarError:
        """A GrammarError at `token`, or in an imported definition where that is imported."""
        within = within or self.within
        if within[-1] in self.lines or within[-1].startswith("__IGNORE_"):
            return self.source.error(message, hint=hint, line=token.line, column=token.column + further)
        known = [name for name in within if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", self.source.text)]
        message = f"{message} (in the imported {within[-1]}, its line {token.line})"
        return self.source.error(message, known[-1] if known else None, hint)

    def place(self, token) -> Place:
        """Where `token` is written."""
        name = str(self.within[-1])
        if name.startswith("__IGNORE"):  # lark's own name for what %ignore gives
            return Place("%ignore", token.line, token.column)
        return Place(name, token.line, token.column, imported=name not in self.lines)

    def find_token_params(self) -> set[tuple[str, str]]:
        """Template parameters that come to stand for a token, handed on from rule to rule or not."""
        params = {name: tuple(p) for name, p, *_ in self.loaded.rule_defs}
        found, handed_on = set(), []
        for name, own, tree, _ in self.loaded.rule_defs:
            for use in tree.find_data("template_usage") if tree is not None else ():
                for param, arg in zip(params.get(use.children[0].name, ()), use.children[1:]):
                    target = use.children[0].name, param
                    while getattr(arg, "data", None) == "value":
                        arg = arg.children[0]
                    if isinstance(arg, NonTerminal) and arg.name in own:
                        handed_on.append(((name, arg.name), target))
                    elif not isinstance(arg, NonTerminal) and getattr(arg, "data", None) != "template_usage":
                        found.add(target)
        for _ in handed_on:
            found |= {target for source, target in handed_on if source in found}
        return found

    def terminal(self, name: str) -> Node:
        if name in self.slots:
            return Slot(name)
        if name not in self.terms:
            outer, self.in_terminal = self.in_terminal, True
            self.within.append(name)
            if self.term_trees[name] == _escaped_string():
                self.terms[name] = regex_node(_ESCAPED_STRING, limits=self.limits)
            else:
                self.terms[name] = self.node(self.term_trees[name])
            self.within.pop()
            self.in_terminal = outer
        if name in self.looking and self.within:
            self.looking.setdefault(self.within[-1], self.looking[name])
        return self.terms[name]

    def looked(self, node: Node, name: str) -> Node:
        """A whole token, to be settled by what stands beside it if it looks around."""
        if name not in self.looking or not looks(node):
            return node
        return Token(node, name, self.looking[name])

    def token(self, node: Node, name: str) -> Node:
        if self.in_terminal:
            return node
        node = self.looked(node, name)
        if self.gap is None:
            return node
        return nodes.seq([self.gap, node])

    def node(self, tree) -> Node:
        if isinstance(tree, Terminal):
            term = self.terminal(tree.name)
            return term if tree.name == "_STEP" else self.token(term, tree.name)
        if isinstance(tree, NonTerminal):
            if tree.name not in self.params:
                if tree.name in self.templates:
                    raise self.source.error(f"template '{tree.name}' stands without its arguments", tree.name)
                return Call(tree.name)
            value = Var(tree.name)
            return self.token(value, tree.name) if (self.within[-1], tree.name) in self.token_params else value
        kind, parts = tree.data, tree.children
        if kind == "expansions":
            return nodes.alt([self.node(p) for p in parts])
        if kind == "expansion":
            return nodes.seq([self.node(p) for p in parts])
        if kind == "alias":
            return self.node(parts[0])
        if kind == "value":
            return self.node(parts[0])
        if kind == "maybe":
            return nodes.repeat(self.node(parts[0]), 0, 1)
        if kind == "expr":
            return self.expression(*parts)
        if kind == "literal":
            return self.token(nodes.placed(self.literal(parts[0]), self.place(parts[0])), self.within[-1])
        if kind == "range":
            return self.token(nodes.placed(self.range(*parts), self.place(parts[0])), self.within[-1])
        if kind == "template_usage":
            return self.template(parts[0], parts[1:])
        raise self.source.error(f"unknown construct {kind!r}")

    def expression(self, item, operator, *numbers) -> Node:
        if operator in _OPERATORS:
            low, high = _OPERATORS[operator]
        else:
            low, high = int(numbers[0]), int(numbers[-1])
            if high < low or low < 0:
                hint = "write two counts, the smaller one first"
                raise self.error(f"repeat ~{low}..{high} can never be met", operator, hint)
        self.limits.check("repeat", max(low, high or 0), f"repeat ~{low}..{high}", line=operator.line, column=operator.column)
        return nodes.repeat(self.node(item), low, high)

    def literal(self, token) -> Node:
        pattern = _literal_to_pattern(token)
        flags = 0
        for letter in pattern.flags:
            flags |= _FLAGS[letter]
        if isinstance(pattern, PatternStr) and not flags:
            try:
                return nodes.literal(pattern.value)
            except UnicodeEncodeError:
                raise self.error("a lone surrogate is not text", token) from None
        text = pattern.value if isinstance(pattern, PatternRE) else re.escape(pattern.value)
        try:
            node = regex_node(text, flags, self.limits, whole=False)
        except GrammarError as error:
            message = error.message.split("\n")[0].removeprefix("regex:1:").lstrip("0123456789: ")
            raise self.error(message, token, error.hint, error.column or 0) from None
        if looks(node) and not (self.in_terminal and self.within[-1] in self.looking):
            self.looking[self.within[-1]] = partial(self.error, token=token, within=tuple(self.within))
        return node

    def range(self, first, last) -> Node:
        ends = [_literal_to_pattern(t).value for t in (first, last)]
        if any(len(e) != 1 for e in ends):
            raise self.error(f"a range goes from one character to another, not {first}..{last}", first)
        if ends[0] > ends[1]:
            hint = "the first character must not come after the second"
            raise self.error(f"empty range {first}..{last}", first, hint)
        chars = charset([(ord(ends[0]), ord(ends[1]))])
        if not chars:
            raise self.error("lone surrogates are not text", first)
        return Chars(chars)

    def template(self, name: NonTerminal, args) -> Node:
        if name.name in self.params:
            raise self.source.error(f"parameter '{name.name}' is used as a template", name.name)
        gap, self.gap = self.gap, None  # the gap belongs where the argument is used
        values = tuple(self.node(a) for a in args)
        self.gap = gap
        return Call(name.name, values)

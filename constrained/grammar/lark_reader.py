"""`.lark` text -> rules: the definitions of :mod:`constrained.grammar.lark_definitions` become nodes."""

from __future__ import annotations

from constrained.errors import GrammarError
from constrained.grammar import nodes
from constrained.grammar.lark_definitions import STEP, Body, Definition, at, load, undefined
from constrained.grammar.lark_syntax import Group, Name, Options, Quoted, Range
from constrained.grammar.lark_terminals import Terminals, parts_first
from constrained.grammar.nodes import Call, Node, Rule, Var
from constrained.grammar.relations import related, relations
from constrained.grammar.source import Source
from constrained.grammar.template_arguments import TemplateArguments
from constrained.limits import DEFAULT, Limits

IGNORED = "$ignore"
"""The rule of what `%ignore` admits after a text's last token."""


def read_lark(source: Source, limits: Limits = DEFAULT) -> tuple[dict[str, Rule], frozenset[str]]:
    """Rules by name, and the names of the declared slots.

    Raises
    ------
    GrammarError
        With line, column, the line itself and a caret, in the file at fault.
    LimitError
        It costs more than `limits` allow.
    """
    try:
        definitions, ignored = load(source, limits)
        return _Reader(source, definitions, ignored, limits).read()
    except RecursionError:
        raise source.error("groups are nested too deeply", hint="name the inner groups as rules") from None


class _Reader:
    def __init__(self, source: Source, definitions: dict[str, Definition], ignored: list[Definition], limits: Limits):
        self.source = source
        self.definitions = definitions
        self.ignored = ignored
        self.limits = limits
        self.slots = frozenset(n for n, d in definitions.items() if d.declared and d.terminal)
        self.terminals = Terminals(limits)
        self.rules = self.terminals.rules
        self.size = 0
        self.gap: Node | None = None  # what %ignore admits between tokens
        self.relations = relations(definitions)
        self.templates = TemplateArguments(definitions, self.relations)
        # of the definition being read
        self.definition: Definition | None = None
        self.body: Body | None = None
        self.given: dict[str, str] = {}  # parameters that stand for a template

    def read(self) -> tuple[dict[str, Rule], frozenset[str]]:
        if self.ignored:
            ignored = [self.terminals.node(d) for d in self.ignored]
            self.gap = nodes.repeat(nodes.alt(ignored), 0, None)
        checked: set[Definition] = set()
        for definition in self.definitions.values():
            if definition.terminal:
                checked.update(parts_first(definition, checked) if definition not in checked else ())
            elif definition.declared:
                hint = "only terminals are slots: write its name in capitals, or define it"
                raise definition.place.error(f"rule '{definition.name}' is declared but not defined", hint)
            elif not self.templates.of(definition.name) and definition.name not in self.relations:
                self.rule(definition, {}, definition.name)
        while self.templates.wanted:  # templates that take templates, once for each
            name, (definition, given) = self.templates.wanted.popitem()
            self.rule(definition, given, name)
            self.count(1, definition.at)
        if self.gap is not None:
            self.rules[IGNORED] = Rule(IGNORED, self.gap)
        return self.rules, self.slots

    def rule(self, definition: Definition, given: dict[str, str], name: str) -> None:
        self.definition, self.given = definition, given
        alternatives = []
        for body in definition.bodies:
            self.body = body
            alternatives.append(self.options(body.options))
        params = tuple(p for p in definition.params if p not in given)
        own = definition.scope.source is self.source
        self.rules[name] = Rule(name, nodes.alt(alternatives), params, definition.place.line if own else None)
        for param in definition.params:
            if param in self.definitions:
                hint = "give the parameter another name"
                raise definition.place.error(f"parameter '{param}' has the name of a rule", hint)

    def error(self, message: str, offset: int, hint: str | None = None) -> GrammarError:
        return self.body.scope.error(message, offset, hint)

    def count(self, size: int, offset: int) -> None:
        """One limit for all nodes, which are counted as often as they are used."""
        self.size += size
        if self.size > self.limits.nodes:
            where = at(self.body.scope.place(offset))
            self.limits.check("nodes", self.size, f"a grammar of more than {self.limits.nodes:,} nodes", **where)

    # rules

    def options(self, options: Options) -> Node:
        return nodes.alt([nodes.seq([self.item(i) for i in items]) for items in options.items])

    def item(self, item) -> Node:
        if isinstance(item, Name):
            return self.name(item)
        if isinstance(item, (Quoted, Range)):
            self.count(1, item.at)
            return self.token(self.terminals.literal(item, self.definition, self.body))
        if isinstance(item, Group):
            inner = self.options(item.options)
            return nodes.repeat(inner, 0, 1) if item.optional else inner
        return nodes.repeat(self.item(item.item), item.low, item.high)

    def token(self, node: Node) -> Node:
        return node if self.gap is None else nodes.seq([self.gap, node])

    def name(self, item: Name) -> Node:
        if item.text in self.given or item.args is not None:
            return self.template(item)
        if item.text in self.definition.params:
            value = Var(item.text)
            return self.token(value) if self.templates.is_token(self.definition.name, item.text) else value
        found = self.find(item)
        if found.terminal:
            term = self.terminals.node(found)
            self.count(self.terminals.size(found), item.at)
            return term if found.name == STEP else self.token(term)
        if found.params:
            hint = f"`{item.text}{{...}}` with {len(found.params)}: {', '.join(found.params)}"
            raise self.error(f"template '{item.text}' stands without its arguments", item.at, hint)
        return Call(found.name)

    def template(self, item: Name) -> Node:
        args = item.args
        self.count(1 + len(args or ()), item.at)
        name = self.given.get(item.text)
        if args is None:
            hint = f"'{name}' takes arguments, and so must '{item.text}' wherever it is used: `{item.text}{{...}}`"
            raise self.error(f"template '{name}' stands without its arguments", item.at, hint)
        found = self.definitions[name] if name else self.find(item)
        if not found.params:
            hint = "leave `{...}` out, or define it with parameters: `name{x}: ...`"
            raise self.error(f"rule '{item.text}' is no template: it takes no arguments", item.at, hint)
        if len(args) != len(found.params):
            hint = f"its parameters are: {', '.join(found.params)}"
            raise self.error(f"template '{item.text}' takes {len(found.params)}, not {len(args)}", item.at, hint)
        given, values = {}, []
        gap, self.gap = self.gap, None  # it belongs where the argument is used
        for param, arg in zip(found.params, args):
            if param in self.templates.of(found.name):
                given[param] = self.template_name(arg)
            else:
                values.append(self.item(arg))
        self.gap = gap
        if found.name in self.relations:
            return self.relation(self.relations[found.name], tuple(values), item)
        return Call(self.templates.call(found, given), tuple(values))

    def relation(self, relation: str, values: tuple[Node, ...], item: Name) -> Node:
        try:
            return self.token(related(relation, values))
        except ValueError as error:
            hint = "such as `another{SLOT, x}`, x being a parameter; see grammars/relations.lark"
            raise self.error(f"{item.text}{{...}}: {error}", item.at, hint) from None

    def template_name(self, arg) -> str:
        """The template that an argument names."""
        if isinstance(arg, Name) and arg.args is None:
            if arg.text in self.given:
                return self.given[arg.text]
            if arg.text not in self.definition.params:
                found = self.find(arg)
                if found.params:
                    return found.name
        raise self.error(
            "a template expected here, as the parameter is used with arguments",
            arg.at,
            "name a template, without arguments",
        )

    def find(self, item: Name) -> Definition:
        found = self.definitions.get(self.body.scope.full(item.text))
        if found is None:
            kind = "terminal" if item.text.isupper() else "rule" if item.args is None else "template"
            known = [*self.definition.params, *self.definitions]
            raise self.error(f"{kind} '{item.text}' is not defined", item.at, undefined(item, self.body, known))
        return found

"""What comes to stand for the parameters of templates: tokens, or templates themselves."""

from __future__ import annotations

from collections.abc import Container

from constrained.errors import GrammarError
from constrained.grammar import nodes
from constrained.grammar.lark_definitions import STEP, Body, Definition, at, load, undefined, walk
from constrained.grammar.lark_syntax import Group, Name, Options, Quoted, Range
from constrained.grammar.lark_terminals import Terminals, parts_first
from constrained.grammar.nodes import Call, Node, Rule, Var
from constrained.grammar.relations import related, relations
from constrained.grammar.source import Source
from constrained.limits import DEFAULT, Limits

# MERGED DOC: """`.lark` text -> rules: the definitions of :mod:`constrained.grammar.lark_definitions` become nodes."""


Parameter = "tuple[str, str]"  # (template, parameter)


class TemplateArguments:
    """Which parameters stand for tokens, and which for templates.

    A template whose parameter is used as a template (``t{x}: x{"a"}``) is read once for each
    template that it is given; what is still to be read is in `wanted`.
    """

    def __init__(self, definitions: dict[str, Definition], relations: Container[str] = ()):
        self.definitions = definitions
        self.relations = relations  # templates that stand for one of a slot's values: a token
        self.wanted: dict[str, tuple[Definition, dict[str, str]]] = {}
        self._known: set[str] = set()
        self._tokens: set[Parameter] = set()
        as_template: set[Parameter] = set()
        handed_on: dict[Parameter, list[Parameter]] = {}  # to whom, and from whom
        handed_from: dict[Parameter, list[Parameter]] = {}
        for definition in definitions.values():
            for body in definition.bodies if not definition.terminal else ():
                for item in walk(body.options):
                    if not isinstance(item, Name) or item.args is None:
                        continue
                    if item.text in definition.params:
                        as_template.add((definition.name, item.text))
                    self._arguments(definition, body, item, handed_on, handed_from)
        self._tokens = _reached(self._tokens, handed_on)
        self._templates: dict[str, set[str]] = {}
        for name, param in _reached(as_template, handed_from):
            self._templates.setdefault(name, set()).add(param)

    def _arguments(self, definition: Definition, body: Body, item: Name, handed_on, handed_from) -> None:
        if item.text in definition.params:  # any template, perhaps
            targets = [d for d in self.definitions.values() if len(d.params) == len(item.args)]
        else:
            targets = [d] if (d := self.definitions.get(body.scope.full(item.text))) else []
        for target in targets:
            for param, arg in zip(target.params, item.args):
                into = target.name, param
                if isinstance(arg, Name) and arg.text in definition.params and arg.args is None:
                    handed_on.setdefault((definition.name, arg.text), []).append(into)
                    if item.text not in definition.params:
                        handed_from.setdefault(into, []).append((definition.name, arg.text))
                elif (
                    isinstance(arg, (Quoted, Range))
                    or (arg.args is None and arg.text.isupper())
                    or body.scope.full(arg.text) in self.relations
                ):
                    self._tokens.add(into)

    def is_token(self, template: str, param: str) -> bool:
        """Whether a parameter may stand for a token."""
        return (template, param) in self._tokens

    def of(self, template: str) -> set[str]:
        """The parameters of a template that stand for templates."""
        return self._templates.get(template, set())

    def call(self, template: Definition, given: dict[str, str]) -> str:
        """The rule to call for a template with some parameters given templates."""
        if not given:
            return template.name
        name = f"{template.name}{{{','.join(given[p] for p in template.params if p in given)}}}"
        if name not in self._known:
            self._known.add(name)
            self.wanted[name] = template, given
        return name


def _reached(found: set, edges: dict) -> set:
    found, work = set(found), list(found)
    while work:
        for target in edges.get(work.pop(), ()):
            if target not in found:
                found.add(target)
                work.append(target)
    return found


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

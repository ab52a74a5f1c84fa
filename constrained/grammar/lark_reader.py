"""`.lark` text -> rules: the definitions of :mod:`constrained.grammar.lark_definitions` become nodes."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from operator import attrgetter

from constrained.errors import GrammarError, nearest
from constrained.grammar import nodes
from constrained.grammar.analysis import is_productive, productive_rules, trim
from constrained.grammar.assertions import Atomic, longest_is_certain, looks
from constrained.grammar.lark_definitions import Body, Definition, Faults, Scope, enumerated, load, undefined
from constrained.grammar.lark_literals import plain_text
from constrained.grammar.lark_syntax import (
    Expansions,
    Group,
    Item,
    Quoted,
    Range,
    Repeated,
    Statement,
    Symbol,
    Value,
    walk,
)
from constrained.grammar.lark_terminals import Terminals, parts_first
from constrained.grammar.lark_tokens import blank_comments
from constrained.grammar.left_recursion import LeftRecursion, eliminate_left_recursion
from constrained.grammar.nodes import (
    ANOTHER,
    AT,
    BEFORE,
    FIRST,
    NEXT,
    STEP,
    Alt,
    LiteralText,
    Node,
    Rule,
    RuleRef,
    Var,
    find,
)
from constrained.grammar.source import SHIPPED, Source
from constrained.grammar.template_instances import write_out_instances
from constrained.grammar.token_contexts import LookingUse, resolve_tokens
from constrained.grammar.traverse import reached
from constrained.limits import DEFAULT, Limits

IGNORED = "$ignore"
"""The rule of what `%ignore` admits after a text's last token."""

_ARGUMENTS = "wrong-arguments"

_RELATIONS = {
    ("values", "key"): AT,
    ("values", "than"): ANOTHER,
    ("values", "after"): NEXT,
    ("values", "until"): BEFORE,
    ("values",): FIRST,
}
"""The templates of `grammars/relations.lark` by their parameters: an import may call them by other names."""


@dataclass(eq=False)
class LarkRules:
    """What a `.lark` file says, with all that it imports.

    Attributes
    ----------
    source : Source
    rules : dict of str to Rule
        As they are written: `prepare_rules` makes those of a grammar of them.
    slots : frozenset of str
    definitions : dict of str to Definition
        What the rules were read from, by name.
    limits : Limits
    looks : bool
        Some token may look around (see `token_contexts`).
    """

    source: Source
    rules: dict[str, Rule]
    slots: frozenset[str]
    definitions: dict[str, Definition]
    limits: Limits = DEFAULT
    looks: bool = True


def read_lark(
    source: Source,
    limits: Limits = DEFAULT,
    faults: Faults | None = None,
    statements: list[Statement] | None = None,
) -> LarkRules:
    """Read a `.lark` file; `faults` and `statements` as in `load`.

    Raises GrammarError: with line, column, the line itself and a caret, in the file at fault. Raises LimitError: it
    costs more than `limits` allow.
    """
    try:
        faults = Faults() if faults is None else faults
        definitions, ignored = load(source, limits, faults, statements)
        reader = _RuleReader(source, definitions, ignored, limits, faults)
        rules, slots = reader.read()
        return LarkRules(source, rules, slots, definitions, limits, reader.looks)
    except RecursionError:
        raise source.error("groups are nested too deeply", hint="name the inner groups as rules") from None


def prepare_rules(read: LarkRules, start: str) -> tuple[dict[str, Rule], Node]:
    """Rules that an automaton can walk, and the node of whole texts, from what `read_lark` gives.

    Lookaround and left recursion are eliminated, and alternatives that no text can complete are left out.

    Raises GrammarError: as `Grammar.from_lark`.
    """
    source, rules, limits = read.source, read.rules, read.limits
    if start not in rules:
        known = sorted(name for name in rules if "$" not in name)
        listed = f"the rules are: {enumerated(known)}" if known else f"the file has no rules: write `{start}: ...`"
        hint = nearest(start, known, listed)
        raise source.error(f"no rule '{start}' to start from", hint=hint)
    if rules[start].params:
        hint = "start from a rule that uses it: `start: " + start + "{...}`"
        raise source.error(f"'{start}' is a template and can't be the start", hint=hint, line=rules[start].line)
    whole = nodes.seq([RuleRef(start), *([RuleRef(IGNORED)] if IGNORED in rules else [])])
    # Lookaround first: what a token reads depends on what stands around it in the rules as they are written. Then left
    # recursion, whose base cases come from any rule. Then what no text completes is left out of the rules that remain.
    try:
        asking: list[LookingUse] = []
        if read.looks:
            rules, whole, asking = resolve_tokens(rules, whole, limits)
        prepared = _without_left_recursion(rules, limits)
        productive = productive_rules(prepared)
        prepared = trim(prepared, productive)
    except RecursionError:
        raise source.error("groups are nested too deeply", hint="name the inner ones as rules") from None
    except LeftRecursion as error:
        rule = read.rules.get(error.rule.split("$")[0], read.rules[start])  # other names are made of its own
        what = f"rule '{rule.name}' is left-recursive, and the left recursion can't be eliminated"
        raise source.error(what, error.hint, *_place(source, rule)) from None
    readable = is_productive(whole, (prepared.keys() - productive).__contains__)
    if not readable and asking:
        raise asking[0].error(
            "what the lookaround asks for never stands beside its token",
            hint="^ and $ are the whole text's start and end: leave them out; a lookaround sees the text around "
            "the token",
        )
    if not readable:
        raise source.error(
            f"no text of '{start}' can ever be complete: every way through it leads back to itself",
            "give the cycle an end, such as an action without _STEP or an empty alternative",
            *_place(source, read.rules[start]),
        )
    return prepared, whole


def _without_left_recursion(rules: dict[str, Rule], limits: Limits) -> dict[str, Rule]:
    """`rules` without left recursion, templates' calls written out where it needs that."""
    try:
        return eliminate_left_recursion(write_out_instances(rules), limits)
    except LeftRecursion as error:
        try:  # perhaps it goes through a template's argument
            return eliminate_left_recursion(write_out_instances(rules, every=True), limits)
        except LeftRecursion:
            raise error from None


def _place(source: Source, rule: Rule) -> tuple[int | None, int | None]:
    """Line and column of a rule, or, where it is another file's, of the first mention of its name."""
    if rule.line is not None:
        return rule.line, None
    match = re.search(rf"(?<!\w){re.escape(rule.name)}(?!\w)", blank_comments(source.text))
    return source.line_column(match.start()) if match else (None, None)


class _RuleReader:
    """Reads the rules of one grammar."""

    def __init__(
        self,
        source: Source,
        definitions: Mapping[str, Definition],
        ignored: list[Definition],
        limits: Limits,
        faults: Faults,
    ):
        self.source, self.definitions, self.limits, self.faults = source, definitions, limits, faults
        self.slots = frozenset([n for n, d in definitions.items() if d.declared and d.terminal])
        self.terminals = Terminals(limits, faults)
        self.rules = self.terminals.rules
        self.size = 0
        shipped = [d for d in definitions.values() if d.params and d.scope.source.path == SHIPPED / "relations.lark"]
        self.relations = {d.name: _RELATIONS[tuple(d.params)] for d in shipped}
        self.templates = TemplateArguments(definitions, self.relations)
        self.gap: Node | None = None  # what %ignore admits between tokens
        if ignored:
            try:
                gap = nodes.repeat(nodes.alt([self.ignored(d) for d in ignored]), 0, None)
                self.rules[IGNORED] = Rule(IGNORED, gap)
                self.gap = (
                    RuleRef(IGNORED) if find(gap, LookingUse) else gap
                )  # `token_contexts` writes a rule once for all
            except GrammarError as error:
                faults.add(error)
        self.bodies = _BodyReader(self)

    @property
    def looks(self) -> bool:
        """Whether a rule may have a token that looks around; what is ignored is such a token, too."""
        return self.gap is not None or self.terminals.looking

    def ignored(self, definition: Definition) -> Node:
        """The texts that an ignored terminal takes: as in all of lark's lexers, the longest that it can read."""
        node = self.terminals.node(definition)
        inner = node.node if isinstance(node, LookingUse) else node
        ways = inner.items if isinstance(inner, Alt) else (inner,)
        stretches = [w for w in ways if longest_is_certain(w) and not (self.slots and looks(w))]
        if not stretches:
            return node
        others = nodes.alt(w for w in ways if w not in stretches)
        if looks(others):
            others = LookingUse(others, definition.name, definition.span.error)
        return nodes.alt(
            [*(LookingUse(Atomic(w), definition.name, definition.span.error, lenient=True) for w in stretches), others]
        )

    def read(self) -> tuple[dict[str, Rule], frozenset[str]]:
        checked: set[Definition] = set()
        for definition in self.definitions.values():
            try:
                if definition.terminal:
                    checked.update(parts_first(definition, checked) if definition not in checked else ())
                elif definition.declared:
                    hint = "only terminals are slots: write its name in capitals, or define it"
                    raise definition.span.error(f"rule '{definition.name}' is declared but not defined", hint)
                elif not definition.params or not (
                    self.templates.of(definition.name) or definition.name in self.relations
                ):
                    self.rule(definition, {}, definition.name)
            except GrammarError as error:
                self.faults.add(error)
        while self.templates.wanted:  # templates that take templates, once for each
            name, (definition, given) = self.templates.wanted.popitem()
            try:
                self.rule(definition, given, name)
            except GrammarError as error:
                self.faults.add(error)
            self.count(1, definition.bodies[-1], definition.at)
        return self.rules, self.slots

    def rule(self, definition: Definition, given: Mapping[str, str], name: str) -> None:
        node = self.bodies.read(definition, definition.bodies[0], given)
        if len(definition.bodies) > 1:
            node = nodes.alt([node, *(self.bodies.read(definition, body, given) for body in definition.bodies[1:])])
        params = tuple(p for p in definition.params if p not in given) if given else definition.params
        line = definition.line if definition.scope.source is self.source else None
        self.rules[name] = Rule(name, node, params, line)
        for param in definition.params:
            if param in self.definitions:
                hint = "give the parameter another name"
                raise definition.span.error(f"parameter '{param}' has the name of a rule", hint)

    def count(self, size: int, body: Body, offset: int) -> None:
        """Check the limit for all nodes, which are counted as often as they are used."""
        self.size += size
        if self.size > self.limits.nodes:
            what = f"a grammar of more than {self.limits.nodes:,} nodes"
            self.limits.check("nodes", self.size, what, **body.scope.span(offset).for_error())


class _BodyReader:
    """Reads the bodies of rules, one after the other."""

    definition: Definition
    body: Body
    given: Mapping[str, str]  # parameters that stand for a template -> that template
    calls: dict[str, str]  # names in the body -> the rules that they stand for, once read

    def __init__(self, reader: _RuleReader):
        self.reader, self.templates, self.definitions = reader, reader.templates, reader.definitions
        self.item: Callable[[Item], Node] = self.node_or_empty if reader.faults.every else self.node
        self._calls: dict[Scope, dict[str, str]] = {}

    def read(self, definition: Definition, body: Body, given: Mapping[str, str]) -> Node:
        self.definition, self.body, self.given, self.gap = definition, body, given, self.reader.gap
        self.source, self.shown = body.scope.source, definition.shown
        self.calls = {} if definition.params else self._calls.setdefault(body.scope, {})
        return self.options(body.options)

    def error(self, message: str, offset: int, hint: str | None = None, code: str = "refused") -> GrammarError:
        return self.body.scope.error(message, offset, hint, code)

    def options(self, options: Expansions) -> Node:
        item, calls = self.item, self.calls
        result: list[Node] = []
        for items in options.items:
            row: list[Node] = []  # by a loop: `map` would start another interpreter for each item
            for one in items:
                # Mostly a rule called before. Each call is a node of its own: `nesting_calls` tells them apart.
                known = type(one) is Symbol and one.args is None and calls.get(one.text)
                row.append(RuleRef(known) if known else item(one))
            result.append(row[0] if len(row) == 1 else nodes.seq(row))
        return result[0] if len(result) == 1 else nodes.alt(result)

    def node_or_empty(self, item: Item) -> Node:
        """The node of an item; the empty text if something is wrong with it, and the error goes to the faults."""
        try:
            return self.node(item)
        except GrammarError as error:
            self.reader.faults.add(error)
            return nodes.EMPTY

    def node(self, item: Item) -> Node:
        """The node of an item."""
        if isinstance(item, Symbol):
            if item.args is not None:
                return self.template(item)
            return self.name(item)
        if isinstance(item, Quoted) and (data := plain_text(item.text)):
            self.reader.size += 1
            if self.reader.size > self.reader.limits.nodes:
                self.reader.count(0, self.body, item.at)
            place = (self.source, item.at, len(item.text), self.shown)
            text = LiteralText(data, place, strings=((0, len(data)),))
            return text if self.gap is None else self.token(text)
        if isinstance(item, Group):
            inner = self.options(item.options)
            return nodes.repeat(inner, 0, 1) if item.optional else inner
        if isinstance(item, Repeated):
            return nodes.repeat(self.item(item.item), item.low, item.high)
        self.reader.count(1, self.body, item.at)
        node = self.reader.terminals.literal(item, self.definition, self.body)
        return node if self.gap is None else self.token(node)

    def token(self, node: Node) -> Node:
        return node if self.gap is None else nodes.seq([self.gap, node])

    def name(self, item: Symbol) -> Node:
        if item.text in self.given:
            return self.template(item)
        if item.text in self.definition.params:
            value = Var(item.text)
            return self.token(value) if self.templates.is_token(self.definition.name, item.text) else value
        definition = self.find(item)
        if definition.terminal:
            terminals = self.reader.terminals
            node = terminals.node(definition)
            self.reader.count(terminals.size(definition), self.body, item.at)
            return node if definition.name == STEP else self.token(node)
        if definition.params:
            hint = f"`{item.text}{{...}}` with {len(definition.params)}: {', '.join(definition.params)}"
            raise self.error(f"template '{item.text}' stands without its arguments", item.at, hint, _ARGUMENTS)
        self.calls[item.text] = definition.name
        return RuleRef(definition.name)

    def template(self, item: Symbol) -> Node:
        args = item.args
        self.reader.count(1 + len(args or ()), self.body, item.at)
        name = self.given.get(item.text)
        if args is None:
            hint = f"'{name}' takes arguments, and so must '{item.text}' wherever it is used: `{item.text}{{...}}`"
            raise self.error(f"template '{name}' stands without its arguments", item.at, hint, _ARGUMENTS)
        definition = self.definitions[name] if name else self.find(item)
        if not definition.params:
            hint = "leave `{...}` out, or define it with parameters: `name{x}: ...`"
            raise self.error(f"rule '{item.text}' is no template: it takes no arguments", item.at, hint, _ARGUMENTS)
        if len(args) != len(definition.params):
            hint = f"its parameters are: {', '.join(definition.params)}"
            takes = f"takes {len(definition.params)}, not {len(args)}"
            raise self.error(f"template '{item.text}' {takes}", item.at, hint, _ARGUMENTS)
        # A parameter that is used as a template is given by name, and one rule is made for each name; other arguments
        # become nodes of the call.
        arguments: dict[str, str] = {}
        values: list[Node] = []
        gap, self.gap = self.gap, None  # it belongs where the argument is used
        for param, arg in zip(definition.params, args):
            if param in self.templates.of(definition.name):
                arguments[param] = self.template_name(arg)
            else:
                values.append(self.item(arg))
        self.gap = gap
        if definition.name in self.reader.relations:
            return self.relation(self.reader.relations[definition.name], values, item)
        return RuleRef(self.templates.call(definition, arguments), tuple(values))

    def relation(self, relation: str, values: list[Node], item: Symbol) -> Node:
        try:
            return self.token(nodes.related(relation, values))
        except ValueError as error:
            hint = "such as `another{SLOT, x}`, x being a parameter; see grammars/relations.lark"
            raise self.error(f"{item.text}{{...}}: {error}", item.at, hint) from None

    def template_name(self, arg: Value) -> str:
        """The template that an argument names."""
        if isinstance(arg, Symbol) and arg.args is None:
            if arg.text in self.given:
                return self.given[arg.text]
            if arg.text not in self.definition.params:
                definition = self.find(arg)
                if definition.params:
                    return definition.name
        raise self.error(
            "a template expected here, as the parameter is used with arguments",
            arg.at,
            "name a template, without arguments",
        )

    def find(self, item: Symbol) -> Definition:
        definition = self.definitions.get(self.body.scope.full(item.text))
        if definition is None:
            raise undefined(item, self.body, [*self.definition.params, *self.definitions])
        return definition


TemplateParameter = tuple[str, str]
"""(template, parameter)."""


class TemplateArguments:
    """Which parameters of templates stand for tokens, and which for templates.

    A template whose parameter is used as a template (``t{x}: x{"a"}``) is read once for each
    template that it is given; `wanted` lists those still to be read.
    """

    def __init__(self, definitions: Mapping[str, Definition], relations: Container[str] = ()):
        self.definitions = definitions
        self.relations = relations  # templates that stand for one of a slot's values: a token
        self.wanted: dict[str, tuple[Definition, dict[str, str]]] = {}
        self._called: set[str] = set()
        self._tokens: set[TemplateParameter] = set()
        self._templates: dict[str, set[str]] = {}
        if not any(map(attrgetter("params"), definitions.values())):
            return
        tokens: set[TemplateParameter] = set()
        as_template: set[TemplateParameter] = set()
        given_to: dict[TemplateParameter, list[TemplateParameter]] = {}
        given_from: dict[TemplateParameter, list[TemplateParameter]] = {}
        # What is used as a token or as a template where it stands, and which parameters are handed on to which others;
        # the two properties then follow along these ways: tokens to what they are given to, templates back.
        for definition in definitions.values():
            for body in definition.bodies if not definition.terminal else ():
                for item in walk(body.options):
                    if not isinstance(item, Symbol) or item.args is None:
                        continue
                    if item.text in definition.params:
                        as_template.add((definition.name, item.text))
                    for param, arg in self._arguments(definition, body, item):
                        if isinstance(arg, Symbol) and arg.text in definition.params and arg.args is None:
                            outer = definition.name, arg.text
                            given_to.setdefault(outer, []).append(param)
                            if item.text not in definition.params:
                                given_from.setdefault(param, []).append(outer)
                        elif self._is_token(arg, body):
                            tokens.add(param)
        self._tokens = set(reached(tokens, lambda param: given_to.get(param, ())))
        for template, name in reached(as_template, lambda param: given_from.get(param, ())):
            self._templates.setdefault(template, set()).add(name)

    def _arguments(self, definition: Definition, body: Body, item: Symbol) -> list[tuple[TemplateParameter, Value]]:
        """The arguments of a template's use, each with the parameter that it is given to."""
        args = item.args or []
        if item.text in definition.params:  # any template, perhaps
            targets = [d for d in self.definitions.values() if len(d.params) == len(args)]
        else:
            targets = [d] if (d := self.definitions.get(body.scope.full(item.text))) else []
        return [((target.name, param), arg) for target in targets for param, arg in zip(target.params, args)]

    def _is_token(self, arg: Value, body: Body) -> bool:
        if isinstance(arg, (Quoted, Range)):
            return True
        return (arg.args is None and arg.text.isupper()) or body.scope.full(arg.text) in self.relations

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
        if name not in self._called:
            self._called.add(name)
            self.wanted[name] = template, given
        return name

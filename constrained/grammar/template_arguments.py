"""What comes to stand for the parameters of templates: tokens, or templates themselves."""

from __future__ import annotations

from collections.abc import Container

from constrained.grammar.lark_definitions import Body, Definition, walk
from constrained.grammar.lark_syntax import Name, Quoted, Range

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

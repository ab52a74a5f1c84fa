"""Read planning domains from PDDL.

The ADL part of PDDL 2.2 is read (Edelkamp and Hoffmann, *PDDL2.2*, 2004): typing, negative and disjunctive conditions,
quantifiers, implications, equality, conditional and universal effects. `(increase (total-cost) ...)` is read and
ignored, since costs don't change what actions mean. Whatever would change it (other numeric conditions and effects,
durative actions, derived predicates, preferences) is refused with its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from constrained.errors import PddlError
from constrained.grammar.source import Source
from constrained.planning import model
from constrained.planning.model import Condition, Domain, Formula
from constrained.planning.notation import Part, SExpression, Word, read_expression, words_in

MAX_DOMAIN_CHARACTERS = 300_000
"""Characters of a domain; alfred.pddl has 17,016."""

MAX_DECLARED = 500
"""Actions of a domain, and its predicates; domains of planning competitions have some tens."""

_NUMERIC_EFFECTS = ("increase", "decrease", "assign", "scale-up", "scale-down")
_AMOUNT = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?")
_REQUIREMENTS = (
    ":strips :typing :negative-preconditions :disjunctive-preconditions :equality :existential-preconditions "
    ":universal-preconditions :quantified-preconditions :conditional-effects :adl :action-costs"
).split()
_WORDS = ("and", "or", "not", "imply", "exists", "forall", "when", "preference", "=", *_NUMERIC_EFFECTS)
"""Words that can't be names of predicates."""
_NUMERIC_CONDITIONS = ("<", ">", "<=", ">=")
_SECTIONS = (":requirements", ":types", ":constants", ":predicates", ":functions", ":action")
_REFUSED = {
    ":durative-action": "durative actions",
    ":derived": "derived predicates (axioms)",
    ":process": "processes",
    ":event": "events",
    ":constraints": "constraints on trajectories",
}


def read_domain(text: str, source: str = "domain") -> Domain:
    """Read a PDDL domain.

    Parameters
    ----------
    text : str
    source : str
        The file's name, for messages.

    Raises
    ------
    PddlError
        The text doesn't parse, names something undeclared, or contains something that action knowledge can't express;
        with line, column and a caret.
    """
    return DomainReader(text, source).read()


_TOO_LARGE = "give the schemas of its actions, not their instances"


class DomainReader:
    """Reads the expressions of one domain."""

    def __init__(self, text: str, source: str):
        self.source = Source(text, source, None)
        self.domain = Domain("")

    def read(self) -> Domain:
        define, self.domain.name = self.define(
            "domain",
            MAX_DOMAIN_CHARACTERS,
            _TOO_LARGE,
            "a problem file is no domain: give the one that has the actions",
        )
        self.domain.title = self.domain.name
        sections = [(self.section_of(part, _SECTIONS), part) for part in define[2:]]
        self.check_once(sections)
        readers = (self.requirements, self.types, self.constants, self.predicates, self.action)
        for read in readers:  # in this order, as each section uses the declarations of those before
            for name, part in sections:
                if name == f":{read.__name__}" and isinstance(part, tuple):
                    read(part)
        for what, declared in (("actions", self.domain.actions), ("predicates", self.domain.predicates)):
            if len(declared) > MAX_DECLARED:
                message = f"the domain has {len(declared):,} {what}, more than {MAX_DECLARED:,}"
                raise self.error(define, message, _TOO_LARGE)
        if not self.domain.actions:
            raise self.error(define, "the domain has no (:action ...)", "action knowledge needs at least one action")
        return self.domain

    def define(self, kind: str, most: int, too_long: str, other: str) -> tuple[Formula, str]:
        """Read ``(define (KIND NAME) ...)``; returns it and NAME. Hints: if the text is too long, or another kind."""
        if len(self.source.text) > most:
            message = f"the PDDL {kind} has {len(self.source.text):,} characters, more than {most:,}"
            raise PddlError(message, too_long, source=self.source.name)
        define = read_expression(self.source, f"the PDDL {kind}")
        head = define[1] if len(define) > 1 and str(define[0]).lower() == "define" else ()
        if not isinstance(head, tuple) or len(head) != 2 or str(head[0]).lower() != kind:
            raise self.error(define, f"this doesn't begin with (define ({kind} NAME) ...", other)
        if not isinstance(head[1], str):
            raise self.error(head[1], f"the PDDL {kind}'s name is one word", f"write (define ({kind} NAME) ...")
        return define, str(head[1])

    def place(self, part: Part) -> dict[str, Any]:
        """The place of `part`, of its first word if it has any, as the keywords that PddlError takes."""
        first = next(words_in(part), part)
        if not isinstance(first, (Word, SExpression)):
            return {"source": self.source.name}
        return self.source.span(first.at).for_error()

    def error(self, part: Part, message: str, hint: str | None = None) -> PddlError:
        return PddlError(message, hint, **self.place(part))

    # declarations

    def headed(self, part: Part, message: str) -> tuple[str, Formula]:
        """The first word of an expression, in lower case, and the expression. Raises PddlError with `message`."""
        if not isinstance(part, tuple) or not part or not isinstance(part[0], str):
            raise self.error(part, message)
        return part[0].lower(), part

    def section_of(self, part: Part, known: Sequence[str]) -> str:
        """The name of a section, in lower case. Raises PddlError: it isn't among those known."""
        name, part = self.headed(part, "a section such as (:predicates ...) belongs here")
        if name in _REFUSED:
            hint = "state the same as plain actions, or leave it out"
            raise self.error(part, f"{_REFUSED[name]} are not supported", hint)
        if name not in known:
            raise self.error(part, f"unknown section {part[0]}", f"known are {', '.join(known)}")
        return name

    def check_once(self, sections: Sequence[tuple[str, Part]]) -> None:
        """Check that no section but (:action ...) comes twice."""
        first: dict[str, Part] = {}
        for name, part in sections:
            if name in first and name != ":action":
                raise self.error(part, f"a second ({name} ...)", f"the first is {self.before(first[name])}: join them")
            first[name] = part

    def before(self, part: Part) -> str:
        """Where something was written before, for a message."""
        return f"on line {self.place(part)['line']}"

    def requirements(self, part: Formula) -> None:
        for word in part[1:]:
            if not isinstance(word, str) or word.lower() not in _REQUIREMENTS:
                shown = word if isinstance(word, str) else "(...)"
                known = f"supported are {', '.join(_REQUIREMENTS)}"
                raise self.error(word or part, f"the requirement {shown} is not supported", known)

    def name(self, word: str) -> str:
        """A name in lower case; its spelling is noted."""
        self.domain.spelling.setdefault(word.lower(), str(word))
        return word.lower()

    def typed(self, part: Formula, either: bool = False) -> list[model.Parameter]:
        """The names of a typed list with their types; with `either`, the type (either ...) is read as object."""
        return [parameter for _, parameter in self.typed_words(part, either)]

    def typed_words(self, part: Formula, either: bool = False) -> list[tuple[Word, model.Parameter]]:
        """As `typed`, each with its word."""
        out: list[tuple[str, str]] = []
        waiting: list[str] = []
        rest = iter(part)
        for word in rest:
            if not isinstance(word, str):
                raise self.error(word, "a name belongs here, not an expression")
            if word != "-":
                waiting.append(word)
                continue
            # A type after '-' belongs to all names since the last type.
            kind = next(rest, None)
            if isinstance(kind, tuple) and kind and kind[0] == "either":
                if not either:
                    hint = "declare a type that the others belong to, and name that"
                    raise self.error(kind, "(either ...) is not supported here", hint)
                for one in kind[1:]:
                    self.known_type(model.Parameter("", str(one).lower()), kind)
                kind = model.ROOT
            if not isinstance(kind, str):
                raise self.error(word, "no type follows this '-'")
            out += [(name, self.name(kind)) for name in waiting]
            waiting = []
        out += [(name, model.ROOT) for name in waiting]
        return [(cast(Word, name), model.Parameter(self.name(name), kind)) for name, kind in out]

    def declared(self, kind: str, part: Formula) -> Iterator[tuple[Word, model.Parameter]]:
        """The words of a typed list, each with its name and type; the place of each is noted as that of a `kind`."""
        for word, parameter in self.typed_words(part[1:]):
            if word.startswith("?"):
                raise self.error(word, f"{word} is a variable's name, and no {kind}'s", "leave out the '?'")
            yield word, parameter
            self.domain.places.setdefault(f"{kind} {parameter.name}", self.place(word))

    def types(self, part: Formula) -> None:
        types = self.domain.types
        for word, declared in self.declared("type", part):
            if declared.name == model.ROOT:
                if declared.type != model.ROOT:
                    raise self.error(word, f"{word} is the root of all types, so it belongs to no other")
                continue
            before = types.get(declared.name, declared.type)
            if model.ROOT not in (before, declared.type) and before != declared.type:
                spelled = " and ".join(map(self.domain.spell, (before, declared.type)))
                hint = "declare a type that belongs to one, which belongs to the other"
                raise self.error(word, f"the type {word} is declared twice, as a kind of {spelled}", hint)
            types[declared.name] = before if declared.type == model.ROOT else declared.type
        for parent in list(types.values()):
            types.setdefault(parent, model.ROOT)
        types.pop(model.ROOT, None)
        for name in types:
            line = [name]
            while (parent := types.get(line[-1], model.ROOT)) not in (model.ROOT, *line):
                line.append(parent)
            if parent == name:
                chain = " is a ".join(map(self.domain.spell, [*line, name]))
                hint = "a type has one supertype, up to object: leave out one of these"
                raise PddlError(f"types that belong to themselves: {chain}", hint, **self.domain.places[f"type {name}"])

    def known_type(self, parameter: model.Parameter, part: Formula) -> model.Parameter:
        """Check that the type of a parameter in `part` is declared."""
        if parameter.type != model.ROOT and parameter.type not in self.domain.types:
            word = next((w for w in words_in(part) if w.lower() == parameter.type), None)
            known = ", ".join(self.domain.types) or "none but object"
            raise self.error(word or part, f"no type '{parameter.type}'", f"(:types ...) declares {known}")
        return parameter

    def constants(self, part: Formula) -> None:
        self.things(part, {})

    def things(self, part: Formula, own: dict[str, str]) -> None:
        """Declare constants or objects, and note them in `own`, too; one may be named twice with the same type."""
        constants = self.domain.constants
        for word, declared in self.declared("object", part):
            kind = self.known_type(declared, part).type
            before = own.get(declared.name)
            if before is None:  # a problem may give a constant a narrower type
                before = constants.get(declared.name, kind)
                before = kind if self.domain.is_subtype(kind, before) else before
            if kind != before:
                spelled = " and as ".join(map(self.domain.spell, (before, kind)))
                raise self.error(word, f"the object {word} is declared twice, as {spelled}", "leave one of them out")
            constants[declared.name] = own[declared.name] = kind

    def predicates(self, part: Formula) -> None:
        for predicate in part[1:]:
            name, (word, *arguments) = self.headed(predicate, "a predicate such as (at ?x) belongs here")
            assert isinstance(word, Word)
            parameters = tuple(self.typed(tuple(arguments), either=True))
            if name in _WORDS or name[0] in "?:" or name == "-":
                if name == "=" and len(parameters) == 2:
                    continue  # equality, which needs no declaration
                raise self.error(word, f"{word} can't be the name of a predicate", "choose another")
            for parameter in parameters:
                self.known_type(parameter, predicate if isinstance(predicate, tuple) else ())
            before = self.domain.predicates.get(self.name(word))
            if before is not None and [p.type for p in before] != [p.type for p in parameters]:
                hint = "leave one of them out, or choose another name"
                raise self.error(word, f"the predicate {word} is declared twice, with other arguments", hint)
            self.domain.predicates[name] = parameters
            self.domain.places.setdefault(f"predicate {name}", self.place(word))

    def variables(self, listed: Formula) -> tuple[model.Parameter, ...]:
        """A typed list of variables, checked."""
        typed = self.typed_words(listed)
        wrong = next((word for word, _ in typed if not word.startswith("?")), None)
        if wrong is not None:
            raise self.error(wrong, f"a variable begins with '?', unlike {wrong}")
        parameters = [parameter for _, parameter in typed]
        names = [p.name for p in parameters]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            raise self.error(listed, f"the variable {twice} is declared twice here", "give one of them another name")
        return tuple(self.known_type(p, listed) for p in parameters)

    # actions

    def action(self, part: Formula) -> None:
        if len(part) < 2 or not isinstance(part[1], str):
            raise self.error(part, "an action needs a name")
        name = part[1]
        if name.startswith(("?", ":")):
            what = "a variable's name" if name[0] == "?" else "a keyword"
            raise self.error(name, f"{name} is {what}, not an action's")
        if before := self.domain.places.get(f"action {name.lower()}"):
            hint = f"the first is on line {before['line']}: give one of them another name"
            raise self.error(name, f"there are two actions {name}", hint)
        self.domain.places[f"action {name.lower()}"] = self.place(name)
        # After its name, an action has pairs of a keyword and an expression.
        fields: dict[str, Formula] = {}
        for key, value in zip(part[2::2], part[3::2]):
            if not isinstance(key, str) or key.lower() not in (":parameters", ":precondition", ":effect"):
                known = ":parameters, :precondition and :effect"
                raise self.error(key, f"unknown part of action {name}", f"known are {known}")
            if not isinstance(value, tuple):
                raise self.error(value, f"an expression in parentheses belongs after {key}")
            if key.lower() in fields:
                raise self.error(key, f"a second {key} of action {name}", "join them, or leave one out")
            fields[key.lower()] = value
        if len(part) % 2:
            raise self.error(part[-1], f"nothing follows this in action {name}")
        # The parameters come first: conditions and effects may use them.
        listed = fields.get(":parameters", ())
        parameters = self.variables(listed)
        scope = [p.name for p in parameters]
        precondition = model.simplified(self.condition(fields.get(":precondition", ()), scope))
        effects = [
            replace(effect, condition=model.simplified(effect.condition))
            for effect in self.effects(fields.get(":effect", ()), scope)
        ]
        effects = [effect for effect in effects if effect.condition != model.NEVER]
        self.domain.actions.append(model.Action(self.name(name), parameters, precondition, tuple(effects)))

    def condition(self, part: Part, scope: Sequence[str]) -> Condition:
        """A condition; `scope` are the variables declared around it. The empty condition () always holds."""
        if part == ():
            return model.ALWAYS
        operator, part = self.headed(part, "a condition such as (at ?x) belongs here")
        # What this reader can't express is refused.
        if operator in _NUMERIC_CONDITIONS:
            hint = "state it as a predicate, or leave it out and let the environment check it"
            raise self.error(part, "numeric conditions are not supported", hint)
        if operator == "preference":
            raise self.error(part, "preferences are not supported", "leave them out, as they forbid nothing")
        if operator in ("not", "imply") and len(part) != (2 if operator == "not" else 3):
            raise self.error(part, f"({operator} ...) has {len(part) - 1} conditions")
        # Negations are pushed down to the literals at once, so that a condition is in negation normal form.
        if operator in ("and", "or", "not", "imply"):
            parts = tuple(self.condition(p, scope) for p in part[1:])
            if operator == "not":
                return model.negated(parts[0])
            if operator == "imply":
                return model.Junction("or", (model.negated(parts[0]), parts[1]))
            return model.Junction(operator, parts)
        if operator in ("exists", "forall"):
            if len(part) != 3 or not isinstance(part[1], tuple):
                raise self.error(part, f"({operator} ...) needs a list of variables and one condition")
            declared = self.variables(part[1])
            inner = self.condition(part[2], [*scope, *(v.name for v in declared)])
            return model.Quantified("some" if operator == "exists" else "every", declared, inner)
        return self.literal(part, scope)

    def literal(self, part: Formula, scope: Sequence[str]) -> model.Literal:
        predicate, (head, *_) = self.headed(part, "a predicate such as (at ?x) belongs here")
        # Checked in this order, so that the message names the first cause: form, predicate, arity, variables, types.
        terms = [term for term in part[1:] if isinstance(term, str)]
        if len(terms) < len(part) - 1:
            what = "numeric conditions" if predicate == "=" else "expressions as arguments"
            raise self.error(part, f"{what} are not supported", "name objects and variables here")
        if predicate != "=" and predicate not in self.domain.predicates:
            raise self.error(part, f"no predicate '{head}'", "(:predicates ...) must declare it")
        arity = 2 if predicate == "=" else len(self.domain.predicates[predicate])
        if len(terms) != arity:
            raise self.error(part, f"'{head}' has {arity} arguments, not {len(terms)}")
        for term in terms:
            if term.startswith("?") and term.lower() not in scope:
                raise self.error(term, f"variable {term} is not declared here")
            if not term.startswith("?") and term.lower() not in self.domain.constants:
                self.undeclared(term)
        for term, parameter in zip(terms, self.domain.predicates.get(predicate, ())):
            kind = self.domain.constants.get(term.lower())
            if kind is not None and not self.domain.is_subtype(kind, parameter.type):
                given, declared = self.domain.spell(kind), self.domain.spell(parameter.type)
                hint = f"name a {declared}, or declare '{head}' with a wider type"
                raise self.error(term, f"{term} is of the type {given}, where '{head}' takes {declared}", hint)
        return model.Literal(predicate, tuple(self.name(t) for t in terms))

    def effects(self, part: Part, scope: Sequence[str]) -> Iterator[model.Effect]:
        """The effects in `part`; `scope` are the variables declared around it."""
        if part == ():
            return
        operator, part = self.headed(part, "an effect such as (at ?x) belongs here")
        inner = part[1:]
        if operator in _NUMERIC_EFFECTS:
            self.cost(part)
            return
        # Nested `forall` and `when` end up in the variables and the condition of each literal's effect.
        if operator == "and":
            for each in inner:
                yield from self.effects(each, scope)
        elif operator == "forall" and len(inner) == 2 and isinstance(inner[0], tuple):
            declared = self.variables(inner[0])
            # A variable that hides another gets a name with a space, which no file can have.
            names = {v.name: f"{v.name} {len(scope)}" for v in declared if v.name in scope}
            variables = tuple(model.Parameter(names.get(v.name, v.name), v.type) for v in declared)
            for effect in self.effects(inner[1], [*scope, *(v.name for v in declared)]):
                literal = model.renamed(effect.literal, names)
                assert isinstance(literal, model.Literal)
                yield model.Effect(literal, (*variables, *effect.variables), model.renamed(effect.condition, names))
        elif operator == "when" and len(inner) == 2:
            condition = self.condition(inner[0], scope)
            for effect in self.effects(inner[1], scope):
                yield replace(effect, condition=model.conjunction((condition, effect.condition)))
        elif operator in ("forall", "when", "or", "oneof", "imply", "exists", "probabilistic"):
            raise self.error(part, f"({operator} ...) is not an effect", "use and, not, when and forall")
        elif operator == "not" and len(inner) == 1 and isinstance(inner[0], tuple) and inner[0]:
            yield model.Effect(self.literal(inner[0], scope).negated)
        else:
            literal = self.literal(part, scope)
            if literal.predicate == "=":
                raise self.error(part, "equality is not an effect")
            yield model.Effect(literal)

    def undeclared(self, word: str) -> None:
        """Note an object that the domain names but doesn't declare; alfred.pddl leaves that to its problems."""
        self.domain.undeclared.setdefault(word.lower())
        self.domain.places.setdefault(f"object {word.lower()}", self.place(word))

    def cost(self, part: Formula) -> None:
        """Check that a numeric effect only states an action's cost."""
        if len(part) != 3 or str(part[0]).lower() != "increase" or [str(w).lower() for w in part[1]] != ["total-cost"]:
            hint = "state it as predicates; only (increase (total-cost) ...) is read, and ignored"
            raise self.error(part, "numeric effects are not supported", hint)
        amount = part[2]
        if isinstance(amount, str) and not _AMOUNT.fullmatch(amount):
            raise self.error(amount, f"a cost is a finite number that is not negative, not {amount[:40]}")
        if not isinstance(amount, str) and not all(isinstance(w, str) and w not in "+-*/" for w in amount or ((),)):
            raise self.error(part, "a cost is a number or (FUNCTION ARGUMENTS): it isn't computed", "state the number")

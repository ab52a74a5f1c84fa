"""Read a planning domain: types, predicates and actions.

Read is PDDL 2.2's ADL part (Edelkamp and Hoffmann, *PDDL2.2*, 2004): typing, negative and
disjunctive conditions, quantifiers, implications, equality, conditional and universal effects.
Numeric effects are passed over, since no condition may ask for numbers; what would change
the meaning of an action (numeric conditions, durative actions, derived predicates,
preferences) is refused at its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from constrained.errors import GameError, PddlError
from constrained.knowledge.pddl.model import (
    ALWAYS,
    ROOT,
    Action,
    Domain,
    Effect,
    Formula,
    Literal,
    Parameter,
    Problem,
    typed_names,
)

MAX_DOMAIN_CHARACTERS = 300_000
"""Of a domain; alfred.pddl has 17,016."""

MAX_DECLARED = 500
"""Actions of a domain, and predicates; planning competitions' have some tens."""

_NUMERIC_EFFECTS = ("increase", "decrease", "assign", "scale-up", "scale-down")
_NUMERIC_CONDITIONS = ("<", ">", "<=", ">=")
_READ = (":requirements", ":types", ":constants", ":predicates", ":functions", ":action")
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
        What messages call it.

    Raises
    ------
    PddlError
        With line, column and a caret: the text doesn't parse, names what it doesn't
        declare, or holds what action knowledge can't.
    """
    return _Reader(text, source).read()


class _Reader:
    def __init__(self, text: str, source: str):
        self.text, self.source = text, source

    def read(self) -> Domain:
        if len(self.text) > MAX_DOMAIN_CHARACTERS:
            what = f"the PDDL domain has {len(self.text):,} characters, more than {MAX_DOMAIN_CHARACTERS:,}"
            raise PddlError(what, "give the schemas of its actions, not their instances", source=self.source)
        define = read_expression(self.text, "the PDDL domain", places=True, source=self.source)
        head = define[1] if len(define) > 1 and str(define[0]).lower() == "define" else ()
        if not isinstance(head, tuple) or len(head) != 2 or str(head[0]).lower() != "domain":
            hint = "a problem file is no domain: give the one that has the actions"
            raise self.error(define, "this doesn't begin with (define (domain NAME) ...", hint)
        self.domain = Domain(str(head[1]))
        sections = define[2:]
        for part in sections:
            self.check_section(part)
        for name, read in ((":types", self.types), (":constants", self.constants), (":predicates", self.predicates)):
            for part in sections:
                if part[0].lower() == name:
                    read(part)
        for part in sections:
            if part[0].lower() == ":action":
                self.domain.actions.append(self.action(part))
        for what, declared in (("actions", self.domain.actions), ("predicates", self.domain.predicates)):
            if len(declared) > MAX_DECLARED:
                message = f"the domain has {len(declared):,} {what}, more than {MAX_DECLARED:,}"
                raise self.error(define, message, "give the schemas of its actions, not their instances")
        if not self.domain.actions:
            raise self.error(define, "the domain has no (:action ...)", "there is nothing to know about")
        return self.domain

    def error(self, part: Formula | str, message: str, hint: str | None = None) -> PddlError:
        """A PddlError at the first word of `part`."""
        at = next((word.at for word in _words(part)), None)
        if at is None:
            return PddlError(message, hint, source=self.source)
        return error_at(self.text, at, message, hint, self.source)

    def check_section(self, part: Formula | str) -> None:
        if not isinstance(part, tuple) or not part or not isinstance(part[0], str):
            raise self.error(part, "a section such as (:predicates ...) belongs here")
        name = part[0].lower()
        if name in _REFUSED:
            hint = "state the same as plain actions, or leave it out"
            raise self.error(part, f"{_REFUSED[name]} are not supported", hint)
        if name not in _READ:
            raise self.error(part, f"unknown section {part[0]}", f"known are {', '.join(_READ)}")

    def name(self, word: Word) -> str:
        """A name's lower case; how it is spelt is kept."""
        self.domain.spelling.setdefault(word.lower(), str(word))
        return word.lower()

    def typed(self, part: Formula, wide: bool = False) -> list[Parameter]:
        """The names of a typed list with their types; `wide`: (either ...) is read as object."""
        out: list[Parameter] = []
        waiting: list[Word] = []
        words = iter(part)
        for word in words:
            if not isinstance(word, str):
                raise self.error(word, "a name belongs here, not an expression")
            if word != "-":
                waiting.append(word)
                continue
            kind = next(words, None)
            if isinstance(kind, tuple) and kind and kind[0] == "either":
                if wide:
                    kind = Word(ROOT, word.at)
                else:
                    hint = "declare a type that the others belong to, and name that"
                    raise self.error(kind, "(either ...) is not supported here", hint)
            if not isinstance(kind, str):
                raise self.error(word, "no type follows this '-'")
            out += [Parameter(self.name(name), self.name(kind)) for name in waiting]
            waiting = []
        return out + [Parameter(self.name(name), ROOT) for name in waiting]

    def types(self, part: Formula) -> None:
        for kind in self.typed(part[1:]):
            if kind.name != ROOT:
                self.domain.types[kind.name] = kind.type
        for kind in list(self.domain.types.values()):
            self.domain.types.setdefault(kind, ROOT)
        self.domain.types.pop(ROOT, None)

    def known_type(self, parameter: Parameter, part: Formula) -> Parameter:
        if parameter.type != ROOT and parameter.type not in self.domain.types:
            word = next((w for w in _words(part) if w.lower() == parameter.type), part)
            known = ", ".join(self.domain.types) or "none but object"
            raise self.error(word, f"no type '{parameter.type}'", f"(:types ...) declares {known}")
        return parameter

    def constants(self, part: Formula) -> None:
        for constant in self.typed(part[1:]):
            self.domain.constants[constant.name] = self.known_type(constant, part).type

    def predicates(self, part: Formula) -> None:
        for predicate in part[1:]:
            if not isinstance(predicate, tuple) or not predicate or not isinstance(predicate[0], str):
                raise self.error(predicate, "a predicate such as (at ?x) belongs here")
            self.domain.predicates[self.name(predicate[0])] = tuple(self.typed(predicate[1:], wide=True))

    def action(self, part: Formula) -> Action:
        if len(part) < 2 or not isinstance(part[1], str):
            raise self.error(part, "an action needs a name")
        if part[1].startswith("?"):
            raise self.error(part[1], f"{part[1]} is a variable's name, not an action's")
        fields: dict[str, Formula] = {}
        for key, value in zip(part[2::2], part[3::2]):
            if not isinstance(key, str) or key.lower() not in (":parameters", ":precondition", ":effect"):
                known = ":parameters, :precondition and :effect"
                raise self.error(key, f"unknown part of action {part[1]}", f"known are {known}")
            if not isinstance(value, tuple):
                raise self.error(value, f"an expression in parentheses belongs after {key}")
            fields[key.lower()] = value
        if len(part) % 2:
            raise self.error(part[-1], f"nothing follows this in action {part[1]}")
        listed = fields.get(":parameters", ())
        parameters = tuple(self.known_type(p, listed) for p in self.variables(listed))
        names = [p.name for p in parameters]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            raise self.error(listed, f"parameter {twice} of action {part[1]} is declared twice")
        precondition = self.condition(fields.get(":precondition", ()), names)
        effects = tuple(self.effects(fields.get(":effect", ()), (), ALWAYS, names))
        return Action(self.name(part[1]), parameters, precondition, effects)

    def variables(self, listed: Formula) -> list[Parameter]:
        parameters = self.typed(listed)
        for word, parameter in zip((w for w in listed if str(w).startswith("?")), parameters):
            if not parameter.name.startswith("?"):
                raise self.error(word, f"a variable begins with '?', unlike {parameter.name}")
        wrong = next((p.name for p in parameters if not p.name.startswith("?")), None)
        if wrong:
            raise self.error(listed, f"a variable begins with '?', unlike {wrong}")
        return parameters

    def condition(self, part: Formula | str, scope: list[str]) -> Formula:
        """A condition in lower case, its names checked; () is (and)."""
        if part == ():
            return ALWAYS
        if not isinstance(part, tuple) or not isinstance(part[0], str):
            raise self.error(part, "a condition such as (at ?x) belongs here")
        head = part[0].lower()
        if head in _NUMERIC_CONDITIONS:
            hint = "state it as a predicate, or leave it out and let the environment check it"
            raise self.error(part, "numeric conditions are not supported", hint)
        if head == "preference":
            raise self.error(part, "preferences are not supported", "leave them out, as they forbid nothing")
        if head in ("and", "or"):
            return (head, *(self.condition(p, scope) for p in part[1:]))
        if head in ("not", "imply"):
            if len(part) != (2 if head == "not" else 3):
                raise self.error(part, f"({head} ...) has {len(part) - 1} conditions")
            return (head, *(self.condition(p, scope) for p in part[1:]))
        if head in ("exists", "forall"):
            if len(part) != 3 or not isinstance(part[1], tuple):
                raise self.error(part, f"({head} ...) needs a list of variables and one condition")
            declared = [self.known_type(p, part[1]) for p in self.variables(part[1])]
            inner = self.condition(part[2], scope + [p.name for p in declared])
            return (head, tuple(w for p in declared for w in (p.name, "-", p.type)), inner)
        literal = self.literal(part, scope)
        return (literal.predicate, *literal.terms)

    def literal(self, part: Formula, scope: list[str]) -> Literal:
        if not part or not isinstance(part[0], str):
            raise self.error(part, "a predicate such as (at ?x) belongs here")
        head, *terms = part
        predicate = head.lower()
        inner = next((t for t in terms if isinstance(t, tuple)), None)
        if inner is not None:
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
        return Literal(predicate, tuple(self.name(t) for t in terms))

    def effects(self, part, variables: tuple, condition: Formula, scope: list[str]) -> Iterator[Effect]:
        if part == ():
            return
        if not isinstance(part, tuple) or not isinstance(part[0], str):
            raise self.error(part, "an effect such as (at ?x) belongs here")
        head = part[0].lower()
        if head in _NUMERIC_EFFECTS:
            return
        if head == "and":
            for inner in part[1:]:
                yield from self.effects(inner, variables, condition, scope)
        elif head == "forall" and len(part) == 3 and isinstance(part[1], tuple):
            declared = tuple(self.known_type(p, part[1]) for p in self.variables(part[1]))
            yield from self.effects(part[2], variables + declared, condition, scope + [p.name for p in declared])
        elif head == "when" and len(part) == 3:
            yield from self.effects(part[2], variables, _both(condition, self.condition(part[1], scope)), scope)
        elif head in ("forall", "when", "or", "oneof", "imply", "exists", "probabilistic"):
            raise self.error(part, f"({head} ...) is no effect", "use and, not, when and forall")
        elif head == "not" and len(part) == 2 and isinstance(part[1], tuple) and part[1]:
            yield Effect(self.literal(part[1], scope).negated, variables, condition)
        else:
            literal = self.literal(part, scope)
            if literal.predicate == "=":
                raise self.error(part, "equality is no effect")
            yield Effect(literal, variables, condition)


def _both(first: Formula, second: Formula) -> Formula:
    return second if first == ALWAYS else first if second == ALWAYS else ("and", first, second)


def _words(part: Formula | str) -> Iterator[Word]:
    if isinstance(part, Word):
        yield part
    elif isinstance(part, tuple):
        for inner in part:
            yield from _words(inner)


MAX_CHARACTERS = 4_000_000  # the largest game file of ALFWorld has 104,757
MAX_DEPTH = 60  # ALFWorld's goals nest nine deep

_TOKEN = re.compile(r";[^\n]*|[()]|[^\s,();]+")


class Word(str):
    """A word that knows where it stands: `at` characters from the beginning of its text."""

    at: int

    def __new__(cls, text: str, at: int):
        word = super().__new__(cls, text)
        word.at = at
        return word


def read_expression(text: str, what: str, *, places: bool = False, source: str | None = None) -> Formula:
    """Read the first parenthesised expression.

    Parameters
    ----------
    text : str
    what : str
        What the text is, for messages: "the PDDL problem".
    places : bool
        Make the words `Word`s, which takes longer.
    source : str, optional
        The file's name, for messages.

    Raises
    ------
    PddlError
        The text is too long, too deep, empty, ends too early or closes too much.
    """
    if len(text) > MAX_CHARACTERS:
        raise PddlError(
            f"{what} has {len(text):,} characters, more than {MAX_CHARACTERS:,}",
            hint="give one problem or domain, not several joined",
        )
    stack: list[tuple[list, int]] = []
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token[0] == ";":
            continue
        if token == "(":
            stack.append(([], match.start()))
            if len(stack) > MAX_DEPTH:
                raise error_at(text, match.start(), f"{what} nests deeper than {MAX_DEPTH}", source=source)
        elif token == ")":
            if not stack:
                raise error_at(text, match.start(), f"{what} closes what was never opened", source=source)
            done = tuple(stack.pop()[0])
            if not stack:
                return done
            stack[-1][0].append(done)
        elif stack:
            stack[-1][0].append(Word(token, match.start()) if places else token)
        else:
            message = f"{what} begins with {token[:40]!r} instead of a parenthesis"
            raise error_at(text, match.start(), message, source=source)
    if not stack:
        raise PddlError(f"{what} is empty", hint="it reads (define ...)")
    opened, start = stack[-1]
    name = f"({opened[0]} ..." if opened and isinstance(opened[0], str) else "("
    line = text.count("\n", 0, start) + 1
    message = f"{what} ends inside {name} opened on line {line}"
    raise error_at(text, start, message, "a closing parenthesis is missing, or the file is cut short", source)


def error_at(text: str, at: int, message: str, hint: str | None = None, source: str | None = None) -> PddlError:
    """A PddlError at a place of the text, with the line and a caret."""
    line = text.count("\n", 0, at) + 1
    begin = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    shown = text[begin : end if end >= 0 else None].replace("\t", " ")[:200]
    column = at - begin + 1
    context = f"{shown}\n{' ' * (column - 1)}^" if column <= len(shown) + 1 else ""
    return PddlError(message, line=line, column=column, context=context, hint=hint, source=source)


def read_problem(text: str) -> Problem:
    """Read a PDDL problem.

    Raises
    ------
    GameError
        When the text is too long, ends inside a parenthesis, or lacks objects,
        initial facts or a goal; the message names the section or the line.
    """
    define = read_expression(text, "the PDDL problem")
    if not define or define[0] != "define":
        raise GameError(
            "the PDDL problem doesn't begin with (define (problem ...",
            hint="a game file holds the problem under its key 'pddl_problem'",
        )
    sections = {part[0]: part[1:] for part in define[1:] if isinstance(part, tuple) and part}
    for name in (":objects", ":init", ":goal"):
        if not sections.get(name):
            raise GameError(
                f"the PDDL problem has no ({name} ...)",
                hint="the file may be cut short; fetch it again",
            )
    goal = sections[":goal"][0]
    if not isinstance(goal, tuple) or not goal:
        raise GameError(f"the goal {goal!r} is not a formula", hint="write it as (and ...)")
    return Problem(dict(typed_names(sections[":objects"])), _read_init(sections[":init"]), goal)


def _read_init(facts: Formula) -> tuple[tuple[str, ...], ...]:
    kept = []
    for fact in facts:
        if not isinstance(fact, tuple) or not fact:
            raise GameError(f"(:init ...) holds {fact!r} where a fact (predicate argument ...) belongs")
        # A numeric fluent, (= (distance a b) 3), says nothing about the state.
        if all(isinstance(part, str) for part in fact):
            kept.append(fact)
    return tuple(kept)  # type: ignore[arg-type]

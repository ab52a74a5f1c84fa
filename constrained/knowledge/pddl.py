"""`import_pddl`: turn a planning domain into action knowledge, a `.lark` file with its physics in `//:` lines.

Each action of the domain becomes a rule with its command; the lines above say what it needs and makes. The grammar lets
any action follow any other: the facts decide which of them are possible.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from constrained.errors import PddlError, SourceError
from constrained.knowledge.action_knowledge import ActionKnowledge
from constrained.planning.model import (
    ALWAYS,
    NEVER,
    ROOT,
    Action,
    Condition,
    Domain,
    Effect,
    Junction,
    Literal,
    Parameter,
    Quantified,
    conjuncts,
    parts_in,
)
from constrained.planning.parser import read_domain
from constrained.planning.query import NOTHING
from constrained.planning.wording import Command, commands, condition_words, effect_words, squeezed

_NAME = re.compile(r"[A-Za-z_][\w-]*")
_TAKEN = ("not", "some", "every", "one", "at-most-one")
"""Keywords of `//:` lines that could be taken for a name."""


@dataclass
class ImportedDomain:
    """A planning domain as action knowledge.

    Attributes
    ----------
    domain : Domain
    text : str
        The `.lark` file.
    origins : list of str
        Line of the text -> what of the domain it is about, a key of `Domain.places`; "": nothing alone.
    """

    domain: Domain
    text: str
    origins: list[str] = field(default_factory=list)

    def knowledge(self) -> ActionKnowledge:
        """The file, loaded.

        Raises
        ------
        PddlError
            It is refused; with the place in the domain.
        """
        try:
            knowledge = ActionKnowledge.from_lark(self.text)
        except SourceError as error:
            origin = self.origins[error.line - 1] if error.line and error.line <= len(self.origins) else ""
            place = self.domain.places.get(origin, {"source": self.domain.name})
            words = f"{origin}: {error.problem}" if origin else error.problem
            raise PddlError(words, error.hint, **place) from None
        knowledge.name = self.domain.name
        assert knowledge.world is not None
        knowledge.world.domain.title = self.domain.title
        return knowledge


def import_pddl(text: str, *, texts: Mapping[str, str] = NOTHING, source: str = "domain") -> ImportedDomain:
    """Turn a PDDL domain into action knowledge.

    Parameters
    ----------
    text : str
        The domain.
    texts : mapping of str to str, optional
        Action -> its command, such as ``"go to {r}"``; by default, its name and parameters.
    source : str
        The file's name, for messages.

    Raises
    ------
    PddlError
        The domain doesn't parse, contains something that isn't supported, or a name that a `.lark` file can't have.
    """
    domain = read_domain(text, source)
    lines = list(_Writer(domain, commands(domain, texts)).write(source))
    return ImportedDomain(domain, "\n".join([*(line for line, _ in lines), ""]), [origin for _, origin in lines])


_Line = tuple[str, str]
"""A line of a file, and what of the domain it is about: a key of `Domain.places`, or ""."""


class _Writer:
    """Writes a domain as a `.lark` file; `written`: action -> its command."""

    def __init__(self, domain: Domain, written: Mapping[str, Command]):
        self.domain, self.written = domain, written
        self.slots = self._slots()
        self.rules: dict[str, str] = {}
        for action in domain.actions:
            self.rules[action.name] = _unused(_snake(domain.spell(action.name)), {"start", *self.rules.values()})

    def write(self, source: str) -> Iterator[_Line]:
        # The parts of the file in order: heading, slots, types with facts and objects, start rule, actions.
        used = dict.fromkeys(p.type for action in self.domain.actions for p in action.parameters)
        slots = {self.slots[kind]: kind for kind in used}
        width = max(map(len, [*slots, "_STEP"]))
        calls = [self._call(a.name, [self.slots[p.type] for p in a.parameters]) for a in self.domain.actions]
        heading = [
            f"// The actions of the planning domain {self.domain.name}, imported from {source}.",
            "// Lines that begin with //: say what actions need and make; a problem's facts decide which are possible.",
            "",
            f"%declare {'_STEP':<{width}} // ends one action: there the environment answers",
            *(f"%declare {slot:<{width}} // every {self.domain.spell(kind)}" for slot, kind in slots.items()),
            "",
        ]
        reach = [
            "",
            f"// Reach the goal with the actions of {self.domain.name}, one after another; each has to be possible "
            "where it comes.",
            "start:",
            *(f"    | {call}" for call in calls),
        ]
        yield from ((line, "") for line in heading)
        yield from self._declarations()
        yield from ((line, "") for line in reach)
        for action in self.domain.actions:
            yield from ((line, f"action {action.name}") for line in self._action(action))

    # declarations

    def _slots(self) -> dict[str, str]:
        """Type -> the slot that is named after it."""
        slots: dict[str, str] = {}
        for kind in (ROOT, *self.domain.types):
            slot = re.sub(r"[^A-Z0-9]+", "_", self.domain.spell(kind).upper()).strip("_")
            if squeezed(slot) != squeezed(kind) or not slot[:1].isalpha() or slot in slots.values():
                raise PddlError(
                    f"no slot can be named after the type {self.domain.spell(kind)}",
                    "give it a name of letters from a to z, digits and hyphens, that no other type has",
                    **self.domain.places.get(f"type {kind}", {}),
                )
            slots[kind] = slot
        return slots

    def _declarations(self) -> Iterator[_Line]:
        domain = self.domain
        by_parent: dict[str, list[str]] = {}
        for kind, parent in domain.types.items():
            by_parent.setdefault(parent, []).append(kind)
        for parent, kinds in by_parent.items():
            listed = ", ".join(self._name(kind, "type") for kind in kinds)
            yield f"//: type {listed}" + ("" if parent == ROOT else f": {self._name(parent)}"), f"type {kinds[0]}"
        for predicate, kinds in self._argument_types().items():
            arguments = f"({', '.join(map(self._name, kinds))})" if kinds else ""
            yield f"//: fact {self._name(predicate, 'predicate')}{arguments}", f"predicate {predicate}"
        constants: dict[str, list[str]] = {}
        for name in dict.fromkeys([*domain.constants, *domain.undeclared]):
            constants.setdefault(domain.constants.get(name, ROOT), []).append(name)
        for kind, names in constants.items():
            listed = ", ".join(map(self._object, names))
            yield f"//: object {listed}" + ("" if kind == ROOT else f": {self._name(kind)}"), f"object {names[0]}"

    def _argument_types(self) -> dict[str, list[str]]:
        """Predicate -> the types of its arguments, widened where conditions and effects use other types."""
        domain = self.domain
        widened = {name: [p.type for p in arguments] for name, arguments in domain.predicates.items()}

        def note(condition: Condition, types: Mapping[str, str]) -> None:
            match condition:
                case Literal():
                    kinds = widened.get(condition.predicate, [])
                    for number, (kind, term) in enumerate(zip(kinds, condition.terms)):
                        # The narrowest type that holds both what is declared and what is used here.
                        narrow = types.get(term) or domain.constants.get(term, ROOT)
                        kinds[number] = next(wide for wide in domain.wider(kind) if domain.is_subtype(narrow, wide))
                case Junction():
                    for part in condition.parts:
                        note(part, types)
                case Quantified():
                    note(condition.part, {**types, **_types(condition.variables)})

        # Every condition and effect, each with the types of the variables around it.
        for action in domain.actions:
            types = _types(action.parameters)
            note(action.precondition, types)
            for effect in action.effects:
                inner = {**types, **_types(effect.variables)}
                note(effect.condition, inner)
                note(effect.literal, inner)
        return widened

    # actions

    def _action(self, action: Action) -> list[str]:
        domain, rule = self.domain, self.rules[action.name]
        names = self._variables(action)
        needs = ", ".join(self._condition(part, names) for part in conjuncts(action.precondition))
        makes = ", ".join(self._effects(action.effects, names))
        condition = condition_words(action.precondition, domain)
        words = f"{effect_words(action, domain) or 'changes nothing'}" + (f"; needs {condition}" if condition else "")
        lines = ["", f"// {rule}: {words}."]
        if rule != domain.spell(action.name):
            lines.append(f"//: action {self._name(action.name, 'action')}")
        lines += [f"//: needs {needs}"] if needs else []
        lines += [f"//: makes {makes}"] if makes else []
        text = " ".join(names[p] if p.startswith("?") else _quoted(p) for p in self.written[action.name])
        head = self._call(action.name, [names[p.name] for p in action.parameters])
        return [*lines, f"{head}: {text} _STEP start"]

    def _call(self, action: str, arguments: Sequence[str]) -> str:
        return f"{self.rules[action]}{{{', '.join(arguments)}}}" if arguments else self.rules[action]

    def _variables(self, action: Action) -> dict[str, str]:
        """Variable -> its name in the file, different from those of objects, rules and other variables."""
        variables = [p.name for p in action.parameters]
        parts = (part for condition in action.conditions for part in parts_in(condition))
        variables += [v.name for part in parts if isinstance(part, Quantified) for v in part.variables]
        variables += [v.name for effect in action.effects for v in effect.variables]
        taken = {*self.domain.constants, *self.domain.undeclared, *self.rules.values(), "start", *_TAKEN}
        names: dict[str, str] = {}
        for variable in dict.fromkeys(variables):
            names[variable] = _unused(_snake(variable), taken)
            taken.add(names[variable])
        return names

    # conditions and effects

    def _condition(self, condition: Condition, names: Mapping[str, str]) -> str:
        match condition:
            case Literal("=", terms, positive):
                return (" = " if positive else " != ").join(self._term(term, names) for term in terms)
            case Literal(predicate, terms, positive):
                arguments = f"({', '.join(self._term(term, names) for term in terms)})" if terms else ""
                return f"{'' if positive else 'not '}{self._name(predicate, 'predicate')}{arguments}"
            case Junction(operator, parts) if parts:
                join = ", " if operator == "and" else " or "
                return f"({join.join(self._condition(part, names) for part in parts)})"
            case Quantified(quantifier, variables, part):
                inner = ", ".join(self._condition(p, names) for p in conjuncts(part))
                return f"{quantifier} {self._listed(variables, names)} ({inner})"
        assert condition == NEVER  # the others have parts, see `simplified`
        nothing = _unused("nothing", names.values())
        return f"some {nothing}: {ROOT} ({nothing} != {nothing})"

    def _listed(self, variables: Iterable[Parameter], names: Mapping[str, str]) -> str:
        return ", ".join(f"{names[v.name]}: {self._name(v.type)}" for v in variables)

    def _effects(self, effects: Iterable[Effect], names: Mapping[str, str]) -> Iterator[str]:
        for effect in effects:
            change = self._condition(effect.literal, names)
            if effect.condition != ALWAYS:
                change += f" if {self._condition(effect.condition, names)}"
            yield f"every {self._listed(effect.variables, names)} ({change})" if effect.variables else change

    def _term(self, term: str, names: Mapping[str, str]) -> str:
        return names[term] if term.startswith("?") else self._object(term)

    def _object(self, name: str) -> str:
        spelled = self.domain.spell(name)
        return spelled if _NAME.fullmatch(spelled) and name not in _TAKEN else _quoted(spelled)

    def _name(self, name: str, kind: str = "type") -> str:
        """The name of something declared as a `kind`."""
        spelled = self.domain.spell(name)
        if not _NAME.fullmatch(spelled) or name in _TAKEN:
            place = self.domain.places.get(f"{kind} {name}", {})
            raise PddlError(
                f"{spelled} can't be a name in a `//:` line", "rename it: letters, digits, _ and -", **place
            )
        return spelled


def _types(variables: Iterable[Parameter]) -> dict[str, str]:
    return {v.name: v.type for v in variables}


def _snake(name: str) -> str:
    """A name in the form of a rule's name: lower case, with underscores."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.lstrip("?"))
    name = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return name if name[:1].isalpha() else f"a_{name}".rstrip("_")


def _unused(name: str, taken: Iterable[str]) -> str:
    return next(new for i in count(1) if (new := name if i == 1 else f"{name}_{i}") not in taken)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

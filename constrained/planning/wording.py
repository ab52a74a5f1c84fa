"""How actions, conditions and effects are written: commands, and words for comments and messages.

A command is an action's name and parameters, or comes from a file of texts: TextWorld's logic (`alfred.twl2`: ``action
GotoLocation { template :: "go to {r}"; ...``), or lines ``GotoLocation = go to {r}``, with parameters in braces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from constrained.errors import PddlError
from constrained.planning.facts import Fact
from constrained.planning.model import (
    Action,
    Condition,
    Domain,
    Effect,
    Junction,
    Literal,
    Parameter,
    Quantified,
    renamed,
)
from constrained.planning.query import NOTHING
from constrained.planning.task import PlanningTask

Command = tuple[str, ...]
"""The pieces of a command: texts, and variables ("?r")."""

_TEMPLATE = re.compile(r'action\s+([\w-]+)\s*\{\s*template\s*::\s*"((?:[^"\\]|\\.)*)"')
_LISTED = re.compile(r"\[\{\s*([\w.-]+)\s*\|[^{}]*\}\]")  # [{r.name | condition}] stands for one of them
_PARAMETER = re.compile(r"\{\s*\??([\w-]+)(?:\.\w+)?\s*\}")
_LINE = re.compile(r"([\w-]+)\s*[=:]\s*(\S.*?)\s*")


def read_texts(text: str, source: str = "texts") -> dict[str, str]:
    """Read the texts of commands from a file's content: action -> text.

    Raises
    ------
    PddlError
        A line is neither a comment nor ``NAME = TEXT``.
    """
    found = dict(_TEMPLATE.findall(text))
    if found:
        return found
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith(("#", ";", "//")):
            continue
        match = _LINE.fullmatch(line)
        if not match:
            hint = "write one action a line, such as: GotoLocation = go to {r}"
            raise PddlError(f"{source}, line {number}: {line[:60]!r} is not a command text", hint)
        found[match[1]] = match[2]
    return found


def commands(domain: Domain, texts: Mapping[str, str] = NOTHING) -> dict[str, Command]:
    """The command of each action: from its text if there is one, else its name and parameters.

    Raises
    ------
    PddlError
        A text names a parameter that its action doesn't have, or writes nothing.
    """
    given = {name.lower(): text for name, text in texts.items()}
    return {
        a.name: _from_text(a, given[a.name], domain) if a.name in given else tuple(_from_name(a, domain))
        for a in domain.actions
    }


def written(command: Command, values: Mapping[str, str]) -> str:
    """A command with the values of its variables."""
    return "".join(values[piece] if piece.startswith("?") else piece for piece in command)


def readings(command: Command, text: str, names: Collection[str]) -> Iterator[dict[str, str]]:
    """The values of a command's variables, names in lower case, with which the command is written as `text`.

    Each piece is tried at each position of the text only once, so the time is bounded by the text's length.
    """
    lengths = sorted({len(name) for name in names}, reverse=True)
    lower, dead = text.lower(), set()

    def read(number: int, at: int, values: dict[str, str]) -> Iterator[dict[str, str]]:
        if number == len(command):
            if at == len(text):
                yield values
            return
        if (number, at) in dead:
            return
        # Where this piece may end: after its text, after the value it already has, or after any known name.
        matched, piece = False, command[number]
        if not piece.startswith("?"):
            ends = [at + len(piece)] if text.startswith(piece, at) else []
        else:
            value = values.get(piece)
            if value is None:
                ends = [at + length for length in lengths if lower[at : at + length] in names]
            else:
                ends = [at + len(value)] if lower.startswith(value, at) else []
        for end in ends:
            inner = values if not piece.startswith("?") else {**values, piece: lower[at:end]}
            for reading in read(number + 1, end, inner):
                matched = True
                yield reading
        # A dead end is one for all values of the earlier variables, unless a variable occurs twice.
        if not matched and len(set(command)) == len(command):
            dead.add((number, at))

    return read(0, 0, {})


def _from_name(action: Action, domain: Domain) -> Iterator[str]:
    name = domain.spelling[action.name]
    yield f"{name} " if action.parameters else name
    for i, parameter in enumerate(action.parameters):
        if i:
            yield " "
        yield parameter.name


def _from_text(action: Action, text: str, domain: Domain) -> Command:
    name = domain.spelling[action.name]
    known = {p.name for p in action.parameters}
    parts = _PARAMETER.split(_LISTED.sub(r"{\1}", text))
    for i in range(1, len(parts), 2):
        parts[i] = f"?{parts[i].lower()}"
        if parts[i] not in known:
            hint = f"its parameters are {', '.join(p.lstrip('?') for p in sorted(known)) or 'none'}"
            raise PddlError(f"the text of {name} names {{{parts[i][1:]}}}, which is not one of its parameters", hint)
    literal = "".join(parts[::2])
    if not literal.strip() or "\n" in literal or "{" in literal or "}" in literal:
        hint = "write words with parameters in braces, such as: go to {r}"
        raise PddlError(f"the text of {name} is not a command: {text!r}", hint)
    return tuple(part for part in parts if part)


def condition_words(condition: Condition, domain: Domain | PlanningTask) -> str:
    """A condition in words: "openable r and not opened r"; "" if it always holds."""
    match condition:
        case Literal("=", terms, positive):
            return (" is " if positive else " is not ").join(spelled_term(term, domain) for term in terms)
        case Literal(predicate, terms, positive):
            return ("" if positive else "not ") + " ".join(
                [domain.spell(predicate), *(spelled_term(term, domain) for term in terms)]
            )
        case Junction(operator, parts):
            worded = [(part, words) for part in parts if (words := condition_words(part, domain))]
            if len(worded) == 1:
                return worded[0][1]
            return f" {operator} ".join(f"({w})" if _is_list(p, operator) else w for p, w in worded)
        case Quantified(quantifier, variables, Literal() as part) if _any(quantifier, variables, part):
            word = "anything" if quantifier == "every" else "something"
            return condition_words(renamed(part, dict.fromkeys((v.name for v in variables), word)), domain)
        case Quantified(quantifier, variables, part):
            names = " ".join(spelled_term(v.name, domain) for v in variables)
            return f"{quantifier} {names} with ({condition_words(part, domain)})"


def _any(quantifier: str, variables: Collection[Parameter], part: Literal) -> bool:
    """Whether a condition says "not held anything" or "held something": what `*` in a world's file stands for."""
    return part.positive == (quantifier == "some") and {v.name for v in variables} <= set(part.terms)


def _is_list(condition: Condition, within: str) -> bool:
    """Whether a condition's words are joined by another operator than the list around them."""
    return isinstance(condition, Junction) and condition.operator != within and len(condition.parts) > 1


def effect_words(action: Action, domain: Domain) -> str:
    """What an action changes, in words."""
    return " and ".join(_effect(effect, domain) for effect in action.effects)


def _effect(effect: Effect, domain: Domain) -> str:
    words = condition_words(effect.literal, domain)
    if effect.variables:
        words += f" for every {' '.join(spelled_term(v.name, domain) for v in effect.variables)}"
    condition = condition_words(effect.condition, domain)
    return f"{words} if {condition}" if condition else words


def spelled_term(term: str, domain: Domain | PlanningTask) -> str:
    """A variable or constant in the spelling of the file, without its question mark."""
    return domain.spell(term).lstrip("?")


def fact_lines(
    domain: Domain, objects: Mapping[str, str], facts: Iterable[Fact], spell: Callable[[str], str]
) -> Iterator[str]:
    """The objects by type, then a line for each predicate: "in: mug 1, shelf 2; pen 3, desk 1"."""
    by_type: dict[str, list[str]] = {}
    for name, kind in objects.items():
        by_type.setdefault(kind, []).append(spell(name))
    listed = "; ".join(f"{domain.spell(kind)}: {', '.join(names)}" for kind, names in by_type.items())
    yield f"There is: {listed}."
    by_predicate: dict[str, list[str]] = {}
    for predicate, *terms in facts:
        by_predicate.setdefault(predicate, []).append(", ".join(map(spell, terms)))
    for predicate in domain.predicates:
        if texts := by_predicate.get(predicate):
            yield f"{domain.spell(predicate)}: {'; '.join(texts)}" if texts != [""] else domain.spell(predicate)


def squeezed(name: str) -> str:
    """A name in lower case without spaces, hyphens and underscores: the slot COFFEE_MACHINE matches coffee-machine."""
    return re.sub(r"[\s_-]", "", name).lower()

"""How actions are written: the command of each, from its name or from a file of texts.

A file is TextWorld's logic (`alfred.twl2`: ``action GotoLocation { template :: "go to {r}"; ...``)
or lines ``GotoLocation = go to {r}``. What stands in braces is a parameter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from constrained.errors import PddlError
from constrained.knowledge.pddl.model import Action, Domain, Effect, Formula, typed_names

Command = tuple[str, ...]
"""Pieces of text and variables ("?r"), in turns."""

_TEMPLATE = re.compile(r'action\s+([\w-]+)\s*\{\s*template\s*::\s*"((?:[^"\\]|\\.)*)"')
_LISTED = re.compile(r"\[\{\s*([\w.-]+)\s*\|[^{}]*\}\]")  # [{r.name | condition}]: one of them is meant
_PARAMETER = re.compile(r"\{\s*\??([\w-]+)(?:\.\w+)?\s*\}")
_LINE = re.compile(r"([\w-]+)\s*[=:]\s*(\S.*?)\s*")


def read_texts(text: str, source: str = "texts") -> dict[str, str]:
    """Action -> the text of its command, from a file's content.

    Raises
    ------
    PddlError
        A line that is neither a comment nor ``NAME = TEXT``.
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
            raise PddlError(f"{source}, line {number}: {line[:60]!r} is no command text", hint)
        found[match[1]] = match[2]
    return found


def commands(domain: Domain, texts: Mapping[str, str] = {}) -> dict[str, Command]:
    """The command of each action: its text if there is one, else its name and parameters.

    Raises
    ------
    PddlError
        A text names a parameter that its action doesn't have, or writes nothing.
    """
    given = {name.lower(): text for name, text in texts.items()}
    return {a.name: _pieces(a, given[a.name], domain) if a.name in given else _plain(a, domain) for a in domain.actions}


def _plain(action: Action, domain: Domain) -> Command:
    name = domain.spelling[action.name]
    if not action.parameters:
        return (name,)
    first, *others = (p.name for p in action.parameters)
    return (f"{name} ", first, *(piece for other in others for piece in (" ", other)))


def _pieces(action: Action, text: str, domain: Domain) -> Command:
    name = domain.spelling[action.name]
    known = {p.name for p in action.parameters}
    parts = _PARAMETER.split(_LISTED.sub(r"{\1}", text))
    for i in range(1, len(parts), 2):
        parts[i] = f"?{parts[i].lower()}"
        if parts[i] not in known:
            hint = f"its parameters are {', '.join(p.lstrip('?') for p in sorted(known)) or 'none'}"
            raise PddlError(f"the text of {name} names {{{parts[i][1:]}}}, which is no parameter of it", hint)
    literal = "".join(parts[::2])
    if not literal.strip() or "\n" in literal or "{" in literal or "}" in literal:
        hint = "write words with parameters in braces, such as: go to {r}"
        raise PddlError(f"the text of {name} is no command: {text!r}", hint)
    return tuple(part for part in parts if part)


def condition_words(formula: Formula, domain: Domain) -> str:
    """A condition in words: "openable r and not opened r"; "" if it asks for nothing."""
    head, *parts = formula
    if head in ("and", "or"):
        found = [(p, w) for p in parts if (w := condition_words(p, domain))]
        if len(found) == 1:
            return found[0][1]
        return f" {head} ".join(f"({w})" if p[0] != head and _joined(p) else w for p, w in found)
    if head == "not" and parts[0][0] == "=":
        return " is not ".join(plain(term, domain) for term in parts[0][1:])
    if head == "not":
        words = condition_words(parts[0], domain)
        return f"not ({words})" if _joined(parts[0]) else f"not {words}"
    if head == "imply":
        left, right = (condition_words(p, domain) for p in parts)
        return f"if {left} then {right}"
    if head in ("exists", "forall"):
        names = " ".join(plain(name, domain) for name, _ in typed_names(parts[0]))
        return f"{'some' if head == 'exists' else 'every'} {names} with ({condition_words(parts[1], domain)})"
    if head == "=":
        return f"{plain(parts[0], domain)} is {plain(parts[1], domain)}"
    return " ".join([domain.spelling.get(head, head), *(plain(t, domain) for t in parts)])


def effect_words(action: Action, domain: Domain) -> str:
    """What an action changes, in words."""
    return " and ".join(_effect(effect, domain) for effect in action.effects)


def _effect(effect: Effect, domain: Domain) -> str:
    literal = effect.literal
    fact = (literal.predicate, *literal.terms)
    words = condition_words(fact if literal.positive else ("not", fact), domain)
    if effect.variables:
        words += f" for every {' '.join(plain(v.name, domain) for v in effect.variables)}"
    condition = condition_words(effect.condition, domain)
    return f"{words} if {condition}" if condition else words


def plain(term: str, domain: Domain) -> str:
    """A variable or constant as the file spells it, without its question mark."""
    return domain.spelling.get(term, term).lstrip("?")


def _joined(formula: Formula) -> bool:
    return formula[0] in ("and", "or", "imply") and len(formula) > 2

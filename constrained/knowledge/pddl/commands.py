"""How actions are written: the command of each, from its name or from a file of texts.

A file is TextWorld's logic (`alfred.twl2`: ``action GotoLocation { template :: "go to {r}"; ...``)
or lines ``GotoLocation = go to {r}``. What stands in braces is a parameter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from constrained.errors import PddlError
from constrained.knowledge.pddl.domain import Action, Domain

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

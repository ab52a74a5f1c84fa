"""The actions of a `.lark` file without their order, for a draft that gives them another one (KnowAgent, Table 4).

Two forms of files can lend theirs: actions that are written as a draft writes them, "Name[argument]" with free
text; and actions with slots, each of which may come first and after every other one: nothing is said of their order::

    start: | goto{RECEPTACLE} | take{OBJECT, REACH}

    // take: take OBJECT from RECEPTACLE.
    take{o, r}: "take " o " from " r _STEP start
"""

from __future__ import annotations

import re
from pathlib import Path

from constrained.errors import ConstrainedError
from constrained.grammar import read_source
from constrained.knowledge.action_knowledge import ActionKnowledge
from constrained.knowledge.draft import DraftAction, Given
from constrained.knowledge.path_state import START

COMMAND = re.compile(r"(?:\w+: )?(?P<command>(?P<name>\w+)(?:\[(?P<arguments>[^\]]*)\])?) (?P<definition>.+)")
"""The comment of an action that is written as a draft writes it."""

_DECLARED = re.compile(r"(?m)^%declare (?!_STEP\b).+$")
_STARTS = re.compile(rf"(?m)^{START}: \| (.+)$")
_CALL = re.compile(r"(?P<rule>\w+)(?:\{[\w, ]*\})?")
_RULE = re.compile(rf"(?m)^(?P<written>(?P<rule>\w+)(?:\{{[\w, ]*\}})?: .+) _STEP {START}$")


def lent_actions(text_or_path: str | Path) -> Given:
    """The actions of a shipped name, a `.lark` file, or its text.

    Raises ConstrainedError: the file can't be read, or has neither form.
    """
    knowledge = ActionKnowledge.from_lark(text_or_path)
    found = _named(knowledge) or _with_slots(knowledge, read_source(text_or_path).text)
    if found is None:
        raise ConstrainedError(
            f"{knowledge.name} can't lend its actions to a draft: they aren't of the form Name[argument], nor may each "
            f"follow every other",
            "use knowledge whose actions are written so, such as hotpotqa",
        )
    return found


def _named(knowledge: ActionKnowledge) -> Given | None:
    """Actions of the form "Name[argument]"; None if there are others."""
    result = []
    for text in knowledge.actions.values():
        match = COMMAND.fullmatch(text)
        if match is None or knowledge.slots:
            return None
        arguments = tuple(match["arguments"].split(", ")) if match["arguments"] else ()
        result.append(DraftAction(match["name"], arguments, _capital(match["definition"])))
    return Given(result)


def _with_slots(knowledge: ActionKnowledge, text: str) -> Given | None:
    """Actions with slots that may come in any order; None if the file restricts the order, or has other rules."""
    starts, rules = _STARTS.search(text), {match["rule"]: match["written"] for match in _RULE.finditer(text)}
    calls = starts[1].split(" | ") if starts else []
    named = [match["rule"] for call in calls if (match := _CALL.fullmatch(call))]
    if not calls or sorted(named) != sorted(rules) or set(rules) != set(knowledge.actions):
        return None
    result = []
    for call, rule in zip(calls, named):
        definition = knowledge.actions[rule].removeprefix(f"{rule}: ")
        name = "".join(part.capitalize() for part in rule.split("_"))
        result.append(DraftAction(name, (), _capital(definition), written=rules[rule], called=call))
    return Given(result, tuple(_DECLARED.findall(text)), open_end=True)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]

"""The user's words, kept apart from facts: what a policy knows only because somebody said it.

A result of a tool tells a fact. A text of the user's tells only that they said so; whether it is a clear yes is a guess
by its words, which a program may replace by a function of its own.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import replace

from constrained.errors import KnowledgeError
from constrained.knowledge.lines.expression import Expression, Function
from constrained.knowledge.lines.forms import Name
from constrained.knowledge.tool_policy import Policy
from constrained.knowledge.tool_policy.policy import root

SaysYes = Callable[[str, str], bool]
"""``f(said, heard)``: whether `heard` agrees to what the assistant said."""

YES = "yes "
"""The name in a memory that holds what such a function answered; no policy can name it."""

_YES = re.compile(r"\byes\b", re.IGNORECASE)


def agrees(says_yes: SaysYes, said: str, heard: str) -> bool:
    """Ask such a function. Raises KnowledgeError: what it returns is no answer yet, and would pass for a yes."""
    answer = says_yes(said, heard)
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise KnowledgeError("says_yes is async, so its answer would always pass for a yes", "give a plain function")
    return bool(answer)


def names_of_words(policy: Policy) -> frozenset[str]:
    """The names in a memory that only the tool that speaks to the user tells, and the facts that it makes true."""
    told: set[str] = set()
    known: set[str] = set()
    for tells in policy.tells:
        names = {fact.literal.predicate for fact in tells.facts if fact.literal.positive}
        names |= set() if tells.stored is None else {tells.stored.name}
        for tool in policy.tellers(tells):
            (told if tool == policy.message else known).update(names)
    for tool, changes in policy.makes.items():
        for change in changes:
            name = root(change.target)
            if tool == policy.message:
                told |= {name} if change.true is not False else set()
            elif change.true is not False:  # that a call uses up a consent tells no fact
                known.add(name)
    return frozenset(told - known)


def with_says_yes(policy: Policy) -> Policy:
    """The policy in which a name of the memory says whether the user agreed, in place of a search for words.

    Raises KnowledgeError: the policy doesn't look for a yes.
    """
    answer = Expression(Name(YES), "says_yes(said, heard)")
    functions, tells, replaced = {**policy.functions}, [], False
    if "yes" in functions and not functions["yes"].params:
        functions["yes"], replaced = Function((), answer), True
    for one in policy.tells:
        if policy.message in policy.tellers(one) and any(_YES.search(pattern.text) for pattern in one.patterns):
            # What the user's tools show is still read by its words.
            tells.append(replace(one, rules=policy.tellers(one) - {policy.message}))
            one, replaced = replace(one, rules=frozenset([policy.message]), patterns=(), condition=Name(YES)), True
        tells.append(one)
    if not replaced:
        hint = 'give it `let yes() = ...`, or `tells agreed by "yes"` above the rule that speaks to the user'
        raise KnowledgeError(f"{policy.source.name} doesn't ask whether the user says yes", hint)
    initial = policy.initial.with_values(**{YES: False})
    return replace(policy, functions=functions, tells=tells, initial=initial)

"""Find mistakes in the `//:` lines of a file: facts that nothing makes true, tells or needs, and faults of policies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from constrained.errors import GrammarError, nearest
from constrained.grammar import STEP
from constrained.grammar.json_schema import Options
from constrained.grammar.lark_outline import read_outline
from constrained.grammar.lark_tokens import comments
from constrained.grammar.source import Source
from constrained.knowledge.lines.syntax_errors import MARK, STATEMENTS
from constrained.knowledge.lint.finding import Finding
from constrained.knowledge.lint.refused import refusal
from constrained.knowledge.ordered_task import OrderedTask
from constrained.knowledge.tool_policy import read_policy
from constrained.knowledge.tool_policy.faults import faults
from constrained.knowledge.tools import Tool, toolbox
from constrained.knowledge.world import World, read_world
from constrained.knowledge.world.sentence import goal_sentences
from constrained.knowledge.world.world import filled
from constrained.limits import DEFAULT
from constrained.planning.model import ROOT, Action, Condition, Junction, Literal, Quantified, literals_in
from constrained.planning.reachable import SEARCHED, mended, unreachable
from constrained.planning.task import PlanningTask
from constrained.planning.wording import squeezed


def world(source: Source, tools: list[Tool] | None = None) -> Iterator[Finding]:
    """Findings on the world of a file, or on its policy of `tools`; none if it has neither."""
    try:
        physics = read_world(source) if tools is None else None  # with tools, it is their policy
        if physics is None:
            yield from _policy(source, tools)
    except GrammarError as error:
        if error.line is not None:
            error.code = "world"
            yield refusal(error, source)
            yield from _like_lines(source)
        return
    if physics is not None:
        uses = _Uses(physics)
        yield from uses.never_true()
        yield from uses.without_use()
        yield from uses.never_told()
        yield from uses.not_written()
        yield from uses.without_value()
        yield from _without_type(physics, source)
        yield from _like_lines(source, physics.domain.predicates)


def out_of_reach(source: Source, rules: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    """Goals of the file's own problem that can't be reached even if nothing that is true became false again.

    `rules`: action -> the actions that may follow.
    """
    physics = read_world(source)
    if physics is None or physics.problem is None or not physics.has_whole_problem:
        return
    goal = physics.problem.condition
    wanted = [] if goal is None else [("the goal", goal, physics.spans["the goal"])]
    for asked, sentence in zip(physics.goals, goal_sentences(physics)):  # about any objects
        named = filled(asked.condition, asked.wider, {})
        wanted.append((f"the goal {sentence}, whatever it names,", named, asked.span))
    for name, condition, span in wanted:
        task = PlanningTask(physics.domain, replace(physics.problem, condition=condition))
        if reason := unreachable(OrderedTask(task, physics.rules, rules).task, SEARCHED):
            yield Finding(
                "out-of-reach",
                f"{name} can't be reached: {reason}",
                mended(reason),
                span,
            )


def _without_type(world: World, source: Source) -> Iterator[Finding]:
    """Slots that no type is named after, in a file with a problem of its own."""
    if world.problem is None or not world.domain.types:
        return
    named = {squeezed(kind) for kind in (ROOT, *world.domain.types, *world.wording.means)}
    for slot, span in read_outline(source).declared.items():
        if slot != STEP and squeezed(slot) not in named:
            kinds = [kind.upper().replace("-", "_") for kind in world.domain.types]
            yield Finding(
                "slot-without-type",
                f"the slot {slot} is named after no type",
                f"name it after the type of what may stand there ({nearest(slot, kinds)}), or declare `//: type "
                f"{slot.lower()}`",
                span,
            )


def _like_lines(source: Source, facts: Iterable[str] = ()) -> Iterator[Finding]:
    """Comments that read like `//:` lines: `// : fact lit`, and, with the names of facts, `// needs lit`."""
    keywords, named = "|".join(STATEMENTS), "|".join(map(re.escape, facts))
    like = re.compile(rf"//(\s+:\s*({keywords})|\s*({keywords})\s+((not|all)\s+)?({named}))(?![\w-])", re.IGNORECASE)
    for comment in comments(source.text):
        match = like.match(source.text, comment.offset)
        if comment.alone and match and MARK in source.text and (match[2] or named):
            yield Finding(
                "comment-like-line",
                f"this comment reads like a `{MARK}` line",
                f"if it is meant as one, begin it with `{MARK}`; else word it differently",
                source.span(comment.offset, len(match[0])),
            )


def _policy(source: Source, tools: list[Tool] | None) -> Iterator[Finding]:
    policy, slots = read_policy(source), read_outline(source).declared.keys()
    schemas = None
    if tools is not None:
        box = toolbox(list(tools), policy, "json", Options(DEFAULT))
        policy, schemas = box.policy, box.form.schemas
    yield from (refusal(fault, source) for fault in faults(policy, slots - {STEP}, schemas))


class _Uses:
    """Where the facts of a world are made, told, and asked for."""

    def __init__(self, world: World):
        self.world = world
        self.domain = world.domain
        # Where a fact can come from ...
        self.made = {e.literal.predicate for a in self.domain.actions for e in a.effects if e.literal.positive}
        self.changed = {e.literal.predicate for a in self.domain.actions for e in a.effects}
        self.told = {t.literal.predicate for tells in world.tells for t in tells.facts if t.literal.positive}
        self.initial = {fact[0] for fact in world.problem.init} if world.problem else set()
        self.unknown = {maybe.literal.predicate for maybe in world.maybe}
        # ... and where it is asked for.
        goals = [goal.condition for goal in world.goals]
        if world.problem and world.problem.condition is not None:
            goals.append(world.problem.condition)
        conditions: list[Condition] = [*goals, *(t.condition for t in world.tells), *(m.condition for m in world.maybe)]
        conditions += self.world.wording.conditions()
        for action in self.domain.actions:
            conditions += action.conditions
        has_problem = any(tells.rules is None for tells in world.tells) or world.has_whole_problem
        has_problem = has_problem or (bool(self.initial) and not world.goals)
        self.elsewhere = not has_problem  # the initial facts are in other files
        self.asked = {literal.predicate for condition in conditions for literal in literals_in(condition)}

    def never_true(self) -> Iterator[Finding]:
        """Conditions that can never hold."""
        can_be = self.made | self.told | self.initial | self.unknown | self.world.kinds | {"="}
        if self.elsewhere:
            return
        goal = self.world.problem.condition if self.world.problem else None
        wanted = [("the goal", goal, None)] if goal is not None else []
        needed = [(a.name, a.precondition, self.world.spans[a.name]) for a in self.domain.actions]
        for name, condition, span in [*needed, *wanted]:
            for predicate in _needed(condition):
                if predicate not in can_be:
                    spelled = self.domain.spell(predicate)
                    yield Finding(
                        "never-true",
                        f"{name} needs {spelled}, which can never hold",
                        f"say what makes it true: `//: makes {spelled}(...)`, `//: init`, or `//: tells`",
                        span or self.world.spans[f"fact {predicate}"],
                    )

    def without_use(self) -> Iterator[Finding]:
        """Facts that are changed or declared, but that nothing asks for and no answer tells."""
        used = self.asked | self.told | self.world.kinds
        for predicate in self.domain.predicates:
            if predicate in used or (self.elsewhere and predicate not in self.changed):
                continue
            spelled = self.domain.spell(predicate)
            what = "is changed, but nothing" if predicate in self.changed else "is declared, but nothing"
            yield Finding(
                "fact-without-use",
                f"{spelled} {what} asks for it, and no answer tells it",
                "remove it, or use it in a `needs`, a `goal` or the condition of a `tells`",
                self.world.spans[f"fact {predicate}"],
            )

    def never_told(self) -> Iterator[Finding]:
        """Facts that are unknown, and that no answer ever tells."""
        for maybe in self.world.maybe:
            predicate = maybe.literal.predicate
            if predicate not in self.told:
                yield Finding(
                    "never-told",
                    f"{self.domain.spell(predicate)} is unknown, and no answer tells it",
                    'say which answer tells it: `//: tells ... by "..."`; or remove the `maybe` if it is known',
                    maybe.span,
                )

    def not_written(self) -> Iterator[Finding]:
        """Arguments of changed facts that the action's text doesn't determine."""
        for action in self.domain.actions:
            written = set(self.world.commands[action.name])
            for parameter in action.parameters:
                if parameter.name not in written and parameter.name in _open(action):
                    yield Finding(
                        "argument-not-written",
                        f"the text of {action.name} doesn't say which `{parameter.name[1:]}` it is about",
                        "write the parameter in the rule, or make a condition say which one it is",
                        self.world.spans[action.name],
                    )

    def without_value(self) -> Iterator[Finding]:
        """Holes in the answers to an action that are neither its parameters nor variables of what is told."""
        for tells in self.world.tells:
            for hole in tells.unfilled:
                known = [variable[1:] for variable in tells.types]
                [action] = tells.rules or [""]
                yield Finding(
                    "hole-without-value",
                    f"nothing says what {{{hole}}} is in the answer to {self.domain.spell(action)}",
                    f"name a parameter of the action, or a variable of what is told: {', '.join(known)}",
                    tells.span,
                )


def _needed(condition: Condition) -> Iterable[str]:
    """The predicates that must be true of some objects for the condition to hold."""
    match condition:
        case Literal(predicate, _, True):
            return [predicate]
        case Junction("and", parts):
            return [predicate for part in parts for predicate in _needed(part)]
        case Junction("or", parts):
            each = [set(_needed(part)) for part in parts]
            return sorted(set.intersection(*each)) if each else []
        case Quantified("some", _, part):
            return _needed(part)
        case _:
            return []


def _open(action: Action) -> set[str]:
    """The parameters that effects use but no fact of the precondition does."""
    changed = {term for effect in action.effects for term in effect.literal.terms if term.startswith("?")}
    mentioned = {term for literal in literals_in(action.precondition) if literal.positive for term in literal.terms}
    return changed - mentioned

"""Find mistakes in the `//:` lines of a file: facts that nothing makes true, tells or needs, and faults of policies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from constrained.errors import GrammarError
from constrained.grammar import STEP
from constrained.grammar.json_schema import Options
from constrained.grammar.lark_outline import read_outline
from constrained.grammar.source import Source
from constrained.knowledge.lint.finding import Finding
from constrained.knowledge.lint.refused import refusal
from constrained.knowledge.tool_policy import read_policy
from constrained.knowledge.tool_policy.faults import faults
from constrained.knowledge.tools import Tool, toolbox
from constrained.knowledge.world import World, read_world
from constrained.limits import DEFAULT
from constrained.planning.model import Action, Condition, Junction, Literal, Quantified, literals_in


def world(source: Source, tools: list[Tool] | None = None) -> Iterator[Finding]:
    """Findings on the world of a file, or on its policy of `tools`; none if it has neither."""
    try:
        found = read_world(source) if tools is None else None  # with tools, it is their policy
        if found is None:
            yield from _policy(source, tools)
    except GrammarError as error:
        if error.line is not None:
            error.code = "world"
            yield refusal(error, source)
        return
    if found is not None:
        uses = _Uses(found)
        yield from uses.never_true()
        yield from uses.without_use()
        yield from uses.never_told()
        yield from uses.not_written()


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
        has_problem = any(tells.rule is None for tells in world.tells) or len(goals) > len(world.goals)
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
    said = {term for literal in literals_in(action.precondition) if literal.positive for term in literal.terms}
    return changed - said

"""Write a planning domain as action knowledge: a `.lark` file with a rule for each abstract state and action."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from constrained.knowledge.pddl.abstraction import SAME, AbstractState, End, StateParameter, Transition, after
from constrained.knowledge.pddl.mutex_groups import Member, Selection, member_words
from constrained.knowledge.pddl.wording import Command, condition_words, effect_words, plain
from constrained.planning.model import Action, Condition, Domain, Junction, Literal, free_variables
from constrained.planning.normal_form import Disjunct, NormalForms

LONGEST_NAME = 60
"""Characters of a state's name, which is made of its facts; longer ones are numbered."""


@dataclass(frozen=True)
class SlotMeaning:
    """What a slot of the file is bound to.

    Attributes
    ----------
    kind : {"argument", "type", "start"}
    name : str
        The action, the type or the predicate.
    variable : str
        The action's variable, or the predicate's argument number.
    key : str
        The action's variable that the values depend on; "" if there is none.
    """

    kind: str
    name: str
    variable: str = ""
    key: str = ""


@dataclass
class LarkFile:
    """The file, what its slots mean, and the actions that they belong to, with the disjuncts of their preconditions."""

    text: str
    slots: dict[str, SlotMeaning] = field(default_factory=dict)
    forms: dict[str, tuple[Action, list[Disjunct]]] = field(default_factory=dict)


def write_lark(
    domain: Domain,
    forms: NormalForms,
    selection: Selection,
    states: dict[AbstractState, list[Transition]],
    begin: list[AbstractState],
    commands: dict[str, Command],
    origin: str,
) -> LarkFile:
    """Write the knowledge, for a person to refine."""
    return _Writer(domain, forms, selection, states, commands).write(begin, origin)


class _Writer:
    def __init__(
        self,
        domain: Domain,
        forms: NormalForms,
        selection: Selection,
        states: dict[AbstractState, list[Transition]],
        commands: dict[str, Command],
    ):
        self.domain, self.selection, self.states, self.commands = domain, selection, states, commands
        self.forms = {action.name: disjuncts for action, disjuncts in forms}
        self.slots: dict[str, SlotMeaning] = {}
        self.taken: set[str] = {"start"}
        self.variants: dict[str, dict[tuple, str]] = {}  # action -> what a rule leads to -> its name
        self.rules: dict[str, list[str]] = {}  # action -> lines
        self.state_names = self._name_states()
        transitions = [t for possible in states.values() for t in possible]
        self.actions = [a for a, _ in forms if any(t.action is a for t in transitions)]
        self.action_names = {a.name: self._new_name(_snake(domain.spelling[a.name])) for a in self.actions}
        self.orders = {
            a.name: order_arguments(a, self.forms[a.name], [t for t in transitions if t.action is a], commands[a.name])
            for a in self.actions
        }

    def write(self, begin: list[AbstractState], origin: str) -> LarkFile:
        lines = [self._state(state, possible) for state, possible in self.states.items()]
        body = "\n\n".join([line for line in lines if line] + ["\n\n".join(self.rules[a.name]) for a in self.actions])
        start = self._start(begin)
        text = "\n".join([*self._head(origin), *self._declarations(), "", *start, "", body, ""])
        return LarkFile(text, self.slots, {a.name: (a, self.forms[a.name]) for a in self.actions})

    # the head

    def _head(self, origin: str) -> list[str]:
        unused = [self.domain.spelling[n] for n in self.forms if n not in self.action_names]
        head = [
            f"// The actions of the planning domain {self.domain.name}, imported from {origin}: refine it by hand.",
            "// It forbids only what the domain makes impossible, and admits more where the domain's state",
            "// can't be told from the path: bind the slots at every step to what is there, as said beside them",
            '// (a slot "by r" may be given its values for each r: {"r 1": [...], ...}).',
        ]
        if self.selection.assumed:
            head += ["// Taken for granted:", *(f"//   {line}" for line in self.selection.assumed)]
        if unused:
            head.append(f"// Never possible, so not here: {', '.join(unused)}")
        return [*head, ""]

    def _declarations(self) -> list[str]:
        width = max(map(len, [*self.slots, "_STEP"]))
        lines = [f"%declare {'_STEP':<{width}} // ends one action: there the environment answers"]
        return lines + [f"%declare {name:<{width}} // {self._explain(slot)}" for name, slot in self.slots.items()]

    def _explain(self, slot: SlotMeaning) -> str:
        if slot.kind == "type":
            return f"every {self.domain.spell(slot.name)}"
        if slot.kind == "start":
            predicate = member_words(self.domain, Member(slot.name, True, ()))
            argument = self.domain.predicates[slot.name][int(slot.variable)].name
            return f"{plain(argument, self.domain)} of {predicate} at the start"
        action = next(a for a in self.actions if a.name == slot.name)
        words = condition_words(Junction("and", self._conditions(action, slot.variable)), self.domain)
        by = f", by {plain(slot.key, self.domain)}" if slot.key else ""
        return f"{plain(slot.variable, self.domain)} of {self.action_names[slot.name]}{by}: {words}"

    def _conditions(self, action: Action, variable: str) -> tuple[Condition, ...]:
        """The parts of a precondition that mention a variable, also by way of variables that no rule has."""
        condition = action.precondition
        parts = condition.parts if isinstance(condition, Junction) and condition.operator == "and" else (condition,)
        shown = set(self.orders[action.name].variables)
        shown |= {v for possible in self.states.values() for t in possible if t.action is action for v in t.tied}
        mentioned, size = {variable}, 0
        while size != len(mentioned):
            size = len(mentioned)
            mentioned |= {v for p in parts if free_variables(p) & mentioned for v in free_variables(p) - shown}
        return tuple(p for p in parts if free_variables(p) & mentioned)

    # states

    def _name_states(self) -> dict[AbstractState, str]:
        names: dict[AbstractState, str] = {}
        for state in self.states:
            label = "_and_".join(self._label(i, member) for i, member in enumerate(state))
            if not state:
                names[state] = "start"
            else:
                names[state] = self._new_name(label if len(label) <= LONGEST_NAME else "state")
        return names

    def _label(self, group: int, member: Member | None) -> str:
        first = member or self.selection.groups[group][0]
        word = _snake(self.domain.spell(first.predicate))
        return word if member and member.positive else f"not_{word}" if member else f"no_{word}"

    def _parameters(self, state: AbstractState) -> dict[StateParameter, str]:
        """The names of a state's parameters."""
        names: dict[StateParameter, str] = {}
        for i, member in enumerate(state):
            if member is not None:
                arguments = self.domain.predicates[member.predicate]
                for j, argument in enumerate(member.counted):
                    name = _snake(arguments[argument].name)
                    names[StateParameter(i, j)] = _unused(name, set(names.values()) | self.taken)
        return names

    def _state(self, state: AbstractState, transitions: list[Transition]) -> str:
        """A state's rule; of the only state of a file without groups, the calls for the rule `start`."""
        parameters = self._parameters(state)
        calls = list(dict.fromkeys(self._call(state, transition, parameters) for transition in transitions))
        if not state:
            self.start_calls = calls
            return ""
        facts = [
            condition_words(Literal(m.predicate, self._terms(m, i, parameters), m.positive), self.domain)
            for i, m in enumerate(state)
            if m
        ]
        nothing = [f"none of {self._label(i, None)[3:]}" for i, m in enumerate(state) if not m]
        head = f"// Where {' and '.join(filter(None, [' and '.join(facts), *nothing]))}.\n"
        name = _call(self.state_names[state], parameters.values())
        return head + _alternatives(name, ["", *calls])

    def _terms(self, member: Member, group: int, parameters: dict[StateParameter, str]) -> tuple[str, ...]:
        arguments = self.domain.predicates[member.predicate]
        return tuple(
            parameters[StateParameter(group, member.counted.index(i))] if i in member.counted else argument.name
            for i, argument in enumerate(arguments)
        )

    def _start(self, begin: list[AbstractState]) -> list[str]:
        overview = (
            f"// Reach the goal with the actions of {self.domain.name}, one after another; each has to be possible "
            "where it comes."
        )
        if not self.selection.groups:
            return [overview, _alternatives("start", ["", *self.start_calls])]
        calls = []
        for state in begin:
            arguments = []
            for fixed in self._parameters(state):
                member = state[fixed.group]
                assert member is not None  # it has the parameter
                argument = self.domain.predicates[member.predicate][member.counted[fixed.argument]]
                meaning = SlotMeaning("start", member.predicate, str(member.counted[fixed.argument]))
                arguments.append(self._slot(f"start_{argument.name}", meaning))
            calls.append(_call(self.state_names[state], arguments))
        return [overview, _alternatives("start", calls)]

    # actions

    def _call(self, state: AbstractState, transition: Transition, parameters: dict[StateParameter, str]) -> str:
        """The call of an action's rule in a state; the rule is written if it is new."""
        action, order = transition.action, self.orders[transition.action.name]
        own: dict[str, str] = {}  # variable -> parameter of the action's rule
        for variable in order.variables:
            own[variable] = _unused(_snake(variable), set(own.values()) | self.taken)
        arguments = [
            parameters[transition.tied[v]] if v in transition.tied else self._argument_slot(action, order, v)
            for v in order.variables
        ]
        if all(end == SAME for ends in transition.to for end in ends):
            if not state:
                return _call(self._rule(action, "start", list(own.values()), own, ""), arguments)
            name = self._rule(action, "then", [*own.values(), "then"], own, "")
            return _call(name, [*arguments, _call(self.state_names[state], parameters.values())])
        carried: dict[StateParameter, str] = {}  # parameter of the state -> another parameter of the action's rule

        def name_of(fixed: StateParameter) -> str:
            """The name, in the action's rule, of a parameter of the state."""
            tied = next((name for variable, name in own.items() if transition.tied.get(variable) == fixed), None)
            if tied is None and fixed not in carried:
                carried[fixed] = _unused(parameters[fixed], {*own.values(), *carried.values()} | self.taken)
            return tied or carried[fixed]

        def lead(ends: Sequence[End]) -> str:
            """The call of the state that the transition ends in, with the parameters of the action's rule."""
            arguments: list[str] = []
            for i, (was, end) in enumerate(zip(state, ends)):
                if isinstance(end, str):  # the same atom
                    arguments += [name_of(StateParameter(i, j)) for j in range(len(was.counted) if was else 0)]
                elif end is not None:
                    arguments += [own[t] if t in own else _quoted(self.domain.spell(t)) for t in end[1]]
            return _call(self.state_names[after(state, ends)], arguments)

        leads = list(map(lead, transition.to))
        rest = leads[0] if len(leads) == 1 else f"({' | '.join(leads)})"
        same = (i for i in range(len(state)) if all(ends[i] == SAME for ends in transition.to))
        kept = "_".join(self._label(i, state[i]) for i in same if state[i])
        name = self._rule(action, rest, [*own.values(), *carried.values()], own, kept)
        return _call(name, [*arguments, *(parameters[fixed] for fixed in carried)])

    def _rule(self, action: Action, rest: str, parameters: list[str], own: dict[str, str], kept: str) -> str:
        """The name of the action's rule that leads to `rest`, which is written if it is new."""
        variants = self.variants.setdefault(action.name, {})
        key = (rest, tuple(parameters))
        if key not in variants:
            name = self.action_names[action.name]
            variants[key] = self._new_name(f"{name}_{kept}" if kept and variants else name) if variants else name
            text = " ".join(own[p] if p.startswith("?") else _quoted(p) for p in self.commands[action.name])
            rule = f"{_call(variants[key], parameters)}: {text} _STEP {rest}"
            self.rules.setdefault(action.name, []).append(f"{self._definition(action, variants[key])}\n{rule}")
        return variants[key]

    def _definition(self, action: Action, name: str) -> str:
        pieces = self.commands[action.name]
        command = "".join(plain(p, self.domain).upper() if p.startswith("?") else p for p in pieces)
        needs = condition_words(action.precondition, self.domain)
        makes = effect_words(action, self.domain)
        return f"// {name}: {command}." + (f" Needs {needs}." if needs else "") + (f" Makes {makes}." if makes else "")

    # slots

    def _argument_slot(self, action: Action, order: ArgumentOrder, variable: str) -> str:
        conditions = [c for disjunct in self.forms[action.name] for c in (*disjunct.literals, *disjunct.whole)]
        conditioned = any(variable in free_variables(condition) for condition in conditions)
        if not conditioned:
            kind = next(p.type for p in action.parameters if p.name == variable)
            return self._slot(kind, SlotMeaning("type", kind))
        meaning = SlotMeaning("argument", action.name, variable, order.keys.get(variable, ""))
        return self._slot(f"{self.domain.spelling[action.name]}_{variable.lstrip('?')}", meaning)

    def _slot(self, name: str, meaning: SlotMeaning) -> str:
        for known, other in self.slots.items():
            if other == meaning:
                return known
        new = _unused(_snake(name).upper(), set(self.slots))
        self.slots[new] = meaning
        return new

    def _new_name(self, name: str) -> str:
        name = _unused(name, self.taken)
        self.taken.add(name)
        return name


def _call(name: str, arguments: Collection[str]) -> str:
    return f"{name}{{{', '.join(arguments)}}}" if arguments else name


def _alternatives(name: str, calls: list[str]) -> str:
    """A rule; an empty first alternative leaves its line to the name."""
    first, *others = calls
    indent = "    " if not first else " " * len(name)
    return "\n".join([f"{name}: {first}".rstrip(), *(f"{indent}| {call}" for call in others)])


def _snake(name: str) -> str:
    """A name in the form of a rule's."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.lstrip("?"))
    name = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return name if name[:1].isalpha() else f"a_{name}".rstrip("_")


def _unused(name: str, taken: set[str]) -> str:
    new, number = name, 1
    while new in taken:
        number += 1
        new = f"{name}_{number}"
    return new


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@dataclass(frozen=True)
class ArgumentOrder:
    """The arguments of an action's rule: what its command names, what it hands on, and keys.

    A slot that stands before another argument may hold its values by that argument, so a variable stands right before
    one that its conditions relate it to.

    Attributes
    ----------
    variables : tuple of str
        In the order of the rule's parameters.
    keys : dict of str to str
        Variable -> the one after it that its values depend on.
    """

    variables: tuple[str, ...]
    keys: dict[str, str]


def order_arguments(
    action: Action, disjuncts: list[Disjunct], transitions: list[Transition], command: Command
) -> ArgumentOrder:
    """The arguments of an action's rule.

    Parameters
    ----------
    action : Action
    disjuncts : list of Disjunct
    transitions : list of Transition
        All of this action.
    command : Command
    """
    named = [piece for piece in command if piece.startswith("?")]
    passed = [
        t
        for transition in transitions
        for ends in transition.to
        for end in ends
        if end and end != "same"
        for t in end[1]
    ]
    wanted = list(dict.fromkeys(v for v in [*named, *passed] if v.startswith("?")))
    free = [v for v in wanted if any(v not in transition.tied for transition in transitions)]
    tied = [v.name for v in action.parameters if any(v.name in transition.tied for transition in transitions)]
    tied += [
        v
        for disjunct in disjuncts
        for v in (p.name for p in disjunct.variables)
        if v not in tied and v in transitions[0].tied
    ]
    keys = _keys(free, [v for v in wanted if v not in free] + [v for v in tied if v not in wanted], disjuncts)
    order: list[str] = []
    for variable in wanted:
        if variable in keys.values():
            continue  # it comes right after the one whose key it is
        chained: str | None = variable
        while chained is not None and chained not in order:
            order.append(chained)
            chained = keys.get(chained)
    return ArgumentOrder(tuple(order), keys)


def _keys(free: list[str], others: list[str], disjuncts: list[Disjunct]) -> dict[str, str]:
    """For each free variable the one that it depends on: another free one, else one that a state fixes."""
    keys: dict[str, str] = {}
    for i, variable in enumerate(free):
        later = [v for v in free[i + 1 :] if v not in keys.values()]
        for key in [*later, *(v for v in others if v not in keys.values())]:
            if any(_share(disjunct, variable, key) for disjunct in disjuncts):
                keys[variable] = key
                break
    return keys


def _share(disjunct: Disjunct, first: str, second: str) -> bool:
    """Whether a condition mentions both variables."""
    both = {first, second}
    return any(both <= free_variables(condition) for condition in (*disjunct.literals, *disjunct.whole))

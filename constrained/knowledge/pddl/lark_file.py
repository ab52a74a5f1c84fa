"""Write action knowledge as a `.lark` file: places, actions, slots and what they mean."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from constrained.knowledge.pddl.abstraction import SAME, Fixed, Move, Place
from constrained.knowledge.pddl.model import Action, Domain, Formula
from constrained.knowledge.pddl.mutex_groups import Choice, Member, member_words
from constrained.knowledge.pddl.normal_form import Case, variables_of
from constrained.knowledge.pddl.wording import Command, condition_words, effect_words, plain

LONGEST_NAME = 60
"""Characters of a place's name made of its facts; longer ones are numbered."""


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
    """The file, what its slots mean, and the cases of the actions that they belong to."""

    text: str
    slots: dict[str, SlotMeaning] = field(default_factory=dict)
    cased: dict[str, tuple[Action, list[Case]]] = field(default_factory=dict)


def write_lark(
    domain: Domain,
    cased: list[tuple[Action, list[Case]]],
    choice: Choice,
    places: dict[Place, list[Move]],
    begin: list[Place],
    commands: dict[str, Command],
    origin: str,
) -> LarkFile:
    """The knowledge as a file for a person to refine."""
    return _Writer(domain, cased, choice, places, commands).write(begin, origin)


class _Writer:
    def __init__(self, domain, cased, choice: Choice, places: dict[Place, list[Move]], commands: dict[str, Command]):
        self.domain, self.choice, self.places, self.commands = domain, choice, places, commands
        self.cases = {action.name: some for action, some in cased}
        self.slots: dict[str, SlotMeaning] = {}
        self.taken: set[str] = {"start"}
        self.variants: dict[str, dict[tuple, str]] = {}  # action -> what a rule leads to -> its name
        self.rules: dict[str, list[str]] = {}  # action -> lines
        self.place_names = self._name_places()
        moves = [m for some in places.values() for m in some]
        self.actions = [a for a, _ in cased if any(m.action is a for m in moves)]
        self.action_names = {a.name: self._new_name(_snake(domain.spelling[a.name])) for a in self.actions}
        self.layouts = {
            a.name: lay_out(a, self.cases[a.name], [m for m in moves if m.action is a], commands[a.name])
            for a in self.actions
        }

    def write(self, begin: list[Place], origin: str) -> LarkFile:
        lines = [self._place(place, moves) for place, moves in self.places.items()]
        body = "\n\n".join([line for line in lines if line] + ["\n\n".join(self.rules[a.name]) for a in self.actions])
        start = self._start(begin)
        text = "\n".join([*self._head(origin), *self._declarations(), "", *start, "", body, ""])
        return LarkFile(text, self.slots, {a.name: (a, self.cases[a.name]) for a in self.actions})

    # the head

    def _head(self, origin: str) -> list[str]:
        unused = [self.domain.spelling[n] for n in self.cases if n not in self.action_names]
        head = [
            f"// The actions of the planning domain {self.domain.name}, imported from {origin}: refine it by hand.",
            "// It forbids only what the domain makes impossible, and admits more where the domain's state",
            "// can't be told from the path: bind the slots at every step to what is there, as said beside them",
            '// (a slot "by r" may be given its values for each r: {"r 1": [...], ...}).',
        ]
        if self.choice.assumed:
            head += ["// Taken for granted:", *(f"//   {line}" for line in self.choice.assumed)]
        if unused:
            head.append(f"// Never possible, so not here: {', '.join(unused)}")
        return [*head, ""]

    def _declarations(self) -> list[str]:
        width = max(map(len, [*self.slots, "_STEP"]))
        lines = [f"%declare {'_STEP':<{width}} // ends one action: there the environment answers"]
        return lines + [f"%declare {name:<{width}} // {self._explain(slot)}" for name, slot in self.slots.items()]

    def _explain(self, slot: SlotMeaning) -> str:
        if slot.kind == "type":
            return f"every {self.domain.spelling.get(slot.name, slot.name)}"
        if slot.kind == "start":
            predicate = member_words(self.domain, Member(slot.name, True, ()))
            argument = self.domain.predicates[slot.name][int(slot.variable)].name
            return f"{plain(argument, self.domain)} of {predicate} at the start"
        action = next(a for a in self.actions if a.name == slot.name)
        words = condition_words(("and", *self._conditions(action, slot.variable)), self.domain)
        by = f", by {plain(slot.key, self.domain)}" if slot.key else ""
        return f"{plain(slot.variable, self.domain)} of {self.action_names[slot.name]}{by}: {words}"

    def _conditions(self, action: Action, variable: str) -> list[Formula]:
        """The parts of a precondition that ask something of a variable, through variables that no rule has, too."""
        parts = action.precondition[1:] if action.precondition[0] == "and" else (action.precondition,)
        seen = set(self.layouts[action.name].variables)
        seen |= {v for some in self.places.values() for m in some if m.action is action for v in m.tied}
        asked, size = {variable}, 0
        while size != len(asked):
            size = len(asked)
            asked |= {v for p in parts if variables_of(p) & asked for v in variables_of(p) - seen}
        return [p for p in parts if variables_of(p) & asked]

    # places

    def _name_places(self) -> dict[Place, str]:
        names: dict[Place, str] = {}
        for place in self.places:
            label = "_and_".join(self._label(i, member) for i, member in enumerate(place))
            if not place:
                names[place] = "start"
            else:
                names[place] = self._new_name(label if len(label) <= LONGEST_NAME else "place")
        return names

    def _label(self, group: int, member: Member | None) -> str:
        first = member or self.choice.groups[group][0]
        word = _snake(self.domain.spelling.get(first.predicate, first.predicate))
        return word if member and member.positive else f"not_{word}" if member else f"no_{word}"

    def _parameters(self, place: Place) -> dict[Fixed, str]:
        """The names of a place's parameters."""
        names: dict[Fixed, str] = {}
        for i, member in enumerate(place):
            for j, argument in enumerate(member.counted if member else ()):
                name = _snake(self.domain.predicates[member.predicate][argument].name)
                names[Fixed(i, j)] = _unused(name, set(names.values()) | self.taken)
        return names

    def _place(self, place: Place, moves: list[Move]) -> str:
        parameters = self._parameters(place)
        calls = list(dict.fromkeys(self._call(place, move, parameters) for move in moves))
        if not place:
            self.start_calls = calls
            return ""
        facts = " and ".join(
            ("" if m.positive else "not ") + condition_words((m.predicate, *self._terms(m, i, parameters)), self.domain)
            for i, m in enumerate(place) if m
        )  # fmt: skip
        nothing = [f"none of {self._label(i, None)[3:]}" for i, m in enumerate(place) if not m]
        head = f"// Where {' and '.join(filter(None, [facts, *nothing]))}.\n"
        name = _call(self.place_names[place], parameters.values())
        return head + _alternatives(name, ["", *calls])

    def _terms(self, member: Member, group: int, parameters: dict[Fixed, str]) -> list[str]:
        arguments = self.domain.predicates[member.predicate]
        return [
            parameters[Fixed(group, member.counted.index(i))] if i in member.counted else argument.name
            for i, argument in enumerate(arguments)
        ]

    def _start(self, begin: list[Place]) -> list[str]:
        overview = f"// Reach the goal with the actions of {self.domain.name}, one after another; each has to be possible where it comes."
        if not self.choice.groups:
            return [overview, _alternatives("start", ["", *self.start_calls])]
        calls = []
        for place in begin:
            arguments = []
            for fixed in self._parameters(place):
                member = place[fixed.group]
                argument = self.domain.predicates[member.predicate][member.counted[fixed.argument]]
                meaning = SlotMeaning("start", member.predicate, str(member.counted[fixed.argument]))
                arguments.append(self._slot(f"start_{argument.name}", meaning))
            calls.append(_call(self.place_names[place], arguments))
        return [overview, _alternatives("start", calls)]

    # actions

    def _call(self, place: Place, move: Move, parameters: dict[Fixed, str]) -> str:
        """The call of an action's rule at a place; the rule is written if it is new."""
        action, layout = move.action, self.layouts[move.action.name]
        own = {}
        for variable in layout.variables:
            own[variable] = _unused(_snake(variable), set(own.values()) | self.taken)
        arguments = [
            parameters[move.tied[v]] if v in move.tied else self._argument_slot(action, layout, v)
            for v in layout.variables
        ]
        if all(end == SAME for ends in move.to for end in ends):
            if not place:
                return _call(self._rule(action, "start", list(own.values()), own, ""), arguments)
            name = self._rule(action, "then", [*own.values(), "then"], own, "")
            return _call(name, [*arguments, _call(self.place_names[place], parameters.values())])
        carried: dict[Fixed, str] = {}
        leads = [self._lead(place, move, ends, own, carried, parameters) for ends in move.to]
        after = leads[0] if len(leads) == 1 else f"({' | '.join(leads)})"
        kept = "_".join(
            self._label(i, m) for i, m in enumerate(place) if all(ends[i] == SAME for ends in move.to) and m
        )
        name = self._rule(action, after, [*own.values(), *carried.values()], own, kept)
        return _call(name, [*arguments, *(parameters[fixed] for fixed in carried)])

    def _lead(self, place: Place, move: Move, ends: tuple, own: dict, carried: dict, parameters: dict) -> str:
        """The place that a move ends at, in the words of the action's rule."""
        arguments = []
        for i, (was, end) in enumerate(zip(place, ends)):
            if end == SAME:
                for j in range(len(was.counted) if was else 0):
                    arguments.append(self._carried(Fixed(i, j), move, own, carried, parameters))
            elif end is not None:
                arguments += [own[t] if t in own else _quoted(self.domain.spelling.get(t, t)) for t in end[1]]
        there = tuple(was if end == SAME else end and end[0] for was, end in zip(place, ends))
        return _call(self.place_names[there], arguments)

    def _carried(self, fixed: Fixed, move: Move, own: dict, carried: dict, parameters: dict) -> str:
        """The rule's own name for what the place fixes."""
        for variable, name in own.items():
            if move.tied.get(variable) == fixed:
                return name
        if fixed not in carried:
            carried[fixed] = _unused(parameters[fixed], {*own.values(), *carried.values()} | self.taken)
        return carried[fixed]

    def _rule(self, action: Action, after: str, parameters: list[str], own: dict, kept: str) -> str:
        """The name of the action's rule that leads to `after`, written if it is new."""
        variants = self.variants.setdefault(action.name, {})
        key = (after, tuple(parameters))
        if key not in variants:
            name = self.action_names[action.name]
            variants[key] = self._new_name(f"{name}_{kept}" if kept and variants else name) if variants else name
            text = " ".join(own[p] if p.startswith("?") else _quoted(p) for p in self.commands[action.name])
            rule = f"{_call(variants[key], parameters)}: {text} _STEP {after}"
            self.rules.setdefault(action.name, []).append(f"{self._definition(action, variants[key])}\n{rule}")
        return variants[key]

    def _definition(self, action: Action, name: str) -> str:
        pieces = self.commands[action.name]
        command = "".join(plain(p, self.domain).upper() if p.startswith("?") else p for p in pieces)
        needs = condition_words(action.precondition, self.domain)
        makes = effect_words(action, self.domain)
        return f"// {name}: {command}." + (f" Needs {needs}." if needs else "") + (f" Makes {makes}." if makes else "")

    # slots

    def _argument_slot(self, action: Action, layout: Layout, variable: str) -> str:
        conditioned = any(variable in lit.terms for case in self.cases[action.name] for lit in case.literals) or any(
            variable in variables_of(w) for case in self.cases[action.name] for w in case.whole
        )
        if not conditioned:
            kind = next(p.type for p in action.parameters if p.name == variable)
            return self._slot(kind, SlotMeaning("type", kind))
        meaning = SlotMeaning("argument", action.name, variable, layout.keys.get(variable, ""))
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


def _call(name: str, arguments) -> str:
    arguments = list(arguments)
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
class Layout:
    """An action's arguments.

    Attributes
    ----------
    variables : tuple of str
        In the order of the rule's parameters.
    keys : dict of str to str
        Variable -> the one after it that its values depend on.
    """

    variables: tuple[str, ...]
    keys: dict[str, str]


def lay_out(action: Action, some: list[Case], moves: list[Move], command: Command) -> Layout:
    """The arguments of an action's rule.

    Parameters
    ----------
    action : Action
    some : list of Case
    moves : list of Move
        All of this action.
    command : Command
    """
    named = [piece for piece in command if piece.startswith("?")]
    passed = [t for move in moves for ends in move.to for end in ends if end and end != "same" for t in end[1]]
    wanted = list(dict.fromkeys(v for v in [*named, *passed] if v.startswith("?")))
    free = [v for v in wanted if any(v not in move.tied for move in moves)]
    tied = [v.name for v in action.parameters if any(v.name in move.tied for move in moves)]
    tied += [v for case in some for v in (p.name for p in case.variables) if v not in tied and v in moves[0].tied]
    keys = _keys(free, [v for v in wanted if v not in free] + [v for v in tied if v not in wanted], some)
    order: list[str] = []
    for variable in wanted:
        if variable in keys.values():
            continue  # it comes right after the one whose key it is
        while variable is not None and variable not in order:
            order.append(variable)
            variable = keys.get(variable)
    return Layout(tuple(order), keys)


def _keys(free: list[str], others: list[str], some: list[Case]) -> dict[str, str]:
    """For each free variable the one it depends on: another free one, else one that a place fixes."""
    keys: dict[str, str] = {}
    for i, variable in enumerate(free):
        later = [v for v in free[i + 1 :] if v not in keys.values()]
        for key in [*later, *(v for v in others if v not in keys.values())]:
            if any(_share(case, variable, key) for case in some):
                keys[variable] = key
                break
    return keys


def _share(case: Case, first: str, second: str) -> bool:
    both = {first, second}
    return any(both <= set(lit.terms) for lit in case.literals) or any(
        both <= variables_of(whole) for whole in case.whole
    )

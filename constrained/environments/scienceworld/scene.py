"""The scene: which things can be named, what can be done with them, and the values of slots that follow.

The package's own list has one name for each thing, even for things in closed containers, and takes at least a tenth of
a second. Here the functions of the simulator's parser tell which things can be named now, and by which names; the
functions of its actions tell which things they can be done to.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from constrained.environments.base import Binding
from constrained.environments.scienceworld.java_calls import JavaFunctions

ABLE = {
    "SHUT": ("open",),
    "OPENED": ("close",),
    "WAY": ("go to",),
    "CONTAINER": ("look in",),
    "MOVABLE": ("pick up", "put down"),
    "HELD": ("put down",),
    "LOOSE": ("pick up",),
    "POURABLE": ("pour",),
    "VESSEL": ("dunk into",),
    "LIQUID": ("dunk",),
    "OFF": ("activate",),
    "ON": ("deactivate",),
    "TOOL": ("use",),
    "TERMINAL": ("connect",),
    "WIRED": ("disconnect",),
    "FOOD": ("eat",),
    "DOCUMENT": ("read",),
    "TOILET": ("flush",),
}
"""Slot -> the kinds of action that its things allow."""

_CHOICE = re.compile(r"^(\d+):\t", re.MULTILINE)
QUESTION = "Ambiguous request"
ACTIONS = (
    "OpenDoor", "CloseDoor", "MoveThroughDoor", "LookIn", "Activate", "Deactivate", "Eat", "Read", "Flush",
    "PickUpObjectIntoInventory", "PutDownObjectIntoInventory", "PourObject", "DunkObject", "UseDevice",
)  # fmt: skip
"""The simulator's action classes that are queried. The others follow: things that can be picked up or put down can be
moved, into things that can be looked into; terminals tell whether they are connected; anything can be looked at."""

_OF_THE_AGENT = ("PickUpObjectIntoInventory", "PutDownObjectIntoInventory")
_OBJECT = re.compile(r"\(?ObjectID \((\d+), name: (.*?), type: ")
_POSSIBLE = re.compile(r"([a-z ]+?) (\d+)(?: [a-z]+ (\d+))?$")
_THING = "scienceworld.struct.EnvObject"
_TERMINAL = "scienceworld.objects.electricalcomponent.Terminal"


@dataclass(frozen=True)
class Scene:
    """The things that can be named now.

    Attributes
    ----------
    names : dict of int to list of str
        Thing -> all its names, in small letters.
    terminals : dict of int to list of str
        The same for terminals, which aren't shown but can be connected: each plain thing has two.
    capitals : list of str
        The names that observations write with capitals.
    able : dict of str to set of int
        Kind of action ("open", "pour", "connect", ...) -> the things that allow it; "dunk into": the second thing.
    """

    names: dict[int, list[str]]
    terminals: dict[int, list[str]]
    capitals: list[str]
    able: dict[str, set[int]]


class Observer:
    """Queries one simulator for its scene.

    Parameters
    ----------
    gateway : py4j.java_gateway.JavaGateway
    """

    def __init__(self, gateway: Any):
        jvm = gateway.jvm
        make = self._functions = JavaFunctions(gateway)
        # Functions that return for each thing its number, its names (from this room), whether it can be connected.
        thing, strings = _THING.replace(".", "/"), "Lscala/collection/immutable/Set;"
        show = make.method("java.lang.String", "valueOf", "(Ljava/lang/Object;)Ljava/lang/String;", static=True)
        listing = make.method("scala.collection.TraversableOnce", "mkString", "(Ljava/lang/String;)Ljava/lang/String;")
        self._listing = make.fix(listing, 1, "\t")
        self._named_from = make.method(_THING, "getReferentsWithContainers", f"(L{thing};){strings}")
        connecting = "scienceworld.actions.ActionConnectElectrical"
        self._shown = make.mapper(show)
        self._named = make.mapper(make.chain(make.method(_THING, "getReferents", f"(){strings}"), self._listing))
        self._connectable = make.mapper(
            make.chain(make.method(connecting, "getTerminal", f"(L{thing};)Lscala/Tuple3;", static=True), show)
        )
        # Functions that return for each terminal the thing that it is part of, and whether it is connected already.
        self._part_of = make.mapper(make.chain(make.method(_TERMINAL, "parentObject", f"()L{thing};"), show))
        self._connected = make.mapper(
            make.chain(
                make.method(_THING, "propElectricalConnection", "()Lscala/Option;"),
                make.method("scala.Option", "get", "()Ljava/lang/Object;"),
                make.method("scienceworld.properties.ElectricalConnectionProperties", "isAtMaxConnections", "()Z"),
                show,
            )
        )
        self._collect = jvm.scienceworld.input.InputParser.collectAccessibleObjects
        self._list = jvm.java.util.ArrayList
        self._possible = [self._listing_of(name) for name in ACTIONS]
        # Arguments of the simulator's own functions: what to look for, what to leave out, and how to name a thing.
        tag = jvm.scala.reflect.ClassTag.apply
        self._things, self._terminals = tag(make.java_class(_THING)), tag(make.java_class(_TERMINAL))
        self._hidden = make.implement("scala.Function1", make.method(_THING, "isHidden", "()Z"))
        # The actions name each thing by its number.
        self._numbers = jvm.scala.Predef.Map().empty().withDefault(make.implement("scala.Function1", show))

    def observe(self, interface: Any) -> Scene:
        """The scene now.

        Parameters
        ----------
        interface
            The simulator's AgentInterface.
        """
        make = self._functions
        agent = interface.agent()
        room = agent.getContainer().get()
        # Hidden things are filtered here: the simulator's own filter leaves out the drain of a sink.
        things = self._collect(room, True).union(self._collect(agent, True)).toSeq().filterNot(self._hidden)
        # One call for all things and one for all terminals (see `java_calls`).
        inside = room.getContainedAccessibleObjectsOfType(True, True, self._terminals)
        carried = agent.getContainedAccessibleObjectsOfType(True, True, self._terminals)
        listed, terminals = make.listed(things), make.listed(inside.union(carried).toSeq())
        named_from = make.mapper(make.chain(make.fix(self._named_from, 1, room), self._listing))
        shown, names_shown, connectable, *of_terminals = make.texts(
            *((mapper, listed) for mapper in (self._shown, named_from, self._connectable)),
            *((mapper, terminals) for mapper in (self._shown, self._named, self._connected, self._part_of)),
        )
        ids = [_match(_OBJECT, line) for line in shown]
        numbers = [int(number) for number, _ in ids]
        names = {number: line.split("\t") for number, line in zip(numbers, names_shown)}
        able = self._able(agent, things)
        # What can be wired: things with free contacts, and terminals, which are named only for this.
        able["connect"] = {number for number, line in zip(numbers, connectable) if line.endswith(",true)")}
        able["disconnect"] = set()
        unshown = {}
        for line, own_names, connected, whole in zip(*of_terminals):
            number, name = _match(_OBJECT, line)
            number = int(number)
            if connected == "true":
                able["connect"].discard(number)
                able["disconnect"].add(int(_match(_OBJECT, whole)[0]))
            elif number not in names:
                able["connect"].add(number)
                # "terminal 1" by itself would fit everything in the room.
                unshown[number] = [text for text in own_names.lower().split("\t") if text not in (name, "terminal")]
        able["disconnect"] &= names.keys()
        return Scene(names, unshown, [name for _, name in ids if name != name.lower()], able)

    def _able(self, agent: Any, things: Any) -> dict[str, set[int]]:
        found = self._functions.builder()
        arguments = self._list()
        for argument in (agent, things.toArray(self._things), self._numbers, found):
            arguments.add(argument)
        for possible in self._possible:
            possible.invokeWithArguments(arguments)
        able: dict[str, set[int]] = {}
        for line in filter(None, self._functions.read(found).split("\n")):
            kind, first, second = _match(_POSSIBLE, line)
            able.setdefault(kind, set()).add(int(first))
            if second:
                able.setdefault(f"{kind} into", set()).add(int(second))
        return able

    def _listing_of(self, action: str):
        """A function (agent, things, names, builder) that appends an action's possible instances as lines."""
        make = self._functions
        thing, builder, text = _THING.replace(".", "/"), "scala/collection/mutable/StringBuilder", "java/lang/String"
        agent = "scienceworld/objects/agent/Agent" if action in _OF_THE_AGENT else thing
        instances = make.method(
            f"scienceworld.actions.Action{action}", "generatePossibleValidActions",
            f"(L{agent};[L{thing};Lscala/collection/immutable/Map;)[Lscienceworld/actions/PossibleAction;", static=True,
        )  # fmt: skip
        wrapped = make.method(
            "scala.collection.mutable.WrappedArray", "make",
            "(Ljava/lang/Object;)Lscala/collection/mutable/WrappedArray;", static=True,
        )  # fmt: skip
        add = make.method(
            "scala.collection.TraversableOnce", "addString", f"(L{builder};L{text};L{text};L{text};)L{builder};"
        )
        return make.feed(make.fix(add, 2, "", "\n", "\n"), make.chain(instances, wrapped))


def _match(pattern: re.Pattern[str], text: str) -> tuple[Any, ...]:
    """The groups of a pattern at the beginning of a text from the simulator, which must match."""
    match = pattern.match(text)
    assert match is not None, text
    return match.groups()


def choices_of(observation: str) -> list[str]:
    """The numbers that answer the question in an observation; none if there is no question."""
    return _CHOICE.findall(observation) if observation.startswith(QUESTION) else []


def slots(
    scene: Scene, called: Mapping[int, str], task: str, focused: Mapping[str, str] | None = None
) -> dict[str, Binding]:
    """The values of the slots of `grammars/scienceworld.lark`, with one name for each thing.

    Parameters
    ----------
    scene : Scene
    called : mapping of int to str
        The names.
    task : str
        The task's description, which determines the things that can be focused on.
    focused : mapping of str to str, optional
        Things already focused on -> the simulator's answers.
    """
    done = focused or {}

    def names(things: Iterable[int]) -> list[str]:
        return sorted({called[thing] for thing in things})

    view: dict[str, Binding] = {"FREE": [""], "OTHER": [], "WAIT": ["wait", "wait1"], "NUMBER": []}
    view["THING"] = names(scene.names)
    view["WANTED"] = [name for name in names(focusable(scene, task, done.values())) if name not in done]
    view |= {slot: names(set().union(*(scene.able.get(kind, ()) for kind in kinds))) for slot, kinds in ABLE.items()}
    # Leave out what would change nothing.
    view["LOOSE"] = [name for name in view["LOOSE"] if name not in view["HELD"]]
    view["TERMINAL"] = view["TERMINAL"] if any("wire" in name for name in view["THING"]) else []
    return view


def answers(choices: list[str]) -> dict[str, Binding]:
    """The values of the slots while a question is open: only its possible answers."""
    return {**dict.fromkeys(("FREE", "OTHER", "WAIT", "THING", "WANTED", *ABLE), ()), "NUMBER": choices}


_KINDS = {"thing", "animal", "plant", "substance", "light", "component", "terminal", "generator", "ground"}
"""Names of kinds of things, which don't tell one thing from another."""

_NO_SPECIES = {"the", "a", "with", "living", "organism", "stage", "life", "seed"}
"""Words in the names of living things that don't name a species."""

_PLACE = re.compile(r" (?:in|on) .*")
_ASKED = re.compile(r"focus on (?:the |an? )?(.+?)(?= with\b| you\b|[,.]|$)")
_OF_KIND = re.compile(r"\b(non-)?(?:living thing|animal|plant)\b")
_DESCRIBED = re.compile(r"(?:substance|thing|animal|seed)$|.*\b(?:stages|intermediate|grown)\b")


def asked(task: str) -> tuple[list[str], list[str]]:
    """The things that a task says to focus on always, in order, and those only under a condition."""
    always: list[str] = []
    sometimes: list[str] = []
    for sentence in task.lower().split(". "):
        (sometimes if sentence.startswith("if ") else always).extend(_ASKED.findall(sentence))
    return always, sometimes


def focusable(scene: Scene, task: str, focused: Collection[str] = ()) -> set[int]:
    """The things that a task may ask to focus on now; never rooms and doors.

    If the task names all of them: the things with the next name, and after the last name those under a condition. If it
    only describes their kind: living or non-living things, if it says so; otherwise things that its description names,
    and living things of a species in it.

    Parameters
    ----------
    scene : Scene
    task : str
        The task's description.
    focused : collection of str
        The simulator's answers to each `focus` so far.
    """
    text = task.lower()
    passable = scene.able.get("go to", set()) | scene.able.get("open", set()) | scene.able.get("close", set())
    things = {
        thing: names for thing, names in scene.names.items()
        if "room" not in names and "outside" not in names and not (thing in passable and "door" in names)
    }  # fmt: skip
    # 1. The task names the things: the next one that was not focused on, at last those under a condition.
    always, sometimes = asked(task)
    if not any(map(_DESCRIBED.match, [*always, *sometimes])):
        left = [name for name in always if not any(name in answer.lower() for answer in focused)]
        return {thing for thing, names in things.items() if not set(left[:1] or sometimes).isdisjoint(names)}
    # 2. The task asks for anything of a kind: living or not.
    if {"thing", "animal"} & set(always):
        kind = _OF_KIND.search(text)
        alive = {thing for thing, names in things.items() if "living thing" in names}
        return set(things) if kind is None else things.keys() - alive if kind[1] else alive
    # 3. The task describes it: longer names first, so that a name within another isn't found there.
    words = set(re.findall(r"[a-z]+", text)) - _KINDS - _NO_SPECIES
    named = set()
    for name in sorted({name for names in things.values() for name in names} - _KINDS, key=len, reverse=True):
        if name in text and re.search(rf"\b{re.escape(name)}\b", text):
            named.add(name)
            text = text.replace(name, "\n")  # "red light bulb" doesn't name every light bulb
    return {
        thing
        for thing, names in things.items()
        if not named.isdisjoint(names)
        or ("living thing" in names and any(not words.isdisjoint(_PLACE.sub("", name).split()) for name in names))
    }

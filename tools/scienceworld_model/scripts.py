"""Replays by script, for training variations whose gold paths don't show what an agent has to learn.

In the training variations of the four tasks about states of matter, each substance stands in the kitchen, and is heated
on the stove if that works; others stand in other rooms, and need a furnace. Before a replay by script the substance is
carried into another room, and the replay looks for it, room by room. Of two planes a gold path times the whole slide by
a clock; by script a block slides as long on each of them, so that one look tells them apart.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from tools.scienceworld_model.play import Play

TOUR = ("kitchen", "outside", "foundry", "greenhouse", "hallway", "workshop", "art studio", "living room", "bedroom")
"""The rooms in which something is looked for, in this order."""

LONGEST = 110
"""Steps after which a script gives up."""
MANY = 30
"""Times that a script waits for something."""


def state_of_matter(play: Play, gold: Sequence[str], rng: random.Random) -> None:
    """Find a substance, and change its state in the furnace and the freezer."""
    found = re.search(r"to (?:boil|melt|freeze|change the state of matter of) (?:an? )?(.+?)\. ", play.description)
    assert found, play.description
    what = found[1].lower()
    if what not in ("water", "ice") and rng.random() < 0.85:
        _carried_away(play, what, "kitchen" if rng.random() < 0.25 else rng.choice(TOUR[1:]))
    # Fetch the pot, and put the substance into it: water from a tap, anything else where it is found.
    play.go("kitchen")
    if not play.things("metal pot") and play.things("cupboard"):
        play.use("open {}", play.things("cupboard")[0])
    pot = play.things("metal pot")[0]
    play.use("pick up {}", pot)
    if what == "water":
        for room in ("kitchen", "bathroom"):
            play.go(room)
            sink = play.things("sink")[0]
            play.use("move {} to {}", pot, sink)
            for form, thing in (("activate {}", sink), ("deactivate {}", sink), ("pick up {}", pot)):
                play.use(form, thing)
            if "water" in play.view["inventory"]:
                break
        thing = play.things("water in metal pot")[0]
        play.use("focus on {}", thing)
    else:
        for room in TOUR:
            play.go(room)
            if play.open_until(what):
                break
        thing = play.things(what)[0]
        play.use("focus on {}", thing)
        play.use("pour {} into {}" if play.can("pour", thing) else "move {} to {}", thing, pot)
    # What is liquid can be poured. To melt a liquid it is frozen first, to freeze a solid it is melted first.
    liquid = play.can("pour", thing)
    if play.task == "melt" and liquid:
        _cooled(play, pot, lambda: not play.can("pour", thing))
    if play.task != "freeze" or not liquid:
        _heated(play, pot, (lambda: play.can("pour", thing)) if play.task == "freeze" else (lambda: False))
    if play.task == "freeze":
        _cooled(play, pot, lambda: False)


def _carried_away(play: Play, what: str, room: str) -> None:
    """Carry a substance into a room, close what was opened, and go back to the start; note from there on."""
    start = play.room
    play.go("kitchen", close=True)
    play.open_until(what)
    opened = [step["action"].removeprefix("open ") for step in play.steps if step["action"].startswith("open ")]
    thing = play.things(what)[0]
    if play.can("pour", thing):
        thing = play.things(f"cup containing {what}")[0] if play.things(f"cup containing {what}") else -1
    if thing >= 0:
        play.use("pick up {}", thing)
    for name in opened:
        if not name.startswith("door"):
            play.do(f"close {name}")
    if thing >= 0:
        play.go(room, close=True)
        tables = play.things("table")
        play.use("move {} to {}", thing, tables[0]) if tables else play.use("put down {}", thing)
    play.go(start, close=True)
    play.begin()


def _heated(play: Play, pot: int, done: Callable[[], bool]) -> None:
    play.go("foundry")
    furnace = play.things("blast furnace")[0]
    if "blast furnace door is closed" in play.view["look"]:
        play.use("open {}", furnace)
    play.use("move {} to {}", pot, furnace)
    play.use("activate {}", furnace)
    _waited(play, done)
    if not play.over:
        play.use("pick up {}", pot)


def _cooled(play: Play, pot: int, done: Callable[[], bool]) -> None:
    play.go("kitchen")
    freezer = play.things("freezer")[0]
    if "freezer door is closed" in play.view["look"]:
        play.use("open {}", freezer)
    play.use("move {} to {}", pot, freezer)
    _waited(play, done)
    if not play.over:
        play.use("pick up {}", pot)


def _waited(play: Play, done: Callable[[], bool]) -> None:
    for n in range(MANY):
        if play.over or done():
            return
        play.do("wait1" if n < 4 else "wait")


def friction(play: Play, gold: Sequence[str], rng: random.Random) -> None:
    """Let a block slide for as long on each plane, and compare how far it came."""
    play.go("workshop")
    planes = [t for t in play.called_like(".*inclined plane.*") if play.scene()[1][t].startswith("inclined plane")]
    block = play.called_like(r"\w+ block|brick")[0]
    came = []
    for plane in planes:
        play.use("move {} to {}", block, plane)
        for _ in range(5):
            play.do("wait1")
        far = re.search(r"approximately (\d+)%", play.view["look"])
        came.append(int(far[1]) if far else 100)
    if came[0] != came[1]:
        most = "most friction" in play.description
        play.use("focus on {}", planes[came.index(min(came) if most else max(came))])


def genetics(play: Play, gold: Sequence[str], rng: random.Random) -> None:
    """Cross two plants, and answer as soon as their offspring shows the trait: its seeds, or the plant of one."""
    play.go("greenhouse")
    play.use("pick up {}", play.things("seed jar")[0])
    pots = play.called_like(r"flower pot \d")
    for seed, pot in zip(play.called_like("seed in seed jar"), pots):
        play.use("move {} to {}", seed, pot)
    trait = re.search(r"whether (.+?) is a dominant", play.description)
    assert trait, play.description
    watered = pots[:2]
    while len(play.steps) < LONGEST and not play.over:
        _wait_for_plants(play, watered)
        young = play.called_like("seed (?:in|on) .*plant")
        if young and "seed" in trait[1]:
            break
        if young and len(watered) == 2:
            watered = pots[2:3]
            play.use("move {} to {}", young[0], watered[0])
        elif len(watered) == 1:
            number = next(name for name in play.scene()[0].names[watered[0]] if re.fullmatch(r"flower pot \d+", name))
            line = re.search(rf"{number} \((.*)\)", play.view["look"])
            if line and re.search(r"flower\b(?! pot)" if "flower" in trait[1] else r"\w+ height", line[1]):
                break
    play.follow([action for action in gold if action.startswith("focus on")][-1:])


def fruit(play: Play, gold: Sequence[str], rng: random.Random) -> None:
    """Grow several plants, and let bees in, until there is a fruit."""
    planted = list(gold[: gold.index("activate sink")])
    for i, action in enumerate(planted):
        if action.startswith("go to "):
            play.go(action.removeprefix("go to "))
        elif not action.startswith(("open door", "look")) and not action.isdigit():
            play.follow([action, *planted[i + 1 : i + 2]] if planted[i + 1 : i + 2] == ["0"] else [action])
    numbers = [found[1] for action in planted if (found := re.search(r"seed.* to flower pot (\d+)", action))]
    name = re.search(r"to grow an? (.+?)\.", play.description)
    assert name, play.description
    pots = [pot for number in numbers for pot in play.things(f"flower pot {number}")]
    while pots and len(play.steps) < LONGEST and not play.over:
        _wait_for_plants(play, pots)
        if play.things(name[1].lower()):
            play.use("focus on {}", play.things(name[1].lower())[0])
            return


def _wait_for_plants(play: Play, pots: list[int]) -> None:
    """Water the plants and wait; let the bees out once two plants have flowers."""
    sink, jug = play.things("sink")[0], play.things("jug")[0]
    play.use("activate {}", sink)
    for pot in pots:
        play.use("move {} to {}", jug, sink)
        play.use("pour {} into {}", jug, pot)
    play.use("deactivate {}", sink)
    play.do("wait")
    look = play.view["look"]
    if look.count("flower. ") >= 2 and "bee hive door is closed" in look:
        for room in re.findall(r"A door to the (.+?) \(that is open\)", look):
            play.do(f"close door to {room}")
        play.use("open {}", play.things("bee hive")[0])


SCRIPTS = {
    **dict.fromkeys(("boil", "melt", "freeze", "change-the-state-of-matter-of"), state_of_matter),
    **dict.fromkeys(("inclined-plane-friction-named-surfaces", "inclined-plane-friction-unnamed-surfaces"), friction),
    **dict.fromkeys(("mendelian-genetics-known-plant", "mendelian-genetics-unknown-plant"), genetics),
    "grow-fruit": fruit,
}  # fmt: skip
"""Task -> its script: a function of the game, the gold path and a source of random numbers."""

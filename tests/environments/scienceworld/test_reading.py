"""What an agent reads of ScienceWorld, and what its things are called."""

import re
from random import Random

import pytest

from constrained import ActionKnowledge
from constrained.environments.scienceworld import ScienceWorldEnv
from constrained.environments.scienceworld.reading import MAX_TEXT, ScienceWorldMemory, lines_of, names_of, shorter
from constrained.environments.scienceworld.scene import Scene, asked, focusable

KNOWLEDGE = ActionKnowledge.from_lark("scienceworld")

LOOK = """This room is called the kitchen. In it, you see:\x20
\tthe agent
\ta substance called air
\ta counter. On the counter is: a bowl (containing a red apple, a banana), a drawer.
\ta freezer. The freezer door is closed.\x20
\ta oven, which is turned off. The oven door is closed.\x20
\ta table. On the table is: a glass cup (containing nothing).
\ta thermometer, currently reading a temperature of 10 degrees celsius
You also see:
\tA door to the hallway (that is open)
"""
INVENTORY = "In your inventory, you see:\n\tan orange\n"


HALL = """This room is called the hallway. In it, you see:\x20
\tthe agent
\ta substance called air
\ta black wireits terminal 1 is connected to: nothing. its terminal 2 is connected to: nothing.
You also see:
\tA door to the kitchen (that is open)
\tA door to the workshop (that is closed)
"""


def told(reading):
    """What is read of an episode, without the facts."""
    return reading.text().partition("\n\n")[0]


def test_a_line_keeps_what_it_says():
    assert lines_of(LOOK) == [
        "counter: bowl (red apple, banana), drawer", "freezer closed", "oven off closed", "table: glass cup empty",
        "thermometer", "door to hallway open",
    ]  # fmt: skip
    assert shorter("You move to the kitchen.") == "in kitchen"


def test_only_what_is_new_is_shown():
    views = [(LOOK, INVENTORY)]
    reading = ScienceWorldMemory("Your task is to boil water.", lambda: views[-1])
    first = told(reading)
    assert first.startswith("your task is to boil water\nkitchen: counter: ") and first.endswith("\ninventory: orange")
    reading.update("wait", "You decide to wait for 10 iterations.")
    assert told(reading) == first + "\nAction 1: wait\nyou decide to wait for 10 iterations"
    views.append((LOOK.replace("(that is open)", "(that is closed)"), INVENTORY))
    before, situation = told(reading), reading.situation()
    reading.update("close door to hallway", "The door is now closed.")
    assert told(reading) == (
        f"{before}\nAction 2: close door to hallway\ndoor is now closed\nkitchen: door to hallway closed"
    )
    assert reading.situation() != situation


def test_where_things_are_is_known_as_facts():
    views = [(LOOK, INVENTORY)]
    reading = ScienceWorldMemory("Your task is to boil water.", lambda: views[-1])
    known = reading.known
    assert known.holds("in", "red apple", "bowl", "kitchen") and known.holds("in", "bowl", "counter", "kitchen")
    assert known.of("opened") == [] and ("shut", "freezer", "kitchen") in known.of("shut")
    views.append((HALL, "In your inventory, you see:\n\ta bowl (containing a banana)\n"))
    reading.update("go to hallway", "You move to the hallway.")
    assert reading.text().partition("\n\n")[2].splitlines() == [
        "At: hallway",
        "Held: bowl (banana)",
        "Closed: freezer in kitchen, oven in kitchen",
        "Open doors: kitchen to hallway; hallway to kitchen",
        "Closed doors: hallway to workshop",
        "Elsewhere: kitchen: counter, freezer, oven, table, thermometer",
        "In them: counter in kitchen: bowl, drawer; table in kitchen: glass cup; bowl in kitchen: red apple, banana",
    ]
    assert known.holds("lies", "black wire", "hallway")


def test_what_was_taken_away_takes_its_contents_along():
    views = [(LOOK, INVENTORY)]
    reading = ScienceWorldMemory("Your task is to boil water.", lambda: views[-1])
    views.append(
        (LOOK.replace("a bowl (containing a red apple, a banana), ", ""), INVENTORY + "\ta bowl (containing a pea)\n")
    )
    reading.update("pick up bowl", "You move the bowl to the inventory.")
    assert reading.known.of("in", None, "bowl") == [("in", "pea", "bowl", "inventory")]
    assert reading.known.of("held") == [("held", "orange"), ("held", "bowl")]


def test_a_device_is_on_where_it_is():
    on = "\ta stopwatch, which is activated.\n"
    views = [(LOOK.replace("\ta table", f"{on}\ta table"), INVENTORY)]
    reading = ScienceWorldMemory("Your task is to boil water.", lambda: views[-1])
    assert reading.known.of("on") == [("on", "stopwatch", "kitchen")]
    views.append((LOOK, INVENTORY + on))
    reading.update("pick up stopwatch", "You move the stopwatch to the inventory.")
    assert reading.known.of("on") == [("on", "stopwatch", "inventory")]


@pytest.mark.parametrize("task", ["boil", "chemistry-mix", "power-component"])
def test_the_facts_are_those_of_the_simulator(simulator, gold, task):
    """Along the gold path: what is in what is called so by the simulator, and what is open or closed can be."""
    actions = gold(task)[:40]
    reading = ScienceWorldMemory(simulator.load(task), lambda: (simulator.look(), simulator.inventory()))
    seen = 0
    for action in actions:
        reading.update(action, simulator.step(action)[0])
        known, scene = reading.known, simulator.scene()
        names = {name for own in scene.names.values() for name in own}
        here = known.value("at")
        for _, thing, container, place in known.of("in"):
            if place in (here, "inventory"):
                seen += 1
                called = {f"{thing} in {container}", f"{thing} on {container}", f"{container} containing {thing}"}
                assert called & names, called
        for predicate, able in (("opened", "close"), ("shut", "open")):
            for _, thing, _ in known.of(predicate, None, here):
                assert any(thing in scene.names[number] for number in scene.able.get(able, ())), (predicate, thing)
        assert all(f"{thing} in inventory" in names for _, thing in known.of("held"))
    assert seen > 20


def test_the_facts_say_where_there_is_something_new(installed):
    """By them alone each room is seen and each container opened; where things were is kept for a new start."""
    env = ScienceWorldEnv("boil")
    memory, random = env.memory(env.reset()), Random(0)
    for _ in range(60):
        actions = memory.shown.explores()
        assert all(KNOWLEDGE.bind_view(env.view()).judge(action) for action in actions), actions
        action = random.choice(actions)
        memory.update(action, env.step(action)[0])
    assert len(memory.known.of("seen")) == 10 and memory.known.holds("in", "metal pot", "cupboard", "kitchen")
    again = memory.restart(env.reset())
    assert "stove" in again.text().partition("Elsewhere: kitchen: ")[2] and again.known.value("at") == "hallway"
    env.close()


def test_a_long_episode_keeps_its_beginning_and_its_last_steps():
    reading = ScienceWorldMemory("Your task is to wait.", lambda: (LOOK, INVENTORY))
    beginning = told(reading)
    for n in range(1, 400):
        reading.update("wait", "x" * 100)
        assert len(told(reading)) <= MAX_TEXT and told(reading).startswith(beginning)
        assert f"Action {n}: wait" in told(reading)


@pytest.mark.parametrize("task", ["boil", "test-conductivity", "chemistry-mix-paint-secondary-color"])
def test_a_thing_has_one_name_and_no_other_thing_has_it(simulator, task):
    simulator.load(task)
    scene, view = simulator.scene(), (simulator.look(), simulator.inventory())
    called = names_of(scene, *view)
    everything = scene.names | scene.terminals
    assert called.keys() == everything.keys()
    for thing, name in called.items():
        others = [other for other, names in everything.items() if other != thing and name in names]
        own = [n for n in everything[thing] if all(n not in m for t, m in everything.items() if t != thing)]
        assert name in everything[thing] and not (others and own), (name, own)


def test_of_things_that_share_names_each_has_the_name_that_tells_most():
    jar, tree = ["seed", "organism", "seed in jar"], ["organism", "plant", "tree in the adult stage"]
    scene = Scene({1: jar, 2: jar, 3: ["seed", "organism", "seed in pot"], 4: tree}, {}, [], {})
    look = "This room is called the garden. In it:\n\ta tree in the adult stage\n"
    assert names_of(scene, look, "") == {
        1: "seed in jar", 2: "seed in jar", 3: "seed in pot", 4: "tree in the adult stage"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("task", "actions"),
    [
        ("find-non-living-thing", []),
        ("lifespan-longest-lived", ["open door to outside", "go to outside"]),
        ("power-component", ["open door to workshop", "go to workshop"]),
    ],
)
def test_what_the_task_asks_for_can_be_focused_on(installed, task, actions):
    """The gold path's first focus is admitted under the thing's one name; rooms, doors and the agent never are."""
    env = ScienceWorldEnv(task)
    focus = next(action for action in env._simulator.gold(task) if action.startswith("focus "))
    named = re.sub(r"^focus (?:on )?", "", focus).lower()
    env.reset()
    for action in actions:
        env.step(action)
    scene = env._simulator.scene()
    meant = [name for thing, name in names_of(scene, *env._look()).items() if named in scene.names.get(thing, ())]
    if meant:  # otherwise it is in another room
        assert any(KNOWLEDGE.bind_view(env.view()).judge(f"focus on {name}") for name in meant)
    assert not {"hallway", "outside", "door to kitchen"} & set(env.view()["WANTED"])
    env.close()


def test_a_named_thing_is_all_that_can_be_focused_on(installed):
    env = ScienceWorldEnv("power-component")
    env.reset()
    for action in ("open door to workshop", "go to workshop"):
        env.step(action)
    assert env.view()["WANTED"] == ["red light bulb"]
    assert "red light bulb anode" in env.view()["TERMINAL"]
    env.step("focus on red light bulb")
    assert env.score > 0 and env.view()["WANTED"] == []  # a second time would fail some tasks
    env.close()


def test_doors_are_opened_where_they_are_shut(installed):
    env = ScienceWorldEnv("power-component")
    env.reset()
    assert "door to workshop" in env.view()["SHUT"] and not env.view()["OPENED"]
    view = env.view()
    assert view["HELD"] and not {*view["HELD"]} & {*view["LOOSE"]} and not view["TERMINAL"]  # it has no wire
    said = KNOWLEDGE.bind_view(view)
    assert said.judge("put down orange") and not said.judge("drop orange")  # one way of saying each action
    memory = env.memory("")
    memory.update("open door to workshop", env.step("open door to workshop")[0])
    assert "door to workshop" in env.view()["OPENED"] and "door to workshop" not in env.view()["SHUT"]
    assert told(memory).endswith("Action 1: open door to workshop\ndoor is now open\nhallway: door to workshop open")
    env.close()


MEASURE = (
    "Your task is to measure the melting point of lead. First, focus on the thermometer. Next, focus on the lead. If "
    "it is above 50.0 degrees celsius, focus on the red box. If it is below 50.0 degrees celsius, focus on the green "
    "box. The boxes are located around the kitchen."
)


def test_focus_follows_the_order_of_the_task():
    assert asked(MEASURE) == (["thermometer", "lead"], ["red box", "green box"])
    scene = Scene(
        {1: ["thermometer"], 2: ["lead"], 3: ["red box", "box"], 4: ["green box"], 5: ["blue box"]}, {}, [], {}
    )
    assert focusable(scene, MEASURE) == {1}
    first = "You focus on the thermometer."
    assert focusable(scene, MEASURE, [first]) == {2}
    assert focusable(scene, MEASURE, [first, "You focus on the lead."]) == {3, 4}


def test_where_the_task_says_only_a_kind_the_rest_of_it_tells():
    scene = Scene({1: ["water", "substance"], 2: ["stove"], 3: ["kitchen", "room"]}, {}, [], {})
    assert focusable(scene, "Your task is to boil water. First, focus on the substance.") == {1}
    scene = Scene({1: ["egg", "living thing"], 2: ["stove"], 3: ["kitchen", "room"]}, {}, [], {})
    find = "Your task is to find a(n) {}. First, focus on the thing."
    assert focusable(scene, find.format("animal")) == {1} == focusable(scene, find.format("living thing"))
    assert focusable(scene, find.format("non-living thing")) == {2}
    plants = {1: ["cherry tree", "living thing"], 2: ["egg in outside", "egg", "living thing"]}
    task = "Your task is to focus on the life stages of the cherry plant. The plants are located outside."
    assert focusable(Scene(plants, {}, [], {}), task) == {1}
    assert focusable(scene, "Your task is to look about. First, focus on the thing.") == {1, 2}

"""KnowAgent's six ALFWorld rule sets, as printed: what they admit, and where the game disagrees."""

import pytest

from benchmarks import paper_rules
from benchmarks.household_solver import solve
from constrained import ActionKnowledge
from constrained.environments.household import HouseholdEnv, make_game
from constrained.environments.household.task_spec import TASK_TYPES
from constrained.grammar import shipped_names
from tests.data import shared
from tests.environments.household.small_house import small_house

GOTO = ("goto", "open", "take", "put")
PRINTED = {
    "pick": {"goto": GOTO, "open": ("goto", "take"), "take": ("goto", "put"), "put": ("goto",)},
    "light": {"goto": ("goto", "open", "take", "use"), "open": ("goto", "take"), "take": ("goto",), "use": ("goto",)},
    **{
        verb: {
            "goto": GOTO, "open": ("goto", "take"), "take": ("goto", "put"), "put": ("goto", verb), verb: ("goto",),
        }
        for verb in ("clean", "heat", "cool")
    },
    "pick_two": {"goto": GOTO, "open": ("goto", "take"), "take": ("goto", "put"), "put": ("goto",)},
}  # fmt: skip
"""Tables 7 to 12, turned from "C must come after A or B" into "after A may come C"; goto after everything."""

RECEPTACLES = ["shelf 1", "sinkbasin 1", "microwave 1", "fridge 1", "cabinet 1"]
OBJECTS = ["mug 1", "mug 2", "desklamp 1"]


def bound(name: str) -> ActionKnowledge:
    knowledge = ActionKnowledge.from_lark(f"alfworld_paper/{name}")
    return knowledge.bind(RECEPTACLE=RECEPTACLES, **dict.fromkeys(knowledge.slots - {"RECEPTACLE"}, OBJECTS))


def test_all_six_ship():
    assert {n for n in shipped_names() if n.startswith("alfworld_paper/")} == {f"alfworld_paper/{n}" for n in PRINTED}


@pytest.mark.parametrize("name", PRINTED)
def test_the_rules_are_the_printed_ones(name):
    knowledge = ActionKnowledge.from_lark(f"alfworld_paper/{name}")
    assert knowledge.rules == {"start": ("goto",), **PRINTED[name]}
    assert list(knowledge.actions) == list(PRINTED[name])
    assert all(definition.startswith(f"{action}: ") for action, definition in knowledge.actions.items())


@pytest.mark.parametrize("name", PRINTED)
def test_a_path_begins_with_goto_and_may_end_after_every_action(name):
    knowledge = bound(name)
    assert not knowledge.may_end
    assert knowledge.graph.may_end == set(PRINTED[name])
    path = ["go to shelf 1", "open shelf 1", "take mug 1 from shelf 1", "go to fridge 1"]
    for action in path:
        knowledge = knowledge.after(action)
        assert knowledge.may_end
    for action in ("open shelf 1", "take mug 1 from shelf 1"):
        assert bound(name).judge(action).verdict == "misordered"


WAYS = """
go to shelf 1, open shelf 1 | ok
go to shelf 1, open cabinet 1 | misordered
go to shelf 1, go to cabinet 1, open shelf 1 | misordered
go to shelf 1, open shelf 1, open shelf 1 | misordered
go to shelf 1, take mug 1 from shelf 1 | ok
go to shelf 1, open shelf 1, take mug 1 from shelf 1 | ok
go to shelf 1, take mug 1 from cabinet 1 | misordered
go to shelf 1, open shelf 1, take mug 1 from cabinet 1 | misordered
go to shelf 1, take mug 1 from shelf 1, take mug 2 from shelf 1 | misordered
go to shelf 1, take mug 1 from shelf 1, open shelf 1 | misordered
go to shelf 1, take mug 1 from shelf 1, put mug 1 in/on shelf 1 | ok
go to shelf 1, take mug 1 from shelf 1, put mug 2 in/on shelf 1 | misordered
go to shelf 1, take mug 1 from shelf 1, put mug 1 in/on cabinet 1 | misordered
go to shelf 1, take mug 1 from shelf 1, go to cabinet 1, put mug 1 in/on cabinet 1 | ok
go to shelf 1, take mug 1 from shelf 1, go to cabinet 1, put mug 1 in/on shelf 1 | misordered
go to shelf 1, take mug 1 from shelf 1, go to cabinet 1, open cabinet 1, put mug 1 in/on cabinet 1 | misordered
go to shelf 1, put mug 1 in/on shelf 1, take mug 1 from shelf 1 | misordered
go to shelf 1, put mug 1 in/on shelf 1, go to shelf 1, take mug 1 from shelf 1 | ok
go to shelf 1, close shelf 1 | invalid
go to shelf 1, examine shelf 1 | invalid
look | invalid
inventory | invalid
go to desk 1 | invalid
"""


@pytest.mark.parametrize("line", WAYS.strip().splitlines())
def test_what_may_come_directly_after_what(line):
    path, verdict = line.split(" | ")
    for name in ("pick", "pick_two", "clean", "heat", "cool"):
        assert bound(name).check(path.split(", ")).verdicts[-1] == verdict, name


@pytest.mark.parametrize("verb, appliance", [("clean", "sinkbasin 1"), ("heat", "microwave 1"), ("cool", "fridge 1")])
def test_treating_comes_after_putting_the_same_thing_into_the_same_receptacle_only(verb, appliance):
    def last(*path):
        return bound(verb).check(path).verdicts[-1]

    take = ["go to shelf 1", "take mug 1 from shelf 1"]
    there = f"go to {appliance}"
    put = f"put mug 1 in/on {appliance}"
    treat = f"{verb} mug 1 with {appliance}"
    assert last(*take, there, put, treat) == "ok"
    assert last(*take, there, treat) == "misordered"  # as the game has it: in the hand
    assert last(treat) == last(there, treat) == "misordered"
    assert last(*take, there, put, f"{verb} mug 2 with {appliance}") == "misordered"
    assert last(*take, there, put, f"{verb} mug 1 with shelf 1") == "misordered"
    assert last(*take, there, put, there, treat) == "misordered"
    assert last(*take, there, put, treat, treat) == "misordered"
    assert last(*take, there, put, treat, f"take mug 1 from {appliance}") == "misordered"
    others = {"clean", "heat", "cool"} - {verb}
    assert {last(*take, there, put, f"{other} mug 1 with {appliance}") for other in others} == {"invalid"}


def test_a_lamp_is_used_directly_after_going_to_where_it_stands():
    def last(*path):
        return bound("light").check(path).verdicts[-1]

    assert last("go to shelf 1", "use desklamp 1") == "ok"
    assert last("use desklamp 1") == "misordered"
    assert last("go to shelf 1", "take mug 1 from shelf 1", "use desklamp 1") == "misordered"
    assert last("go to shelf 1", "use desklamp 1", "take mug 1 from shelf 1") == "misordered"
    assert last("go to shelf 1", "take mug 1 from shelf 1", "put mug 1 in/on shelf 1") == "invalid"


def test_bound_to_what_is_in_view_only_the_thing_in_hand_can_be_put():
    env, knowledge = HouseholdEnv(small_house()), ActionKnowledge.from_lark("alfworld_paper/pick")

    def do(action):
        nonlocal knowledge
        knowledge = knowledge.bind_view(env.admissible()).after(action)
        env.step(action)
        knowledge = knowledge.bind_view(env.admissible())

    do("go to fridge 1")
    assert {knowledge.judge(f"put {thing} in/on fridge 1").verdict for thing in env.game.objects} == {"invalid"}
    do("go to table 1")
    do("take potato 2 from table 1")
    assert knowledge.judge("put potato 2 in/on table 1")
    do("go to fridge 1")
    assert not knowledge.judge("put potato 2 in/on fridge 1")  # the rules admit it, but it is closed
    do("go to table 1")
    assert knowledge.judge("put potato 2 in/on table 1")
    assert not knowledge.judge("put knife 1 in/on table 1")


@pytest.mark.parametrize("task_type", TASK_TYPES)
def test_where_the_shortest_play_breaks_the_printed_rules(task_type):
    """At every treatment; else only where the tables have no arrow, or where neighbours share a place."""
    ours = ActionKnowledge.from_lark("household")
    for seed in range(4):
        game = make_game(seed, task_type)
        counts = paper_rules.judge(game, solve(game), paper_rules.printed_rules(game), ours)
        assert counts["effect"] == len(solve(game))
        assert counts["ours forbids"] == counts["no effect"] == counts["printed invalid"] == 0
        forbidden = {name for name in counts if " -> " in name}
        printed = PRINTED[paper_rules.RULE_SETS[task_type]]
        shares = len({place for _, _, place in game.start.state.of("receptacleatlocation")}) < len(game.receptacles)
        assert shares or not forbidden & {f"{former} -> {action}" for former in printed for action in printed[former]}
        treatment = next((verb for verb in ("clean", "heat", "cool") if verb in task_type), None)
        if treatment:
            assert sum(counts[name] for name in forbidden if name.endswith(treatment)) == 1


def test_the_printed_rules_forbid_what_the_expert_does_and_household_forbids_nothing():
    shared("alfworld/games_2.1.1_train.tar.xz")
    shared("alfworld/expert_gt_traj_train.tar.xz")
    figures = paper_rules.run(every=150, progress=False)
    assert figures.keys() == PRINTED.keys()
    for name, f in figures.items():
        assert f["household.lark: forbidden"] == 0
        forbidden = f["forbidden by the printed rules"]
        wrong = f["printed rules: misordered"] + f["printed rules: no such action"]
        assert sum(forbidden.values()) == wrong
        if name in ("clean", "heat", "cool"):
            assert sum(n for way, n in forbidden.items() if way.endswith(f"-> {name}")) == f["games"]
            assert f["printed rules: games admitted whole"] == 0
    table = paper_rules.table(figures)
    assert "| all |" in table and "open -> close" in table

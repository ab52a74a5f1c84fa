"""A small house written by hand, with one of everything that the rules tell apart.

Two cabinets share a place, and so do the shelf and the table; the pot lies on both
of these, as some objects of ALFWorld's games do.  Numbers run against the order of the
identifiers: cabinet "..._1" is called "cabinet 2".
"""

import json
import random

from constrained.environments.household import Game, HouseholdEnv

PROBLEM = """
(define (problem small) (:domain alfred)
(:objects
  agent1 - agent
  loc_bar_0 loc_bar_1 loc_bar_2 loc_bar_3 loc_bar_4 loc_bar_5 loc_bar_6 - location
  CabinetType TableType ShelfType SinkBasinType MicrowaveType FridgeType - rtype
  PotatoType KnifeType MugType BoxType PotType WindowType DeskLampType PenType - otype
  Cabinet_bar_1 Cabinet_bar_2 Table_bar_1 Shelf_bar_1 Sink_bar_1_bar_SinkBasin - receptacle
  Microwave_bar_1 Fridge_bar_1 - receptacle
  Potato_bar_1 Potato_bar_2 Knife_bar_1 Mug_bar_1 Box_bar_1 Pot_bar_1 - object
  Window_bar_1 DeskLamp_bar_1 Pen_bar_1 - object
)
(:init ; positions first
  (atLocation agent1 loc_bar_0)
  (receptacleAtLocation Cabinet_bar_1 loc_bar_1) (receptacleAtLocation Cabinet_bar_2 loc_bar_1)
  (receptacleAtLocation Table_bar_1 loc_bar_2) (receptacleAtLocation Shelf_bar_1 loc_bar_2)
  (receptacleAtLocation Sink_bar_1_bar_SinkBasin loc_bar_3)
  (receptacleAtLocation Microwave_bar_1 loc_bar_4) (receptacleAtLocation Fridge_bar_1 loc_bar_5)
  (receptacleType Cabinet_bar_1 CabinetType) (receptacleType Cabinet_bar_2 CabinetType)
  (receptacleType Table_bar_1 TableType) (receptacleType Shelf_bar_1 ShelfType)
  (receptacleType Sink_bar_1_bar_SinkBasin SinkBasinType)
  (receptacleType Microwave_bar_1 MicrowaveType) (receptacleType Fridge_bar_1 FridgeType)
  (openable Cabinet_bar_1) (openable Cabinet_bar_2) (openable Microwave_bar_1) (openable Fridge_bar_1)
  (objectType Potato_bar_1 PotatoType) (objectType Potato_bar_2 PotatoType) (objectType Knife_bar_1 KnifeType)
  (objectType Mug_bar_1 MugType) (objectType Box_bar_1 BoxType) (objectType Pot_bar_1 PotType)
  (objectType Window_bar_1 WindowType) (objectType DeskLamp_bar_1 DeskLampType) (objectType Pen_bar_1 PenType)
  (canContain CabinetType BoxType) (canContain CabinetType MugType)
  (canContain TableType PotatoType) (canContain TableType KnifeType) (canContain TableType MugType)
  (canContain ShelfType MugType) (canContain ShelfType PotType) (canContain TableType PotType)
  (canContain SinkBasinType PotatoType) (canContain SinkBasinType MugType) (canContain FridgeType PotatoType)
  (pickupable Potato_bar_1) (pickupable Potato_bar_2) (pickupable Knife_bar_1) (pickupable Mug_bar_1)
  (pickupable Box_bar_1) (pickupable Pot_bar_1) (pickupable Pen_bar_1)
  (cleanable Potato_bar_1) (heatable Potato_bar_1) (coolable Potato_bar_1) (sliceable Potato_bar_1)
  (sliceable Potato_bar_2) (cleanable Mug_bar_1) (toggleable DeskLamp_bar_1)
  (isReceptacleObject Mug_bar_1) (isReceptacleObject Box_bar_1) (inReceptacleObject Pen_bar_1 Box_bar_1)
  (inReceptacle Box_bar_1 Cabinet_bar_1) (objectAtLocation Box_bar_1 loc_bar_1)
  (inReceptacle Pen_bar_1 Cabinet_bar_1) (objectAtLocation Pen_bar_1 loc_bar_1)
  (inReceptacle Potato_bar_1 Table_bar_1) (objectAtLocation Potato_bar_1 loc_bar_2)
  (inReceptacle Potato_bar_2 Fridge_bar_1) (objectAtLocation Potato_bar_2 loc_bar_5)
  (inReceptacle Knife_bar_1 Table_bar_1) (objectAtLocation Knife_bar_1 loc_bar_2)
  (inReceptacle Mug_bar_1 Shelf_bar_1) (objectAtLocation Mug_bar_1 loc_bar_2)
  (inReceptacle Pot_bar_1 Shelf_bar_1) (inReceptacle Pot_bar_1 Table_bar_1) (objectAtLocation Pot_bar_1 loc_bar_2)
  (inReceptacle Window_bar_1 Table_bar_1) (objectAtLocation Window_bar_1 loc_bar_2)
  (inReceptacle DeskLamp_bar_1 Shelf_bar_1) (objectAtLocation DeskLamp_bar_1 loc_bar_2)
  (= (distance loc_bar_0 loc_bar_1) 3)
)
(:goal (and (exists (?r - receptacle) (exists (?o - object) (and
  (cleanable ?o) (isClean ?o) (objectType ?o MugType) (receptacleType ?r SinkBasinType) (inReceptacle ?o ?r))))))
)
"""

GAME_FILE = json.dumps(
    {
        "pddl_domain": "(define (domain alfred))",
        "grammar": '{"task": [{"rhs": "Your task is to: put a clean mug in sinkbasin."}]}',
        "pddl_problem": PROBLEM,
        "solvable": True,
    }
)


def small_house() -> Game:
    """Return the game."""
    return Game.from_json(GAME_FILE, "small")


def wander(env: HouseholdEnv, rng: random.Random, steps: int):
    """Play admissible commands at random, doing things rather than walking; yield before each."""
    for _ in range(steps):
        yield
        commands = env.admissible()
        acting = [c for c in commands if not c.startswith(("go to", "examine", "look", "inventory", "close"))]
        env.step(rng.choice(acting if acting and rng.random() < 0.7 else commands))
        if env.done:
            return

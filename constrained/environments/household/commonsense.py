"""Common-sense knowledge of homes, by kinds of things: the facts of `grammars/household_game.lark`, and kinds of rooms.

The rooms are written by hand, in ALFWorld's vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

from constrained.environments.household.game import household_world


@dataclass(frozen=True)
class Room:
    """A kind of room.

    Attributes
    ----------
    furniture : dict of str to (int, int)
        The least and the greatest number of receptacles of each kind.
    objects : dict of str to int
        The greatest number of movable objects of each kind.
    scenery : dict of str to str
        Objects that can't be moved, with the furniture they stand on.
    """

    furniture: dict[str, tuple[int, int]]
    objects: dict[str, int]
    scenery: dict[str, str]


def _kind(term: str) -> str:
    """The kind that an object of ``grammars/household_game.lark`` stands for: "sinkbasintype" -> "SinkBasin"."""
    return household_world().domain.spell(term).removesuffix("Type")


_homes = household_world().problem
assert _homes is not None  # the file describes homes
# The kinds of objects that each kind of receptacle can hold.
HOLDS: dict[str, set[str]] = {_kind(name): set() for name, of in _homes.objects.items() if of == "rtype"}
# The traits of each kind of thing, such as "openable".
TRAITS: dict[str, list[str]] = {}
for _predicate, _thing, *_others in _homes.init:
    if _others:
        HOLDS[_kind(_thing)].update(map(_kind, _others))
    else:
        TRAITS.setdefault(_kind(_thing), []).append(_predicate)
OBJECTS = frozenset(kind for held in HOLDS.values() for kind in held)
LAMPS = tuple(kind for kind, traits in TRAITS.items() if "toggleable" in traits)
# How much likelier an object is to lie there than in a drawer.
CROWDED = {
    "Bed": 3, "CoffeeTable": 5, "CounterTop": 9, "Desk": 6, "DiningTable": 6, "Dresser": 5,
    "Fridge": 5, "SideTable": 4, "SinkBasin": 2, "Sofa": 4, "StoveBurner": 4, "TVStand": 4, "Toilet": 4,
}  # fmt: skip

# Where a lamp can stand.
LAMP_STANDS = ("SideTable", "Desk", "Dresser", "CoffeeTable", "Shelf", "DiningTable", "CounterTop")

ROOMS: dict[str, Room] = {
    "kitchen": Room(
        furniture={
            "Cabinet": (4, 14), "CoffeeMachine": (1, 1), "CounterTop": (1, 3), "DiningTable": (0, 1),
            "Drawer": (2, 8), "Fridge": (1, 1), "GarbageCan": (1, 1), "Microwave": (1, 1), "Shelf": (0, 3),
            "SideTable": (0, 1), "SinkBasin": (1, 1), "StoveBurner": (4, 4), "Toaster": (1, 1),
        },
        objects={
            "Apple": 3, "Book": 1, "Bowl": 3, "Bread": 2, "ButterKnife": 2, "CellPhone": 1, "CreditCard": 1,
            "Cup": 3, "DishSponge": 3, "Egg": 3, "Fork": 3, "Glassbottle": 2, "Kettle": 1, "Knife": 2,
            "Ladle": 2, "Lettuce": 2, "Mug": 3, "Pan": 2, "Pen": 1, "Pencil": 1, "PepperShaker": 3, "Plate": 3,
            "Pot": 2, "Potato": 3, "SaltShaker": 3, "SoapBottle": 3, "Spatula": 3, "Spoon": 3,
            "SprayBottle": 1, "Statue": 1, "Tomato": 3, "Vase": 2, "WineBottle": 2,
        },
        scenery={"HousePlant": "CounterTop"},
    ),
    "bedroom": Room(
        furniture={
            "ArmChair": (0, 1), "Bed": (1, 2), "Cabinet": (0, 2), "Desk": (0, 1), "Drawer": (3, 10),
            "Dresser": (0, 1), "GarbageCan": (1, 1), "LaundryHamper": (0, 1), "Safe": (0, 1),
            "Shelf": (0, 6), "SideTable": (1, 2),
        },
        objects={
            "AlarmClock": 3, "BaseballBat": 1, "BasketBall": 1, "Book": 3, "Bowl": 1, "Box": 1, "CD": 3,
            "CellPhone": 3, "Cloth": 1, "CreditCard": 3, "KeyChain": 3, "Laptop": 2, "Mug": 2, "Newspaper": 1,
            "Pen": 3, "Pencil": 3, "Pillow": 3, "RemoteControl": 1, "Statue": 1, "TeddyBear": 1,
            "TennisRacket": 1, "TissueBox": 2, "Vase": 2, "Watch": 2,
        },
        scenery={"HousePlant": "SideTable"},
    ),
    "living room": Room(
        furniture={
            "ArmChair": (1, 2), "Cabinet": (0, 3), "CoffeeTable": (1, 2), "Desk": (0, 1), "DiningTable": (0, 1),
            "Drawer": (0, 8), "Dresser": (0, 1), "GarbageCan": (1, 1), "Ottoman": (0, 1), "Safe": (0, 1),
            "Shelf": (0, 6), "SideTable": (1, 3), "Sofa": (1, 2), "TVStand": (0, 1),
        },
        objects={
            "Book": 3, "Bowl": 1, "Box": 2, "Candle": 1, "CellPhone": 2, "CreditCard": 3, "KeyChain": 3,
            "Laptop": 2, "Newspaper": 3, "Pen": 1, "Pencil": 1, "Pillow": 3, "Plate": 2, "RemoteControl": 3,
            "Statue": 3, "TissueBox": 3, "Vase": 3, "Watch": 3, "WateringCan": 1,
        },
        scenery={"HousePlant": "SideTable", "Television": "TVStand"},
    ),
    "bathroom": Room(
        furniture={
            "BathtubBasin": (0, 1), "Cabinet": (1, 4), "Cart": (0, 1), "CounterTop": (1, 1), "Drawer": (0, 5),
            "Dresser": (0, 1), "GarbageCan": (1, 1), "HandTowelHolder": (1, 2), "LaundryHamper": (0, 1),
            "Shelf": (0, 2), "SideTable": (0, 1), "SinkBasin": (1, 2), "Toilet": (1, 1),
            "ToiletPaperHanger": (1, 1), "TowelHolder": (1, 1),
        },
        objects={
            "Candle": 3, "Cloth": 3, "DishSponge": 2, "HandTowel": 2, "Plunger": 1, "SoapBar": 3,
            "SoapBottle": 3, "SprayBottle": 3, "TissueBox": 2, "ToiletPaper": 3, "Towel": 1,
        },
        scenery={"HousePlant": "CounterTop"},
    ),
}  # fmt: skip

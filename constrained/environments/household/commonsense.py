"""Common-sense knowledge of homes: what rooms contain, what furniture holds, what can be done to objects.

Written by hand, in the vocabulary of ALFWorld, so that an agent can play those games and ours.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Room:
    """A kind of room.

    Attributes
    ----------
    furniture : dict of str to (int, int)
        The least and most receptacles of each kind.
    objects : dict of str to int
        The most objects of each kind that lie about.
    scenery : dict of str to str
        Objects that can't be moved, with the furniture they stand on.
    """

    furniture: dict[str, tuple[int, int]]
    objects: dict[str, int]
    scenery: dict[str, str]


FOOD = "Apple Bread Egg Lettuce Potato Tomato"
DISHES = "Bowl Cup Mug Plate"
CUTLERY = "ButterKnife Fork Knife Ladle Spatula Spoon"
COOKWARE = "Kettle Pan Pot"
SPICES = "PepperShaker SaltShaker"
DRINKS = "Glassbottle WineBottle"
WASHING = "Cloth DishSponge HandTowel SoapBar SoapBottle SprayBottle"
TOILETRIES = "Candle TissueBox ToiletPaper"
POCKET = "CellPhone CreditCard KeyChain Watch"
WRITING = "Pen Pencil"
READING = "Book CD Laptop Newspaper RemoteControl"
ORNAMENTS = "Bowl Candle Plate Statue TissueBox Vase WateringCan"
SPORTS = "BaseballBat BasketBall TennisRacket"
KITCHENWARE = f"{FOOD} {DISHES} {CUTLERY} {COOKWARE} {SPICES} {DRINKS}"
OFFICE = f"{POCKET} {WRITING} {READING} AlarmClock Box Mug"

# The kinds of objects that each kind of receptacle takes.
HOLDS: dict[str, frozenset[str]] = {
    receptacle: frozenset(kinds.split())
    for receptacle, kinds in {
        "ArmChair": f"{POCKET} {READING} Box Cloth Pillow",
        "BathtubBasin": "Cloth DishSponge HandTowel SoapBar Towel",
        "Bed": "BaseballBat BasketBall Book CellPhone Laptop Newspaper Pillow TeddyBear TennisRacket",
        "Cabinet": f"{DISHES} {COOKWARE} {SPICES} {DRINKS} {WASHING} {TOILETRIES} {POCKET} "
        "Book Box CD Ladle Newspaper Plunger Towel Vase WateringCan",
        "Cart": f"{WASHING} {TOILETRIES} Plunger Towel",
        "CoffeeMachine": "Mug",
        "CoffeeTable": f"{OFFICE} {ORNAMENTS}",
        "CounterTop": f"{KITCHENWARE} {WASHING} {TOILETRIES} {OFFICE} Statue Vase",
        "Desk": f"{OFFICE} {ORNAMENTS} {SPORTS} Cloth",
        "DiningTable": f"{KITCHENWARE} {OFFICE} {ORNAMENTS} {SPORTS} Cloth DishSponge SoapBottle SprayBottle",
        "Drawer": f"{CUTLERY} {SPICES} {WASHING} {TOILETRIES} {POCKET} {WRITING} "
        "Book CD Newspaper RemoteControl WateringCan",
        "Dresser": f"{OFFICE} {ORNAMENTS} {SPORTS} Cloth SprayBottle SoapBottle ToiletPaper",
        "Fridge": f"{FOOD} {DISHES} {DRINKS} Pan Pot",
        "GarbageCan": f"{FOOD} {DRINKS} {WASHING} {TOILETRIES} {WRITING} CD Newspaper",
        "HandTowelHolder": "HandTowel",
        "LaundryHamper": "Cloth HandTowel Towel",
        "Microwave": "Apple Bowl Bread Cup Egg Glassbottle Mug Plate Potato Tomato",
        "Ottoman": f"{POCKET} {READING} Box Pillow",
        "Safe": "CD CellPhone CreditCard KeyChain Statue Vase Watch",
        "Shelf": f"{DISHES} {COOKWARE} {SPICES} {DRINKS} {WASHING} {OFFICE} {ORNAMENTS} ToiletPaper",
        "SideTable": f"{KITCHENWARE} {WASHING} {TOILETRIES} {OFFICE} {ORNAMENTS} {SPORTS}",
        "SinkBasin": f"{DISHES} {CUTLERY} {COOKWARE} Apple Cloth DishSponge Egg Glassbottle HandTowel "
        "Lettuce Potato SoapBar Tomato",
        "Sofa": f"{POCKET} {READING} Box Pillow TeddyBear",
        "StoveBurner": COOKWARE,
        "TVStand": f"{POCKET} {WRITING} {READING} {ORNAMENTS} Box",
        "Toaster": "",
        "Toilet": f"{WASHING} {TOILETRIES}",
        "ToiletPaperHanger": "ToiletPaper",
        "TowelHolder": "Towel",
    }.items()
}
OPENABLE = frozenset("Cabinet Drawer Fridge Microwave Safe".split())
# How much likelier an object lies there than in a drawer.
CROWDED = {
    "Bed": 3, "CoffeeTable": 5, "CounterTop": 9, "Desk": 6, "DiningTable": 6, "Dresser": 5,
    "Fridge": 5, "SideTable": 4, "SinkBasin": 2, "Sofa": 4, "StoveBurner": 4, "TVStand": 4, "Toilet": 4,
}  # fmt: skip

# The kinds of objects that can be cleaned, heated and cooled.
TREATABLE: dict[str, frozenset[str]] = {
    "clean": frozenset(
        f"{DISHES} {CUTLERY} {COOKWARE} Apple Cloth DishSponge Egg Lettuce Potato SoapBar Tomato".split()
    ),
    "heat": frozenset("Apple Bread Cup Egg Mug Plate Potato Tomato".split()),
    "cool": frozenset(f"{FOOD} {DISHES} Pan Pot WineBottle".split()),
}
SLICEABLE = frozenset(FOOD.split())
VESSELS = frozenset(f"{DISHES} Box Pan Pot".split())
LAMPS = ("DeskLamp", "FloorLamp")
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

OBJECTS = frozenset(kind for held in HOLDS.values() for kind in held)

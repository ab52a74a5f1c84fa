"""A text world of one's own: a treasure hunt in which the slots are bound to what is in view.

The world needs no base class. `reset` and `step` play it; `view` gives the values of the slots before each action, so
the model can name only rooms and things that are there at that moment.
"""

import argparse

from constrained import ActionKnowledge, generate_plan

KNOWLEDGE = """
%declare _STEP          // ends an action: here the world answers
%declare ROOM THING     // slots, bound to `view()` before each action

// Find the gold coin and put it into the chest.
start: enter{ROOM}

// enter: go into ROOM.
enter{r}: "enter " r _STEP (take{THING} | enter{ROOM})

// take: pick up THING, which is in this room.
take{t}: "take " t _STEP (drop{t} | store{t})

// drop: put down what you hold.
drop{t}: "drop " t _STEP (take{THING} | enter{ROOM})

// store: put what you hold into the chest; that ends the hunt.
store{t}: "store " t
"""


class TreasureHunt:
    """Three rooms. Each can be entered once, so that every game ends."""

    def reset(self):
        self.rooms = {"cellar": ["rope"], "attic": ["gold coin", "gold coin box"], "garden": ["spade"]}
        self.here = []
        return "You are in the hall. Doors lead to the cellar, the attic and the garden."

    def view(self):
        return {"ROOM": list(self.rooms), "THING": self.here}

    def step(self, action):
        verb, _, name = action.partition(" ")
        if verb == "enter":
            self.here = self.rooms.pop(name)
            return f"You are in the {name}. You see: {', '.join(self.here)}.", 0.0, False
        if verb == "take":
            self.here = [thing for thing in self.here if thing != name]
        stored = verb == "store"
        return f"You {verb} the {name}.", float(stored and name == "gold coin"), stored


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="a Hugging Face name or folder; default: the model that ships")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    plan = generate_plan(
        "put the gold coin into the chest",
        ActionKnowledge.from_lark(KNOWLEDGE),
        environment=TreasureHunt(),
        strategy="act",
        model=options.model,
        max_steps=12,
        temperature=1.0,
        seed=options.seed,
    )
    for step in plan.steps:
        print(f"> {step.action}\n{step.observation}")
    print("won" if plan.success else "not won", f"- {plan.invalid} invalid, {plan.misordered} misordered actions")
    return plan


if __name__ == "__main__":
    main()

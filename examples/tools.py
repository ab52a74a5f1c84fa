"""JSON tools as action knowledge: which tool may follow which, checked and enforced.

The list is in the form of OpenAI's function calling; MCP's and Anthropic's are read as well.
"""

import argparse
import json

from constrained import ActionKnowledge, generate_plan

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "find_flight",
            "description": "Flights between two airports on a day.",
            "parameters": {
                "type": "object",
                "properties": {
                    "origin": {"type": "string", "pattern": "^[A-Z]{3}$"},
                    "destination": {"type": "string", "pattern": "^[A-Z]{3}$"},
                    "day": {"enum": ["monday", "tuesday", "wednesday"]},
                },
                "required": ["origin", "destination", "day"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "book_flight",
            "description": "Book a flight.",
            "parameters": {
                "type": "object",
                "properties": {"flight": {"enum": ["LH100", "LH200"]}, "bags": {"type": "integer", "maximum": 2}},
                "required": ["flight"],
            },
        },
    },
]


def booking_knowledge():
    """The tools, with the rule that a flight is found before one is booked, and that booking ends the plan."""
    follow = {"start": ["find_flight"], "find_flight": ["find_flight", "book_flight"], "book_flight": []}
    return ActionKnowledge.from_tools(TOOLS, follow=follow, end=["book_flight"])


def call(name, **arguments):
    """A tool call as a model writes it."""
    return json.dumps({"name": name, "arguments": arguments})


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="a Hugging Face name or folder; default: the model that ships")
    options = parser.parse_args(arguments)
    knowledge = booking_knowledge()

    find = call("find_flight", origin="FRA", destination="LIS", day="monday")
    book = call("book_flight", flight="LH100")
    for calls in ([find, book], [book], [find, call("book_flight", flight="LH999")]):
        print(knowledge.check(calls), end="\n\n")

    # Without an environment nothing is executed: the model writes a whole plan that the knowledge admits.
    plan = generate_plan("fly to Lisbon", knowledge, strategy="act", model=options.model, max_steps=3)
    print("a plan:", *plan.path, sep="\n  ")
    return knowledge, plan


if __name__ == "__main__":
    main()

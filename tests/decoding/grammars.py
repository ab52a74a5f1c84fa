"""Grammars of every kind that decoding meets."""

from constrained import Grammar

STEP = r"""
start: "Thought: " THOUGHT "\nAction: " action
action: "go to " PLACE | "take " THING " from " PLACE | "Finish[" /[a-z]{0,6}/ "]"
THOUGHT: /[^\n]{1,40}/
PLACE: ("desk" | "drawer" | "étagère") " " /[1-9][0-9]?/
THING: "mug " /[1-3]/ | "中"
"""
GRAMMARS = {
    "step": Grammar.from_lark(STEP),
    "choices": Grammar.from_choices(["go to desk 1", "go to desk 10", "go to drawer 1", "look"]),
    "regex": Grammar.from_regex(r"(a|b)+c{1,3}é?"),
    "one text": Grammar.from_choices(["Start->go to desk 1->take mug 1 from desk 1"]),
    "free": Grammar.from_regex(r"[^\n]*"),
}

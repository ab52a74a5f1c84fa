"""The seven workloads, each a few grammars with texts to write within them.

They are generated from seeds, so every run and every engine has the same. The texts are whole texts of their grammars;
`tests/benchmarks` checks them by `re` and by our own checker.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from json import dumps

from benchmarks.engine.language import Chars, Choice, Name, Node, Repeat, Seq, prefix_pattern, whole_pattern
from benchmarks.engine.referees import begins_calculation, begins_object, is_calculation, is_object, json_rules

VERBS_OF_HOTPOTQA = ("Retrieve", "Search", "Lookup", "Finish")
STEPS = 40
"""Sets of commands in `choices`."""
COMMANDS = 96
"""Commands in a set."""
ROWS = 64
"""Rows in `batch`."""

PLACES = (
    "armchair bathtubbasin bed cabinet cart coffeemachine coffeetable countertop desk diningtable drawer dresser "
    "fridge garbagecan handtowelholder laundryhamper microwave ottoman safe shelf sidetable sinkbasin sofa "
    "stoveburner toaster"
)
THINGS = (
    "alarmclock apple book bowl box bread butterknife candle cd cellphone cloth creditcard cup dishsponge egg fork "
    "glassbottle handtowel keychain kettle knife ladle laptop lettuce mug newspaper pan pen pencil peppershaker pillow "
    "plate pot potato remotecontrol saltshaker soapbar spatula spoon spraybottle statue tissuebox tomato vase watch"
)
WORDS = (
    "the a I need to look for find take put clean mug on in it is now then should be at first next because shelf desk "
    "table drawer hot cold and was born in which city film director year series actor called known as page says so far "
    "don't résumé “quoted” 12 1998 — maybe there are more than one"
)
TOPICS = (
    "Milhouse", "Allan Quatermain", "Richard Nixon", "The Simpsons (season 2)", "Pokémon: Indigo League",
    "Kırşehir Province", "2014 S/S", "Sierra Boggess", "Broadway musical", "Łódź film school", "moons of Mars",
)  # fmt: skip
GRAPH_VERBS = (
    "go to|walk to|turn to|step over to", "look at|examine|inspect|study", "open|unlock|pull open|slide open",
    "take|pick up|grab|lift", "carry|hold on to|bring along|keep", "clean|rinse|wipe|scrub",
    "heat|warm|cook|microwave", "cool|chill|freeze|refrigerate", "slice|cut|chop|peel",
    "put down|place|leave|set down", "close|shut|cover|lock",
)  # fmt: skip
GRAPH_OBJECTS = 100
GRAPH_CYCLES = 3
"""Times that a plan of `graph` passes through all groups of actions: about 274 tokens."""


@dataclass(frozen=True)
class Case:
    """One grammar and the texts written within it.

    Attributes
    ----------
    rules : dict of str to Node
        With the start rule `root`.
    regular : Node or None
        The same language without names; None if it is not regular.
    texts : tuple of str
    choices : tuple of str or None
        The language, if it is a list of texts.
    nested : tuple of two callables or None
        If `regular` is None: whether bytes are the beginning of a text, and whether they are a text.
    """

    rules: dict[str, Node]
    regular: Node | None
    texts: tuple[str, ...]
    choices: tuple[str, ...] | None = None
    nested: tuple[Callable[[bytes], bool], Callable[[bytes], bool]] | None = None

    def referee(self) -> Callable[[bytes], bool]:
        """A function that tells whether bytes begin a text of the language, independently of all engines."""
        if self.nested:
            return self.nested[0]
        pattern = prefix_pattern(self.regular)
        return lambda data: pattern.fullmatch(data) is not None

    def whole(self, data: bytes) -> bool:
        """Whether `data` is a text of the language."""
        if self.nested:
            return self.nested[1](data)
        return whole_pattern(self.regular).fullmatch(data) is not None


@dataclass(frozen=True)
class Workload:
    """Cases of one kind; `batched`: they are the rows of one batch, each at its own position in its text."""

    name: str
    summary: str
    cases: tuple[Case, ...]
    batched: bool = False


def step() -> Workload:
    """One KnowAgent step, lengths unbounded."""
    return Workload("step", "one KnowAgent step", (_step_case(bounded=False),))


def bounded() -> Workload:
    """The same with bounded lengths."""
    return Workload("bounded", "the same, lengths {1,60}, {0,8}, {1,300}", (_step_case(bounded=True),))


def choices() -> Workload:
    """A new set of household commands at every step."""
    cases = []
    for number in range(STEPS):
        commands = household_commands(1000 + number)
        cases.append(_case(Choice(*commands), (commands[number * 7 % COMMANDS],), commands))
    return Workload("choices", f"{COMMANDS} household commands, new at every step", tuple(cases))


def graph() -> Workload:
    """Actions with objects, eight of which may follow each.

    The actions form a ring of groups of four; an action is followed by one of its own group or of the next. A plan may
    end after an action of the last group.
    """
    rng = random.Random(44)
    names = [f"{thing} {number}" for number in range(1, 4) for thing in THINGS.split()]
    objects = Choice(*names[:GRAPH_OBJECTS])
    groups = [group.split("|") for group in GRAPH_VERBS]
    rules: dict[str, Node] = {"root": Choice(*(Name(f"act{i}") for i in range(4)))}
    for g, group in enumerate(groups):
        successors = [Name(f"act{h % len(groups) * 4 + i}") for h in (g, g + 1) for i in range(4)]
        more = Seq("\n", Choice(*successors))
        for i, verb in enumerate(group):
            more_here = Repeat(more, 0, 1) if g == len(groups) - 1 else more
            rules[f"act{4 * g + i}"] = Seq(f"{verb} ", Name("object"), more_here)
    rules["object"] = objects
    runs: list[Node | str] = []
    for group in groups:
        action = Seq(Choice(*(f"{verb} " for verb in group)), objects)
        runs += [action, Repeat(Seq("\n", action)), "\n"]
    cycle = Seq(*runs[:-1])
    lines = []
    for _ in range(GRAPH_CYCLES):
        for group in groups:
            lines += [f"{rng.choice(group)} {rng.choice(names[:GRAPH_OBJECTS])}" for _ in range(rng.choice((1, 1, 2)))]
    case = Case(rules, Seq(cycle, Repeat(Seq("\n", cycle))), ("\n".join(lines),))
    return Workload("graph", f"{4 * len(groups)} actions × {GRAPH_OBJECTS} objects, 8 may follow", (case,))


def batch() -> Workload:
    """Rows that each have their own step number, commands, thought and position."""
    cases = []
    for row in range(ROWS):
        rng = random.Random(64_000 + row)
        commands = household_commands(2000 + row)
        head, line = f"Thought {row + 1}: ", f"\nAction {row + 1}: "
        text = head + _thought(rng, 5 + row % 11) + line + rng.choice(commands)
        cases.append(_case(Seq(head, Chars("\n", negated=True), line, Choice(*commands)), (text,)))
    return Workload("batch", f"{ROWS} rows, each its own grammar and place", tuple(cases), batched=True)


def calculator() -> Workload:
    """Nested expressions."""
    digits = Chars("0-9")
    rules = {
        "root": Seq("Calculator(", Name("sum"), ")"),
        "sum": Seq(Name("product"), Repeat(Seq(Choice("+", "-"), Name("product")))),
        "product": Seq(Name("factor"), Repeat(Seq(Choice("*", "/"), Name("factor")))),
        "factor": Choice(Seq(digits, Repeat(Seq(".", digits), 0, 1)), Seq("(", Name("sum"), ")")),
    }
    texts = (
        "Calculator((3+4.5)*2)",
        "Calculator(((12.50-3)*(7+4/2))/((1+(2*(3-(4/5))))-0.25))",
        "Calculator(((((((1))))))+((2-(3*(4+(5/(6-7)))))*100)-(((8))))",
    )
    return Workload(
        "calculator", "nested calculator expressions", (_nested_case(rules, texts, begins_calculation, is_calculation),)
    )


def json() -> Workload:
    """Function calls as JSON: nested objects and arrays, strings with escapes, numbers."""
    rng = random.Random(2406)
    texts = tuple(dumps(_call(rng, depth), ensure_ascii=False) for depth in (2, 3, 5))
    case = _nested_case(json_rules(), texts, begins_object, is_object)
    return Workload("json", "function calls as JSON", (case,))


WORKLOADS: dict[str, Callable[[], Workload]] = {
    "step": step, "bounded": bounded, "choices": choices, "graph": graph, "batch": batch, "calculator": calculator,
    "json": json,
}  # fmt: skip


def household_commands(seed: int) -> tuple[str, ...]:
    """The commands in some room, sorted as a game would list them."""
    rng = random.Random(seed)
    places = [f"{place} {n}" for place in rng.sample(PLACES.split(), 9) for n in range(1, rng.randint(2, 5))]
    things = [f"{thing} {rng.randint(1, 3)}" for thing in rng.sample(THINGS.split(), 12)]
    commands = {f"go to {place}" for place in places} | {"look", "inventory"}
    kinds = ("take {t} from {p}", "put {t} in/on {p}", "open {p}", "close {p}", "examine {p}", "use {t}",
             "clean {t} with {p}", "heat {t} with {p}", "cool {t} with {p}")  # fmt: skip
    while len(commands) < COMMANDS:
        commands.add(rng.choice(kinds).format(t=rng.choice(things), p=rng.choice(places)))
    return tuple(sorted(sorted(commands)[:COMMANDS]))


def _case(node: Node, texts: tuple[str, ...], listed: tuple[str, ...] | None = None) -> Case:
    return Case({"root": node}, node, texts, listed)


def _nested_case(rules: dict[str, Node], texts: tuple[str, ...], begins, whole) -> Case:
    return Case(rules, None, texts, nested=(begins, whole))


def _call(rng: random.Random, depth: int) -> dict:
    """A function call whose arguments nest `depth` levels."""
    names = [verb.split("|")[0].replace(" ", "_") for verb in GRAPH_VERBS]
    return {"name": rng.choice(names), "arguments": {rng.choice(PLACES.split()): _value(rng, depth) for _ in range(4)}}


def _value(rng: random.Random, depth: int):
    kind = rng.randrange(4) if depth else rng.randrange(2, 6)
    if kind == 0:
        return {thing: _value(rng, depth - 1) for thing in rng.sample(THINGS.split(), 3)}
    if kind == 1:
        return [_value(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    if kind == 2:
        return _thought(rng, rng.randint(1, 9)).replace("“", '"').replace("—", "\t")
    return (rng.choice(TOPICS), round(rng.uniform(-900, 900), 2), rng.random() < 0.5, None)[rng.randrange(4)]


def _step_case(bounded: bool) -> Case:
    digits = Chars("0-9", 1, 2 if bounded else None)
    argument = Chars("]\n", 1, 60 if bounded else None, negated=True)
    thought = Chars("\n", 1, 300 if bounded else None, negated=True)
    action = Seq(Choice(*VERBS_OF_HOTPOTQA), "[", argument, "]")
    path = Repeat(Seq("->", action), 0, 8 if bounded else None)
    head = Seq("ActionPath ", digits, ": Start", path)
    node = Seq(head, "\nThought ", digits, ": ", thought, "\nAction ", digits, ": ", action)
    rng = random.Random(2403)
    texts = [_step_text(rng, number, _thought(rng, 12 + number), rng.choice(TOPICS)) for number in (1, 3)]
    to_the_limit = _step_text(rng, 9, _thought(rng, 80)[:299] + ".", " and ".join(TOPICS)[:59] + "?")
    return _case(node, (*texts, to_the_limit))


def _step_text(rng: random.Random, number: int, thought: str, argument: str) -> str:
    """A KnowAgent step as a model might write it."""
    done = [f"{rng.choice(VERBS_OF_HOTPOTQA[:3])}[{rng.choice(TOPICS)}]" for _ in range(number - 1)]
    path = "->".join(["Start", *done])
    action = f"{rng.choice(VERBS_OF_HOTPOTQA)}[{argument}]"
    return f"ActionPath {number}: {path}\nThought {number}: {thought}\nAction {number}: {action}"


def _thought(rng: random.Random, words: int) -> str:
    known = WORDS.split()
    return " ".join(rng.choice(known) for _ in range(words)) + "."


def household_step(number: int) -> tuple[str, Case]:
    """The prompt and the grammar of one KnowAgent step.

    The path of two to five actions is known, the thought is free text, the action is one of many. Steps of different
    numbers share only their form.
    """
    rng = random.Random(7000 + number)
    commands = household_commands(3000 + number)
    done = rng.sample(commands, 2 + number % 4)
    n = len(done) + 1
    seen = "\n".join(f"> {action}\nYou {action}. You see {', '.join(rng.sample(commands, 2))}." for action in done)
    prompt = f"Your task is to: {rng.choice(commands)}.\n{seen}\n"
    path = "->".join(["Start", *done])
    head = f"ActionPath {n}: {path}\nThought {n}: "
    node = Seq(head, Chars("\n", 1, 80, negated=True), f"\nAction {n}: ", Choice(*commands))
    return prompt, Case({"root": node}, node, ())

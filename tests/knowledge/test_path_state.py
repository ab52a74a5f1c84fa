"""A state on a path: what is bound, what is held, what comes next; it never changes."""

import pytest

from constrained import ActionKnowledge, Grammar, Limits, Vocabulary, compile_grammar
from constrained.environments.household import HouseholdEnv
from constrained.errors import GrammarError, KnowledgeError, LimitError
from tests.environments.household.small_house import small_house
from tests.knowledge.enumerate import texts

TIED = """
%declare _STEP
%declare PLACE THING
start: go{PLACE}
go{r}: "go " r _STEP (| go{PLACE} | take{THING, r})
take{o, r}: "take " o " from " r _STEP carry{o, PLACE}
carry{o, r}: "bring " o " to " r _STEP (carry{o, PLACE} | drop{o, r})
drop{o, r}: "drop " o " at " r _STEP (| go{PLACE})
"""


@pytest.fixture
def tied():
    knowledge = ActionKnowledge.from_lark(TIED)
    return knowledge.bind(PLACE=["attic", "cellar"], THING={"attic": ["hat", "hat box"], "cellar": ["wine"]})


def test_a_value_is_the_same_wherever_its_parameter_stands(tied):
    here = tied.after("go attic")
    assert texts(here.next_action()) == {"go attic", "go cellar", "take hat from attic", "take hat box from attic"}
    here = here.after("take hat from attic")
    assert texts(here.next_action()) == {"bring hat to attic", "bring hat to cellar"}
    here = here.after("bring hat to cellar")
    assert texts(here.next_action()) == {"bring hat to attic", "bring hat to cellar", "drop hat at cellar"}
    here = here.after("bring hat to attic").after("drop hat at attic")
    assert texts(here.next_action()) == {"go attic", "go cellar"}
    assert here.path == (
        "go attic", "take hat from attic", "bring hat to cellar", "bring hat to attic", "drop hat at attic",
    )  # fmt: skip


def test_what_was_fixed_outlives_new_bindings(tied):
    here = tied.after("go attic").after("take hat from attic")
    here = here.bind(PLACE=["garden"], THING={})
    assert texts(here.next_action()) == {"bring hat to garden"}
    here = here.after("bring hat to garden").bind(PLACE=["attic"])
    assert texts(here.next_action()) == {"bring hat to attic", "drop hat at garden"}


def test_a_whole_path_is_one_text_of_the_grammar_up_to_its_steps(tied):
    assert tied.check(
        ["go attic", "go cellar", "take wine from cellar", "bring wine to attic", "drop wine at attic"]
    ).ok
    assert tied.check(["go attic", "take wine from attic"]).verdicts == ["ok", "misordered"]
    assert tied.check(["go attic", "take hat from attic", "bring hat box to attic"]).verdicts[-1] == "misordered"


def test_may_end(tied):
    assert not tied.may_end
    here = tied.after("go attic")
    assert here.may_end
    here = here.after("take hat from attic")
    assert not here.may_end and not here.after("bring hat to attic").may_end
    assert here.after("bring hat to attic").after("drop hat at attic").may_end


def test_nothing_changes_a_place(tied):
    before = texts(tied.next_action())
    other = tied.bind(PLACE=["garden"])
    assert texts(other.next_action()) == {"go garden"} and texts(tied.next_action()) == before
    here = tied.after("go attic")
    here.after("take hat from attic")
    here.check(["take hat from attic", "nonsense", "drop hat at attic"])
    here.bind_view({"PLACE": ["garden"]})
    assert here.path == ("go attic",) and tied.path == ()
    assert texts(here.next_action()) == {"go attic", "go cellar", "take hat from attic", "take hat box from attic"}


def test_two_ways_on_from_one_place_are_independent(tied):
    here = tied.after("go attic")
    hat, box = here.after("take hat from attic"), here.after("take hat box from attic")
    assert texts(hat.next_action(2)) & texts(box.next_action(2)) == set()


def test_after_an_action_that_is_not_admitted_is_an_error(tied):
    with pytest.raises(KnowledgeError, match="'drop hat at attic' is misordered: drop is not admitted at the start"):
        tied.after("drop hat at attic")
    with pytest.raises(KnowledgeError, match="'fly' is invalid"):
        tied.after("fly")


def test_a_view_binds_our_slots_and_only_these(tied):
    here = tied.bind_view({"PLACE": ["attic"], "WEATHER": ["rain"]})
    assert texts(here.next_action()) == {"go attic"}
    assert texts(here.after("go attic").next_action()) == {"go attic"}  # no THING in view: none to take


def test_a_slot_can_be_a_text_or_a_grammar():
    say = ActionKnowledge.from_lark('%declare _STEP\n%declare WORD\nstart: say\nsay: "say " WORD _STEP [say]\n')
    assert texts(say.bind(WORD="hello").next_action()) == {"say hello"}
    either = say.bind(WORD=Grammar.from_choices(["a", "b"]))
    assert texts(either.after("say a").next_action()) == {"say a", "say b"}
    assert either.judge("say c").verdict == "invalid"


def test_an_unknown_slot_and_an_empty_list_are_errors(tied):
    with pytest.raises(KnowledgeError, match="no slot 'PLACES'") as caught:
        tied.bind(PLACES=["attic"])
    assert caught.value.hint == "the slots are: PLACE, THING"
    with pytest.raises(KnowledgeError, match="slot PLACE: nothing to choose from") as caught:
        tied.bind(PLACE=[])
    assert "{} for none" in caught.value.hint
    with pytest.raises(KnowledgeError, match="no slot '_STEP'"):
        tied.bind(_STEP=["x"])
    with pytest.raises(KnowledgeError, match="slot PLACE: 3 is not text"):
        tied.bind(PLACE=[3])


# limits


LIMITED = {
    "a chain with ways back": """
        start: a | long
        a: "A" _STEP (a | b)
        b: "B" _STEP (a | c)
        c: "C" _STEP (b | end)
        long: "L" _STEP long | "M" _STEP c
        end: "E" """,
    "what follows depends on where one is": """
        start: look{start} | go
        at: look{at} | end
        go: "A" _STEP at
        look{then}: "L" _STEP then
        end: "E" """,
    "an argument of an argument": """
        start: l{m{b}} | m{b} | b
        l{t}: "L" _STEP t | "A" _STEP m{t}
        m{t}: "M" _STEP t
        b: "B" """,
    "a rule that another goes on after": """
        start: pair pair | pair
        pair: a [b] c
        a: "A" _STEP
        b: "B" _STEP
        c: "C" _STEP """,
    "repeats": """
        start: (a _STEP)~2..4 [b]
        a: "A" | "B"
        b: "M" """,
    "rules that only choose, in a circle": """
        start: any
        any: either | a
        either: any | b
        a: "A" _STEP b
        b: "B" _STEP c
        c: "C" """,
    "after a parameter, more": """
        start: w{n} | a
        n: d | w{n}
        w{t}: "W" _STEP t a
        d: "D" _STEP
        a: "A" _STEP """,
    "a place that is given a choice": """
        start: s
        s: "S" _STEP place{either}
        place{t}: t | t a | other{t}
        other{t}: "O" _STEP place{t} | t t
        either: d | b
        d: "D" _STEP
        b: "B" _STEP d d
        a: "A" _STEP """,
}


def next_texts(knowledge, *limit):
    try:
        return texts(knowledge.next_action(*limit))
    except KnowledgeError:
        return set()


def whole_paths(knowledge, steps):
    """Every path of at most so many steps that may end, by brute force."""
    found = {()} if knowledge.may_end else set()
    for action in next_texts(knowledge) if steps else ():
        found |= {(action, *rest) for rest in whole_paths(knowledge.after(action), steps - 1)}
    return found


def limited_paths(knowledge, steps):
    """Every path that `next_action(steps_left)` leads to; it fails where that is a dead end."""
    found = {()} if knowledge.may_end else set()
    for action in next_texts(knowledge, steps):
        found |= {(action, *rest) for rest in limited_paths(knowledge.after(action), steps - 1)}
    assert found or not knowledge.path, f"{knowledge.path} leads nowhere"
    return found


@pytest.mark.parametrize("steps", range(8))
@pytest.mark.parametrize("shape", LIMITED)
def test_next_action_leads_to_a_whole_path_within_every_limit_and_forbids_none(shape, steps):
    knowledge = ActionKnowledge.from_lark("%declare _STEP\n" + LIMITED[shape] + "\n")
    every = whole_paths(knowledge, steps)
    assert limited_paths(knowledge, steps) == every
    if not every:
        with pytest.raises(KnowledgeError, match=f"no action is admitted after 'the start' with {steps} steps left"):
            knowledge.next_action(steps)


@pytest.mark.parametrize("steps", range(6))
def test_a_limit_looks_through_templates_with_values(tied, steps):
    every = whole_paths(tied, steps)
    assert limited_paths(tied, steps) == every
    assert bool(every) == (steps > 0)
    assert any(path[-1].startswith("drop") for path in every) == (steps >= 4)


@pytest.mark.parametrize("steps", range(2, 7))
def test_a_question_is_answered_within_every_limit(steps):
    knowledge = ActionKnowledge.from_lark("hotpotqa")
    for left in range(steps, 0, -1):
        grammar = knowledge.next_action(left)
        admitted = {a for a in ("Search[x]", "Retrieve[x]", "Lookup[x]", "Finish[x]") if grammar.matches(a)}
        if left == 1:
            assert admitted == {"Finish[x]"}
            knowledge = knowledge.after("Finish[x]")
        else:
            assert admitted == (
                {"Search[x]", "Retrieve[x]"}
                if not knowledge.path
                else {"Search[x]", "Retrieve[x]", "Lookup[x]", "Finish[x]"}
            )
            knowledge = knowledge.after("Search[x]")
    assert knowledge.may_end
    with pytest.raises(KnowledgeError, match="no action is admitted after 'Finish"):
        knowledge.next_action()


# the house


def test_several_receptacles_can_share_a_place():
    env, knowledge = HouseholdEnv(small_house()), ActionKnowledge.from_lark("household")

    def do(action):
        nonlocal knowledge
        knowledge = knowledge.bind_view(env.admissible()).after(action)
        env.step(action)
        knowledge = knowledge.bind_view(env.admissible())

    do("go to table 1")
    takes = {"take mug 1 from shelf 1", "take pot 1 from shelf 1", "take knife 1 from table 1"}
    assert takes < texts(knowledge.next_action())
    assert knowledge.judge("take mug 1 from table 1").verdict == "misordered"  # it lies on the shelf
    do("take mug 1 from shelf 1")
    assert {a for a in texts(knowledge.next_action()) if a.startswith("put")} == {
        "put mug 1 in/on shelf 1", "put mug 1 in/on table 1",
    }  # fmt: skip
    do("go to sinkbasin 1")
    do("clean mug 1 with sinkbasin 1")
    assert knowledge.judge("put mug 1 in/on sinkbasin 1")
    assert knowledge.judge("put mug 1 in/on table 1").verdict == "invalid"
    do("look")
    do("inventory")
    assert knowledge.judge("put mug 1 in/on sinkbasin 1")
    do("put mug 1 in/on sinkbasin 1")
    assert knowledge.judge("take mug 1 from sinkbasin 1")


def test_what_is_read_before_the_first_move_leads_back_to_the_beginning():
    env, knowledge = HouseholdEnv(small_house()), ActionKnowledge.from_lark("household")
    here = knowledge.bind_view(env.admissible())
    first = texts(here.next_action())
    for action in ("look", "inventory", "look"):
        here = here.after(action).bind_view(env.admissible())
        assert texts(here.next_action()) == first


def test_a_view_may_leave_a_slot_out_or_give_it_an_empty_list():
    text = '%declare _STEP THING PLACE\nstart: take | go\ntake: "take " THING _STEP [start]\n'
    text += 'go: "go " PLACE _STEP [start]\n'
    knowledge = ActionKnowledge.from_lark(text)
    for view in (
        {"THING": [], "PLACE": ["hall"]},
        {"PLACE": ["hall"], "WEATHER": ["rain"]},
        {"THING": (), "PLACE": "hall"},
    ):
        assert knowledge.bind_view(view).may_follow == ["go"]


def test_the_next_actions_are_listed():
    text = '%declare _STEP PLACE\nstart: | go{PLACE} | look\ngo{p}: "go to " p _STEP start\nlook: "look" _STEP start\n'
    knowledge = ActionKnowledge.from_lark(text).bind(PLACE=["desk 10", "desk 1"])
    assert knowledge.next_actions() == ["go to desk 1", "go to desk 10", "look"]
    with pytest.raises(KnowledgeError, match="can't be listed"):
        knowledge.next_actions(limit=2)
    with pytest.raises(KnowledgeError, match="contain free text"):
        ActionKnowledge.from_lark("hotpotqa").next_actions()


def test_knowledge_where_a_grammar_is_wanted():
    knowledge = ActionKnowledge.from_lark("hotpotqa")
    with pytest.raises(GrammarError, match=r"(?s)not ActionKnowledge.*knowledge.next_action\(\)"):
        compile_grammar(knowledge, Vocabulary([b"a", b""], [1]))


@pytest.mark.parametrize("count", [10, 40])
def test_values_beyond_a_limit_are_an_error_that_names_it_and_not_no_action(count):
    text = '%declare _STEP P T\nstart: take{T, P}\ntake{t, p}: "take " t " from " p _STEP [start]\n'
    places = [f"desk {i}" for i in range(count)]
    values = {"P": places, "T": {p: ["hat", f"pen of {p}"] for p in places}}
    grammar = Grammar.from_lark(text, limits=Limits(state_positions=30)).bind(**values)
    state = ActionKnowledge.from_lark(text).state.bound(grammar)
    if count == 10:
        assert len(texts(state.next_action())) == 20
        return
    for ask in (state.next_action, lambda: state.may_follow, lambda: state.judge("take hat from desk 1")):
        with pytest.raises(LimitError, match="state_positions"):
            ask()

"""Planning domains are read whole, and what is not supported is refused at its place."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrained.errors import ConstrainedError, PddlError
from constrained.knowledge.pddl import import_pddl
from constrained.planning.model import Junction, Literal, Parameter, Quantified
from constrained.planning.normal_form import MAX_DISJUNCTS, disjuncts_of
from constrained.planning.parser import read_domain
from tests.data import shared
from tests.planning.domains import OFFICE


def disjuncts(action):
    return disjuncts_of(action.precondition, {p.name for p in action.parameters})


def test_alfred_is_read_whole():
    domain = read_domain(shared("alfworld/logic_2.1.1/alfred.pddl").read_text())
    assert domain.name == "alfred" and len(domain.predicates) == 32
    names = "look inventory examineReceptacle examineObject GotoLocation OpenObject CloseObject PickupObject"
    names += " PutObject CleanObject HeatObject CoolObject ToggleObject SliceObject"
    assert [domain.spelling[a.name] for a in domain.actions] == names.split()
    goto = next(a for a in domain.actions if a.name == "gotolocation")
    assert goto.parameters[3] == Parameter("?r", "receptacle")
    assert [e.literal for e in goto.effects] == [  # and no cost
        Literal("atlocation", ("?a", "?lstart"), False),
        Literal("atlocation", ("?a", "?lend")),
    ]


def test_a_disjunction_makes_disjuncts_and_an_existential_makes_variables():
    domain = read_domain(OFFICE)
    by_name = {a.name: disjuncts(a) for a in domain.actions}
    go = {frozenset((lit.predicate, lit.positive) for lit in case.literals) for case in by_name["go"]}
    assert go == {frozenset({("at", False), ("locked", False)}), frozenset({("at", False), ("bag-open", True)})}
    assert by_name["pack"][0].variables == (Parameter("?r", "room"),)
    every_cup = Quantified("every", (Parameter("?c", "cup"),), Literal("in-bag", ("?c",)))
    assert by_name["study"][0].whole == (every_cup,)


def test_too_many_cases_are_not_multiplied_out():
    different = "".join(f"(or (p{i} ?x) (q{i} ?x))" for i in range(20))
    predicates = "".join(f"(p{i} ?x) (q{i} ?x)" for i in range(20))
    text = (
        f"(define (domain d) (:predicates {predicates}) (:action a :parameters (?x) :precondition (and {different})))"
    )
    found = disjuncts(read_domain(text).actions[0])
    assert len(found) == MAX_DISJUNCTS and all(len(case.whole) == 15 for case in found)


BEGIN = "(define (domain d)\n (:types t)\n (:predicates (p ?x - t) (f))\n"
END = "\n (:action a :parameters (?x - t) :precondition (p ?x) :effect (f)))"


@pytest.mark.parametrize(
    "text, line, column, message",
    [
        (BEGIN + " (:durative-action go)" + END, 4, 3, "durative actions are not supported"),
        (BEGIN + " (:derived (f) (p ?x))" + END, 4, 3, r"derived predicates \(axioms\) are not supported"),
        (BEGIN + " (:process boil)" + END, 4, 3, "processes are not supported"),
        (BEGIN + " (:surprise)" + END, 4, 3, "unknown section :surprise"),
        (BEGIN + END.replace("(p ?x) :effect", "(> (fuel) 3) :effect"), 5, 49, "numeric conditions are not supported"),
        (BEGIN + END.replace("(p ?x) :effect", "(= (fuel) 3) :effect"), 5, 49, "numeric conditions are not supported"),
        (BEGIN + END.replace("(p ?x) :effect", "(preference x (f)) :effect"), 5, 49, "preferences are not supported"),
        (BEGIN + END.replace("(p ?x)", "(p ?y)"), 5, 51, r"variable \?y is not declared here"),
        (BEGIN + END.replace("(p ?x)", "(p ?x ?x)"), 5, 49, "'p' has 1 arguments, not 2"),
        (BEGIN + END.replace("(p ?x)", "(pp ?x)"), 5, 49, "no predicate 'pp'"),
        (BEGIN + END.replace("- t)", "- s)"), 5, 31, "no type 's'"),
        (BEGIN + END.replace("- t)", "- (either t s))"), 5, 32, r"\(either ...\) is not supported here"),
        (BEGIN + END.replace("(?x - t)", "(?x ?x - t)"), 5, 26, r"the variable \?x is declared twice"),
        (BEGIN + END.replace("(?x - t)", "(x - t)"), 5, 26, "a variable begins with '\\?', unlike x"),
        (BEGIN + END.replace("(f)))", "(or (f))))"), 5, 64, r"\(or ...\) is not an effect"),
        (BEGIN + END.replace("(f)))", "(= ?x ?x)))"), 5, 64, "equality is not an effect"),
        (BEGIN + END.replace(":effect", ":result"), 5, 55, "unknown part of action a"),
        (BEGIN + END.replace(":effect (f)", ":effect"), 5, 55, "nothing follows this in action a"),
        (BEGIN + END.replace("(f)))", "(not ((f)))))"), 5, 70, "a predicate such as"),
        (BEGIN + END.replace(":action a", ":action ?a"), 5, 11, "is a variable's name"),
        (BEGIN + ")", 1, 2, r"the domain has no \(:action"),
        (BEGIN, 1, 1, r"ends inside \(define .* opened on line 1"),
        ("(define (problem d))", 1, 2, r"doesn't begin with \(define \(domain NAME\)"),
        ("define", 1, 1, "instead of a parenthesis"),
        (")", 1, 1, "has a closing parenthesis too many"),
        ("(" * 100, 1, 61, "nests deeper than 60"),
        (BEGIN.replace("types t", "types t - s s - t") + END, 2, 10, "belong to themselves: t is a s is a t"),
        (BEGIN.replace("types t", "types t - t") + END, 2, 10, "belong to themselves: t is a t"),
        (BEGIN.replace("types t", "types t a - b b - c c - b") + END, 2, 18, "themselves: b is a c is a b"),
        (BEGIN.replace("types t", "types t object - t") + END, 2, 12, "object is the root of all types"),
        (BEGIN.replace("types t", "types t a b c - a c - b") + END, 2, 22, "c is declared twice, as a kind of a and b"),
        (BEGIN.replace("types t", "types ?t") + END, 2, 10, r"\?t is a variable's name, and no type's"),
        (BEGIN.replace("(f)", "(f ?x - s) (f)") + END, 3, 34, "no type 's'"),
        (BEGIN.replace("(f)", "(f) (f ?x)") + END, 3, 31, "the predicate f is declared twice, with other arguments"),
        (BEGIN.replace("(f)", "(f) (and ?x)") + END, 3, 31, "and can't be the name of a predicate"),
        (BEGIN.replace("(f)", "(f) ()") + END, 3, 30, "a predicate such as"),
        (BEGIN + " (:constants a - t a - object)" + END, 4, 20, "the object a is declared twice, as t and as object"),
        (BEGIN + " (:constants a - s)" + END, 4, 18, "no type 's'"),
        (BEGIN + " (:types s)" + END, 4, 3, r"a second \(:types ...\)"),
        (BEGIN + END[:-1] + END, 6, 11, "there are two actions a"),
        (BEGIN + END[:-1] + END.replace("action a", "action A"), 6, 11, "there are two actions A"),
        (BEGIN + END.replace(":effect", ":precondition (f) :effect"), 5, 55, "a second :precondition of action a"),
        (BEGIN + END + ")", 5, 68, "the PDDL domain that begins on line 1 has a closing parenthesis too many"),
        (BEGIN + END + " ; fine\n x", 6, 2, "something follows the PDDL domain that begins on line 1"),
        (BEGIN + END + BEGIN + END, 5, 68, "something follows the PDDL domain"),
        (BEGIN.replace("types t", "types t))") + END, 2, 13, "has a closing parenthesis too many"),
        (BEGIN.replace("domain d", "domain (d)") + END, 1, 18, "name is one word"),
    ],
)
def test_a_refusal_says_what_and_where(text, line, column, message):
    with pytest.raises(PddlError, match=message) as caught:
        read_domain(text, "some.pddl")
    error = caught.value
    assert (error.line, error.column) == (line, column)
    assert str(error).startswith(f"some.pddl:{line}:{column}: ")
    assert error.context.split("\n")[1] == " " * (column - 1) + "^"


@pytest.mark.parametrize(
    "text",
    [
        BEGIN.replace("types t", "types t t") + END,
        BEGIN.replace("types t", "types t s - object t - s") + END,
        BEGIN.replace("(f)", "(f) (f) (= ?x ?y)") + END,
        BEGIN + " (:constants a - t A - t)" + END,
        BEGIN + END + "\n; a comment with ) and (\n",
    ],
)
def test_what_is_said_twice_alike_is_accepted(text):
    assert import_pddl(text).knowledge().world.domain.predicates.keys() == {"p", "f"}


@pytest.mark.parametrize(
    "text, message",
    [
        (BEGIN + " " * 400_000 + END, "has 400,1.. characters, more than 300,000"),
        (BEGIN + "".join(f"(:action a{i})" for i in range(600)) + ")", "has 600 actions, more than 500"),
        (
            BEGIN.replace("(f)", " ".join(f"(p{i})" for i in range(600))) + END.replace("(f)", "(p1)"),
            "has 601 predicates",
        ),
    ],
)
def test_what_is_too_large_is_refused_by_a_named_limit(text, message):
    with pytest.raises(PddlError, match=message):
        read_domain(text)


def test_a_long_disjunction_is_kept_whole():
    either = " ".join(f"(p{i} ?x)" for i in range(MAX_DISJUNCTS + 1))
    action = f"(:action a :parameters (?x) :precondition (and (p0 ?x) (or {either})))"
    [case] = disjuncts(read_domain(f"(define (domain d) (:predicates {either}) {action})").actions[0])
    [condition] = case.whole
    assert (
        case.literals == (Literal("p0", ("?x",)),)
        and isinstance(condition, Junction)
        and len(condition.parts) == MAX_DISJUNCTS + 1
    )


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damage_anywhere_gives_knowledge_or_a_clear_error(data):
    start = data.draw(st.integers(0, len(OFFICE)))
    length = data.draw(st.integers(0, 60))
    pieces = ["", "(", ")", " ", "()", "?t", "- room", "(and)", "(not)", "(exists)", "(when)", "-", "(forall () ())"]
    damaged = OFFICE[:start] + data.draw(st.sampled_from(pieces)) + OFFICE[start + length :]
    try:
        imported = import_pddl(damaged)
    except ConstrainedError as error:
        assert error.message
    else:
        imported.knowledge()

"""An imported domain as action knowledge: a file that lark loads, words, and masks that follow the facts."""

import lark
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.planbench.simulator import Simulator
from constrained import ActionKnowledge
from constrained.errors import KnowledgeError, PddlError
from constrained.knowledge.pddl import import_pddl
from constrained.planning import FactSet
from constrained.planning.wording import read_texts
from tests.data import shared
from tests.planning import domains
from tests.planning.domains import ALL

PICK_UP = """\
// pick_up: holding b and not clear b and not on-table b and not hand-empty; \
needs clear b and on-table b and hand-empty.
//: action pick-up
//: needs clear(b), on-table(b), hand-empty
//: makes holding(b), not clear(b), not on-table(b), not hand-empty
pick_up{b}: "pick-up " b _STEP start
"""


def test_an_action_is_a_rule_with_its_physics_above():
    assert PICK_UP in import_pddl(domains.BLOCKS).text


@pytest.mark.parametrize("name", ALL)
def test_every_file_is_lark_and_says_what_the_domain_says(name):
    imported = import_pddl(ALL[name][0])
    lark.Lark(imported.text, parser="earley")
    knowledge = ActionKnowledge.from_lark(imported.text)
    assert [a.name for a in knowledge.world.domain.actions] == [a.name for a in imported.domain.actions]
    assert len(knowledge.actions) == len(imported.domain.actions) and all(knowledge.actions.values())


def blocks(**options) -> ActionKnowledge:
    return import_pddl(domains.BLOCKS, **options).knowledge().for_problem(domains.BLOCKS_PROBLEM)


def possible(knowledge) -> set[bytes]:
    return set(knowledge.next_action().automaton.start.texts(100))


def test_effects_apply_and_the_next_actions_follow_from_them():
    knowledge = blocks()
    assert possible(knowledge) == {b"pick-up b", b"unstack c a"}
    knowledge = knowledge.after("unstack c a")
    assert possible(knowledge) == {b"put-down c", b"stack c a", b"stack c b"}
    assert knowledge.may_follow == ["put_down", "stack"]
    assert ("holding", "c") in knowledge.facts.state


def test_a_path_may_end_only_where_the_goal_holds():
    knowledge = blocks()
    assert not knowledge.may_end
    report = knowledge.check(["unstack c a", "put-down c", "pick-up a", "stack a b"])
    assert report.ok and report.finished
    assert not knowledge.check(["unstack c a"]).finished


def test_the_verdict_names_the_condition_that_is_missing():
    knowledge = blocks()
    judgement = knowledge.judge("stack a b")
    assert (judgement.verdict, judgement.action) == ("misordered", "stack")
    assert judgement.reason == "'stack a b' is not possible here: it needs holding a"
    assert knowledge.judge("stack a moon").verdict == knowledge.judge("fly a").verdict == "invalid"
    with pytest.raises(KnowledgeError, match="'pick-up a' is misordered: .* it needs clear a"):
        knowledge.after("pick-up a")
    report = knowledge.check(["pick-up a", "pick-up b"])
    assert report.verdicts == ["misordered", "ok"], "what is not possible changes nothing"


def test_facts_can_be_told():
    knowledge = blocks()
    facts = knowledge.facts.in_state(FactSet([("holding", "a"), ("clear", "b")]))
    assert possible(knowledge.with_facts(facts)) == {b"put-down a", b"stack a b"}


def test_without_facts_only_the_form_counts():
    form = blocks().without_facts
    assert len(form.next_action().automaton.start.texts(100)) == 3 + 3 + 9 + 9
    assert form.judge("stack a a")


def test_some_of_the_actions_keep_the_facts():
    some = blocks().only(["pick_up"], "Take.")
    assert possible(some) == {b"pick-up b"} and some.facts.state == blocks().facts.state
    assert possible(some.without_facts) == {b"pick-up a", b"pick-up b", b"pick-up c"}


def test_actions_that_say_nothing_of_the_facts_stay_as_the_order_admits():
    text = import_pddl(domains.BLOCKS).text.replace("start:\n", "start:\n    | rest\n")
    knowledge = ActionKnowledge.from_lark(text + '\n// rest: wait.\nrest: "rest" _STEP pick_up{OBJECT}\n')
    knowledge = knowledge.for_problem(domains.BLOCKS_PROBLEM)
    assert possible(knowledge) == {b"rest", b"pick-up b", b"unstack c a"}
    assert possible(knowledge.after("rest")) == {b"pick-up b"}, "the order of actions holds, too"
    assert knowledge.after("rest").judge("unstack c a").verdict == "misordered"


def test_the_order_of_actions_is_read_at_once_where_paths_continue_alike():
    knowledge = blocks()
    after = knowledge.after("unstack c a").after("put-down c")
    again = after.after("pick-up a").after("put-down a")
    assert after.state.grammar is again.state.grammar


def test_commands_are_written_as_texts_say():
    texts = read_texts("# mine\npick-up = take {b} in hand\nstack: put {b} on {c}\n")
    assert blocks(texts=texts).check(["take b in hand", "put b on c"]).ok
    with pytest.raises(PddlError, match="names {x}, which is not one of its parameters"):
        import_pddl(domains.BLOCKS, texts={"stack": "put {x}"})
    with pytest.raises(PddlError, match="line 1: 'nonsense' is not a command text"):
        read_texts("nonsense")


def test_a_text_that_stands_for_actions_with_different_ends_is_refused():
    knowledge = blocks(texts={"stack": "stack it on something"}).after("unstack c a")
    with pytest.raises(PddlError, match="stands for .stack c a. and .stack c b., which lead to different states"):
        knowledge.after("stack it on something")


def test_a_name_that_a_file_cannot_have_is_refused():
    domain = "(define (domain d) (:predicates (p.q)) (:action a :parameters () :effect (p.q)))"
    with pytest.raises(PddlError, match=r"p.q can't be a name in a `//:` line"):
        import_pddl(domain)


@pytest.mark.parametrize("name", ["start", "move", "or", "every"])
def test_a_parameter_may_have_the_name_of_a_rule_or_a_keyword(name):
    domain = f"""(define (domain d) (:requirements :typing) (:types place) (:predicates (at ?p - place))
        (:action move :parameters (?{name} ?end - place)
         :precondition (at ?{name}) :effect (and (not (at ?{name})) (at ?end))))"""
    problem = "(define (problem p) (:domain d) (:objects a b - place) (:init (at a)) (:goal (at b)))"
    knowledge = import_pddl(domain).knowledge().for_problem(problem)
    assert possible(knowledge) == {b"move a a", b"move a b"}


def test_knowledge_without_physics_has_no_problems():
    with pytest.raises(KnowledgeError, match="doesn't say what its actions need and change"):
        ActionKnowledge.from_lark("hotpotqa").for_problem(domains.BLOCKS_PROBLEM)


def test_alfred_in_its_own_words():
    folder = shared("alfworld/logic_2.1.1")
    texts = read_texts((folder / "alfred.twl2").read_text())
    imported = import_pddl((folder / "alfred.pddl").read_text(), texts=texts, source="alfred.pddl")
    problem = """(define (problem desk) (:domain alfred)
      (:objects me - agent l1 l2 - location desk1 drawer1 - receptacle mug1 - object MugType - otype
                DeskType DrawerType SinkBasinType MicrowaveType FridgeType - rtype KnifeType ButterKnifeType - otype)
      (:init (atLocation me l1) (receptacleAtLocation desk1 l1) (receptacleAtLocation drawer1 l2) (pickupable mug1)
             (openable drawer1) (inReceptacle mug1 desk1) (objectType mug1 MugType) (receptacleType desk1 DeskType)
             (receptacleType drawer1 DrawerType) (canContain DrawerType MugType))
      (:goal (exists (?o - object) (inReceptacle ?o drawer1))))"""
    knowledge = imported.knowledge().for_problem(problem)
    report = knowledge.check(["take mug1 from desk1", "go to drawer1", "open drawer1", "put mug1 in/on drawer1"])
    assert report.ok and report.finished
    assert knowledge.judge("open drawer1").reason.endswith("it needs receptacleAtLocation drawer1 l1")


TERMS = ("k", "?x", "?v", "?or")
LITERALS = [
    "(f)",
    *(f"(p {term})" for term in TERMS),
    *(f"(q {a} {b})" for a in TERMS for b in TERMS),
    *(f"(= {a} {b})" for a in TERMS for b in TERMS),
]


def _bigger(inner):
    several = st.lists(inner, max_size=3).map(" ".join)
    return st.one_of(
        st.builds("(and {})".format, several),
        st.builds("(or {})".format, several),
        st.builds("(not {})".format, inner),
        st.builds("(imply {} {})".format, inner, inner),
        st.builds("(exists (?v - {}) {})".format, st.sampled_from(["t", "empty", "object"]), inner),
        st.builds("(forall (?or - {}) {})".format, st.sampled_from(["t", "empty", "object"]), inner),
    )


CONDITIONS = st.recursive(st.sampled_from(LITERALS), _bigger, max_leaves=12)


@settings(max_examples=150, deadline=None)
@given(needs=CONDITIONS, when=CONDITIONS, goal=CONDITIONS, held=st.sets(st.sampled_from(range(12))))
def test_any_condition_is_imported_and_means_the_same(needs, when, goal, held):
    facts = ["(f)", *(f"(p {a})" for a in "kab"), *(f"(q {a} {b})" for a in "kab" for b in "kab")]
    init = " ".join(fact for number, fact in enumerate(facts) if number in held)
    domain = f"""(define (domain d) (:types t empty) (:constants k - t) (:predicates (f) (p ?x) (q ?x ?y))
      (:action act :parameters (?x ?v ?or) :precondition {needs} :effect (when {when} (p ?x)))
      (:action end :parameters () :precondition (exists (?x ?v ?or) {goal}) :effect (not (f))))"""
    problem = f"(define (problem x) (:domain d) (:objects a - t b) (:init {init}) (:goal (exists (?x ?v ?or) {goal})))"
    facts = import_pddl(domain).knowledge().for_problem(problem).facts
    simulated = Simulator(domain, problem)
    after = {str(one)[1:-1]: set(facts.task.apply(facts.state, one)) for one in facts.task.applicable(facts.state)}
    expected = simulated.applicable(simulated.start)
    assert after == {text: set(simulated.after(one, simulated.start)) for text, one in expected.items()}
    assert facts.task.reached_goal(facts.state) == simulated.holds(simulated.goal, {}, simulated.start)


def test_an_empty_condition_within_another_is_written_so_that_it_can_be_read():
    domain = """(define (domain d) (:predicates (p))
      (:action a :parameters () :precondition (or (p) (exists (?v) (and (and)))) :effect (p))
      (:action b :parameters () :precondition (and (p) (or)) :effect (not (p))))"""
    text = import_pddl(domain).text
    assert "//: needs (p or some v: object (v = v))" in text
    assert "//: needs some nothing: object (nothing != nothing)" in text


@pytest.mark.parametrize(
    "old, new, place",
    [
        ("(:predicates (p))", "(:predicates (p) (x.y))", "d.pddl:1:49: x.y can't be a name"),
        (":action go", ":action g.o", "d.pddl:2:11: g.o can't be a name"),
        ("(:types t)", "(:types t u.v)", "d.pddl:1:30: no slot can be named after the type u.v"),
        ("(:types t)", "(:types t a-b a_b)", "d.pddl:1:34: no slot can be named after the type a_b"),
    ],
)
def test_what_a_lark_file_cannot_say_is_refused_at_its_place_in_the_domain(old, new, place):
    domain = "(define (domain d) (:types t) (:predicates (p))\n (:action go :parameters (?x - t) :effect (p)))"
    assert old in domain
    with pytest.raises(PddlError) as caught:
        import_pddl(domain.replace(old, new), source="d.pddl").knowledge()
    assert str(caught.value).startswith(place)


def test_an_error_in_the_generated_file_is_told_at_the_place_of_what_it_was_made_from():
    domain = "(define (domain d) (:predicates (p))\n (:action go :parameters () :effect (p)))"
    imported = import_pddl(domain, source="d.pddl")
    imported.text = imported.text.replace("//: makes p", "//: makes q")
    with pytest.raises(PddlError, match=r"^d.pddl:2:11: action go: no fact `q`"):
        imported.knowledge()

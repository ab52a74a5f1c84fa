"""WESE's knowledge graph: all that was read is kept, and what is retrieved is exactly one hop away."""

from hypothesis import given
from hypothesis import strategies as st

from constrained.agents.strategies.knowledge_graph import Triple, around, knowledge_graph

NAMES = st.sampled_from(["desk 1", "desk 10", "mug 1", "Ψ", ""])
TRIPLES = st.lists(st.tuples(NAMES, st.sampled_from(["in/on", "beside"]), NAMES), max_size=12)


def test_entities_are_nodes_and_every_relation_is_kept():
    graph = knowledge_graph(
        [("mug 1", "in/on", "desk 1"), ("mug 1", "beside", "desk 1"), ("desk 1", "can be", "opened")]
    )
    assert list(graph.nodes) == ["mug 1", "desk 1", "opened"]
    assert {(h, r, t) for h, t, r in graph.edges(keys=True)} == {
        ("mug 1", "in/on", "desk 1"), ("mug 1", "beside", "desk 1"), ("desk 1", "can be", "opened"),
    }  # fmt: skip


def test_neighbours_stand_on_either_side_of_a_relation():
    graph = knowledge_graph(
        [("Wendy Schaal", "voices", "Francine"), ("Francine", "is in", "American Dad"), ("a", "b", "c")]
    )
    found = around(graph, ["Francine"])
    assert list(map(str, found)) == ["Francine | is in | American Dad", "Wendy Schaal | voices | Francine"]


def test_names_that_share_a_beginning_are_different_entities():
    graph = knowledge_graph([("mug 1", "in/on", "desk 10"), ("mug 2", "in/on", "desk 1")])
    assert around(graph, ["desk 1"]) == [Triple("mug 2", "in/on", "desk 1")]


def test_the_limit_keeps_what_the_first_entities_have():
    graph = knowledge_graph([("a", "r", f"a{i}") for i in range(3)] + [("b", "r", f"b{i}") for i in range(3)])
    assert [t.tail for t in around(graph, ["b", "a"], 4)] == ["b0", "b1", "b2", "a0"]
    assert around(graph, ["nobody"]) == around(graph, [], 4) == around(graph, ["a"], 0) == []


def test_two_hops_add_what_the_neighbours_are_related_to_after_the_first_hop():
    graph = knowledge_graph([("x", "r", "b"), ("a", "r", "b"), ("b", "r", "c"), ("c", "r", "d"), ("d", "r", "e")])
    first = around(graph, ["a"])
    assert list(map(str, first)) == ["a | r | b"]
    second = around(graph, ["a"], hops=2)
    assert second[:1] == first and set(map(str, second)) == {"a | r | b", "x | r | b", "b | r | c"}
    assert around(graph, ["a"], 2, hops=2) == second[:2]
    assert len(around(graph, ["a"], hops=99)) == 5 and around(graph, ["nobody"], hops=2) == []


@given(TRIPLES, st.lists(NAMES, max_size=4), st.none() | st.integers(0, 5))
def test_what_is_retrieved_is_exactly_one_hop_away(triples, entities, limit):
    found = around(knowledge_graph(triples), entities, limit)
    near = {t for t in triples if t[0] != t[2] and (t[0] in entities or t[2] in entities)}
    assert len(found) == len(set(found)) == min(len(near), len(near) if limit is None else limit)
    assert set(found) <= near

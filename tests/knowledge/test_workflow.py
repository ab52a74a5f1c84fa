"""Workflows drawn in DOT become drafts that load; what can't be read is refused with its place."""

from __future__ import annotations

import json
import lzma
import re
import tarfile

import pytest

from constrained import ActionKnowledge, GrammarError, LimitError
from constrained.cli import main
from constrained.knowledge.dot_graph import read_dot
from constrained.knowledge.workflow import import_dot
from constrained.limits import Limits
from tests.data import shared


def edges(text: str) -> set[tuple[str, str, str]]:
    return {(edge.tail, edge.head, edge.label) for edge in read_dot(text).edges}


def rules(text: str) -> dict[str, tuple[str, ...]]:
    return import_dot(text).knowledge().rules


@pytest.mark.parametrize(
    ("name", "nodes", "lines", "actions"),
    [("path1_no_service", 33, 42, 21), ("path2_mobile_data", 60, 84, 38), ("path3_mms", 32, 39, 22)],
)
def test_the_workflows_of_tau2_bench_become_drafts(name, nodes, lines, actions):
    with lzma.open(shared("tau2/telecom.tar.xz")) as packed, tarfile.open(fileobj=packed) as archive:
        file = archive.extractfile(f"telecom/workflows/tech_support_{name}.dot")
        assert file is not None
        imported = import_dot(file.read().decode(), source=f"{name}.dot")
    assert (len(imported.graph.nodes), len(imported.graph.edges)) == (nodes, lines)
    knowledge = imported.knowledge()
    assert len(knowledge.actions) == actions and imported.notes == []
    assert "end_resolve: Issue Resolved" in imported.text and "// Yes" in imported.text
    path, at = [], knowledge.rules["start"][0]
    while at and at not in path:  # a first way through the graph is a path of the draft
        path.append(at)
        at = next(iter(knowledge.rules[at]), "")
    written = dict(re.findall(r'^(\w+): "(.*?)"', imported.text, re.M))
    texts = [written[rule] for rule in path]
    assert len(path) >= 3 and knowledge.check(texts).verdicts == ["ok"] * len(path)
    assert knowledge.check(texts[::-1]).verdicts[0] == "misordered"


def test_a_diamond_is_a_choice_and_its_labels_are_comments():
    text = (
        'digraph { a -> q; q [shape=diamond, label="Is it on?"]; q -> off [label="Yes"]; q -> b [label=No]; off -> a }'
    )
    imported = import_dot(text)
    assert imported.knowledge().rules == {"start": ("a",), "a": ("off", "b"), "off": ("a",), "b": ()}
    assert "// Is it on?\nq: off  // Yes\n    | b  // No\n" in imported.text


def test_labels_of_edges_between_actions_stand_above_their_rule():
    assert (
        "// then b: if it rains; if it snows\n"
        in import_dot('digraph { a -> b [label="if it rains"]; a -> b [label="if it snows"]; a -> c }').text
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("digraph { a -> b -> c }", {("a", "b", ""), ("b", "c", "")}),
        ("strict digraph G { a -> {b c} [label=x] }", {("a", "b", "x"), ("a", "c", "x")}),
        ("digraph { subgraph s { a b } -> subgraph cluster_t { c } }", {("a", "c", ""), ("b", "c", "")}),
        ("digraph { {a -> b} -> c }", {("a", "b", ""), ("a", "c", ""), ("b", "c", "")}),
        ("digraph { {} -> b [label=x]; b }", set()),
        ('digraph { "a b":n -> "c\\"d":port:sw }', {("a b", 'c"d', "")}),
        ('digraph { "a" + "b" -> c }', {("ab", "c", "")}),
        ('digraph { "a\\\nb" -> c }', {("ab", "c", "")}),
        ("digraph { 1.5 -> -2; .5 -> 3. }", {("1.5", "-2", ""), (".5", "3.", "")}),
        ('digraph { a -> b [label="one\\ntwo\\lthree"] }', {("a", "b", "one two three")}),
        ('digraph { edge [label=x]; a -> b; { edge [label=y]; c -> d }; e -> f }',
         {("a", "b", "x"), ("c", "d", "y"), ("e", "f", "x")}),
        ("digraph { a -> b [dir=back]; c -> d [dir=both]; e -> f [style=invis] }",
         {("b", "a", ""), ("c", "d", ""), ("d", "c", "")}),
        ("# line\ndigraph { // a -> x\n a /* -> y\n */ -> b; rankdir=LR; a [color=red][bold]; }", {("a", "b", "")}),
        ("DIGRAPH { A -> a; Node1 -> étape -> 日本 -> 🙂 }",
         {("A", "a", ""), ("Node1", "étape", ""), ("étape", "日本", ""), ("日本", "🙂", "")}),
        ("\ufeffdigraph { a -> b }", {("a", "b", "")}),
    ],
)  # fmt: skip
def test_edges_are_read_as_graphviz_does(text, found):
    assert edges(text) == found


def test_labels_of_nodes_come_from_their_statement_or_the_defaults_where_they_are_first_named():
    graph = read_dot(
        'digraph { node [label="\\N!", shape=diamond]; a; subgraph { node [shape=box] b }'
        ' c [label="<f>x|{y}" shape=record] }'
    )
    assert {name: (node.label, node.shape) for name, node in graph.nodes.items()} == {
        "a": ("a!", "diamond"), "b": ("b!", "box"), "c": ("x y", "record"),
    }  # fmt: skip


def test_rules_of_names_that_fall_together_or_are_no_names_differ():
    found = rules('digraph { "Look Up" -> look_up -> LookUp -> "日本" -> "2" -> "->" -> start -> "\\"" }')
    assert list(found) == [
        "start", "look_up", "look_up_2", "look_up_3", "node", "node_2", "node_3", "start_2", "node_4"
    ]  # fmt: skip
    assert found["start"] == ("look_up",) and found["start_2"] == ("node_4",)


def test_actions_of_the_same_label_are_written_differently():
    imported = import_dot('digraph { a [label="Ask"]; b [label="ask"]; c [label="ask (b)"]; a -> b -> c }')
    assert imported.knowledge().check(["Ask (a)", "ask (b)", "ask (b) 2"]).ok


def test_a_graph_without_beginning_or_end_gets_both_and_says_so():
    imported = import_dot("digraph { a -> b -> c -> b; b -> a }")
    assert imported.knowledge().rules == {"start": ("a",), "a": ("b",), "b": ("c", "a"), "c": ("b",)}
    assert len(imported.notes) == 2 and "begin with it" in imported.notes[0] and "end after it" in imported.notes[1]


def test_checks_on_a_circle_are_actions():
    imported = import_dot("digraph { node [shape=diamond] p -> q -> p; q -> r }")
    assert imported.knowledge().rules == {"start": ("p",), "p": ("q",), "q": ("p", "r"), "r": ()}
    assert sum("circle of checks" in note for note in imported.notes) == 2


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "expected digraph, not the end"),
        ("graph { a -- b }", 1, 1, "an undirected graph says no order"),
        ("digraph {\n  a -- b\n}", 2, 5, "an edge without direction"),
        ("digraph { a -> b [dir=none] }", 1, 18, "an edge without direction"),
        ("digraph { a [label=<<b>x</b>>] }", 1, 20, "HTML-like label"),
        ("digraph { a -> ", 1, 9, "a graph that is not closed"),
        ("digraph { a -> ; b }", 1, 16, "expected a node"),
        ("digraph {\n\n a [label=x", 3, 4, "a list of attributes that is not closed"),
        ("digraph { a", 1, 9, "a graph that is not closed"),
        ('digraph { "a }', 1, 11, "a text that is not closed"),
        ("digraph { /* a }", 1, 11, "a comment that is not closed"),
        ("digraph { a } digraph { b }", 1, 15, "expected the end of the file"),
        ("digraph { a -> node }", 1, 16, "expected a node, not 'node'"),
        ("digraph { node -> a }", 1, 16, "expected [ after node"),
        ("digraph { a [=x] }", 1, 14, "expected the name of an attribute"),
        ("digraph { a@b }", 1, 12, "unexpected '@'"),
        ("digraph { a + b }", 1, 13, "expected"),
    ],
)
def test_what_is_no_directed_graph_is_refused_with_its_place(text, line, column, message):
    with pytest.raises(GrammarError) as caught:
        import_dot(text, source="w.dot")
    assert f"w.dot:{line}:{column}: " in str(caught.value) and message in str(caught.value) and caught.value.hint


def test_a_graph_without_nodes_is_refused():
    with pytest.raises(GrammarError, match="w.dot: the graph has no nodes"):
        import_dot("digraph { rankdir=LR }", source="w.dot")


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("digraph { " + " " * 1000 + "}", "characters"),
        ("digraph { {a b c d e f g h i j} -> {k l m n o p q r s t} }", "symbols"),
        ("digraph { " + "{" * 30 + "a" + "}" * 30 + " }", "depth"),
    ],
)
def test_large_graphs_meet_named_limits(text, limit):
    with pytest.raises(LimitError) as caught:
        import_dot(text, limits=Limits(characters=1000, symbols=100, depth=20))
    assert caught.value.limit == limit


@pytest.mark.parametrize("text", [
    "digraph { " + "{" * 100_000,
    "digraph { " + "a [" * 100_000,
    "digraph { " + "{a b c d e f g h i j k l m n o p q r s t} -> " * 1_000 + "z }",
    "digraph { " + '"' + "\\" * 200_001,
    "digraph { " + "/*" * 200_000,
])  # fmt: skip
def test_hostile_texts_are_refused(text):
    with pytest.raises(GrammarError):
        import_dot(text)


def test_a_long_chain_is_read():
    imported = import_dot("digraph { " + " -> ".join(f"n{i}" for i in range(5_000)) + " }")
    assert len(imported.graph.edges) == 4_999 and imported.text.count("_STEP") == 5_000


@pytest.mark.parametrize("words", [["import"], ["import", "dot"]])
def test_the_command_writes_a_draft(words, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.dot").write_text("digraph { ask -> tell; tell -> ask }", encoding="utf-8")
    assert main([*words, "w.dot", "-o", "w.lark"]) == 0
    out, err = capsys.readouterr()
    assert out == "wrote w.lark: 2 actions, 0 slots\n" and "note: no end can be reached from 'ask'" in err
    assert ActionKnowledge.from_lark("w.lark").rules["ask"] == ("tell",)
    assert main(["check", "w.lark", "--strict"]) == 0
    assert main([*words, "w.dot", "-o", "w.lark"]) == 1 and main([*words, "w.dot", "-o", "w.dot", "--force"]) == 1
    capsys.readouterr()
    assert main([*words, "w.dot", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"actions", "slots", "notes", "lark"}


def test_the_command_names_a_file_that_is_not_there_and_one_that_is_no_graph(tmp_path, capsys):
    assert main(["import", str(tmp_path / "none.dot")]) == 1
    (tmp_path / "bad.gv").write_bytes(b"\xff\xfe")
    assert main(["import", str(tmp_path / "bad.gv")]) == 1
    (tmp_path / "bad.gv").write_text("digraph {")
    assert main(["import", str(tmp_path / "bad.gv")]) == 1
    told = capsys.readouterr().err
    assert told.count("error: ") == 3 and "bad.gv:1:9: a graph that is not closed" in told

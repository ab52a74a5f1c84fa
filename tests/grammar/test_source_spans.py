"""Every text of a grammar knows where it is written."""

from constrained.grammar import nodes, read_lark, read_source
from constrained.grammar.source import SourceSpan

TEXT = """start: "go " place | "stop"i "!"

place: NAME "."
NAME: /[a-z]+ x/
%import common.DIGIT
other: DIGIT
"""


def placed(text: str) -> set[tuple]:
    rules = read_lark(read_source(text)).rules
    found = []
    for rule in rules.values():
        for node in nodes.walk(rule.body):
            places = [nodes.place_of(node), *(place for _, place in getattr(node, "joined", ()))]
            found += [(rule.name, SourceSpan(*place)) for place in places if place]
    return {(rule, p.definition, p.line, p.column) for rule, p in found if p.source.name == "<string>"} | {
        (rule, p.definition, p.source.name) for rule, p in found if p.source.name != "<string>"
    }


def test_texts_are_placed_in_the_rule_or_terminal_that_has_them():
    assert placed(TEXT) == {
        ("start", "start", 1, 8),
        ("start", "start", 1, 22),
        ("start", "start", 1, 30),
        ("place", "NAME", 4, 7),
        ("place", "place", 3, 13),
        ("other", "DIGIT", "common.lark"),
    }


def test_alternative_texts_are_placed_where_the_first_stands():
    assert placed('start: ("c"\n  | "d") /e/\n') == {("start", "start", 1, 9), ("start", "start", 2, 10)}


def test_a_class_of_characters_is_placed_where_it_stands():
    found = placed('start: "b" /[0-9]+/ /[x]/\n')
    assert found == {("start", "start", 1, 8), ("start", "start", 1, 12), ("start", "start", 1, 21)}


def test_a_joined_text_knows_the_place_of_each_part():
    rules = read_lark(read_source('start: "go" A "."\nA: "to" /x/\n')).rules
    (text,) = nodes.walk(rules["start"].body)
    assert text.data == b"gotox."
    spans = [SourceSpan(*nodes.place_of(text, offset)) for offset in range(6)]
    assert [(p.definition, p.line, p.column) for p in spans] == [
        ("start", 1, 8),
        ("start", 1, 8),
        ("A", 2, 4),
        ("A", 2, 4),
        ("A", 2, 9),
        ("start", 1, 15),
    ]

"""Relations between a slot's values (`grammars/relations.lark`): at a key, another, next, before, first."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lark import Lark

from constrained import ActionKnowledge, CompiledGrammar, Grammar, GrammarError, Vocabulary, compile_grammar
from constrained.errors import VocabularyError
from constrained.grammar.source import SHIPPED
from tests.automaton.brute import Language, same

IMPORT = "%import relations (another, at, before, first, next)\n"
BYTES = Vocabulary([*(bytes((b,)) for b in range(256)), b""], [256])


def texts(rules: str, slots: str = "S", **bindings) -> set[bytes]:
    return same(Grammar.from_lark(f"{IMPORT}%declare {slots}\n{rules}").bind(**bindings)).texts


def test_another_is_any_value_but_one():
    assert texts('start: t{S}\nt{x}: x ">" another{S, x}\n', S=["b", "a", "ab"]) == {
        b"a>ab",
        b"a>b",
        b"ab>a",
        b"ab>b",
        b"b>a",
        b"b>ab",
    }


def test_next_and_before_go_by_the_order_of_binding():
    rules = 'start: t{S}\nt{x}: x "+" next{S, x} | x "-" before{S, x}\n'
    assert texts(rules, S=["c", "a", "b"]) == {b"c+a", b"a+b", b"a-c", b"b-c", b"b-a"}
    assert texts(rules, S=["a", "b", "c"]) == {b"a+b", b"b+c", b"b-a", b"c-a", b"c-b"}


def test_first_is_the_one_listed_first():
    assert texts('start: first{S} | "(" t{first{S}} ")"\nt{x}: x x\n', S=["c", "a"]) == {b"c", b"(cc)"}


def test_at_is_the_values_at_a_key():
    bound = {"a": ["y", "x"], "b": ["z"], "c": []}
    assert texts("start: t{P}\nt{p}: p at{S, p}\n", "S P", P=["a", "b", "c"], S=bound) == {b"ax", b"ay", b"bz"}
    assert texts('start: at{S, "a"}\n', S=bound) == {b"x", b"y"}


def test_relations_of_relations():
    rules = 'start: t{P}\nt{p}: p u{at{S, p}, p}\nu{o, p}: o another{at{S, p}, o} before{another{at{S, p}, "m"}, o}\n'
    assert texts(rules, "S P", P=["a"], S={"a": ["n", "m", "l", "k"]}) == {
        b"alkn",
        b"almn",
        b"alnn",
        b"akln",
        b"akll",
        b"akmn",
        b"akml",
        b"aknn",
        b"aknl",
    }


def test_as_an_argument_a_relation_has_one_value_everywhere():
    assert texts("start: t{S}\nt{x}: x u{another{S, x}}\nu{y}: y y\n", S=["1", "2", "3"]) == {
        f"{x}{y}{y}".encode() for x in "123" for y in "123" if x != y
    }


def test_what_is_not_listed_has_no_neighbours_and_excludes_nothing():
    rules = 'start: "n" next{S, "z"} | "b" before{S, "z"} | "a" another{S, "z"} | "."\n'
    assert texts(rules, S=["x", "y"]) == {b"ax", b"ay", b"."}


def test_a_relation_without_values_is_no_way_to_go():
    assert texts('start: t{S} | "stay"\nt{x}: "go from " x " to " another{S, x}\n', S="here") == {b"stay"}
    with pytest.raises(GrammarError, match="with these bindings no text can be complete"):
        Grammar.from_lark(f"{IMPORT}%declare S\nstart: t{{S}}\nt{{x}}: x next{{S, x}}\n").bind(S="a").matches("a")


def test_a_value_given_twice_stands_where_it_first_did():
    assert texts("start: t{S}\nt{x}: x next{S, x}\n", S=["b", "a", "b", "c"]) == {b"ba", b"ac"}


def test_the_empty_text_can_be_a_value():
    assert texts('start: t{S}\nt{x}: "<" x "|" another{S, x} ">"\n', S=["", "a"]) == {b"<|a>", b"<a|>"}


def test_counting_results_in_a_plan_written_at_once():
    rules = 'start: line{first{N}}\nline{n}: "R" n " = f(" ("x" | "R" before{N, n}) ")" [", " line{next{N, n}}]\n'
    found = texts(rules, "N", N=range(1, 4))
    assert len(found) == 1 + 1 * 2 + 1 * 2 * 3
    assert b"R1 = f(x), R2 = f(R1), R3 = f(R2)" in found and not any(b"f(R3)" in text for text in found)


def test_going_somewhere_else():
    knowledge = ActionKnowledge.from_lark(
        f"{IMPORT}%declare _STEP PLACE\n// Walk.\nstart: goto{{PLACE}}\n"
        '// goto: go somewhere else.\ngoto{p}: "go to " p _STEP (goto{another{PLACE, p}} | "stop")\n'
    ).bind(PLACE=["desk 1", "desk 10", "bed"])
    report = knowledge.check(["go to desk 1", "go to desk 1", "go to desk 10", "go to sofa"])
    assert report.verdicts == ["ok", "misordered", "ok", "invalid"]
    assert knowledge.rules["goto"] == ("goto",) and knowledge.to_text() and knowledge.to_svg()
    assert knowledge.after("go to bed").next_action().automaton.start.texts(9) == [
        b"go to desk 1",
        b"go to desk 10",
        b"stop",
    ]
    later = knowledge.after("go to bed").bind(PLACE=["bed", "sofa"])
    assert later.next_action().automaton.start.texts(9) == [b"go to sofa", b"stop"], "bound anew, related anew"


def test_what_lark_itself_reads_is_no_less():
    """The same rules with the slot's values written out: each text is one of lark's, which doesn't tie them."""
    rules = 'start: t{S}\nt{x}: x " to " another{S, x} (" by " before{S, x})?\n'
    plain = Lark(f'{IMPORT}S: "a" | "b" | "c"\n{rules}', import_paths=[str(SHIPPED)], lexer="dynamic_complete")
    ours = texts(rules, S=["a", "b", "c"])
    for text in ours:
        plain.parse(text.decode())
    plain.parse("a to a by c")
    assert b"a to a by c" not in ours
    Lark(f"{IMPORT}%declare S\n{rules}", import_paths=[str(SHIPPED)])


def test_an_imported_relation_may_go_by_another_name_and_ones_own_rule_by_its():
    rules = '%import relations.another -> elsewhere\n%declare S\nstart: t{S}\nt{x}: x elsewhere{S, x} | another{x, "."}\nanother{a, b}: "(" a b ")"\n'  # noqa: E501
    assert same(Grammar.from_lark(rules).bind(S=["1", "2"])).texts == {b"12", b"21", b"(1.)", b"(2.)"}


def test_between_tokens_that_are_ignored():
    grammar = Grammar.from_lark(f'{IMPORT}%declare S\nstart: t{{S}}\nt{{x}}: x another{{S, x}}\n%ignore " "\n').bind(
        S=["1", "2"]
    )
    assert grammar.matches("1 2") and grammar.matches(" 12 ") and not grammar.is_prefix("1 1")


@pytest.mark.parametrize(
    ("use", "message"),
    [
        ("another{f, x}", "another{...}: what comes first is a slot, a `%declare`d terminal, or a relation of one"),
        ('another{"a", x}', "another{...}: what comes first is a slot, a `%declare`d terminal, or a relation of one"),
        ("another{_STEP, x}", "another{...}: what comes first is a slot, a `%declare`d terminal, or a relation of one"),
        ("another{S, f}", "another{...}: what a value is related to is a template's parameter, or a text"),
        ("another{S, S}", "another{...}: what a value is related to is a template's parameter, or a text"),
        ("at{another{S, x}, x}", "at{...}: what comes first is a slot, which is bound by key"),
    ],
)
def test_what_can_not_be_related(use, message):
    with pytest.raises(GrammarError) as caught:
        Grammar.from_lark(f'{IMPORT}%declare S _STEP\nstart: t{{S}}\nf: "f"\nt{{x}}: {use}\n')
    assert caught.value.message.split("\n")[0].endswith(message) and caught.value.line == 5


@pytest.mark.parametrize(
    ("use", "value", "message", "hint"),
    [
        (
            "another{S, x}",
            {"k": "a"},
            "slot S depends on a key, and a relation has none for it",
            "write at{S, r} in place of S",
        ),
        (
            "another{S, x}",
            Grammar.from_regex("a+"),
            "another{...} picks from a list, but slot S is bound to a grammar there",
            "bind it to texts",
        ),
        (
            "next{at{S, x}, x}",
            {"p": Grammar.from_regex("a+")},
            "next{...} picks from a list, but slot S is bound to a grammar there",
            "bind it to texts",
        ),
        ("at{S, x}", ["a"], "at{S, ...}: slot S is not bound by key", "bind it to a mapping: .bind(S={key: [...]})"),
        (
            "u{f}",
            ["a"],
            "another{S, y}: y is a piece of grammar, not one text",
            "pass it a slot that is bound to texts, or a text",
        ),
    ],
)
def test_what_is_bound_so_that_it_can_not_be_related(use, value, message, hint):
    grammar = Grammar.from_lark(
        f'{IMPORT}%declare S P\nstart: t{{P}}\nf: "f"\nu{{y}}: another{{S, y}}\nt{{x}}: "-" {use}\n'
    )
    with pytest.raises(GrammarError) as caught:
        grammar.bind(S=value, P="p").automaton.start.texts(9)
    assert caught.value.message == message and hint in caught.value.hint


def test_an_unbound_slot_of_a_relation_is_an_error_inside_a_grammar_too():
    inner = Grammar.from_lark(f"{IMPORT}%declare S\nstart: first{{S}}\n")
    outer = Grammar.from_lark('%declare G\nstart: G | "."\n')
    for grammar in (inner, outer.bind(G=inner)):
        with pytest.raises(GrammarError, match="slot S is not bound"):
            grammar.matches(".")
    assert outer.bind(G=inner.bind(S="s")).matches("s")


def test_the_order_of_values_is_kept_on_disk(tmp_path):
    grammar = Grammar.from_lark(
        f'{IMPORT}%declare S\nstart: t{{first{{S}}}}\nt{{x}}: x ["," t{{next{{S, x}}}}] another{{S, x}}\n'
    ).bind(S=["b", "c", "a"])
    compiled = compile_grammar(grammar, BYTES)
    compiled.save(tmp_path / "order")
    again = CompiledGrammar.load(tmp_path / "order", BYTES)
    assert (
        again.grammar.automaton.start.texts(99) == grammar.automaton.start.texts(99) == sorted(Language(grammar).texts)
    )


def test_fifty_places_do_not_make_a_table_of_all_pairs(monkeypatch):
    """One place's 49 others are listed when it is reached, and not before."""
    from constrained.automaton import templates

    made = []
    values = templates.Selection.values.fget
    monkeypatch.setattr(templates.Selection, "values", property(lambda self: made.append(self) or values(self)))
    knowledge = ActionKnowledge.from_lark(
        f'{IMPORT}%declare _STEP PLACE\nstart: goto{{PLACE}}\ngoto{{p}}: "go to " p _STEP goto{{another{{PLACE, p}}}} | "stop"\n'  # noqa: E501
    )
    grammar = knowledge.grammar.bind(PLACE=[f"shelf {i}" for i in range(50)], _STEP="\n")
    matcher = compile_grammar(grammar, BYTES).matcher()
    for byte in b"go to shelf 7\ngo to shelf 30\nstop":
        matcher.allowed_token_ids()
        assert matcher.advance(byte)
    assert len({id(listing) for listing in made}) <= 4


orders = st.lists(st.sampled_from(["", "a", "b", "ab", "ba"]), min_size=1, max_size=4, unique=True)
related = st.sampled_from(
    [
        "another{S, %s}",
        "next{S, %s}",
        "before{S, %s}",
        "first{S}",
        'another{another{S, %s}, "a"}',
        'next{before{S, %s}, "a"}',
        "S",
    ]
)
BODIES = ["x y", "y x", '"(" z{x} ")" y', "z{y} x", '["+" x] v{y, x} "."', "y", '(x | "!") w{y}', '(y ",")~1..2 x']


@settings(max_examples=150)
@given(orders, related, related, st.sampled_from(BODIES))
def test_any_relation_anywhere_is_what_its_words_say(order, one, other, body):
    in_text = lambda use: use % "x" if "%s" in use else use  # noqa: E731
    other_use = other % '"b"' if "%s" in other else other
    grammar = Grammar.from_lark(
        f'{IMPORT}%declare S\nstart: t{{S}} | "#"\nt{{x}}: u{{{in_text(one)}, x}}\nu{{y, x}}: {body} {in_text(other)}\n'
        f'z{{a}}: a "-" {other_use}\nv{{a, b}}: a b a\nw{{a}}: {(one % "a") if "%s" in one else one} a\n'
    ).bind(S=order)
    same(grammar)


@pytest.mark.parametrize("pattern", [re.compile("a+b?"), re.compile("X|y", re.IGNORECASE)])
def test_a_slot_bound_to_a_compiled_pattern(pattern):
    grammar = Grammar.from_lark('%declare S\nstart: "<" S ">"\n').bind(S=pattern)
    for text in ("a", "aab", "b", "x", "Y", "aabb"):
        assert grammar.matches(f"<{text}>") == bool(pattern.fullmatch(text))


def test_each_key_may_have_its_own_grammar():
    grammar = Grammar.from_lark('%declare TOOL ARGS\nstart: call{ARGS, TOOL}\ncall{a, t}: t "(" a ")" t\n').bind(
        TOOL=["search", "add", "stop"],
        ARGS={"search": re.compile("[a-z]{1,2}"), "add": Grammar.from_regex("[0-9],[0-9]"), "stop": ["", "now"]},
    )
    assert grammar.matches("search(ab)search") and grammar.matches("add(1,2)add") and grammar.matches("stop()stop")
    assert not grammar.is_prefix("add(a") and not grammar.is_prefix("search(1")
    compiled = compile_grammar(grammar, BYTES)
    matcher = compiled.matcher("add(")
    assert [chr(i) for i in matcher.allowed_token_ids()] == list("0123456789")
    matcher.set_budget(7)
    with pytest.raises(VocabularyError, match="too small"):
        matcher.set_budget(6)

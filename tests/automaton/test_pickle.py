"""What `pickle` and `copy` make of vocabularies, grammars, compiled grammars, matchers and errors."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

from constrained import ActionKnowledge, BatchMatcher, Grammar, LimitError, Limits, Vocabulary, compile_grammar
from constrained.errors import ConstrainedError
from tests.knowledge.test_tool_policy import POLICY, TOOLS

TOKENS = [*(bytes([i]) for i in range(256)), b"ab", b"", b"<call>"]


def vocabulary():
    return Vocabulary(TOKENS, [257], [258], size=300)


def deep_schema():
    schema = {"type": "integer"}
    for _ in range(60):
        schema = {"type": "object", "properties": {"a": {"type": "array", "items": schema}}, "required": ["a"]}
    return Grammar.from_json_schema(schema)


def policy():
    knowledge = ActionKnowledge.from_tools(TOOLS, policy=POLICY)
    memory = knowledge.tools.policy.initial
    return knowledge.bind_view(knowledge.tools.view(memory)).next_action()


GRAMMARS = {
    "nested": lambda: Grammar.from_lark('start: "a"+ b "<call>"\nb: "(" b ")" | "x"'),
    "regex": lambda: Grammar.from_regex(r"(?!ab)\w+(?<=é)"),
    "choices": lambda: Grammar.from_choices(["é", "ab", "abc"]),
    "bound": lambda: Grammar.from_lark("start: X Y\n%declare X Y").bind(X=["b", "a"], Y=Grammar.from_regex("a+")),
    "groups": lambda: Grammar.from_lark("start: " + "(" * 190 + '"a"|"b"' + ') "a"' * 190),
    "schema": lambda: Grammar.from_json_schema(
        {"properties": {"a": {"pattern": "^x"}}, "items": {"enum": [1, 2, 3]}, "uniqueItems": True}
    ),
    "deep schema": deep_schema,
    "tools": lambda: ActionKnowledge.from_tools(TOOLS).next_action(),
    "policy": policy,
}

WAYS = {"pickled": lambda one: pickle.loads(pickle.dumps(one)), "copied": copy.copy, "deeply copied": copy.deepcopy}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def first_masks(compiled, count=4):
    """The masks along one text."""
    matcher = compiled.matcher()
    found = []
    for _ in range(count):
        ids = matcher.allowed_token_ids()
        found.append(ids.tolist())
        if not matcher.advance(ids[len(ids) // 2]) or matcher.is_terminated:
            break
    return found


@every_way
@pytest.mark.parametrize("used", [False, True])
def test_a_vocabulary_is_the_same_again_fresh_and_after_use(way, used):
    first = vocabulary()
    if used:
        first_masks(compile_grammar(GRAMMARS["nested"](), first))
        assert first.fewest_tokens(b"aab") and first.text and first.endings and first.kernel_tokens
    again = way(first)
    assert type(again) is Vocabulary and again.fingerprint == first.fingerprint and again.tokens == first.tokens
    assert (again.size, again.eos_token_ids, again.special_ids) == (300, [257], [257, 258])


@every_way
@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("make", GRAMMARS.values(), ids=GRAMMARS)
def test_a_compiled_grammar_and_its_grammar_have_the_same_masks_again(make, used, way):
    compiled = compile_grammar(make(), vocabulary())
    expected = first_masks(compile_grammar(make(), vocabulary()))
    if used:
        assert first_masks(compiled) == expected
    assert first_masks(way(compiled)) == expected
    assert first_masks(compile_grammar(way(compiled.grammar), vocabulary())) == expected


def test_a_grammar_keeps_its_limits_and_what_it_said():
    grammar = Grammar.from_json_schema({"x-other": 1, "contentEncoding": "x"}, limits=Limits(positions=77))
    again = pickle.loads(pickle.dumps(compile_grammar(grammar, vocabulary()))).grammar
    assert again.limits == Limits(positions=77) and again.unknown == grammar.unknown and repr(again) == repr(grammar)


def test_use_adds_nothing_to_what_is_pickled():
    grammar, tokens = GRAMMARS["schema"](), vocabulary()
    compiled = compile_grammar(grammar, tokens)
    grammar.all_rules()  # what is deferred is written
    before = len(pickle.dumps(compiled))
    first_masks(compiled)
    assert len(pickle.dumps(compiled)) == before


def test_another_process_gets_the_same_masks(tmp_path):
    compiled = compile_grammar(GRAMMARS["nested"](), vocabulary())
    (tmp_path / "compiled").write_bytes(pickle.dumps(compiled))
    code = "import pickle, sys; print(pickle.load(sys.stdin.buffer).matcher().allowed_token_ids().tolist())"
    with open(tmp_path / "compiled", "rb") as file:
        shown = subprocess.run([sys.executable, "-c", code], stdin=file, capture_output=True, check=True, text=True)
    assert shown.stdout.strip() == str(compiled.matcher().allowed_token_ids().tolist())


@pytest.mark.parametrize("make", [GRAMMARS["nested"], GRAMMARS["schema"]])  # on the kernel, and in Python
@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy])
def test_a_matchers_copy_goes_on_by_itself(make, way):
    matcher = compile_grammar(make(), vocabulary()).matcher()
    before = matcher.allowed_token_ids()
    other = way(matcher)
    assert other.advance(before[0])
    assert np.array_equal(matcher.allowed_token_ids(), before) and other.compiled is matcher.compiled
    batch = BatchMatcher([matcher])
    [row] = copy.deepcopy(batch)
    assert row is not matcher and copy.copy(batch)[0] is matcher and row.advance(before[0])


@pytest.mark.parametrize("make", [GRAMMARS["nested"], GRAMMARS["schema"]])
def test_matchers_are_refused_by_name_with_what_to_do(make):
    matcher = compile_grammar(make(), vocabulary()).matcher()
    with pytest.raises(ConstrainedError, match=r"a matcher can't be pickled.*\n.*advance a new matcher by them"):
        pickle.dumps(matcher)
    with pytest.raises(ConstrainedError, match=r"a batch of matchers can't be pickled.*\n.*advance new matchers"):
        pickle.dumps(BatchMatcher([matcher]))


@every_way
def test_errors_are_the_same_again(way):
    with pytest.raises(LimitError) as raised:
        Grammar.from_lark('start: "a"', limits=Limits(characters=3))
    error = raised.value
    again = way(error)
    assert type(again) is LimitError and str(again) == str(error) and vars(again) == vars(error)
    assert again.at(again).limit == "characters"

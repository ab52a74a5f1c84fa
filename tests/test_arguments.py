"""None means an argument's default, where it has one; what is of another kind is one clear error that names it."""

import inspect

import numpy as np
import pytest

from constrained import ActionKnowledge, BatchMatcher, CompiledGrammar, Grammar, Vocabulary, compile_grammar
from constrained.agents.generate import generate_plan
from constrained.arguments import TEXT, WHOLE, checked
from constrained.decoding.generation import generate, generate_batch
from constrained.decoding.request import Request
from constrained.decoding.sampling import Sampler
from constrained.errors import ConstrainedError
from constrained.limits import DEFAULT
from constrained.models import load

BYTES = Vocabulary([*(bytes([i]) for i in range(256)), b""], [256])
TEXTS = Grammar.from_lark('start: "a"~1..9')
COMPILED = compile_grammar(TEXTS, BYTES)


@pytest.fixture(scope="module")
def embedded():
    return load()


PUBLIC = {
    Grammar.from_lark: {"text_or_path": 'start: "a"'},
    Grammar.from_regex: {"pattern": "a"},
    Grammar.from_choices: {"choices": ["a"]},
    Grammar.from_json_schema: {"schema": {"type": "integer"}},
    TEXTS.texts: {},
    compile_grammar: {"grammar": TEXTS, "vocabulary": BYTES},
    COMPILED.matcher: {},
    BatchMatcher: {},
    Vocabulary: {"tokens": [b"a"], "eos_token_ids": [1]},
    ActionKnowledge.from_lark: {"text_or_path": "hotpotqa"},
    ActionKnowledge.from_tools: {"tools": [{"name": "look"}]},
}
WITH_DEFAULT = [
    pytest.param(call, given, name, id=f"{call.__qualname__} {name}")
    for call, given in PUBLIC.items()
    for name, parameter in inspect.signature(call).parameters.items()
    if name not in given and parameter.default is not None
]


@pytest.mark.parametrize(("call", "given", "name"), WITH_DEFAULT)
def test_none_means_the_default(call, given, name):
    assert repr(call(**given, **{name: None})) == repr(call(**given))


def test_none_means_the_default_of_a_generated_text(embedded):
    grammar = compile_grammar(Grammar.from_lark('start: "go to " ("desk"|"bed")'), embedded.vocabulary)
    expected = generate(embedded, "Task:", grammar).text
    names = [name for name, one in inspect.signature(generate).parameters.items() if one.default is not one.empty]
    for name in {*names} - {"grammar"}:
        assert generate(embedded, "Task:", grammar, **{name: None}).text == expected, name
    nothing = {"rows": None, "temperature": None, "cache": None}
    [batched] = generate_batch(embedded, [Request("Task:", grammar, None, begun=None, role=None)], **nothing)
    assert batched.text == expected and batched.role == "policy"


def test_none_means_the_default_of_a_plan():
    def actions(**options):
        return [step.action for step in generate_plan("examine the mug", model="random", max_steps=2, **options).steps]

    for name in ("temperature", "seed", "max_new_tokens", "strategy", "level", "constrained"):
        assert actions(**{name: None}) == actions(), name


WRONG = [
    (lambda: Grammar.from_lark('start: "a"', 3), "start is 3"),
    (lambda: Grammar.from_lark('start: "a"', limits=3), "limits is 3"),
    (lambda: Grammar.from_regex("a", "i"), "flags is 'i'"),
    (lambda: Grammar.from_json_schema({}, limits={}), "limits is {}"),
    (lambda: Grammar.from_json_schema({}, whitespace=3), "whitespace is 3"),
    (lambda: TEXTS.texts("many"), "limit is 'many'"),
    (lambda: compile_grammar(TEXTS, None), "a vocabulary is wanted here, not NoneType"),
    (lambda: compile_grammar(TEXTS, object()), "a vocabulary is wanted here, not object"),
    (lambda: COMPILED.matcher(3), "begun is 3"),
    (lambda: COMPILED.matcher().set_budget("all"), "the budget is 'all'"),
    (lambda: COMPILED.matcher().fill_bitmask(None), "the mask is None"),
    (lambda: COMPILED.save(None), "path is None"),
    (lambda: CompiledGrammar.load(None, BYTES), "path is None"),
    (lambda: BatchMatcher(3), "matchers is 3"),
    (lambda: BatchMatcher(threads=1.5), "threads is 1.5"),
    (lambda: Vocabulary(None, [1]), "tokens is None"),
    (lambda: Vocabulary([b"a"], None), "the vocabulary has no EOS token"),
    (lambda: Vocabulary([b"a"], 1), "eos_token_ids is 1"),
    (lambda: Vocabulary([b"a"], ["</s>"]), "a token id of eos_token_ids is '</s>'"),
    (lambda: Vocabulary([b"a"], [1], [None]), "a token id of special_ids is None"),
    (lambda: ActionKnowledge.from_lark("hotpotqa", 3), "start is 3"),
    (lambda: ActionKnowledge.from_tools([{"name": "a"}], call_format=3), "call_format is 3"),
    (lambda: ActionKnowledge.from_lark("hotpotqa").only(None, "one"), "actions is None"),
    (lambda: ActionKnowledge.from_lark("hotpotqa").bind_view(None), "view is None"),
    (lambda: ActionKnowledge.from_lark("hotpotqa").next_action("3"), "steps_left is '3'"),
    (lambda: Request("a", max_new_tokens="3"), "max_new_tokens is '3'"),
    (lambda: Request("a", max_new_tokens=True), "max_new_tokens is True"),
    (lambda: Sampler(temperature="hot"), "temperature is 'hot'"),
    (lambda: generate(None, "a"), "a loaded model is wanted here, not NoneType"),
    (lambda: generate("gpt2", "a"), "a loaded model is wanted here, not str"),
    (lambda: generate(load(), None), "the prompt is None"),
    (lambda: generate(load(), [None]), "a token of the prompt is None"),
    (lambda: generate(load(), "a", temperature="hot"), "temperature is 'hot'"),
    (lambda: generate_batch(load(), None), "requests is None"),
    (lambda: generate_plan("look", temperature="hot"), "temperature is 'hot'"),
    (lambda: generate_plan("look", seed=1.5), "seed is 1.5"),
]


@pytest.mark.parametrize(("call", "message"), WRONG, ids=[message for _, message in WRONG])
def test_an_argument_of_the_wrong_kind_is_named(call, message):
    with pytest.raises(ConstrainedError) as raised:
        call()
    assert str(raised.value).startswith(message) and raised.value.hint


def test_numbers_of_numpy_are_numbers_and_a_budget_has_no_greatest():
    matcher = COMPILED.matcher()
    matcher.set_budget(np.int64(5))
    matcher.set_budget(10**30)
    assert matcher.advance(97)


def test_what_is_too_much_or_unknown_is_pythons_to_refuse():
    @checked(a=TEXT, b=WHOLE)
    def call(a, b=3, *, limits=DEFAULT):
        return a, b, limits

    assert call("x") == call("x", None, limits=None) == ("x", 3, DEFAULT)
    for refused in (lambda: call("x", 1, 2), lambda: call("x", c=1), lambda: call(), lambda: call("x", a="y")):
        with pytest.raises(TypeError, match=r"call\(\)"):
            refused()

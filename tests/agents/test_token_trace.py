"""The trace of a run: what was open, every token, what the mask took away, and the rule that says so."""

import json
import re
from pathlib import Path

import pytest

from constrained import ActionKnowledge, ConstrainedError, generate_plan
from constrained.agents import token_trace as trace
from constrained.agents.episode import Episode
from constrained.agents.plan import Plan
from constrained.agents.run_file import read_run
from constrained.agents.scheduler import Rollout
from constrained.agents.settings import Settings
from constrained.agents.token_trace import LEFT_OUT, WORTH_A_REASON
from constrained.decoding.choosers import Uniform
from constrained.environments.household import HouseholdEnv, make_game
from constrained.environments.world import WorldEnvironment
from constrained.models import load
from tests.decoding.tiny import tiny
from tests.documents import blocks

RANDOM = tiny(context=16384)
TASK = "heat an egg and put it in the fridge"


def traced(path, model=None, **options):
    """The plan, and the lines of its record."""
    plan = generate_plan(TASK, model=model, trace=path, **options)
    return plan, list(read_run(path))


@pytest.fixture(scope="module", params=["embedded", "random"])
def run(request, tmp_path_factory):
    """A traced run in a household: by a model that plays well, and by one that wants anything but that."""
    path = tmp_path_factory.mktemp("trace") / "run.jsonl"
    if request.param == "embedded":
        return traced(path, seed=3)
    patch = pytest.MonkeyPatch()
    patch.setattr(trace, "WORTH_A_REASON", 0.0)  # its probabilities are spread evenly
    try:
        return traced(path, (RANDOM.model, RANDOM.tokenizer), seed=3, max_steps=4, temperature=1.0, demonstrations=0)
    finally:
        patch.undo()


def answers(lines):
    """(step, its only answer) of each step."""
    return [(line["step"], line["answers"][0]) for line in lines if "step" in line]


def spelt(token):
    """A token's bytes; parts of characters are shown as \\xNN."""
    return re.sub(rb"\\x([0-9a-f]{2})", lambda byte: bytes.fromhex(byte[1].decode()), token["text"].encode())


def action_so_far(step, answer):
    """(what of the action is written before it, token) of each token that belongs to the action."""
    text = answer["trace"]["begun"].encode()
    start = len(text + answer["text"].encode()) - len(step["action"])
    for token in answer["trace"]["tokens"]:
        if len(text) >= start:
            yield text[start:].decode(), token
        text += b"" if token.get("end") else spelt(token)


def test_the_tokens_are_those_of_the_answer(run):
    for _, answer in answers(run[1]):
        tokens = [token for token in answer["trace"]["tokens"] if not token.get("end")]
        assert b"".join(map(spelt, tokens)).decode() == answer["text"]
        assert len(tokens) == answer["completion_tokens"]
        assert sum(token.get("forced", False) for token in tokens) == answer["forced_tokens"]
        assert max(token["pruned"] for token in tokens) <= answer["max_pruned_mass"] + 1e-4
        assert all((token["p"], token["pruned"]) == (1, 0) for token in tokens if token.get("forced"))


def test_what_was_open_is_told(run):
    knowledge, came_from = ActionKnowledge.from_lark("household"), ["start"]
    for step, answer in answers(run[1]):
        seen = answer["trace"]
        assert seen["place"] in came_from
        assert set(seen["open"]) <= set(knowledge.rules[seen["place"]])
        assert step["action"] in seen["some"] or seen["choices"] > trace.SOME
        assert seen["prompt"].endswith(seen["begun"])
        came_from = seen["open"]


def test_a_forbidden_token_is_less_than_what_the_mask_took(run):
    seen = 0
    for _, answer in answers(run[1]):
        for token in answer["trace"]["tokens"]:
            if "forbidden" in token:
                seen += 1
                assert not token.get("forced")
                assert 0 < token["forbidden"]["p"] <= token["pruned"] + 1e-4
    assert seen


def test_what_breaks_a_rule_begins_no_open_action_and_what_is_left_out_begins_none_that_is_left(run):
    kinds = set()
    for step, answer in answers(run[1]):
        some, choices = answer["trace"]["some"], answer["trace"]["choices"]
        for before, token in action_so_far(step, answer):
            other = token.get("forbidden", {})
            if "kind" not in other or choices > trace.SOME:
                continue
            kinds.add(other["kind"])
            if other["kind"] == "unfinished":
                assert other["end"] and before not in some
                continue
            assert not any(action.startswith(before + other["text"]) for action in some), (before, other)
            if other["kind"] in LEFT_OUT:
                assert answer["trace"]["left_out"] and "rule" not in other
            else:
                assert other["rule"] and other["at"].startswith("household.lark:")
                assert other["line"].splitlines()[1].strip() == "^"
    assert "invalid" in kinds


REFUNDS = next(block.text for block in blocks(Path(__file__).parents[2] / "README.md") if block.language == "lark")


@pytest.mark.parametrize(
    "knowledge, environment, done, text, named",
    [
        (REFUNDS, None, [], "refund A17", "looked-up"),
        (REFUNDS, None, ["look up B42"], "refund B42", "broken"),
        (REFUNDS, None, [], "look up C99", None),
        (REFUNDS, None, [], "sing", None),
        ("household", lambda: HouseholdEnv(make_game(5)), ["go to {here}"], "go to {here}", "within reach"),
        ("household", lambda: HouseholdEnv(make_game(5)), [], "go to the moon", None),
    ],
)
def test_what_exists_and_is_not_possible_now_is_told_with_the_condition(knowledge, environment, done, text, named):
    start = ActionKnowledge.from_lark(knowledge, source_map=True)
    world = environment() if environment else WorldEnvironment(start.world, "refund A17")
    plan = Plan("task", start.name, "act", "random", True, 0)
    episode = Episode({"policy": Uniform()}, start, plan, Settings("act", "act", level="state"), world)
    Rollout(episode).start()
    here = next((a[len("go to ") :] for a in episode.space.knowledge.next_actions() if a.startswith("go to ")), "")
    for action in done:
        episode.do(episode.new_step("", action.format(here=here)))
    answered = trace._Answered("", "", None, episode, None, [])
    reason = answered._condition(trace.explain_path(episode.space.knowledge, "", text.format(here=here)))
    assert (named in reason) if named else reason == ""


def test_below_a_hundredth_nothing_is_explained(tmp_path):
    _, lines = traced(tmp_path / "run.jsonl", seed=3, max_steps=6)
    others = [t["forbidden"] for _, a in answers(lines) for t in a["trace"]["tokens"] if "forbidden" in t]
    assert all(("reason" in other) == (other["p"] >= WORTH_A_REASON) for other in others)
    assert any("reason" in other for other in others) and not all("reason" in other for other in others)


def test_the_picture_is_in_the_record(run):
    head = run[1][0]["run"]
    assert head["trace"]["svg"].startswith("<svg") and head["trace"]["knowledge"] == "household"
    assert head["trace"]["rules"] == {k: list(v) for k, v in ActionKnowledge.from_lark("household").rules.items()}
    assert run[1][-1]["end"]["success"] == run[0].success


def test_to_trace_changes_nothing_else(tmp_path):
    plain = generate_plan(TASK, strategy="react", seed=3)
    plan, _ = traced(tmp_path / "run.jsonl", strategy="react", seed=3)
    assert [(s.thought, s.action) for s in plan.steps] == [(s.thought, s.action) for s in plain.steps]
    assert all(answer.trace is None for answer in plain.answers)


def test_without_masks_nothing_is_forbidden(tmp_path):
    _, lines = traced(tmp_path / "run.jsonl", strategy="react", seed=3, constrained=False, max_steps=3)
    for _, answer in answers(lines):
        assert answer["trace"]["choices"] and answer["trace"]["tokens"]
        assert not any("forbidden" in token for token in answer["trace"]["tokens"])


def test_free_text_and_knowledge_without_an_environment(tmp_path):
    plan = generate_plan("Who?", "hotpotqa", strategy="knowagent", max_steps=2, trace=tmp_path / "run.jsonl")
    first = plan.answers[0].trace
    assert first["open"] == ["retrieve", "search"] and first["choices"] is None
    reasons = [t["forbidden"] for t in first["tokens"] if t.get("forbidden", {}).get("kind") == "invalid"]
    assert reasons[0]["rule"] == "start" and reasons[0]["at"].startswith("hotpotqa.lark:")


def test_too_few_tokens_are_a_reason(tmp_path, monkeypatch):
    """A free text that must end soon: what the model would go on with is no breach of a rule."""
    monkeypatch.setattr(trace, "WORTH_A_REASON", 0.0)
    plan = generate_plan(
        "Who?", "hotpotqa", strategy="act", max_new_tokens=60, model=(RANDOM.model, RANDOM.tokenizer),
        temperature=1.0, seed=1, trace=tmp_path / "run.jsonl",
    )  # fmt: skip
    kinds = {t["forbidden"].get("kind") for a in plan.answers for t in a.trace["tokens"] if "forbidden" in t}
    assert "too long" in kinds


def test_an_earlier_run_is_replaced_and_nothing_else_is(tmp_path):
    path = tmp_path / "run.jsonl"
    traced(path, strategy="act", max_steps=1)
    _, lines = traced(path, strategy="act", max_steps=2)
    assert len(answers(lines)) == 2
    path.write_text("my notes\n")
    with pytest.raises(ConstrainedError, match="line 1"):
        generate_plan(TASK, trace=path)
    assert path.read_text() == "my notes\n"


def test_columns_without_a_token_are_shown_by_their_numbers(tmp_path, monkeypatch):
    """Models may be padded to more columns than their tokenizers have tokens, and may want one of these most."""
    monkeypatch.setattr(trace, "WORTH_A_REASON", 0.0)
    wide = tiny(context=4096, padding=300)
    _, lines = traced(
        tmp_path / "run.jsonl", (wide.model, wide.tokenizer),
        strategy="act", seed=3, max_steps=2, temperature=1.0,
    )  # fmt: skip
    tokens = [token for _, answer in answers(lines) for token in answer["trace"]["tokens"]]
    assert any(token["forbidden"]["text"].startswith("<token ") for token in tokens if "forbidden" in token)


def test_tokens_of_parts_of_characters_are_json(tmp_path):
    loaded = load((RANDOM.model, RANDOM.tokenizer))
    shown = [trace._shown(i, loaded.vocabulary) for i in range(len(loaded.vocabulary.tokens))]
    assert all(json.loads(json.dumps(one)) == one and one["text"] for one in shown)
    assert [one.get("end", False) for one in shown].count(True) == len(loaded.vocabulary.eos_token_ids)

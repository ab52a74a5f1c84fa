"""Whatever is written under the masks, a draft loads, has actions, can finish, and passes `constrained check`."""

import lark
import numpy as np
import pytest

from constrained import ActionKnowledge, Vocabulary, compile_grammar
from constrained.errors import ConstrainedError
from constrained.knowledge.draft import MAX_ACTIONS, draft
from constrained.knowledge.lint import check_file
from tests.knowledge.drafting import scripted

WORDS = [b"Search", b"Find", b"Start", b"the ", b"]: ", b", ", b"The ", b".\n", b"text", "é".encode()]
VOCABULARY = Vocabulary([bytes([i]) for i in range(256)] + WORDS + [b""], eos_token_ids=[256 + len(WORDS)])


def random_writer(seed: int, tokens: int = 40):
    """Writes any allowed token, each as likely as the next."""
    rng = np.random.default_rng(seed)

    def write(so_far: str, grammar) -> str:
        matcher = compile_grammar(grammar, VOCABULARY).matcher()
        matcher.set_budget(max(tokens, matcher.fewest_tokens()))
        out = b""
        while True:
            token = int(rng.choice(matcher.allowed_token_ids()))
            if token in VOCABULARY.eos_token_ids:
                return out.decode()
            assert matcher.advance(token)
            out += VOCABULARY.tokens[token]

    return write


@pytest.mark.parametrize("seed", range(8))
def test_a_random_draft_is_sound_knowledge(seed):
    wanted = None if seed % 3 else seed % MAX_ACTIONS + 1
    drafted = draft("anything at all", random_writer(seed), wanted)
    text = drafted.to_lark("Drafted\nby chance")
    knowledge = ActionKnowledge.from_lark(text)
    lark.Lark(text)
    assert 1 <= len(knowledge.actions) == len(drafted.actions) <= MAX_ACTIONS  # each can be reached
    assert wanted in (None, len(drafted.actions))
    assert set(knowledge.actions) <= set(knowledge.graph.distance)  # and can finish
    assert check_file(text).count("error") == 0
    for action in drafted.actions:
        assert knowledge.actions[action.rule] == f"{action.rule}: {action.command}. {action.definition}"


JOURNEY = [
    " Plan a journey by train.\n",
    "Search[origin, goal]: Finds trains from one place to another.\n",
    "Look: Tells what is known so far.\n",
    "Answer[train]: Names the train to take.\n",
    "\n",
    " word\n",
    " thing\n",
    " text\n",
    " Answer\n",
    " Search, Answer\n",
    " Search\n",
    " Search, Look\n",
]
JOURNEY_FILE = """\
// Drafted

%declare _STEP  // ends one action: there the environment answers
%declare GOAL  // goal: what is there now, bound at run time

// Plan a journey by train.
start: search | look

// search: Search[origin, goal]. Finds trains from one place to another.
search: "Search[" ORIGIN ", " GOAL "]" _STEP (search | answer)

// look: Look. Tells what is known so far.
look: "Look" _STEP (search)

// answer: Answer[train]. Names the train to take.
answer: "Answer[" TRAIN "]"

ORIGIN: /[^\\[\\],\\s]{1,40}/
TRAIN: /[^\\[\\]\\n]{1,120}/
"""


def test_the_lines_become_a_file():
    drafted = draft("a journey", scripted(*JOURNEY))
    assert drafted.to_lark("Drafted") == JOURNEY_FILE
    knowledge = ActionKnowledge.from_lark(JOURNEY_FILE).bind(GOAL=["Rome", "Oslo"])
    assert knowledge.check(["Search[Bonn, Rome]", "Answer[the 9:15 by Basel]"]).finished


@pytest.mark.parametrize(
    "line, number",
    [
        ("Search[x]: Searches once more.\n", 2),  # a name that is taken
        ("Start: Begins the whole of it.\n", 2),  # the name of the rule that begins
        ("\n", 1),  # no action at all
        (" Search\n", 10),  # Look and Search would follow each other for ever
        (" Search, Answer\n", 11),  # nothing would lead to Look
    ],
)
def test_what_would_not_load_or_never_finish_is_not_offered(line, number):
    lines = list(JOURNEY)
    if number == 10:
        lines[9:11] = [" Look\n", " Search\n"]
        number = 9
    lines[number] = line
    with pytest.raises(AssertionError):
        draft("a journey", scripted(*lines))


@pytest.mark.parametrize("task, actions, message", [("", None, "empty"), ("x", 0, "actions is 0"), ("x", 11, "is 11")])
def test_what_is_asked_wrongly_is_said(task, actions, message):
    with pytest.raises(ConstrainedError, match=message):
        draft(task, scripted(), actions)

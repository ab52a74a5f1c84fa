"""An environment that only lists its admissible commands: the masks admit those of them that the order admits."""

import pytest

from constrained import generate_plan
from constrained.agents.episode import Episode
from constrained.agents.plan import Plan
from constrained.agents.settings import Settings
from constrained.errors import ConstrainedError
from constrained.knowledge import ActionKnowledge
from tests.agents.baselines import GENERAL

KNOWLEDGE = ActionKnowledge.from_lark("""
%declare _STEP THING WAY
// Find the treasure.
start: look
// look: look around first.
look: "look" _STEP [go{WAY} | act]
// go: go somewhere.
go{w}: "go " w _STEP [look | act]
act: take{THING} | open{THING} | tell
// take: take something.
take{t}: "take " t _STEP [look | act]
// open: open something.
open{t}: "open " t _STEP [look | act]
// tell: say anything.
tell: "tell " /[a-z ]+/ _STEP [look | act]
""")


class Cellar:
    """As TextWorld's games: each answer comes with a list of all commands that are possible next."""

    def reset(self):
        self.inside, self.opened = False, False
        return "You stand before a cellar. Your task is to: take the coin."

    def admissible(self):
        if not self.inside:
            return ["look", "go down", "jump"]
        return ["look", "go up", "take lamp", "tell joke", "take coin" if self.opened else "open chest"]

    def step(self, action):
        assert action in self.admissible()
        self.inside = action == "go down" or (self.inside and action != "go up")
        self.opened = self.opened or action == "open chest"
        return "Done.", float(action == "take coin"), action == "take coin"


def episode(environment, **settings):
    """An episode with this knowledge that has begun."""
    plan = Plan("take the coin", "cellar", "act", "", True, 0)
    found = Episode({"policy": GENERAL}, KNOWLEDGE, plan, Settings("act", "act", **settings), environment)
    found.begin()
    return found


def admitted(playing):
    """The next actions."""
    return {text.decode() for text in playing.next_action().automaton.start.texts(100)}


def do(playing, action):
    playing.do(playing.new_step("", action))


def test_exactly_the_listed_commands_that_the_order_admits_are_admitted():
    playing = episode(Cellar())
    assert admitted(playing) == {"look"}
    do(playing, "look")
    assert admitted(playing) == {"go down"}  # "jump" is no action
    do(playing, "go down")
    # What can be taken can't be opened though both are THING, and what could be told is listed, too.
    assert admitted(playing) == {"look", "take lamp", "tell joke", "open chest"}
    assert playing.surroundings.in_view({"THING"}).endswith("THING: lamp, chest")


def test_form_admits_what_the_names_allow():
    playing = episode(Cellar(), level="form")
    do(playing, "look")
    do(playing, "go down")
    action = playing.next_action()
    assert [action.matches(text) for text in ("take chest", "open lamp", "tell secrets", "take sun")] == [1, 1, 1, 0]


@pytest.mark.filterwarnings("error")
def test_commands_go_before_a_view():
    cellar = Cellar()
    cellar.view = lambda: {"THING": ["sun"]}
    playing = episode(cellar)
    do(playing, "look")
    do(playing, "go down")
    assert admitted(playing) == {"look", "take lamp", "tell joke", "open chest"}


@pytest.mark.parametrize("seed", range(3))
def test_a_random_choice_plays_it(seed):
    plan = generate_plan(
        "take the coin", KNOWLEDGE, environment=Cellar(), model="random", strategy="act", max_steps=60, seed=seed
    )
    assert plan.invalid == plan.misordered == 0 and plan.steps[0].action == "look"


@pytest.mark.parametrize("listed", ["look", None, [1]])
def test_a_listing_that_is_none_is_one_clear_error(listed):
    cellar = Cellar()
    cellar.admissible = lambda: listed
    with pytest.raises(ConstrainedError, match=r"admissible\(\) gave"):
        episode(cellar)


ADVENTURE = """
%declare _STEP WAY THING HOLDER KEY
// Play a text adventure.
start: | look | go{WAY} | take{THING} | takefrom{THING, HOLDER} | put{THING, HOLDER} | alone{THING} | with{THING, KEY}
look: ("look" | "inventory") _STEP start
go{w}: "go " w _STEP start
take{t}: "take " t _STEP start
takefrom{t, h}: "take " t " from " h _STEP start
put{t, h}: ("put " t " on " | "insert " t " into ") h _STEP start
alone{t}: ("examine " | "drop " | "open " | "close " | "eat ") t _STEP start
with{t, k}: ("unlock " | "lock ") t " with " k _STEP start
"""


class TextWorld:
    """A game of TextWorld, played by its own interpreter."""

    def __init__(self, file):
        textworld = pytest.importorskip("textworld")
        self.game = textworld.start(file, textworld.EnvInfos(admissible_commands=True, won=True))
        self.refused = 0

    def reset(self):
        self.now = self.game.reset()
        return self.now.feedback

    def admissible(self):
        return list(self.now.admissible_commands)

    def step(self, action):
        self.refused += action not in self.now.admissible_commands
        self.now, _, done = self.game.step(action)
        return self.now.feedback, float(self.now.won), done


@pytest.mark.parametrize("seed", range(2))
def test_textworlds_own_games_are_played_by_what_they_list(seed, tmp_path):
    textworld = pytest.importorskip("textworld", reason="needs TextWorld: pip install textworld")
    options = textworld.GameOptions()
    options.seeds, options.path = seed, str(tmp_path / "game.z8")
    options.nb_rooms, options.nb_objects, options.quest_length = 3, 8, 3
    file, _ = textworld.make(options)
    game, knowledge = TextWorld(file), ActionKnowledge.from_lark(ADVENTURE)
    plan = generate_plan("win", knowledge, environment=game, model="random", strategy="act", max_steps=60, seed=seed)
    assert game.refused == plan.invalid == plan.misordered == 0 and (plan.success or len(plan.path) == 60)
    game.reset()
    assert set(game.admissible()) <= set(knowledge.bind_view(game.admissible()).next_actions())

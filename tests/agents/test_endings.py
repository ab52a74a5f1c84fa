"""The loop against worlds that end early, late or never."""

from constrained import generate_plan
from constrained.knowledge import ActionKnowledge


class Deaf:
    """A world that answers everything and is never done."""

    def reset(self):
        return "You hear nothing."

    def step(self, action):
        return f"You did: {action}", 0.0, False


SHORT = '%declare _STEP\nstart: wave\n// wave.\nwave: "wave" _STEP bow\n// bow.\nbow: "bow"\n'


def test_a_path_that_is_over_ends_the_plan_where_the_world_goes_on():
    plan = generate_plan("say something", ActionKnowledge.from_lark(SHORT), environment=Deaf(), strategy="act")
    assert plan.path == ["wave", "bow"]
    assert plan.success is False and "no action is admitted" in plan.note
    assert plan.steps[0].observation == "You did: wave"


class Bare:
    """The least that can be played in: no view, no measures of its own."""

    def reset(self):
        return "Somebody waits."

    def step(self, action):
        return "They smile.", 1.0, action == "bow"


def test_an_environment_needs_reset_and_step_alone():
    plan = generate_plan("greet", ActionKnowledge.from_lark(SHORT), environment=Bare(), strategy="react")
    assert plan.path == ["wave", "bow"]
    assert plan.success is True and plan.outcome == {"success": 1.0}


def test_an_imagined_house_is_never_done():
    plan = generate_plan("water the plants", strategy="act", max_steps=40, temperature=1.0, seed=3)
    assert plan.open_loop and plan.success is None and plan.steps
    assert plan.invalid == plan.misordered == 0

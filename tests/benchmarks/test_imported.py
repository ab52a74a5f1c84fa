"""Knowledge imported from alfred.pddl forbids no action that had an effect, and some of those that had none."""

from benchmarks import imported
from tests.data import shared


def test_the_expert_is_never_forbidden_and_much_of_what_does_nothing_is():
    shared("alfworld/logic_2.1.1")
    shared("alfworld/games_2.1.1_train.tar.xz")
    shared("knowagent")
    figures = imported.run(every=150, progress=False)
    assert figures["expert"]["effect"] > 300
    for found in figures.values():
        for judge in imported.JUDGES:
            assert found[judge]["effect, invalid"] == found[judge]["effect, misordered"] == 0
    runs = figures["knowagent D0"]
    forbidden = runs["imported"]["nothing, invalid"] + runs["imported"]["nothing, misordered"]
    assert 0 < forbidden <= runs["nothing"]
    ours = runs["household.lark"]
    assert ours["nothing, invalid"] + ours["nothing, misordered"] == runs["nothing"]
    assert "| expert | household.lark |" in imported.table(figures)

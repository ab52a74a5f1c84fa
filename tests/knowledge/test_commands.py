"""What slots hold is told by the commands that an environment lists, read by the rules that write them."""

from constrained import ActionKnowledge
from constrained.knowledge.commands import slot_values
from tests.knowledge.enumerate import texts

ROOMS = ActionKnowledge.from_lark("""
%import relations (another, at)
%declare _STEP PLACE THING BOX NOTE PEN
// Tidy up.
start: goto{PLACE} | rest
// rest: rest.
rest: "rest" _STEP start
// goto: go.
goto{p}: "go to " p _STEP (goto{another{PLACE, p}} | take{THING, BOX, p} | read{p} | write{PEN})
// take: take something.
take{t, b, p}: "take " t " from " b _STEP ["put " t " on " p]
// read: read.
read{p}: "read " at{NOTE, p}
// write: write what can be anything.
write{n}: "write with " n | PEN " writes"
""")


def test_values_stand_under_the_argument_after_them():
    at_desk = ROOMS.bind_view(["go to desk", "go to sofa", "go to the big sofa", "rest", "dance"])
    assert texts(at_desk.next_action()) == {"go to desk", "go to sofa", "go to the big sofa", "rest"}
    at_desk = at_desk.after("go to desk")
    listed = ["go to sofa", "take pen from drawer", "take mug from drawer", "take mug from tray", "read bill"]
    assert slot_values(at_desk.grammar, listed) == {
        "PLACE": ["sofa"],
        "THING": {"drawer": ["pen", "mug"], "tray": ["mug"]},
        "BOX": {"desk": ["drawer", "tray"]},
        "NOTE": {"desk": ["bill"]},
    }
    assert texts(at_desk.bind_view(listed).next_action()) == set(listed)
    holding = at_desk.bind_view(listed).after("take pen from drawer")
    assert texts(holding.bind_view(["put pen on desk", "put pen on sofa"]).next_action()) == {"put pen on desk"}


def test_a_slot_that_stands_without_a_key_somewhere_is_a_list():
    at_desk = ROOMS.bind_view(["go to desk"]).after("go to desk")
    listed = ["write with pencil", "pen writes"]
    assert slot_values(at_desk.grammar, listed) == {"PEN": ["pencil", "pen"]}
    assert slot_values(at_desk.grammar, []) == {}

"""The catalogue of findings: for each code a small file that has it, what is said, and a file that doesn't."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """A file with one finding of `code`, and one without.

    `place` is line, column and the column after the last character, None for the file as a whole.
    Without `message` and `fix` both are the loader's own words.
    """

    code: str
    text: str
    place: tuple | None
    message: str | None
    fix: str | None
    clean: str
    options: dict = field(default_factory=dict)
    clean_options: dict | None = None


ACTIONS = "%declare _STEP\n// Do it.\nstart: go | stop\n// go: walk on.\n"
STOP = '// stop: end it.\nstop: "stop"\n'


def actions(go: str, more: str = "") -> str:
    """A small file of actions, whose `go` is on line 5 and followed by `more`."""
    return f"{ACTIONS}{go}\n{STOP}{more}"


def world(lines: str) -> str:
    """A file with one action, `go`, and lines about it."""
    return f'%declare _STEP\n//: fact lit\n// Do it.\nstart: | go\n// go: walk on.\n{lines}\ngo: "go" _STEP start\n'


def policy(line: str) -> str:
    """A policy of two tools, with one more line, the third."""
    return f"""%declare _STEP LIST SAY
//: tells seen = $ by list
{line}
// Help.
start: list | say
// list: look.
list: LIST _STEP start
// say: answer.
say: SAY _STEP [start]
"""


ROUND = """//: object hall, attic, cellar: place
//: init at(hall), open(hall)
//: goal seen(attic), seen(cellar), at(hall), open(hall)"""
"""A problem whose goal takes several actions."""


def rooms(problem: str, lines: str = "//: needs not at(p)") -> str:
    """A file with places to go to, a problem, and lines about the action `go`."""
    return f"""%declare _STEP PLACE
//: type place
//: fact at(one place), seen(place), open(place)
{problem}
// Look round.
start: | go{{PLACE}}
// go: go to a place.
{lines}
//: makes at(p), seen(p)
//: tells seen(p) by "You see the {{p}}."
go{{p}}: "go to " p _STEP start
"""


MOVES = """%declare _STEP PLACE
//: type place
//: fact at(one place)
// Go.
start: | go{PLACE}
// go: go to a place.
//: needs not at(p)
//: makes at(p)
"""


CASES = [
    Case(
        "syntax",
        'start: "a" | (b\nb: "b"\n',
        (1, 14, None),
        None,
        None,
        'start: "a" | (b)\nb: "b"\n',
    ),
    Case(
        "syntax",
        'start: b\nb: "b" )\n',
        (2, 8, None),
        None,
        None,
        'start: b\nb: "b"\n',
    ),
    Case(
        "syntax",
        'start: "a\n',
        (1, 8, None),
        None,
        None,
        'start: "a"\n',
    ),
    Case(
        "refused",
        "start: /(a*)\\1/\n",
        (1, 8, None),
        None,
        None,
        "start: /a/\n",
    ),
    Case(
        "syntax",
        'start: "a"~3..1\n',
        (1, 11, None),
        None,
        None,
        'start: "a"~1..3\n',
    ),
    Case(
        "undefined-rule",
        "%import common.DIGITS\nstart: DIGITS\n",
        (1, 16, 22),
        "common.lark has no 'DIGITS'",
        "did you mean DIGIT?",
        "%import common.DIGIT\nstart: DIGIT\n",
    ),
    Case(
        "limit",
        'start: "a"~2000000000\n',
        (1, 11, None),
        None,
        None,
        'start: "a"~20\n',
    ),
    Case(
        "undefined-rule",
        'start: serch\nsearch: "s"\n',
        (1, 8, 13),
        "rule 'serch' is not defined",
        "did you mean search?",
        'start: search\nsearch: "s"\n',
    ),
    Case(
        "undefined-rule",
        'start: "a" OBJECT\n',
        (1, 12, 18),
        "terminal 'OBJECT' is not defined",
        "define it: `OBJECT: ...`; or, if its values are bound at run time, `%declare OBJECT`",
        '%declare OBJECT\nstart: "a" OBJECT\n',
    ),
    Case(
        "undefined-rule",
        'start: go\ngo: "go" _STEP [go]\n',
        (2, 10, 15),
        "terminal '_STEP' is not defined",
        "declare it: `%declare _STEP`",
        actions('go: "go" _STEP [go]'),
    ),
    Case(
        "undefined-rule",
        "start: item\n",
        (1, 8, 12),
        "rule 'item' is not defined",
        "define it: `item: ...`",
        'start: item\nitem: "i"\n',
    ),
    Case(
        "defined-twice",
        'start: a\na: "a"\na: "b"\n',
        (3, 1, 2),
        "rule 'a' is defined already, in line 2",
        "keep one, or write `%override` or `%extend` before the other",
        'start: a\na: "a"\n%extend a: "b"\n',
    ),
    Case(
        "defined-twice",
        '%import common.DIGIT\nstart: DIGIT\nDIGIT: "1"\n',
        (3, 1, 6),
        "terminal 'DIGIT' is defined already, by an import from common.lark",
        "keep one, or write `%override` or `%extend` before the other",
        '%import common.DIGIT\nstart: DIGIT\n%override DIGIT: "1"\n',
    ),
    Case(
        "wrong-arguments",
        'start: two{"a"}\ntwo{x, y}: x y\n',
        (1, 8, 11),
        "template 'two' takes 2, not 1",
        "its parameters are: x, y",
        'start: two{"a", "b"}\ntwo{x, y}: x y\n',
    ),
    Case(
        "wrong-arguments",
        "start: two\ntwo{x, y}: x y\n",
        (1, 8, 11),
        "template 'two' stands without its arguments",
        "`two{...}` with 2: x, y",
        'start: two{"a", "b"}\ntwo{x, y}: x y\n',
    ),
    Case(
        "wrong-arguments",
        'start: one{"a"}\none: "x"\n',
        (1, 8, 11),
        "rule 'one' is no template: it takes no arguments",
        "leave `{...}` out, or define it with parameters: `name{x}: ...`",
        'start: one\none: "x"\n',
    ),
    Case(
        "no-start",
        'begin: "a"\n',
        None,
        "there is no rule 'start'",
        "write `start: begin`, or check it with --start NAME",
        'begin: "a"\n',
        clean_options={"start": "begin"},
    ),
    Case(
        "unused-rule",
        'start: "a"\nb: "b"\n',
        (2, 1, 2),
        "rule 'b' can't be reached from 'start'",
        "use 'b' in a rule that 'start' leads to, or delete it",
        'start: "a" | b\nb: "b"\n',
    ),
    Case(
        "unused-rule",
        'start: "a"\nB: "b"\n',
        (2, 1, 2),
        "terminal 'B' can't be reached from 'start'",
        "use 'B' in a rule that 'start' leads to, or delete it",
        'start: "a" B\nB: "b"\n',
    ),
    Case(
        "unused-rule",
        '%import common.DIGIT\nstart: "a"\n',
        (1, 16, 21),
        "import 'DIGIT' can't be reached from 'start'",
        "use 'DIGIT' in a rule that 'start' leads to, or delete it",
        '%import common.DIGIT\nstart: "a" DIGIT\n',
    ),
    Case(
        "unused-rule",
        'start: "a"\nt{x}: x\n',
        (2, 1, 2),
        "rule 't' can't be reached from 'start'",
        "use 't' in a rule that 'start' leads to, or delete it",
        'start: t{"a"}\nt{x}: x\n',
    ),
    Case(
        "unused-slot",
        '%declare ROOM\nstart: "a"\n',
        (1, 10, 14),
        "slot ROOM is declared, but nothing uses it",
        "use it where its values belong, or take ROOM out of the %declare",
        '%declare ROOM\nstart: "a" ROOM\n',
    ),
    Case(
        "unused-parameter",
        'start: t{"a", "b"}\nt{x, y}: x\n',
        (2, 6, 7),
        "parameter 'y' of 't' is never used",
        "write y where its value belongs, or remove it here and in all calls of 't'",
        'start: t{"a", "b"}\nt{x, y}: x y\n',
    ),
    Case(
        "repeated-alternative",
        'start: a | "x" | a\na: "a"\n',
        (1, 18, 19),
        "the alternative a occurs twice in 'start'",
        "change it, or delete it",
        'start: a | "x" | a a\na: "a"\n',
    ),
    Case(
        "priority-without-effect",
        'start: a\na.2: "a"\n',
        (2, 3, 4),
        "the priority of 'a' has no effect here",
        "remove the dot and the number, unless lark also parses with this file",
        'start: a\na: "a"\n',
    ),
    Case(
        "never-finishes",
        actions('go: "go" _STEP go'),
        (5, 1, 3),
        "'go' can never be finished: go -> go",
        "let one of them end: an action without _STEP, or an optional rest, as in `_STEP [...]`",
        actions('go: "go" _STEP [go]'),
    ),
    Case(
        "never-finishes",
        'start: a | "x"\na: "(" b\nb: a ")"\n',
        (2, 1, 2),
        "'a' can never be finished: a -> b -> a",
        "give 'a' an alternative that doesn't lead back to it, or make the part that does optional",
        'start: a | "x"\na: "(" b\nb: ")"\n',
    ),
    Case(
        "never-finishes",
        'start: "a" start\n',
        (1, 1, 6),
        "'start' can never be finished: start -> start",
        "give 'start' an alternative that doesn't lead back to it, or make the part that does optional",
        'start: "a"\n',
    ),
    Case(
        "matches-nothing",
        'start: "a" | /[^\\s\\S]/\n',
        (1, 14, 23),
        "no text matches /[^\\s\\S]/",
        "correct the pattern: it requires a character that is in sets without a common one",
        'start: "a" | /[^\\s]/\n',
    ),
    Case(
        "only-empty",
        'start: "a" b\nb:\n',
        (2, 1, 2),
        "'b' only stands for the empty text",
        "write what it should read, or delete 'b' and its uses",
        'start: "a" b\nb: | "b"\n',
    ),
    Case(
        "no-actions",
        '%declare _STEP\nstart: "a" _STEP\n',
        None,
        "start is an action itself",
        "an action is a rule that writes text; `%declare _STEP`, end each action with it, and let start name those "
        "that may come first",
        actions('go: "go" _STEP'),
    ),
    Case(
        "unreachable-action",
        actions('go: "go" _STEP stop', 'look: "look" _STEP stop\n'),
        (8, 1, 5),
        "no path leads to the action 'look'",
        "let 'start' or another action name it after its _STEP, as in `_STEP (... | look)`",
        actions('go: "go" _STEP (look | stop)', '// look: look.\nlook: "look" _STEP stop\n'),
    ),
    Case(
        "missing-step",
        actions('go: "go" look', '// look: look.\nlook: "look" _STEP stop\n'),
        (5, 10, 14),
        "'go' continues with the action 'look' without a _STEP between them",
        "end 'go' first: `_STEP look`",
        actions('go: "go" _STEP look', '// look: look.\nlook: "look" _STEP stop\n'),
    ),
    Case(
        "ambiguous-actions",
        actions('go: "stop" _STEP stop'),
        (7, 1, 5),
        "at the start, 'go' and 'stop' can both be written `stop`",
        "word one of them differently, or join them into one rule",
        actions('go: "go" _STEP stop'),
    ),
    Case(
        "ambiguous-actions",
        actions("go: /[a-z]{1,9}\\./ _STEP stop", '%override stop: "me."\n'),
        (8, 11, 15),
        "at the start, 'go' and 'stop' can both be written `me.`",
        "word one of them differently, or join them into one rule",
        actions("go: /[a-z]{1,9}\\./ _STEP stop", '%override stop: "M."\n'),
    ),
    Case(
        "action-begins-another",
        actions('go: "stop it" _STEP stop'),
        (5, 1, 3),
        "at the start, `stop` is a whole 'stop', and 'go' begins with it",
        'end \'stop\' with another character, as in `"..." "." _STEP`, or word one of them differently',
        actions('go: "go" _STEP stop'),
    ),
    Case(
        "open-ended-action",
        actions('go: "go " /[a-z]{1,9}/ _STEP stop'),
        (5, 1, 3),
        "`go a` is a whole 'go', and so is `go aa`, which begins with it",
        'end \'go\' with a character that can\'t occur in it, as in `"[" ... "]"`',
        actions('go: "go [" /[a-z]{1,9}/ "]" _STEP stop'),
    ),
    Case(
        "open-ended-action",
        actions('go: "go " R _STEP stop', "%declare R\n"),
        (5, 1, 3),
        "`go desk 1` is a whole 'go', and so is `go desk 10`, which begins with it",
        'end \'go\' with a character that can\'t occur in it, as in `"[" ... "]"`',
        actions('go: "go " R _STEP stop', "%declare R\n"),
        {"values": {"R": ["desk 1", "desk 10"]}},
        clean_options={"values": {"R": ["desk 01", "desk 10"]}},
    ),
    Case(
        "no-definition-comment",
        actions('go: "go" _STEP stop', '%override start: go | look\nlook: "look" _STEP stop\n'),
        (9, 1, 5),
        "no comment above 'look' says what this action does",
        "write a line above it: `// look: what it does, and when to take it.`",
        actions('go: "go" _STEP stop'),
    ),
    Case(
        "unknown-slot",
        '%declare R\nstart: "a" R\n',
        None,
        "there is no slot S to bind",
        "`%declare S` and use it, or bind one of: R",
        '%declare R\nstart: "a" R\n',
        {"values": {"R": "r", "S": "s"}},
        clean_options={"values": {"R": "r"}},
    ),
    Case(
        "slot-without-values",
        "%declare R S\nstart: R S\n",
        (1, 12, 13),
        "slot S: it is used, but --bind gives it no values",
        "add --bind 'S=[\"...\"]'",
        "%declare R S\nstart: R S\n",
        {"values": {"R": "r"}},
        clean_options={"values": {"R": "r", "S": "s"}},
    ),
    Case(
        "slot-without-values",
        "%declare R\nstart: R\n",
        (1, 10, 11),
        "slot R: nothing to choose from",
        "an empty list admits no text; bind a mapping ({} for none) where that is meant",
        "%declare R\nstart: R\n",
        {"values": {"R": []}},
        clean_options={"values": {"R": "r"}},
    ),
    Case(
        "empty-slot",
        '%declare R\nstart: "a" [R]\n',
        (1, 10, 11),
        "slot R is bound to nothing",
        "nothing, if that is right; else bind its values",
        '%declare R\nstart: "a" [R]\n',
        {"values": {"R": {}}},
        clean_options={"values": {"R": "r"}},
    ),
    Case(
        "slot-without-key",
        '%declare R\nstart: "a" R\n',
        (2, 12, 13),
        "slot R has values by key, but nothing after it says which key",
        "pass it to a template, followed by its key: `rule{R, r}`; or bind R to one list",
        "%declare R S\nstart: t{R, S}\nt{x, y}: x y\n",
        {"values": {"R": {"desk": ["mug"]}}},
        clean_options={"values": {"R": {"desk": ["mug"]}, "S": "desk"}},
    ),
    Case(
        "endless-text",
        'start: "[" /[^\\]]+/ "]"\n',
        (1, 12, 20),
        "/[^\\]]+/ may match without end",
        "bound it: `/[^\\]]{1,200}/`",
        'start: "[" /[^\\]]{1,80}/ "]"\n',
    ),
    Case(
        "endless-text",
        'start: A\nA: "a"+\n',
        (2, 7, 8),
        '"a"+ may be written without end',
        'bound it: `"a"~1..200`',
        'start: A\nA: "a"~1..9\n',
    ),
    Case(
        "endless-text",
        'start: "x" SPACE*\nSPACE: " "\n',
        (1, 17, 18),
        "SPACE* may be written without end",
        "bound it: `SPACE~0..200`",
        'start: "x" SPACE?\nSPACE: " "\n',
    ),
    Case(
        "endless-text",
        '%import common.WS\n%ignore WS\nstart: "a" "b"\n',
        (2, 9, 11),
        "%ignore admits WS any number of times, between all tokens",
        'write the spaces where they belong, as in `"a" " "? "b"`, and remove the %ignore',
        'start: "a" " "? "b"\n',
    ),
    Case(
        "endless-text",
        "%import common.WORD\nstart: WORD\n",
        (1, 16, 20),
        "the imported WORD may match without end: WORD is LETTER+",
        "define a bounded one here, such as `WORD: /.../` with {1,200} in place of * and +",
        "%import common.LETTER\nstart: LETTER\n",
    ),
    Case(
        "endless-list",
        'start: item+\nitem: "i"\n',
        (1, 12, 13),
        "the list item+ has no maximum length",
        "if there is a natural maximum, state it: `item~1..20`",
        'start: item~1..9\nitem: "i"\n',
    ),
    Case(
        "endless-list",
        'start: "(" [start] ")"\n',
        (1, 1, 6),
        "'start' can contain itself any number of times within one text",
        'nothing, if that is meant; else write as many levels or items as are enough: `item ("," item)~0..9`',
        'start: "(" [inner] ")"\ninner: "()"\n',
    ),
    Case(
        "unwritable-text",
        'start: "a" | "b😀"\n',
        (1, 14, 18),
        "\"b😀\" can't be written: abc has no tokens for '😀' (bytes F0 9F 98 80)",
        "write it without '😀', or use a tokenizer with byte tokens",
        'start: "a" | "b"\n',
        {"tokens": "abc"},
    ),
    Case(
        "unwritable-text",
        'start: "a" | /[x-z]/\n',
        (1, 14, 21),
        "/[x-z]/ can't be written: abc has no tokens for 'x' (bytes 78)",
        "write it without 'x', or use a tokenizer with byte tokens",
        'start: "a" | /[a-z]/\n',
        {"tokens": "abc"},
    ),
    Case(
        "unwritable-text",
        "%declare R\nstart: R\n",
        (1, 10, 11),
        "'dab', a value of slot R, can't be written: abc has no tokens for 'd' (bytes 64)",
        "write it without 'd', or use a tokenizer with byte tokens",
        "%declare R\nstart: R\n",
        {"tokens": "abc", "values": {"R": ["a", "dab"]}},
        clean_options={"tokens": "abc", "values": {"R": ["cab"]}},
    ),
    Case(
        "no-definition-comment",
        actions('go: "go" _STEP stop', '%override start: go | look\n// look: look.\n\nlook: "look" _STEP stop\n'),
        (11, 1, 5),
        "no comment above 'look' says what this action does",
        "remove the empty line between the rule and the comment on line 9",
        actions('go: "go" _STEP stop'),
    ),
    Case(
        "slot-without-values",
        '%declare R S\nstart: "a" t{R, S}\nt{x, y}: x y\n',
        None,
        "with these bindings no text can be complete",
        "every text needs a slot that has no value; bind more values",
        '%declare R S\nstart: "a" t{R, S}\nt{x, y}: x y\n',
        {"values": {"R": {"desk": ["mug"]}, "S": ["shelf"]}},
        {"values": {"R": {"desk": ["mug"]}, "S": ["desk"]}},
    ),
    Case(
        "unwritable-text",
        'start: "a" TAIL\nTAIL: /[xb]c/\n',
        (1, 1, 6),
        "no text of 'start' can be written: no sequence of abc's tokens spells one",
        "word it so that tokens end where its parts do, or use a tokenizer with byte tokens",
        'start: "a" TAIL\nTAIL: /[xb]c/\n',
        {"tokens": ["a", "cb", "cc", "x"]},
        {"tokens": ["a", "bc"]},
    ),
    Case(
        "unreachable-action",
        actions(
            'go{x}: "go" _STEP stop', '%override start: go{look} | stop\n// look: look.\nlook: "look" _STEP stop\n'
        ),
        (10, 1, 5),
        "no path leads to the action 'look', though it is named",
        "let 'start' or another action name it after its _STEP, as in `_STEP (... | look)`",
        actions('go{x}: "go" _STEP x', '%override start: go{look} | stop\n// look: look.\nlook: "look" _STEP stop\n'),
    ),
    Case(
        "misplaced-step",
        actions('go: "go" _STEP _STEP stop'),
        (5, 16, 21),
        "_STEP occurs twice: after the first, an empty action would follow",
        "remove one of them",
        actions('go: "go" _STEP stop'),
    ),
    Case(
        "misplaced-step",
        actions('go: _STEP "go" stop').replace("go | stop", "go"),
        (5, 5, 10),
        "_STEP comes before the action's text, but should end it",
        'write `"go" _STEP stop`',
        actions('go: "go" _STEP stop').replace("go | stop", "go"),
    ),
    Case(
        "misplaced-step",
        actions('go: "go" _STEP go | stop').replace("go | stop\n", "go\n", 1),
        (5, 21, 25),
        "'stop' is an alternative to the whole action here, not to what comes after _STEP",
        "put what may follow in brackets: `_STEP (go | stop)`",
        actions('go: "go" _STEP (go | stop)').replace("go | stop\n", "go\n", 1),
    ),
    Case(
        "misplaced-step",
        actions('go: "go" -> stop'),
        (5, 10, 12),
        "`-> stop` only names the alternative, as in lark; 'stop' doesn't follow",
        "write `_STEP stop`",
        actions('go: "go" _STEP stop'),
    ),
    Case(
        "no-space",
        actions('go: "go to" X _STEP stop', "%declare X\n"),
        (5, 5, 12),
        'there is no space between "go to" and X',
        'write "go to "',
        actions('go: "go to " X _STEP stop', "%declare X\n"),
    ),
    Case(
        "no-space",
        actions('go: "put " X "away" _STEP stop', "%declare X\n"),
        (5, 14, 20),
        'there is no space between X and "away"',
        'write " away"',
        actions('go: "put " X " away" _STEP stop', "%declare X\n"),
    ),
    Case(
        "edge-space",
        actions('go: " go" _STEP stop'),
        (5, 5, 10),
        "this action begins with white space",
        'write "go"',
        actions('go: "go" _STEP stop'),
    ),
    Case(
        "edge-space",
        actions('go: "go\\n" _STEP stop'),
        (5, 5, 11),
        "this action ends with white space",
        'write "go"',
        actions('go: "go" _STEP stop'),
    ),
    Case(
        "swapped-arguments",
        '%declare ITEM PLACE\nstart: pick{PLACE, ITEM}\npick{i, p}: i " from " p\n',
        (2, 8, 12),
        "'pick' takes {i, p}, here it is given {PLACE, ITEM}",
        "write `pick{ITEM, PLACE}`; if it is right as it is, rename the parameters",
        '%declare ITEM PLACE\nstart: pick{ITEM, PLACE}\npick{i, p}: i " from " p\n',
    ),
    Case(
        "slot-for-parameter",
        '%declare _STEP X\n// Do it.\nstart: swap{X}\n// swap: swap it.\nswap{x}: "swap " x " " X _STEP [start]\n',
        (5, 24, 25),
        "X may have another value here than 'x'",
        "write x; or, if another value is meant, `another{X, x}`",
        '%declare _STEP X\n// Do it.\nstart: swap{X}\n// swap: swap it.\nswap{x}: "swap " x " " x _STEP [start]\n',
    ),
    Case(
        "other-comment",
        actions('go: "go" _STEP stop').replace("// go: walk on.", "// stop: walk on."),
        (5, 1, 3),
        "the comment above 'go' begins with 'stop:', another action",
        "write `// go: ...`, or put it above 'stop'",
        actions('go: "go" _STEP stop'),
    ),
    Case(
        "undefined-rule",
        "%declare _STEP X\n// Do it.\nstart: swap{X}\n// swap: swap it.\n"
        'swap{x}: "swap " x " " another{X, x} _STEP [start]\n',
        (5, 24, 31),
        "template 'another' is not defined",
        "it is a relation; import it: `%import relations.another`",
        "%declare _STEP X\n%import relations.another\n// Do it.\nstart: swap{X}\n// swap: swap it.\n"
        'swap{x}: "swap " x " " another{X, x} _STEP [start]\n',
    ),
    Case(
        "undefined-rule",
        "%declare AMOUNT\nstart: AMOUNT amount\n",
        (2, 15, 21),
        "rule 'amount' is not defined",
        "did you mean AMOUNT?",
        "%declare AMOUNT\nstart: AMOUNT AMOUNT\n",
    ),
    Case(
        "undefined-rule",
        'start: a or b\na: "a"\nb: "b"\n',
        (1, 10, 12),
        "rule 'or' is not defined",
        "alternatives are written `a | b`",
        'start: a | b\na: "a"\nb: "b"\n',
    ),
    Case(
        "refused",
        "%import relation.another\n%declare X\nstart: t{X}\nt{x}: x another{X, x}\n",
        (1, 9, 17),
        None,
        "did you mean relations?",
        "%import relations.another\n%declare X\nstart: t{X}\nt{x}: x another{X, x}\n",
    ),
    Case(
        "syntax",
        '%declare X = "a"\nstart: X\n',
        (1, 12, None),
        "unexpected `=`",
        "a rule is written `name: ...`, a terminal `NAME: ...`; a %declare has names alone",
        'start: X\nX: "a"\n',
    ),
    Case(
        "world",
        world("//: needs light"),
        (6, 11, 16),
        "no fact `light`",
        "did you mean lit?",
        world("//: needs lit\n//: init lit"),
    ),
    Case(
        "unknown-tool",
        policy("//: message speak"),
        (3, 13, 18),
        "the policy names 'speak', which is not a tool with a rule",
        "there are: list, say",
        policy("//: message say"),
    ),
    Case(
        "unknown-name",
        policy("//: let known() = seem != []"),
        (3, 19, 23),
        "the function known looks at 'seem', which nothing tells",
        "did you mean seen?",
        policy("//: let known() = seen != []"),
    ),
    Case(
        "never-true",
        world("//: needs lit\n//: makes not lit\n//: goal not lit"),
        (9, 1, 3),
        "go needs lit, which can never hold",
        "say what makes it true: `//: makes lit(...)`, `//: init`, or `//: tells`",
        world("//: needs lit\n//: makes not lit\n//: goal not lit\n//: init lit"),
    ),
    Case(
        "fact-without-use",
        world("//: makes lit"),
        (2, 10, 13),
        "lit is changed, but nothing asks for it, and no answer tells it",
        "remove it, or use it in a `needs`, a `goal` or the condition of a `tells`",
        world("//: needs not lit\n//: makes lit"),
    ),
    Case(
        "never-told",
        world("//: needs lit\n//: maybe lit"),
        (7, 11, 14),
        "lit is unknown, and no answer tells it",
        'say which answer tells it: `//: tells ... by "..."`; or remove the `maybe` if it is known',
        world('//: needs lit\n//: maybe lit\n//: tells lit by "It is lit."'),
    ),
    Case(
        "argument-not-written",
        MOVES + 'go{p}: "go" _STEP start\n',
        (9, 1, 3),
        "the text of go doesn't say which `p` it is about",
        "write the parameter in the rule, or make a condition say which one it is",
        MOVES + 'go{p}: "go to " p _STEP start\n',
    ),
    Case(
        "out-of-reach",
        rooms(
            "//: object hall, cellar: place\n//: init at(hall), open(hall)\n//: goal at(cellar)",
            "//: needs not at(p), open(p)",
        ),
        (6, 10, 12),
        "the goal can't be reached: nothing makes open cellar true, which go needs for at cellar",
        "add the fact to those at the start, let an action make it true, or ask for another goal",
        rooms(
            "//: object hall, cellar: place\n//: init at(hall), open(cellar)\n//: goal at(cellar)",
            "//: needs not at(p), open(p)",
        ),
    ),
    Case(
        "out-of-reach",
        rooms('//: object hall, attic: place\n//: init at(hall)\n//: goal "go to {P}": at(P), open(P)'),
        (6, 10, 21),
        'the goal "go to {P}", whatever it names, can\'t be reached: nothing makes open hall true',
        "add the fact to those at the start, let an action make it true, or ask for another goal",
        rooms('//: object hall, attic: place\n//: init at(hall), open(attic)\n//: goal "go to {P}": at(P), open(P)'),
    ),
    Case(
        "out-of-reach",
        rooms(ROUND).replace("_STEP start", "_STEP"),
        (6, 10, 14),
        "the goal can't be reached: in whatever order the actions are done, none leads to it",
        "let other actions follow those that end a path or spoil what it needs, or ask for another goal",
        rooms(ROUND),
    ),
    Case(
        "slot-without-type",
        rooms(ROUND).replace("PLACE", "ROOM"),
        (1, 16, 20),
        "the slot ROOM is named after no type",
        "name it after the type of what may stand there (there are: PLACE), or declare `//: type room`",
        rooms(ROUND),
    ),
    Case(
        "hole-without-value",
        rooms(ROUND, '//: needs not at(p)\n//: tells open(p) by "The {place} is open."'),
        (11, 22, 44),
        "nothing says what {place} is in the answer to go",
        "name a parameter of the action, or a variable of what is told: p",
        rooms(ROUND, '//: needs not at(p)\n//: tells open(p) by "The {p} is open."'),
    ),
    Case(
        "comment-like-line",
        rooms(ROUND, "// needs not at(p)"),
        (10, 1, 16),
        "this comment reads like a `//:` line",
        "if it is meant as one, begin it with `//:`; else word it differently",
        rooms(ROUND, "// One needs to be at another place."),
    ),
    Case(
        "comment-like-line",
        rooms(ROUND).replace("//: init", "// : init"),
        (5, 1, 10),
        "this comment reads like a `//:` line",
        "if it is meant as one, begin it with `//:`; else word it differently",
        rooms(ROUND),
    ),
]

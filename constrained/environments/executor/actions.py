"""The grounder's actions: their grammars, and a parser of its turns made from the same files.

An action space is a `.lark` file of `grammars/lumos/`: action knowledge whose slots hold the results so far, by what
they can be used for. lark parses a turn with the same file, in which each slot stands for all its possible values, so
masks and executor accept the same language.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from lark import Lark, Token, Tree, UnexpectedInput

from constrained.automaton import Grammar
from constrained.errors import ActionError, ConstrainedError
from constrained.grammar import STEP, read_source
from constrained.grammar.source import SHIPPED
from constrained.knowledge import ActionKnowledge, Knowledge

ParseTree: TypeAlias = Tree[Token]

SPACES = ("maths", "qa", "web", "webshop")

MAX_TURN = 8_000
"""Most characters of one turn: in the paper a grounder's longest answer has 1,024 tokens."""

MAX_DEPTH = 300
"""Greatest depth of an action's tree; a pair of brackets in a formula takes five nodes."""

_NUMBER = "/[1-9][0-9]*/"
_SLOTS = {  # patterns of the slots whose values aren't numbers of results
    STEP: '" "',  # between two actions of a turn
    "UNKNOWN": "/[a-z][a-z0-9_]*(?![a-z0-9_(])/",
    "BUTTON": r"/(?!R([1-9][0-9]*\)|$))([^();\n]|\([^();\n]*\))+/",
}


@dataclass(frozen=True)
class ToolAction:
    """One action of a turn."""

    kind: str  # the rule that derives the action: "calculator", "qa", ...
    results: tuple[int, ...]  # numbers of the results that it writes
    tree: ParseTree  # the arguments, parsed by the rules of the space's file
    text: str  # the action as written


@cache
def action_space(space: str) -> Knowledge:
    """The knowledge of a space, slots unbound. Raises ConstrainedError: there is no such space."""
    if space not in SPACES:
        raise ConstrainedError(f"no action space {space!r}", f"use one of {', '.join(SPACES)}")
    return ActionKnowledge.from_lark(f"lumos/{space}")


def action_grammar(action: Grammar, first: bool) -> Grammar:
    """The grammar of the next action of a turn, with a space before it unless it is the first.

    The text ends with ``;`` if the turn continues.
    """
    return _format("grounder").bind(BEFORE="" if first else " ", ACTION=action)


def further_action(action: Grammar) -> Grammar:
    """The grammar of one more action or nothing, for actions that don't end with ``;``, unlike `SPACES`."""
    return _format("further").bind(BEFORE="; ", ACTION=action)


@cache
def _format(name: str) -> Grammar:
    return Grammar.from_lark(f"lumos/{name}")


@cache
def _reader(space: str) -> Lark:
    """A lark parser of whole turns, made from the space's file with patterns for its slots."""
    source = read_source(f"lumos/{space}")
    values = {**_SLOTS, **({"PAGE": "/Env|R[1-9][0-9]*/"} if space == "web" else {})}
    slots = "".join(f"%override {name}: {values.get(name, _NUMBER)}\n" for name in action_space(space).grammar.slots)
    return Lark(
        f"{source.text}\n{slots}",
        parser="lalr",
        import_paths=[str(SHIPPED)],
        source_path=str(source.path),
        maybe_placeholders=False,
        propagate_positions=True,
    )


def read_turn(space: str, text: str) -> list[ToolAction]:
    """The actions of one turn of the grounder, such as ``R1 = Calculator(2 - 0.5); R2 = Calculator(R1 / 0.25)``.

    Raises ActionError: the turn can't be parsed, or is too long; the message says where it fails.
    """
    if len(text) > MAX_TURN:
        raise ActionError(f"a turn of {len(text):,} characters (the limit is {MAX_TURN:,})", "write fewer actions")
    action_space(space)  # raises if there is no such space
    try:
        # The slot `_STEP` stands for the space after each action, so the last one needs a space, too.
        tree = _reader(space).parse(f"{text} ")
    except UnexpectedInput as error:
        found = error.pos_in_stream
        offset = found if isinstance(found, int) and found >= 0 else len(text)
        before, after = text[max(0, offset - 60) : offset], text[offset : offset + 30]
        raise ActionError(
            f"no turn of {space} actions: it fails at character {offset + 1}, after {before!r}, at {after!r}",
            "write actions of the action space, with ';' between them",
        ) from None
    actions = [_action(action, end, text) for action, end in _nested_actions(tree)]
    for action in actions:
        if not _shallow(action.tree):
            raise ActionError(f"{action.text[:60]}...: brackets are nested too deeply", "use more, simpler actions")
    return actions


def _shallow(tree: ParseTree) -> bool:
    """Whether no node lies deeper than MAX_DEPTH, so that recursive functions can walk the tree."""
    # Level by level, without recursion: the tree may be too deep for that.
    level = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in subtrees(node)]
    return not level


def _nested_actions(tree: ParseTree) -> Iterator[tuple[ParseTree, int]]:
    """Yield each action and the offset of its end. The grammar nests actions: the last part of each is the next."""
    start = tree
    while True:
        (action,) = subtrees(start)
        *_, then = subtrees(action)
        follows = bool(then.children)
        arguments = Tree(rule_of(action), action.children[:-1], action.meta)
        yield arguments, then.meta.start_pos if follows else action.meta.end_pos
        if not follows:
            return
        (start,) = subtrees(then)


def _action(tree: ParseTree, end: int, text: str) -> ToolAction:
    results, *arguments = tree.children
    written = text[tree.meta.start_pos : end].rstrip(" ")
    return ToolAction(tree.data, tuple(int(token) for token in tokens(results)), Tree(tree.data, arguments), written)


def subtrees(tree: ParseTree) -> list[ParseTree]:
    """The children of a node that aren't tokens."""
    return [child for child in tree.children if isinstance(child, Tree)]


def rule_of(tree: ParseTree) -> str:
    """The rule that a tree is derived from, without the file that it was imported from."""
    return tree.data.rpartition("__")[2]


def terminal_of(token: Token) -> str:
    """The terminal of a token, without the file that it was imported from."""
    return token.type.rpartition("__")[2]


def tokens(part: ParseTree | Token) -> Iterator[Token]:
    """Yield the tokens of a part, in order."""
    if isinstance(part, Tree):
        for child in part.children:
            yield from tokens(child)
    else:
        yield part


def slots(space: str, actions: Sequence[ToolAction], *, buttons: Sequence[str] = ()) -> dict[str, list[str]]:
    """The values of a space's slots after `actions`: the results, by what each can be used for.

    Parameters
    ----------
    actions : sequence of ToolAction
        All actions so far, with those of earlier turns and without those that failed.
    buttons : sequence of str
        For WebShop: what can be clicked on the current page.

    Returns
    -------
    dict
        For `Knowledge.bind_view`; slots that are left out have no values now.
    """
    written = [number for action in actions for number in action.results]
    after = max(written, default=0) + 1
    values = {slot: [str(after + i)] for i, slot in enumerate(("N", "N2", "N3", "N4"))}
    for action in actions:
        for slot in _kinds(space, action):
            values.setdefault(slot, []).extend(map(str, action.results))
    values["UNKNOWN"] = [str(name) for action in actions if action.kind == "define" for name in names(action)]
    if space == "web":
        values["PAGE"] = [f"R{written[-1]}" if written else "Env"]
    if space == "webshop":
        values["BUTTON"] = list(buttons)
    return {slot: texts for slot, texts in values.items() if texts}


def names(action: ToolAction) -> list[Token]:
    """The unknowns that an action defines."""
    return [token for token in tokens(action.tree) if terminal_of(token) == "NAME"]


def relation_sign(action: ToolAction) -> str | None:
    """The sign of a comparison, an equation or an inequality; None for other actions."""
    return next((str(token).strip() for token in action.tree.children if isinstance(token, Token)), None)


def _kinds(space: str, action: ToolAction) -> tuple[str, ...]:
    """The slots that the results of an action are values of."""
    if action.kind == "set_equation":
        return ("EQUATION",) if relation_sign(action) == "=" else ("INEQUALITY",)
    if action.kind == "calculator" and relation_sign(action):
        return ("RESULT",)
    return _USES[space].get(action.kind, ("RESULT",))


_USES: dict[str, dict[str, tuple[str, ...]]] = {
    "maths": {
        "calculator": ("RESULT", "VALUE"),
        "count": ("RESULT", "VALUE"),
        "define": ("RESULT", "VALUE"),
        "code": ("RESULT", "VALUE"),
        "solve_equation": ("RESULT", "VALUE", "LISTED"),
        "solve_inequality": ("RESULT", "LISTED"),
    },
    "qa": {
        "calculator": ("RESULT", "VALUE"),
        "qa": ("RESULT", "VALUE"),
        "code": ("RESULT", "VALUE"),
        "knowledge_query": ("RESULT", "PAGE"),
    },
    "web": {},
    "webshop": {
        "search": ("RESULT", "FOUND"),
        "click": ("RESULT", "OPENED"),
        "feature_retrieve": ("RESULT", "FEATURE"),
        "pick": ("RESULT", "ITEM"),
    },
}

"""Tokens that look around, replaced in a grammar's rules by what they read; see `token_contexts`."""

from __future__ import annotations

from constrained.errors import GrammarError, LimitError
from constrained.grammar import nodes
from constrained.grammar.alternating_automaton import Steps
from constrained.grammar.lookaround import LookingToken
from constrained.grammar.nodes import Call, Node, Rule, Slot
from constrained.grammar.token_contexts import Contexts, Token
from constrained.grammar.traverse import rebuild
from constrained.limits import Limits


def resolve_tokens(rules: dict[str, Rule], start: Node, limits: Limits) -> tuple[dict[str, Rule], Node, list[Token]]:
    """Replace every :class:`Token` by what it reads where it stands in a text of `start`.

    Returns
    -------
    rules : dict of str to Rule
    start : Node
    asking : list of Token
        Those that ask something of the text around them, or that read nothing at all.

    Raises
    ------
    GrammarError
        A slot's values would decide whether a token is read.
    LimitError
    """
    tokens = [token for rule in rules.values() for token in rule.find(Token)]
    if not tokens:
        return rules, start, []
    steps = Steps(limits)
    looking: dict[Node, LookingToken] = {}
    made: dict[Node, Node] = {}
    extra: dict[str, Rule] = {}
    asking: list[Token] = []
    for token in tokens:
        if token.node not in looking:
            _check_parts(token)
            found = looking[token.node] = _looking(token, steps)
            if found.sees_beyond or not any(found.ends):
                asking.append(token)
            if not found.sees_beyond:
                made[token.node], more = found.texts(f"{token.name}${len(extra)}")
                extra.update(more)

    def leaf(node: Node) -> Node:
        return made.get(node.node, node) if isinstance(node, Token) else node

    out = {**{n: Rule(n, rebuild(r.body, leaf), r.params, r.line) for n, r in rules.items()}, **extra}
    if len(made) < len(looking):
        contexts = Contexts(out, [(t, looking[t.node]) for t in asking if t.node not in made], steps)
        try:
            start = contexts.whole(start)
            size = sum(len(rule.nodes) for rule in contexts.written.values())
            what = f"a grammar of {size:,} nodes: its rules are written once for each thing that may follow this token"
            limits.check("nodes", size, what, r"end the token with \b, if it is a word")
        except LimitError as error:
            raise error.at(asking[0].error("")) from None
        out = contexts.written
    return out, start, asking


def _looking(token: Token, steps: Steps) -> LookingToken:
    try:
        return LookingToken(token.node, steps)
    except LimitError as error:
        raise error.at(token.error("")) from None
    except GrammarError as error:
        raise token.error(error.message, hint=error.hint) from None


def _check_parts(token: Token) -> None:
    """Raise GrammarError if some of the token's texts are not known here."""
    for part in nodes.walk(token.node):
        if isinstance(part, Slot):
            raise token.error(
                "a slot is part of a terminal that looks around", hint="use the slot in a rule, beside the terminal"
            )
        if isinstance(part, Call):
            raise token.error(
                "a terminal that looks around has too many pieces", hint="use its larger parts in a rule, beside it"
            )

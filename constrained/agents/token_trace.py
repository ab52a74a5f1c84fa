"""The trace of an answer: every token beside what the model would have written and may not, and the rule that says so.

For people to look at (`constrained.pages`); nothing that is played depends on it. It is plain data, and goes into the
record of a run with the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from constrained.agents.episode import MAX_ACTIONS, Episode
from constrained.agents.messages import Ask
from constrained.agents.parse import readings
from constrained.automaton import Grammar
from constrained.automaton.explain import expected
from constrained.errors import KnowledgeError
from constrained.knowledge import ActionKnowledge
from constrained.knowledge.explain import Explanation, explain_path

if TYPE_CHECKING:  # torch takes seconds to import: only who plays pays for it
    from constrained.automaton import Vocabulary
    from constrained.decoding import Generation

ACTION = "ACTION"
"""The slot of step formats that holds the actions."""

WORTH_A_REASON = 0.01
"""Probability of a forbidden token from which on it is said why it is forbidden: to find out takes a millisecond."""

SOME = 60
"""Actions that are named, of those that were open."""

LEFT_OUT = {
    "done before": "the rules admit it, but it was done before in this very situation",
    "of no use": "the rules admit it, but what is remembered says that it is of no use now",
    "too long": "the rules admit it, but too few tokens are left to end after it",
}
"""Why actions are left out that the rules admit."""


def picture(knowledge: ActionKnowledge) -> dict[str, Any]:
    """The knowledge as pages show it, whatever becomes of its file: its graph as SVG, its text, its rules."""
    return {
        "knowledge": knowledge.name,
        "svg": knowledge.to_svg(),
        "text": knowledge.to_text(),
        "rules": {name: list(after) for name, after in knowledge.rules.items()},
        "definitions": knowledge.actions,
        "may_end": sorted(knowledge.graph.may_end),
    }


def trace_of(written: Generation, ask: Ask, episode: Episode) -> dict[str, Any]:
    """What was open to the model when it wrote an answer, and its tokens.

    Parameters
    ----------
    written : Generation
        With what each mask excluded (`Request.show_forbidden`).
    ask : Ask
    episode : Episode
        Where it was when it asked.

    Returns
    -------
    dict
        "prompt"; "begun", the part of the text that the prompt ends with; "place", the action that the path came
        through last; "open", the names of the actions that the knowledge admitted; "choices", how many concrete ones
        the model could write (None: too many to tell, or no action was asked for; masks off: how many were right),
        "some" of them; "left_out", how many the rules admit that it could not; "tokens".
    """
    place = episode.knowledge
    action = None if ask.grammar is None else ask.grammar.grammar.bindings.get(ACTION)
    action = action if isinstance(action, Grammar) else None
    admitted = _texts(_next_action(place))
    choices = admitted if ask.grammar is None else _texts(action)
    left_out = sorted(set(admitted or ()) - set(choices or ())) if choices else []
    asked = _Asked(ask, episode, action, left_out, written.text)
    return {
        "prompt": ask.prompt,
        "begun": ask.begun,
        "place": place.last,
        "open": place.may_follow,
        "choices": None if choices is None else len(choices),
        "some": (choices or [])[:SOME],
        "left_out": len(left_out),
        "tokens": list(_tokens(written, asked, episode.loaded(ask.role).vocabulary)),
    }


def _tokens(written: Generation, asked: _Asked, vocabulary: Vocabulary):
    so_far = asked.ask.begun.encode()
    for token in (*written.tokens, *filter(None, (written.end,))):
        data = _shown(token.id, vocabulary)
        data |= {"p": _short(token.probability), "pruned": _short(token.pruned_mass)}
        if token.forced:
            data["forced"] = True
        if token.forbidden is not None:
            other, probability = token.forbidden
            data["forbidden"] = {**_shown(other, vocabulary), "p": _short(probability)}
            if probability >= WORTH_A_REASON:
                data["forbidden"] |= asked.why_not(so_far, _bytes(other, vocabulary), other in vocabulary.eos_token_ids)
        yield data
        so_far += vocabulary.tokens[token.id]


def _bytes(token: int, vocabulary: Vocabulary) -> bytes:
    """A token's text; empty for an id that models have columns for, but tokenizers no token."""
    return vocabulary.tokens[token] if token < len(vocabulary.tokens) else b""


def _shown(token: int, vocabulary: Vocabulary) -> dict[str, Any]:
    """A token's text, that of a part of a character as its bytes; whether it ends the text."""
    text = _bytes(token, vocabulary).decode("utf-8", "backslashreplace") or f"<token {token}>"
    return {"text": text, "end": True} if token in vocabulary.eos_token_ids else {"text": text}


def _short(probability: float) -> float:
    """Enough digits to show and to sort by."""
    return float(f"{probability:.4g}")


@dataclass(frozen=True)
class _Asked:
    """An answered question, to say why tokens may not come in its answer.

    Attributes
    ----------
    ask : Ask
    episode : Episode
    action : Grammar or None
        What the answer's action may be.
    left_out : list of str
        Actions that the rules admit, but not `action`.
    answer : str
    """

    ask: Ask
    episode: Episode
    action: Grammar | None
    left_out: list[str]
    answer: str

    def why_not(self, so_far: bytes, token: bytes, ends: bool) -> dict[str, str]:
        """Why `token` can't come after `so_far`: the "kind" of reason, and the "reason".

        Where a rule says so, also the "rule", "at" which place it is written, and that "line".
        """
        place, begin = self.episode.knowledge, self._begin
        if begin is None or len(so_far) < begin or place.source_map is None:
            return {"kind": "form", "reason": f"expected {self._expected(so_far)}"}
        text = so_far[begin:] if ends else so_far[begin:] + token
        found = explain_path(place, "", text.decode("utf-8", "ignore"))
        if ends:
            return {"kind": "unfinished", "reason": "the action is not whole yet", **_rule(found)}
        if found.ok:
            kind = self._left_out_as(found.text)
            return {"kind": kind, "reason": LEFT_OUT[kind]}
        return {"kind": found.verdict, "reason": found.reason, **_rule(found)}

    @cached_property
    def _begin(self) -> int | None:
        """Where the action begins, in bytes."""
        if self.action is None:
            return None
        whole = self.ask.begun + self.answer
        parts = next(readings(self.ask.grammar.grammar, whole), ())
        return next((len(whole[: part.start].encode()) for part in parts if part.name == ACTION), None)

    def _expected(self, so_far: bytes) -> str:
        state = self.ask.grammar.automaton.start.read(so_far)
        return state and expected(state) or "its end"

    def _left_out_as(self, text: str) -> str:
        """Why what the rules admit is not open: one of `LEFT_OUT`."""
        meant = [action for action in self.left_out if action.startswith(text)]
        if not meant:
            return "too long"
        memory = self.episode.memory
        done = self.episode.tried.get(memory.situation(), set()) if memory is not None else set()
        return "done before" if done.issuperset(meant) else "of no use"


def _rule(found: Explanation) -> dict[str, str]:
    """The rule that an explanation names, and where it is written."""
    spot = found.said_by or next((item.spot for item in found.expected if item.spot is not None), None)
    if spot is None or not spot.line:
        return {}
    return {"rule": spot.rule or "", "at": f"{spot.source.name}:{spot.line}:{spot.column}", "line": spot.context}


def _next_action(place: ActionKnowledge) -> Grammar | None:
    try:
        return place.next_action()
    except KnowledgeError:  # nothing may come any more
        return None


def _texts(action: Grammar | None) -> list[str] | None:
    texts = action and action.automaton.start.texts(MAX_ACTIONS)
    return None if texts is None else [text.decode() for text in texts]

"""The trace of an answer: each token, the likeliest token that the mask excluded there, and the rule that excludes it.

Traces are plain data, recorded in the run's file with the answer and shown by `constrained.pages`.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from constrained.agents.episode import Episode
from constrained.automaton import CompiledGrammar, Grammar, Vocabulary
from constrained.automaton.explain import expected
from constrained.automaton.parse import parses
from constrained.decoding.request import Generation, Request
from constrained.environments.base import WithForm
from constrained.errors import KnowledgeError
from constrained.grammar.lark_outline import slot_comments
from constrained.knowledge import Knowledge
from constrained.knowledge.explain import Explanation, explain_path
from constrained.knowledge.path_state import action_bytes
from constrained.knowledge.unordered import longest_prefix, start_state

ACTION = "ACTION"
"""The slot of step formats that holds the actions."""

WORTH_A_REASON = 0.01
"""Least probability of a forbidden token that is explained: an explanation takes a millisecond."""

SOME = 60
"""Most admitted actions that are named."""

NOT_NOW = "not now"
"""The kind of reason of an action that exists, but whose conditions don't hold at this point."""

LEFT_OUT = {
    "done before": "the rules admit it, but it was done before in this very situation",
    "of no use": "the rules admit it, but what is remembered says that it is of no use now",
    "not listed": "the rules admit it, but the environment doesn't list it among what can be done now",
    "too long": "the rules admit it, but too few tokens are left to end after it",
}
"""Why the masks leave out actions that the rules admit."""


def knowledge_snapshot(knowledge: Knowledge) -> dict[str, Any]:
    """The knowledge as pages show it, independent of its file: its graph as SVG, its text, its rules."""
    return {
        "knowledge": knowledge.name,
        "svg": knowledge.to_svg(),
        "text": knowledge.to_text(),
        "rules": {name: list(after) for name, after in knowledge.rules.items()},
        "definitions": knowledge.actions,
        "may_end": sorted(knowledge.graph.may_end),
    }


def trace_of(generation: Generation, request: Request, episode: Episode) -> dict[str, Any]:
    """The trace of an answer: its tokens, and what the model could have written.

    Parameters
    ----------
    generation : Generation
        With the tokens that each mask excluded (`Request.show_forbidden`).
    episode : Episode
        In the state in which it made the request.

    Returns
    -------
    dict
        "prompt"; "begun", the part of the text that the prompt ends with; "place", the last action on the path; "open",
        the names of the actions that the knowledge admits; "choices", the number of concrete actions that the model
        could write (None: too many to count, or no action was requested; with masks off: those that the rules admit),
        and "some" of them; "left_out", the number of further actions that the rules admit; "tokens".
    """
    knowledge, grammar = episode.space.knowledge, request.grammar
    assert not isinstance(grammar, Grammar), "an episode's requests have compiled grammars"
    action = None if grammar is None else grammar.grammar.bindings.get(ACTION)
    action = action if isinstance(action, Grammar) else None
    admitted = _admitted(knowledge)
    # Without masks the model had all that the rules admit; with masks, what its grammar's slot held.
    choices = admitted if grammar is None else action.texts() if action else None
    left_out = sorted(set(admitted or ()) - set(choices or ())) if choices else []
    answered = _Answered(request.begun, generation.text, grammar, episode, action, left_out)
    return {
        "prompt": request.prompt,
        "begun": request.begun,
        "place": knowledge.last,
        "open": knowledge.may_follow,
        "choices": None if choices is None else len(choices),
        "some": (choices or [])[:SOME],
        "left_out": len(left_out),
        "tokens": list(_tokens(generation, answered, episode.writer.model(request.role).vocabulary)),
    }


def _tokens(generation: Generation, answered: _Answered, vocabulary: Vocabulary) -> Iterator[dict[str, Any]]:
    so_far = answered.begun.encode()
    for token in (*generation.tokens, *filter(None, (generation.end,))):
        data = _shown(token.id, vocabulary)
        data |= {"p": _short(token.probability), "pruned": _short(token.pruned_mass)}
        if token.forced:
            data["forced"] = True
        if token.forbidden is not None:
            excluded, probability = token.forbidden
            data["forbidden"] = {**_shown(excluded, vocabulary), "p": _short(probability)}
            if probability >= WORTH_A_REASON:
                ends = excluded in vocabulary.eos_token_ids
                data["forbidden"] |= answered.why_not(so_far, _bytes(excluded, vocabulary), ends)
        yield data
        so_far += vocabulary.tokens[token.id]


def _bytes(token: int, vocabulary: Vocabulary) -> bytes:
    """A token's bytes; empty for a padding id that the model has but its tokenizer doesn't."""
    return vocabulary.tokens[token] if token < len(vocabulary.tokens) else b""


def _shown(token: int, vocabulary: Vocabulary) -> dict[str, Any]:
    """A token's text (its bytes, if it is part of a character), and whether it ends the text."""
    text = _bytes(token, vocabulary).decode("utf-8", "backslashreplace") or f"<token {token}>"
    return {"text": text, "end": True} if token in vocabulary.eos_token_ids else {"text": text}


def _short(probability: float) -> float:
    """Round a probability to the digits that pages show and sort by."""
    return float(f"{probability:.4g}")


@dataclass(frozen=True)
class _Answered:
    """An answered request, with what is needed to explain why a token was excluded from its answer."""

    begun: str  # the part of the text that is in the prompt
    text: str  # the answer
    grammar: CompiledGrammar | None
    episode: Episode
    action: Grammar | None  # the admitted actions, if an action was requested
    left_out: list[str]  # actions that the rules admit and `action` doesn't

    def why_not(self, so_far: bytes, token: bytes, ends: bool) -> dict[str, str]:
        """Why `token` can't come after `so_far`: the "kind" of reason, and the "reason".

        If the reason is a rule, also the "rule", the source position "at" which it is written, and that "line".
        """
        knowledge, begin = self.episode.space.knowledge, self._action_begin
        if begin is None or len(so_far) < begin or knowledge.source_map is None:
            return {"kind": "form", "reason": f"expected {self._expected(so_far)}"}
        # A token may end within a character: its incomplete bytes are left out of the text to explain. Bytes that begin
        # no character are kept, as U+FFFD.
        text = getincrementaldecoder("utf-8")("replace").decode(so_far[begin:] if ends else so_far[begin:] + token)
        explanation = explain_path(knowledge, "", text)
        if ends:
            return {"kind": "unfinished", "reason": "the action is not whole yet", **_rule(explanation)}
        if explanation.ok:
            kind = self._left_out_as(explanation.text)
            return {"kind": kind, "reason": LEFT_OUT[kind]}
        if condition := self._condition(explanation):
            return {"kind": NOT_NOW, "reason": condition, **_rule(explanation)}
        return {"kind": explanation.verdict, "reason": explanation.reason, **_rule(explanation)}

    @cached_property
    def _action_begin(self) -> int | None:
        """The offset of the action in the text, in bytes."""
        if self.action is None or self.grammar is None:
            return None
        whole = self.begun + self.text
        parts = next(parses(self.grammar.grammar, whole), ())
        return next((len(whole[: part.start].encode()) for part in parts if part.name == ACTION), None)

    def _expected(self, so_far: bytes) -> str:
        state = self.grammar and self.grammar.begin.read(so_far)
        return (state and expected(state)) or "its end"

    def _condition(self, explanation: Explanation) -> str:
        """What the state lacks for an action that the form alone admits; empty if the form doesn't admit it either."""
        knowledge = self.episode.space.knowledge
        if knowledge.facts is not None and explain_path(knowledge.without_facts, "", explanation.text).ok:
            needs = explanation.impossible or knowledge.facts.impossible(explanation.text)
            action, words = next(iter(needs.items()), (explanation.text, explanation.reason))
            return f"{action!r} exists, but not now: {words}"
        if self._form is None or start_state(self._form) is None:
            return ""
        data = action_bytes(explanation.text)
        if longest_prefix(start_state(self._form), data)[1] < len(data):
            return ""
        slots = dict.fromkeys(item.slot for item in explanation.expected if item.slot)
        noted = slot_comments(knowledge.source_map.read.source.text) if knowledge.source_map else {}
        words = "; ".join(f"{slot} is {noted[slot]}" if slot in noted else slot for slot in slots)
        there = ", ".join(item.text for item in explanation.expected) or "nothing"
        reason = "its form is right, but no action that begins like this is possible now"
        reason = f"{reason}; after {explanation.read.decode('utf-8', 'ignore')!r}: {there}"
        return f"{reason} ({words})" if words else reason

    @cached_property
    def _form(self) -> Grammar | None:
        """What may be written at the level `form`, where the environment has knowledge of its own for that."""
        surroundings = self.episode.surroundings
        if not isinstance(surroundings.environment, WithForm):
            return None
        form = surroundings.environment.form(self.episode.start)
        return None if form is self.episode.start else form.bind_view(surroundings.shown).next_action()

    def _left_out_as(self, text: str) -> str:
        """Why the masks left out an action that the rules admit: a key of `LEFT_OUT`."""
        meant = [action for action in self.left_out if action.startswith(text)]
        if not meant:
            return "too long"
        surroundings = self.episode.surroundings
        if surroundings.commands is not None and surroundings.commands.isdisjoint(meant):
            return "not listed"
        return "done before" if surroundings.history.done(surroundings.situation()).issuperset(meant) else "of no use"


def _rule(found: Explanation) -> dict[str, str]:
    """The rule that an explanation names, and where it is written."""
    spot = found.said_by or next((item.spot for item in found.expected if item.spot is not None), None)
    if spot is None or not spot.line:
        return {}
    return {"rule": spot.rule or "", "at": f"{spot.source.name}:{spot.line}:{spot.column}", "line": spot.context}


def _admitted(knowledge: Knowledge) -> list[str] | None:
    try:
        return knowledge.next_action().texts()
    except KnowledgeError:  # the path is at its end
        return None

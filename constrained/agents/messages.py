"""Messages between strategies and models: who is asked, in which tokens, and within which grammar.

A strategy never calls a model. It is a generator that yields a `Request` and receives the `Generation`: the scheduler
answers the requests of many strategies in one batch, or from the file of an interrupted run.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from constrained.agents.plan import Plan
from constrained.automaton import CompiledGrammar, Grammar, compile_grammar
from constrained.decoding.choosers import Choice, Chooser
from constrained.decoding.remote import RemoteModel
from constrained.decoding.request import Generation, Request
from constrained.errors import ConstrainedError

if TYPE_CHECKING:  # torch takes seconds to import
    from constrained.models import LoadedModel

POLICY = "policy"
"""The role whose model writes for every role without a model of its own."""

ROLES = ("planner", "grounder", "answerer", "explorer", "extractor", "reflector")
"""Further roles that may have a model of their own."""

FALLBACK = {"extractor": "explorer"}
"""Role -> the role asked before the policy, if it has no model of its own: WESE's weak model does both."""

STEP_TOKENS = 1024
"""Tokens of one text, if the plan has no limit of its own."""

FREE_TOKENS = 160
"""Tokens of one text without masks, where nothing else need end it."""

Value = TypeVar("Value")
Result = TypeVar("Result")

Requests: TypeAlias = Generator[Request, Generation, Result]
"""A generator that yields requests, receives their generations, and returns a result."""

Strategy: TypeAlias = Requests[None]


@dataclass(frozen=True, eq=False)
class ChoiceRequest(Request):
    """One action to be chosen by the role's chooser; it is the text of the generation."""

    choice: Choice | None = None


def for_role(role: str, by_role: Mapping[str, Value]) -> Value:
    """The value for a role (its model, or its price): its own, its fallback's, or the policy's."""
    for name in (role, FALLBACK.get(role, POLICY), POLICY):
        if name in by_role:
            return by_role[name]
    raise KeyError(role)


class Writer:
    """The models of an episode, and the tokens that they may still write.

    Parameters
    ----------
    models : mapping of str to LoadedModel, RemoteModel or Chooser
        By role; "policy" is required.
    plan : Plan
        Its answers count towards the limit.
    constrained : bool
        Masks on.
    max_new_tokens : int or None
        Of the whole plan; None: no limit.
    """

    def __init__(
        self,
        models: Mapping[str, LoadedModel | RemoteModel | Chooser],
        plan: Plan,
        constrained: bool,
        max_new_tokens: int | None = None,
    ):
        self.models, self.plan = models, plan
        self.constrained = constrained
        self.max_new_tokens = None if self.chooser() else max_new_tokens  # a chooser writes none

    def model(self, role: str = POLICY) -> LoadedModel:
        """The model that writes for a role.

        Raises
        ------
        ConstrainedError
            It is a chooser, which writes no text, or a server's, which writes whole steps.
        """
        model = for_role(role, self.models)
        if isinstance(model, RemoteModel):
            raise ConstrainedError(
                f"a model behind a server writes steps, and here the {role} is to write another text",
                "use the strategy act, react or knowagent, or give the role a model of its own",
            )
        if isinstance(model, Chooser):
            raise ConstrainedError(
                f"{model.name!r} only chooses among actions, and here the {role} is to write a text",
                "use the strategy act, or give a language model",
            )
        return model

    def chooser(self, role: str = POLICY) -> Chooser | None:
        """The chooser in the model's place for a role, if one is there."""
        model = for_role(role, self.models)
        return model if isinstance(model, Chooser) else None

    def remote(self, role: str = POLICY) -> RemoteModel | None:
        """The model behind a server that writes for a role, if it is one."""
        model = for_role(role, self.models)
        return model if isinstance(model, RemoteModel) else None

    def compile(self, grammar: Grammar, role: str = POLICY) -> CompiledGrammar:
        """`grammar` for the vocabulary of a role's model."""
        return compile_grammar(grammar, self.model(role).vocabulary)

    def tokens_left(self) -> int | None:
        """Tokens that the plan may still take; None: no limit."""
        if self.max_new_tokens is None:
            return None
        return self.max_new_tokens - sum(answer.completion_tokens for answer in self.plan.answers)

    def fits(self, grammar: CompiledGrammar, tokens: int | None, begun: str = "") -> bool:
        """Whether some text of `grammar` that begins with `begun` can be completed in `tokens` (None: any number)."""
        return tokens is None or (tokens >= 1 and grammar.budget.fits(grammar.matcher(begun).state, tokens))

    def ask(
        self,
        prompt: str,
        grammar: Grammar | CompiledGrammar | None,
        *,
        role: str = POLICY,
        max_new_tokens: int | None = None,
        begun: str = "",
        stop: str | None = "\n",
        free_tokens: int = FREE_TOKENS,
    ) -> Requests[Generation]:
        """Let a role's model write.

        Parameters
        ----------
        prompt : str
        grammar : Grammar, CompiledGrammar or None
            What may be written, with masks on; None: anything.
        role : str
        max_new_tokens : int, optional
            Default: the tokens left.
        begun : str
            Beginning of the grammar's text that the prompt ends with.
        stop : str or None
            Ends a text without masks.
        free_tokens : int
            Tokens of a text without masks, at most.
        """
        tokens = self.tokens_left() if max_new_tokens is None else max_new_tokens
        if grammar is None or not self.constrained:
            tokens = free_tokens if tokens is None else max(1, min(tokens, free_tokens))
            return (yield Request(prompt, None, tokens, stop, begun, role=role))
        if isinstance(grammar, Grammar):
            grammar = self.compile(grammar, role)
        tokens = STEP_TOKENS if tokens is None else max(1, tokens)
        return (yield Request(prompt, grammar, tokens, None, begun, role=role))

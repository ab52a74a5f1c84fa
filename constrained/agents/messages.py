"""The messages between strategies and models, and the models of an episode by role.

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
"""The other roles; each may have a model of its own."""

FALLBACK = {"extractor": "explorer"}
"""Role -> the role whose model it uses if it has none of its own: WESE's weak model both explores and extracts."""

STEP_TOKENS = 1024
"""Most tokens of one text if the plan has no token limit."""

FREE_TOKENS = 160
"""Most tokens of one text without masks: nothing else is sure to end it."""

Value = TypeVar("Value")
Result = TypeVar("Result")

Requests: TypeAlias = Generator[Request, Generation, Result]
"""A generator that yields requests, receives their generations, and returns a result."""

Strategy: TypeAlias = Requests[None]


@dataclass(frozen=True, eq=False)
class ChoiceRequest(Request):
    """A request to the role's chooser to choose one action; the action is the text of the generation."""

    choice: Choice | None = None


def for_role(role: str, by_role: Mapping[str, Value]) -> Value:
    """The value for a role (its model, its price): its own, its fallback's or the policy's."""
    for name in (role, FALLBACK.get(role, POLICY), POLICY):
        if name in by_role:
            return by_role[name]
    raise KeyError(role)


class ModelWriter:
    """The models of an episode by role, and the tokens that they may still write.

    Parameters
    ----------
    models : mapping of str to LoadedModel, RemoteModel or Chooser
        By role; "policy" is required.
    plan : Plan
        The answers in it count towards the limit.
    max_new_tokens : int or None
        Token limit of the whole plan; None: no limit.
    """

    def __init__(
        self,
        models: Mapping[str, LoadedModel | RemoteModel | Chooser],
        plan: Plan,
        max_new_tokens: int | None = None,
    ):
        self.models, self.plan = models, plan
        self.max_new_tokens = None if self.chooser() else max_new_tokens  # a chooser writes no tokens

    def model(self, role: str = POLICY) -> LoadedModel:
        """The language model that writes for a role.

        Raises
        ------
        ConstrainedError
            The role has a chooser, which writes no text, or a model behind a server, which writes only whole steps.
        """
        model = for_role(role, self.models)
        if isinstance(model, RemoteModel):
            raise ConstrainedError(
                f"a model behind a server writes only steps, and here the {role} must write another text",
                "use the strategy act, react or knowagent, or give the role a model of its own",
            )
        if isinstance(model, Chooser):
            raise ConstrainedError(
                f"{model.name!r} only chooses among actions, and here the {role} must write a text",
                "use the strategy act, or give a language model",
            )
        return model

    def chooser(self, role: str = POLICY) -> Chooser | None:
        """The chooser that plays a role, if one does."""
        model = for_role(role, self.models)
        return model if isinstance(model, Chooser) else None

    def remote(self, role: str = POLICY) -> RemoteModel | None:
        """The model behind a server that writes for a role, if one does."""
        model = for_role(role, self.models)
        return model if isinstance(model, RemoteModel) else None

    def compile(self, grammar: Grammar, role: str = POLICY) -> CompiledGrammar:
        """Compile a grammar for the vocabulary of a role's model."""
        return compile_grammar(grammar, self.model(role).vocabulary)

    def tokens_left(self) -> int | None:
        """The number of tokens that the plan may still take; None: no limit."""
        if self.max_new_tokens is None:
            return None
        return self.max_new_tokens - sum(answer.completion_tokens for answer in self.plan.answers)

    def fits(self, grammar: CompiledGrammar, tokens: int | None, begun: str = "") -> bool:
        """Whether some text of `grammar` that begins with `begun` can be completed in `tokens` tokens (None: any)."""
        return tokens is None or (tokens >= 1 and grammar.matcher(begun).ends_within(tokens))

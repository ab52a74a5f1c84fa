"""Let a model write the next step of an episode: build its prompt and grammar, and read back what was written."""

from __future__ import annotations

from collections.abc import Sequence

from constrained.agents.episode import Episode
from constrained.agents.messages import FREE_TOKENS, POLICY, STEP_TOKENS, ChoiceRequest, Requests
from constrained.agents.plan import Step
from constrained.agents.prompts import Example, PromptParts, build_messages, build_prompt, reads_chat
from constrained.agents.step_formats import (
    BARE,
    FIREACT,
    action_path,
    parse_step,
    read_path,
    read_step,
    step_grammar,
    step_head,
)
from constrained.automaton import CompiledGrammar, Grammar
from constrained.automaton.automaton import MAX_TEXTS
from constrained.decoding.choosers import Choice
from constrained.decoding.request import Request
from constrained.environments.facts import FactsEnvironment
from constrained.errors import ConstrainedError
from constrained.knowledge.action_graph import START

REMOTE_STEPS = 50
"""Most past steps that a server's model reads: its context isn't known."""

FREE_REASONING = 320
"""Most tokens of a whole chain of thought without masks."""


def play_step(episode: Episode, role: str = POLICY) -> Requests[Step | None]:
    """Let a role's model write the next step, and do it.

    Returns
    -------
    Step or None
        None if no step may be written: the episode is over, and the plan's note says why.
    """
    action = episode.next_action()
    step = None if action is None else (yield from write_step(episode, action, role=role, stop=episode.stop))
    if step is not None:
        episode.do(step)
    return step


def write_step(
    episode: Episode, action: Grammar, tokens: int | None = None, role: str = POLICY, stop: str | None = None
) -> Requests[Step | None]:
    """Let a role's model write a step without doing it; with masks on, `action` is the grammar of its action.

    None, and the episode ends, if `tokens` (default: those left) are too few. A chooser is told which action `stop`
    ends the plan, if there is one.
    """
    if episode.writer.chooser(role) is not None:
        chosen = yield ChoiceRequest("", role=role, choice=_choice(episode, action, stop))
        return episode.new_step("", chosen.text, chosen)
    if episode.writer.remote(role) is not None:
        return (yield from _write_remotely(episode, action, role))
    # The prompt ends with the step's head, so the grammar's text is head and answer, and is read back as a whole.
    head, grammar, form = next_head(episode, role), next_grammar(episode, action, role), _form(episode, role)
    prompt = next_prompt(episode, role) + head
    answer = yield from episode.ask(
        prompt, grammar, role=role, max_new_tokens=tokens, begun=head, stop="\nObservation",
        free_tokens=_free_tokens(episode, role),
    )  # fmt: skip
    if answer is None:
        return None
    if episode.settings.constrained:
        thought, action_text = parse_step(grammar.grammar, head + answer.text)
    else:
        thought, action_text = read_step(form, len(episode.steps) + 1, answer.text)
    path = read_path(answer.text) if writes_path(episode, role) else None
    return episode.new_step(thought, action_text, answer, prompt=prompt, path=path)


def writes_path(episode: Episode, role: str = POLICY) -> bool:
    """Whether a role's model writes KnowAgent's ActionPath itself (equation 5); otherwise it is given.

    Masks would force the path; the embedded model, trained to continue after it, never learnt to write it.
    """
    if episode.settings.constrained or episode.settings.step_format != "knowagent":
        return False
    return episode.writer.remote(role) is not None or not episode.writer.model(role).is_embedded


def _free_tokens(episode: Episode, role: str) -> int:
    """Most tokens of a step without masks."""
    if _form(episode, role) == "cot":
        return FREE_REASONING
    return FREE_TOKENS + (len(action_path(episode.path)) if writes_path(episode, role) else 0)


def _write_remotely(episode: Episode, action: Grammar, role: str) -> Requests[Step]:
    """Let a server's model write a step: in the format "act" the action alone, else the whole step."""
    form, n, masks = episode.settings.step_format, len(episode.steps) + 1, episode.settings.constrained
    whole = action if form == "act" else step_grammar(form, n, episode.path, action)
    left = episode.writer.tokens_left()
    messages = build_messages(_parts(episode, episode.examples).with_last(REMOTE_STEPS), episode.prompt)
    answer = yield Request(
        "", whole if masks else None, STEP_TOKENS if left is None else max(1, left),
        None if masks else "\nObservation", role=role, messages=messages,
    )  # fmt: skip
    prompt = "\n\n".join(f"[{message['role']}]\n{message['content']}" for message in messages)
    if form == "act" and masks:
        return episode.new_step("", answer.text, answer, prompt=prompt)
    thought, text = parse_step(whole, answer.text) if masks else read_step(form, n, answer.text)
    path = read_path(answer.text) if writes_path(episode, role) else None
    return episode.new_step(thought, text, answer, prompt=prompt, path=path)


def _choice(episode: Episode, action: Grammar, stop: str | None) -> Choice:
    """The choice that a chooser is given among the admitted actions."""
    knowledge, actions = episode.space.knowledge, action.texts()
    if actions is None:
        raise ConstrainedError(
            f"a chooser needs a list of actions, but here those of {knowledge.name} hold free text, or there are more "
            f"than {MAX_TEXTS:,}",
            "give a language model",
        )
    last = episode.steps[-1].observation if episode.steps else episode.plan.first_observation
    return Choice(
        episode.plan.task, tuple(actions), stop, tuple(episode.path), last or "",
        episode.surroundings.remembered(), knowledge, episode.facts(), episode.surroundings.history.tried,
        episode.settings.temperature,
    )  # fmt: skip


def next_prompt(episode: Episode, role: str = POLICY) -> str:
    """The prompt before the next step."""
    loaded = episode.writer.model(role)
    # The embedded model reads no examples: they aren't looked for.
    return build_prompt(loaded, _parts(episode, () if loaded.is_embedded else episode.examples), episode.prompt)


def _parts(episode: Episode, examples: Sequence[Example]) -> PromptParts:
    """What the prompt before the next step is made of."""
    knowledge, form = episode.space.knowledge, episode.settings.step_format
    text = knowledge.to_text() if episode.settings.knowledge_in_prompt else knowledge.comments.get(START, "")
    view = "" if form == FIREACT else episode.surroundings.in_view(knowledge.slots)  # FireAct's data has no such lines
    environment, first, scene = episode.surroundings.environment, episode.surroundings.first_observation, ""
    if isinstance(environment, FactsEnvironment):
        first, scene = "", environment.scene
    return PromptParts(
        episode.plan.task, knowledge, text, form, examples, scene, first, episode.steps,
        episode.surroundings.remembered(), view, episode.hints,
    )  # fmt: skip


def _form(episode: Episode, role: str) -> str:
    """The format in which a role's model writes a step."""
    form = episode.settings.step_format
    return BARE if form == "act" and reads_chat(episode.writer.model(role)) else form


def next_head(episode: Episode, role: str = POLICY) -> str:
    """The fixed beginning of the next step (its path, for instance), with which the prompt ends.

    Most tokenizers join a space to the word after it, so the last space is left to the model; the embedded model
    was trained to continue after the space.
    """
    path = None if writes_path(episode, role) else episode.path
    head = step_head(_form(episode, role), len(episode.steps) + 1, path)
    return head if episode.writer.model(role).is_embedded else head.rstrip(" ")


def next_grammar(episode: Episode, action: Grammar, role: str = POLICY) -> CompiledGrammar:
    """The compiled grammar of the next step with `action` in it; compiled once for all uses."""
    key = (episode.phase, len(episode.plan.steps), action, episode.writer.model(role).vocabulary)
    if episode.compiled is None or episode.compiled[0] != key:
        grammar = step_grammar(_form(episode, role), len(episode.steps) + 1, episode.path, action)
        episode.compiled = key, episode.writer.compile(grammar, role)
    return episode.compiled[1]

"""Plan a whole path ahead: each action is planned as if those before it had been done.

The path is carried out afterwards, without looking (`plan_ahead`), or not at all (`open_loop`). Chain of thought
(`cot`) plans this way if no action gives an answer.
"""

from __future__ import annotations

from dataclasses import replace

from constrained.agents.action_space import ActionSpace
from constrained.agents.episode import Episode
from constrained.agents.levels import FORM
from constrained.agents.messages import Strategy
from constrained.agents.settings import Settings
from constrained.agents.step_writer import next_grammar, next_head, play_step, write_step
from constrained.agents.surroundings import Surroundings
from constrained.automaton import Grammar
from constrained.environments.base import Environment, WithPrior, WithSupport
from constrained.errors import ConstrainedError, KnowledgeError
from constrained.knowledge import Knowledge
from constrained.knowledge.answering import answer_only
from constrained.knowledge.continuation import either
from constrained.knowledge.report import OK
from constrained.planning.model import Condition
from constrained.planning.relaxed import Relaxed
from constrained.planning.wording import condition_words

SPARE_STEPS = 3
"""With more than this many times the distance to the goal in steps left, they aren't checked to suffice."""

_HOW = "Nothing is observed before the whole plan is written; once it is whole, write `{stop}` as the action."


def cot(episode: Episode, prior: Environment | None = None) -> Strategy:
    """Chain of thought: all the reasoning, then the answer that follows, in one text (Wei et al., 2022).

    If some actions give an answer, the knowledge is reduced to them, for the verdict too: rules about what must be
    looked up first don't apply. Otherwise a plan is written ahead. Without an environment nothing is executed.

    `prior`: as in `open_loop`.
    """
    answer = answer_only(episode.start)
    if answer is None:
        yield from write_ahead(episode, prior)
        return
    episode.start, episode.space = answer, ActionSpace(answer)
    if episode.surroundings.environment is None:
        yield from open_loop(episode)
    else:
        episode.begin()
        if episode.settings.supporting:
            episode.hints = _support(episode)
        yield from play_step(episode)


def _support(episode: Episode) -> str:
    """The sentences that the answer rests on, for the prompt."""
    environment = episode.surroundings.environment
    sentences = environment.supporting() if isinstance(environment, WithSupport) else ()
    if not sentences:
        raise ConstrainedError(
            f"no supporting sentences are known for {episode.plan.task!r:.80}",
            "leave them out, or play HotpotQA or StrategyQA, whose data name them",
        )
    return "\n".join(["What is known:", *sentences])


def write_ahead(episode: Episode, prior: Environment | None) -> Strategy:
    """Write a whole path in ReAct's steps, and do it if there is an environment; `prior`: as in `open_loop`."""
    episode.settings = replace(episode.settings, step_format="react")
    yield from plan_ahead(episode) if episode.surroundings.environment is not None else open_loop(episode, prior)


def plan_ahead(episode: Episode) -> Strategy:
    """Write a whole path after the first observation, then do it without looking.

    Slots and verdicts follow the environment's prior (`WithPrior`), or else what is in view at the start. An action
    whose objects turn out to be elsewhere has no effect.
    """
    first, environment = episode.begin(), episode.surroundings.environment
    plan = replace(episode.plan, steps=[])  # shares the list of answers, so that tokens are counted together
    draft = Episode(episode.writer.models, episode.space.knowledge, plan, episode.settings)
    draft.surroundings = Surroundings(None, episode.surroundings.memory)
    draft.hints = _HOW.format(stop=episode.space.stop)
    yield from open_loop(draft, environment.prior(first) if isinstance(environment, WithPrior) else None)
    for step in plan.steps:
        if episode.over:
            break
        episode.do(step, as_planned=True)


def open_loop(episode: Episode, prior: Environment | None = None) -> Strategy:
    """Write a path, step by step, that is complete within the limits.

    Parameters
    ----------
    episode : Episode
        An episode without an environment.
    prior : Environment, optional
        An environment to do each action in, only to bind the slots.

    Raises
    ------
    ConstrainedError
        No whole path fits in the limits.
    """
    plan, settings, writer = episode.plan, episode.settings, episode.writer
    plan.open_loop = True
    house = Surroundings(prior)
    if prior is not None:
        opening = prior.reset().split("Your task is to:")[0]
        house.remember_from(f"{opening}Your task is to: {plan.task}")
        episode.surroundings.memory = house.memory
        _bind_view(episode, house)
    space = episode.space
    # The judge still holds the plan to all that is known, whatever the masks leave out.
    if episode.level == FORM:
        space.hold_to(space.knowledge.without_facts)
    stop_word = space.stop
    has_goal = _goal(space.knowledge) is not None
    episode.surroundings.suppose(space.knowledge.facts)
    while len(plan.steps) < settings.max_steps and not _at_goal(space.knowledge):
        # 1. The actions after which the path can still end within the steps and tokens left.
        steps_left = _steps_left(episode)
        try:
            action = space.knowledge.next_action(steps_left if settings.constrained else None)
        except KnowledgeError:
            if has_goal:
                break
            raise _too_tight(episode) from None
        action = _in_time(episode, episode.at_level(action) or action, steps_left)
        # 2. The plan may end where its path may: the model then writes the stop word as its action.
        may_stop = space.knowledge.may_end and plan.steps and not action.matches(stop_word)
        if may_stop:
            action = either(action, stop_word)
        # 3. The step is written within the tokens left, less those that ending the path will take.
        tokens = writer.tokens_left()
        if tokens is not None and not writer.fits(next_grammar(episode, action), tokens, next_head(episode)):
            break
        if tokens is not None and settings.constrained:
            tokens -= _reserve(episode, steps_left)
        step = yield from write_step(episode, action, tokens, stop=stop_word if may_stop else None)
        if step is None or (step.action == stop_word and (may_stop or not settings.constrained)):
            break
        # 4. The plan goes on as if the action had been done: in the facts, and in the prior, which binds the slots.
        if step.verdict == OK or episode.level == FORM:
            space.advance(step.action)
            episode.surroundings.suppose(space.knowledge.facts, step.action)
        reached = False
        if prior is not None:
            reached = house.step(step.action).done
            _bind_view(episode, house)
        episode.add(step)
        if reached or not any(q.first() for q in space.knowledge.grammar.automaton.start.positions):
            break  # the goal is reached in the prior, or nothing may follow
    if _goal(space.judge) is not None:
        plan.success = _at_goal(space.judge)
        plan.note = plan.note if plan.success else _without_goal(space.judge, settings, len(plan.steps))
    if settings.constrained and not has_goal and not space.knowledge.may_end:
        raise _too_tight(episode)


def _goal(knowledge: Knowledge) -> Condition | None:
    """The goal of the knowledge's problem, if it has one."""
    return None if knowledge.facts is None else knowledge.facts.task.goal


def _at_goal(knowledge: Knowledge) -> bool:
    """Whether the knowledge has a goal that a plan which ends here reaches."""
    return _goal(knowledge) is not None and knowledge.may_end


def _in_time(episode: Episode, action: Grammar, steps_left: int) -> Grammar:
    """The next actions after which the goal may be reached in the steps left; all, if there are none.

    Left out are actions after which even a plan in which nothing is ever undone would be too long.
    """
    facts = episode.space.knowledge.facts
    if not episode.settings.constrained or facts is None or facts.task.goal is None:
        return action
    relaxed = Relaxed.of(facts.task)
    distance = relaxed.distance(facts.state)
    texts = action.texts()
    # Far from the limit nothing is checked: each check is a relaxed plan for every action.
    if distance is None or texts is None or steps_left > SPARE_STEPS * (distance + 1):
        return action
    left = []
    for text in texts:
        after = facts.after(text).state if text in facts.actions else facts.state
        further = relaxed.distance(after)
        if further is not None and further < steps_left:
            left.append(text)
    return Grammar.from_choices(left) if 0 < len(left) < len(texts) else action


def _without_goal(knowledge: Knowledge, settings: Settings, steps: int) -> str:
    """The note of a plan that ends without its goal: why, and what is missing."""
    facts = knowledge.facts
    assert facts is not None
    missing = " and ".join(condition_words(part, facts.task) for part in facts.task.unmet_goal(facts.state))
    if steps >= settings.max_steps:
        why = f"at the limit of {settings.max_steps} steps"
    elif not facts.actions:
        why = "in a state in which no action is possible"
    elif settings.max_new_tokens is not None:
        why = f"at the limit of {settings.max_new_tokens} tokens"
    else:
        why = f"after {steps} steps"
    return f"the plan ends without its goal, {why}: missing is {missing or 'an end that the rules admit'}"


def _bind_view(episode: Episode, house: Surroundings) -> None:
    episode.space.knowledge = episode.space.knowledge.bind_view(house.slots(episode.space.knowledge))


def _too_tight(episode: Episode) -> ConstrainedError:
    settings = episode.settings
    tokens = f" and {settings.max_new_tokens} tokens" if settings.max_new_tokens else ""
    return ConstrainedError(
        f"no whole plan fits in {settings.max_steps} steps{tokens}", "raise max_steps or max_new_tokens"
    )


def _steps_left(episode: Episode) -> int:
    """The number of steps in which the path must end: those left, or fewer if the tokens won't last."""
    steps, tokens = episode.settings.max_steps - len(episode.plan.steps), episode.writer.tokens_left()
    return steps if tokens is None else max(1, min(steps, tokens // _step_cost(episode)))


def _step_cost(episode: Episode) -> int:
    """A bound on the tokens of the shortest next step."""
    try:
        action = episode.space.knowledge.next_action()
    except KnowledgeError:
        return 1
    compiled = next_grammar(episode, action)
    return (compiled.matcher(next_head(episode)).fewest_tokens() or 1) + 8


def _reserve(episode: Episode, steps_left: int) -> int:
    """The number of tokens to keep back for ending the path after this step."""
    longest = max(episode.space.knowledge.graph.distance.values(), default=1)
    return _step_cost(episode) * max(0, min(steps_left, longest) - 1)

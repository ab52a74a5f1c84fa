"""`generate_plan` and its asynchronous and streaming forms."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from numbers import Integral
from pathlib import Path
from queue import Queue
from typing import Any

from constrained.agents.demonstrations import read_examples
from constrained.agents.episode import Episode
from constrained.agents.levels import LEVELS, STATE
from constrained.agents.messages import POLICY
from constrained.agents.plan import Plan, Step
from constrained.agents.prompts import Builder
from constrained.agents.run_file import RunFile
from constrained.agents.scheduler import Rollout, schedule
from constrained.agents.settings import Settings
from constrained.agents.strategies import STEP_FORMATS, STRATEGIES, UNEXECUTED, open_loop
from constrained.agents.suite_runner import Models, header
from constrained.arguments import NUMBER, WHOLE, checked
from constrained.decoding.choosers import Chooser
from constrained.environments.base import Environment
from constrained.environments.pddl import PddlEnvironment
from constrained.environments.suite import Suite
from constrained.environments.world import WorldEnvironment, own_world
from constrained.errors import ConstrainedError, ConstrainedWarning, GameError, KnowledgeError
from constrained.knowledge import ActionKnowledge, Knowledge
from constrained.models import load_roles
from constrained.planning.model import NEVER
from constrained.planning.reachable import require_reachable
from constrained.waiting import waiting

OPEN_LOOP_STEPS = 12
"""Default limit on the steps of a plan that is not executed."""

PLAY_STEPS = 50
"""Default limit on the steps in an environment: ALFWorld's and KnowAgent's."""

PROBLEM_STEPS = 1_000
"""Default limit on the steps to the goal of a planning problem, in PDDL or for a chooser; PlanBench's plans need up to
about 130."""


@checked(temperature=NUMBER, top_k=WHOLE, top_p=NUMBER, seed=WHOLE)
def generate_plan(
    task: str,
    knowledge: str | Knowledge | None = None,
    *,
    environment: Environment | None = None,
    strategy: str = "knowagent",
    model: Any = None,
    planner: Any = None,
    grounder: Any = None,
    explorer: Any = None,
    max_steps: int | None = None,
    explore_steps: int | None = None,
    max_new_tokens: int | None = None,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    constrained: bool = True,
    level: str = STATE,
    demonstrations: int | Sequence[Any] | None = None,
    knowledge_in_prompt: bool = True,
    prompt: Builder | None = None,
    device: str | None = None,
    progress: bool = False,
    trace: str | Path | None = None,
    on_start: Callable[[Plan], None] | None = None,
    on_step: Callable[[Step], None] | None = None,
    on_text: Callable[[str], None] | None = None,
) -> Plan:
    """Plan a task and, if there is an environment, carry the plan out; the knowledge admits every action.

    Without an environment, a `.lark` file with a problem of its own is played as its `//:` lines say, and for a
    household task a game is made from the seed. Any other plan is open-loop: a whole path that the knowledge admits,
    not executed.

    Parameters
    ----------
    task : str
        For example ``"put a clean mug in the coffeemachine"``. In a file's own world, a sentence of its `goal` lines,
        or its own goal in words; any other sentence is for the model alone, and then the outcome isn't judged.
    knowledge : str or Knowledge, optional
        A shipped name, a path, grammar text, or knowledge already read and bound. Default: that of the environment, if
        it is a planning problem, or else "household".
    environment : Environment, optional
        The environment to act in; see `constrained.environments.base`.
    strategy : str
        One of `constrained.agents.strategies.STRATEGIES`.
    model : optional
        Anything `constrained.models.load` takes: a name, a path (GGUF too), a loaded model with its tokenizer. Or a
        chooser (`constrained.decoding.choosers`): "random" takes any admitted action, "none" the shortest path that
        the knowledge admits. Default: the embedded model, which knows only households; for a planning problem "search".
    planner, grounder, explorer : optional
        Models for these roles of Lumos and WESE (the explorer's model also extracts triples), or folders of adapters
        of `model`; default: `model` plays all roles.
    max_steps : int, optional
        Default 50 in an environment, 12 without, 1,000 to a planning problem's goal (PDDL's, or any for a chooser).
    explore_steps : int, optional
        Limit on WESE's exploration; default: `max_steps`.
    max_new_tokens : int, optional
        Limit on the tokens of the whole plan, which is complete within it; default: no limit.
    temperature, top_k, top_p : optional
        Greedy by default.
    seed : int
        For the game and for sampling; the same seed gives the same plan.
    constrained : bool
        False turns the masks off, for comparison.
    level : str
        The level of the masks, one of `constrained.agents.levels.LEVELS`: "form", "state", "goal-sound" or "goal".
    demonstrations : int or sequence, optional
        Worked examples for the prompts: how many of the knowledge's own or the environment's to show; or your own, each
        a `Plan`, a `Demonstration` or a list of messages. Default: as many as the strategy is the better for. Those
        that don't fit the model's context are left out.
    knowledge_in_prompt : bool
        False: prompts don't tell the actions, their rules and conditions; the masks are the same.
    prompt : callable, optional
        Builds the prompts before steps: it is given a `constrained.agents.prompts.PromptParts` and returns messages or
        a text. The embedded model reads none.
    device : str, optional
    progress : bool
        Say on standard error, if that is a terminal, what takes more than a second: loading, and steps.
    trace : str or Path, optional
        Write the run to this file as it goes, with each token and what the masks excluded, for ``constrained view``.
        The file of an earlier run or an empty file is replaced; any other file is refused. Reasons name rules and lines
        if `knowledge` is a name, a path or a text, or was read with ``source_map=True``.
    on_start : callable, optional
        Called with the still empty `Plan` once everything is loaded.
    on_step : callable, optional
        Called with each `Step` as it is done.
    on_text : callable, optional
        Called with each piece of text as a model on this machine writes it.

    Raises
    ------
    ConstrainedError
        Or one of its subclasses; see `constrained.errors`.
    """
    _check(task, strategy, level, max_steps=max_steps, explore_steps=explore_steps, max_new_tokens=max_new_tokens)
    if knowledge is None:
        knowledge = environment.knowledge if isinstance(environment, PddlEnvironment) else "household"
    if not isinstance(knowledge, Knowledge):
        knowledge = ActionKnowledge.from_lark(knowledge, source_map=trace is not None)
    note = ""
    if environment is None and knowledge.facts is None and knowledge.own_world is not None:
        environment, note = own_world(knowledge, task)
        if not environment.judged and _searches(model):
            otherwise = "give one of them, or a language model, which reads the task"
            raise ConstrainedError(f"a search needs a goal, and {note}", otherwise)
    if environment is None and knowledge.facts is None and not _is_household(knowledge, None):
        _check_objects(knowledge)
    # Which model fits depends on knowledge and environment, and loading takes seconds: so it comes after all checks.
    if model is None and _is_problem(knowledge, environment):
        model = "search"
    if message := unfit(model, _is_household(knowledge, environment)):
        warnings.warn(message, ConstrainedWarning, stacklevel=3)
    roles = {"planner": planner, "grounder": grounder, "explorer": explorer}
    with waiting("loading the model", progress) as say:
        models = load_roles(model, roles, device=device)
        say("preparing the vocabulary")
        for one in models.values():
            getattr(one, "vocabulary", None)  # made here, not in the first step
    # `prior`: an environment in which a plan that isn't executed binds its slots.
    prior = None
    if environment is None:
        environment, prior, note = _make_environment(task, knowledge, seed)
    settings = Settings(
        strategy, STEP_FORMATS[strategy], constrained,
        max_steps or _steps(knowledge, environment, models[POLICY]), max_new_tokens,
        level, explore_steps=explore_steps, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed,
        trace=trace is not None, demonstrations=demonstrations if isinstance(demonstrations, int) else None,
        knowledge_in_prompt=knowledge_in_prompt,
    )  # fmt: skip
    examples = None if isinstance(demonstrations, int | None) else read_examples(demonstrations, knowledge)
    plan = Plan(task, knowledge.name, strategy, models[POLICY].name, constrained, seed, note=note, level=level)
    with waiting("step 1", progress) as say:

        def report(step: Step) -> None:
            say(f"step {len(plan.steps) + 1}")
            if on_step:
                on_step(step)

        episode = Episode(
            models, knowledge, plan, settings, environment,
            on_step=report, on_text=on_text, prompt=prompt, examples=examples,
        )  # fmt: skip
        unexecuted = UNEXECUTED.get(strategy, open_loop)
        rollout = Rollout(episode, unexecuted(episode, prior) if environment is None else None)
        with _run_file(trace, episode, models) as file:
            for number, _ in enumerate(schedule([rollout])):
                if number == 0 and on_start:  # the first is yielded before anything is written
                    say("step 1")
                    on_start(plan)
                if file is not None:
                    for line in rollout.lines():
                        file.write(line)
    if rollout.failure:
        raise rollout.failure
    if environment is not None and note:
        plan.note = "; ".join(filter(None, (plan.note, f"the outcome isn't judged, as {note}")))
    return plan


def _searches(model: Any) -> bool:
    """Whether a model looks for a plan to the goal, before it acts."""
    if model is None or isinstance(model, str):
        return model in (None, "search")
    from constrained.chooser.chooser import SearchChooser

    return isinstance(model, SearchChooser)


def _check_objects(knowledge: Knowledge) -> None:
    """Raise KnowledgeError if a world has no objects for a slot, and nothing else says what may stand there."""
    for slot in sorted(knowledge.grammar.unbound() & knowledge.slot_types.keys()):
        kind = knowledge.slot_types[slot]
        raise KnowledgeError(
            f"the world of {knowledge.name} has no objects, so nothing can stand in the slot {slot}",
            f"write `//: object NAME, ...: {kind}` and, as what holds at the start, `//: init FACT, ...`; or give "
            f"a problem (`knowledge.for_problem(...)`), an environment, or values (`knowledge.bind({slot}=[...])`)",
        )


def _is_problem(knowledge: Knowledge, environment: Environment | None) -> bool:
    """Whether the task is a planning problem, in PDDL or of a world."""
    return isinstance(environment, (PddlEnvironment, WorldEnvironment)) or (
        environment is None and knowledge.facts is not None
    )


def _is_household(knowledge: Knowledge, environment: Environment | None) -> bool:
    """Whether the task is one of a household, whose files take a quarter of a second to read."""
    if _is_problem(knowledge, environment) or (environment is None and knowledge.name != "household"):
        return False
    from constrained.environments.household.env import HouseholdTexts, is_household

    return is_household(knowledge) if environment is None else isinstance(environment, HouseholdTexts)


def _steps(knowledge: Knowledge, environment: Environment | None, model: Any) -> int:
    """The default limit on the steps."""
    if isinstance(environment, WorldEnvironment) and not (environment.judged and isinstance(model, Chooser)):
        return PLAY_STEPS
    if _is_problem(knowledge, environment):
        return PROBLEM_STEPS
    return OPEN_LOOP_STEPS if environment is None else PLAY_STEPS


def unfit(model: Any, household: bool) -> str:
    """A warning if the model doesn't know the domain, else an empty string."""
    if household or model not in (None, "embedded"):
        return ""
    return (
        "the embedded model knows only households: here its words mean nothing, and it takes admitted actions blindly. "
        "As model, give a language model, 'random' (any admitted action) or 'none' (the shortest path that is admitted)"
    )


def _check(task: str, strategy: str, level: str, **limits: int | None) -> None:
    if not isinstance(task, str) or not task.strip():
        what = "empty" if isinstance(task, str) else f"{task!r:.80}, not text"
        raise ConstrainedError(f"the task is {what}", "say what to do, such as 'put a mug in the cabinet'")
    for name, value in limits.items():
        if value is not None and (not isinstance(value, Integral) or value < 1):
            raise ConstrainedError(f"{name} is {value!r:.80}", "use a whole number, 1 or more, or leave it out")
    if strategy not in tuple(STRATEGIES):
        raise ConstrainedError(f"no strategy {strategy!r}", f"use one of {', '.join(STRATEGIES)}")
    if level not in LEVELS:
        raise ConstrainedError(f"no level {level!r}", f"use one of {', '.join(LEVELS)}")


def _make_environment(task: str, knowledge: Knowledge, seed: int) -> tuple[Environment | None, Environment | None, str]:
    """Make a household game for the task.

    Returns (game, None, ""); if no game can be made: (None, a house to bind slots from, if it is a household task, and
    a note that says why).
    """
    if knowledge.facts is not None:  # the effects of each action are known: nothing needs to be executed
        require_reachable(knowledge.facts.task)
        return None, None, ""
    if not _is_household(knowledge, None):
        return None, None, f"nothing was executed: there is no environment for {knowledge.name!r}."
    from constrained.environments.household import HouseholdEnv, game_for_task, make_game

    try:
        return HouseholdEnv(game_for_task(task, seed=seed)), None, ""
    except GameError as error:
        house = HouseholdEnv(make_game(seed).wanting(NEVER))  # the made game's goal is not the task
        return None, house, f"nothing was executed: {error.message}. The slots were bound to an imagined house."


def _run_file(path: str | Path | None, episode: Episode, models: Models) -> AbstractContextManager[RunFile | None]:
    """The file that the run is recorded in, if there is to be one."""
    if path is None:
        return nullcontext()
    suite = Suite("plan", episode.plan.knowledge, ())
    return RunFile(path, header(suite, episode.start, models, episode.settings), replace=True)


Event = str | Step | Plan
"""A piece of text, a step that was done, or the finished plan."""


async def agenerate_plan(task: str, knowledge: str | Knowledge | None = None, **options: Any) -> Plan:
    """Run `generate_plan` in a thread, so that the event loop isn't blocked.

    The parameters are those of `generate_plan`; `on_start`, `on_step` and `on_text` are called in the event loop.
    """
    loop = asyncio.get_running_loop()

    def in_loop(callback: Callable[..., Any]) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            loop.call_soon_threadsafe(callback, *arguments)

        return call

    for name in ("on_start", "on_step", "on_text"):
        if options.get(name) is not None:
            options[name] = in_loop(options[name])
    return await asyncio.to_thread(generate_plan, task, knowledge, **options)


def stream_plan(task: str, knowledge: str | Knowledge | None = None, **options: Any) -> Iterator[Event]:
    """Yield each text and step of `generate_plan` as it happens, and finally the plan.

    The parameters are those of `generate_plan` without `on_step` and `on_text`. Closing the iterator ends the plan at
    the model's next token.

    Yields
    ------
    str
        A piece of text, as a model on this machine writes it.
    Step
        A step that was done.
    Plan
        The finished plan, last.
    """
    events: Queue[Event | BaseException] = Queue()
    closed = threading.Event()

    def put(event: Event) -> None:
        # Called for each token, so a closed iterator ends the plan within one forward pass.
        if closed.is_set():
            raise _Closed
        events.put(event)

    def work() -> None:
        try:
            events.put(generate_plan(task, knowledge, **options, on_step=put, on_text=put))
        except BaseException as error:  # raised again in the thread that reads the events
            events.put(error)

    threading.Thread(target=work, name="constrained-plan", daemon=True).start()
    try:
        while True:
            event = events.get()
            if isinstance(event, BaseException):
                raise event
            yield event
            if isinstance(event, Plan):
                return
    finally:
        closed.set()


class _Closed(Exception):
    """The iterator of `stream_plan` was closed."""

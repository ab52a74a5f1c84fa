"""`generate_plan`: a task in, a plan out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from tqdm import tqdm

from constrained.agents.plan import Plan, Step
from constrained.agents.play import Run, Settings, imagine, play
from constrained.agents.strategies import step_format
from constrained.environments.household import HouseholdEnv, make_game, stage
from constrained.environments.household.memory import Memory
from constrained.errors import ConstrainedError, GameError
from constrained.knowledge import ActionKnowledge
from constrained.models.load import load

OPEN_LOOP_STEPS = 12
"""Steps of a plan that nothing executes, where `max_steps` is not given."""

PLAY_STEPS = 50
"""Steps in an environment, where `max_steps` is not given: ALFWorld's and KnowAgent's limit."""


def generate_plan(
    task: str,
    knowledge: str | ActionKnowledge = "household",
    *,
    environment: Any = None,
    strategy: str = "knowagent",
    model: Any = None,
    planner: Any = None,
    grounder: Any = None,
    max_steps: int | None = None,
    max_new_tokens: int | None = None,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    constrained: bool = True,
    device: str | None = None,
    progress: bool = False,
    on_start: Callable[[Plan], None] | None = None,
    on_step: Callable[[Step], None] | None = None,
) -> Plan:
    """Plan and, where there is an environment, act: every action admitted by the knowledge.

    With nothing but a household task, a game for it is made from the seed and played with
    the embedded model. A task that can't be staged gives an open-loop plan: a whole path
    that the knowledge admits, nothing executed.

    Parameters
    ----------
    task : str
        For example ``"put a clean mug in the coffeemachine"``.
    knowledge : str or ActionKnowledge
        A shipped name, a path, grammar text, or knowledge already read and bound.
    environment : TextEnvironment, optional
        What to play in; see `constrained.environments.base`.
    strategy : {"knowagent", "react", "act"}
    model : optional
        Anything `constrained.models.load.load` takes: a name, a path (GGUF too), a loaded
        model with its tokenizer; default: the embedded model.
    planner, grounder : optional
        The two models of Lumos; no strategy of this version uses them.
    max_steps : int, optional
        Default 50 in an environment, 12 without.
    max_new_tokens : int, optional
        Tokens of the whole plan; default: no limit. A plan ends whole within it.
    temperature, top_k, top_p : optional
        Greedy by default.
    seed : int
        Of the staged game and of sampling; the same seed gives the same plan.
    constrained : bool
        False turns the masks off, for comparison.
    device : str, optional
    progress : bool
        Show a progress bar on standard error.
    on_start : callable, optional
        Called with the still empty `Plan` once everything is loaded.
    on_step : callable, optional
        Called with each `Step` as it is done.

    Raises
    ------
    ConstrainedError
        A subclass of it for each thing that can be wrong; see `constrained.errors`.
    """
    if not isinstance(task, str) or not task.strip():
        raise ConstrainedError("the task is empty", "say what is to be done, such as 'put a mug in the cabinet'")
    if planner is not None or grounder is not None:
        raise ConstrainedError(
            "planner= and grounder= belong to Lumos, which this version does not have",
            "pass model= and one of the strategies act, react, knowagent",
        )
    for name, value in (("max_steps", max_steps), ("max_new_tokens", max_new_tokens)):
        if value is not None and value < 1:
            raise ConstrainedError(f"{name} is {value}", "use 1 or more, or leave it out")
    step_format(strategy)
    if not isinstance(knowledge, ActionKnowledge):
        knowledge = ActionKnowledge.from_lark(knowledge)
    loaded = load(model, device=device)
    household = knowledge.name == "household"
    world, note = None, ""
    if environment is None and household:
        try:
            environment = HouseholdEnv(stage(task, seed=seed))
        except GameError as error:
            # a house that is never done: its own goal is not the task
            world = HouseholdEnv(replace(make_game(seed), solved=lambda _: False))
            note = (
                f"nothing was executed: {error.message}. The slots were bound to an imagined house."
            )
    elif environment is None:
        note = f"nothing was executed: there is no environment for {knowledge.name!r}."
    steps = max_steps or (OPEN_LOOP_STEPS if environment is None else PLAY_STEPS)
    settings = Settings(
        strategy, constrained, steps, max_new_tokens,
        temperature=temperature, top_k=top_k, top_p=top_p,
        generator=torch.Generator().manual_seed(seed),
    )
    plan = Plan(task, knowledge.name, strategy, loaded.name, constrained, seed, note=note)
    run = Run(loaded, knowledge, plan, settings)
    with tqdm(total=steps, desc="steps", unit="step", disable=not progress, leave=False) as bar:

        def report(step: Step) -> None:
            bar.update()
            if on_step:
                on_step(step)

        if environment is None:
            if world is not None:
                opening = world.reset().split("Your task is to:")[0]
                run.memory = Memory(f"{opening}Your task is to: {task}")
            if on_start:
                on_start(plan)
            return imagine(run, report, world)
        plan.first_observation = environment.reset()
        if household:
            run.memory = Memory(plan.first_observation)
        if on_start:
            on_start(plan)
        return play(run, environment, report)

"""The protocols that an environment of a suite implements."""

from constrained.environments.base import TaskEnvironment, WithCommands, WithEffect, WithOutcome, WithView


def is_suite_environment(env) -> bool:
    """Whether it has a task, slots, measures, and says whether actions had an effect."""
    return all(isinstance(env, protocol) for protocol in (TaskEnvironment, WithEffect, WithOutcome)) and isinstance(
        env, (WithView, WithCommands)
    )

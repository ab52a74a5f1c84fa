"""Reflexion: try a task, reflect on why the trial failed, try again (Shinn et al., 2023, algorithm 1).

The evaluator is the environment's verdict on a trial. After a failed trial the model in the role "reflector" writes a
reflection; the last three are shown in the next trial. The embedded model was not trained on language, so for it the
memory itself is kept, if the environment allows it: what was seen where, and what was done in which situation.
"""

from __future__ import annotations

from constrained.agents.episode import Episode
from constrained.agents.messages import Requests, Strategy
from constrained.agents.plan import step_lines
from constrained.agents.prompts import KEPT_STEPS, instruction_that_fits
from constrained.agents.step_formats import shipped_grammar
from constrained.agents.step_writer import play_step
from constrained.environments.base import LearningMemory

ROLE = "reflector"

KEPT = 3
"""Most reflections that a trial is shown: the paper's bound on its memory (section 3)."""

LESSON_TOKENS = 200
"""Most tokens of a reflection; if fewer are left, there is no further trial."""

_HEAD = "Reflection:"


def reflexion(episode: Episode) -> Strategy:
    """Play the task until a trial succeeds or no trial is left."""
    reflections: list[str] = []
    trials = episode.settings.trials
    embedded = episode.writer.model(ROLE).is_embedded
    for trial in range(1, trials + 1):
        memory, history = episode.surroundings.memory, episode.surroundings.history
        first = episode.begin(f"trial {trial}")
        # `begin` has made a fresh memory; the embedded model gets the last trial's instead of reflections.
        if trial > 1 and embedded and isinstance(memory, LearningMemory):
            episode.surroundings.memory = memory.restart(first)
            episode.surroundings.history = history
        episode.hints = "\n".join(reflections[-KEPT:])
        while not episode.over:
            yield from play_step(episode)
        # No reflection is written that no trial would read, or about a trial that nothing judged.
        tokens = episode.writer.tokens_left()
        if episode.plan.success is not False or trial == trials or (tokens is not None and tokens < LESSON_TOKENS):
            return
        if not (embedded and isinstance(episode.surroundings.memory, LearningMemory)):
            lesson = yield from _reflect(episode, reflections[-KEPT:])
            reflections.append(f"Trial {trial} failed. {lesson}")


def _reflect(episode: Episode, earlier: list[str]) -> Requests[str]:
    """Let the reflector write about the trial that has just failed."""
    rules = episode.start.to_text() if episode.settings.knowledge_in_prompt else ""
    tries = [(rules, kept) for kept in (episode.settings.max_steps, *KEPT_STEPS)]
    prompt = instruction_that_fits(
        episode.writer.model(ROLE),
        (_instruction(episode, text, kept, earlier) for text, kept in [*tries, ("", KEPT_STEPS[-1])]),
    )
    answer = yield from episode.ask(
        prompt + _HEAD, shipped_grammar("steps/reflection"), role=ROLE, max_new_tokens=LESSON_TOKENS, begun=_HEAD
    )
    return answer.text.strip() if answer else ""


def _instruction(episode: Episode, knowledge_text: str, kept: int, earlier: list[str]) -> str:
    steps = episode.steps[max(len(episode.steps) - kept, 0) :]
    trajectory = "\n".join(line for step in steps for line in step_lines(step))
    parts = [
        knowledge_text,
        f"Task: {episode.plan.task}",
        "An agent tried this task and failed. What it did last, and what it observed:\n" + trajectory,
        f"The trial ended so: {episode.plan.note}." if episode.plan.note else "",
        "What it had been told before:\n" + "\n".join(earlier) if earlier else "",
        "Say in a few sentences, in one line that begins with `Reflection:`, what went wrong, and what it should do "
        "otherwise in the next trial, naming actions and things.",
    ]
    return "\n\n".join(filter(None, parts))

"""The training texts: problems with solutions for the base model, the agents' own prompts for the others."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tqdm import tqdm

from benchmarks.lumos import suites
from benchmarks.lumos.problems import (
    Worked,
    held_out_questions,
    in_facts,
    in_words,
    is_short,
    maths_problems,
    number,
    training_questions,
    worked,
    worked_question,
)
from benchmarks.lumos.recipe import LONGEST_TURN, WAYS, Recipe
from constrained.agents.episode import Episode
from constrained.agents.plan import Plan
from constrained.agents.scheduler import Rollout
from constrained.agents.settings import Settings
from constrained.agents.strategies.lumos.conversation import ground, plan_for
from constrained.decoding import Generation
from constrained.environments.base import Environment
from constrained.environments.maths.env import MathsEnv
from constrained.environments.maths.problems import WordProblem
from constrained.environments.suite import Suite, open_suite
from constrained.knowledge import ActionKnowledge
from constrained.models import LoadedModel
from constrained.training.encoding import TrainingText, prompt_and_answer

KNOWLEDGE = "lumos/maths_given"
"""The action space of Lumos's grounder for maths here: a formula may only contain numbers of the problem."""

MOST_TOKENS = 1_500
"""Most tokens that models may write for a task: longer than any annotation, and an end for a model that finds none."""

LEARNED_FROM = {"maths": "gsm8k", "questions": "strategyqa"}
"""Domain -> the suite that its training tasks are of."""


@dataclass(frozen=True)
class Dataset:
    """All training texts.

    Attributes
    ----------
    base : list of str
        Problems with their solutions and answers.
    asked : dict of str to list of list of str
        Domain and way of asking ("maths/iterative") -> role, prompt, answer.
    facts : dict
        How many problems there are, and why others are left out.
    """

    base: list[str]
    asked: dict[str, list[list[str]]]
    facts: dict


def suite_and_settings(way: str, suite: Suite, masks: bool, seed: int = 0) -> tuple[Suite, Settings]:
    """The suite and settings to play it with models that are asked in this way."""
    strategy, step_format = WAYS[way]
    lumos = strategy in suites.STRATEGIES
    most = suites.most_subgoals(suite) if lumos else None
    if lumos:
        maths = suite.name.partition("/")[0] in suites.MATHS
        suite = suites.grounded(suite)
        suite = replace(suite, knowledge=KNOWLEDGE) if maths else suite
    if most is not None and way == "low":
        most *= LONGEST_TURN
    settings = Settings(strategy, step_format, masks, suite.max_steps, MOST_TOKENS, seed=seed, max_subgoals=most)
    return suite, settings


@dataclass(frozen=True)
class Demonstration:
    """A task played with known answers: role and training text of each request; why it failed, if so."""

    texts: tuple[tuple[str, TrainingText], ...]
    failure: str = ""


def demonstrate(
    environment: Environment,
    knowledge: ActionKnowledge,
    models: Mapping[str, LoadedModel],
    settings: Settings,
    answers: Iterable[str],
) -> Demonstration:
    """Play a task, giving `answers` to the strategy's requests in order.

    The strategy itself asks, so a model reads in training exactly what it will read in play. The models write nothing;
    their tokenizers and contexts decide how much of a prompt fits. The settings must be without masks, so that each
    answer is a whole turn.
    """
    plan = Plan(environment.task, knowledge.name, settings.strategy, "demonstration", False, settings.seed)
    rollout = Rollout(Episode(models, knowledge, plan, settings, environment))
    texts: list[tuple[str, TrainingText]] = []
    rollout.start()
    for answer in answers:
        if rollout.over:
            break
        request = rollout.request
        texts.append((request.role, prompt_and_answer(request.prompt, answer)))
        rollout.answer(Generation(answer, request.role))
    return Demonstration(tuple(texts), _failure(rollout))


def _failure(rollout: Rollout) -> str:
    plan, over = rollout.episode.plan, rollout.over
    rollout.close()
    if rollout.failure:
        return f"{type(rollout.failure).__name__}: {rollout.failure}"
    if not over:
        return "the answers come to an end before the task"
    for step in plan.steps:
        if step.verdict != "ok":
            return f"{step.verdict} action: {step.action}"
    return "" if plan.success else "the answer is wrong"


def played(name: str, limit: int) -> Suite:
    """The first `limit` tasks of a suite that nothing is trained on."""
    if name in suites.MATHS:
        return open_suite(name, split="held_out", limit=limit)
    suite = open_suite(name)
    if name == LEARNED_FROM["questions"]:
        held_out = set(held_out_questions())
        suite = replace(suite, tasks=[task for task in suite.tasks if task.name in held_out])
    return replace(suite, tasks=suite.tasks[:limit])


def work_out(recipe: Recipe) -> tuple[list[Worked], list[str], Counter]:
    """The tasks to train on, the base model's texts, and the reasons why tasks have no solution by rule."""
    short: list[Worked] = []
    base: list[str] = []
    left_out: Counter = Counter()

    def add(found: Worked | str) -> None:
        if isinstance(found, Worked):
            short.append(found)
        else:
            left_out[found] += 1

    for problem in tqdm(maths_problems(recipe), desc="solutions by rule", unit="problem", disable=None):
        if is_short(problem, recipe):
            add(worked(problem))
        base.append(f"{problem.question}\n{in_words(problem)}\n{number(problem.answer)}")
    for count, question in enumerate(training_questions()):
        if count < recipe.questions:
            add(worked_question(question))
        if count < recipe.rows:
            base.append(f"{question.question}\n{in_facts(question)}\n{'yes' if question.answer else 'no'}")
    return short, base, left_out


def tokenizer_texts(short: list[Worked], base: list[str]) -> list[str]:
    """The texts to train the tokenizer on."""
    said = [text for found in short for answers in found.answers.values() for text in answers]
    instructions = [
        text for found in short for text in (plan_for(found.problem.question), ground("", {}, "Subgoal 1: "))
    ]
    return [*base, *said, *instructions]


def make_dataset(short: list[Worked], base: list[str], left_out: Counter, model: LoadedModel) -> Dataset:
    """Play all tasks in every way of asking with their known answers."""
    opened = {
        "maths": open_suite("gsm8k", split="train", limit=1),
        "questions": open_suite("strategyqa"),
    }
    questions = {task.name: task for task in opened["questions"].tasks}
    asked: dict[str, list[list[str]]] = {}
    for domain, suite in opened.items():
        tasks = [found for found in short if found.domain == domain]
        for way in dict.fromkeys(way for found in tasks for way in found.answers):
            key = f"{domain}/{way}"
            asked[key] = []
            for found in tqdm(tasks, desc=f"asked for {key}", unit="task", disable=None):
                one = replace(suite, tasks=[questions[found.problem.name]]) if domain == "questions" else suite
                one, settings = suite_and_settings(way, one, masks=False)
                knowledge = ActionKnowledge.from_lark(one.knowledge)
                env = _environment(found, one)
                made = demonstrate(env, knowledge, {"policy": model}, settings, found.answers[way])
                if made.failure:
                    left_out[f"{key}: {made.failure.partition(':')[0]}"] += 1
                    continue
                asked[key] += [[role, text.spans[0].text, text.spans[1].text] for role, text in made.texts]
    facts = {
        "problems": len(base),
        "taught": dict(Counter(found.domain for found in short)),
        "left out": dict(left_out.most_common()),
    }
    return Dataset(base, asked, facts)


def _environment(found: Worked, suite: Suite) -> Environment:
    """The environment of a task to train on: a question's is its suite's, with the passages to search."""
    if isinstance(found.problem, WordProblem):
        return MathsEnv(found.problem.question, found.problem.answer)
    [task] = suite.tasks
    return task.make()


def load_dataset(path: Path) -> Dataset | None:
    """A saved data set, if there is one."""
    return Dataset(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def training_texts(dataset: Dataset, way: str, domains: Iterable[str], roles: Iterable[str]) -> list[TrainingText]:
    """The texts of these domains for a model in these roles."""
    texts = [text for domain in domains for text in dataset.asked[f"{domain}/{way}"]]
    return [prompt_and_answer(prompt, answer) for role, prompt, answer in texts if role in roles]

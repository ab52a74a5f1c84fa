"""The training texts: problems with solutions for the base model, the agents' own prompts for the others."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tqdm import tqdm

from benchmarks.lumos import suites
from benchmarks.lumos.problems import Worked, in_words, is_short, number, training_problems, varied, worked
from benchmarks.lumos.recipe import WAYS, Recipe
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
"""The action space of Lumos's grounder here: a formula may only contain numbers of the problem."""


@dataclass(frozen=True)
class Dataset:
    """All training texts.

    Attributes
    ----------
    base : list of str
        Problems with their solutions and answers.
    asked : dict of str to list of list of str
        Way of asking -> role, prompt, answer.
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
    suite = replace(suites.grounded(suite), knowledge=KNOWLEDGE) if lumos else suite
    most = suites.most_subgoals(suite) if lumos else None
    return suite, Settings(strategy, step_format, masks, suite.max_steps, seed=seed, max_subgoals=most)


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


def work_out(recipe: Recipe) -> tuple[list[Worked], list[str], Counter]:
    """The problems to train on, the base model's texts, and the reasons why problems have no solution by rule."""
    short: list[Worked] = []
    base: list[str] = []
    left_out: Counter = Counter()
    problems = list(varied(training_problems(recipe), recipe))
    for dataset, problem in tqdm(problems, desc="solutions by rule", unit="problem"):
        found = worked(dataset, problem) if is_short(dataset, problem, recipe) else None
        if isinstance(found, Worked):
            short.append(found)
        elif found is not None:
            left_out[found] += 1
        if dataset == "gsm8k":
            base.append(_base_text(problem, in_words(problem)))
        elif isinstance(found, Worked):
            base.append(_base_text(problem, found.solution))
    return short, base, left_out


def _base_text(problem: WordProblem, solution: str) -> str:
    return f"{problem.question}\n{solution}\n{number(problem.answer)}"


def tokenizer_texts(short: list[Worked], base: list[str]) -> list[str]:
    """The texts to train the tokenizer on."""
    said = [text for found in short for answers in found.answers.values() for text in answers]
    instructions = [
        text for found in short for text in (plan_for(found.problem.question), ground("", {}, "Subgoal 1: "))
    ]
    return [*base, *said, *instructions]


def make_dataset(short: list[Worked], base: list[str], left_out: Counter, model: LoadedModel) -> Dataset:
    """Play all problems in every way of asking with their known answers."""
    asked: dict[str, list[list[str]]] = {way: [] for way in WAYS}
    opened = {name: open_suite(name, split="train", limit=1) for name in ("svamp", "gsm8k")}
    for way in WAYS:
        how = {name: suite_and_settings(way, suite, masks=False) for name, suite in opened.items()}
        spaces = {name: ActionKnowledge.from_lark(suite.knowledge) for name, (suite, _) in how.items()}
        for found in tqdm(short, desc=f"asked for {way}", unit="problem"):
            settings = how[found.dataset][1]
            env = MathsEnv(found.problem.question, found.problem.answer)
            made = demonstrate(env, spaces[found.dataset], {"policy": model}, settings, found.answers[way])
            if made.failure:
                left_out[f"{way}: {made.failure.partition(':')[0]}"] += 1
                continue
            asked[way] += [[role, text.spans[0].text, text.spans[1].text] for role, text in made.texts]
    facts = {
        "problems": len(base),
        "taught": dict(Counter(found.dataset for found in short)),
        "left out": dict(left_out.most_common()),
    }
    return Dataset(base, asked, facts)


def load_dataset(path: Path) -> Dataset | None:
    """A saved data set, if there is one."""
    return Dataset(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def training_texts(dataset: Dataset, way: str, roles: tuple[str, ...]) -> list[TrainingText]:
    """The texts for a model in these roles (none: all)."""
    return [
        prompt_and_answer(prompt, answer) for role, prompt, answer in dataset.asked[way] if not roles or role in roles
    ]

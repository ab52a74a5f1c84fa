"""What the models learn: the base model the problems as they are, the others what the agents will ask them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from tqdm import tqdm

from benchmarks.lumos.demonstrations import demonstrate
from benchmarks.lumos.problems import Worked, in_words, is_short, number, training_problems, varied, worked
from benchmarks.lumos.recipe import WAYS, Recipe
from constrained.agents.episode import Settings
from constrained.agents.strategies import GROUNDED
from constrained.agents.strategies.lumos.conversation import ground, plan_for
from constrained.agents.strategies.lumos.suites import grounded, most_subgoals
from constrained.environments.maths import MathsEnv
from constrained.environments.maths.problems import WordProblem
from constrained.environments.suite import Suite, open_suite
from constrained.files import to_json, write_whole
from constrained.knowledge import ActionKnowledge
from constrained.models import LoadedModel
from constrained.training.encoding import Span, TrainingText

KNOWLEDGE = "lumos/maths_given"
"""The space that Lumos's grounder acts in here: a formula holds numbers of the problem, and no others."""


@dataclass(frozen=True)
class Texts:
    """All that is learned.

    Attributes
    ----------
    base : list of str
        Problems with their solutions and answers.
    asked : dict of str to list of list of str
        Way of asking -> role, question, answer.
    facts : dict
        How many problems there are, and why others are left out.
    """

    base: list[str]
    asked: dict[str, list[list[str]]]
    facts: dict


def played(way: str, suite: Suite, masks: bool, seed: int = 0) -> tuple[Suite, Settings]:
    """How a suite is played where models are asked in this way."""
    strategy, step_format = WAYS[way]
    lumos = strategy in GROUNDED
    suite = replace(grounded(suite), knowledge=KNOWLEDGE) if lumos else suite
    most = most_subgoals(suite) if lumos else None
    return suite, Settings(strategy, step_format, masks, suite.max_steps, seed=seed, max_subgoals=most)


def work_out(recipe: Recipe) -> tuple[list[Worked], list[str], Counter]:
    """The problems to be taught, the base model's texts, and why problems have no solution by rule."""
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
            base.append(_told(problem, in_words(problem)))
        elif isinstance(found, Worked):
            base.append(_told(problem, found.solution))
    return short, base, left_out


def _told(problem: WordProblem, solution: str) -> str:
    return f"{problem.question}\n{solution}\n{number(problem.answer)}"


def to_cut(short: list[Worked], base: list[str]) -> list[str]:
    """What a tokenizer is learned on."""
    said = [text for found in short for answers in found.answers.values() for text in answers]
    instructions = [
        text for found in short for text in (plan_for(found.problem.question), ground("", {}, "Subgoal 1: "))
    ]
    return [*base, *said, *instructions]


def make_texts(short: list[Worked], base: list[str], left_out: Counter, model: LoadedModel) -> Texts:
    """Play all problems in every way with the answers that are known."""
    asked: dict[str, list[list[str]]] = {way: [] for way in WAYS}
    suites = {name: open_suite(name, split="train", limit=1) for name in ("svamp", "gsm8k")}
    for way in WAYS:
        how = {name: _played(way, suite) for name, suite in suites.items()}
        for found in tqdm(short, desc=f"asked for {way}", unit="problem"):
            knowledge, settings = how[found.dataset]
            problem = found.problem
            env = MathsEnv(problem.question, problem.answer)
            made = demonstrate(env, knowledge, {"policy": model}, settings, found.answers[way])
            if made.failure:
                left_out[f"{way}: {made.failure.partition(':')[0]}"] += 1
                continue
            asked[way] += [[role, text.spans[0].text, text.spans[1].text] for role, text in made.texts]
    facts = {
        "problems": len(base),
        "taught": dict(Counter(found.dataset for found in short)),
        "left out": dict(left_out.most_common()),
    }
    return Texts(base, asked, facts)


def _played(way: str, suite: Suite) -> tuple[ActionKnowledge, Settings]:
    suite, settings = played(way, suite, masks=False)
    return ActionKnowledge.from_lark(suite.knowledge), settings


def save(texts: Texts, path: Path) -> None:
    """Keep what took long to make."""
    write_whole(path, to_json({"base": texts.base, "asked": texts.asked, "facts": texts.facts}))


def saved(path: Path) -> Texts | None:
    """What `save` kept; None where it kept nothing."""
    return Texts(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def to_learn(texts: Texts, way: str, roles: tuple[str, ...]) -> list[TrainingText]:
    """The texts of a model that serves these roles; of one that serves all, where none is named."""
    return [
        TrainingText((Span(question, False), Span(answer, True)))
        for role, question, answer in texts.asked[way]
        if not roles or role in roles
    ]

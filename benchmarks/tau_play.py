"""Play tau-bench's and tau2-bench's tasks against the real tools: a model, random choice, or a search."""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks.tau_environment import LiveTask, TauEnv
from constrained.automaton.state import Prefix
from constrained.knowledge import ToolKnowledge
from constrained.knowledge.tool_policy.policy import slot_of

QUOTE = ord('"')

CHOOSERS = ("random", "search")
"""Who plays without a language model: by what is admitted, masks on."""

SEARCHED = 3_000
"""Calls that a search tries in copies of a task, at most."""

DEEPEST = 100
"""Calls in a row that it looks ahead, at most."""

LONGEST_NAME = 40
"""Characters of a known text that is tried as an argument."""

ASKED = "Shall I go ahead, at the price shown?"
"""What a search says where it may speak: one sentence."""

_WORD = re.compile(r"\b[a-z_]{3,40}(?=,|$)")
"""A word of a list, such as the name of an app."""

LISTED = 64
"""A tool with at most so many admitted calls is searched with all of them; of any other, with one."""


def play(
    domain: Any, knowledge: ToolKnowledge, split: str, tasks: Sequence[LiveTask], options: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Games against the real tools: a model's, masks on and off, or those of a chooser among the admitted calls."""
    for masks in (True,) if options.model in CHOOSERS else (True, False):
        counts: Counter[str] = Counter()
        seeds = range(options.seeds)
        rounds = [(task, seed) for seed in seeds for task in tasks]
        for task, seed in tqdm(
            rounds, desc=f"{domain.name}, masks {'on' if masks else 'off'}", unit="task", leave=False
        ):
            env = TauEnv(domain, task, knowledge)
            if options.model == "random":
                play_at_random(env, knowledge, options.max_steps, seed)
            elif options.model == "search":
                play_by_search(env, knowledge, options.max_steps)
            else:
                from constrained import generate_plan  # torch takes seconds to import

                generate_plan(
                    task.instruction, knowledge, environment=env, strategy=options.strategy, model=options.model,
                    constrained=masks, max_steps=options.max_steps, temperature=0.7, seed=seed,
                )  # fmt: skip
            counts.update(env.counts)
            counts["solved"] += env.fulfilled()
        yield {
            "domain": domain.name,
            "split": split,
            "model": Path(options.model).name,
            "masks": masks,
            "tasks": len(tasks),
            "seeds": options.seeds,
            "steps": options.max_steps,
            **{key: counts[key] for key in ("solved", "actions", "no call", "against the policy", "errors")},
        }


def play_at_random(env: TauEnv, knowledge: ToolKnowledge, max_steps: int, seed: int = 0) -> None:
    """Play with random calls: a tool is drawn from those that may follow, then its arguments byte by byte."""
    rng = random.Random(f"{env.name} {seed}" if seed else env.name)
    env.reset()
    for _ in range(max_steps):
        view = env.view()
        knowledge = knowledge.bind_view(view)
        if not knowledge.may_follow:
            break
        action = random_text(view[slot_of(rng.choice(knowledge.may_follow))].begin, rng)
        _, _, done = env.step(action)
        if done:
            break
        knowledge = knowledge.after(action)


def play_by_search(env: TauEnv, knowledge: ToolKnowledge, max_steps: int) -> None:
    """Play what a search in copies of the task yields: it looks ahead, and knows when the task is done.

    Depth first, calls that weren't made on the way before those that were, and no state twice; then what the plan
    doesn't need is left out. Without a plan of at most `max_steps` calls, nothing is played.
    """
    env.reset()
    plan = _search(env, knowledge)
    for skipped in range(len(plan) - 1, -1, -1):
        shorter = [*plan[:skipped], *plan[skipped + 1 :]]
        if _reaches(env, knowledge, shorter):
            plan = shorter
    for action in plan if len(plan) <= max_steps else ():
        env.step(action)


def _search(env: TauEnv, knowledge: ToolKnowledge) -> list[str]:
    """The calls to a goal; none if the search gave up."""
    seen = {env.digest()}
    path: list[str] = []
    vain: set[str] = set()
    words: dict[str, None] = {}
    stack = [(env, knowledge, iter(_candidates(env, knowledge, path, vain, words)))]
    for _ in range(SEARCHED):
        while stack and (action := next(stack[-1][2], "")) == "":
            stack.pop()
            del path[-1:]
        if not stack:
            break
        here, known, _ = stack[-1]
        there = here.copy()
        answer, _, done = there.step(action)
        words |= dict.fromkeys(_WORD.findall(answer))
        if there.fulfilled():
            return [*path, action]
        digest = there.digest()
        if digest == here.digest():
            vain.add(action)
        if done or len(stack) >= DEEPEST or digest in seen:
            continue
        seen.add(digest)
        path.append(action)
        known = known.bind_view(here.view()).after(action)
        stack.append((there, known, iter(_candidates(there, known, path, vain, words))))
    return []


def _candidates(
    env: TauEnv, knowledge: ToolKnowledge, path: Sequence[str], vain: Collection[str], words: Collection[str]
) -> list[str]:
    """The admitted calls that are tried: first those that weren't made yet, last those that once changed nothing."""
    view = env.view()
    knowledge = knowledge.bind_view(view)
    calls: list[str] = []
    for tool in knowledge.may_follow:
        begin = view[slot_of(tool)].begin
        if tool == env.tools.policy.message:
            asked = env.tools.write(tool, {"content": ASKED})
            calls += [] if asked in path else [asked]
        elif (listed := begin.texts(LISTED)) is not None:
            calls += [text.decode() for text in listed]
        else:
            calls += _of_known(env, tool, begin, words) or [random_text(begin, random.Random(env.name), closed=1.0)]
    return sorted(calls, key=lambda call: (call in vain, call in path))


def _of_known(env: TauEnv, tool: str, begin: Prefix, words: Collection[str]) -> list[str]:
    """The calls of a tool with one argument that name a text that is known, or a word that was shown."""
    properties = env.tools.calls[tool].schema.get("properties", {})
    if len(properties) != 1:
        return []
    (name,) = properties
    known = dict.fromkeys([*words, *_texts(dict(env.known))])
    written = (env.tools.write(tool, {name: text}) for text in known)
    return [call for call in written if (state := begin.read(call.encode())) is not None and state.accepting]


def _texts(value: Any) -> Iterator[str]:
    """Every text within a value that is as short as a name."""
    if isinstance(value, str) and len(value) <= LONGEST_NAME:
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(inner)


def _reaches(env: TauEnv, knowledge: ToolKnowledge, plan: Sequence[str]) -> bool:
    """Whether a plan is admitted and does the task."""
    there = env.copy()
    for action in plan:
        knowledge = knowledge.bind_view(there.view())
        if not knowledge.judge(action):
            return False
        there.step(action)
        knowledge = knowledge.after(action)
    return there.fulfilled()


def random_text(state: Prefix, rng: random.Random, closed: float = 0.1) -> str:
    """A random text from a state to its end; a string is closed with probability `closed` at each byte."""
    out = bytearray()
    while not state.accepting:
        following = sorted(state.first())
        out.append(QUOTE if QUOTE in following and rng.random() < closed else rng.choice(following))
        following_state = state.step(out[-1])
        assert following_state is not None
        state = following_state
    return out.decode()


def played_cells(row: Mapping[str, Any]) -> list[Any]:
    """A row of the table of games."""
    tasks = f"{row['tasks']} × {row['seeds']}" if row.get("seeds", 1) > 1 else row["tasks"]
    names = ("solved", "actions", "no call", "against the policy", "errors")
    domain = f"{row['domain']} ({row['split']})" if row.get("split") in ("tau2", "small") else row["domain"]
    return [domain, row["model"], "on" if row["masks"] else "off", tasks, *(row[name] for name in names)]


PLAYED = ["domain", "model", "masks", "tasks", "solved", "actions", "no call", "against the policy", "errors"]
"""The head of the table of games."""

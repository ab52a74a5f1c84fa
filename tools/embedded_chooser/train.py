"""Train the embedded chooser: python -m tools.embedded_chooser.train DOMAIN.pddl --as blocksworld --out FILE.

It imitates the best actions in all states of small problems that are drawn at random (`problems`): those that a
shortest plan begins with (`exhaustive`). PlanBench's own instances are never read. Each domain takes some minutes
on one core; a run goes on from its checkpoint.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from constrained.chooser.graphs import Encoder, Example, FeatureVocabulary
from constrained.chooser.network import Network, collate, imitation_loss
from constrained.planning import PlanningTask, read_domain
from tools.embedded_chooser.exhaustive import Space
from tools.embedded_chooser.problems import SIZES, draw_goal, draw_small, problem

Lesson = tuple[Example, np.ndarray]
"""A state, and which of its actions are good."""


def lessons(name: str, vocabulary: FeatureVocabulary, rng: random.Random, limit: int = 8_000) -> Iterator[Lesson]:
    """States of small problems with their best actions, without end."""
    while True:
        space = Space(PlanningTask(vocabulary.domain, problem(draw_small(name, rng))), limit)
        if not space.complete:
            continue
        made: list[Lesson] = []
        for _ in range(8):
            goal = draw_goal(name, space.changing(rng.randrange(len(space.states))), rng)
            distance = space.distances(goal)
            encoder = Encoder(vocabulary, space.task, goal)
            ends = [place for place, steps in enumerate(distance) if steps == 0]
            for number in range(16):
                # Any state, or one a few steps from the goal, where much of it holds already.
                place = rng.choice(ends) if number % 2 else rng.randrange(len(space.states))
                for _ in range(rng.randint(1, 8)):
                    if not space.next[place]:
                        break
                    if distance[place] > 0 and len(space.next[place]) > 1:
                        good = np.array([distance[after] == distance[place] - 1 for _, after in space.next[place]])
                        actions = [space.actions[action] for action, _ in space.next[place]]
                        made.append((encoder.encode(space.state(place), actions), good))
                        if rng.random() < 0.5:
                            break
                    place = rng.choice(space.next[place])[1]
        rng.shuffle(made)
        yield from made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("domain", type=Path, help="the domain's PDDL file")
    add("--as", dest="name", required=True, choices=tuple(SIZES), help="what draws its problems")
    add("--out", type=Path, required=True, help="checkpoint, a .pt file")
    add("--steps", type=int, default=3000)
    add("--batch", type=int, default=32)
    add("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    torch.manual_seed(options.seed)
    vocabulary = FeatureVocabulary(read_domain(options.domain.read_text(encoding="utf-8"), str(options.domain)))
    network = Network(vocabulary)
    average = torch.optim.swa_utils.AveragedModel(
        network, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.995)
    )
    optimizer = torch.optim.AdamW(network.parameters(), lr=1.5e-3, weight_decay=1e-4)
    step = 0
    if options.out.exists():
        saved = torch.load(options.out)
        network.load_state_dict(saved["network"])
        average.load_state_dict(saved["average"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
        rng = random.Random(f"{options.seed} {step}")
    # Batches are drawn from a pool of some thousand lessons that is renewed all the time: half a batch a step.
    source, pool = lessons(options.name, vocabulary, rng), list[Lesson]()
    total, right, began = 0.0, 0, time.process_time()
    while step < options.steps:
        fresh = options.batch // 2 if len(pool) >= 2_000 else 1_000
        pool += [next(source) for _ in range(fresh)]
        if len(pool) > 20_000:
            pool = rng.sample(pool, 15_000)
        rate = 1.5e-3 * min(1, (step + 1) / 100) * max(0.02, 1 - step / options.steps)
        for group in optimizer.param_groups:
            group["lr"] = rate
        drawn = rng.choices(pool, k=options.batch)
        batch = collate(vocabulary, [example for example, _ in drawn])
        good = torch.from_numpy(np.concatenate([good for _, good in drawn]))
        scores = network(batch, rng.randint(6, 16))
        loss = imitation_loss(scores, batch, good)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        average.update_parameters(network)
        step += 1
        total += loss.item()
        for number in range(batch.examples):
            own = batch.owner == number
            right += int(good[own][scores[own].argmax()])
        if step % 100 == 0 or step == options.steps:
            seen = (step - 1) % 100 + 1
            print(f"step {step}: loss {total / seen:.4f}, best action {right / seen / options.batch:.2%}, "
                  f"{time.process_time() - began:.0f} s", file=sys.stderr, flush=True)  # fmt: skip
            total, right = 0.0, 0
            torch.save({
                "network": network.state_dict(), "average": average.state_dict(), "optimizer": optimizer.state_dict(),
                "step": step,
            }, options.out)  # fmt: skip
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

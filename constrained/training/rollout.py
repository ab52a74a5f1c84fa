"""Play many household games at once with one language model, greedily.

Made for measuring a model while it is in training: all games advance step by
step together, so that a step is one batch. Actions are free, or held to the
commands that the game admits at that moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from constrained.agents.steps import step_prompt
from constrained.environments.household.memory import Memory
from constrained.training.examples import STEP_LIMIT

THOUGHT_TOKENS = 40
ACTION_TOKENS = 24


@dataclass
class Episode:
    """One game under way.

    Attributes
    ----------
    actions : list of str
        Everything tried, with or without effect.
    path : list of str
        What had an effect.
    """

    env: object
    memory: Memory
    actions: list[str] = field(default_factory=list)
    path: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    won: bool = False


def play_all(model, tokenizer, envs: Sequence, *, strategy: str, admissible: bool, limit: int = STEP_LIMIT):
    """Play every game to its end or to `limit` steps.

    Parameters
    ----------
    model, tokenizer
        A causal language model of transformers and its tokenizer.
    envs : sequence of household environments
    strategy : {"act", "react", "knowagent"}
    admissible : bool
        Whether actions are held to ``env.admissible()``.
    limit : int
        Steps, at most.

    Returns
    -------
    list of Episode
    """
    episodes = [Episode(env, Memory(env.reset())) for env in envs]
    for n in range(1, limit + 1):
        going = [episode for episode in episodes if not episode.won]
        if not going:
            break
        prompts = [step_prompt(e.memory.text(), strategy, n, e.path) for e in going]
        heads = [_ids(tokenizer, prompt) for prompt in prompts]
        if strategy != "act":
            newline = _ids(tokenizer, "\n")[0]
            thoughts = _extend(model, heads, newline, THOUGHT_TOKENS)
            for episode, head, thought in zip(going, heads, thoughts):
                episode.thoughts.append(tokenizer.decode(thought))
                head += thought + _ids(tokenizer, f"\nAction {n}: ")
        choices = None
        if admissible:
            choices = [[_ids(tokenizer, a) for a in episode.env.admissible()] for episode in going]
        answers = _extend(model, heads, tokenizer.eos_token_id, ACTION_TOKENS, choices)
        for episode, answer in zip(going, answers):
            action = tokenizer.decode(answer).strip()
            observation, _, episode.won = episode.env.step(action)
            episode.memory.update(action, observation)
            episode.actions.append(action)
            if episode.memory.had_effect:
                episode.path.append(action)
    return episodes


def scores(episodes: Sequence[Episode]) -> dict[str, float]:
    """Success, mean steps of the games won, and the share of actions without effect."""
    won = [episode for episode in episodes if episode.won]
    tried = sum(len(episode.actions) for episode in episodes)
    return {
        "games": len(episodes),
        "success": len(won) / len(episodes),
        "steps": sum(len(episode.actions) for episode in won) / max(len(won), 1),
        "no effect": 1 - sum(len(episode.path) for episode in episodes) / max(tried, 1),
    }


def _ids(tokenizer, text: str) -> list[int]:
    return tokenizer(text, add_special_tokens=False)["input_ids"]


@torch.inference_mode()
def _extend(model, heads, end: int, most: int, choices=None) -> list[list[int]]:
    """Greedy continuations up to `end`, which is left off.

    `choices` holds, for each row, the token sequences it may choose from.
    """
    rows, width = len(heads), max(map(len, heads))
    device = model.device
    ids = torch.zeros(rows, width, dtype=torch.long)
    mask = torch.zeros(rows, width, dtype=torch.long)
    for row, head in enumerate(heads):  # padded on the left
        ids[row, width - len(head) :] = torch.tensor(head)
        mask[row, width - len(head) :] = 1
    ids, mask = ids.to(device), mask.to(device)
    position = (mask.cumsum(1) - 1).clamp(min=0)
    answers: list[list[int]] = [[] for _ in heads]
    open_rows, cache = set(range(rows)), None
    for _ in range(most):
        output = model(
            input_ids=ids, attention_mask=mask, position_ids=position,
            past_key_values=cache, use_cache=True, logits_to_keep=1,
        )
        cache, logits = output.past_key_values, output.logits[:, -1].float()  # [rows, vocabulary]
        if choices is not None:
            for row in open_rows:
                allowed = _next(choices[row], answers[row], end)
                barred = torch.ones(logits.shape[1], dtype=torch.bool, device=device)
                barred[allowed] = False
                logits[row, barred] = -torch.inf
        best = logits.argmax(1)
        for row, token in enumerate(best.tolist()):
            if row in open_rows:
                if token == end:
                    open_rows.discard(row)
                else:
                    answers[row].append(token)
        if not open_rows:
            break
        ids, position = best[:, None], position[:, -1:] + 1
        mask = torch.cat([mask, torch.ones_like(ids)], 1)
    return answers


def _next(choices: list[list[int]], written: list[int], end: int) -> list[int]:
    size = len(written)
    return sorted({(c + [end])[size] for c in choices if c[:size] == written and size <= len(c)})

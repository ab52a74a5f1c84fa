"""Train a small Llama to play ScienceWorld from replayed gold paths of training variations.

    python -m tools.scienceworld_model.train --paths build/scienceworld/paths.jsonl

A whole episode is one text, so that each token is read once for all its decisions. The loss is on the actions and, with
a small weight, on everything else that is shown: names are learnt from there. Colours, letters and numbers that tell
boxes, wires, pots and unknown substances apart are exchanged anew in each pass, so that they are read and not known by
heart. An interrupted run, started again with the same arguments, goes on from its checkpoint.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
from torch.nn import functional as F

from constrained.environments.scienceworld.reading import Reading
from tools.embedded_model.pretraining import Recipe, make_model, rate_at
from tools.embedded_model.tokenizer import train_tokenizer

OUT = Path("build/scienceworld/model")
CONTEXT = 4096
LONGEST = 2600
"""Tokens; longer episodes are left out."""
SHOWN = 0.1
"""Weight of a token that is shown, where one of an action weighs 1."""
SHARE, FEW = 36, 8
"""Replays that each task has at least in a pass, if it has so few of its own at least."""
WORDS = r"\n|[A-Za-z]+ ?|[0-9] ?|[^A-Za-z0-9\s]+ ?| +"
"""How a text is split: a word keeps the space after it, so that an action has the same tokens written and read."""

COLOURS = ("red", "green", "blue", "yellow", "orange", "purple", "violet", "black")
_EXCHANGED = (
    (rf"\b({'|'.join(COLOURS)})(?= box\b)", ("red", "green", "blue", "yellow", "orange", "purple")),
    (rf"\b({'|'.join(COLOURS)})(?= wire\b)", ("red", "green", "blue", "yellow", "orange", "black")),
    (rf"\b({'|'.join(COLOURS)})(?= light bulb\b)", ("red", "green", "blue", "yellow", "orange", "violet")),
    (r"(?<=\bflower pot )(\d)\b", tuple("123456789")),
    (r"(?:(?<=\bsubstance )|(?<=\bmaterial )|(?<=\bplane )|(?<=\bplanes \()|(?<=\(\w, ))([a-z])\b(?! \w)",
     tuple("abcdefghijklmnopqrstuvwxyz")),
)  # fmt: skip


MARK, END_MARK = "\ue000", "\ue001"


def marked(row: dict) -> str:
    """The text of a replay, with marks around the actions to learn."""
    views = iter([row, *row["steps"]])

    def look() -> tuple[str, str]:
        view = next(views)
        return view["look"], view["inventory"]

    reading = Reading(row["description"], look)
    for step in row["steps"]:
        action = f"{MARK}{step['action']}{END_MARK}" if step["learn"] else step["action"]
        reading.update(action, step["answer"])
    return reading.whole()


def exchanged(text: str, rng: random.Random) -> str:
    """The text with colours, letters and numbers exchanged."""
    for pattern, values in _EXCHANGED:
        to = dict(zip(values, rng.sample(values, len(values))))
        text = re.sub(pattern, partial(_exchange, to), text)
    return text


def _exchange(to: dict[str, str], match: re.Match[str]) -> str:
    return to.get(match[1], match[1])


def rows_of(path: Path) -> list[dict]:
    """The replays in a file that have steps to learn."""
    return [row for line in path.read_text().splitlines() if (row := json.loads(line))["steps"]]


def balanced(rows: Sequence[dict]) -> list[dict]:
    """The replays, those of tasks with few variations several times; of hardly any, three times at most."""
    of_task: dict[str, list[dict]] = {}
    for row in rows:
        of_task.setdefault(row["task"], []).append(row)
    counts = {name: max(len(group), SHARE) if len(group) >= FEW else 3 * len(group) for name, group in of_task.items()}
    return [group[i % len(group)] for name, group in of_task.items() for i in range(counts[name])]


def encode(tokenizer, text: str) -> tuple[list[int], list[int], list[float]]:
    """Ids, the label at each position (the next token, or the end token after an action) and the labels' weights."""
    ids: list[int] = []
    labels: list[int] = []
    weights: list[float] = []
    pieces = re.split(f"{MARK}(.*?){END_MARK}", text)
    for number, tokens in enumerate(tokenizer(pieces, add_special_tokens=False)["input_ids"]):
        if number % 2:
            labels += [*tokens, tokenizer.eos_token_id]  # the first is predicted by the token before the action
            weights += [1.0] * (len(tokens) + 1)
        else:
            skip = 1 if number else 0  # the token after an action has the end token as label before it
            labels += tokens[skip:] if number else tokens[1:]
            weights += [SHOWN] * (len(labels) - len(weights))
        ids += tokens
    return ids[:-1], labels[: len(ids) - 1], weights[: len(ids) - 1]


def batches(texts: Sequence[str], tokenizer, size: int, seed: int, epoch: int) -> Iterator[tuple[torch.Tensor, ...]]:
    """One pass over the texts in batches of at most `size` tokens, padding included."""
    rng = random.Random(f"{seed} {epoch}")
    rows = [encode(tokenizer, exchanged(text, rng)) for text in texts]
    rows = [row for row in rows if len(row[0]) < LONGEST]
    rows.sort(key=lambda row: len(row[0]) + rng.random() * 60)
    groups: list[list] = []
    for row in rows:
        if groups and (len(groups[-1]) + 1) * max(len(row[0]), *(len(r[0]) for r in groups[-1])) <= size:
            groups[-1].append(row)
        else:
            groups.append([row])
    rng.shuffle(groups)
    for group in groups:
        width = max(len(row[0]) for row in group)
        yield (
            torch.tensor([[*ids, *[0] * (width - len(ids))] for ids, _, _ in group]),
            torch.tensor([[*labels, *[0] * (width - len(labels))] for _, labels, _ in group]),
            torch.tensor([[*weights, *[0.0] * (width - len(weights))] for _, _, weights in group]),
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.scienceworld_model.train", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--paths", type=Path, nargs="+", default=[Path("build/scienceworld/paths.jsonl")])
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--work", type=Path, default=Path("build/scienceworld/state.pt"))
    parser.add_argument("--passes", type=int, default=20)
    parser.add_argument("--hidden", type=int, default=160)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=4096, help="tokens")
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--minutes", type=float, help="fit the schedule to this many minutes instead of to --passes")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    texts = [marked(row) for row in balanced([row for path in options.paths for row in rows_of(path)])]
    bare = [re.sub(f"[{MARK}{END_MARK}]", "", text) for text in texts]
    tokenizer = train_tokenizer(bare, 1400, context=CONTEXT, split=WORDS)
    recipe = Recipe(
        hidden=options.hidden, layers=options.layers, heads=options.hidden // 32, inner=options.hidden * 5 // 2,
        rate=options.rate, seed=options.seed,
    )  # fmt: skip
    model = make_model(recipe, tokenizer, CONTEXT)
    total = sum(len(encode(tokenizer, text)[0]) for text in texts)
    print(f"{len(texts)} texts, {total} tokens, {sum(p.numel() for p in model.parameters())} parameters", flush=True)
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim == 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": recipe.decay}, {"params": vectors, "weight_decay": 0.0}],
        lr=recipe.rate, betas=(0.9, 0.98),
    )  # fmt: skip
    began, spent, epoch, losses = time.monotonic(), 0.0, 0, []
    if options.work.exists():
        state = torch.load(options.work, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        spent, epoch = state["spent"], state["epoch"]
    progress = spent
    model.train()
    while progress < 1:
        made = list(batches(texts, tokenizer, options.batch, options.seed, epoch))
        for number, (ids, labels, weights) in enumerate(made):
            for group in optimizer.param_groups:
                group["lr"] = rate_at(progress, recipe)
            with torch.autocast("cpu", torch.bfloat16):
                hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state
                wanted = weights > 0
                logits = model.lm_head(hidden[wanted]).float()
            each = F.cross_entropy(logits, labels[wanted], reduction="none")
            of_actions = weights[wanted] == 1
            loss = (each * weights[wanted]).sum() / weights[wanted].sum()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            losses.append(each[of_actions].mean().item())
            minutes = (time.monotonic() - began) / 60
            progress = (
                spent + minutes / options.minutes
                if options.minutes
                else (epoch + (number + 1) / len(made)) / options.passes
            )
            if progress >= 1:
                break
        epoch += 1
        recent = losses[-len(made) :]
        print(f"pass {epoch}, {minutes:.1f} min, {progress:.0%}, loss {sum(recent) / len(recent):.4f}", flush=True)
        options.work.parent.mkdir(parents=True, exist_ok=True)
        torch.save(
            {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "spent": progress, "epoch": epoch},
            options.work,
        )
        save(model, tokenizer, options.out)


def save(model, tokenizer, folder: Path) -> None:
    """Write weights, configuration and tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    model.generation_config.max_new_tokens = 64
    model.config.household_memory = True
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings["tokenizer_class"] = "PreTrainedTokenizerFast"
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")


if __name__ == "__main__":
    main()

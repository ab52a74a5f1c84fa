"""Train the network that plays ScienceWorld from replayed gold paths of training variations.

    python -m tools.scienceworld_model.train --paths build/scienceworld/paths.jsonl

Each choice of a replay is an example: what was read so far, what was admitted, what was done. In copies of each replay
names are exchanged, so that they are read and not known by heart: colours, letters and numbers that tell boxes, wires,
pots and unknown substances apart; the colours of paint, with what they mix to; and what the task names, for other words
or words that don't exist. Of each task as many replays are read in a pass.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save
from torch.nn import functional as F
from tqdm import tqdm

from constrained import ActionKnowledge
from constrained.chooser.reader import Moment, Reader
from constrained.chooser.story import Story, Words, blocks_of, forms_of, read
from constrained.chooser.weights import TEXTS
from constrained.environments.scienceworld.reading import ScienceWorldMemory
from constrained.files import write_whole

OUT = Path("build/scienceworld/model.safetensors")
EXAMPLES = 100
"""Copies of a task's replays, at least."""
RENAMED = 0.75
"""Share of the copies in which what the task names is called otherwise."""
MOMENTS = 24
"""Of a replay, that are read in a pass."""
COLOURS = ("red", "green", "blue", "yellow", "orange", "purple", "violet", "black")
_EXCHANGED = (
    (rf"\b({'|'.join(COLOURS)})(?= box\b)", ("red", "green", "blue", "yellow", "orange", "purple")),
    (rf"\b({'|'.join(COLOURS)})(?= wire\b)", ("red", "green", "blue", "yellow", "orange", "black")),
    (rf"\b({'|'.join(COLOURS)})(?= light bulb\b)", ("red", "green", "blue", "yellow", "orange", "violet")),
    (r"(?<=\bflower pot )(\d)\b", tuple("123456789")),
    (r"(?:(?<=\bsubstance )|(?<=\bmaterial )|(?<=\bplane )|(?<=\bplanes \()|(?<=\(\w, )|(?<=\bunknown ))([a-z])\b",
     tuple("abcdefghijklmnopqrstuvwxyz")),
)  # fmt: skip

_PAINTS = ("red", "blue", "yellow")
_MIXED = {("blue", "red"): "violet", ("blue", "yellow"): "green", ("red", "yellow"): "orange"}
_TWICE = ("red-orange", "yellow-orange", "yellow-green", "green-blue", "violet-red", "violet-blue")
_PAINT = re.compile(r"\b((?:red|blue|yellow|violet|green|orange)(?:-\w+)?)(?=(?: and [\w-]+)? paint\b)", re.IGNORECASE)

_NAMED = re.compile(
    r"(?:boil|melt|freeze|state of matter of|determine if|temperature of|melting point of|stages of|to grow) "
    r"([a-z ]+?)(?= is | plant| located|[.,])|create substance '([a-z ]+)'|planes \(([a-z ]{2,}), ([a-z ]{2,})\)"
)
"""What a task names, so that it can be called otherwise."""
_RECIPE = re.compile(r"you need to mix ([a-z ,]+)")
_KEPT = {"", "water", "ice", "blue paint", "red paint", "yellow paint", "substance", "seed", "trait"}
WORDS = (
    "tin lead copper brass zinc iron steel gold silver mercury gallium titanium platinum rubber plastic glass wood wax "
    "paper ceramic cotton butter cheese honey milk sugar salt flour oil candle coin nail fork spoon knife key ring "
    "bottle plate brick stone sand clay soap sponge cake bread jam cherry peach grape lemon avocado sauce soup syrup"
).split()
"""Some of what the things that a task names may be called instead."""


@dataclass
class Replay:
    """A replay as it was read, with its choices."""

    task: str
    variation: int
    blocks: list[str]
    views: list[dict]
    actions: list[str]
    learn: list[bool]


def replays(paths: Sequence[Path]) -> list[Replay]:
    """The replays of some files."""
    found = []
    for path in paths:
        for row in map(json.loads, path.read_text().splitlines()):
            if row["steps"]:
                found.append(_replay(row))
    return found


def _replay(row: dict) -> Replay:
    views = iter([row, *row["steps"]])

    def look() -> tuple[str, str]:
        view = next(views)
        return view["look"], view["inventory"]

    reading = ScienceWorldMemory(row["description"], look)
    for step in row["steps"]:
        reading.update(step["action"], step["answer"])
    steps = row["steps"]
    for step in steps:
        if "LOOSE" not in step["slots"]:
            step["slots"]["LOOSE"] = [x for x in step["slots"].get("MOVABLE", ()) if x not in step["slots"]["HELD"]]
        if not any("wire" in name for name in step["slots"].get("THING", ())):
            step["slots"]["TERMINAL"] = []
    return Replay(
        row["task"], row["variation"], blocks_of(reading.whole()), [step["slots"] for step in steps],
        [step["action"] for step in steps], [step["learn"] for step in steps],
    )  # fmt: skip


def exchanged(replay: Replay, rng: random.Random) -> Replay:
    """The replay with colours, letters and numbers exchanged."""
    rules = [
        (re.compile(pattern), dict(zip(values, rng.sample(values, len(values))))) for pattern, values in _EXCHANGED
    ]
    if "paint" in replay.task:
        rules.append((_PAINT, _paints(rng)))
    named = _named(replay) if rng.random() < RENAMED else []
    if named:
        rules.append((re.compile(rf"\b({'|'.join(map(re.escape, named))})\b"), {one: _name(rng, one) for one in named}))
    done: dict[str, str] = {}

    def change(text: str) -> str:
        if text not in done:
            new = text
            for pattern, to in rules:
                new = pattern.sub(lambda match, to=to: to.get(match[1], match[1]), new)
            done[text] = new
        return done[text]

    return Replay(
        replay.task, replay.variation, list(map(change, replay.blocks)),
        [{slot: list(map(change, values)) for slot, values in view.items()} for view in replay.views],
        list(map(change, replay.actions)), replay.learn,
    )  # fmt: skip


def _paints(rng: random.Random) -> dict[str, str]:
    """A random exchange of the primary colours, and the exchange of their mixtures that follows from it."""
    to = dict(zip(_PAINTS, rng.sample(_PAINTS, 3)))
    to |= {mixed: _MIXED[tuple(sorted(map(to.__getitem__, two)))] for two, mixed in _MIXED.items()}  # type: ignore[index]
    words = {frozenset(one.split("-")): one for one in _TWICE}
    return to | {one: words[frozenset(map(to.__getitem__, one.split("-")))] for one in _TWICE}


def _named(replay: Replay) -> list[str]:
    """What a replay's task names, and its recipe, the longest first."""
    found = [name.strip() for match in _NAMED.findall(replay.blocks[0].split("\n")[0]) for name in match]
    for block in replay.blocks[1:]:
        found += [name.strip() for recipe in _RECIPE.findall(block) for name in recipe.split(",")]
    return sorted({name for name in found if "unknown" not in name} - _KEPT, key=lambda name: (-len(name), name))


def _name(rng: random.Random, name: str) -> str:
    """Another name of as many words."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return " ".join(
        rng.choice(WORDS) if rng.random() < 0.5 else "".join(rng.choices(letters, k=7)) for _ in name.split()
    )


def examples(words: Words, knowledge: ActionKnowledge, replay: Replay) -> tuple[Story, list[Moment], Counter]:
    """A replay's story, its moments, and by form how often an action was repeated."""
    story, moments, repeated = Story(words, replay.blocks[0]), [], Counter()
    for n, (view, action, learn, block) in enumerate(
        zip(replay.views, replay.actions, replay.learn, replay.blocks[1:])
    ):
        look = story.look(_forms(knowledge, view), view)
        form, *names = story.parse(action)
        if form >= 0:
            repeated[form] = max(repeated[form], story.repeated(action))
        slots = [words.slots[slot] for slot in words.of_form(form)] if form >= 0 else []
        if learn and form >= 0 and all(name in view.get(slot, ()) for slot, name in zip(slots, names)):
            first, second = (look.names.index(name) for name in names)
            moments.append(
                Moment(0, n, look, (form, first, second), story.second(look, names[0]) if names[1] else None)
            )
        story.update(block)
    return story, moments, repeated


_forms_known: dict[tuple, list[str]] = {}


def _forms(knowledge: ActionKnowledge, view: dict) -> list[str]:
    view = {"OTHER": [], **view}
    key = tuple((slot, values == [""]) for slot, values in sorted(view.items()) if values)
    if key not in _forms_known:
        _forms_known[key] = forms_of(knowledge, view)
    return _forms_known[key]


def loss_of(reader: Reader, batch: Sequence[tuple[Story, list[Moment]]]) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss of each moment, and whether its action would have been taken, both of shape (moments,)."""
    stories = [story for story, _ in batch]
    moments = [
        Moment(number, one.step, one.look, one.chosen, one.second)
        for number, (_, some) in enumerate(batch)
        for one in some
    ]
    first, second = reader(stories, moments)
    chosen = torch.tensor([moment.chosen for moment in moments])
    target = chosen[:, 0] * first.shape[2] + chosen[:, 1]
    each = F.cross_entropy(first.flatten(1), target, reduction="none")
    right = first.flatten(1).argmax(1) == target
    if second is not None:
        two = torch.tensor([moment.second is not None for moment in moments])
        each = each.index_add(0, two.nonzero()[:, 0], F.cross_entropy(second[two], chosen[two, 2], reduction="none"))
        right &= ~two | (second.argmax(1) == chosen[:, 2])
    return each, right


def batches(groups: dict[str, list], per_task: int, size: int, rng: random.Random) -> Iterator[list]:
    """One pass: `per_task` replays of each task, in batches of about `size` moments."""
    drawn = []
    for some in groups.values():
        for one in (rng.sample(some, len(some)) * (1 + per_task // len(some)))[:per_task]:
            story, moments = rng.choice(one)
            drawn.append((story, rng.sample(moments, min(len(moments), MOMENTS))))
    rng.shuffle(drawn)
    batch: list = []
    for one in drawn:
        batch.append(one)
        if sum(len(moments) for _, moments in batch) >= size:
            yield batch
            batch = []
    if batch:
        yield batch


def save_reader(path: Path, reader: Reader, repeats: Mapping[int, int]) -> None:
    """Write a network, in half precision, with the words that it knows."""
    words = reader.words
    head = {
        "words": list(words.words), "forms": words.forms, "width": reader.width, "embedded": reader.embedded,
        "repeats": {str(form): count for form, count in sorted(repeats.items())},
    }  # fmt: skip
    tensors = {name: value.detach().half().contiguous() for name, value in reader.state_dict().items()}
    write_whole(path, save(tensors, {TEXTS: json.dumps(head)}))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.scienceworld_model.train", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--paths", type=Path, nargs="+", default=[Path("build/scienceworld/paths.jsonl")])
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--minutes", type=float, default=40, help="of training (default: 40)")
    parser.add_argument("--copies", type=int, default=2, help="of each replay, or more (default: 2)")
    parser.add_argument("--per-task", type=int, default=24, help="replays in a pass (default: 24)")
    parser.add_argument("--batch", type=int, default=128, help="moments (default: 128)")
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--embedded", type=int, default=64)
    parser.add_argument("--dropout", type=float, default=0.3)
    parser.add_argument("--held-out", type=int, default=0, help="variations of each task that are only measured")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    rng = random.Random(options.seed)
    knowledge = ActionKnowledge.from_lark("scienceworld")
    found = replays(options.paths)
    counts = Counter(
        word for one in found for text in (*one.blocks, *one.actions) for word in set(read(text, [10, 20, 30]))
    )
    forms = sorted({form for one in found for view in one.views for form in _forms(knowledge, view)})
    words = Words.of(sorted(word for word, count in counts.items() if count > 2), forms)
    groups: dict[str, list] = {}
    measured, repeated = [], Counter()
    # Of each task the first variations are only measured; tasks with few replays are read in more copies.
    held = {
        task: sorted({one.variation for one in found if one.task == task})[: options.held_out]
        for task in {one.task for one in found}
    }
    of_task = Counter(one.task for one in found)
    for one in tqdm(found, desc="reading", disable=None):
        kept = one.variation not in held[one.task]
        made = []
        copies = max(options.copies, EXAMPLES // of_task[one.task])
        for copy in range(copies if kept else 1):
            *example, most = examples(words, knowledge, exchanged(one, rng) if copy else one)
            made.append(example)
            for form, count in most.items():
                repeated[form] = max(repeated[form], count)
        if kept and made[0][1]:
            groups.setdefault(one.task, []).append(made)
        elif made[0][1]:
            measured.append(made[0])
    reader = Reader(words, options.width, options.embedded, options.dropout)
    print(f"{sum(map(len, groups.values()))} replays, {len(words.words)} words, {len(forms)} forms, "
          f"{sum(p.numel() for p in reader.parameters())} parameters", flush=True)  # fmt: skip
    optimizer = torch.optim.AdamW(reader.parameters(), lr=options.rate, weight_decay=0.02, betas=(0.9, 0.98))
    # Passes until the time is over: the rate rises in the first 2 % of it, and falls in the last 60 %.
    began, passes, progress = time.monotonic(), 0, 0.0
    while progress < 1:
        reader.train()
        losses, rights = [], []
        for batch in batches(groups, options.per_task, options.batch, rng):
            progress = (time.monotonic() - began) / 60 / options.minutes
            for group in optimizer.param_groups:
                group["lr"] = options.rate * min(1, progress / 0.02) * max(0.02, min(1, (1 - progress) / 0.6))
            each, right = loss_of(reader, batch)
            each.mean().backward()
            torch.nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            losses.append(each.mean().item())
            rights.append(right.float().mean().item())
            if progress >= 1:
                break
        passes += 1
        loss, share = (sum(values) / len(values) for values in (losses, rights))
        line = f"pass {passes}, {progress:.0%}, loss {loss:.3f}, right {share:.1%}"
        if measured and passes % 5 == 0:
            reader.eval()
            with torch.inference_mode():
                parts = [loss_of(reader, measured[i : i + 8]) for i in range(0, len(measured), 8)]
            each, right = (torch.cat(part) for part in zip(*parts))
            line += f"; held out: loss {each.mean():.3f}, right {right.float().mean():.1%}"
        print(line, flush=True)
        save_reader(options.out, reader, dict(repeated))


if __name__ == "__main__":
    main()

"""The model card of the embedded model, written from the facts of its run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill

WIDTH = 100
"""Width of a paragraph."""

HEAD = """---
license: apache-2.0
library_name: transformers
pipeline_tag: text-generation
tags: [household, planning, text-games]
---

# Embedded household planner

A language model of {parameters:,} parameters that plays household text games (ALFWorld's rooms, commands and six
kinds of task). It ships with the project `constrained` as the default of `generate_plan`, and it is good for nothing
else: it has read no other text.

It is trained from nothing by `tools/embedded_model/train.py`, which writes this page.

## Data

{source}: {games:,} games; {held_out} more were held out for tuning. A rule-based expert
(`constrained/environments/household/expert.py`) plays each game once undisturbed, {disturbed} times with random
actions thrown in ({noises} of its steps), {other} times with another task that the room allows, and {informed} more
that begins with what
an exploration found; the label is always the expert's own choice. The expert sees what an agent sees, a memory of the
texts so far. Beyond that it knows a prior counted over the same training games: how often an object of a type lies in a
receptacle of a type. That makes {examples:,} decisions. No validation game is among them.

## Recipe

Llama: {layers} layers, width {hidden}, {heads} heads, inner width {inner}, tied embeddings. Tokenizer: byte-level BPE
with {entries:,} entries, learnt on the examples. Each decision is shown in one of three step formats (`act`, `react`,
`knowagent`), drawn anew in each pass; the loss is on the thought and the action only. AdamW, peak rate {rate}, weight
decay {decay}, warm-up {warmup:.0%}, then a cosine; batches of up to {batch:,} tokens; {precision} products, float32
weights; seed {seed}. {tokens:,} tokens in {steps:,} steps ({passes:.1f} passes), {minutes:.0f} minutes on {threads}
CPU threads; last loss {loss:.4f} nats a token.

    {command}

Weights: {dtype}, {size:,} bytes.
"""

SCORES = """
## Scores

Greedy decoding, at most 50 steps a game. *Masked*: within the token masks, as agents play (no action a second
time where nothing has changed); *free*: anything goes, and what the game does not understand costs a step.
"""

TABLE = """
{title}

| format | actions | games | won | steps when won | actions without effect |
|---|---|---|---|---|---|
"""


LEARNED = """
## Self-learning

What stands above is about the model that this one began as. These weights are those after round {number} of
knowledgeable self-learning (KnowAgent, Algorithm 1), the round's adapter merged into them. Each round made {runs:,}
runs of {tasks:,} training games ({train}), as many of each; it kept what won and passed the filter (rule `{rule}`),
of each game the shortest run of all rounds, and tuned on that. Measured on {suite}; seed {seed}.

    {command}

| round | won | steps when won | invalid | misordered | pruned mass | kept | merged | texts |
|---|---|---|---|---|---|---|---|---|
"""


def wrapped(text: str) -> str:
    """The text with its paragraphs wrapped, but not front matter, headings, tables and code."""
    paragraphs = text.rstrip("\n").split("\n\n")
    for number, paragraph in enumerate(paragraphs):
        if not paragraph.lstrip("\n").startswith(("---", "#", "|", "    ")):
            paragraphs[number] = fill(paragraph, WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n\n".join(paragraphs) + "\n"


def model_card(facts: Mapping, tables: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    """The card's text.

    Parameters
    ----------
    facts : mapping
        The fields of `HEAD`.
    tables : mapping
        Title -> "format, masked or free" -> the result of `train.play_games`.
    """
    text = wrapped(HEAD.format(**facts) + (SCORES if tables else ""))
    for title, rows in tables.items():
        text += TABLE.format(title=title)
        for name, row in rows.items():
            strategy, actions = name.split(", ")
            text += (
                f"| `{strategy}` | {actions} | {row['games']} | {row['success']:.1%} "
                f"| {row['steps']:.1f} | {row['no effect']:.1%} |\n"
            )
    return text


def with_self_learning(card: str, facts: Mapping, rounds: Sequence[Mapping]) -> str:
    """The card with a section on self-learning at its end, replacing an earlier one.

    `facts` are the fields of `LEARNED`; `rounds` the reports up to the round whose weights these are.
    """
    mark = LEARNED.split("\n\n")[0]
    text = card.split(mark)[0].rstrip("\n") + "\n" + wrapped(LEARNED.format(**facts))
    for report in rounds:
        test = report["test"][facts["suite"]]
        steps = f"{test['steps of won']:.1f}" if test["won"] else "–"
        made = (f"{report[key]:,}" if key in report else "–" for key in ("kept", "merged", "texts"))
        text += (
            f"| {report['round']} | {test['success %']:.1f}% | {steps} | {test['invalid %']:.2f}% "
            f"| {test['misordered %']:.2f}% | {test['pruned mass %']:.2f}% | {' | '.join(made)} |\n"
        )
    return text

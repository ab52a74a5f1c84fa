"""Play whole sets of games with an agent, masks on and off, and print the success table.

    constrained bench agents --environment alfworld --split valid_seen

Every finished game is one line of a `.jsonl` file in `--output`; a run that was interrupted
goes on with the games that are missing. Invalid and misordered follow KnowAgent's Table 3 as
defined here: *invalid* has no such action or arguments that are not there, *misordered* is an
action that the rules don't admit at that point.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from constrained import __version__
from constrained.agents.plan import Plan
from constrained.agents.steps import STRATEGIES
from constrained.cli.output import to_json, write_whole
from constrained.environments.household import Game, HouseholdEnv, load_games, make_game
from constrained.environments.household.memory import Memory
from constrained.errors import ConstrainedError
from constrained.knowledge import ActionKnowledge

if TYPE_CHECKING:  # torch takes seconds to import: only who plays pays for it
    from constrained.models.load import LoadedModel

PAPER_SEEN = {
    "ReAct, Llama-2-7b / 13b / 70b": (1.43, 13.58, 41.43),
    "FireAct, Llama-2-7b / 13b / 70b": (27.86, 47.86, 77.85),
    "KnowAgent, Llama-2-7b / 13b / 70b": (29.26, 54.29, 77.14),
}
"""Success in percent on the same 140 games (KnowAgent, Table 1, ALFWorld seen)."""

SPLIT_SIZES = {"train": 3553, "valid_seen": 140}
OWN_GAMES = 60
"""Self-made games played by default."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `constrained bench agents`."""
    parser.add_argument("--environment", choices=("alfworld", "household"), default="alfworld",
                        help="alfworld: the published games; household: games made from the seed, no data needed")
    parser.add_argument("--split", choices=tuple(SPLIT_SIZES), default="valid_seen", help="of alfworld's games")
    parser.add_argument("--strategy", action="append", choices=STRATEGIES, help="repeatable; default: knowagent")
    parser.add_argument("--masks", choices=("on", "off", "both"), default="both", help="default: both")
    parser.add_argument("--model", default=None, help="folder, GGUF file or hub name (default: the embedded model)")
    parser.add_argument("--device", default=None)
    parser.add_argument("--games", type=int, default=None, help="only the first so many")
    parser.add_argument("--max-steps", type=int, default=50, help="default 50: ALFWorld's and KnowAgent's limit")
    parser.add_argument("--repeats", action="store_true",
                        help="masks admit again what was done before in the same situation, to compare")
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("runs/agents"), help="folder of the runs (default: runs/agents)")
    parser.add_argument("--json", type=Path, help="write the table as JSON to this file")


def run_command(options: argparse.Namespace) -> int:
    """Play, print the table, write the JSON."""
    from constrained.models.load import load

    loaded = load(options.model, device=options.device)
    knowledge = ActionKnowledge.from_lark("household")
    rows = []
    for strategy in options.strategy or ["knowagent"]:
        for masks in {"on": [True], "off": [False], "both": [True, False]}[options.masks]:
            records = run(loaded, knowledge, options, strategy, masks)
            rows.append({"strategy": strategy, "masks": masks, **summarise(records)})
    print(table(rows))
    if options.environment == "alfworld" and options.split == "valid_seen":
        print("\nSuccess on the same games in KnowAgent's Table 1 (%):")
        for name, figures in PAPER_SEEN.items():
            print(f"  {name:<34} " + " / ".join(f"{f:.1f}" for f in figures))
    if options.json:
        write_whole(options.json, to_json({"version": __version__, "model": loaded.name, "rows": rows}))
    return 0


def run(loaded: LoadedModel, knowledge: ActionKnowledge, options, strategy: str, masks: bool) -> list[dict]:
    """The records of every game, those played before included."""
    path = options.output / f"{_label(loaded, options, strategy, masks)}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    done = _read(path)
    total = options.games or (SPLIT_SIZES[options.split] if options.environment == "alfworld" else OWN_GAMES)
    records = []
    words = f"{strategy}, masks {'on' if masks else 'off'}"
    with path.open("a", encoding="utf-8") as file, tqdm(total=total, desc=words, unit="game") as bar:
        for game in _games(options, total):
            record = done.get(game.name)
            if record is None:
                record = _play(loaded, knowledge, game, options, strategy, masks)
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
                file.flush()
            records.append(record)
            won = sum(r["success"] for r in records)
            bar.set_postfix_str(f"{won} won")
            bar.update()
    return records


def _games(options, total: int) -> Iterator[Game]:
    if options.environment == "household":
        yield from (make_game(options.seed * 1_000_000 + i) for i in range(total))
        return
    for i, game in enumerate(load_games(options.split)):
        if i == total:
            return
        yield game


def _play(loaded, knowledge, game: Game, options, strategy: str, masks: bool) -> dict:
    import torch

    from constrained.agents.play import Run, Settings, play

    env = HouseholdEnv(game)
    plan = Plan(game.task, knowledge.name, strategy, loaded.name, masks, options.seed)
    settings = Settings(
        strategy, masks, options.max_steps, None, options.repeats, options.temperature,
        generator=torch.Generator().manual_seed(options.seed),
    )
    plan.first_observation = env.reset()
    began = time.perf_counter()
    play(Run(loaded, knowledge, plan, settings, Memory(plan.first_observation)), env)
    return {
        "game": game.name,
        "type": game.name.split("-", 1)[0],
        "success": bool(plan.success),
        "steps": len(plan.steps),
        "invalid": plan.invalid,
        "misordered": plan.misordered,
        "no effect": sum(not s.had_effect for s in plan.steps),
        "pruned mass": sum(plan.pruned_mass) / max(len(plan.steps), 1),
        "tokens": plan.usage["completion_tokens"],
        "forced": plan.usage["forced_tokens"],
        "passes": plan.usage["forward_passes"],
        "seconds": time.perf_counter() - began,
        "actions": [s.action for s in plan.steps],
    }


def summarise(records: list[dict]) -> dict:
    """Rates over all actions, means over games; steps over the games won."""
    actions = max(sum(r["steps"] for r in records), 1)
    won = [r for r in records if r["success"]]
    count = max(len(records), 1)
    types = sorted({r["type"] for r in records})
    return {
        "games": len(records),
        "won": len(won),
        "success %": 100 * len(won) / count,
        "steps of won": sum(r["steps"] for r in won) / max(len(won), 1),
        "actions": sum(r["steps"] for r in records),
        "invalid %": 100 * sum(r["invalid"] for r in records) / actions,
        "misordered %": 100 * sum(r["misordered"] for r in records) / actions,
        "pruned mass %": 100 * sum(r["pruned mass"] for r in records) / count,
        "tokens per game": sum(r["tokens"] for r in records) / count,
        "passes per game": sum(r["passes"] for r in records) / count,
        "seconds per game": sum(r["seconds"] for r in records) / count,
        "success % by type": {
            t: 100 * sum(r["success"] for r in records if r["type"] == t) / sum(r["type"] == t for r in records)
            for t in types
        },
    }


def table(rows: list[dict]) -> str:
    """The summary as text, success by task type below it."""
    head = "| strategy | masks | games | success | steps | invalid | misordered | pruned mass | tokens/game | s/game |"
    lines = [head, "|" + "---|" * (head.count("|") - 1)]
    for r in rows:
        lines.append(
            f"| {r['strategy']} | {'on' if r['masks'] else 'off'} | {r['games']} | {r['success %']:.1f} % "
            f"| {r['steps of won']:.1f} | {r['invalid %']:.2f} % | {r['misordered %']:.2f} % "
            f"| {r['pruned mass %']:.2f} % | {r['tokens per game']:.0f} | {r['seconds per game']:.2f} |"
        )
    lines.append("\nSuccess by task type (%):")
    for r in rows:
        by_type = ", ".join(f"{t} {v:.0f}" for t, v in r["success % by type"].items())
        lines.append(f"  {r['strategy']}, masks {'on' if r['masks'] else 'off'}: {by_type}")
    return "\n".join(lines)


def _label(loaded: LoadedModel, options, strategy: str, masks: bool) -> str:
    """A file name that changes with everything that changes the result."""
    weights = hashlib.sha256()
    for name, value in sorted(loaded.model.state_dict().items()):
        weights.update(name.encode() + value.detach().float().cpu().numpy().tobytes())
    settings = (__version__, weights.hexdigest(), options.max_steps, options.repeats, options.temperature, options.seed)
    digest = hashlib.sha256(repr(settings).encode()).hexdigest()[:10]
    where = options.split if options.environment == "alfworld" else "own"
    return f"{options.environment}-{where}-{strategy}-masks-{'on' if masks else 'off'}-{digest}"


def _read(path: Path) -> dict[str, dict]:
    """The games already played; a last line cut short is dropped, for its game is played again."""
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    whole = [line for line in lines if line.endswith("\n")]
    if len(whole) < len(lines):
        write_whole(path, "".join(whole))
    try:
        records = [json.loads(line) for line in whole]
    except json.JSONDecodeError as error:
        raise ConstrainedError(f"{path} is damaged: {error.msg}", "move it away to play its games again") from None
    return {record["game"]: record for record in records}

"""`constrained train sft`: supervised fine-tuning on conversations and trajectories."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import asdict
from pathlib import Path

from constrained.cli.tuning import add_tuning, own_device, tuning_of
from constrained.files import to_json, write_whole


def add_parser(commands) -> None:
    parser = commands.add_parser(
        "sft",
        help="supervised fine-tuning: Lumos's conversations, FireAct's and other Alpaca data, any chat",
        description="Tune a model to write what the data shows: the assistant's turns of conversations, the responses "
        "of Alpaca data. What the user, or an environment, says is read and not learned. Each answer becomes a text of "
        "its own with all that comes before it, to the letter as agents are asked.",
        epilog="example: constrained train sft --data lumos-maths-planner --model org/model --out planner ; then "
        "constrained plan --strategy lumos --model org/model --planner planner ... On several GPUs: accelerate launch "
        "--multi_gpu -m constrained train sft ...",
    )
    add = parser.add_argument
    add("--data", required=True, action="append", metavar="DATA", help="a file (.jsonl or .json, may be packed: .gz) "
        "of rows with 'messages' (chat) or with 'instruction', 'input' and 'output' (Alpaca); or lumos-maths (GSM8K "
        "and SVAMP by rule) or lumos-qa (StrategyQA), with -planner or -grounder for one module, and -iterative or "
        "-onetime for one formulation; repeatable")  # fmt: skip
    add("--model", default=None, help="folder, GGUF file or hub name (default: the embedded model)")
    add("--adapter", metavar="FOLDER", help="go on from this adapter of the model")
    add("--device", default=None, help="cpu, cuda, cuda:1 ... (default: the GPU if there is one)")
    add("--out", required=True, type=Path, metavar="FOLDER", help="where the adapter, or the whole model, goes")
    add("--limit", type=int, metavar="N", help="only the first N rows of each data")
    add("--json", type=Path, metavar="FILE", help="write the report to this file, too")
    add_tuning(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    tuning = tuning_of(arguments)
    from constrained.models import load  # torch: only when tuning
    from constrained.training.sft_data import read_source
    from constrained.training.tuning import tune

    model = load(arguments.model, device=arguments.device or own_device())
    sources = {name: read_source(name, model, arguments.limit) for name in arguments.data}
    texts = [text for source in sources.values() for text in source.texts]
    first = os.environ.get("RANK", "0") == "0"
    if first:
        for name, source in sources.items():
            print(f"{name}: {len(source.texts):,} texts of {source.rows:,} rows", file=sys.stderr)
            for reason, count in source.left_out.most_common():
                print(f"note: {count:,} rows left out: {reason}", file=sys.stderr)
    tuned = tune(model, texts, tuning, arguments.out, adapter=arguments.adapter)
    if not first:
        return 0
    report = {
        "model": model.name,
        "data": {
            name: {"rows": source.rows, "texts": len(source.texts), "left out": dict(source.left_out.most_common())}
            for name, source in sources.items()
        },
        "settings": asdict(tuning),
        "tuned": asdict(tuned) | {"folder": str(tuned.folder)},
    }
    if arguments.json:
        write_whole(arguments.json, to_json(report))
    if tuned.left_out:
        limit = f"longer than {tuning.max_length:,} tokens, or than the model's context"
        print(f"note: {tuned.left_out:,} texts left out: {limit}", file=sys.stderr)
    what = "model" if tuning.whole else "adapter"
    print(f"{what} in {tuned.folder}: {tuned.steps:,} steps, {tuned.tokens:,} tokens in {tuned.seconds:.0f} s "
          f"({tuned.tokens / tuned.seconds:,.0f} a second), loss {tuned.loss:.4f}")  # fmt: skip
    return 0

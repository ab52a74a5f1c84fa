"""`constrained distill`: a model drafts action knowledge, a person refines it."""

from __future__ import annotations

import sys

from constrained.cli.import_ import add_output, give_knowledge
from constrained.files import check_new


def add_parser(commands) -> None:
    parser = commands.add_parser(
        "distill",
        help="let a model draft action knowledge for a task, under a grammar of action knowledge",
        description="Let a model draft the actions for a kind of task: overview, actions, what each does, which may "
        "follow which. It writes under masks, so what it drafts always loads and can always come to an end. How good "
        "the draft is depends on the model: the embedded one (the default) has learned household games and no "
        "language, so its drafts show the form and no sense; name an instruction-tuned model with --model.",
        epilog="example: constrained distill 'plan a journey by train' --model org/model-instruct -o train.lark",
    )
    parser.add_argument("task", help="what is to be done, in a sentence or a few")
    parser.add_argument("--model", default=None, help="folder, GGUF file or hub name (default: the embedded model)")
    parser.add_argument("--device", default=None, help="cpu, cuda, cuda:1 ... (default: the GPU if there is one)")
    parser.add_argument(
        "--actions", type=int, default=None, help="exactly so many, 1 to 10 (default: the model decides)"
    )
    parser.add_argument("--temperature", type=float, default=0.0, help="0: always the likeliest token (default)")
    parser.add_argument("--seed", type=int, default=0, help="of sampling (default: 0)")
    add_output(parser)
    parser.set_defaults(run=run)


def run(arguments) -> int:
    from constrained.agents.distill import distill  # torch: only when a model writes

    check_new(arguments.output, arguments.force)
    shown = None if arguments.json else lambda line: print(f"  {line}", file=sys.stderr, flush=True)
    distilled = distill(
        arguments.task,
        model=arguments.model,
        actions=arguments.actions,
        temperature=arguments.temperature,
        seed=arguments.seed,
        device=arguments.device,
        on_line=shown,
    )
    usage = distilled.usage
    notes = [
        f"drafted by {distilled.model}: {usage['completion_tokens']} tokens, {usage['forced_tokens']} of them forced, "
        f"{usage['seconds']:.1f} s; {usage['pruned_mass']:.1%} of its probability lay outside the masks"
    ]
    if distilled.model == "embedded":
        notes.append("the embedded model knows no language: only the form of this draft is of use")
    give_knowledge(arguments, distilled.text, distilled.knowledge(), notes)
    return 0

"""`constrained plan`: give a task, watch the plan."""

from __future__ import annotations

import sys

from constrained.agents.strategies import STRATEGIES
from constrained.cli.bindings import binding
from constrained.errors import ConstrainedError
from constrained.files import write_whole
from constrained.knowledge import ActionKnowledge


def add_parser(commands) -> None:
    parser = commands.add_parser(
        "plan",
        help="plan a task, step by step, every action admitted by the action knowledge",
        description="Plan a task. A household task is staged as a game from the seed and played; "
        "any other is planned without being executed.",
        epilog="Tasks read like ALFWorld's: 'put two mugs in the cabinet', 'heat an egg and put it in the "
        "fridge', 'look at the book under the desklamp'.",
    )
    parser.add_argument("task", nargs="?", help="what is to be done, as a sentence")
    parser.add_argument(
        "--game", metavar="FILE", help="play this ALFWorld game file (game.tw-pddl); it has its own task"
    )
    parser.add_argument(
        "--knowledge", default="household", help="shipped name or path of a .lark file (default: household)"
    )
    parser.add_argument("--bind", action="append", default=[], metavar="SLOT=JSON",
                        help="bind a slot, e.g. PAGE='[\"fees\"]' (a JSON list, or an object of lists)")  # fmt: skip
    parser.add_argument("--strategy", default="knowagent", choices=tuple(STRATEGIES),
                        help="who plans how: see docs/agents.md (default: knowagent)")  # fmt: skip
    parser.add_argument("--model", default=None, help="folder, GGUF file or hub name (default: the embedded model)")
    for role, of in {"planner": "Lumos and ReWOO", "grounder": "Lumos", "explorer": "WESE"}.items():
        words = f"a model for this role of {of}, or the folder of an adapter of --model (default: --model writes)"
        parser.add_argument(f"--{role}", metavar="MODEL", help=words)
    parser.add_argument("--device", default=None, help="cpu, cuda, cuda:1 ... (default: the GPU if there is one)")
    parser.add_argument("--max-steps", type=int, default=None, help="default: 50 played, 12 not executed")
    parser.add_argument("--max-new-tokens", type=int, default=None, help="tokens of the whole plan (default: no limit)")
    parser.add_argument("--temperature", type=float, default=0.0, help="default: 0, always the likeliest token")
    parser.add_argument("--seed", type=int, default=0, help="of the staged game and of sampling (default: 0)")
    parser.add_argument("--no-masks", action="store_true", help="let the model write what it likes, to compare")
    parser.add_argument("--json", action="store_true", help="print the plan as JSON and nothing else")
    parser.add_argument("--output", default=None, metavar="FILE", help="also write the plan as JSON to FILE")
    parser.add_argument("--trace", default=None, metavar="FILE.jsonl", help="write the run with every token, and what the "
                        "masks took from the model; `constrained view FILE.jsonl` shows it")  # fmt: skip
    parser.set_defaults(run=run)


def run(arguments) -> int:
    from constrained.agents.generate import generate_plan  # torch: only when planning
    from constrained.environments.household import Game, HouseholdEnv

    if (arguments.task is None) == (arguments.game is None):
        raise ConstrainedError("give a task or --game FILE, one of the two", "constrained plan --help shows examples")
    environment = HouseholdEnv(Game.from_file(arguments.game)) if arguments.game else None
    shown = None if arguments.json else _Shown()
    plan = generate_plan(
        environment.task if arguments.task is None else arguments.task,
        ActionKnowledge.from_lark(arguments.knowledge, source_map=bool(arguments.trace)).bind(
            **dict(map(binding, arguments.bind))
        ),
        environment=environment,
        strategy=arguments.strategy,
        model=arguments.model,
        planner=arguments.planner,
        grounder=arguments.grounder,
        explorer=arguments.explorer,
        device=arguments.device,
        max_steps=arguments.max_steps,
        max_new_tokens=arguments.max_new_tokens,
        temperature=arguments.temperature,
        seed=arguments.seed,
        constrained=not arguments.no_masks,
        trace=arguments.trace,
        progress=not arguments.json and sys.stderr.isatty(),
        on_step=shown.step if shown else None,
        on_start=shown.start if shown else None,
    )
    if arguments.output:
        write_whole(arguments.output, plan.to_json() + "\n")
    if arguments.json:
        print(plan.to_json())
    else:
        shown.end(plan)
    return 0


class _Shown:
    """The plan on the terminal, as it comes."""

    phase = ""

    def start(self, plan) -> None:
        masks = "masks on" if plan.constrained else "masks off"
        print(f"Task: {plan.task}\n{plan.strategy}, model {plan.model}, knowledge {plan.knowledge}, {masks}\n")
        if plan.first_observation:
            print(plan.first_observation.split("\n\n", 1)[-1].split("\n\nYour task")[0] + "\n")

    def step(self, step) -> None:
        if step.phase != self.phase:
            self.phase = step.phase
            print(f"[{self.phase}]")
        if step.thought:
            print(f"{step.n:>3}  {step.thought}")
            print(f"     > {step.action}", end="")
        else:
            print(f"{step.n:>3}  > {step.action}", end="")
        print("" if step.verdict == "ok" else f"   [{step.verdict}]")
        if step.observation is not None:
            print(f"     {step.observation}")
        sys.stdout.flush()

    def end(self, plan) -> None:
        usage = plan.usage
        outcome = {True: "Solved", False: "Not solved", None: "Planned"}[plan.success]
        wrong = f"{plan.invalid} invalid, {plan.misordered} misordered actions"
        mass = sum(plan.pruned_mass) / len(plan.pruned_mass) if plan.steps else 0.0
        before = len(plan.steps) - len(plan.last_phase)
        steps = f"{len(plan.last_phase)} steps" + (f" after {before} of earlier phases" if before else "")
        print(f"\n{outcome} in {steps}, {usage['seconds']:.1f} s: {wrong}.")
        print(
            f"{usage['completion_tokens']} tokens written, {usage['forced_tokens']} of them forced; "
            f"{mass:.1%} of the model's probability lay outside the masks."
        )
        if plan.note:
            print(f"Note: {plan.note}")

"""`constrained plan`: plan a task and print the steps as they come."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING

from constrained.agents.episode import GOAL, STATE
from constrained.agents.plan import Plan, Step
from constrained.agents.strategies import STRATEGIES
from constrained.cli.options import add_bindings, add_level, add_model, bindings
from constrained.errors import ConstrainedError
from constrained.files import check_separate, write_whole
from constrained.knowledge import ActionKnowledge
from constrained.knowledge.world import World

if TYPE_CHECKING:
    from constrained.environments.world import WorldEnvironment


def add_parser(commands) -> None:
    parser = commands.add_parser(
        "plan",
        help="plan a task step by step; the action knowledge admits every action",
        description="Plan a task. A household task becomes a game, made from --seed, and is played; any other task is "
        "planned without being executed.",
        epilog="Tasks read like ALFWorld's: 'put two mugs in the cabinet', 'heat an egg and put it in the fridge', "
        "'look at the book under the desklamp'.",
    )
    add = parser.add_argument
    add("task", nargs="?", help="what to do, as a sentence (not needed for a world with a problem, docs/worlds.md)")
    add("--game", metavar="FILE", help="play this ALFWorld game file (game.tw-pddl), which has its own task")
    add("--knowledge", default="household", help="shipped name or path of a .lark file (default: household)")
    add_bindings(parser)
    words = "how the agent works, see docs/agents.md (default: knowagent)"
    add("--strategy", default="knowagent", choices=tuple(STRATEGIES), help=words)
    add_model(parser, choosers=True)
    for role, strategies in {"planner": "Lumos and ReWOO", "grounder": "Lumos", "explorer": "WESE"}.items():
        words = f"a model for this role of {strategies}, or the folder of an adapter of --model (default: --model)"
        add(f"--{role}", metavar="MODEL", help=words)
    add_level(parser)
    add("--max-steps", type=int, help="default: 50 if played, 12 if not executed")
    add("--max-new-tokens", type=int, help="tokens of the whole plan (default: no limit)")
    add("--temperature", type=float, default=0.0, help="default: 0, always the likeliest token")
    add("--seed", type=int, default=0, help="of the game and of sampling (default: 0)")
    add("--no-masks", action="store_true", help="let the model write anything, for comparison")
    add("--json", action="store_true", help="print the plan as JSON and nothing else")
    add("--output", metavar="FILE", help="also write the plan as JSON to FILE")
    words = "record every token and what the mask removed; `constrained view FILE.jsonl` shows it"
    add("--trace", metavar="FILE.jsonl", help=words)
    parser.set_defaults(run=run)


def run(arguments) -> int:
    from constrained.environments.household import Game, HouseholdEnv

    own = arguments.task is None and arguments.game is None and arguments.knowledge != "household"
    if (arguments.task is None) == (arguments.game is None) and not own:
        raise ConstrainedError("give a task or --game FILE, one of the two", "constrained plan --help shows examples")
    for target in (arguments.output, arguments.trace):
        check_separate(target, arguments.game, arguments.knowledge)
    if arguments.trace and arguments.trace == arguments.output:
        raise ConstrainedError("--trace and --output name the same file", "name two files")
    environment = HouseholdEnv(Game.from_file(arguments.game)) if arguments.game else None
    knowledge = ActionKnowledge.from_lark(arguments.knowledge, source_map=bool(arguments.trace))
    if own:
        environment = _own_problem(arguments, knowledge)
    printer = None if arguments.json else _Printer()
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: print(f"note: {message}", file=sys.stderr)
        plan = _plan(arguments, environment, knowledge, printer)
    if arguments.output:
        write_whole(arguments.output, plan.to_json() + "\n")
    if printer:
        printer.end(plan)
    else:
        print(plan.to_json())
    return 0


def _own_problem(arguments, knowledge: ActionKnowledge) -> WorldEnvironment:
    """The problem in a `.lark` file; by default whole actions are chosen in it, at random among those of use."""
    from constrained.environments.world import WorldEnvironment

    if not isinstance(knowledge.world, World) or knowledge.world.problem is None:
        raise ConstrainedError(
            f"{arguments.knowledge} has no problem of its own",
            "give a task, or add `//: object`, `init` and `goal` lines",
        )
    if arguments.model is None:
        arguments.model, arguments.strategy = "random", "act"
        arguments.level = GOAL if arguments.level == STATE else arguments.level
    return WorldEnvironment(knowledge.world)


def _plan(arguments, environment, knowledge: ActionKnowledge, printer: _Printer | None) -> Plan:
    from constrained.agents.generate import generate_plan  # imports torch

    return generate_plan(
        environment.task if environment else arguments.task,
        knowledge.bind(**bindings(arguments)),
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
        level=arguments.level,
        trace=arguments.trace,
        progress=printer is not None and sys.stderr.isatty(),
        on_step=printer.step if printer else None,
        on_start=printer.start if printer else None,
    )


class _Printer:
    """Prints a plan on the terminal as it comes."""

    phase = ""

    def start(self, plan: Plan) -> None:
        masks = f"masks: {plan.level}" if plan.constrained else "masks off"
        print(f"Task: {plan.task}\n{plan.strategy}, model {plan.model}, knowledge {plan.knowledge}, {masks}\n")
        if plan.first_observation:
            print(plan.first_observation.split("\n\n", 1)[-1].split("\n\nYour task")[0] + "\n")

    def step(self, step: Step) -> None:
        if step.phase != self.phase:
            self.phase = step.phase
            print(f"[{self.phase}]")
        if step.thought:
            print(f"{step.n:>3}  {step.thought}")
        number = "" if step.thought else step.n
        print(f"{number:>3}  > {step.action}" + ("" if step.verdict == "ok" else f"   [{step.verdict}]"))
        if step.replaced:
            print(f"     in place of {step.replaced!r}, which is not admitted")
        if step.observation is not None:
            print(f"     {step.observation}")
        sys.stdout.flush()

    def end(self, plan: Plan) -> None:
        usage = plan.usage
        outcome = {True: "Solved", False: "Not solved", None: "Planned"}[plan.success]
        mass = sum(plan.pruned_mass) / len(plan.pruned_mass) if plan.steps else 0.0
        earlier = len(plan.steps) - len(plan.last_phase)
        steps = f"{len(plan.last_phase)} steps" + (f" after {earlier} of earlier phases" if earlier else "")
        wrong = f"{plan.invalid} invalid, {plan.misordered} misordered actions"
        print(f"\n{outcome} in {steps}, {usage['seconds']:.1f} s: {wrong}.")
        print(
            f"{usage['completion_tokens']} tokens written, {usage['forced_tokens']} of them forced; "
            f"{mass:.1%} of the model's probability lay outside the masks."
        )
        if plan.note:
            print(f"Note: {plan.note}")

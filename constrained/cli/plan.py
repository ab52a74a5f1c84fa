"""`constrained plan`: plan a task and print the steps as they come."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING

from constrained.agents.levels import STATE
from constrained.agents.plan import Plan, Step
from constrained.agents.strategies import STRATEGIES
from constrained.cli.options import add_bindings, add_level, add_model, add_prompt, bindings, seconds
from constrained.errors import ConstrainedError
from constrained.files import check_separate, write_whole
from constrained.knowledge import ActionKnowledge, Knowledge
from constrained.knowledge.world_state import WorldState
from constrained.planning.planner import DEFAULT, SearchLimits

if TYPE_CHECKING:
    from constrained.environments.base import Environment


def add_parser(commands) -> None:
    parser = commands.add_parser(
        "plan",
        help="plan a task step by step; the action knowledge admits every action",
        description="Plan a task. A household task becomes a game, made from --seed, and is played; a world in a .lark "
        "file, or a planning problem, is played as its file says; any other task is planned without being executed.",
        epilog="A world: constrained plan hotel.lark 'book r303 for bob'. A planning problem: constrained plan --pddl "
        "domain.pddl problem.pddl. Household tasks read like ALFWorld's: 'put two mugs in the cabinet', 'heat an "
        "egg and put it in the fridge', 'look at the book under the desklamp'.",
    )
    add = parser.add_argument
    words = "what to do, as a sentence; not needed for a world with a goal of its own (docs/worlds.md)"
    add("task", nargs="*", metavar="TASK", help=words)
    add("--game", metavar="FILE", help="play this ALFWorld game file (game.tw-pddl), which has its own task")
    words = "solve this planning problem; without --model, a small network that ships and a search choose the actions"
    add("--pddl", nargs=2, metavar=("DOMAIN", "PROBLEM"), help=words)
    add("--ahead", action="store_true", help="with --pddl: write the whole plan before its first action is carried out")
    words = "shipped name or path of a .lark file (default: household; with --pddl: the domain, imported)"
    add("--knowledge", help=words)
    add_bindings(parser)
    words = "how the agent works, see docs/agents.md (default: knowagent; act for searches and random)"
    add("--strategy", choices=tuple(STRATEGIES), help=words)
    add_model(parser, choosers=True)
    for role, strategies in {"planner": "Lumos and ReWOO", "grounder": "Lumos", "explorer": "WESE"}.items():
        words = f"a model for this role of {strategies}, or the folder of an adapter of --model (default: --model)"
        if role == "planner":
            words += """; for a planning problem, what plans in place of --model: a planner of the package
                unified-planning, such as pyperplan or fast-downward"""
        add(f"--{role}", metavar="MODEL", help=words)
    add_level(parser, default=None)
    words = f"processor time of the search for a problem's plan, which then gives up (default: {DEFAULT.seconds:g})"
    add("--seconds", type=seconds, metavar="S", help=words)
    add("--max-steps", type=int, help="default: 1,000 for a planning problem, 50 for a game, else 12")
    add("--max-new-tokens", type=int, help="tokens of the whole plan (default: no limit)")
    add("--temperature", type=float, default=0.0, help="default: 0, always the likeliest token")
    add("--seed", type=int, default=0, help="of the game and of sampling (default: 0)")
    add("--no-masks", action="store_true", help="let the model write anything, for comparison")
    add_prompt(parser)
    add("--show-prompt", action="store_true", help="print what the model reads before each step")
    add("--json", action="store_true", help="print the plan as JSON and nothing else")
    words = "pddl: print nothing but the plan as planners do, one (action argument ...) a line; needs --pddl"
    add("--format", choices=("text", "pddl"), default="text", help=words)
    add("--output", metavar="FILE", help="also write the plan as JSON to FILE")
    words = "record every token and what the mask removed; `constrained view FILE.jsonl` shows it"
    add("--trace", metavar="FILE.jsonl", help=words)
    parser.set_defaults(run=run)


def run(arguments) -> int:
    from constrained.environments.pddl import PddlEnvironment

    _sort_words(arguments)
    # Exactly one thing to play: a task, a game, a PDDL problem, or the problem in the knowledge's own file.
    sources = [arguments.task, arguments.game, arguments.pddl]
    has_problem = arguments.knowledge not in (None, "household") and not any(sources)
    if sum(value is not None for value in sources) != 1 and not has_problem:
        raise ConstrainedError(
            "give a task, --game FILE or --pddl DOMAIN PROBLEM, one of them", "constrained plan --help shows examples"
        )
    if arguments.pddl is None and (arguments.ahead or arguments.format == "pddl"):
        raise ConstrainedError("--ahead and --format pddl are for planning problems", "give --pddl DOMAIN PROBLEM")
    if arguments.json and arguments.format == "pddl":
        raise ConstrainedError("--json and --format pddl both say what is printed", "give one of them")
    for target in (arguments.output, arguments.trace):
        check_separate(target, arguments.game, arguments.knowledge, *(arguments.pddl or ()))
    if arguments.trace and arguments.trace == arguments.output:
        raise ConstrainedError("--trace and --output name the same file", "name two files")
    knowledge = None
    if arguments.pddl is None or arguments.knowledge:
        name = arguments.knowledge or "household"
        knowledge = ActionKnowledge.from_lark(name, source_map=bool(arguments.trace)).bind(**bindings(arguments))
    environment: Environment | None = None
    if arguments.pddl:
        environment = PddlEnvironment(*arguments.pddl, knowledge=knowledge)
        knowledge = environment.knowledge
    assert knowledge is not None
    if arguments.game:
        from constrained.environments.household import Game, HouseholdEnv

        environment = HouseholdEnv(Game.from_file(arguments.game))
    elif has_problem:
        from constrained.environments.world import own_task

        arguments.task = own_task(knowledge)
    printer = None if arguments.json or arguments.format == "pddl" else _PlanPrinter(arguments.show_prompt)
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: print(f"note: {message}", file=sys.stderr)
        plan = _plan(arguments, environment, knowledge, printer)
    if arguments.output:
        write_whole(arguments.output, plan.to_json() + "\n")
    if arguments.format == "pddl":
        assert knowledge.facts is not None
        return _print_pddl(plan, knowledge.facts)
    if printer:
        printer.end(plan)
    else:
        print(plan.to_json())
    return int(arguments.pddl is not None and not plan.success)


def _sort_words(arguments) -> None:
    """Sort what isn't an option: a .lark file is the knowledge, two PDDL files are a problem, the rest is the task."""
    words = arguments.task
    if words and words[0].endswith(".lark") and arguments.knowledge is None:
        arguments.knowledge = words.pop(0)
    if len(words) == 2 and all(word.endswith(".pddl") for word in words) and arguments.pddl is None:
        arguments.pddl, words = words, []
    arguments.task = " ".join(words) if words else None  # words without quotes are joined to a sentence


def _plan(arguments, environment, knowledge: Knowledge, printer: _PlanPrinter | None) -> Plan:
    from constrained.agents.generate import generate_plan

    is_problem = arguments.game is None and (arguments.pddl is not None or knowledge.own_world is not None)
    chosen = is_problem and arguments.model is None  # nothing is written, whole actions are chosen
    model, planner = arguments.model, arguments.planner
    if chosen and arguments.strategy in (None, "act") and (arguments.seconds or planner):
        from constrained.chooser.chooser import PlannerChooser, SearchChooser

        limits = DEFAULT if arguments.seconds is None else SearchLimits(seconds=arguments.seconds)
        model = SearchChooser(limits=limits) if planner is None else PlannerChooser(planner, limits)
        planner = None
    return generate_plan(
        environment.task if environment else arguments.task,
        knowledge,
        environment=None if arguments.ahead else environment,
        strategy=arguments.strategy or ("act" if chosen else "knowagent"),
        model=model,
        planner=planner,
        grounder=arguments.grounder,
        explorer=arguments.explorer,
        device=arguments.device,
        max_steps=arguments.max_steps,
        max_new_tokens=arguments.max_new_tokens,
        temperature=arguments.temperature,
        seed=arguments.seed,
        constrained=not arguments.no_masks,
        demonstrations=arguments.demonstrations,
        knowledge_in_prompt=not arguments.no_knowledge_prompt,
        level=arguments.level or STATE,
        trace=arguments.trace,
        progress=not arguments.json,
        on_step=printer.step if printer else None,
        on_start=printer.start if printer else None,
    )


def _print_pddl(plan: Plan, facts: WorldState) -> int:
    """Print a plan as planners do; if it doesn't reach the goal, print none, and return 1."""
    if not plan.success:
        print(f"note: no plan is printed: {plan.note or 'the goal is not reached'}", file=sys.stderr)
        return 1
    for text in plan.path:
        action = facts.actions[text][0]
        print(f"({' '.join(map(facts.task.spell, (action.action, *action.arguments)))})")
        facts = facts.after(text)
    return 0


class _PlanPrinter:
    """Prints a plan on the terminal, step by step."""

    phase = ""

    def __init__(self, show_prompt: bool = False):
        self.show_prompt = show_prompt

    def start(self, plan: Plan) -> None:
        masks = f"masks: {plan.level}" if plan.constrained else "masks off"
        print(f"Task: {plan.task}\n{plan.strategy}, model {plan.model}, knowledge {plan.knowledge}, {masks}\n")
        if plan.first_observation:
            print(plan.first_observation.split("\n\n", 1)[-1].split("\n\nYour task")[0] + "\n")

    def step(self, step: Step) -> None:
        if step.phase != self.phase:
            self.phase = step.phase
            print(f"[{self.phase}]")
        if self.show_prompt:
            print(f"--- what the model reads before step {step.n} ---\n{step.prompt or '(nothing)'}\n---")
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
        unknown = "Planned" if plan.open_loop else "Ended"
        outcome = {True: "Solved", False: "Not solved", None: unknown}[plan.success]
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

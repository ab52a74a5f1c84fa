"""`constrained plan`: plan a task and print the steps as they come."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING

from constrained.agents.levels import STATE
from constrained.agents.plan import Plan, Step
from constrained.agents.strategies import STRATEGIES
from constrained.cli.options import (
    CHOOSERS,
    KNOWLEDGE,
    MODELS,
    add_bindings,
    add_level,
    add_model,
    add_prompt,
    add_sampling,
    bindings,
    seconds,
)
from constrained.cli.parser import examples
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
        help="let an agent carry out a task under masks, step by step",
        description="Let an agent carry out a task, step by step; masks admit only what the action knowledge allows. "
        "The world of a .lark file and a PDDL problem are played as they say. A household task (put, heat, cool, "
        "clean, look at) is played in a game made for it. Any other task is planned and not executed.",
        epilog=examples(
            "constrained plan 'heat an egg and put it in the fridge'",
            "constrained plan hotel.lark 'book room r303 for bob'",
            "constrained plan hotel.lark 'book room r303 for bob' --model smollm2 --strategy act",
            "constrained plan domain.pddl problem.pddl",
        ),
    )
    add = parser.add_argument
    words = """the task, as a sentence; before it, a world's FILE.lark, which needs no sentence if it has a goal of its
        own (docs/worlds.md)"""
    add("task", nargs="*", metavar="TASK", help=words)
    add("--game", metavar="FILE", help="play this ALFWorld game file (game.tw-pddl), which has its own task")
    add("--pddl", nargs=2, metavar=("DOMAIN", "PROBLEM"), help="solve this planning problem")
    add("--ahead", action="store_true", help="with --pddl: write the whole plan before its first action is carried out")
    add("--knowledge", metavar="FILE", help=f"{KNOWLEDGE} (default: household; with --pddl: the domain, imported)")
    add_bindings(parser)
    words = "how the agent works, see docs/agents.md (default: knowagent; act where a search or random chooses)"
    add("--strategy", choices=tuple(STRATEGIES), help=words)
    words = f"""{MODELS}; or {CHOOSERS} (default: a search for a world or a PDDL problem, else the embedded model, which
        knows only households)"""
    add_model(parser, words)
    for role, strategies in {"planner": "Lumos and ReWOO", "grounder": "Lumos", "explorer": "WESE"}.items():
        words = f"the model of {strategies} for this role, or the folder of an adapter of --model (default: --model)"
        if role == "planner":
            words += "; for a PDDL problem also a planner of unified-planning, such as pyperplan or fast-downward"
        add(f"--{role}", metavar="MODEL", help=words)
    add_level(parser, default=None)
    words = f"seconds of CPU time after which the search for a plan gives up (default: {DEFAULT.seconds:g})"
    add("--seconds", type=seconds, metavar="S", help=words)
    words = """actions at most (default: 1,000 for a PDDL problem, and in a world where no language model chooses; 50
        in other environments; 12 where nothing is executed)"""
    add("--max-steps", type=int, help=words)
    add("--max-new-tokens", type=int, help="tokens at most in the whole plan (default: no limit)")
    add_sampling(parser)
    add("--no-masks", action="store_true", help="let the model write anything, for comparison")
    add_prompt(parser)
    add("--show-prompt", action="store_true", help="print the prompt of each step")
    add("--json", action="store_true", help="print the plan as JSON and nothing else")
    words = (
        "pddl: print only the plan, in the form of planners, (action argument ...) a line; needs --pddl (default: text)"
    )
    add("--format", choices=("text", "pddl"), default="text", help=words)
    add("--output", metavar="FILE", help="also write the plan as JSON to FILE")
    words = "record every token and what the mask forbade, for `constrained view FILE.jsonl`"
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
    # Printed first: a file that can't be written loses nothing of a long run.
    code = int(arguments.pddl is not None and not plan.success)
    if arguments.format == "pddl":
        assert knowledge.facts is not None
        code = _print_pddl(plan, knowledge.facts)
    elif printer:
        printer.end(plan)
    else:
        print(plan.to_json())
    if arguments.output:
        write_whole(arguments.output, plan.to_json() + "\n")
    return code


def _sort_words(arguments) -> None:
    """Sort what isn't an option: a .lark file is the knowledge, two PDDL files are a problem, the rest is the task."""
    words = arguments.task
    files = [word for word in words if word.lower().endswith(".lark") and " " not in word]
    if len(files) > 1 or (files and arguments.knowledge is not None):
        several = " and ".join([*([arguments.knowledge] if arguments.knowledge else []), *files])
        raise ConstrainedError(f"there is more than one knowledge file: {several}", "give one of them, and the task")
    if files:
        arguments.knowledge = files[0]
        words.remove(files[0])
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

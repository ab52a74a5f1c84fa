"""Judge the plans that language models wrote for PlanBench's instances.

    constrained check planbench [MODEL ...] [--limit N] [--json]

Each plan is executed from its instance's initial state. For one that fails, the first action that can't be done is
named, with the conditions that didn't hold; for one that can be done but doesn't solve its problem, the goal facts that
are missing at its end. Where the benchmark recorded a verdict of its own, the two are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from tqdm import tqdm

from benchmarks.planbench.instances import RecordedPlan, read_instances, read_plans
from benchmarks.reporting import markdown
from constrained.errors import DataError
from constrained.planning import PlanningTask
from constrained.planning.model import Condition, Junction, Literal, Quantified
from constrained.planning.plans import EXECUTED, INAPPLICABLE, UNKNOWN, judge_plan

NO_PLAN = "no plan"
"""The verdict on an answer in which no action was found."""


@dataclass(frozen=True)
class Row:
    """The verdict on one recorded plan.

    Attributes
    ----------
    instance, model, prompt : str
    verdict : {"solved", "goal not reached", "inapplicable action", "unknown action", "no plan"}
    step : int
        The place of the action that fails, from 1; 0: none does.
    action : str
        As written.
    why : list of str
        The conditions that didn't hold, the goal facts that are missing, or why there is no such action.
    correct : bool or None
        The benchmark's own verdict.
    """

    instance: str
    model: str
    prompt: str
    verdict: str
    step: int
    action: str
    why: list[str]
    correct: bool | None

    @property
    def agrees(self) -> bool:
        """Whether the benchmark recorded the same, or nothing."""
        return self.correct is None or self.correct == (self.verdict == "solved")


def judge_recorded(plan: RecordedPlan, task: PlanningTask) -> Row:
    """Judge one plan."""
    verdict = judge_plan(task, plan.lines or ())
    why = [in_words(part) for part in verdict.missing] or ([verdict.reason] if verdict.reason else [])
    words = {UNKNOWN: "unknown action", INAPPLICABLE: "inapplicable action", EXECUTED: "goal not reached"}
    name = "solved" if verdict.solved else words[verdict.outcome]
    if not verdict.solved and not any(line.strip() for line in plan.lines or ()):
        name = NO_PLAN
    step = verdict.steps + 1 if verdict.action else 0
    return Row(plan.instance, plan.model, plan.prompt, name, step, verdict.action, why, plan.correct)


def in_words(condition: Condition) -> str:
    """A condition in PDDL."""
    match condition:
        case Literal(predicate, terms, positive):
            text = f"({' '.join((predicate, *terms))})"
            return text if positive else f"(not {text})"
        case Junction(operator, parts):
            return f"({operator} {' '.join(map(in_words, parts))})"
        case Quantified(quantifier, variables, part):
            declared = " ".join(f"{v.name} - {v.type}" for v in variables)
            return f"({'exists' if quantifier == 'some' else 'forall'} ({declared}) {in_words(part)})"


def judge_all(
    models: Collection[str] = (), *, folder: str | Path | None = None, limit: int | None = None, progress: bool = True
) -> list[Row]:
    """Judge the recorded plans.

    Parameters
    ----------
    models : collection of str
        Only those of these models; default: all.
    folder : path, optional
        Of instances; see `read_instances`.
    limit : int, optional
        Only the first so many.
    progress : bool
        Show a bar.

    Raises
    ------
    DataError
        A plan is for an instance that isn't there, or no plan is of these models.
    """
    instances = {one.name: one for one in read_instances(folder)}
    tasks: dict[str, PlanningTask] = {}
    plans = [plan for plan in read_plans() if not models or plan.model in models]
    if not plans:
        known = ", ".join(sorted({plan.model for plan in read_plans()}))
        raise DataError(f"no plan is by {', '.join(models)}", f"there are plans by: {known}")
    rows = []
    for plan in tqdm(plans[:limit], desc="judging plans", disable=None if progress else True):
        if plan.instance not in tasks:
            if plan.instance not in instances:
                raise DataError(f"there is a plan for {plan.instance}, but no such instance")
            tasks[plan.instance] = instances[plan.instance].task()
        rows.append(judge_recorded(plan, tasks[plan.instance]))
    return rows


def summary(rows: Iterable[Row]) -> list[dict]:
    """Counts for each domain, model and prompt."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.instance.partition("/")[0], row.model, row.prompt), []).append(row)
    out = []
    for (domain, model, prompt), group in sorted(groups.items()):
        verdicts = Counter(row.verdict for row in group)
        out.append({
            "domain": domain, "model": model, "prompt": prompt, "plans": len(group), "solved": verdicts["solved"],
            "impossible action": verdicts["inapplicable action"] + verdicts["unknown action"],
            "goal not reached": verdicts["goal not reached"], "no plan": verdicts[NO_PLAN],
            "recorded verdicts": sum(row.correct is not None for row in group),
            "of these equal": sum(row.agrees for row in group if row.correct is not None),
        })  # fmt: skip
    return out


def table(rows: list[Row]) -> str:
    """The summary as Markdown, and a sentence about the verdicts."""
    columns = ["plans", "solved", "impossible action", "goal not reached", "no plan"]
    lines = [
        [one["domain"], one["model"], one["prompt"].replace("_", " "), one["plans"]]
        + [f"{100 * one[column] / one['plans']:.1f} %" for column in columns[1:]]
        for one in summary(rows)
    ]
    recorded = [row for row in rows if row.correct is not None]
    unequal = [row for row in recorded if not row.agrees]
    words = f"{len(rows):,} plans; of the benchmark's {len(recorded):,} recorded verdicts, {len(unequal):,} differ."
    return "\n\n".join([markdown(["domain", "model", "prompt", *columns], lines, left=3), words])


def lines(rows: Iterable[Row]) -> str:
    """A line for each plan that fails."""
    return "\n".join(
        f"{row.instance}, {row.model}, {row.prompt}: {row.verdict}"
        + (f" {row.action}, step {row.step}" if row.action else "")
        + (f": {'needs ' if row.step and row.verdict == 'inapplicable action' else 'missing ' if not row.step else ''}"
           f"{', '.join(row.why)}" if row.why else "")
        for row in rows
        if row.verdict != "solved"
    )  # fmt: skip


def to_dict(rows: list[Row]) -> dict:
    """All figures and verdicts, for JSON."""
    return {
        "ok": all(row.agrees for row in rows),
        "summary": summary(rows),
        "plans": [asdict(row) | {"agrees": row.agrees} for row in rows],
    }

"""Metrics of a run: rates over its actions, means over its tasks."""

from __future__ import annotations

from collections.abc import Sequence


def summarise(records: list[dict], measures: Sequence[str] = ("success",)) -> dict:
    """Rates over all actions and means over tasks; the mean of steps is over the tasks won, if any.

    Parameters
    ----------
    records : list of dict
        The "end" of each task (see `constrained.agents.run_file`), with its "kind".
    measures : sequence of str
        Keys of the outcomes; each becomes a mean in percent. A task that failed counts as 0.
    """
    count = max(len(records), 1)
    # Rates are over all actions, not means over tasks: a long task counts for more.
    actions = max(sum(r["actions"] for r in records), 1)
    won = [r for r in records if r["success"]]
    by_kind: dict[str, list[float]] = {}
    for r in sorted(records, key=lambda r: r["kind"]):
        by_kind.setdefault(r["kind"], []).append(r["outcome"].get(measures[0], 0.0))
    paths = sum(r.get("paths", 0) for r in records)
    usage = [usage for r in records for usage in r["usage"].values()]
    return {
        "tasks": len(records),
        "failed": sum("failure" in r for r in records),
        "won": len(won),
        **{f"{measure} %": 100 * sum(r["outcome"].get(measure, 0.0) for r in records) / count for measure in measures},
        **_rewards(records, measures),
        **({"steps of won": sum(r["steps"] for r in won) / len(won)} if won else {}),
        "actions": sum(r["actions"] for r in records),
        "invalid %": 100 * sum(r["invalid"] for r in records) / actions,
        "misordered %": 100 * sum(r["misordered"] for r in records) / actions,
        **({"wrong paths %": 100 * sum(r.get("wrong paths", 0) for r in records) / paths} if paths else {}),
        "pruned mass %": 100 * sum(r["pruned mass"] for r in records) / count,
        "prompt tokens": sum(u["prompt_tokens"] for u in usage) / count,
        "tokens": sum(u["completion_tokens"] for u in usage) / count,
        "passes": sum(u["forward_passes"] for u in usage) / count,
        "seconds": sum(u["seconds"] for u in usage) / count,
        "tokens by role": _by_role(records),
        f"{measures[0]} % by kind": {kind: 100 * (sum(values) / len(values)) for kind, values in by_kind.items()},
    }


def _rewards(records: list[dict], measures: Sequence[str]) -> dict[str, float]:
    """Where tasks have a score: its total, 100 for each task, and the mean of the steps to its first part.

    These are WESE's "total reward" and "average steps" on ScienceWorld (its Table 2), where full scores are rare. Only
    tasks with any reward have steps to it.
    """
    if "score" not in measures:
        return {}
    rewarded = [r["first reward"] for r in records if "first reward" in r]
    total = 100 * sum(r["outcome"].get("score", 0.0) for r in records)
    return {"total reward": total, **({"steps to reward": sum(rewarded) / len(rewarded)} if rewarded else {})}


def _by_role(records: list[dict]) -> dict[str, dict[str, float]]:
    """The tokens read and written by each role, in all tasks together."""
    roles = sorted({role for r in records for role in r["usage"]})
    return {
        role: {
            key: sum(r["usage"][role][key] for r in records if role in r["usage"])
            for key in ("prompt_tokens", "completion_tokens")
        }
        for role in roles
    }

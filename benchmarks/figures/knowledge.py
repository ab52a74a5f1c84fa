"""Figures of knowledge, planning and tools under a policy."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import guard, imported, tau, worlds
from benchmarks.figures.records import record, rows_of
from benchmarks.planbench import ipc
from benchmarks.planbench import masks as planbench_masks
from benchmarks.reporting import markdown
from benchmarks.telecom import command as telecom


def _worlds() -> str:
    """Sets of small problems, and random ones of two sizes."""
    left = {
        "depots", "logistics", "mystery_blocksworld", "obfuscated_randomized_logistics",
        "logistics, 10 objects", "logistics, 30 objects", "logistics, 300 objects",
    }  # fmt: skip
    rows = {name: row for name, row in record("worlds")["rows"].items() if name not in left}
    return worlds.table(rows)


def _executor() -> str:
    names = {"gsm8k": "GSM8K, train", "svamp": "SVAMP, first 700", "strategyqa": "StrategyQA, train"}
    cells = []
    for name, row in record("executor").items():
        if name in names:
            right = row["reproduced"]
            share = (
                f"{right:,} = {right / row['rows']:.2%}".replace("%", " %") if right else "needs an index and a model"
            )
            cells.append([names[name], f"{row['rows']:,}", f"{row['converted']:,}", share])
    return markdown(["", "rows", "converted", "give the answer"], cells)


def _planbench() -> str:
    """Solved problems, a row per set and a column per player; the sets that are parts of others are left out."""
    rows = {(row["set"], row["model"], row["level"]): row for row in record("planbench")["rows"]}
    players = [("random", "form"), ("random", "state"), ("random", "goal-sound"), ("random", "goal"),
               ("chooser", "state"), ("chooser", "goal"), ("search", "state")]  # fmt: skip
    sets = sorted({name for name, *_ in rows if not name.endswith("_3")})

    def cell(row: dict | None, whole: int) -> str:
        if row is None:
            return "–"
        share = f"{100 * row['solved'] / (row['instances'] * len(row['seeds'])):.1f} %"
        share += f" of {row['instances']}" if row["instances"] != whole else ""
        longer = row["times the optimum"]
        return share if row["model"] == "random" or longer is None else f"{share} (× {longer:.2f})"

    cells = []
    for name in sets:
        whole = rows[name, "search", "state"]["instances"]
        words = name.removesuffix("/basic").replace("obfuscated_randomized_logistics", "logistics, names at random")
        cells.append([words.replace("_", " "), whole, *(cell(rows.get((name, *one)), whole) for one in players)])
    return markdown(["problems", "instances", *(f"{model}, `{level}`" for model, level in players)], cells)


def _ipc() -> str:
    """The competitions' instances that took ten seconds or more."""
    rows = record("ipc")["rows"]
    return ipc.table([row for row in rows if sum(row[key] or 0.0 for key in ("parse", "ground", "search")) >= 10])


def _tau_gold() -> str:
    rows = record("tau")["gold"] + record("tau_telecom")["gold"]
    groups = {
        "retail (train, dev)": [("retail", "train"), ("retail", "dev")],
        "retail (test)": [("retail", "test")],
        "retail, corrected": [("retail", "tau2")],
        "airline": [("airline", "test")],
        "airline, corrected": [("airline", "tau2")],
        "telecom (tau2-bench's)": [("telecom", "small")],
    }
    keys = ("tasks", "actions", "answered with an error", "admitted", "refused, not carried out")
    cells = []
    for name, splits in groups.items():
        tasks, actions, errors, admitted, both = (
            sum(row.get(key, 0) for row in rows if (row["domain"], row["split"]) in splits) for key in keys
        )
        cells.append([name, tasks, actions, errors, admitted, actions - admitted, both])
    head = ["domain", "tasks", "gold actions", "answered with an error", "admitted", "refused"]
    return markdown([*head, "of these answered with an error"], cells)


def _tau_calls() -> str:
    names = ("conversations", "calls", "errors", "errors admitted", "others", "others admitted")
    head = ["conversations", "calls", "answered with Error", "of these admitted", "others", "of these admitted"]
    return markdown(head, [[record("tau")["conversations"][name] for name in names]], left=0)


def _tau_refused() -> str:
    """Why calls that were carried out are refused."""
    kinds = [one for one in record("tau")["conversations"]["kept out"] if one["answered"] == "policy"]
    return markdown(["why", "calls"], [[one["why"], one["calls"]] for one in kinds])


def _guard_cost() -> str:
    """The cost of a call in short and long conversations."""
    head, rule, *lines = guard.cost(record("guard")).splitlines()
    return "\n".join([head, rule, *(line for line in lines if line.split("|")[2].strip() in ("5", "500"))])


def _tau_cost() -> str:
    names = [f"{name} {p}" for name in ("bind", "whole call") for p in ("p50", "p99")] + ["a token p99"]
    rows = [*record("tau")["cost"], *record("tau_telecom")["cost"]]
    cells = [[row["domain"], row["calls"], *(f"{row[name]:.2f}" for name in names)] for row in rows]
    return markdown(["domain", "calls", *names], cells)


def _tau_play() -> str:
    return markdown(tau.PLAYED, [tau.played_cells(row) for row in record("tau")["played"]], left=3)


def _guard_words() -> list[str]:
    talks = record("guard")["conversations"]
    near, why = talks["near misses"], talks["gold refused because"]
    total = sum(near.values())
    return [
        f"{talks['errors refused']} of {talks['errors']} calls that the tools answered with an error are refused",
        f"{total} near misses: {near['confirmation']} without a confirmation, {near['read']} without a read",
        f"Of {talks['gold calls']} exact gold calls {talks['gold calls refused']} are refused: {why['no clear yes']} "
        f"where nobody had said yes, {why['no lookup']} where nothing had shown seats and prices, and {why['facts']}",
    ]


def _tools_page() -> list[str]:
    return [
        *_guard_words(),
        tau.refusals(record("tau")["conversations"]).split("\n\n")[1].rstrip("."),
    ]


def _import_page() -> list[str]:
    played = record("imported").values()
    dead = sum(one["nothing"] for one in played)
    wrong, forbidden = (
        {
            name: sum(one[name][f"{part}, {kind}"] for one in played for kind in ("invalid", "misordered"))
            for name in imported.JUDGES
        }
        for part in ("effect", "nothing")
    )
    assert not any(wrong.values()) and forbidden["household.lark"] == dead
    share = f"{forbidden['imported'] / dead:.0%}".replace("%", " %")
    return [
        f"Of {sum(one['effect'] for one in played):,} actions with an effect neither forbids one; of {dead:,} that did "
        f"nothing `household.lark` forbids all, the imported domain {share}"
    ]


def _planbench_page() -> list[str]:
    walked = record("masks")["rows"].values()
    problems, states, actions = (sum(one[key] for one in walked) for key in ("problems", "states", "actions"))
    assert not any(one[kind] for one in walked for kind in planbench_masks.WRONG)
    [row] = rows_of("planbench", set="blocksworld/basic", model="random", level="form")
    return [
        f"At `form`, {row['impossible']:,} of {row['actions']:,} random actions are.",
        f"In {states:,} states of {problems} problems, none of {actions:,} applicable actions is missing and none is "
        "extra",
        ipc.totals(record("ipc")["rows"]),
    ]


TABLES: dict[str, Callable[[], str]] = {
    "worlds": _worlds,
    "executor": _executor,
    "planbench": _planbench,
    "ipc": _ipc,
    "tau-gold": _tau_gold,
    "tau-calls": _tau_calls,
    "tau-refused": _tau_refused,
    "tau-cost": _tau_cost,
    "tau-play": _tau_play,
    "telecom-mutations": lambda: telecom.mutation_table(record("tau_telecom")),
    "telecom-admitted": lambda: telecom.admitted_table(record("tau_telecom")),
    "guard-outcomes": lambda: guard.outcomes(record("guard")),
    "guard-cost": _guard_cost,
}  # fmt: skip

SENTENCES: dict[str, Callable[[], list[str]]] = {
    "docs/import.md": _import_page,
    "docs/planbench.md": _planbench_page,
    "docs/tool_figures.md": _tools_page,
}

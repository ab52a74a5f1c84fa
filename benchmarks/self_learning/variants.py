"""The variants of self-learning: parts of it left out."""

from __future__ import annotations

from dataclasses import dataclass

from constrained.agents.levels import GOAL, STATE


@dataclass(frozen=True)
class Variant:
    """One way to run self-learning.

    Attributes
    ----------
    name : str
    words : str
        Description, for the tables.
    step_format : str
        "knowagent" writes the path so far into every step, "react" does not.
    masks, test_masks : bool
        In synthesis, and where a round is tested.
    rule : str
        Of `constrained.training.trajectory`: "paper" drops what breaks the action knowledge, "released" does not.
    level : str
        What the masks hold; one of `constrained.agents.levels.LEVELS`.
    """

    name: str
    words: str
    step_format: str = "knowagent"
    masks: bool = True
    test_masks: bool = True
    rule: str = "paper"
    level: str = GOAL


_WITHOUT_MASKS = {"masks": False, "test_masks": False}
_WITHOUT_KNOWLEDGE = {**_WITHOUT_MASKS, "step_format": "react", "rule": "released"}

VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("full", "action knowledge in masks, path and filter"),
        Variant("no-masks", "the same in path and filter, nothing masked: the paper's own setting", **_WITHOUT_MASKS),
        Variant("state", "as full, but masks hold the state alone, nothing of the goal", level=STATE),
        Variant("masks-in-training", "masks while it plays to learn, none in the tests", test_masks=False),
        Variant("no-knowledge", "ReAct's steps, whatever won is learned from", **_WITHOUT_KNOWLEDGE),
    )
}
"""By name. *full* against *no-knowledge* is KnowAgent's Figure 3, the rounds of each its Figure 4."""

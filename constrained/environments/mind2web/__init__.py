"""Mind2Web: tasks on recorded web pages, and the paper's scores (Deng et al., 2023). No data comes with the project."""

from constrained.environments.mind2web.env import Mind2WebEnv
from constrained.environments.mind2web.page import Element, read_page
from constrained.environments.mind2web.tasks import (
    Operation,
    RecordedStep,
    StepScore,
    WebTask,
    operation_f1,
    read_tasks,
    score_step,
)

__all__ = [
    "Element", "Mind2WebEnv", "Operation", "RecordedStep", "StepScore", "WebTask", "operation_f1", "read_page",
    "read_tasks", "score_step",
]  # fmt: skip

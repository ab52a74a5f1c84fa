"""PDDL planning tasks: states, applicable actions and their effects, delete relaxation, search."""

from constrained.planning.facts import Fact, FactSet
from constrained.planning.model import Domain, Problem
from constrained.planning.parser import read_domain
from constrained.planning.problem import read_problem_of
from constrained.planning.task import GroundAction, PlanningTask

__all__ = ["Domain", "Fact", "FactSet", "GroundAction", "PlanningTask", "Problem", "read_domain", "read_problem_of"]

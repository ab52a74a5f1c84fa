"""Action knowledge: read, bind, explain, check, draw."""

from constrained.knowledge.action_knowledge import ActionKnowledge
from constrained.knowledge.report import Judgement, Report

__all__ = ["ActionKnowledge", "Judgement", "Report"]

"""Action knowledge: read, bind, explain, check, draw."""

from constrained.knowledge.action_knowledge import ActionKnowledge
from constrained.knowledge.base import Knowledge
from constrained.knowledge.report import Judgement, Report
from constrained.knowledge.tool_knowledge import CallKnowledge, ToolKnowledge

__all__ = ["ActionKnowledge", "CallKnowledge", "Judgement", "Knowledge", "Report", "ToolKnowledge"]

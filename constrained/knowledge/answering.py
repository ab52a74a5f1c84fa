"""Which actions give an answer, and which call a tool with a text.

For agents that answer without acting first (chain of thought), or that plan all calls before they make the first
(ReWOO).
"""

from __future__ import annotations

from constrained.grammar.nodes import Rule, RuleRef, alt
from constrained.knowledge.action_graph import START, ActionGraph
from constrained.knowledge.action_knowledge import ActionKnowledge
from constrained.knowledge.base import Knowledge
from constrained.knowledge.path_state import PathState
from constrained.knowledge.unordered import UnorderedActions

_SAMPLE = b"x y"
"""An argument that fits wherever free text does."""


def answer_actions(knowledge: Knowledge) -> list[str]:
    """The actions that give an answer: nothing may follow them, and no earlier action determines their arguments."""
    rules, successors = knowledge.grammar.rules, knowledge.graph.rules
    return [a for a in knowledge.graph.actions if not successors[a] and not rules[a].params]


def answer_only(knowledge: Knowledge) -> Knowledge | None:
    """The knowledge of paths with a single action that gives the answer; None if no action does."""
    names = answer_actions(knowledge)
    if not names:
        return None
    start = Rule(START, alt([RuleRef(name) for name in names]))
    grammar = knowledge.grammar.with_rules({**knowledge.grammar.all_rules(), START: start}, RuleRef(START))
    comments = {**knowledge.comments, START: ""}  # the overview explains the other actions
    return ActionKnowledge(knowledge.name, PathState(grammar, ActionGraph(grammar.all_rules(), START)), comments)


def text_calls(knowledge: Knowledge) -> dict[str, str]:
    """Action -> its name as written, for each action of the form ``Name[free text]`` that another may follow."""
    unordered = UnorderedActions(knowledge.grammar, knowledge.graph)
    names = {}
    for action in knowledge.graph.actions:
        state = unordered.opening(action)
        head = state.forced_text() if state and knowledge.graph.rules[action] else b""
        if state and head.endswith(b"[") and (end := state.read(head + _SAMPLE + b"]")) and end.accepting:
            names[action] = head[:-1].decode()
    return names

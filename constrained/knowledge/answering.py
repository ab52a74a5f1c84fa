"""Actions that give an answer, and actions that are tools called with a text.

For agents that write an answer without acting first (chain of thought), or that plan every call before the first one is
made (ReWOO).
"""

from __future__ import annotations

from constrained.grammar.nodes import Call, Rule, alt
from constrained.knowledge.action_graph import START, ActionGraph
from constrained.knowledge.action_knowledge import ActionKnowledge
from constrained.knowledge.path_state import PathState
from constrained.knowledge.unordered import UnorderedActions

_SAMPLE = b"x y"
"""A text to try an argument with: it fits wherever any text does."""


def answer_actions(knowledge: ActionKnowledge) -> list[str]:
    """The actions that give an answer: nothing may follow them, and no action before decides their arguments."""
    rules, successors = knowledge.grammar.rules, knowledge.graph.rules
    return [a for a in knowledge.graph.actions if not successors[a] and not rules[a].params]


def answer_only(knowledge: ActionKnowledge) -> ActionKnowledge | None:
    """`knowledge` whose paths are one action, which gives the answer; None if no action does."""
    names = answer_actions(knowledge)
    if not names:
        return None
    start = Rule(START, alt([Call(name) for name in names]))
    grammar = knowledge.grammar.with_rules({**knowledge.grammar.rules, START: start}, Call(START))
    comments = {**knowledge.comments, START: ""}  # the overview explains the other actions
    return ActionKnowledge(knowledge.name, PathState(grammar, ActionGraph(grammar.rules, START)), comments)


def text_calls(knowledge: ActionKnowledge) -> dict[str, str]:
    """Action -> its name as written, for each action ``Name[any text]`` after which something may follow."""
    unordered = UnorderedActions(knowledge.grammar, knowledge.graph)
    found = {}
    for action in knowledge.graph.actions:
        state = unordered.opening(action)
        head = state.forced_text() if state and knowledge.graph.rules[action] else b""
        if state and head.endswith(b"[") and (end := state.read(head + _SAMPLE + b"]")) and end.accepting:
            found[action] = head[:-1].decode()
    return found

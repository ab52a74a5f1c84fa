"""How knowledge gives an answer, and which of its actions are tools called with a text.

For agents that write an answer without acting first (chain of thought), or plan every call before
the first is made (ReWOO).
"""

from __future__ import annotations

from constrained.grammar import nodes as n
from constrained.knowledge.action_graph import START, ActionGraph
from constrained.knowledge.action_knowledge import ActionKnowledge
from constrained.knowledge.unordered import Anywhere

ANY_TEXT = b"x y"
"""What any text will do for, to see whether an argument is one."""


def answering(knowledge: ActionKnowledge) -> list[str]:
    """The actions that give an answer: nothing may follow, and no action before decides their arguments."""
    rules, actions = knowledge.grammar.rules, knowledge.graph.rules
    return [a for a in knowledge.graph.actions if not actions[a] and not rules[a].params]


def answer_only(knowledge: ActionKnowledge) -> ActionKnowledge | None:
    """`knowledge` at the start of a path of one action, which gives the answer; None if none does."""
    names = answering(knowledge)
    if not names:
        return None
    start = n.Rule(START, n.alt([n.Call(name) for name in names]))
    grammar = knowledge.grammar.with_rules({**knowledge.grammar.rules, START: start}, n.Call(START))
    comments = {**knowledge.comments, START: ""}  # how to go about it says nothing of an answer alone
    return ActionKnowledge(knowledge.name, grammar, ActionGraph(grammar.rules, START), comments)


def text_calls(knowledge: ActionKnowledge) -> dict[str, str]:
    """Action -> its name as written, for each written ``Name[any text]`` after which something may follow."""
    anywhere = Anywhere(knowledge.grammar, knowledge.graph)
    found = {}
    for action in knowledge.graph.actions:
        state = anywhere.action(action)
        head = state.forced_text() if state and knowledge.graph.rules[action] else b""
        if head.endswith(b"[") and (end := state.read(head + ANY_TEXT + b"]")) and end.accepting:
            found[action] = head[:-1].decode()
    return found

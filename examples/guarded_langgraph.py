"""LangGraph's own tool node behind a guard; the shop is that of tool_policy.py.

It needs `pip install langgraph`. The model here is a list of what it writes, so that the example runs without one.
"""

from typing import Any

from tool_policy import POLICY, call

from constrained.guard import guard


def list_orders() -> str:
    """The customer's orders."""
    return call("list_orders", {})


def get_order(id: str) -> str:
    """An order's status and items."""
    return call("get_order", {"id": id})


def cancel_order(id: str, reason: str) -> str:
    """Cancel a pending order."""
    return call("cancel_order", {"id": id, "reason": reason})


def make_graph(answers: list[Any]):
    """A graph of a model, which gives these answers one after the other, and the guarded tools."""
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition

    given = iter(answers)
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [next(given)]})
    graph.add_node("tools", guard(ToolNode([list_orders, get_order, cancel_order]), POLICY, on_violation="tell"))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition, {"tools": "tools", END: END})
    graph.add_edge("tools", "model")
    return graph.compile()


def written(text: str, *calls: tuple[str, dict]) -> Any:
    """What the model writes: a text, or calls."""
    from langchain_core.messages import AIMessage

    return AIMessage(text, tool_calls=[{"name": n, "args": a, "id": f"{n}_{i}"} for i, (n, a) in enumerate(calls)])


def main() -> list[Any]:
    cancel = ("cancel_order", {"id": "#11", "reason": "no longer needed"})
    graph = make_graph(
        [
            written("", ("list_orders", {}), cancel),  # the first is carried out, the second isn't
            written("", ("get_order", {"id": "#11"})),
            written("", cancel),  # nobody said yes
            written("Shall I cancel order #11?"),
            written("", cancel),
            written("It is cancelled."),
        ]
    )
    state = graph.invoke({"messages": [("user", "I don't need order #11 any more.")]})
    state = graph.invoke({"messages": [*state["messages"], ("user", "Yes, please.")]})
    messages = state["messages"]
    for message in messages:
        message.pretty_print()
    return messages


if __name__ == "__main__":
    main()

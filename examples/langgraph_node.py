"""A LangGraph agent whose node writes only calls that the policy admits; the shop is that of tool_policy.py.

It needs `pip install langgraph`. What is known of the conversation is part of the graph's state.
"""

import argparse
import operator
from typing import Annotated, Any, TypedDict

from tool_policy import POLICY, TOOLS, call

from constrained import ActionKnowledge, compile_grammar
from constrained.decoding import generate
from constrained.models import load

STEPS = 6


class State(TypedDict):
    knowledge: ActionKnowledge
    memory: Any
    action: str
    done: Annotated[list[str], operator.add]


def make_graph(loaded, tools):
    """A graph of two nodes: the model writes a call of `tools`, and the shop carries it out."""
    from langgraph.graph import END, START, StateGraph

    def write(state: State) -> dict:
        knowledge = state["knowledge"].bind_view(tools.view(state["memory"]))
        compiled = compile_grammar(knowledge.next_action(), loaded.vocabulary)
        prompt = "\n".join([knowledge.to_text(), *state["done"][-2:], ""])
        written = generate(loaded, prompt, compiled, max_new_tokens=80, temperature=1.0)
        return {"knowledge": knowledge, "action": written.text}

    def act(state: State) -> dict:
        action = state["action"]
        name, arguments = tools.read(action) or ("respond", {})
        result = "Yes, please." if name == "respond" else call(name, arguments)
        memory = tools.told(state["memory"], action, result)
        return {"knowledge": state["knowledge"].after(action), "memory": memory, "done": [action, result]}

    graph = StateGraph(State)
    graph.add_node("write", write)
    graph.add_node("act", act)
    graph.add_edge(START, "write")
    graph.add_edge("write", "act")
    graph.add_conditional_edges("act", lambda state: END if len(state["done"]) >= 2 * STEPS else "write")
    return graph.compile()


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="a Hugging Face name or folder; default: the model that ships")
    options = parser.parse_args(arguments)
    knowledge = ActionKnowledge.from_tools(TOOLS, policy=POLICY)
    task = "Customer: I don't need order #11 any more."
    begin = {"knowledge": knowledge, "memory": knowledge.tools.policy.initial, "action": "", "done": [task]}
    done = make_graph(load(options.model), knowledge.tools).invoke(begin, {"recursion_limit": 4 * STEPS})["done"][1:]
    print(*done, sep="\n")
    return list(zip(done[::2], done[1::2]))


if __name__ == "__main__":
    main()

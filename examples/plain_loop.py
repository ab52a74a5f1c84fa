"""An agent as a plain loop: the model writes a call, the program carries it out, the result decides what may follow.

The shop is that of tool_policy.py. The customer is a line of code; a program of yours would ask one.
"""

import argparse

from tool_policy import POLICY, TOOLS, call

from constrained import ActionKnowledge, compile_grammar
from constrained.decoding import generate
from constrained.models import load


def play(loaded, task, steps=6):
    """The calls that the model made, each with its result."""
    knowledge = ActionKnowledge.from_tools(TOOLS, policy=POLICY)
    tools = knowledge.tools
    memory = tools.policy.initial
    done: list[tuple[str, str]] = []
    for _ in range(steps):
        knowledge = knowledge.bind_view(tools.view(memory))
        lines = [knowledge.to_text(), f"Customer: {task}", *(f"{action}\n{result}" for action, result in done[-1:]), ""]
        compiled = compile_grammar(knowledge.next_action(), loaded.vocabulary)
        action = generate(loaded, "\n".join(lines), compiled, max_new_tokens=80, temperature=1.0).text
        name, arguments = tools.read(action) or ("respond", {})
        result = "Yes, please." if name == "respond" else call(name, arguments)
        memory, knowledge = tools.told(memory, action, result), knowledge.after(action)
        print(f"> {action}\n{result}")
        done.append((action, result))
    return done


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="a Hugging Face name or folder; default: the model that ships")
    options = parser.parse_args(arguments)
    return play(load(options.model), "I don't need order #11 any more.")


if __name__ == "__main__":
    main()

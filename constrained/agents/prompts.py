"""What a model reads before a step.

The embedded model reads the memory alone: it was trained on it. Any other model first
reads the action knowledge as text, then the run so far, in its own chat form if it has one.
"""

from __future__ import annotations

from constrained.models.load import LoadedModel

KEPT_STEPS = (12, 6, 3, 1, 0)
"""Steps whose thoughts and observations a prompt repeats: as many as the context has room for."""

ROOM = 0.3
"""Share of a model's context that a prompt leaves to the step."""

_FORM = {
    "act": "Answer with one line: `Action n: ` and the action.",
    "react": "Answer with two lines: `Thought n: ` with a short reason, then `Action n: ` with the action.",
    "knowagent": "Answer with three lines: `ActionPath n: ` with the actions done so far, `Thought n: ` with a "
    "short reason, then `Action n: ` with the action.",
}


def build_prompt(loaded: LoadedModel, knowledge_text: str, task: str, strategy: str, memory: str, history) -> str:
    """The text that the step's own lines follow.

    Parameters
    ----------
    loaded : LoadedModel
    knowledge_text : str
        `ActionKnowledge.to_text()`.
    task, strategy : str
    memory : str
        What is known, as lines; may be empty.
    history : list of Step
    """
    if loaded.is_embedded and memory:
        return memory + "\n"
    context = loaded.max_context
    for texts, kept in [(knowledge_text, k) for k in KEPT_STEPS] + [("", KEPT_STEPS[-1])]:
        prompt = _prompt(loaded, texts, task, strategy, memory, history[max(len(history) - kept, 0) :])
        if context is None or len(loaded.tokenizer.encode(prompt, verbose=False)) <= context * (1 - ROOM):
            break
    return prompt


def _prompt(loaded: LoadedModel, knowledge_text: str, task: str, strategy: str, memory: str, history) -> str:
    lines = []
    for step in history:
        if step.thought:
            lines.append(f"Thought {step.n}: {step.thought}")
        lines.append(f"Action {step.n}: {step.action}")
        if step.observation is not None:
            lines.append(f"Observation {step.n}: {step.observation}")
    known = f"What is known:\n{memory}" if memory else ""
    instruction = "\n\n".join(filter(None, [knowledge_text, _FORM[strategy], f"Task: {task}", known]))
    so_far = "".join(f"{line}\n" for line in lines)
    if getattr(loaded.tokenizer, "chat_template", None):
        turns = [{"role": "user", "content": instruction}]
        opening = loaded.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        return opening + so_far
    return f"{instruction}\n\n{so_far}"

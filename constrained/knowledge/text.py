"""Action knowledge to text: what the masks enforce, in words the model reads.

The segments are KnowAgent's (section 3.2.2): overview, definition of each action, principle.
"""

from __future__ import annotations


def knowledge_text(knowledge) -> str:
    """Overview, rules, definitions and principle of `knowledge`, from its file's comments."""
    parts = []
    overview = knowledge.comments.get("start")
    if overview:
        parts.append(overview)
    rules = knowledge.graph.rules
    width = max(map(len, rules))
    lines = [
        f"  {name:<{width}} -> {', '.join(after) or 'nothing: the plan is over'}"
        + (" (or the plan ends)" if after and name in knowledge.graph.may_end else "")
        for name, after in rules.items()
    ]
    parts.append("What may follow what:\n" + "\n".join(lines))
    defined = [f"({i}) {text or name}" for i, (name, text) in enumerate(knowledge.actions.items(), 1)]
    parts.append("The actions:\n" + "\n".join(defined))
    parts.append(
        "Plan one action at a time. Each action must be one that may follow the action before it, "
        "and must name only what is there. ActionPath lists the actions done so far; Thought weighs "
        "what may come next; Action is exactly one action."
    )
    return "\n\n".join(parts)

"""Whether the masks admit every accepted answer; what they don't is explained by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tqdm import tqdm

from benchmarks.bfcl.gold import variants
from benchmarks.bfcl.judge import is_right
from benchmarks.bfcl.questions import Call, Question
from benchmarks.bfcl.written import in_language
from constrained.knowledge import CallKnowledge

OTHER = "the schema admits it, the masks don't"
"""The kind that would be a fault of ours."""

_PYTHON = {
    "object": dict, "array": list, "string": str, "number": (int, float), "integer": int, "boolean": bool,
    "null": type(None),
}  # fmt: skip


def check_sound(questions: Mapping[str, Sequence[Question]], knowledge_of: Any) -> dict[str, Any]:
    """Judge every accepted call by the masks of its question's tools, and by the benchmark's checker.

    Parameters
    ----------
    questions : mapping of str to sequence of Question
        By category.
    knowledge_of : callable
        Question -> the action knowledge of its tools.

    Returns
    -------
    dict
        By category: calls, those that are admitted in some of their accepted forms, and in every one; then the kinds of
        what isn't, and each such call.
    """
    by_category: dict[str, dict[str, int]] = {}
    kinds: dict[str, Counter[str]] = {"never admitted": Counter(), "not in every form": Counter()}
    left_out: list[dict[str, Any]] = []
    for category, listed in questions.items():
        counts: Counter[str] = Counter()
        for question in tqdm(listed, desc=category, unit="question", disable=None, leave=False):
            if not question.accepted:
                continue
            knowledge = knowledge_of(question)
            right = _all_right(question)
            counts["questions"] += 1
            counts["questions whose first accepted answer the checker takes"] += right
            for number, accepted in enumerate(question.accepted):
                forms = variants(accepted)
                refused = [why for one in forms if (why := refusal(knowledge, one))]
                counts["calls"] += 1
                counts["admitted in every accepted form"] += not refused
                counts["admitted in some form"] += len(refused) < len(forms)
                if refused:
                    never = len(refused) == len(forms)
                    kinds["never admitted" if never else "not in every form"][refused[0]] += 1
                    row = {"question": question.name, "call": number, "kind": refused[0], "never": never}
                    left_out.append(row)
        if counts:
            by_category[category] = dict(counts)
    listed_kinds = {name: dict(counted.most_common()) for name, counted in kinds.items()}
    return {"categories": by_category, **listed_kinds, "not admitted": left_out}


def _all_right(question: Question) -> bool:
    calls = [variants(accepted)[0] for accepted in question.accepted]
    return is_right(question, in_language(calls, question.functions, question.language))


def refusal(knowledge: CallKnowledge, call: Call) -> str:
    """Why the masks don't admit a call, by kind; empty if they do."""
    [(name, arguments)] = call.items()
    form = knowledge.form
    if name not in form.schemas:
        return "there is no such tool"
    if knowledge.judge({"name": name, "arguments": arguments}):
        return ""
    return next(iter(misfits(arguments, form.schemas[name])), OTHER)


def misfits(value: Any, schema: Mapping[str, Any]) -> Iterable[str]:
    """Yield in which ways a value breaks its schema, by kind; of the keywords that BFCL's schemas use."""
    kind = schema.get("type")
    if isinstance(kind, str) and kind in _PYTHON:
        right = isinstance(value, _PYTHON[kind]) and (kind == "boolean" or not isinstance(value, bool))
        if not right and not (kind == "integer" and isinstance(value, float) and value.is_integer()):
            what = "null" if value is None else "a text" if isinstance(value, str) else "another value"
            yield f"{what} where the schema wants {kind}"
            return
    if "enum" in schema and value not in schema["enum"]:
        yield "not among the values that the schema lists"
    if isinstance(value, dict) and isinstance(properties := schema.get("properties"), dict):
        for name in schema.get("required") or ():
            if name not in value:
                yield "left out though the schema requires it"
        for name, member in value.items():
            if name not in properties:
                yield "not in the schema's properties"
            else:
                yield from misfits(member, properties[name])
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            yield "another number of items than the schema wants"
        for item in value:
            yield from misfits(item, schema.get("items") or {})

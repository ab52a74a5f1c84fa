"""Conditions on one value as a JSON Schema: the schema of the values for which they hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from constrained.errors import KnowledgeError
from constrained.knowledge.lines.expression import Evaluation, Expression, Unknown
from constrained.knowledge.lines.forms import (
    Call,
    Compare,
    Form,
    Member,
    Name,
    Negation,
    Subscript,
    all_parts,
    free_names,
    membership,
)
from constrained.planning.model import Junction, Literal

_KEYWORDS = {"<": "exclusiveMaximum", "<=": "maximum", ">": "exclusiveMinimum", ">=": "minimum"}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "==", "in": "not in", "not in": "in"}


def path_of(form: Form) -> tuple[str, ...] | None:
    """The path of a form such as ``x[i].m``: ``("x", "[i]", "m")``; None if it isn't a path."""
    match form:
        case Name(name):
            return (name,)
        case Member(inner, step) if (below := path_of(inner)) is not None:
            return (*below, step)
        case Subscript(inner, (Name("i"),)) if (below := path_of(inner)) is not None:
            return (*below, "[i]")
    return None


def narrowed_path(form: Form, argument: str) -> tuple[str, ...] | None:
    """The one path from `argument` that a condition is about, if `schema_of` can express the condition."""
    paths = [path for part in all_parts(form) if (path := path_of(part)) is not None and path[0] == argument]
    path = max(paths, key=len)
    return path if _expressible(form, path) else None


def _expressible(form: Form, path: tuple[str, ...]) -> bool:
    if path[0] not in free_names(form):
        return True
    match form:
        case Junction(_, parts):
            return all(_expressible(part, path) for part in parts)
        case Negation(part):
            return _expressible(part, path)
        case Literal():
            return _expressible(membership(form), path)
        case Compare(left, sign, right):
            side, opposite = (left, right) if path_of(left) == path else (right, left)
            sides = path_of(side) == path and path[0] not in free_names(opposite)
            return sides and (side is left or sign in _FLIPPED)
        case Call("search", (pattern, text)):
            return path_of(text) == path and path[0] not in free_names(pattern)
    return False


def schema_of(
    form: Form,
    path: tuple[str, ...],
    kind: Any,
    names: Mapping[str, Any],
    evaluation: Evaluation,
    wanted: bool = True,
) -> dict[str, Any] | bool:
    """The JSON Schema of the values at `path`, of type `kind`, for which a condition holds (if not `wanted`: fails).

    If the condition depends on something unknown, no value is valid.

    Raises
    ------
    KnowledgeError
        Texts are compared by their order, which a schema can't express.
    """
    try:
        # A part that isn't about the value holds for all values or for none.
        if path[0] not in free_names(form):
            return bool(Expression(form).value(names, evaluation)) is wanted
        match form:
            case Negation(inner):
                return schema_of(inner, path, kind, names, evaluation, not wanted)
            case Junction(operator, parts):
                schemas = [schema_of(part, path, kind, names, evaluation, wanted) for part in parts]
                return {"allOf" if (operator == "and") is wanted else "anyOf": schemas}
            case Literal():
                return schema_of(membership(form), path, kind, names, evaluation, wanted)
            case Call(_, (pattern, _)):
                matched = {"pattern": Expression(pattern).value(names, evaluation)}
                return {"type": "string", **(matched if wanted else {"not": matched})}
        # A comparison: the path to the left, negation taken into the sign, the other side evaluated.
        assert isinstance(form, Compare)
        left, sign, right = form.left, form.sign, form.right
        if path_of(left) != path:
            left, sign, right = right, _FLIPPED[sign], left
        sign = sign if wanted else _OPPOSITE[sign]
        given = Expression(right).value(names, evaluation)
    except Unknown:
        return False
    # Order becomes a bound, membership and equality an enum.
    if sign in _KEYWORDS:
        if isinstance(given, str) and kind not in ("integer", "number"):
            what = f"{'.'.join(path)} may be any text, and a schema can't compare texts by their order"
            raise KnowledgeError(what, "list its values: `x in [...]`")
        return {"type": "number", _KEYWORDS[sign]: given + 0} if isinstance(given, (int, float)) else False
    if "in" in sign and not isinstance(given, (list, dict, range)):
        return False
    listed = list(given) if "in" in sign else [given]
    among = {"enum": listed} if listed else False
    return among if sign in ("in", "==") else {"not": among}

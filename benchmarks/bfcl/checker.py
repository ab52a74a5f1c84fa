"""Whether calls are right by BFCL's rules, where its package isn't installed.

The rules are those of bfcl-eval 2026.3.23 (Apache-2.0), quirks included, as a test holds both equal: strings are
compared without case, spaces and some punctuation; a value may be a variable if the accepted ones are; Java's and
JavaScript's values are texts in these languages, read by regular expressions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from benchmarks.bfcl.questions import Accepted, Call

PYTHON: dict[str, type] = {
    "string": str, "integer": int, "float": float, "boolean": bool, "array": list, "tuple": list, "dict": dict,
    "any": str,
}  # fmt: skip
JAVA: dict[str, type] = {
    "byte": int, "short": int, "integer": int, "float": float, "double": float, "long": int, "boolean": bool,
    "char": str, "Array": list, "ArrayList": list, "Set": set, "HashMap": dict, "Hashtable": dict, "Queue": list,
    "Stack": list, "String": str, "any": str,
}  # fmt: skip
JAVASCRIPT: dict[str, type] = {
    "String": str, "integer": int, "float": float, "Bigint": int, "Boolean": bool, "dict": dict, "array": list,
    "any": str,
}  # fmt: skip
TYPES = {"python": PYTHON, "java": JAVA, "javascript": JAVASCRIPT}
"""Language -> name of a type -> the Python type of its values."""

_NESTED = {"python": ("array", "tuple"), "java": ("Array", "ArrayList", "array"), "javascript": ("array",)}
_IGNORED = re.compile(r"[ \,\.\/\-\_\*\^]")


def is_right(
    functions: Sequence[dict[str, Any]], calls: Sequence[Call], accepted: Sequence[Accepted], category: str, lang: str
) -> bool:
    """Whether calls are right. Calls for which the benchmark's own checker would raise an exception are wrong."""
    try:
        return _is_right(functions, calls, accepted, category, lang)
    except Exception:  # the data's errors and odd calls alike: a type without name, items that are missing, ...
        return False


def _is_right(
    functions: Sequence[dict[str, Any]], calls: Sequence[Call], accepted: Sequence[Accepted], category: str, lang: str
) -> bool:
    if "parallel" in category:
        if len(calls) != len(accepted):
            return False
        left = list(calls)
        for one in accepted:
            function = _described(functions, one)
            index = next((i for i, call in enumerate(left) if _fits(function, call, one, lang)), None)
            if index is None:
                return False
            del left[index]
        return True
    if "multiple" in category:
        return len(calls) == len(accepted) and _fits(_described(functions, accepted[0]), calls[0], accepted[0], lang)
    return len(calls) == 1 and _fits(functions[0], calls[0], accepted[0], lang)


def _described(functions: Sequence[dict[str, Any]], one: Accepted) -> dict[str, Any]:
    name = next(iter(one))
    return next(function for function in functions if function["name"] == name)


def _fits(function: dict[str, Any], call: Call, accepted: Accepted, lang: str) -> bool:
    """Whether one call is the one accepted."""
    values_of = next(iter(accepted.values()))
    properties, required = function["parameters"]["properties"], function["parameters"]["required"]
    if function["name"] not in call:
        return False
    arguments = call[function["name"]]
    if any(name not in arguments for name in required):
        return False
    for name, value in arguments.items():
        if (
            name not in properties
            or name not in values_of
            or not _value(properties[name], value, values_of[name], lang)
        ):
            return False
    return all(name in arguments or "" in values for name, values in values_of.items())


def _value(schema: dict[str, Any], value: Any, accepted: list[Any], lang: str) -> bool:
    kind = schema["type"]
    expected, inner = TYPES[lang][kind], None
    if lang != "python" and type(value) is not str:
        return False
    items = schema["items"]["type"] if kind in _NESTED[lang] else None
    if items is not None:
        inner = TYPES[lang][items]
    if lang == "java":
        value = java_value(value, kind, items)
    elif lang == "javascript":
        value = javascript_value(value, kind, items)
    elif kind == "tuple" and type(value) is tuple:
        value = list(value)
    elif kind == "float" and type(value) is int:
        value = float(value)
    fits, variable = _typed(value, accepted, expected, inner)
    if not fits:
        return False
    if variable:
        return value in accepted
    if expected is dict:
        return _dict(value, accepted)
    if expected is list:
        return _dicts(value, accepted) if inner is dict else _list(value, accepted)
    if expected is str:
        return _plain(value) in [_plain(one) for one in accepted if type(one) is str]
    return value in accepted


def _typed(value: Any, accepted: list[Any], expected: Any, inner: Any) -> tuple[bool, bool]:
    """(whether the value has a type that is accepted, whether it stands for a variable)."""
    theirs = next((type(one) for one in accepted if one != ""), None)
    variable = theirs is not None and theirs is not expected
    if type(value) is expected:
        if inner is None:
            return True, variable
        for one in accepted:
            if type(one) is not list or all(_typed(item, one, inner, None)[0] for item in value):
                return True, variable
        return False, variable
    return theirs is not None and type(value) is theirs, True


def _plain(text: str) -> str:
    return _IGNORED.sub("", text).lower().replace("'", '"')


def _plain_if_text(value: Any) -> Any:
    return _plain(value) if type(value) is str else value


def _list(value: list[Any], accepted: list[Any]) -> bool:
    plain = [_plain_if_text(item) for item in value]
    return plain in [[_plain_if_text(one[i]) for i in range(len(one))] for one in accepted]


def _dict(value: dict[Any, Any], accepted: list[Any]) -> bool:
    return any(one != "" and _same_members(value, one) for one in accepted)


def _same_members(value: dict[Any, Any], one: dict[Any, list[Any]]) -> bool:
    for key, member in value.items():
        if key not in one or _plain_if_text(member) not in [_plain_if_text(other) for other in one[key]]:
            return False
    return all(key in value or "" in members for key, members in one.items())


def _dicts(value: list[Any], accepted: list[Any]) -> bool:
    return any(
        len(value) == len(one) and all(_dict(item, [one[i]]) for i, item in enumerate(value)) for one in accepted
    )


# Java's values as texts

_JAVA_NUMBERS = {
    **dict.fromkeys(("byte", "short", "integer"), (r"^-?\d+$", int)),
    "long": (r"^-?\d+[lL]$", int),
    "float": (r"^-?\d+(\.\d+)?([eE][+-]?\d+)?[fF]$", float),
    "double": (r"^-?\d+(\.\d+)?([eE][+-]?\d+)?$", float),
}


def java_value(text: str, kind: str, items: str | None = None) -> Any:
    """The value that a text in Java stands for; the text itself if it is none of its type.

    Raises NotImplementedError: the benchmark reads no values of the type.
    """
    if kind in _JAVA_NUMBERS:
        form, number = _JAVA_NUMBERS[kind]
        suffix = {"long": "lL", "float": "fF"}.get(kind, "")
        return number(text.strip("\n").rstrip(suffix) if suffix else text) if re.match(form, text) else text
    if kind == "boolean":
        return text == "true" if text in ("true", "false") else text
    if kind == "ArrayList":
        return _java_list(text, items)
    if kind == "Array":
        match = re.search(r"new\s+\w+\[\]\s*\{(.*?)\}", text)
        pieces = [piece.strip() for piece in match[1].split(",") if piece.strip()] if match else []
        return [java_value(piece, items) if items else _java_any(piece) for piece in pieces] if match else text
    if kind == "HashMap":
        return _java_map(text)
    if kind in ("char", "String", "any"):
        return text
    raise NotImplementedError(kind)


def _java_list(text: str, items: str | None) -> Any:
    match = re.search(r"new\s+ArrayList<\w*>\(Arrays\.asList\((.+?)\)\)", text)
    added = re.search(r"new\s+ArrayList<\w*>\(\)\s*\{\{\s*(.+?)\s*\}\}", text, re.DOTALL)
    if match:
        pieces = [piece.strip() for piece in match[1].split(",")]
    elif added:
        pieces = [piece.strip() for piece in re.findall(r"add\((.+?)\)", added[1])]
    else:
        return [] if re.search(r"new\s+ArrayList<\w*>\(\)", text) else text
    if items in ("char", "String"):
        return [piece[1:-1] for piece in pieces]
    return [java_value(piece, items) if items else _java_any(piece) for piece in pieces]


def _java_map(text: str) -> Any:
    match = re.search(r"new\s+HashMap<.*?>\s*\(\)\s*\{\s*\{?\s*(.*?)\s*\}?\s*\}", text, re.DOTALL)
    if match:
        return {key: _java_any(value.strip()) for key, value in re.findall(r"put\(\"(.*?)\",\s*(.*?)\)", match[1])}
    return {} if re.search(r"new\s+HashMap<.*?>\s*\(\)", text) else text


def _java_any(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    if text.startswith('"') and text.endswith('"'):
        return text[1:-1]
    for kind in ("long", "float"):
        if type(value := java_value(text, kind)) is not str:
            return value
    return _number_or_text(text)


def _number_or_text(text: str) -> Any:
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    return text


# JavaScript's values as texts

_JAVASCRIPT_NUMBERS = {
    "integer": (r"^-?\d+$", int), "float": (r"^-?\d+(\.\d+)?$", float), "Bigint": (r"^-?\d+n$", int),
}  # fmt: skip


def javascript_value(text: str, kind: str, items: str | None = None) -> Any:
    """The value that a text in JavaScript stands for; the text itself if it is none of its type."""
    if kind == "String":
        return text[1:-1] if _quoted(text) else text
    if kind in _JAVASCRIPT_NUMBERS:
        form, number = _JAVASCRIPT_NUMBERS[kind]
        return number(text[:-1] if kind == "Bigint" else text) if re.match(form, text) else text
    if kind == "Boolean":
        return text == "true" if text in ("true", "false") else text
    if kind == "array":
        return _javascript_list(text.strip(), items)
    if kind == "dict":
        return _javascript_dict(text.strip())
    if kind == "any":
        return text
    raise NotImplementedError(kind)


def _javascript_list(code: str, items: str | None) -> Any:
    rows = re.match(
        r"\[\s*\[.*?\]\s*(,\s*\[.*?\]\s*)*\]|\bnew\s+Array\(\s*\[.*?\]\s*(,\s*\[.*?\]\s*)*\)", code
    )  # a list of lists
    try:
        if rows:
            inner = [row.strip() for row in re.findall(r"\[(.*?)\]", rows[0])]
            inner[0] = inner[0].removeprefix("[")
            return [[_javascript_any(piece.strip()) for piece in row.split(",")] for row in inner]
        match = re.match(r"\[(.*?)\]|\bnew\s+Array\((.*?)\)", code)
        if not match:
            return code
        listed = next((group for group in match.groups() if group is not None), "").strip()
        pieces = [piece.strip() for piece in listed.split(",")] if listed else []
        return [javascript_value(piece, items) if items else _javascript_any(piece) for piece in pieces]
    except Exception:  # as the benchmark does
        return code


def _javascript_dict(code: str) -> Any:
    if code == "{}":
        return {}
    match = re.match(r"\{(.*?)\}", code)
    if not match:
        return code
    out = {}
    for name, value in re.findall(r"([^:]+):\s*(.*?)(?:,\s*(?=[^,]+:)|$)", match[1]):
        key, value = name.strip().strip("'\""), value.strip()
        if value.startswith("[") and value.endswith("]"):
            out[key] = _javascript_list(value, None)
        elif value.startswith("{") and value.endswith("}"):
            out[key] = _javascript_dict(value)
        else:
            out[key] = _javascript_any(value.strip("'\""))
    return out


def _javascript_any(text: str) -> Any:
    text = text.strip()
    if text in ("true", "false"):
        return text == "true"
    return text[1:-1] if _quoted(text) else _number_or_text(text)


def _quoted(text: str) -> bool:
    return any(text.startswith(quote) and text.endswith(quote) for quote in "\"'")

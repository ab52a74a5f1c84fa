"""Calls as models write them for BFCL: read from text, and values written in Java or JavaScript where tools want that.

Two forms are read: the benchmark's own, a list of calls in Python's, Java's or JavaScript's syntax, as its decoder
reads it; and ours, JSON in ``<tool_call>`` tags. Nothing that a model writes is evaluated.
"""

from __future__ import annotations

import ast
import json
import operator
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.bfcl.questions import Call

LONGEST = 20_000
"""Characters of a text that are read, at most."""


class NoCalls(ValueError):
    """A text is not written in the form of calls."""


def read_own_form(text: str, lang: str, official: Callable[[str], Any] | None = None) -> list[Call]:
    """Read calls in the benchmark's form, ``[name(argument=value), ...]``. Raises NoCalls: it has another form.

    `official`: the benchmark's own reader of a call in Java or JavaScript, in place of ours.
    """
    text = text.strip("`\n ")
    text = text if text.startswith("[") else f"[{text}"
    text = text if text.endswith("]") else f"{text}]"
    if len(text) > LONGEST:
        raise NoCalls("too long")
    try:
        if official is not None:
            return _form_of_calls(official(text[1:-1]))
        return _python(text) if lang == "python" else _braced(text[1:-1])
    except Exception as error:  # of syntax, values, depth, and whatever the benchmark's reader raises
        raise NoCalls(str(error)) from None


def read_tool_calls(text: str) -> list[Call]:
    """Read calls in Hermes's form; also bare JSON, alone or fenced, of one call or a list of them.

    Raises NoCalls: there is none, or one is no call.
    """
    tagged = re.findall(r"<tool_call>(.*?)(?:</tool_call>|$)", text[:LONGEST], re.DOTALL)
    if not tagged:
        fenced = re.search(r"```(?:json)?\s*(.*?)```", text[:LONGEST], re.DOTALL)
        tagged = [fenced[1] if fenced else text[:LONGEST]]
    calls = []
    for piece in tagged:
        try:
            value = json.loads(piece)
        except (ValueError, RecursionError) as error:
            raise NoCalls(str(error)) from None
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, dict) or not isinstance(one.get("name"), str):
                raise NoCalls(f"{str(one)[:80]} is no call")
            arguments = one.get("arguments", one.get("parameters", {}))
            if not isinstance(arguments, dict):
                raise NoCalls(f"the arguments of {one['name']} are no object")
            calls.append({one["name"]: arguments})
    if not calls:
        raise NoCalls("an empty list")
    return calls


def _form_of_calls(read: Any) -> list[Call]:
    if not isinstance(read, list) or not all(isinstance(one, dict) and len(one) == 1 for one in read):
        raise NoCalls("no list of calls")
    return read


# Python's syntax


def _python(text: str) -> list[Call]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as "invalid decimal literal": the text is a model's
        body = ast.parse(text.strip().strip("'"), mode="eval").body
    listed = [body] if isinstance(body, ast.Call) else getattr(body, "elts", None)
    if listed is None or not all(isinstance(one, ast.Call) for one in listed):
        raise NoCalls("no list of calls")
    return [_call(one) for one in listed]


def _call(call: ast.Call) -> Call:
    parts: list[str] = []
    name: ast.expr = call.func
    while isinstance(name, ast.Attribute):
        parts.append(name.attr)
        name = name.value
    parts += [name.id] if isinstance(name, ast.Name) else []
    return {".".join(reversed(parts)): {one.arg: _value(one.value) for one in call.keywords}}  # type: ignore[misc]


def _value(node: ast.expr | None) -> Any:
    match node:
        case ast.Constant(value=value):
            return "..." if value is ... else value
        case ast.UnaryOp(operand=ast.Constant(value=int() | float() | complex() as number)):
            return -number  # whatever the sign, as the benchmark's decoder does
        case ast.List(elts=items):
            return [_value(item) for item in items]
        case ast.Tuple(elts=items):
            return tuple(_value(item) for item in items)
        case ast.Dict(keys=keys, values=values):
            return {_value(key): _value(value) for key, value in zip(keys, values)}
        case ast.BinOp():
            return _arithmetic(node)
        case ast.Name(id=name):
            return name
        case ast.Call(keywords=[]):
            return ast.unparse(node)
        case ast.Call():
            return _call(node)
        case ast.Subscript(value=of, slice=at):
            return f"{ast.unparse(of)}[{ast.unparse(at)}]"
    raise NoCalls(f"{type(node).__name__} is no value")


_OPERATORS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
}  # fmt: skip

_LARGEST = 1e100
"""The largest number that arithmetic in a call may use or give; its powers are at most to the hundredth."""


def _arithmetic(node: ast.expr) -> Any:
    """The number that an expression of numbers stands for."""
    match node:
        case ast.Constant(value=int() | float() as number):
            found: Any = number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            found = -_arithmetic(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            found = _arithmetic(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            one, other = _arithmetic(left), _arithmetic(right)
            if isinstance(op, ast.Pow) and abs(other) > 100:
                raise NoCalls("a power too high")
            found = _OPERATORS[type(op)](one, other)
        case _:
            raise NoCalls("no arithmetic of numbers")
    if isinstance(found, complex) or abs(found) > _LARGEST:
        raise NoCalls("a number too large")
    return found


# Java's and JavaScript's syntax

_HEAD = re.compile(r"\s*([A-Za-z_$][\w$]*(?:\s*\.\s*[A-Za-z_$][\w$]*)*)\s*\(")
_NAMED = re.compile(r"\s*([A-Za-z_$][\w$]*)\s*=(?!=)\s*(.*)", re.DOTALL)
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*")
_QUOTED = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_NUMBER = re.compile(r"-?\d[\w.]*")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def _braced(text: str) -> list[Call]:
    """The first call of a text, with its named arguments; unnamed identifiers count as an argument without a name."""
    head = _HEAD.match(text)
    if head is None:
        raise NoCalls("no call")
    arguments: dict[Any, Any] = {}
    pieces, end = _pieces(text, head.end())
    if text[end:].strip() not in ("", ";"):
        raise NoCalls("more than one call")
    for piece in map(str.strip, pieces):
        named = _NAMED.fullmatch(piece)
        if named:
            name, value = named[1], named[2].strip()
        elif _IDENTIFIER.fullmatch(piece):
            name, value = None, piece
        elif _QUOTED.fullmatch(piece) or _NUMBER.fullmatch(piece):
            continue
        else:
            raise NoCalls(f"{piece[:80]!r} is no argument")
        if name in arguments:
            raise NoCalls(f"two arguments named {name}")
        quoted = value[:1] in ("'", '"')
        if not value or (quoted and not _QUOTED.fullmatch(value)):
            raise NoCalls(f"{value[:80]!r} is no value")
        arguments[name] = value[1:-1] if quoted else value
    return [{re.sub(r"\s", "", head[1]): arguments}]


def _pieces(text: str, at: int) -> tuple[list[str], int]:
    """The texts between commas from `at` to the closing parenthesis, and where that ends; brackets and quotes count."""
    pieces, open_, begin = [], [")"], at
    while at < len(text):
        sign = text[at]
        if sign in "\"'`":
            end = at + 1
            while end < len(text) and text[end] != sign:
                end += 2 if text[end] == "\\" else 1
            if end >= len(text):
                raise NoCalls("a text that isn't closed")
            at = end
        elif sign in _CLOSING:
            open_.append(_CLOSING[sign])
        elif sign == "<" and (generic := re.compile(r"<[\w\s,<>?\[\].]*>(?=[\s(])").match(text, at)):
            at = generic.end() - 1
        elif sign in ")]}":
            if open_.pop() != sign:
                raise NoCalls("brackets that don't match")
            if not open_:
                return [*pieces, text[begin:at]] if text[begin:at].strip() or pieces else [], at + 1
        elif sign == "," and len(open_) == 1:
            pieces.append(text[begin:at])
            begin = at + 1
        at += 1
    raise NoCalls("a call that isn't closed")


# values as the tools of a language want them


def in_language(calls: Sequence[Call], functions: Sequence[Mapping[str, Any]], lang: str) -> list[Call]:
    """Calls whose values are JSON, as the benchmark wants them: for Java and JavaScript, texts in that language."""
    if lang == "python":
        return [dict(call) for call in calls]
    schemas = {function["name"]: function["parameters"].get("properties", {}) for function in functions}
    write = java_text if lang == "java" else javascript_text
    return [
        {name: {key: write(value, schemas.get(name, {}).get(key, {})) for key, value in arguments.items()}}
        for call in calls
        for name, arguments in call.items()
    ]


_SUFFIX = {"long": "L", "float": "f"}


def java_text(value: Any, schema: Mapping[str, Any]) -> str:
    """A value of JSON in Java. Texts stand for themselves: the benchmark takes them without quotes."""
    kind = schema.get("type", "any")
    items = schema.get("items") if isinstance(schema.get("items"), dict) else {}
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, (int, float)):
        number = repr(float(value)) if kind in ("float", "double") else repr(value)
        return number + _SUFFIX.get(kind, "")
    if isinstance(value, list):
        if kind == "Array":  # the benchmark leaves the quotes of an array's texts on
            return f"new {items.get('type', 'Object')}[]{{{', '.join(java_text(item, items) for item in value)}}}"
        listed = ", ".join(_quoted_text(item, items) for item in value)
        return f"new ArrayList<>(Arrays.asList({listed}))" if value else "new ArrayList<>()"
    puts = " ".join(f'put("{key}", {_quoted_text(member, {})});' for key, member in value.items())
    return f"new HashMap<String, Object>() {{{{ {puts} }}}}" if value else "new HashMap<>()"


def _quoted_text(value: Any, schema: Mapping[str, Any]) -> str:
    return f'"{value}"' if isinstance(value, str) else java_text(value, schema)


def javascript_text(value: Any, schema: Mapping[str, Any]) -> str:
    """A value of JSON in JavaScript. Texts stand for themselves: the benchmark takes them without quotes."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and schema.get("type") == "Bigint":
        return f"{value}n"
    return json.dumps(value, ensure_ascii=False)

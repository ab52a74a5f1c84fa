"""Specifications: grammars as JSON, for hosts whose requests come from other processes or machines.

    {"choices": ["yes", "no"]}
    {"regex": "[0-9]+"}
    {"lark": "start: ...", "start": "start", "bindings": {"N": "3"}, "grammars": {"ACTION": {...}}}
    {"json_schema": {"type": "object", ...}, "whitespace": "single"}
    {"knowledge": "household", "view": {"RECEPTACLE": ["desk 1"], ...}, "path": ["go to desk 1"]}
    {"tools": [{"name": "search", "parameters": {...}}], "call_format": "hermes", "path": [...]}

Each has exactly one of these six kinds; any may have "begun", the beginning of the grammar's text that the prompt
ends with. "bindings" give slots texts, or texts per key; "view" does, too, and empties all other slots; "grammars" give
slots specifications. Knowledge and tools stand for the actions that may come after "path"; with "steps_left", those
from which the path can end within so many steps. The other fields of "json_schema" and "tools" are the arguments of
`Grammar.from_json_schema` and `ActionKnowledge.from_tools`. A specification never names a file: a grammar is text, or
one that ships.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from constrained.automaton import CompiledGrammar, Grammar, Matcher, Vocabulary, compile_grammar
from constrained.errors import ConstrainedError
from constrained.grammar.source import LIBRARIES, shipped_names
from constrained.knowledge import ActionKnowledge, Knowledge

MAX_SPECIFICATION = 1 << 20
"""Characters of a specification as JSON."""

MAX_GRAMMAR = 1 << 16
"""Characters of a regex or of grammar text; values of slots and choices, cheaper to read, may have more."""

MAX_NESTING = 8
"""Depth of specifications inside one another, by "grammars"."""

MAX_READ = 64
"""Grammar texts that are cached as read."""

MAX_COMPILED = 64
"""Compiled grammars in a `CompiledCache`; the least recently used goes first."""

_JSON = {"whitespace", "any_order", "closed"}
_ON_PATH = {"bindings", "view", "path", "steps_left"}
_KINDS = {
    "choices": {"choices"},
    "regex": {"regex"},
    "lark": {"lark", "start", "bindings", "grammars"},
    "json_schema": {"json_schema", *_JSON},
    "knowledge": {"knowledge", *_ON_PATH},
    "tools": {"tools", "call_format", "follow", "end", *_JSON, *_ON_PATH},
}
_IMPORTED = re.compile(r"[ \t]+([\w.]+)")
_LARK_LIBRARY = ("common", "lark", "python", "unicode")


class CompiledCache:
    """Caches compiled grammars by the content of their specifications.

    Servers compile on one thread and fill masks on others; matchers of one grammar share what they have visited, so
    each use of a matcher must hold :attr:`lock` (`request_matcher` does).
    """

    def __init__(self, vocabulary: Vocabulary):
        self.vocabulary = vocabulary
        self.lock = threading.Lock()
        self._compiled = lru_cache(MAX_COMPILED)(self._compile)

    def matcher(self, specification: Mapping | str, max_new_tokens: int | None = None) -> Matcher:
        """A matcher at the beginning of a request.

        Raises ConstrainedError: as `read_specification`, or the budget is below the shortest text.
        """
        compiled, begun = self.compiled(specification)
        with self.lock:
            matcher = compiled.matcher(begun)
            matcher.set_budget(max_new_tokens)
        return matcher

    def compiled(self, specification: Mapping | str) -> tuple[CompiledGrammar, str]:
        """The compiled grammar, and the beginning of its text that the prompt ends with; raises as `matcher`."""
        fields = parse(specification)
        begun = _text(fields.pop("begun", ""), "begun")
        return self._compiled(json.dumps(fields)), begun  # not sorted: the order of a schema's properties is its texts'

    def _compile(self, specification: str) -> CompiledGrammar:
        return compile_grammar(read_specification(json.loads(specification)), self.vocabulary)

    def __len__(self) -> int:
        return self._compiled.cache_info().currsize


def check_specification(specification: Mapping | str) -> None:
    """Check a specification as far as is possible without a vocabulary.

    Raises ConstrainedError: what is wrong, and where.
    """
    fields = parse(specification)
    begun = fields.get("begun", "")
    if not read_specification(fields).is_prefix(begun):  # also finds unbound slots, and bindings that leave no text
        raise ConstrainedError(f"no text of the grammar begins with {begun!r}")


def parse(specification: Mapping | str) -> dict[str, Any]:
    """A specification as a dictionary; text is read as JSON (vLLM's server passes no nested arguments)."""
    try:
        text = specification if isinstance(specification, str) else json.dumps(specification)
        if len(text) > MAX_SPECIFICATION:
            raise ConstrainedError(
                f"the specification has {len(text)} characters, more than {MAX_SPECIFICATION}",
                "bind only what is in view, or raise constrained.decoding.hosts.specification.MAX_SPECIFICATION",
            )
        fields = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConstrainedError(f"the specification is not JSON: {error}", _hint()) from None
    if not isinstance(fields, dict):
        raise ConstrainedError(f"a specification is a JSON object, not {type(fields).__name__}", _hint())
    return fields


def read_specification(fields: Mapping, depth: int = 0) -> Grammar:
    """The grammar of a parsed specification.

    Raises ConstrainedError: unknown or missing fields, or (`GrammarError`, `KnowledgeError`) a grammar that is refused.
    """
    if depth > MAX_NESTING:
        raise ConstrainedError(f"specifications are nested more than {MAX_NESTING} deep", "write one grammar instead")
    # Exactly one kind, and only its fields: a misspelt field must not leave a constraint out in silence.
    kinds = [kind for kind in _KINDS if kind in fields]
    if len(kinds) != 1:
        raise ConstrainedError(f"a specification has one of {', '.join(_KINDS)}; this has {len(kinds)}", _hint())
    (kind,) = kinds
    unknown = sorted(set(fields) - _KINDS[kind] - {"begun"})
    if unknown:
        known = ", ".join(sorted(_KINDS[kind] | {"begun"}))
        raise ConstrainedError(f"{kind} has no field {unknown[0]!r}", f"the fields are: {known}")
    _text(fields.get("begun", ""), "begun")
    if kind == "choices":
        return Grammar.from_choices(_texts(fields["choices"], "choices"))
    if kind == "regex":
        return Grammar.from_regex(_short(_text(fields["regex"], "regex"), "regex"))
    if kind == "json_schema":
        return Grammar.from_json_schema(_json(fields["json_schema"], kind), **_arguments(fields, _JSON))
    bindings = _bindings(fields, "bindings")
    if kind == "lark":
        grammar = _read_lark(_source(fields["lark"], "lark"), _text(fields.get("start", "start"), "start"))
        inner = _object(fields.get("grammars", {}), "grammars")
        bindings |= {name: read_specification(_object(part, name), depth + 1) for name, part in inner.items()}
        return grammar.bind(**bindings) if bindings else grammar
    if kind == "knowledge":
        knowledge = _read_knowledge(_source(fields["knowledge"], "knowledge"))
    else:
        tools = _arguments(fields, _KINDS["tools"] - _ON_PATH - {"tools"}) | {"tools": _json(fields["tools"], kind)}
        knowledge = _read_tools(json.dumps(tools, sort_keys=False))
    # Bind first, as what may follow an action depends on it; then follow the path.
    if "view" in fields:
        knowledge = knowledge.bind_view(_bindings(fields, "view"))
    knowledge = knowledge.bind(**bindings) if bindings else knowledge
    for action in _texts(fields.get("path", []), "path"):
        knowledge = knowledge.after(action)
    steps = fields.get("steps_left")
    if steps is not None and (type(steps) is not int or steps < 1):
        raise ConstrainedError(f"steps_left is {steps!r}", "use a whole number from 1")
    return knowledge.next_action(steps)


@lru_cache(MAX_READ)
def _read_lark(source: str, start: str) -> Grammar:
    return Grammar.from_lark(source, start)


@lru_cache(MAX_READ)
def _read_knowledge(source: str) -> Knowledge:
    return ActionKnowledge.from_lark(source)


@lru_cache(MAX_READ)
def _read_tools(arguments: str) -> Knowledge:
    return ActionKnowledge.from_tools(**json.loads(arguments))


def _arguments(fields: Mapping, names: set[str]) -> dict[str, Any]:
    """Those of the optional arguments that are given, each of its type."""
    arguments = {name: fields[name] for name in sorted(names & set(fields))}
    for name, value in arguments.items():
        if name in ("any_order", "closed"):
            right, wanted = isinstance(value, bool), "true or false"
        elif name == "follow":
            right = isinstance(value, Mapping) and all(map(_is_texts, value.values()))
            wanted = "an object of lists of names"
        elif name == "end":
            right, wanted = _is_texts(value), "a list of names"
        else:
            right, wanted = isinstance(_text(value, name), str), "text"
        if not right:
            raise ConstrainedError(f"{name} is {wanted}, not {value!r}")
    return arguments


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _json(value: Any, field: str) -> Any:
    """A JSON value, or JSON text, which is read here: elsewhere text might name a file."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise ConstrainedError(f"{field} is not JSON: {error}", _hint()) from None
    if isinstance(value, str):
        raise ConstrainedError(f"{field} is {value!r}", "give the schema or the tools themselves")
    return value


def _source(value: Any, field: str) -> str:
    """Grammar text, or the name of one that ships; never a path."""
    text = _text(value, field)
    if text in shipped_names():
        return text
    if "\n" not in text and ":" not in text:
        shipped = ", ".join(shipped_names())
        raise ConstrainedError(f"{field}: no grammar {text!r} ships", f"give the grammar's text, or one of: {shipped}")
    _short(text, field)
    importable = {*_LARK_LIBRARY, *LIBRARIES, *(name.replace("/", ".") for name in shipped_names())}
    for after in text.split("%import")[1:]:  # wherever it is: lark accepts it in several forms
        match = _IMPORTED.match(after)
        path = match[1] if match else ""
        if path not in importable and path.rpartition(".")[0] not in importable:
            raise ConstrainedError(f"{field}: a specification imports no files", "write the imported rules out")
    return text + "\n"  # a line break marks it as text, not a name


def _bindings(fields: Mapping, field: str) -> dict[str, Any]:
    return {
        name: {key: _texts(texts, name) for key, texts in bound.items()}
        if isinstance(bound, Mapping)
        else _texts(bound, name)
        for name, bound in _object(fields.get(field, {}), field).items()
    }


def _object(value: Any, field: str) -> Mapping:
    if not isinstance(value, Mapping):
        raise ConstrainedError(f"{field} is a JSON object, not {type(value).__name__}", _hint())
    return value


def _texts(value: Any, field: str) -> list[str]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, (list, tuple)):
        raise ConstrainedError(f"{field} is a text or a list of texts, not {type(value).__name__}", _hint())
    return [_text(v, field) for v in values]


def _text(value: Any, field: str) -> str:
    if not isinstance(value, str):
        raise ConstrainedError(f"{field}: {value!r} is not text", _hint())
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ConstrainedError(f"{field}: {value!a} has a lone surrogate, which is not text") from None
    return value


def _short(text: str, field: str) -> str:
    if len(text) > MAX_GRAMMAR:
        raise ConstrainedError(
            f"{field} has {len(text)} characters, more than {MAX_GRAMMAR}",
            "bind long lists as slots, or raise constrained.decoding.hosts.specification.MAX_GRAMMAR",
        )
    return text


def _hint() -> str:
    return 'for example {"choices": ["yes", "no"]} or {"knowledge": "household", "bindings": {...}}'

"""Specifications: grammars as JSON, for hosts whose requests come from other processes or machines.

    {"choices": ["yes", "no"]}
    {"regex": "[0-9]+"}
    {"lark": "start: ...", "start": "start", "bindings": {"N": "3"}, "grammars": {"ACTION": {...}}}
    {"knowledge": "household", "view": {"RECEPTACLE": ["desk 1"], ...}, "path": ["go to desk 1"]}

Each has exactly one of these four kinds; any may have "begun", the beginning of the grammar's text that the prompt
ends with. "bindings" give slots texts, or texts per key; "view" does, too, and empties all other slots; "grammars" give
slots specifications. Knowledge stands for the actions that may come after "path"; with "steps_left", those from which
the path can end within so many steps. A specification never names a file: a grammar is text, or one that ships.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from constrained.automaton import CompiledGrammar, Grammar, Matcher, Vocabulary, compile_grammar
from constrained.errors import ConstrainedError
from constrained.grammar.source import LIBRARIES, shipped_names
from constrained.knowledge import ActionKnowledge

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

_KINDS = {
    "choices": {"choices"},
    "regex": {"regex"},
    "lark": {"lark", "start", "bindings", "grammars"},
    "knowledge": {"knowledge", "bindings", "view", "path", "steps_left"},
}
_IMPORTED = re.compile(r"[ \t]+([\w.]+)")
_LARK_LIBRARY = ("common", "lark", "python", "unicode")


class CompiledCache:
    """Caches compiled grammars by the content of their specifications."""

    def __init__(self, vocabulary: Vocabulary):
        self.vocabulary = vocabulary
        self._compiled = lru_cache(MAX_COMPILED)(self._compile)

    def matcher(self, specification: Mapping | str, max_new_tokens: int | None = None) -> Matcher:
        """A matcher at the beginning of a request.

        Raises
        ------
        ConstrainedError
            As `read_specification`, or the budget is below the shortest text.
        """
        fields = parse(specification)
        begun = _text(fields.pop("begun", ""), "begun")
        matcher = self._compiled(json.dumps(fields, sort_keys=True)).matcher(begun)
        matcher.set_budget(max_new_tokens)
        return matcher

    def _compile(self, specification: str) -> CompiledGrammar:
        return compile_grammar(read_specification(json.loads(specification)), self.vocabulary)

    def __len__(self) -> int:
        return self._compiled.cache_info().currsize


def check_specification(specification: Mapping | str) -> None:
    """Check a specification as far as is possible without a vocabulary.

    Raises
    ------
    ConstrainedError
        What is wrong, and where.
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

    Raises
    ------
    ConstrainedError
        Unknown or missing fields, or (`GrammarError`, `KnowledgeError`) a grammar that is refused.
    """
    if depth > MAX_NESTING:
        raise ConstrainedError(f"specifications are nested more than {MAX_NESTING} deep", "write one grammar instead")
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
    bindings = _bindings(fields, "bindings")
    if kind == "lark":
        grammar = _read_lark(_source(fields["lark"], "lark"), _text(fields.get("start", "start"), "start"))
        inner = _object(fields.get("grammars", {}), "grammars")
        bindings |= {name: read_specification(_object(part, name), depth + 1) for name, part in inner.items()}
        return grammar.bind(**bindings) if bindings else grammar
    knowledge = _read_knowledge(_source(fields["knowledge"], "knowledge"))
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
def _read_knowledge(source: str) -> ActionKnowledge:
    return ActionKnowledge.from_lark(source)


def _source(value: Any, field: str) -> str:
    """Grammar text, or the name of one that ships; never a path."""
    text = _text(value, field)
    if text in shipped_names():
        return text
    if "\n" not in text and ":" not in text:
        shipped = ", ".join(shipped_names())
        raise ConstrainedError(f"{field}: no grammar {text!r} ships", f"give the grammar's text, or one of: {shipped}")
    _short(text, field)
    known = {*_LARK_LIBRARY, *LIBRARIES, *(name.replace("/", ".") for name in shipped_names())}
    for after in text.split("%import")[1:]:  # wherever it is: lark accepts it in several forms
        found = _IMPORTED.match(after)
        path = found[1] if found else ""
        if path not in known and path.rpartition(".")[0] not in known:
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

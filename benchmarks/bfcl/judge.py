"""The verdict on an answer: by BFCL's own checker where its package is installed, or else by ours.

Only the checker is imported. Its module imports a table of all providers' models, of which it reads one flag: whether
the model's tools have ``_`` for ``.`` in their names. A stand-in for that table spares the providers' clients.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType, SimpleNamespace
from typing import Any

from benchmarks.bfcl import checker
from benchmarks.bfcl.questions import Call, Question

INSTALL = "pip install --no-deps bfcl-eval"
"""Installs the benchmark's checker without the clients of all model providers."""

_TABLE = "bfcl_eval.constants.model_config"
_MODEL = "constrained"


@cache
def official() -> Callable[..., dict[str, Any]] | None:
    """The function `ast_checker` of bfcl-eval; None if the package isn't installed."""
    table = ModuleType(_TABLE)
    table.MODEL_CONFIG_MAPPING = {_MODEL: SimpleNamespace(underscore_to_dot=False)}  # type: ignore[attr-defined]
    known = sys.modules.get(_TABLE)
    sys.modules[_TABLE] = table
    try:
        return import_module("bfcl_eval.eval_checker.ast_eval.ast_checker").ast_checker
    except ImportError:
        return None
    finally:
        sys.modules.pop(_TABLE)
        if known is not None:
            sys.modules[_TABLE] = known


@cache
def official_reader(lang: str) -> Callable[[str], list[Call]] | None:
    """bfcl-eval's parser of calls in Java or JavaScript; None for Python, or if it or tree-sitter isn't installed.

    What it reads of Python it evaluates in part, which a model's text must not be.
    """
    if official() is None or lang == "python":
        return None
    short = {"java": "java", "javascript": "js"}[lang]
    try:
        module = import_module(f"bfcl_eval.model_handler.parser.{short}_parser")
    except (ImportError, TypeError):  # a newer tree-sitter has another interface
        return None
    return getattr(module, f"parse_{lang}_function_call")


def judge_name() -> str:
    """The name of the checker in use, for records."""
    if official() is None:
        return "ours"
    try:
        return f"bfcl-eval {version('bfcl-eval')}"
    except PackageNotFoundError:
        return "bfcl-eval"


def is_right(question: Question, calls: Sequence[Call]) -> bool:
    """Whether an answer's calls are right; none are where the question has no fitting tool."""
    if not question.wants_calls:
        return not calls
    if not question.accepted:  # live_relevance: any call is right
        return bool(calls)
    if not calls:
        return False
    check = official()
    if check is None:
        return checker.is_right(question.functions, calls, question.accepted, question.category, question.language)
    return by_official(check, question, calls)


def by_official(check: Callable[..., dict[str, Any]], question: Question, calls: Sequence[Call]) -> bool:
    """The verdict of bfcl-eval; a call for which it raises an exception is wrong."""
    language = import_module("bfcl_eval.constants.enums").Language(question.language)
    given = list(calls), question.accepted
    try:
        return bool(check(question.functions, *given, language, question.category, _MODEL)["valid"])
    except Exception:  # the checker raises where the data or a call has a form that it doesn't know
        return False

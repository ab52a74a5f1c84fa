"""SVAMP's equations as Lumos annotations: each operation becomes an action, the innermost first."""

from __future__ import annotations

import re

from lark import Token, Tree

from constrained.environments.executor.actions import read_turn, rule_of, terminal_of, tokens
from constrained.environments.maths.problems import WordProblem
from constrained.errors import ActionError
from constrained.training.annotations.annotation import AnnotatedStep, Annotation, subgoal_text

_WORDS = {
    "+": "Add {1} to {0}.",
    "-": "Take {1} away from {0}.",
    "*": "Multiply {0} by {1}.",
    "/": "Divide {0} by {1}.",
}


def convert(problem: WordProblem) -> Annotation | str:
    """The equation's operations as actions; else why it can't be read."""
    try:
        (whole,) = read_turn("maths", f"R1 = Calculator({formula_of(problem.solution)})")
    except ActionError as error:
        return f"the equation is none: {error.message}"
    done: list[tuple[str, str]] = []
    last = _operations(whole.tree, done)
    if not done:
        done.append(("Tell the number that is asked for.", f"Define({last})"))
    words = [*(words for words, _ in done[:-1]), f"{done[-1][0]} This tells: {problem.asked}"]
    steps = [
        AnnotatedStep(subgoal_text(text), f"R{n} = {action}")
        for n, (text, (_, action)) in enumerate(zip(words, done), 1)
    ]
    answer = str(problem.answer)
    return Annotation(problem.name, "maths", problem.question, tuple(steps), answer, "equation")


def formula_of(equation: str) -> str:
    """An equation of SVAMP, ``( 8.0 - 3.0 )``, as a formula of the executor."""
    return re.sub(r"\.0\b", "", equation).replace("( ", "(").replace(" )", ")")


def _operations(part: Tree | Token, done: list[tuple[str, str]]) -> str:
    """Append a formula's operations to `done`, innermost first; return its value, a number or the name of a result."""
    if isinstance(part, Token):
        return str(part)
    children = part.children
    if rule_of(part) not in ("formula", "product") or len(children) == 1:
        signs = [token for token in tokens(part) if terminal_of(token) == "MINUS"]
        if len(children) == 1 and not (signs and rule_of(part) == "signed"):
            return _operations(children[0], done)
        return f"({''.join(tokens(part))})"
    value = _operations(children[0], done)
    for token, operand in zip(children[1::2], children[2::2]):
        sign = str(token).strip()
        other = _operations(operand, done)
        operands = (re.sub(r"R(\d+)", r"the result of Subgoal \1", operand) for operand in (value, other))
        done.append((_WORDS[sign].format(*operands), f"Calculator({value} {sign} {other})"))
        value = f"R{len(done)}"
    return value

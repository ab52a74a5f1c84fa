"""Action knowledge as text: the prompt that tells a model what the masks enforce, and a table of the action graph."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from textwrap import TextWrapper

from constrained.grammar.nodes import LiteralText, Rule, RuleRef, Seq, Slot, Var, is_step
from constrained.knowledge.action_graph import START, ActionGraph
from constrained.knowledge.world import World
from constrained.planning.model import conjuncts, renamed
from constrained.planning.wording import condition_words

_PRINCIPLE = "Plan one action at a time. Each must be possible at that point, and name only what is there."

_FEW = 3
"""Up to this many actions that may not follow are listed as exceptions."""

_NAME = re.compile(r"[A-Z][A-Z0-9_]+")

MAX_FORM = 200
"""Characters of an action's written form; a longer one is left to its definition."""


def prompt_text(
    graph: ActionGraph, comments: Mapping[str, str], forms: Mapping[str, str], needs: Mapping[str, str]
) -> str:
    """Overview, rules, definitions and principle: the segments of KnowAgent's prompt (section 3.2.2).

    Parameters
    ----------
    forms : mapping of str to str
        Action -> how it is written (`written_forms`).
    needs : mapping of str to str
        Action -> its conditions in words (`needs_in_words`).
    """
    rules = _rule_lines(graph)
    defined = [
        f"({i}) {_definition(comments.get(name) or name, name, forms.get(name, ''), needs.get(name, ''))}"
        for i, name in enumerate(graph.actions, 1)
    ]
    parts = [
        comments.get(START, ""),
        "What may follow what:\n" + "\n".join(rules) if rules else "",
        "The actions:\n" + "\n".join(defined),
        _PRINCIPLE,
    ]
    return "\n\n".join(part for part in parts if part)


def _definition(text: str, name: str, form: str, needs: str) -> str:
    """An action's definition, how it is written unless the definition begins with that, and its conditions."""
    begins = r"\w+".join(map(re.escape, _NAME.split(form)))
    if form and not re.match(begins, text.removeprefix(f"{name}:").lstrip(), re.IGNORECASE):
        text = f"{_sentence(text)} It is written: {form}"
    return f"{_sentence(text)} It needs: {needs}." if needs else text


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _rule_lines(graph: ActionGraph) -> list[str]:
    """A line for all actions with the same successors; none where any action may follow any other."""
    rules, ends = graph.rules, graph.may_end
    if set(rules.values()) == {tuple(graph.actions)} and ends.issuperset(graph.actions):
        return []
    return [f"  {left} {right}" for left, right in _action_rows(graph)]


def written_forms(graph: ActionGraph, rules: Mapping[str, Rule]) -> dict[str, str]:
    """Action -> how it is written, in the words of its rule: "take OBJECT from RECEPTACLE".

    A parameter is named after the slot that calls pass to it, and a terminal after itself. Actions whose rule isn't a
    sequence of texts, parameters, slots and terminals have none.
    """
    forms = {}
    for name in graph.actions:
        form = _form(rules[name], graph)
        if form is not None and len(form) <= MAX_FORM:
            forms[name] = form
    return forms


def parameter_names(rule: Rule, graph: ActionGraph) -> dict[str, str]:
    """Parameter of an action's rule -> its name in prompts: of the slot that it gets its values from, or its own.

    Parameters of the same slot are numbered.
    """
    names: dict[str, str] = {}
    for parameter in rule.params:
        slots = {node.name for _, node in graph.sources(rule.name, parameter)[1] if isinstance(node, Slot)}
        names[parameter] = slots.pop() if len(slots) == 1 else parameter.upper()
    twice = {name for name, number in Counter(names.values()).items() if number > 1}
    count: Counter[str] = Counter()
    for parameter, name in names.items():
        if name in twice:
            count[name] += 1
            names[parameter] = f"{name}{count[name]}"
    return names


def _form(rule: Rule, graph: ActionGraph) -> str | None:
    names, out = parameter_names(rule, graph), ""
    for node in rule.body.items if isinstance(rule.body, Seq) else (rule.body,):
        if is_step(node):
            break
        if isinstance(node, LiteralText):
            piece = node.data.decode("utf-8", "replace")
        elif isinstance(node, Var):
            piece = names.get(node.name, node.name.upper())
        elif isinstance(node, Slot):
            piece = node.name
        elif isinstance(node, RuleRef) and not node.args and node.rule.isupper():
            piece = node.rule
        elif graph.leads_on(node, rule.name):  # what follows the action's text
            break
        else:
            return None
        # "FREEopen": where a name would touch a word, the form would be misread.
        if out and (out[-1] + piece[0]).isalnum():
            return None
        out += piece
    return out if _NAME.sub("", out).strip() else None  # a name alone doesn't show how it is written


def needs_in_words(rules: Mapping[str, Rule], graph: ActionGraph, world: World) -> dict[str, str]:
    """Action -> its conditions in words, parameters named as in its written form; without those that always hold."""
    words = {}
    for action in world.domain.actions:
        name = world.rules[action.name]
        if name in rules:
            named = {f"?{parameter}": shown for parameter, shown in parameter_names(rules[name], graph).items()}
            parts = conjuncts(renamed(action.precondition, named))
            words[name] = ", ".join(filter(None, (condition_words(part, world.domain) for part in parts)))
    return words


def graph_table(name: str, graph: ActionGraph, slots: int, width: int = 100) -> str:
    """The action graph as lines of text, wrapped to `width` characters.

    Actions with the same successors share a line. If the grammar is made of choice points (rules that only choose
    between actions), a line says which actions lead from one choice point to another.
    """
    points = graph.choice_points()
    rows = _choice_point_rows(points) if points else _action_rows(graph)
    head = f"{name}: {len(graph.actions)} actions" + (f", {slots} slots" if slots else "")
    column = min(max(len(left) for left, _ in rows) + 2, 32)
    lines = [head, ""]
    wrapper = TextWrapper(width, break_on_hyphens=False, break_long_words=False)
    for left, right in rows:
        beside = len(left) + 2 <= column
        if not beside:
            wrapper.initial_indent, wrapper.subsequent_indent = "", "  "
            lines += wrapper.wrap(left)
        wrapper.initial_indent = left.ljust(column) if beside else " " * column
        wrapper.subsequent_indent = " " * (column + 2)
        lines += wrapper.wrap(right)
    return "\n".join(lines) + "\n"


def _action_rows(graph: ActionGraph) -> list[tuple[str, str]]:
    """A row for all actions with the same successors."""
    alike: dict[tuple, list[str]] = {}
    for name, after in graph.rules.items():
        alike.setdefault((name == START, frozenset(after), name in graph.may_end), []).append(name)
    return [(", ".join(names), "-> " + successors(graph, names[0])) for names in alike.values()]


def successors(graph: ActionGraph, name: str) -> str:
    """The actions that may follow an action, in words."""
    after = graph.rules[name]
    missing = [action for action in graph.actions if action not in after]
    if len(missing) <= _FEW and len(after) > 2 * _FEW:
        words = "any action" + (f" but {', '.join(missing)}" if missing else "")
    else:
        words = ", ".join(after)
    ends = "the end" if name in graph.may_end else ""
    return ", or ".join(part for part in (words, ends) if part) or "nothing"


def _choice_point_rows(points: Mapping[tuple[str, str], list[str]]) -> list[tuple[str, str]]:
    by_source: dict[str, list[str]] = {}
    for (source, target), actions in points.items():
        by_source.setdefault(source, []).append(f"{', '.join(actions)} -> {target}")
    return [(source if i == 0 else "", text) for source, texts in by_source.items() for i, text in enumerate(texts)]

"""Find actions that can't be told apart by their texts at a point where both are admitted.

The states of paths are visited breadth first, as an agent would reach them. At each state, the texts of every two
actions are compared by walking the product of their automata.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import combinations, takewhile
from typing import Any

from constrained.automaton import positions
from constrained.automaton.automaton import Grammar
from constrained.automaton.budget import text_bytes
from constrained.automaton.state import Prefix
from constrained.errors import LimitError
from constrained.grammar.charset import CharSet
from constrained.grammar.lark_outline import Outline
from constrained.grammar.nodes import LiteralText, Rule, Seq, has_step, is_step, seq, shape
from constrained.grammar.traverse import reachable
from constrained.knowledge.action_graph import START
from constrained.knowledge.action_knowledge import ActionKnowledge
from constrained.knowledge.follow_sets import continuations, ends_step
from constrained.knowledge.lint.finding import Finding
from constrained.knowledge.path_state import PathState
from constrained.knowledge.unordered import UnorderedActions

SAME, PREFIX = "same", "prefix"


class _Work:
    """Counts the steps of all walks: one for each position and byte."""

    def __init__(self, knowledge: ActionKnowledge):
        self._limits = knowledge.grammar.limits
        self._done = 0

    def count(self, *states: Prefix) -> None:
        """Count one more byte. Raises LimitError: there were too many."""
        self._done += sum(len(state.positions) for state in states)
        self._limits.check("check_steps", self._done, "too many texts to compare actions by")


def ambiguous(knowledge: ActionKnowledge, outline: Outline) -> Iterator[Finding]:
    """Pairs of actions with a common text, or with a text of one that begins with a text of the other.

    A slot without values has one text here: its name in angle brackets.
    """
    marked = knowledge.bind(**knowledge.grammar.stand_ins("<{}>"))
    work = _Work(knowledge)
    reported: set[tuple[str, ...]] = set()
    try:
        for state, openings in _path_states(marked.state.order, work):
            yield from _compare_all(state, openings, reported, outline, work)
        yield from _open_ended(marked.state.order, outline, work)
    except LimitError as error:
        yield Finding(
            "not-checked",
            f"not all actions were compared with each other: {error.message}",
            "nothing, or bind fewer values for the check",
            why="two of them may admit the same text without a warning",
        )


def _path_states(first: PathState, work: _Work) -> Iterator[tuple[PathState, dict[str, Prefix]]]:
    """Each state that paths reach, with the automaton's state before each action admitted there."""
    queue = deque([first])
    seen = set()
    while queue:
        state = queue.popleft()
        key = state.last, shape(state.grammar.start)
        if key in seen:
            continue
        seen.add(key)
        openings = {name: opening for name in state.graph.rules[state.last] if (opening := state.opening(name))}
        yield state, openings
        for name, opening in openings.items():
            queue.extend(state.advanced(text, name, end) for text, end in _endings(state, name, opening, work))


def _endings(state: PathState, name: str, opening: Prefix, work: _Work) -> Iterator[tuple[str, Prefix]]:
    """Texts of an action with the automaton's states after them, one for each continuation."""
    wanted = len(continuations(state.grammar.rules[name].body))
    met = set()
    for text, end in _walk(opening, work):
        if text and end.accepting:
            rests = frozenset(shape(rest.node) if rest else None for rest in end.ends())
            if rests not in met:
                met.add(rests)
                yield _decoded(text), end
            if len(met) >= wanted:
                return


def _walk(first: Prefix, work: _Work) -> Iterator[tuple[bytes, Prefix]]:
    """The states reachable from `first`, breadth first, each with a text that leads to it; forced text is one step."""
    queue = deque([(b"", first)])
    seen = {first}
    while queue:
        text, state = queue.popleft()
        yield text, state
        forced = state.forced_text()
        for more in (forced,) if forced else (bytes((byte,)) for byte in distinct_bytes(state)):
            work.count(state)
            after = state.read(more)
            if after is not None and after not in seen:
                seen.add(after)
                queue.append((text + more, after))


def _compare_all(
    state: PathState, openings: Mapping[str, Prefix], told: set[tuple[str, ...]], outline: Outline, work: _Work
) -> Iterator[Finding]:
    heads = {name: _head(opening) for name, opening in openings.items()}
    where = "at the start" if state.last == START else f"after '{state.last}'"
    for earlier, later in combinations(openings, 2):
        # Comparing is the expensive part, so pairs are skipped that begin differently or were compared before.
        length = min(len(heads[earlier]), len(heads[later]))
        if heads[earlier][:length] != heads[later][:length] or (earlier, later) in told:
            continue  # most actions begin differently
        if all(_same_everywhere(state.grammar.rules[name]) for name in (earlier, later)):
            told.add((earlier, later))
        for kind, first, second, text in _compare(earlier, openings[earlier], later, openings[later], work):
            if (kind, first, second) in told:
                continue
            told.add((kind, first, second))
            if kind == SAME:
                message = f"{where}, '{first}' and '{second}' can both be written `{text}`"
                fix = "word one of them differently, or join them into one rule"
                yield Finding("ambiguous-actions", message, fix, outline.span_of(second))
            else:
                message = f"{where}, `{text}` is a whole '{first}', and '{second}' begins with it"
                fix = (
                    f'end \'{first}\' with another character, as in `"..." "." _STEP`, or word one of them differently'
                )
                yield Finding("action-begins-another", message, fix, outline.span_of(second))


def _same_everywhere(rule: Rule) -> bool:
    """Whether an action's text is the same wherever it is admitted."""
    return not rule.params and ends_step(rule.body)


def _compare(first: str, a: Prefix, second: str, b: Prefix, work: _Work) -> list[tuple[str, str, str, str]]:
    """(kind, action, action, a shortest text): both actions admit the text, or a text of the second begins with it."""
    shortest: dict[tuple[str, str, str], str] = {}
    queue = deque([(b"", a, b)])
    seen = {(a, b)}
    while queue:
        # A state of the product: both actions have read `text`. Breadth first, so the first text found is a shortest.
        text, a, b = queue.popleft()
        if text and a.accepting and b.accepting:
            shortest.setdefault((SAME, first, second), _decoded(text))
            break  # longer texts show nothing new
        if text and a.accepting:
            shortest.setdefault((PREFIX, first, second), _decoded(text))
        elif text and b.accepting:
            shortest.setdefault((PREFIX, second, first), _decoded(text))
        for byte in distinct_bytes(a, b):
            work.count(a, b)
            after_a, after_b = a.step(byte), b.step(byte)
            if after_a is not None and after_b is not None and (after_a, after_b) not in seen:
                seen.add((after_a, after_b))
                queue.append((text + bytes((byte,)), after_a, after_b))
    return [(*key, text) for key, text in shortest.items()]


def _head(state: Prefix) -> bytes:
    """The beginning of all texts of an action, even if the path may also end before the action."""
    first = state.first()
    if len(first) != 1:
        return b""
    byte = first.pop()
    after = state.step(byte)
    assert after is not None  # `byte` is one that it reads
    return bytes((byte,)) + after.forced_text()


def _open_ended(state: PathState, outline: Outline, work: _Work) -> Iterator[Finding]:
    """Actions with a text that begins with another of their texts, as `desk 10` begins with `desk 1`."""
    unordered = UnorderedActions(state.grammar, state.graph)
    for name in state.graph.actions:
        if _has_closing_byte(state.grammar, name):
            continue
        opening = unordered.opening(name)
        texts = _walk(opening, work) if opening is not None else ()
        whole = next(((text, end) for text, end in texts if text and end.accepting and end.first()), None)
        if whole is not None:
            text, end = whole
            steps = ((bytes((byte,)), after) for byte in distinct_bytes(end) if (after := end.step(byte)) is not None)
            longer = min((text + byte + _shortest_end(after, work) for byte, after in steps), key=len)
            yield Finding(
                "open-ended-action",
                f"`{_decoded(text)}` is a whole '{name}', and so is `{_decoded(longer)}`, which begins with it",
                f'end \'{name}\' with a character that can\'t occur in it, as in `"[" ... "]"`',
                outline.span_of(name),
            )


def _has_closing_byte(grammar: Grammar, action: str) -> bool:
    """Whether every text of an action ends with a byte that it has nowhere else, so that none begins with another."""
    rule = grammar.rules[action]
    items = list(
        takewhile(lambda item: not is_step(item), rule.body.items if isinstance(rule.body, Seq) else [rule.body])
    )
    if rule.params or not items or not isinstance(end := items.pop(), LiteralText) or len(grammar.nested()) > 1:
        return False
    items.append(LiteralText(end.data[:-1]))
    bodies = [grammar.rules[name].body for name in reachable(grammar.all_rules(), seq(items))]
    return not any(map(has_step, [*items, *bodies])) and end.data[-1] not in text_bytes([*items, *bodies], grammar)


def _shortest_end(state: Prefix, work: _Work) -> bytes:
    """A shortest text that completes `state`; every state has one."""
    return next(text for text, end in _walk(state, work) if end.accepting)


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "replace")


_ORDER = (*range(0x61, 0x7B), *range(0x21, 0x61), 0x20, *range(0x7B, 0x80), *range(0x20), *range(0x80, 0x100))
"""All bytes, the most readable first."""


def distinct_bytes(*states: Prefix) -> Iterator[int]:
    """Bytes that some of the states read: one for each class of bytes after which they continue alike."""
    special: set[int] = set()
    sets = set()
    for state in states:
        for position in state.positions:
            if isinstance(position, positions.InText):
                sets.add((position.chars, position.inside))
            else:
                special.update(position.first())
    yield from special
    for group in _byte_classes(frozenset(sets)):
        byte = next((b for b in group if b not in special), None)
        if byte is not None:
            yield byte


@lru_cache(maxsize=4096)
def _byte_classes(sets: frozenset[tuple[CharSet, tuple[Any, ...] | None]]) -> list[list[int]]:
    """The classes of bytes that some character sets, partly read, don't distinguish."""
    classes: dict[tuple, list[int]] = {}
    edges = [chars.edges(inside) for chars, inside in sets]
    # For a single set at the beginning of a character, it doesn't matter later which character was read, so one byte is
    # enough, and characters of several bytes aren't needed.
    single = len(sets) == 1 and next(iter(sets))[1] is None
    for byte in _ORDER:
        after = tuple(e.get(byte) for e in edges)
        if any(after) and not (single and classes and byte >= 0x80):
            classes.setdefault(after, []).append(byte)
    return list(classes.values())

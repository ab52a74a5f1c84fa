"""Actions that can't be told apart by their texts where they are both admitted.

Places of a path are visited one after the other, as an agent would come to them; at each, the
texts of every two actions are walked together (the product of their automata).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import combinations

from constrained.automaton import positions as p
from constrained.automaton.automaton import State
from constrained.errors import LimitError
from constrained.grammar import nodes as n
from constrained.grammar.nodes import Rule
from constrained.grammar.relations import stand_ins
from constrained.knowledge.action_graph import START
from constrained.knowledge.action_knowledge import ActionKnowledge
from constrained.knowledge.follow_sets import continuations, ends_step
from constrained.knowledge.lint.finding import Finding
from constrained.knowledge.lint.outline import Outline
from constrained.knowledge.unordered import Anywhere

SAME, PREFIX = "same", "prefix"


class _Work:
    """The steps that the walks have taken: of single positions, a byte each."""

    def __init__(self, knowledge: ActionKnowledge):
        self._limits = knowledge.grammar.limits
        self._done = 0

    def step(self, *states: State) -> None:
        """One more byte; LimitError if there were too many."""
        self._done += sum(len(state.positions) for state in states)
        self._limits.check("check_steps", self._done, "too many texts to compare actions by")


def ambiguous(knowledge: ActionKnowledge, outline: Outline) -> Iterator[Finding]:
    """Pairs of actions with a text in common, or of which one goes on where the other may end.

    A slot without values stands for one text, its name in angle brackets.
    """
    marked = knowledge.bind(**stand_ins(knowledge.grammar, "<{}>"))
    work = _Work(knowledge)
    told: set[tuple] = set()
    try:
        for place, begun in _places(marked, work):
            yield from _at(place, begun, told, outline, work)
        yield from _open_ended(marked, outline, work)
    except LimitError as error:
        yield Finding(
            "not-checked",
            f"not all actions were compared with each other: {error.message}",
            "two of them may admit the same text, which nobody was told of",
            "nothing, or bind fewer values for the check",
        )


def _places(knowledge: ActionKnowledge, work: _Work) -> Iterator[tuple[ActionKnowledge, dict[str, State]]]:
    """Every place that paths come to, with the state before each action admitted there."""
    queue = deque([knowledge])
    seen: set = set()
    while queue:
        place = queue.popleft()
        key = place.last, n.shape(place.grammar.start)
        if key in seen:
            continue
        seen.add(key)
        begun = {name: state for name in place.rules[place.last] if (state := place.begin(name))}
        yield place, begun
        for name, state in begun.items():
            queue.extend(place.moved(text, name, end) for text, end in _endings(place, name, state, work))


def _endings(place: ActionKnowledge, name: str, state: State, work: _Work) -> Iterator[tuple[str, State]]:
    """Texts of an action, and the states after them, until every way on from it was met."""
    wanted = len(continuations(place.grammar.rules[name].body))
    met: set = set()
    for text, end in _walk(state, work):
        if text and end.accepting:
            shape = frozenset(n.shape(rest.node) if rest else None for rest in end.ends())
            if shape not in met:
                met.add(shape)
                yield text.decode("utf-8", "replace"), end
            if len(met) >= wanted:
                return


def _walk(state: State, work: _Work) -> Iterator[tuple[bytes, State]]:
    """The states from `state` on, each with a text that comes to it; of what must be written, the end."""
    queue = deque([(b"", state)])
    seen = {state}
    while queue:
        text, state = queue.popleft()
        yield text, state
        forced = state.forced_text()
        for more in (forced,) if forced else (bytes((byte,)) for byte in bytes_apart(state)):
            work.step(state)
            after = state.read(more)
            if after is not None and after not in seen:
                seen.add(after)
                queue.append((text + more, after))


def _at(place, begun: dict[str, State], told: set, outline: Outline, work: _Work) -> Iterator[Finding]:
    heads = {name: _must_begin(state) for name, state in begun.items()}
    for one, other in combinations(begun, 2):
        head = min(len(heads[one]), len(heads[other]))
        if heads[one][:head] != heads[other][:head] or (one, other) in told:
            continue  # told apart at once, which is the rule
        if all(_alike_everywhere(place.grammar.rules[name]) for name in (one, other)):
            told.add((one, other))
        for kind, first, second, text in _compare(one, begun[one], other, begun[other], work):
            if (kind, first, second) not in told:
                told.add((kind, first, second))
                yield (_same if kind == SAME else _prefix)(place, first, second, text, outline)


def _alike_everywhere(rule: Rule) -> bool:
    """Whether an action's text is the same wherever it is admitted."""
    return not rule.params and ends_step(rule.body)


def _compare(one: str, a: State, other: str, b: State, work: _Work) -> list[tuple[str, str, str, str]]:
    """(kind, action, action, a shortest text): both admit it, or the second goes on from it."""
    found: dict[tuple, tuple] = {}
    queue = deque([(b"", a, b)])
    seen = {(a, b)}
    while queue:
        text, a, b = queue.popleft()
        if not text:
            pass  # a path may be over here: that is no action
        elif a.accepting and b.accepting:
            found.setdefault((SAME, one, other), (SAME, one, other, _shown(text)))
            return list(found.values())  # from here on, nothing new
        elif a.accepting:
            found.setdefault((PREFIX, one, other), (PREFIX, one, other, _shown(text)))
        elif b.accepting:
            found.setdefault((PREFIX, other, one), (PREFIX, other, one, _shown(text)))
        for byte in bytes_apart(a, b):
            work.step(a, b)
            pair = a.step(byte), b.step(byte)
            if None not in pair and pair not in seen:
                seen.add(pair)
                queue.append((text + bytes((byte,)), *pair))
    return list(found.values())


def _must_begin(state: State) -> bytes:
    """How every text of an action begins; that a path may be over before it is no text."""
    first = state.first()
    if len(first) != 1:
        return b""
    byte = first.pop()
    return bytes((byte,)) + state.step(byte).forced_text()


def _shown(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _where(place: ActionKnowledge) -> str:
    return "at the start" if place.last == START else f"after '{place.last}'"


def _same(place, first: str, second: str, text: str, outline: Outline) -> Finding:
    return Finding(
        "ambiguous-actions",
        f"{_where(place)}, '{first}' and '{second}' can both be written `{text}`",
        "the text doesn't tell which was meant, so what may follow either may come next, and a checker names only one",
        "word one of them differently, or join them into one rule",
        outline.place(second),
    )


def _prefix(place, first: str, second: str, text: str, outline: Outline) -> Finding:
    return Finding(
        "action-begins-another",
        f"{_where(place)}, `{text}` is a whole '{first}', and '{second}' begins with it",
        "only where the model ends its text tells them apart; the masks allow both, but a model that ends early, or "
        "late, means another action",
        f'close \'{first}\' with a character of its own, as in `"..." "." _STEP`, or word one of them differently',
        outline.place(second),
    )


def _open_ended(knowledge: ActionKnowledge, outline: Outline, work: _Work) -> Iterator[Finding]:
    """Actions of which one text goes on where another is whole, as `desk 1` and `desk 10` do."""
    anywhere = Anywhere(knowledge.grammar, knowledge.graph)
    for name in knowledge.graph.actions:
        state = anywhere.action(name)
        ends = _walk(state, work) if state is not None else ()
        found = next(((t, s) for t, s in ends if t and s.accepting and s.first()), None)
        if found is not None:
            text, state = found
            after = (bytes((byte,)) for byte in bytes_apart(state) if state.step(byte) is not None)
            longer = min((text + b + _shortest(state.step(b[0]), work) for b in after), key=len)
            yield Finding(
                "open-ended-action",
                f"`{_shown(text)}` is a whole '{name}', and so is `{_shown(longer)}`, which begins with it",
                "only where the model ends its text tells them apart; the masks allow both, but a model that ends early "
                "means another thing",
                f'close the text with a character that can\'t stand in it, as in `"[" ... "]"`, in \'{name}\'',
                outline.place(name),
            )


def _shortest(state: State, work: _Work) -> bytes:
    """A shortest text that completes `state`; there is one, since no state leads nowhere."""
    return next(text for text, end in _walk(state, work) if end.accepting)


_GROUPS: dict[frozenset, list[list[int]]] = {}
_KEPT: list = []
_ORDER = (*range(0x61, 0x7B), *range(0x21, 0x61), 0x20, *range(0x7B, 0x80), *range(0x20), *range(0x80, 0x100))


def bytes_apart(*states: State) -> Iterator[int]:
    """Bytes that some state reads, one for each way in which the states go on together."""
    special: set[int] = set()
    texts = {}
    for state in states:
        for q in state.positions:
            if isinstance(q, p.InText):
                texts[id(q.chars), q.inside] = q
            else:
                special.update(q.first())
    yield from special
    for group in _groups(texts):
        byte = next((b for b in group if b not in special), None)
        if byte is not None:
            yield byte


def _groups(texts: dict) -> list[list[int]]:
    """Bytes that each of some character sets goes on with alike, printable ones first."""
    key = frozenset(texts)
    found = _GROUPS.get(key)
    if found is None:
        by_way: dict[tuple, list[int]] = {}
        edges = [q.chars.edges(q.inside) for q in texts.values()]
        # after a whole character of a set it doesn't matter which it was: one that is a byte will do
        whole = len(texts) == 1 and next(iter(texts.values())).inside is None
        for byte in _ORDER:
            way = tuple(e.get(byte) for e in edges)
            if any(way) and not (whole and by_way and byte >= 0x80):
                by_way.setdefault(way, []).append(byte)
        found = _GROUPS[key] = list(by_way.values())
        _KEPT.extend(q.chars for q in texts.values())  # the key holds their ids
    return found

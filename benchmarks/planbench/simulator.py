"""PDDL by brute force: every ground action of a small problem, tried in every state. No part of the library."""

from __future__ import annotations

import re
from itertools import product


def parse(text: str):
    """The first expression of a text as nested lists, in lower case."""
    stack = [[]]
    for token in re.findall(r"[()]|[^\s();,]+", re.sub(r";[^\n]*", "", text).lower()):
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(token)
    return stack[0][0]


def typed(tokens) -> list[tuple[str, str]]:
    out, waiting = [], []
    tokens = list(tokens)
    while tokens:
        token = tokens.pop(0)
        if token == "-":
            kind = tokens.pop(0)
            out += [(name, kind) for name in waiting]
            waiting = []
        else:
            waiting.append(token)
    return out + [(name, "object") for name in waiting]


WORDS = ("and", "or", "not", "imply", "exists", "forall", "=")


class Simulator:
    """A problem's states: sets of facts (predicate, arguments...)."""

    def __init__(self, domain: str, problem: str):
        sections = parse(domain)[2:]
        self.parents = dict(typed(next((s[1:] for s in sections if s[0] == ":types"), [])))
        constants = typed(next((s[1:] for s in sections if s[0] == ":constants"), []))
        stated = {s[0]: s[1:] for s in parse(problem)[2:]}
        self.objects = dict([*constants, *typed(stated.get(":objects", []))])
        self.start = frozenset(tuple(f) for f in stated[":init"] if f[0] != "=")
        self.goal = stated[":goal"][0]
        self._of_type = {}
        self.actions = []
        for section in sections:
            if section[0] == ":action":
                fields = dict(zip(section[2::2], section[3::2]))
                parameters = typed(fields.get(":parameters", []))
                self.actions.append(
                    (section[1], parameters, fields.get(":precondition", []), fields.get(":effect", []))
                )

    def of_type(self, kind: str) -> list[str]:
        if kind not in self._of_type:
            self._of_type[kind] = self._all_of(kind)
        return self._of_type[kind]

    def _all_of(self, kind: str) -> list[str]:
        def kinds(k):
            while k:
                yield k
                k = self.parents.get(k) if k != "object" else None

        return [o for o, k in self.objects.items() if kind == "object" or kind in kinds(k)]

    def applicable(self, state) -> dict[str, tuple]:
        """The text of each possible action -> the action: objects are tried for one parameter after the other."""
        return {
            " ".join([name, *bound.values()]): (pre, eff, bound)
            for name, parameters, pre, eff in self.actions
            for bound in self._bound(parameters, self._parts(pre), {}, state)
            if self.holds(pre, bound, state)
        }

    def _parts(self, f) -> list:
        return [part for each in f[1:] for part in self._parts(each)] if f and f[0] == "and" else [f]

    def _bound(self, parameters, parts, bound, state):
        """Yield every binding of the parameters, except those that make some fact of the condition false."""
        if not parameters:
            yield bound
            return
        (name, kind), *others = parameters
        for value in self.of_type(kind):
            inner = {**bound, name: value}
            known = [p for p in parts if p and p[0] not in WORDS and name in p and self._all_bound(p, inner)]
            if all((p[0], *(inner.get(t, t) for t in p[1:])) in state for p in known):
                yield from self._bound(others, parts, inner, state)

    def _all_bound(self, fact, bound) -> bool:
        return all(not t.startswith("?") or t in bound for t in fact[1:])

    def holds(self, f, bound, state) -> bool:
        if not f:
            return True
        head, *parts = f
        if head == "and":
            return all(self.holds(p, bound, state) for p in parts)
        if head == "or":
            return any(self.holds(p, bound, state) for p in parts)
        if head == "not":
            return not self.holds(parts[0], bound, state)
        if head == "imply":
            return not self.holds(parts[0], bound, state) or self.holds(parts[1], bound, state)
        if head == "exists":
            each = self._bound(typed(parts[0]), self._parts(parts[1]), bound, state)
            return any(self.holds(parts[1], inner, state) for inner in each)
        if head == "forall":
            names = typed(parts[0])
            every = product(*(self.of_type(kind) for _, kind in names))
            return all(self.holds(parts[1], {**bound, **dict(zip((n for n, _ in names), v))}, state) for v in every)
        values = [bound.get(p, p) for p in parts]
        return values[0] == values[1] if head == "=" else (head, *values) in state

    def after(self, action, state) -> frozenset:
        """The next state."""
        _, eff, bound = action
        gone, new = set(), set()
        self.collect(eff, bound, state, gone, new)
        return frozenset((state - gone) | new)

    def collect(self, e, bound, state, gone, new) -> None:
        if not e or e[0] in ("increase", "decrease", "assign"):
            return
        if e[0] == "and":
            for part in e[1:]:
                self.collect(part, bound, state, gone, new)
        elif e[0] == "forall":
            names = typed(e[1])
            for values in product(*(self.of_type(kind) for _, kind in names)):
                self.collect(e[2], {**bound, **dict(zip((n for n, _ in names), values))}, state, gone, new)
        elif e[0] == "when":
            if self.holds(e[1], bound, state):
                self.collect(e[2], bound, state, gone, new)
        elif e[0] == "not":
            gone.add(tuple(bound.get(t, t) for t in e[1]))
        else:
            new.add(tuple(bound.get(t, t) for t in e))

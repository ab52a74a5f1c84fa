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


class Simulator:
    """A problem's states: sets of facts (predicate, arguments...)."""

    def __init__(self, domain: str, problem: str):
        sections = parse(domain)[2:]
        self.parents = dict(typed(next((s[1:] for s in sections if s[0] == ":types"), [])))
        constants = typed(next((s[1:] for s in sections if s[0] == ":constants"), []))
        stated = {s[0]: s[1:] for s in parse(problem)[2:]}
        self.objects = dict([*constants, *typed(stated[":objects"])])
        self.start = frozenset(tuple(f) for f in stated[":init"])
        self.actions = []
        for section in sections:
            if section[0] == ":action":
                fields = dict(zip(section[2::2], section[3::2]))
                parameters = typed(fields.get(":parameters", []))
                self.actions.append(
                    (section[1], parameters, fields.get(":precondition", []), fields.get(":effect", []))
                )

    def of_type(self, kind: str) -> list[str]:
        def kinds(k):
            while k:
                yield k
                k = self.parents.get(k)

        return [o for o, k in self.objects.items() if kind == "object" or kind in kinds(k)]

    def ground(self) -> list[tuple[str, dict]]:
        """Every action with every value of its parameters: (its text, the values)."""
        out = []
        for name, parameters, pre, eff in self.actions:
            for values in product(*(self.of_type(kind) for _, kind in parameters)):
                bound = dict(zip((p for p, _ in parameters), values))
                out.append((" ".join([name, *values]), (pre, eff, bound)))
        return out

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
        if head in ("exists", "forall"):
            names = typed(parts[0])
            every = product(*(self.of_type(kind) for _, kind in names))
            each = [self.holds(parts[1], {**bound, **dict(zip((n for n, _ in names), v))}, state) for v in every]
            return any(each) if head == "exists" else all(each)
        values = [bound.get(p, p) for p in parts]
        return values[0] == values[1] if head == "=" else (head, *values) in state

    def after(self, action, state) -> frozenset | None:
        """The next state; None if the action is not possible."""
        pre, eff, bound = action
        if not self.holds(pre, bound, state):
            return None
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

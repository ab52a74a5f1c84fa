"""A second opinion beside lark's parser: Earley over characters, with every terminal its full regular language.

lark reads the file (imports, templates, counts become plain rules), and nothing of the engine is used. Where lark's
parser takes only the first alternative of a regular expression that fits (`50` in `/[1-9]|[1-4][0-9]|50/`), the chart
tries every end that ``re.fullmatch`` admits. Of a terminal with a lazy repeat, and of what is ignored, it takes what
``re.match`` does.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from collections import defaultdict
from re import _parser as parser

from lark.load_grammar import load_grammar


class Chart:
    """The language of a lark grammar.

    Parameters
    ----------
    text : str
        The grammar.
    start : str
    path : str
        Where it stands, for relative imports.
    any_stretch : bool
        Of what is ignored, every end that ``re.fullmatch`` admits.
    """

    def __init__(self, text: str, start: str = "start", path: str = "<string>", any_stretch: bool = False):
        loaded, _ = load_grammar(text, path, [], False)
        terminals, rules, ignored = loaded.compile([start], "*")
        self.start, self.any_stretch = start, any_stretch
        self.rules: dict[str, list[tuple[str, ...]]] = defaultdict(list)
        for rule in rules:
            self.rules[str(rule.origin.name)].append(tuple(str(symbol.name) for symbol in rule.expansion))
        patterns = {str(t.name): t.pattern.to_regexp() for t in terminals}
        self.terminals = {name: re.compile(pattern) for name, pattern in patterns.items()}
        self.lazy = {name for name, pattern in patterns.items() if "MIN_REPEAT" in repr(parser.parse(pattern))}
        self.ignored = [str(name) for name in ignored]
        self._fits: dict[tuple[str, str], bool] = {}

    def complete(self, text: str) -> list[bool]:
        """For each length, whether the text's first characters are a whole text."""
        if not self.ignored:
            return self._complete(text)
        return [self.accepts(text[:n]) for n in range(len(text) + 1)]  # how far ignored text goes depends on the rest

    def accepts(self, text: str) -> bool:
        return self._complete(text)[-1]

    def _complete(self, text: str) -> list[bool]:
        columns: list[dict] = [{} for _ in range(len(text) + 1)]  # (rule, expansion, dot, origin), in order
        waiting: list[dict] = [defaultdict(list) for _ in columns]  # rule -> the items that stand before it
        done: list[set] = [set() for _ in columns]  # (rule, origin) complete here
        columns[0].update(dict.fromkeys((self.start, number, 0, 0) for number in range(len(self.rules[self.start]))))
        for at, column in enumerate(columns):
            ends: dict[str, list[int]] = {}
            gaps = self.ignored_ends(text, at)
            work = list(column)
            while work:
                item = work.pop()
                rule, number, dot, origin = item
                expansion = self.rules[rule][number]
                found = []
                if dot == len(expansion):
                    if (rule, origin) not in done[at]:
                        done[at].add((rule, origin))
                        found += [(r, n, d + 1, o) for r, n, d, o in waiting[origin][rule]]
                elif expansion[dot] in self.rules:
                    callee = expansion[dot]
                    waiting[at][callee].append(item)
                    if len(waiting[at][callee]) == 1:
                        found += [(callee, n, 0, at) for n in range(len(self.rules[callee]))]
                    if (callee, at) in done[at]:  # it may be empty, and was completed before
                        found.append((rule, number, dot + 1, origin))
                else:
                    name = expansion[dot]
                    if name not in ends:
                        ends[name] = self.ends(name, text, at)
                    for end in ends[name]:
                        if end == at:
                            found.append((rule, number, dot + 1, origin))
                        else:
                            columns[end][rule, number, dot + 1, origin] = None
                    for end in gaps:
                        columns[end][item] = None
                for new in found:
                    if new not in column:
                        column[new] = None
                        work.append(new)
        return self._with_ignored_tail(text, [(self.start, 0) in d for d in done])

    def _with_ignored_tail(self, text: str, whole: list[bool]) -> list[bool]:
        for at in range(len(text)):
            if whole[at]:
                for end in self.ignored_ends(text, at):
                    whole[end] = True
        return whole

    def ignored_ends(self, text: str, at: int) -> set[int]:
        if self.any_stretch:
            return {end for name in self.ignored for end in self.ends(name, text, at) if end > at}
        found = (self.terminals[name].match(text, at) for name in self.ignored)
        return {match.end() for match in found if match and match.end() > at}

    def ends(self, terminal: str, text: str, at: int) -> list[int]:
        return [end for end in range(at, len(text) + 1) if self.fits(terminal, text[at:end])]

    def fits(self, terminal: str, text: str) -> bool:
        """Whether the whole `text` is one of the terminal's."""
        found = self._fits.get((terminal, text))
        if found is None:
            pattern = self.terminals[terminal]
            match = pattern.match(text) if terminal in self.lazy else pattern.fullmatch(text)
            found = self._fits[terminal, text] = match is not None and match.end() == len(text)
        return found

    def texts(self, alphabet: str, longest: int) -> set[str]:
        """Every text over `alphabet` up to a length, as with `any_stretch`: the least sets that the rules close."""
        short = ["".join(w) for n in range(longest + 1) for w in itertools.product(alphabet, repeat=n)]
        tokens = {name: {w for w in short if self.fits(name, w)} for name in self.terminals}
        gap = _closure({w for name in self.ignored for w in tokens[name]}, longest)
        known = {name: _joined(gap, found, longest) for name, found in tokens.items()}
        known |= {name: set() for name in self.rules}
        users = defaultdict(set)
        for name, expansions in self.rules.items():
            for symbol in itertools.chain(*expansions):
                users[symbol].add(name)
        work = dict.fromkeys(self.rules)
        while work:
            name = work.popitem()[0]
            found = set().union(*(self._sequence(e, known, longest) for e in self.rules[name]))
            if len(found) > len(known[name]):
                known[name] = found
                work.update(dict.fromkeys(users[name]))
        return _joined(known[self.start], gap, longest)

    @staticmethod
    def _sequence(symbols, known: dict[str, set[str]], longest: int) -> set[str]:
        out = {""}
        for symbol in symbols:
            out = _joined(out, known[symbol], longest)
        return out


def _joined(first: set[str], second: set[str], longest: int) -> set[str]:
    if second == {""}:
        return first
    by_length = sorted(second, key=len)
    return {a + b for a in first for b in by_length[: bisect_right(by_length, longest - len(a), key=len)]}


def _closure(items: set[str], longest: int) -> set[str]:
    """Any number of the items, one after the other."""
    out, new = {""}, {""}
    while new:
        new = _joined(new, items, longest) - out
        out |= new
    return out

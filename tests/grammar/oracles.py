"""What a grammar should accept, by others' word: lark's Earley parser, and Python's `re`.

An engine's "yes, some text begins so" can't be looked up; it is checked by asking the engine for a text that
does, and the oracle for its opinion of that.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable

from hypothesis import settings
from lark import Lark
from lark.exceptions import LarkError

from constrained import Grammar
from tests.chance import times

Accepts = Callable[[str], bool]


def lark_accepts(text: str, start: str = "start", **options) -> Accepts:
    """The texts that lark's Earley parser, trying every way to cut tokens, accepts."""
    parser = Lark(text, start=start, parser="earley", lexer="dynamic_complete", ambiguity="forest", **options)

    def accepts(word: str) -> bool:
        try:
            parser.parse(word)
        except LarkError:
            return False
        return True

    return accepts


def examples(few: int) -> settings:
    """Settings for `few` random grammars, or for as many as a profile asks that asks for more than is usual."""
    return settings(max_examples=times(few, settings().max_examples))


def words(alphabet: str, longest: int) -> Iterable[str]:
    """Every text over `alphabet` up to a length."""
    for length in range(longest + 1):
        for letters in itertools.product(alphabet, repeat=length):
            yield "".join(letters)


def completion(grammar: Grammar, begun: bytes) -> bytes:
    """The shortest bytes that make a whole text of `begun`, by the engine's own automaton."""
    return grammar.begin.read(begun).completion()


def sample(grammar: Grammar, rnd: random.Random, longest: int = 16) -> str:
    """A random text of the language, by the engine's own automaton; ended early if it gets long."""
    state, out = grammar.begin, bytearray()
    while not (state.accepting and (rnd.random() < 0.25 or not state.first())):
        if len(out) >= longest:
            return (bytes(out) + completion(grammar, bytes(out))).decode()
        byte = rnd.choice(sorted(state.first()))
        out.append(byte)
        state = state.step(byte)
    return bytes(out).decode()


def mutate(text: str, alphabet: str, rnd: random.Random) -> str:
    """`text` with one character put in, taken out, replaced or doubled, or two swapped."""
    at = rnd.randrange(len(text) + 1)
    kind = rnd.randrange(5)
    if kind == 0 or not text:
        return text[:at] + rnd.choice(alphabet) + text[at:]
    at = min(at, len(text) - 1)
    if kind == 1:
        return text[:at] + text[at + 1 :]
    if kind == 2:
        return text[:at] + rnd.choice(alphabet) + text[at + 1 :]
    if kind == 3:
        return text[:at] + text[at] + text[at:]
    return text[:at] + text[at + 1 : at + 2] + text[at] + text[at + 2 :]


def assert_same_language(grammar: Grammar, accepts: Accepts, alphabet: str, longest: int, extra: Iterable[str] = ()):
    """Engine and oracle agree on every short text, on random longer ones and on spoilt copies of those."""
    rnd = random.Random(alphabet + str(longest))
    texts = list(words(alphabet, longest))
    for _ in range(12):
        text = sample(grammar, rnd)
        assert accepts(text), f"the engine writes {text!r}"
        texts += [mutate(text, alphabet, rnd) for _ in range(3)]
    texts += extra
    good = set()
    for text in texts:
        expected = accepts(text)
        assert grammar.matches(text) == expected, f"{text!r} is {'' if expected else 'not '}in the language"
        if expected:
            good.add(text)
    begins = {text[:i] for text in good for i in range(len(text) + 1)}
    for text in set(words(alphabet, min(longest, 3))) | begins:
        if text in begins:
            assert grammar.is_prefix(text), f"{text!r} begins a text"
        elif grammar.is_prefix(text):
            whole = text.encode() + completion(grammar, text.encode())
            assert accepts(whole.decode()), f"{text!r} begins no text, not even {whole!r}"
    return good

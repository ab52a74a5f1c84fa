"""Python regular expressions, read by Python's own parser, into grammar nodes.

`re`'s parser decides what a pattern means (escapes, flags, classes, Unicode), so there
is no second opinion. What is not a regular language is refused.
"""

from __future__ import annotations

import re
import sys

from constrained.errors import GrammarError
from constrained.grammar import assertions
from constrained.grammar.charset import CharSet, charset, matching
from constrained.grammar.nodes import EMPTY, NEVER, Chars, Node, alt, literal, repeat, seq
from constrained.limits import DEFAULT, Limits

if sys.version_info >= (3, 11):
    from re import _constants as C
    from re import _parser as parser
else:  # the same modules, under their old names
    import sre_constants as C
    import sre_parse as parser

_CATEGORY = {
    C.CATEGORY_DIGIT: r"\d",
    C.CATEGORY_NOT_DIGIT: r"\D",
    C.CATEGORY_SPACE: r"\s",
    C.CATEGORY_NOT_SPACE: r"\S",
    C.CATEGORY_WORD: r"\w",
    C.CATEGORY_NOT_WORD: r"\W",
}
_MEANINGS = re.ASCII | re.UNICODE | re.LOCALE

_REFUSED = {
    C.GROUPREF: ("a backreference", "it is not a regular language; write the repeated text out"),
    C.GROUPREF_EXISTS: ("a conditional group", "write both branches as an alternation"),
}


def regex_node(pattern: str, flags: int = 0, limits: Limits = DEFAULT, whole: bool = True) -> Node:
    """The language ``{t : re.fullmatch(pattern, t, flags)}`` as a node.

    Where the pattern looks around, the node holds `Look` nodes for `lookaround.settle`.

    Parameters
    ----------
    whole : bool
        Whether it is matched against a whole text, so that ``^`` before and ``$`` behind it say nothing.

    Raises
    ------
    GrammarError
        The pattern does not parse, or uses what no regular language has.
    """
    if not isinstance(pattern, str):
        raise GrammarError(f"a regular expression is text, not {type(pattern).__name__}")
    limits.check("characters", len(pattern), f"a regular expression of {len(pattern)} characters")
    try:
        tree = parser.parse(pattern, int(flags))
        return _Reader(pattern, limits).sequence(tree, tree.state.flags, first=whole, last=whole)
    except re.error as error:
        at = (error.pos or 0) + 1
        raise GrammarError(
            f"regular expression does not parse: {error.msg}",
            line=error.lineno or 1,
            column=error.colno or at,
            context=_caret(pattern, error.pos or 0),
            hint="it is read as Python's `re` reads it",
            source="regex",
        ) from None
    except RecursionError:
        raise _too_deep() from None
    except (OverflowError, ValueError) as error:  # ValueError: flags that don't go together
        raise GrammarError(f"regular expression does not parse: {error}") from None


def _too_deep() -> GrammarError:
    """Of a pattern that Python's own recursion limit, or ours, does not let us read."""
    return GrammarError("groups are nested too deeply", hint="name the inner ones as rules of a .lark grammar")


def _caret(pattern: str, at: int) -> str:
    start = pattern.rfind("\n", 0, at) + 1
    line = pattern[start:].split("\n", 1)[0]
    return f"{line}\n{' ' * (at - start)}^"


class _Reader:
    def __init__(self, pattern: str, limits: Limits):
        self.pattern = pattern
        self.limits = limits
        self.depth = 0

    def refuse(self, what: str, hint: str):
        raise GrammarError(f"{what} is not supported in /{self.pattern}/", hint=hint)

    def sequence(self, items, flags: int, first=False, last=False) -> Node:
        self.depth += 1
        if self.depth > self.limits.depth:
            raise _too_deep()
        items = list(items)
        out = []
        for i, (op, value) in enumerate(items):
            at_start = first and i == 0
            at_end = last and i == len(items) - 1
            out.append(self.item(op, value, flags, at_start, at_end))
        self.depth -= 1
        return seq(assertions.narrowed(out))

    def item(self, op, value, flags: int, first: bool, last: bool) -> Node:
        if op is C.LITERAL:
            return self.chars(charset([(value, value)]), flags)
        if op is C.NOT_LITERAL:
            return Chars(self.fold(charset([(value, value)]), flags).complement())
        if op is C.ANY:
            newline = charset([(10, 10)])
            return Chars(charset([]).complement() if flags & re.DOTALL else newline.complement())
        if op is C.IN:
            return self.chars(self.char_class(value, flags), 0)
        if op is C.BRANCH:
            return alt([self.sequence(b, flags, first, last) for b in value[1]])
        if op is C.SUBPATTERN:
            _, add, remove, body = value
            if add & _MEANINGS:  # (?a:...) or (?u:...): one takes the other's place
                flags &= ~_MEANINGS
            return self.sequence(body, (flags | add) & ~remove, first, last)
        if op in (C.MAX_REPEAT, C.MIN_REPEAT):
            low, high, body = int(value[0]), value[1], value[2]
            high = None if high is C.MAXREPEAT else int(high)
            self.limits.check("repeat", max(low, high or 0), f"repeat {{{low},{high}}} in a regular expression")
            return repeat(self.sequence(body, flags), low, high)
        if op is C.AT:
            return self.anchor(value, flags, first, last)
        if op in (C.ASSERT, C.ASSERT_NOT):
            return self.look(*value, op is C.ASSERT, flags)
        if op is C.FAILURE:  # (?!)
            return NEVER
        if op in _REFUSED:
            self.refuse(*_REFUSED[op])
        self.refuse(str(op).lower().replace("_", " "), "write it without possessive or atomic parts")

    def anchor(self, value, flags: int, first: bool, last: bool) -> Node:
        if value in (C.AT_BEGINNING, C.AT_BEGINNING_STRING):
            every_line = value is C.AT_BEGINNING and flags & re.MULTILINE
            return EMPTY if first else assertions.line_start() if every_line else assertions.text_start()
        if value is C.AT_END_STRING:
            return EMPTY if last else assertions.text_end()
        if value is C.AT_END:
            return EMPTY if last else assertions.line_end() if flags & re.MULTILINE else assertions.last_line_end()
        return assertions.boundary(flags, value is C.AT_BOUNDARY)

    def look(self, direction: int, body, holds: bool, flags: int) -> Node:
        node = self.sequence(body, flags)
        if direction > 0:
            return assertions.ahead(node, holds)
        low, high = body.getwidth()
        if low != high:
            raise re.error("look-behind requires fixed-width pattern", self.pattern)
        return assertions.behind(node, int(low), holds)

    def chars(self, chars: CharSet, flags: int) -> Node:
        chars = self.fold(chars, flags)
        if not chars:
            return alt([])
        low, high = chars.ranges[0]
        if low == high and len(chars.ranges) == 1:
            return literal(chr(low))
        return Chars(chars)

    def fold(self, chars: CharSet, flags: int) -> CharSet:
        if not flags & re.IGNORECASE:
            return chars
        if flags & re.ASCII:
            extra = [
                (c ^ 32, c ^ 32) for c in (*range(65, 91), *range(97, 123)) if c in chars
            ]
            return charset([*chars.ranges, *extra])
        return chars.fold_case()

    def char_class(self, items, flags: int) -> CharSet:
        ranges: list[tuple[int, int]] = []
        categories: list[tuple[int, int]] = []
        negate = False
        for op, value in items:
            if op is C.NEGATE:
                negate = True
            elif op is C.LITERAL:
                ranges.append((value, value))
            elif op is C.RANGE:
                ranges.append(value)
            elif op is C.CATEGORY:
                categories.extend(matching(_CATEGORY[value], flags & re.ASCII).ranges)
            else:
                self.refuse(f"{op} in a character class", "use ranges and \\d \\s \\w")
        # `re` looks a character's category up as it is, whatever the case flag says
        chars = charset([*self.fold(charset(ranges), flags).ranges, *categories])
        return chars.complement() if negate else chars

"""`Grammar`: rules, a start, and what its slots are bound to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sized
from functools import lru_cache

from constrained.errors import GrammarError, LimitError
from constrained.grammar import nodes
from constrained.grammar.alternating_automaton import Steps
from constrained.grammar.analysis import Nullable, productive_rules, trim
from constrained.grammar.bindings import read_texts
from constrained.grammar.first_follow import settled
from constrained.grammar.json_schema import Options, schema_rules
from constrained.grammar.lark_definitions import nearest, some
from constrained.grammar.lark_reader import IGNORED, read_lark
from constrained.grammar.left_recursion import LeftRecursion, check, eliminate_left_recursion, stacked
from constrained.grammar.lookaround import settle
from constrained.grammar.nodes import STEP, Call, Node, Rule, Slot
from constrained.grammar.regex import regex_node
from constrained.grammar.source import Source, read_source
from constrained.limits import DEFAULT, Limits

SlotValue = "tuple[bytes, ...] | Grammar | dict[bytes, tuple[bytes, ...] | Grammar]"


class Grammar:
    """A context-free language of texts, as UTF-8 bytes.

    Use :meth:`from_lark`, :meth:`from_regex` or :meth:`from_choices`.

    Attributes
    ----------
    rules : dict of str to Rule
    start : Node
    slots : frozenset of str
        Declared terminals.
    bindings : dict
        Slot name -> sorted values, a Grammar, or one of these per key.
    orders : dict
        Slot name -> the values (per key) in the order in which they were bound.
    limits : Limits
        What it may cost.
    left_out : tuple of str
        Places in a JSON Schema whose keywords are not honoured (`lenient`).
    """

    left_out: tuple[str, ...] = ()

    def __init__(
        self,
        rules: dict[str, Rule],
        start: Node,
        slots=frozenset(),
        bindings=None,
        limits: Limits = DEFAULT,
        orders=None,
    ):
        self.rules = rules
        self.start = start
        self.slots = frozenset(slots)
        self.bindings: dict[str, SlotValue] = dict(bindings or {})
        self.orders: dict = dict(orders or {})
        self.limits = limits
        self._automaton = None
        self._used: frozenset[str] | None = None
        self._of_rules: dict = {}  # what follows from the rules alone, shared by all with the same ones

    @classmethod
    def from_lark(cls, text_or_path, start: str = "start", *, limits: Limits = DEFAULT) -> Grammar:
        """Read Lark grammar text, a `.lark` file, or a shipped grammar by its name.

        Raises
        ------
        GrammarError
            With `.line`, `.column`, `.context` and a hint: the text does not parse, `start`
            is missing, left recursion can't be turned round, or no text can ever be complete.
        LimitError
            It costs more than `limits` allow (a GrammarError, too).
        """
        source = read_source(text_or_path, limits)
        rules, slots = read_lark(source, limits)
        return cls.from_rules(rules, slots, start, source, limits)

    @classmethod
    def from_rules(cls, rules: dict[str, Rule], slots, start: str, source: Source, limits: Limits = DEFAULT) -> Grammar:
        """A grammar of rules already read; checks what :meth:`from_lark` promises."""
        if start not in rules:
            known = sorted(name for name in rules if "$" not in name)
            hint = nearest(start, known) or f"the rules are: {some(known)}"
            raise source.error(f"no rule '{start}' to start from", hint=hint)
        if rules[start].params:
            hint = "start from a rule that uses it: `start: " + start + "{...}`"
            raise source.error(f"'{start}' is a template and can't be the start", hint=hint, line=rules[start].line)
        after = [Call(IGNORED)] if IGNORED in rules else []
        whole = nodes.seq([Call(start), *after])
        try:
            plain, never = settled(rules, whole, limits)
            turned = eliminate_left_recursion(plain, limits)
            productive = productive_rules(turned)
            turned = trim(turned, productive)
        except RecursionError:
            raise source.error("groups are nested too deeply", hint="name the inner ones as rules") from None
        except LeftRecursion as error:
            raise source.error(
                f"rule '{error.rule}' comes to itself before it has read anything, and can't be turned round",
                error.rule,
                hint=error.hint,
                line=rules[error.rule].line,
            ) from None
        if start not in productive and never:
            raise never[0].error(
                "what the lookaround asks for never stands beside its token",
                hint="^ and $ are the whole text's start and end: leave them out; a lookaround sees the text around the token",
            )
        if start not in productive:
            raise source.error(
                f"no text of '{start}' can ever be complete: every way through it comes round again",
                start,
                hint="give the cycle an end, such as an action without _STEP or an empty alternative",
                line=rules[start].line,
            )
        return cls(turned, whole, slots, limits=limits)

    @classmethod
    def from_regex(cls, pattern: str, flags: int = 0, *, limits: Limits = DEFAULT) -> Grammar:
        """The texts that ``re.fullmatch(pattern, text, flags)`` accepts.

        Raises
        ------
        GrammarError
            The pattern does not parse, is not regular, or matches nothing.
        """
        node, rules = settle(regex_node(pattern, flags, limits), "start", Steps(limits))
        rules["start"] = Rule("start", node)
        try:
            productive = productive_rules(rules)
            rules = trim(rules, productive)
        except RecursionError:
            raise GrammarError("groups are nested too deeply") from None
        if "start" not in productive:
            raise GrammarError(f"/{pattern}/ matches no text at all")
        return cls(rules, Call("start"), limits=limits)

    @classmethod
    def from_choices(cls, choices: Iterable[str | bytes], *, limits: Limits = DEFAULT) -> Grammar:
        """Exactly these texts.

        Raises
        ------
        GrammarError
            No choice is given, or one is not text.
        """
        values = read_texts(choices, "choices", limits)
        return cls({"start": Rule("start", nodes.choices(values))}, Call("start"), limits=limits)

    @classmethod
    def from_json_schema(
        cls,
        schema,
        *,
        whitespace: str = "flexible",
        any_order: bool = False,
        closed: bool = False,
        lenient: bool = False,
        limits: Limits = DEFAULT,
    ) -> Grammar:
        """The JSON texts that are valid under a JSON Schema (draft 2020-12; see docs/json.md).

        Parameters
        ----------
        schema : dict, bool, str or Path
            A schema as Python values, as JSON text, or the path of a file with it.
        whitespace : {"flexible", "single", "dumps", "compact"}
            Between the pieces: as people and models write it, line breaks and indents included;
            at most one space; exactly as `json.dumps` writes; none.
        any_order : bool
            Named properties in any order, not only the schema's; the grammar has a rule for
            each set of them.
        closed : bool
            Objects that list properties, and say nothing of others, admit no others.
        lenient : bool
            Keywords that are refused are left out, and named in `left_out`.

        Raises
        ------
        GrammarError
            The schema is none, has a keyword that is not supported, or admits nothing; the
            message has the place as a JSON pointer.
        LimitError
            It costs more than `limits` allow (a GrammarError, too).
        """
        options = Options(limits, any_order, closed, lenient)
        grammar = cls(schema_rules(schema, whitespace, options), Call("start"), limits=limits)
        grammar.left_out = tuple(options.left_out)
        return grammar

    def bind(self, **values) -> Grammar:
        """This grammar with slots bound; costs nothing but the sorting of the values.

        Parameters
        ----------
        **values
            Slot name = a text, texts (`range` for numbers), a :class:`Grammar`, a compiled
            `re.Pattern`, or a mapping of key to one of these: then the slot's values are
            those under the key that the *following* template argument is bound to
            (``take{OBJECT, r}``: the objects at ``r``). A missing key means none there.

        Raises
        ------
        GrammarError
            An unknown slot, an empty list, or what is no text.
        """
        bound, orders = dict(self.bindings), dict(self.orders)
        for name, value in values.items():
            if name not in self.slots:
                known = ", ".join(sorted(self.slots)) or "none"
                raise GrammarError(f"no slot {name!r}", hint=f"%declare it; the slots are: {known}")
            bound[name], orders[name] = _slot_value(f"slot {name}", value, self.limits)
        return self._variant(self.start, bound, orders)

    def with_start(self, start: Node) -> Grammar:
        """The same rules and bindings from another start."""
        return self._variant(start)

    def with_limits(self, limits: Limits) -> Grammar:
        """The same grammar, which may cost more, or less."""
        return self if limits == self.limits else self._variant(self.start, limits=limits)

    def with_rules(self, rules: dict[str, Rule], start: Node) -> Grammar:
        """The same bindings over other rules."""
        return Grammar(rules, start, self.slots, self.bindings, self.limits, self.orders)

    def _variant(self, start: Node, bindings=None, orders=None, limits: Limits | None = None) -> Grammar:
        bindings = self.bindings if bindings is None else bindings
        other = Grammar(self.rules, start, self.slots, bindings, limits or self.limits, orders or self.orders)
        other._used = self._used_slots()
        other._of_rules = self._of_rules
        return other

    @property
    def automaton(self):
        """The lazy byte automaton (made once)."""
        if self._automaton is None:
            # here, not above: the automaton is built from grammars, and is the only
            # thing that can say what they accept
            from constrained.automaton.automaton import Automaton

            self._automaton = Automaton(self)
        return self._automaton

    def matches(self, text: str | bytes) -> bool:
        """Whether the whole text is in the language."""
        state = self.automaton.read(_bytes(text))
        return state is not None and state.accepting

    def is_prefix(self, text: str | bytes) -> bool:
        """Whether some text of the language begins so."""
        return self.automaton.read(_bytes(text)) is not None

    def unbound(self) -> list[str]:
        """Slots in use that have no value yet."""
        return sorted(self._used_slots() - set(self.bindings) - {STEP})

    @property
    def nests(self) -> bool:
        """Whether some recursion takes a stack, here or in a grammar that a slot is bound to."""
        return any(grammar._stacked() for grammar in self.nested())

    def nested(self) -> list[Grammar]:
        """This grammar and those that slots are bound to, at any depth; each once, however many share it."""
        found: dict[int, Grammar] = {}
        waiting = [self]
        while waiting:
            grammar = waiting.pop()
            if id(grammar) not in found:
                found[id(grammar)] = grammar
                waiting.extend(inner for value in grammar.bindings.values() for inner in grammars_in(value))
        return list(found.values())

    def _stacked(self) -> bool:
        return self.of_rules(stacked) != set()

    def of_rules(self, fact):
        """``fact(rules)``, found out once for all grammars with the same rules."""
        if fact not in self._of_rules:
            self._of_rules[fact] = fact(self.rules)
        return self._of_rules[fact]

    def extended(self, extend, start: Node) -> Grammar:
        """From `start` over the rules ``extend(rules)``, made once for all grammars with the same rules."""
        if extend not in self._of_rules:
            self._of_rules[extend] = Grammar(extend(self.rules), start, self.slots)
        return self._of_rules[extend]._variant(start, self.bindings, self.orders, self.limits)

    def check_slots(self) -> None:
        """Raise GrammarError if a slot bound to the empty text lets a rule come to itself before any text."""
        for grammar in self.nested():
            grammar._check_own_slots()

    def _check_own_slots(self) -> None:
        if not self._stacked():
            return
        empty = frozenset(name for name, value in self.bindings.items() if _may_be_empty(value))
        if not empty:
            return
        try:
            check(self.rules, empty)
        except LeftRecursion as error:
            raise GrammarError(
                f"rule '{error.rule}' comes to itself before it has read anything: {', '.join(sorted(empty))} may be empty",
                line=self.rules[error.rule].line,
                hint="bind the slot that stands before the recursion to text only",
            ) from None

    def _used_slots(self) -> frozenset[str]:
        if self._used is None:
            every = (n for r in self.rules.values() for n in nodes.walk(r.body))
            self._used = frozenset(n.name for n in every if isinstance(n, Slot))
        return self._used


def _bytes(text: str | bytes) -> bytes:
    if not isinstance(text, (str, bytes, bytearray, memoryview)):
        raise GrammarError(f"{text!r} is not text")
    # a lone surrogate is no character of any language: its bytes fit nowhere
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)


def texts_in(value: SlotValue) -> Iterator[bytes]:
    """Every text that a slot's value lists."""
    for one in value.values() if isinstance(value, dict) else (value,):
        if not isinstance(one, Grammar):
            yield from one


def grammars_in(value: SlotValue) -> Iterator[Grammar]:
    """Every grammar that a slot's value is, or has for some key."""
    for one in value.values() if isinstance(value, dict) else (value,):
        if isinstance(one, Grammar):
            yield one


def _slot_value(what: str, value, limits: Limits) -> tuple:
    """What a slot is bound to, and its texts in the order given."""
    if isinstance(value, Mapping):
        given = {_bytes(k): _one_value(f"{what}[{k!r}]", v, limits) for k, v in value.items() if not _is_empty(v)}
        return {k: v for k, (v, _) in given.items()}, {k: order for k, (_, order) in given.items()}
    return _one_value(what, value, limits)


def _one_value(what: str, value, limits: Limits) -> tuple:
    if isinstance(value, Grammar):
        return value, ()
    if isinstance(value, Mapping):
        raise GrammarError(f"{what}: keys within a key", hint="join the two keys to one text, or bind two slots")
    if isinstance(value, re.Pattern):
        return _of_pattern(what, value, limits), ()
    order = read_texts(value, what, limits)
    values = tuple(sorted(order))
    return values, values if values == order else order


def _is_empty(value) -> bool:
    """Whether a key stands for nothing."""
    return isinstance(value, Sized) and not isinstance(value, (str, bytes)) and not len(value)


def _of_pattern(what: str, pattern: re.Pattern, limits: Limits) -> Grammar:
    if not isinstance(pattern.pattern, str):
        raise GrammarError(f"{what}: a pattern of bytes", hint="compile it from a str: a grammar's texts are Unicode")
    try:
        return _from_pattern(pattern.pattern, pattern.flags, limits)
    except LimitError:
        raise
    except GrammarError as error:
        raise GrammarError(f"{what}: {error.message}", hint=error.hint) from None


@lru_cache(maxsize=256)
def _from_pattern(pattern: str, flags: int, limits: Limits) -> Grammar:
    return Grammar.from_regex(pattern, flags, limits=limits)


def _may_be_empty(value: SlotValue) -> bool:
    """Whether a slot's value has the empty text."""
    if isinstance(value, dict):
        return any(map(_may_be_empty, value.values()))
    if isinstance(value, Grammar):
        slots = frozenset(name for name, inner in value.bindings.items() if _may_be_empty(inner))
        return Nullable(value.rules, slots).maybe(value.start, "")
    return not value[0]

"""`ContextFreeGrammar`: rules, a start, and what its slots are bound to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from constrained.arguments import TEXT, WHOLE, checked
from constrained.errors import GrammarError, LimitError
from constrained.grammar import nodes
from constrained.grammar.alternating_automaton import Steps
from constrained.grammar.analysis import Nullable, productive_rules, trim
from constrained.grammar.deferred_rules import DeferredRules
from constrained.grammar.json_schema import Options, as_schema, layout, load_schema, read_schema
from constrained.grammar.lark_reader import LarkRules, prepare_rules, read_lark
from constrained.grammar.left_recursion import LeftRecursion, check_left_recursion, self_embedding_rules
from constrained.grammar.lookaround import eliminate_lookaround
from constrained.grammar.nodes import AT, STEP, Distinct, Node, Related, Rule, RuleRef, Slot
from constrained.grammar.regex import regex_node
from constrained.grammar.source import Source, read_source
from constrained.grammar.traverse import reached, uses_relations
from constrained.limits import DEFAULT, Limits
from constrained.limits import KIND as LIMITS

if TYPE_CHECKING:
    from typing import Self

T = TypeVar("T")

OneValue: TypeAlias = "tuple[bytes, ...] | ContextFreeGrammar"
SlotValue: TypeAlias = "OneValue | dict[bytes, OneValue]"
"""What a slot is bound to: sorted texts, a grammar, or one of these per key."""

SlotOrder: TypeAlias = "tuple[bytes, ...] | dict[bytes, tuple[bytes, ...]]"
"""The texts of a slot's value in the order in which they were bound."""


class ContextFreeGrammar:
    """A context-free language of texts, as UTF-8 bytes.

    Use :meth:`from_lark`, :meth:`from_regex`, :meth:`from_choices` or :meth:`from_json_schema`.
    `constrained.Grammar` is this class with an automaton, which can say what texts it accepts.

    Attributes
    ----------
    rules : dict of str to Rule, or DeferredRules
        `rules[name]` is one of them; for all, see :meth:`all_rules`.
    start : Node
    slots : frozenset of str
        Declared terminals.
    bindings : dict
        Slot name -> sorted values, a grammar, or one of these per key.
    orders : dict
        Slot name -> the values (per key) in the order in which they were bound.
    limits : Limits
        What it may cost.
    name : str
        What it was read from, for messages.
    left_out : tuple of str
        Places in a JSON Schema whose keywords are not honoured (`lenient`).
    distinct : mapping of str to Distinct
        Rule -> what differs in what it reads.
    """

    left_out: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    distinct: Mapping[str, Distinct] = MappingProxyType({})

    def __init__(
        self,
        rules: dict[str, Rule] | DeferredRules,
        start: Node,
        slots: Iterable[str] = (),
        bindings: Mapping[str, SlotValue] | None = None,
        limits: Limits = DEFAULT,
        orders: Mapping[str, SlotOrder] | None = None,
        name: str = "",
    ):
        self.rules = rules
        self.start = start
        self.slots = frozenset(slots)
        self.bindings: dict[str, SlotValue] = dict(bindings or {})
        self.orders: dict[str, SlotOrder] = dict(orders or {})
        self.limits = limits
        self.name = name
        self._derived: dict = {}
        self._of_rules: dict = {}  # what follows from the rules alone, shared by all grammars with the same ones

    def __repr__(self) -> str:
        parts = [self.name] if self.name else []
        if not isinstance(self.rules, DeferredRules):
            parts.append(f"{len(self.rules)} rule{'s' if len(self.rules) != 1 else ''}")
        if self.bindings:
            parts.append(f"bound: {', '.join(self.bindings)}")
        if unbound := self.unbound():
            parts.append(f"unbound: {', '.join(unbound)}")
        return f"{type(self).__name__}({', '.join(parts)})"

    @classmethod
    @checked(GrammarError, start=TEXT, limits=LIMITS)
    def from_lark(cls, text_or_path: str | Path | Source, start: str = "start", *, limits: Limits = DEFAULT) -> Self:
        """Read Lark grammar text, a `.lark` file, or a shipped grammar by its name.

        Raises
        ------
        GrammarError
            With `.line`, `.column`, `.context` and a hint: the text does not parse, `start`
            is missing, left recursion can't be eliminated, or no text can ever be complete.
        LimitError
            It costs more than `limits` allow (a GrammarError, too).
        """
        source = read_source(text_or_path, limits)
        return cls.from_rules(read_lark(source, limits), start)

    @classmethod
    def from_rules(cls, read: LarkRules, start: str = "start") -> Self:
        """Make a grammar of what `read_lark` has read; raises as :meth:`from_lark`."""
        return cls(*prepare_rules(read, start), read.slots, limits=read.limits, name=read.source.name)

    @classmethod
    @checked(GrammarError, flags=WHOLE, limits=LIMITS)
    def from_regex(cls, pattern: str, flags: int = 0, *, limits: Limits = DEFAULT) -> Self:
        """Make the grammar of the texts that ``re.fullmatch(pattern, text, flags)`` accepts.

        Raises
        ------
        GrammarError
            The pattern does not parse, is not regular, or matches nothing.
        """
        node, rules = eliminate_lookaround(regex_node(pattern, flags, limits), "start", Steps(limits))
        rules["start"] = Rule("start", node)
        try:
            productive = productive_rules(rules)
            rules = trim(rules, productive)
        except RecursionError:
            raise GrammarError("groups are nested too deeply") from None
        if "start" not in productive:
            raise GrammarError(f"/{pattern}/ matches no text at all")
        shown = pattern if len(pattern) <= 60 else f"{pattern[:57]}..."
        return cls(rules, RuleRef("start"), limits=limits, name=f"/{shown}/")

    @classmethod
    @checked(GrammarError, limits=LIMITS)
    def from_choices(cls, choices: Iterable[str | bytes], *, limits: Limits = DEFAULT) -> Self:
        """Make the grammar of exactly these texts.

        Raises
        ------
        GrammarError
            No choice is given, or one is not text.
        """
        values = read_texts(choices, "choices", limits)
        rules = {"start": Rule("start", nodes.choices(values))}
        return cls(rules, RuleRef("start"), limits=limits, name=f"{len(values)} choices")

    @classmethod
    @checked(GrammarError, whitespace=TEXT, limits=LIMITS)
    def from_json_schema(
        cls,
        schema: Mapping | bool | str | Path | type | Any,
        *,
        whitespace: str = "flexible",
        any_order: bool = True,
        closed: bool = False,
        lenient: bool = False,
        strict: bool = False,
        formats: bool = True,
        limits: Limits = DEFAULT,
    ) -> Self:
        """Make the grammar of the JSON texts that are valid under a JSON Schema (drafts 4 to 2020-12: docs/json.md).

        Parameters
        ----------
        schema : dict, bool, str, Path or type
            A schema as Python values, as JSON text, or the path of a file with it; or a type that has one: a pydantic
            model or `TypeAdapter`, a dataclass, a `TypedDict`, an enum, or a type hint such as ``list[int]``.
        whitespace : {"flexible", "single", "dumps", "compact"}
            Between the pieces: as people and models write it, line breaks and indents included;
            at most one space; exactly as `json.dumps` writes; none.
        any_order : bool
            Named properties in any order; else in the schema's.
        closed : bool
            Objects that list properties, and say nothing of others, admit no others.
        lenient : bool
            Leave out keywords that would be refused, and name them in `left_out`.
        strict : bool
            Refuse keywords that the standard doesn't know; else they are annotations, named in `unknown`.
        formats : bool
            Enforce `format`; else it is an annotation.

        Raises
        ------
        GrammarError
            It is not a schema, has a keyword that is not supported, or admits nothing; the
            message has the place as a JSON pointer.
        LimitError
            It costs more than `limits` allow (a GrammarError, too).
        """
        options = Options(limits, any_order, closed, lenient, strict, formats, distinct={})
        rules = load_schema(read_schema(as_schema(schema), limits), layout(whitespace), options)
        grammar = cls(rules, RuleRef("start"), limits=limits, name="JSON Schema")
        grammar.left_out, grammar.unknown = tuple(options.left_out), tuple(options.unknown)
        grammar.distinct = options.distinct or {}
        return grammar

    def bind(self, **values) -> Self:
        """This grammar with slots bound; costs nothing but the sorting of the values.

        Parameters
        ----------
        **values
            Slot name = a text, texts (`range` for numbers), a grammar, a compiled
            `re.Pattern`, or a mapping of key to one of these: then the slot's values are
            those under the key that the *following* template argument is bound to
            (``take{OBJECT, r}``: the objects at ``r``). A missing key means none there.

        Raises
        ------
        GrammarError
            An unknown slot, an empty list, or a value that is not text.
        """
        bound, orders = dict(self.bindings), dict(self.orders)
        for name, value in values.items():
            if name not in self.slots:
                known = ", ".join(sorted(self.slots)) or "none"
                raise GrammarError(f"no slot {name!r}", hint=f"%declare it; the slots are: {known}")
            bound[name], orders[name] = _slot_value(f"slot {name}", value, self.limits)
        return self._variant(bindings=bound, orders=orders)

    def stand_ins(self, form: str = "{}") -> dict[str, str | list[str] | dict[str, list[str]]]:
        """Values for the slots that have none, to look at a grammar without what it will be bound to.

        Each value is the slot's name in that form; there are two of each where rules ask for another value than before.
        """
        unbound = self.unbound()
        if not self.of_rules(uses_relations):
            return {name: form.format(name) for name in unbound}
        texts = {name: [form.format(name), form.format(f"another {name}")] for name in unbound}
        every = [text for values in texts.values() for text in values]
        relations = (node for rule in self.all_rules().values() for node in rule.find(Related))
        by_key = {node.slot.name for node in relations if node.relation == AT}
        return {name: dict.fromkeys(every, values) if name in by_key else values for name, values in texts.items()}

    def with_start(self, start: Node) -> Self:
        """The same rules and bindings with another start."""
        return self._variant(start=start)

    def with_bindings(self, bindings: Mapping[str, SlotValue]) -> Self:
        """The same grammar with these values of the slots, taken as they are."""
        return self._variant(bindings=dict(bindings))

    def with_limits(self, limits: Limits) -> Self:
        """The same grammar with other limits."""
        return self if limits == self.limits else self._variant(limits=limits)

    def with_rules(self, rules: dict[str, Rule], start: Node) -> Self:
        """A grammar of other rules with the same bindings."""
        return self._variant(rules=rules, start=start, _of_rules={})

    def copy(self) -> Self:
        """The same grammar; nothing is derived from it yet."""
        return self._variant()

    def _variant(self, **changes) -> Self:
        other = self.__new__(type(self))
        vars(other).update(vars(self), _derived={}, **changes)
        return other

    def __getstate__(self) -> dict:
        """For `pickle` and `copy`: all but what was derived, such as an automaton, which is made anew."""
        return vars(self) | {"_derived": {}, "_of_rules": {}}

    def unbound(self) -> list[str]:
        """The slots in use that have no value yet."""
        if not self.slots:
            return []  # rules that are deferred have none
        return sorted(self.of_rules(_used_slots) - set(self.bindings) - {STEP})

    @property
    def nests(self) -> bool:
        """Whether some recursion takes a stack, here or in a grammar that a slot is bound to."""
        return any(grammar.of_rules(self_embedding_rules) for grammar in self.nested())

    @property
    def remembers(self) -> bool:
        """Whether what a text has written must be remembered, here or in a grammar that a slot is bound to."""
        return any(map(attrgetter("distinct"), self.nested()))

    def nested(self) -> list[ContextFreeGrammar]:
        """This grammar and those that slots are bound to, at any depth, each once."""
        first: list[ContextFreeGrammar] = [self]
        if not self.bindings:
            return first
        return reached(first, lambda one: (inner for value in one.bindings.values() for inner in grammars_in(value)))

    def derived(self, factory: Callable[[Self], T]) -> T:
        """``factory(self)``, made once."""
        if factory not in self._derived:
            self._derived[factory] = factory(self)
        return self._derived[factory]

    def all_rules(self) -> dict[str, Rule]:
        """All rules; those that were deferred are written now."""
        return self.rules.write_all() if isinstance(self.rules, DeferredRules) else self.rules

    def of_rules(self, factory: Callable[[dict[str, Rule]], T]) -> T:
        """``factory(self.all_rules())``, made once for all grammars with the same rules."""
        if factory not in self._of_rules:
            self._of_rules[factory] = factory(self.all_rules())
        return self._of_rules[factory]

    def extended(self, extend: Callable[[dict[str, Rule]], dict[str, Rule]], start: Node) -> Self:
        """A grammar from `start` over the rules ``extend(rules)``, made once for all with the same rules."""
        if extend not in self._of_rules:
            self._of_rules[extend] = self.with_rules(extend(self.all_rules()), start)
        extended: Self = self._of_rules[extend]
        return extended._variant(start=start, bindings=self.bindings, orders=self.orders, limits=self.limits)

    def check_slots(self) -> None:
        """Raise GrammarError if a slot bound to the empty text makes a rule left-recursive."""
        for grammar in self.nested() if self.bindings else ():
            grammar._check_own_slots()

    def _check_own_slots(self) -> None:
        if not self.bindings or not self.of_rules(self_embedding_rules):
            return  # asked first: it is known for the rules, whatever the slots are bound to
        empty = self.derived(_empty_slots)
        if not empty:
            return
        try:
            check_left_recursion(self.all_rules(), empty)
        except LeftRecursion as error:
            raise GrammarError(
                f"rule '{error.rule}' is left-recursive where {', '.join(sorted(empty))} is empty",
                line=error.line,
                hint="bind the slot that stands before the recursion to text only",
            ) from None


def _used_slots(rules: dict[str, Rule]) -> frozenset[str]:
    return frozenset(slot.name for rule in rules.values() for slot in rule.find(Slot))


def as_bytes(text: str | bytes) -> bytes:
    """Text as UTF-8 bytes."""
    if not isinstance(text, (str, bytes, bytearray, memoryview)):
        raise GrammarError(f"{text!r} is not text")
    # a lone surrogate is no character of any language: its bytes match nothing
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)


def texts_in(value: SlotValue) -> Iterator[bytes]:
    """Iterate over every text that a slot's value lists."""
    for one in value.values() if isinstance(value, dict) else (value,):
        if not isinstance(one, ContextFreeGrammar):
            yield from one


def grammars_in(value: SlotValue) -> Iterator[ContextFreeGrammar]:
    """Iterate over every grammar that a slot's value is, or has for some key."""
    for one in value.values() if isinstance(value, dict) else (value,):
        if isinstance(one, ContextFreeGrammar):
            yield one


def _slot_value(what: str, value, limits: Limits) -> tuple[SlotValue, SlotOrder]:
    """What a slot is bound to, and its texts in the order given."""
    if not isinstance(value, Mapping):
        return _one_value(what, value, limits)
    values, orders = {}, {}
    for key, one in value.items():
        if isinstance(one, Sized) and not isinstance(one, (str, bytes)) and not len(one):
            continue  # no value for this key
        values[as_bytes(key)], orders[as_bytes(key)] = _one_value(f"{what}[{key!r}]", one, limits)
    return values, orders


def _one_value(what: str, value, limits: Limits) -> tuple[OneValue, tuple[bytes, ...]]:
    if isinstance(value, ContextFreeGrammar):
        return value, ()
    if isinstance(value, Mapping):
        raise GrammarError(f"{what}: keys within a key", hint="join the two keys to one text, or bind two slots")
    if isinstance(value, re.Pattern):
        return _of_pattern(what, value, limits), ()
    order = read_texts(value, what, limits)
    values = tuple(sorted(order))
    return values, values if values == order else order


def _of_pattern(what: str, pattern: re.Pattern, limits: Limits) -> ContextFreeGrammar:
    if not isinstance(pattern.pattern, str):
        raise GrammarError(f"{what}: a pattern of bytes", hint="compile it from a str: a grammar's texts are Unicode")
    try:
        return _from_pattern(pattern.pattern, pattern.flags, limits)
    except LimitError:
        raise
    except GrammarError as error:
        raise GrammarError(f"{what}: {error.message}", hint=error.hint) from None


@lru_cache(maxsize=256)
def _from_pattern(pattern: str, flags: int, limits: Limits) -> ContextFreeGrammar:
    return ContextFreeGrammar.from_regex(pattern, flags, limits=limits)


def _can_be_empty(value: SlotValue) -> bool:
    """Whether a slot's value has the empty text."""
    if isinstance(value, dict):
        return any(map(_can_be_empty, value.values()))
    if isinstance(value, ContextFreeGrammar):
        return Nullable(value.all_rules(), value.derived(_empty_slots)).sometimes(value.start, "")
    return not value[0]


def _empty_slots(grammar: ContextFreeGrammar) -> frozenset[str]:
    """The slots with a value that has the empty text."""
    return frozenset(name for name, value in grammar.bindings.items() if _can_be_empty(value))


def read_texts(values, what: str, limits: Limits) -> tuple[bytes, ...]:
    """One text, or several, as UTF-8 and in the order given, each once.

    Raises
    ------
    GrammarError
        There is none, or one is not text.
    LimitError
        They are too many, or too long.
    """
    if isinstance(values, (str, bytes)):
        values = [values]
    elif isinstance(values, range):
        limits.check("values", len(values), f"{what}: too many values")
        values = [str(i) for i in values]
    texts = _read_valid_texts(values, limits) if isinstance(values, (list, tuple)) else None
    if texts is None:
        texts = tuple(dict.fromkeys(_read_one_by_one(values, what, limits)))
    if not texts:
        raise GrammarError(
            f"{what}: nothing to choose from",
            hint="an empty list admits no text; bind a mapping ({} for none) where that is meant",
        )
    return texts


def _read_valid_texts(values, limits: Limits) -> tuple[bytes, ...] | None:
    """The texts if nothing is wrong with them: the quick way, as bindings change with every action."""
    try:
        texts = tuple(dict.fromkeys([v if type(v) is bytes else v.encode() for v in values]))
    except (AttributeError, UnicodeEncodeError):
        return None
    return texts if len(texts) <= limits.values and sum(map(len, texts)) <= limits.value_bytes else None


def _read_one_by_one(values, what: str, limits: Limits) -> Iterator[bytes]:
    if not isinstance(values, Iterable):
        raise _not_text(values, what, "is not text, nor a list of texts")
    size, seen = 0, set()
    for value in values:
        if not isinstance(value, (str, bytes)):
            raise _not_text(value, what, "is not text")
        try:
            data = value.encode() if isinstance(value, str) else bytes(value)
        except UnicodeEncodeError:
            raise GrammarError(f"{what}: {value!r} has a lone surrogate, which is not text") from None
        seen.add(data)
        size += len(data)
        limits.check("values", len(seen), f"{what}: too many values")
        limits.check("value_bytes", size, f"{what}: too many bytes")
        yield data


def _not_text(value, what: str, complaint: str) -> GrammarError:
    hint = None
    if isinstance(value, int) and not isinstance(value, bool):
        hint = f'write the text "{value}", or range({value}) for the numbers below it'
    elif hasattr(value, "next_action"):
        hint = "knowledge.next_action() is the grammar of the next action"
    return GrammarError(f"{what}: {value!r} {complaint}", hint=hint)

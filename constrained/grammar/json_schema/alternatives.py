"""Schemas as alternatives: `$ref`, allOf, anyOf, oneOf, not and dependencies are resolved.

A schema becomes alternatives. Each is a conjunction: schemas that hold together, of which only the
keywords about the value itself are still to be read. It is identified by their pointers, so that
the same one is written once, and recursion leads back to it.
"""

from __future__ import annotations

from itertools import combinations, islice
from operator import itemgetter
from typing import Any

from constrained.grammar.json_schema.constraints import Conjunction, Constraints, identity, key_of
from constrained.grammar.json_schema.disjoint import Disjoint
from constrained.grammar.json_schema.document import NOTING, Document, Subschema, error
from constrained.grammar.json_schema.keywords import (
    EVERY,
    FORMS,
    PRESENT,
    TYPES,
    Made,
    Options,
    check,
    dependencies,
    is_known,
    types_of,
)
from constrained.grammar.json_schema.negation import Negation
from constrained.grammar.json_schema.presence import names_in, presence, presence_of
from constrained.grammar.json_schema.settled import Known, listed_by, only_lists
from constrained.grammar.json_schema.validity import Validator

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
FOLLOWED = frozenset(
    "allOf anyOf oneOf not if then else dependentRequired dependentSchemas dependencies".split()
).union(_REFERENCES)

_UNCONDITIONAL = frozenset({*_REFERENCES, "allOf", "then", "else"})
"""Keywords that are followed, and leave no choice."""
_SAYING = FORMS.keys() - FOLLOWED
"""Keywords of the standard's that say something of the value itself."""
CONDITIONAL = FOLLOWED - _UNCONDITIONAL
"""Keywords that may be conditions on the names of an object."""

_ABOUT = {
    keyword: frozenset(types.split())
    for types, keywords in {
        "number integer": "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf",
        "string": "minLength maxLength pattern",
        "array": "items prefixItems additionalItems minItems maxItems contains minContains maxContains uniqueItems",
        "object": "properties required additionalProperties patternProperties propertyNames minProperties "
        "maxProperties dependentRequired dependentSchemas dependencies",
    }.items()
    for keyword in keywords.split()
}
"""Keyword -> the types whose values it restricts."""

_TOO_MANY = "anyOf, oneOf and what else leaves a choice have too many combinations"
_SHARE = "put what the branches share beside them, once"

Order = tuple[int, ...]
"""Where a schema stands among those that hold together, in the order in which they are written."""

_Placed = tuple[int, int, Subschema]
"""A schema at a keyword of another one: which keyword and which schema there it is, by number."""


class Alternatives:
    """The alternatives of the schemas of one document.

    Parameters
    ----------
    conditions : bool
        Whether keywords that are only about which names an object has are conditions on these, and no alternatives.
    """

    def __init__(self, document: Document, options: Options, conditions: bool = True):
        self.document, self.options, self.limits = document, options, options.limits
        self.validator = Validator(self)
        self.disjoint = Disjoint(self)
        self.negation = Negation(options, document.refer)
        self.roughly = False  # each branch of oneOf without the complement of the others: enough to tell schemas apart
        self.listed: dict[str, frozenset | None] = {}  # values by pointer, for `settled.Known`
        self._conditions = conditions and options.any_order
        self._steps = 0
        self._checked: set[str] = set()
        self._places: dict[str, int] = {}
        self._unevaluated: set[str] = set()
        self._found: dict[tuple, list[Conjunction]] = {}
        self._expansions: dict[tuple, tuple[list[_Placed], list[list[list[_Placed]]]]] = {}
        self._ones: dict[tuple, list[list[Subschema]]] = {}
        self._apart: set[str] = set()  # schemas whose oneOf has branches that share no value
        self._plainly_apart: set[tuple[int, str, int]] = set()  # the same, see `tell_apart`
        self._overlaps: dict[str, list[list[int]]] = {}  # of the oneOf of other schemas, see `Disjoint.overlaps`
        self._constraints: dict[tuple[str, ...], Constraints] = {}

    def constraints(self, conjunction: Conjunction) -> Constraints:
        """What a conjunction says."""
        key = key_of(conjunction)
        if key not in self._constraints:
            self._constraints[key] = Constraints(conjunction, self.options)
        return self._constraints[key]

    def constraints_of(self, parts: list[Subschema]) -> list[Constraints]:
        """What each alternative of schemas that hold together says."""
        return [self.constraints(one) for one in self.of(parts)]

    def of(self, parts: list[Subschema]) -> list[Conjunction]:
        """The alternatives of schemas that hold together, each once."""
        key = self.roughly, *[(part.pointer, part.within) for part in parts]
        if key not in self._found and len(parts) == 1 and FOLLOWED.isdisjoint(parts[0].keywords):  # most
            self.check(parts[0])
            says = self._place(parts[0]) >= 0
            self._found[key] = [] if parts[0].schema is False else [tuple(parts) if says else ()]
        elif key not in self._found:
            self._steps = 0
            every = self._follow([((i,), part) for i, part in enumerate(parts)], {}, [], EVERY)
            self._found[key] = list({key_of(one): one for one in every}.values())
        return self._found[key]

    def _follow(
        self,
        work: list[tuple[Order, Subschema]],
        flat: dict[str, tuple[Order | None, Subschema]],
        choices: list[tuple[Order, list[list[_Placed]]]],
        types: frozenset[str],
        before: Known | None = None,
    ) -> list[Conjunction]:
        # `flat` is what holds in every alternative below here; `work`, what holds and is still to be looked into, which
        # grows; `choices`, of each of which one branch is still to be taken; `before`, what is known of the former. A
        # schema of `flat` has an order if it says something of the value itself.
        first_new = len(flat)
        flat, choices, work = dict(flat), list(choices), list(work)
        for order, part in work:
            self.check(part)
            if part.schema is True or part.pointer in flat:
                continue
            if part.schema is False:
                return []
            if "type" in part.keywords:
                types &= types_of(part)
                if not types:
                    return []
            place = self._place(part)
            flat[part.pointer] = (*order, place) if place >= 0 else None, part
            if not FOLLOWED.isdisjoint(part.keywords):
                beside, chosen = self._expanded(part)
                work += [((*order, at, i), one) for at, i, one in beside]
                choices += [(order, choice) for choice in chosen]
        self._steps += 1 + len(flat) // 8  # most of what a combination costs does not depend on its size
        self.limits.check("schema", self._steps, _TOO_MANY, _SHARE)
        if choices and types == {"object"}:
            new = islice(flat.values(), first_new if before else 0, None)
            known = Known([part for _, part in new], self, before)
            if known.contradict():
                return []
            before = known
            choices = [(order, left) for order, choice in choices if (left := known.left(choice)) is not None]
        if not choices:
            saying = [one for one in flat.values() if one[0] is not None]
            if len(saying) > 1:
                saying.sort(key=itemgetter(0))
            return [tuple([part for _, part in saying])]
        # few branches first: contradictions show sooner
        (order, first), *others = sorted(choices, key=lambda choice: len(choice[1]))
        out: list[Conjunction] = []
        for branch in first:
            placed = [((*order, at, i), one) for at, i, one in branch]
            out += self._follow(placed, flat, others, types, before)
        return out

    def _expanded(self, part: Subschema) -> tuple[list[_Placed], list[list[list[_Placed]]]]:
        """What holds wherever a schema does, and the choices that it leaves."""
        key = part.pointer, part.within, self.roughly
        if key not in self._expansions:
            beside: list[_Placed] = []
            choices: list[list[list[_Placed]]] = []
            for at, keyword in enumerate(part.keywords):
                if keyword in FOLLOWED:
                    present = self.present(part, keyword)
                    if present is not None:
                        beside.append((at, 0, present))
                        continue
                    beside += [(at, i, one) for i, one in enumerate(self._beside(part, keyword))]
                    choices += [
                        [[(at, i, one) for i, one in enumerate(branch)] for branch in choice]
                        for choice in self._choices(part, keyword)
                    ]
            self._expansions[key] = beside, choices
        return self._expansions[key]

    def check(self, part: Subschema) -> None:
        """Check a schema's keywords, once."""
        if part.pointer in part.within:
            raise error(part, "", "the schema refers to itself for the same value", "let it describe something first")
        if part.pointer not in self._checked:
            self._checked.add(part.pointer)
            if "unevaluatedProperties" in part.keywords or "unevaluatedItems" in part.keywords:
                self._unevaluated.add(part.pointer)
            check(part, self.options)

    def _place(self, part: Subschema) -> int:
        """Where in a schema its properties stand; -1 if nothing in it is about the value itself."""
        if part.pointer not in self._places:
            known = part.keywords
            says = not _SAYING.isdisjoint(known) or "\0" in part.pointer and any(isinstance(k, Made) for k in known)
            says = says or self.options.enforces(known.get("format"))
            place = [*known].index("properties") if "properties" in known else len(known)
            self._places[part.pointer] = place if says else -1
        return self._places[part.pointer]

    def _beside(self, part: Subschema, keyword: str) -> list[Subschema]:
        """The schemas that hold wherever the keyword does."""
        if keyword in _REFERENCES:
            return [self.document.refer(part, keyword)]
        if keyword == "allOf":
            return [part.beside(keyword, i) for i in range(len(part[keyword]))]
        return []

    def _choices(self, part: Subschema, keyword: str) -> list[list[list[Subschema]]]:
        """Lists of alternatives; of each list, one holds."""
        match keyword:
            case "anyOf":
                branches = [part.beside(keyword, i) for i in range(len(part[keyword]))]
                if not self._evaluated(part):
                    return [
                        [[branch] for branch in self._with_one_condition(part, self._with_one_list(part, branches))]
                    ]
                sets = (s for size in range(1, len(branches) + 1) for s in combinations(branches, size))
                self.limits.check("schema", 1 << len(branches), _TOO_MANY, "leave unevaluated… out")
                return [[list(chosen) for chosen in sets]]  # what each branch that holds has evaluated counts
            case "oneOf":
                return [self._one_of(part)]
            case "not":
                there = part.beside(keyword)
                within = there.within | {f"{part.pointer}\0not"}  # nothing in it counts as evaluated
                return [self.negation(Subschema(there.schema, there.pointer, there.base, there.draft, within))]
            case "if" if "then" in part or "else" in part or self._evaluated(part):
                there = part.beside(keyword)
                holds = [there] + ([part.beside("then")] if "then" in part else [])
                without = part.made({"not": there}, "if not")
                return [[holds, [without] + ([part.beside("else")] if "else" in part else [])]]
            case "dependentRequired" | "dependentSchemas" | "dependencies":
                out = []
                for name, names, schema in dependencies(part, keyword):
                    without = part.made({"properties": {name: False}}, f"{keyword} {name} without")
                    having = part.made({"type": "object", "required": [name, *names]}, f"{keyword} {name} with")
                    out.append([[without], [having, *([schema] if schema else [])]])
                return out
        return []

    def _with_one_list(self, part: Subschema, branches: list[Subschema]) -> list[Subschema]:
        """The branches of an anyOf, those that only list values as one: a choice of many is costly."""
        for branch in branches:
            self.check(branch)
        lists = [branch for branch in branches if only_lists(branch) and listed_by(branch) is not None]
        if len(lists) < 2:
            return branches
        every: dict[Any, Any] = {}
        for branch in lists:
            kept = listed_by(branch) or frozenset()
            values = branch["enum"] if "enum" in branch else [branch["const"]]
            every.update((identity(value), value) for value in values if identity(value) in kept)
        others = [branch for branch in branches if branch not in lists]
        return [part.made({"enum": list(every.values())}, "anyOf lists"), *others]

    def _with_one_condition(self, part: Subschema, branches: list[Subschema]) -> list[Subschema]:
        """The branches of an anyOf, those that are conditions on which names there are as one."""
        found = [presence_of(branch, self.options, self.check) for branch in branches]
        named = [branch for branch, one in zip(branches, found) if one is not None and names_in(one.condition)]
        together = self.present(part.made({"anyOf": named}, "anyOf names"), "anyOf") if len(named) > 1 else None
        return branches if together is None else [*(one for one in branches if one not in named), together]

    def present(self, part: Subschema, keyword: str) -> Subschema | None:
        """A keyword as a condition on the names of an object, if it is one."""
        if keyword in _UNCONDITIONAL or not self._conditions or self._evaluated(part):
            return None
        found = presence(part, keyword, self.options, self.check)
        if found is None or not names_in(found.condition):
            return None
        of_objects = {} if found.of_others else {"type": "object"}
        return part.made({**of_objects, PRESENT: found.condition}, f"{keyword} present")

    def _evaluated(self, part: Subschema) -> bool:
        """Whether it matters which schemas at `part` hold, as an unevaluated… counts what they evaluate."""
        return not self._unevaluated.isdisjoint({part.pointer, *part.within})

    def are_disjoint(self, part: Subschema) -> bool:
        """Whether no value fits two branches of a oneOf, so that it says what anyOf would."""
        self.check(part)
        found = self._one_of(part)
        return bool(found) and all(len(branch) == 1 for branch in found)

    def tell_apart(self, branches: list, base: str, draft: int) -> None:
        """Take it that no value fits two branches of a oneOf, which the document has as a list."""
        self._plainly_apart.add((id(branches), base, draft))

    def _one_of(self, part: Subschema) -> list[list[Subschema]]:
        key = part.pointer, part.within, self.roughly
        if key not in self._ones:
            plainly = (id(part["oneOf"]), part.base, part.draft) in self._plainly_apart
            if self.roughly or plainly or part.pointer in self._apart:
                found = [[part.beside("oneOf", i)] for i in range(len(part["oneOf"]))]
            else:
                found = self._branches_alone(part)
                if found and all(len(branch) == 1 for branch in found):
                    self._apart.add(part.pointer)
            self._ones[key] = found
        return self._ones[key]

    def _branches_alone(self, part: Subschema) -> list[list[Subschema]]:
        """The branches of a oneOf, each with what leaves out the values of the others."""
        branches = [part.beside("oneOf", i) for i in range(len(part["oneOf"]))]
        # Types of which all values are valid under two branches are left out of all. Then each branch is taken with the
        # complements of those branches alone that it may share a value with: most share none.
        rest = {k: v for k, v in part.keywords.items() if k not in FOLLOWED and k not in NOTING}
        once: set[str] = set()
        twice: set[str] = set()
        for branch in branches:
            free = self._free_types(branch)
            twice |= once & free
            once |= free
        if twice - {"integer"}:  # whatever is of such a type is valid under two of them
            rest["type"] = [t for t in TYPES if t in types_of(part) and t not in twice] or "null"
            if not types_of(part) - twice:
                return []
        shared = [Subschema(rest, f"{part.pointer}\0oneOf beside", part.base, part.draft, part.within)] if rest else []
        beside = [part.made({"type": rest["type"]}, "oneOf types")] if twice - {"integer"} else []
        out = []
        if part.pointer not in self._overlaps:
            self._overlaps[part.pointer] = self.disjoint.overlaps([[*shared, branch] for branch in branches])
        for branch, others in zip(branches, self._overlaps[part.pointer]):
            beyond = [branches[j] for j in others]
            found = self.constraints_of([branch]) if beyond else []
            if found and all(one.listed for one in found):  # the values that no other branch has are listed, too
                every = [v for one in found if one.listed for v in one.listed[1] if self.validator.fits(v, one)]
                with self.validator.widely():
                    left = [v for v in every if not any(self.validator.admits(v, [other]) for other in beyond)]
                out.append([*beside, branch, part.made({"enum": left}, f"oneOf only {branch.pointer}")])
            else:
                complements = (part.made({"not": other}, f"oneOf not {other.pointer}") for other in beyond)
                out.append([*beside, branch, *complements])
        return out

    def _free_types(self, part: Subschema, depth: int = 8) -> frozenset[str]:
        """Types of which every value is valid, as far as it is plain."""
        types = types_of(part) if part.schema is not False and depth else frozenset()
        for keyword, value in part.keywords.items():
            if not types:
                break
            if keyword in _REFERENCES:
                types &= self._free_types(self.document.target(part, keyword), depth - 1)
            elif keyword in ("allOf", "anyOf"):
                inner = [self._free_types(part.below(keyword, i), depth - 1) for i in range(len(value))]
                types &= frozenset.intersection(*inner) if keyword == "allOf" else frozenset.union(*inner)
            elif keyword in _ABOUT:
                types -= _ABOUT[keyword]
            elif keyword != "type" and (is_known(keyword) or keyword == "format" and self.options.enforces(value)):
                return frozenset()
        return types

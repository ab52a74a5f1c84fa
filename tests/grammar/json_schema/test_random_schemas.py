"""Random schemas, values near them, and random texts of their grammars, held against jsonschema."""

import json
import random

import pytest

from constrained import Grammar, GrammarError, LimitError
from tests.chance import times
from tests.grammar.json_schema.oracle import accepted, is_valid, random_text

NAMES = ("a", "b", "c", "é", "x_1")
PLAIN = (None, True, 0, 1, 2, 1.5, -1, 100, "", "a", "b", "ab", "é", 'q"', [], [1], ["a", "b"], {}, {"a": 1})
NUMBERS = (0, 1, -1, 5, 10, -10, 0.5, 2.25, -0.1, 99, 12.345)
PATTERNS = ("^a", "b$", "^[a-c]+$", "^a|b$", "é", r"\d", "[^a]", "^.{1,3}$", "^$", "a.b", r'^["\\]+$', "^(?!ab)")


class Schemas:
    """Random schemas from one seed; none says more than the generator's few keywords."""

    def __init__(self, rng: random.Random):
        self.rng = rng

    def some(self, share: float) -> bool:
        return self.rng.random() < share

    def whole(self) -> dict:
        return {**self.schema(0), "$defs": {name: self.schema(1) for name in ("d0", "d1")}}

    def schema(self, depth: int) -> dict:
        kinds = [self.number, self.string, self.listed, self.typed]
        if depth:
            kinds.append(self.reference)
        if depth < 3:
            kinds += [self.array, self.object, self.object, self.combined]
        return self.rng.choice(kinds)(depth + 1)

    def typed(self, depth: int) -> dict:
        return {"type": self.rng.choice(["null", "boolean", "string", "integer", "array", "object"])}

    def reference(self, depth: int) -> dict:
        return {"$ref": self.rng.choice(["#/$defs/d0", "#/$defs/d1", "#"])}

    def listed(self, depth: int) -> dict:
        return {"enum": self.rng.sample(PLAIN, self.rng.randint(1, 4))}

    def number(self, depth: int) -> dict:
        bounds = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
        schema = {"type": self.rng.choice(["integer", "number"])}
        schema.update((bound, self.rng.choice(NUMBERS)) for bound in bounds if self.some(0.3))
        if self.some(0.3):
            schema["multipleOf"] = self.rng.choice([2, 3, 7, 10, 0.5, 2.5])
        return schema

    def string(self, depth: int) -> dict:
        schema: dict = {"type": "string"}
        for keyword, least in (("minLength", 0), ("maxLength", 1)):
            if self.some(0.3):
                schema[keyword] = self.rng.randint(least, 3)
        if self.some(0.4):
            schema["pattern"] = self.rng.choice(PATTERNS)
        return schema

    def array(self, depth: int) -> dict:
        schema: dict = {"type": "array"}
        if self.some(0.7):
            schema["items"] = self.schema(depth)
        if self.some(0.3):
            schema["prefixItems"] = [self.schema(depth) for _ in range(self.rng.randint(1, 2))]
        for keyword in ("minItems", "maxItems"):
            if self.some(0.3):
                schema[keyword] = self.rng.randint(0, 3)
        if self.some(0.15):
            schema["contains"] = self.schema(depth)
            for keyword in ("minContains", "maxContains"):
                if self.some(0.3):
                    schema[keyword] = self.rng.randint(0, 2)
        return schema

    def object(self, depth: int) -> dict:
        schema: dict = {"type": "object"} if self.some(0.8) else {}
        schema["properties"] = {name: self.schema(depth) for name in self.rng.sample(NAMES, self.rng.randint(0, 3))}
        if self.some(0.5):
            schema["required"] = self.rng.sample(NAMES, self.rng.randint(0, 2))
        if self.some(0.5):
            schema["additionalProperties"] = self.rng.choice([False, True, self.schema(depth)])
        for keyword in ("minProperties", "maxProperties"):
            if self.some(0.2):
                schema[keyword] = self.rng.randint(0, 3)
        if self.some(0.15):
            patterns = self.rng.sample(["^a", "^x_", "b|c", "."], 2)
            schema["patternProperties"] = {pattern: self.schema(depth) for pattern in patterns}
        if self.some(0.1):
            names = [{"enum": ["a", "b", "z"]}, {"maxLength": 1}, {"pattern": "^[a-z]+$"}]
            schema["propertyNames"] = self.rng.choice(names)
        if self.some(0.1):
            schema["dependentRequired"] = {"a": ["b"]}
        return schema

    def combined(self, depth: int) -> dict:
        keyword = self.rng.choice(["anyOf", "anyOf", "oneOf", "allOf", "not", "if"])
        beside = self.typed(depth) if self.some(0.3) else {}
        if keyword == "not":
            return {**beside, "not": self.schema(depth)}
        if keyword == "if":
            cases = {k: self.schema(depth) for k in ("then", "else") if self.some(0.7)}
            return {**beside, "if": self.schema(depth), **cases}
        return {**beside, keyword: [self.schema(depth) for _ in range(self.rng.randint(1, 3))]}


class Values:
    """Random values, most of them near a schema."""

    def __init__(self, rng: random.Random, root: dict):
        self.rng, self.root = rng, root

    def near(self, schema, depth: int = 0):
        rng = self.rng
        if depth > 4 or not isinstance(schema, dict) or rng.random() < 0.1:
            return rng.choice(PLAIN)
        if "$ref" in schema:
            found = self.root
            for key in schema["$ref"].split("/")[1:]:
                found = found[key]
            return self.near(found, depth + 1)
        if "enum" in schema:
            return rng.choice(schema["enum"])
        for keyword in ("anyOf", "oneOf", "allOf"):
            if keyword in schema and rng.random() < 0.8:
                return self.near(rng.choice(schema[keyword]), depth + 1)
        kind = schema.get("type") or rng.choice(["object", "array", "string", "integer"])
        return getattr(self, kind)(schema, depth + 1)

    def null(self, schema, depth):
        return None

    def boolean(self, schema, depth):
        return self.rng.random() < 0.5

    def number(self, schema, depth):
        bounds = [v for k, v in schema.items() if k in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")]
        return round(self.rng.choice(bounds or [0]) + self.rng.choice([0, 1, -1, 10, 0.5, -0.01, 0.001]), 4)

    def integer(self, schema, depth):
        return int(self.number(schema, depth)) * int(self.rng.choice([1, schema.get("multipleOf", 1)]))

    def string(self, schema, depth):
        return "".join(self.rng.choice('abcé1_ "\\\t/') for _ in range(self.rng.randint(0, 4)))

    def array(self, schema, depth):
        first = schema.get("prefixItems", [])
        inner = [*first, *[schema.get("items", {})] * 3][: self.rng.randint(0, 3)]
        return [self.near(one, depth) for one in inner]

    def object(self, schema, depth):
        named, out = schema.get("properties", {}), {}
        for name in [*named, *schema.get("required", ()), "a", "z"]:
            share = 0.8 if name in schema.get("required", ()) else 0.5 if name in named else 0.15
            if self.rng.random() < share and len(out) < 4:
                out[name] = self.near(named.get(name, schema.get("additionalProperties", {})), depth)
        return out


def verdict(schema, value) -> bool | None:
    """Whether jsonschema takes a value; None where it follows references without end."""
    try:
        return is_valid(schema, value)
    except RecursionError:
        return None


@pytest.mark.parametrize("seed", range(40))
def test_the_grammar_of_a_random_schema_admits_its_valid_values(seed):
    read = 0
    for number in range(times(8, 100)):
        rng = random.Random(f"{seed} {number}")
        schema = Schemas(rng).whole()
        try:
            grammar = Grammar.from_json_schema(schema)
        except GrammarError as error:
            values = [Values(rng, schema).near(schema) for _ in range(20)]
            nothing_fits = "no value is valid" in str(error)
            assert not nothing_fits or not any(verdict(schema, value) for value in values), json.dumps(schema)
            continue
        read += 1
        for _ in range(20):
            value = Values(rng, schema).near(schema)
            assert verdict(schema, value) in (None, accepted(grammar, value)), (
                f"{json.dumps(schema)}\n{json.dumps(value)}"
            )
        for _ in range(10):
            try:
                text = random_text(grammar, rng)
            except LimitError:  # such as `positions`, where free names are counted
                break
            assert text is None or verdict(schema, json.loads(text)) is not False, f"{json.dumps(schema)}\n{text!r}"
    assert read

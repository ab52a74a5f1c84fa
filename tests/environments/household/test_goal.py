"""Goals: the compiled search agrees with trying out every binding."""

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from constrained.environments.household import rules
from constrained.environments.household.goal import compile_goal
from constrained.environments.household.world import World
from constrained.planning.model import typed_names
from tests.environments.household.small_house import small_house

VARIABLES = {"?o": "object", "?p": "object", "?r": "receptacle", "?l": "location", "?a": "agent"}


def brute_force(formula, world: World, names: dict) -> bool:
    """Evaluate a formula by its definition."""
    head, *parts = formula
    if head == "and":
        return all(brute_force(part, world, names) for part in parts)
    if head == "or":
        return any(brute_force(part, world, names) for part in parts)
    if head == "not":
        return not brute_force(parts[0], world, names)
    if head == "imply":
        return not brute_force(parts[0], world, names) or brute_force(parts[1], world, names)
    if head in ("exists", "forall"):
        pairs = typed_names(parts[0])
        bindings = product(*(world.house.things[kind] for _, kind in pairs))
        found = (brute_force(parts[1], world, {**names, **dict(zip(dict(pairs), b))}) for b in bindings)
        return any(found) if head == "exists" else all(found)
    arguments = [names.get(a, a) for a in parts]
    facts = {*world.fixed_facts([head]), *world.changing_facts([head])}
    return arguments[0] == arguments[1] if head == "=" else (head, *arguments) in facts


FACTS = st.sampled_from(
    [
        ("objectType", "?o", "PotatoType"), ("objectType", "?p", "KnifeType"), ("receptacleType", "?r", "TableType"),
        ("inReceptacle", "?o", "?r"), ("inReceptacle", "?p", "?r"), ("isClean", "?o"), ("isHot", "?p"),
        ("openable", "?r"), ("opened", "?r"), ("holds", "?a", "?o"), ("holdsAny", "?a"), ("cleanable", "?o"),
        ("receptacleAtLocation", "?r", "?l"), ("atLocation", "?a", "?l"), ("objectAtLocation", "?o", "?l"),
        ("=", "?o", "?p"), ("canContain", "TableType", "KnifeType"), ("inReceptacleObject", "?o", "?p"),
    ]
)  # fmt: skip
CONDITIONS = st.recursive(
    FACTS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=0, max_size=3).map(lambda parts: ("and", *parts)),
        st.lists(inner, min_size=0, max_size=3).map(lambda parts: ("or", *parts)),
        inner.map(lambda part: ("not", part)),
        st.tuples(inner, inner).map(lambda pair: ("imply", *pair)),
        st.tuples(st.sampled_from(["exists", "forall"]), inner).map(lambda q: (q[0], ("?p", "-", "object"), q[1])),
    ),
    max_leaves=6,
)
ORDERS = st.permutations(list(VARIABLES))
ACTIONS = st.lists(
    st.sampled_from(
        ["go to table 1", "go to sinkbasin 1", "go to microwave 1", "take potato 2 from table 1",
         "clean potato 2 with sinkbasin 1", "heat potato 2 with microwave 1", "put potato 2 in/on sinkbasin 1",
         "open microwave 1", "take knife 1 from table 1"]
    ), max_size=6,
)  # fmt: skip


@settings(max_examples=150)
@given(CONDITIONS, st.sampled_from(["exists", "forall"]), ORDERS, ACTIONS)
def test_the_search_agrees_with_trying_every_binding(condition, quantifier, order, actions):
    world = small_house().world.copy()
    declared = tuple(token for name in order for token in (name, "-", VARIABLES[name]))
    goal = (quantifier, declared, condition)
    solved = compile_goal(goal, world)
    for action in actions:
        rules.act(world, action)
    assert solved(world) == brute_force(goal, world, {})

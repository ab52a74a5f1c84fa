"""Lumos's actions on web pages and in a shop (section 4.1, appendix G), carried out on our environments.

The paper's tools are a ranker of elements (DeBERTa) and models; here words in common decide: which element a
description means, which features fit a query, which item fits best. An action that can't be carried out is answered
with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from constrained.agents.strategies.lumos.conversation import Shot
from constrained.environments.base import Binding, TaskEnvironment
from constrained.environments.executor.actions import (
    ParseTree,
    ToolAction,
    action_space,
    read_turn,
    rule_of,
    slots,
    subtrees,
    terminal_of,
    tokens,
)
from constrained.environments.mind2web.env import Mind2WebEnv
from constrained.environments.text_search import query_terms
from constrained.environments.webshop.catalogue import Product
from constrained.environments.webshop.env import BACK_TO_SEARCH, BUY, PREVIOUS, WebshopEnv
from constrained.errors import ActionError

ITEMS = 2
"""Items that a search names, as in appendix G."""
FEATURES = 3
"""Most features that FeatureRetrieve names, as in appendix G."""


def in_common(words: str, text: str) -> int:
    """How many of the words a text has, stop words aside."""
    return len(set(query_terms(words)) & set(query_terms(text)))


def best(words: str, texts: Iterable[str]) -> str:
    """The text with most of the words; of equals the shortest, then the first. Raises ActionError: none has any."""
    result = [(in_common(words, text), -len(text), text) for text in texts]
    most = max(result, key=lambda one: one[:2], default=(0, 0, ""))
    if not most[0]:
        raise ActionError(f"nothing on this page fits {words[:80]!r}", "describe it in the words of the page")
    return most[2]


class _Grounded:
    """The common base: one action at a time, numbered results, slots."""

    space: str
    task: str

    def reset(self) -> str:
        """Begin anew."""
        self._actions: list[ToolAction] = []
        self._texts: dict[int, str] = {}
        self.had_effect = True
        return ""

    def _read(self, text: str) -> ToolAction:
        """Read one action; its result must be new. Raises ActionError."""
        actions = read_turn(self.space, text.strip())
        if len(actions) != 1:
            raise ActionError(f"{len(actions)} actions where one is to be done")
        if actions[0].results[0] in self._texts:
            raise ActionError(f"R{actions[0].results[0]} is there already", "give each result a number of its own")
        return actions[0]

    def _keep(self, action: ToolAction, text: str) -> None:
        self._actions.append(action)
        self._texts[action.results[0]] = text

    def _slots(self, buttons: Sequence[str] = ()) -> dict[str, Binding]:
        return {
            **dict.fromkeys(action_space(self.space).slots, ()),
            **slots(self.space, self._actions, buttons=buttons),
        }

    def _words(self, tree: ParseTree) -> str:
        """A text, with its results in the places of their names."""
        parts: list[str] = []
        for token in tokens(tree):
            if terminal_of(token) == "RESULT" and parts and parts[-1] == "R":
                parts[-1] = self._texts.get(int(token), f"R{token}")
            else:
                parts.append(str(token))
        return "".join(parts)


class GroundedWeb(_Grounded):
    """Do a task of Mind2Web by Lumos's Click, Type and Select; each acts on the page that the one before left.

    Each action counts as one of Mind2Web's steps, as there: also one that can't be carried out.

    Parameters
    ----------
    make : callable
        Opens the `Mind2WebEnv`.
    """

    space = "web"

    def __init__(self, make: Callable[[], TaskEnvironment]):
        environment = make()
        assert isinstance(environment, Mind2WebEnv), "other environments have no recorded pages"
        self._env = environment
        self.task = environment.task
        self.reset()

    def reset(self) -> str:
        """Go to the first page."""
        super().reset()
        return self._env.reset()

    def step(self, action: str) -> tuple[str, float, bool]:
        """Do one action; see `Mind2WebEnv.step`."""
        read, problem = None, ""
        try:
            read = self._read(action)
            done = self._on_page(read)
        except ActionError as error:
            problem, done = f"Error: {error.message}\n", ""  # scored as a step that names nothing
        page, reward, over = self._env.step(done)
        self.had_effect = not problem and self._env.had_effect
        if read is not None and self.had_effect:
            self._keep(read, page)
        return f"{problem}{page}", reward, over

    def view(self) -> Mapping[str, Binding]:
        """The number of the next result, and the page."""
        return self._slots()

    def outcome(self) -> dict[str, float]:
        """The scores of Mind2Web."""
        return self._env.outcome()

    def _on_page(self, action: ToolAction) -> str:
        """The action in Mind2Web's form. Raises ActionError: it names another page, or nothing on this one fits."""
        page, query, *entry = [str(child) for child in action.tree.children]
        now = f"R{self._actions[-1].results[0]}" if self._actions else "Env"
        if page != now:
            raise ActionError(f"{page} isn't the page that is shown", f"name {now}")
        offered = self._env.view()
        if action.kind == "click":
            return f"{best(query, offered['ELEMENT'])} -> CLICK"
        if action.kind == "type":
            return f"{best(query, offered['FIELD'])} -> TYPE: {entry[0]}"
        menus = offered["CHOICE"]
        assert isinstance(menus, Mapping), "a menu has choices"
        menu = best(query, menus)
        same = [choice for choice in menus[menu] if choice.casefold() == entry[0].strip().casefold()]
        return f"{menu} -> SELECT: {same[0] if same else best(entry[0], menus[menu])}"


class GroundedShop(_Grounded):
    """Shop for one of WebShop's goals by Lumos's Search, FeatureRetrieve, Pick and Click.

    A search names the first `ITEMS` items that it finds. FeatureRetrieve names the options and features of an opened
    item that have words of the query; Pick is the item whose name and named features have most of them.

    Parameters
    ----------
    make : callable
        Opens the `WebshopEnv`.
    """

    space = "webshop"

    def __init__(self, make: Callable[[], TaskEnvironment]):
        environment = make()
        assert isinstance(environment, WebshopEnv), "other environments are no shop"
        self._env = environment
        self.task = environment.task
        self.reset()

    def reset(self) -> str:
        """Go to the search page, with nothing found and nothing bought."""
        super().reset()
        self._found: dict[int, list[Product]] = {}
        self._opened: dict[int, Product] = {}
        self._features: dict[int, tuple[str, list[str]]] = {}  # of which item, and which
        self._picked: dict[int, str] = {}
        return self._env.reset()

    def step(self, action: str) -> tuple[str, float, bool]:
        """Do one action; one that can't be carried out is answered with the reason, and changes nothing."""
        self._last = (0.0, False)
        try:
            read = self._read(action)
            carry_out = {"search": self._search, "click": self._click, "pick": self._pick}
            text = carry_out.get(rule_of(read.tree), self._feature_retrieve)(read)
        except ActionError as error:
            self.had_effect = False
            return f"Error: {error.message}", 0.0, False
        self.had_effect = True
        self._keep(read, text)
        return text, *self._last

    def view(self) -> Mapping[str, Binding]:
        """What can be clicked, and which results can be used for what now."""
        clickable = self._env.clickable()
        pickable = [str(number) for number, item in self._picked.items() if item.lower() in clickable]
        kept: dict[str, Iterable[int]] = {"OPENED": self._opened, "FOUND": self._found, "FEATURE": self._features}
        return {**self._slots(clickable), **{slot: list(map(str, of)) for slot, of in kept.items()}, "ITEM": pickable}

    def outcome(self) -> dict[str, float]:
        """Success and the reward with its parts."""
        return self._env.outcome()

    def shots(self, count: int) -> list[Shot]:
        """Up to `count` goals of the training part, reached as in appendix G; without those that this doesn't reach."""
        result: list[Shot] = []
        for other in self._env.others():
            if len(result) >= count:
                break
            if (shot := walked(other)) is not None:
                result.append(shot)
        return result

    def _search(self, action: ToolAction) -> str:
        (words,) = subtrees(action.tree)
        if BACK_TO_SEARCH.lower() in self._env.clickable():
            self._env.step(f"click[{BACK_TO_SEARCH}]")
        page, *_ = self._env.step(f"search[{' '.join(self._words(words).replace('[', ' ').replace(']', ' ').split())}]")
        if not self._env.had_effect:
            raise ActionError("there is nothing to search for", "name what is wanted")
        items = self._env.listed()[:ITEMS]
        if items:
            self._found[action.results[0]] = items
        return " ** ".join(f"{item.number.lower()} - {item.name}" for item in items) or page

    def _click(self, action: ToolAction) -> str:
        (what,) = action.tree.children
        target = str(what) if not isinstance(what, type(action.tree)) else self._item(next(tokens(what)))
        before = self._env.product
        page, reward, over = self._env.step(f"click[{target}]")
        if not self._env.had_effect:
            raise ActionError(f"{target[:80]!r} can't be clicked here", "click what the page shows")
        if self._env.product is not None and before is None:
            self._opened[action.results[0]] = self._env.product
        self._last = reward, over
        return page

    def _item(self, number: object) -> str:
        if int(str(number)) not in self._picked:
            raise ActionError(f"R{number} is no item", "Pick picks one")
        return self._picked[int(str(number))]

    def _feature_retrieve(self, action: ToolAction) -> str:
        opened, words = int(str(action.tree.children[0])), self._words(subtrees(action.tree)[-1])
        if opened not in self._opened:
            raise ActionError(f"R{opened} is no page of an item", "click an item first")
        item = self._opened[opened]
        every = [*(value for values in item.options.values() for value in values), *item.features]
        ranked = sorted(dict.fromkeys(every), key=lambda feature: -in_common(words, feature))
        fitting = [feature for feature in ranked[:FEATURES] if in_common(words, feature)]
        self._features[action.results[0]] = item.number, fitting
        return ", ".join(fitting) or "none fits"

    def _pick(self, action: ToolAction) -> str:
        numbers = [int(str(token)) for token in tokens(action.tree) if terminal_of(token) in ("FOUND", "FEATURE")]
        (found, *features), words = numbers, self._words(subtrees(action.tree)[-1])
        items = self._found.get(found)
        if not items or not set(features) <= self._features.keys():
            raise ActionError(
                "Pick needs a search that found items, and features", "search and retrieve features first"
            )
        known = [self._features[number] for number in features]
        texts = {
            item.number: " ".join([item.name, *(f for of, kept in known if of == item.number for f in kept)])
            for item in items
        }
        self._picked[action.results[0]] = max(texts, key=lambda number: in_common(words, texts[number])).lower()
        return self._picked[action.results[0]]


def walked(shop: WebshopEnv) -> Shot | None:
    """A goal reached as in appendix G: search, look at the items, pick, buy; None if this doesn't buy what is asked."""
    env = GroundedShop(lambda: shop)
    goal, task = shop.goal, env.task
    steps: list[tuple[str, str, str]] = []

    def do(subgoal: str, *actions: str) -> str | None:
        """Do a subgoal's actions; what comes of the last, or None if one can't be done."""
        first, result = len(env._actions) + 1, ""
        turn = [f"R{first + n} = {action}" for n, action in enumerate(actions)]
        for action in turn:
            result = env.step(action)[0]
            if not env.had_effect:
                return None
        steps.append((subgoal, "; ".join(turn), result))
        return result

    listed = do("Search two relevant items and the product names according to the instruction.", f"Search({task})")
    items = list(env._found.get(1, ())) if listed else []
    back: list[str] = []
    for item in items:
        opened = len(env._actions) + len(back) + 1
        number = item.number.lower()
        look = (*back, f"Click({number})", f"FeatureRetrieve(R{opened}, Query: {task})")
        if do(f"Select the most relevant features of item {number}.", *look) is None:
            return None
        back = [f"Click({PREVIOUS.lower()})"]
    features = ", ".join(f"R{number}" for number in env._features)
    pick = f"Pick(Item_names: R1, Item_features: [{features}], Query: {task})"
    picked = do("Pick up the most related one from the items according to the product names and their features.", pick)
    if picked is None or picked != goal.product.number.lower():
        return None
    offered = [value for values in goal.product.options.values() for value in values]
    chosen = [f"Click({value})" for value in offered if any(value == option.lower() for option in goal.options)]
    choose = (*back, f"Click(R{len(env._actions)})", *chosen, f"Click({BUY.lower()})")
    if do("Buy this item by selecting its relevant features.", *choose) is None:
        return None
    return Shot(task, tuple(steps)) if env.outcome()["success"] else None

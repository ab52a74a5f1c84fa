"""WebShop as a text environment (pages in its own simple text mode, buttons as slots), and its suite."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import partial

from constrained.environments.base import Binding
from constrained.environments.suite import Suite, Task, check_split
from constrained.environments.webshop.catalogue import (
    SPLITS,
    Goal,
    Product,
    Shop,
    open_shop,
    published_positions,
    read_instructions,
)
from constrained.environments.webshop.reward import Reward, reward
from constrained.errors import GameError

MAX_STEPS = 100
"""Limit on the steps, as in the paper (Yao et al., 2022, section 5.1)."""

RESULTS = 50
"""Most products that a search returns (Yao et al., 2022, section 3.2)."""
PAGE = 10
"""Products on a page of results."""
BACK_TO_SEARCH, NEXT, PREVIOUS, BUY = "Back to Search", "Next >", "< Prev", "Buy Now"
PARTS = ("Description", "Features", "Reviews")
_BUTTONS = {button.lower() for button in (BACK_TO_SEARCH, NEXT, PREVIOUS, BUY, *PARTS)}


@dataclass
class PageState:
    """The page that is shown: the search page, results, a product, or a part of its description.

    `results` is None on the search page; otherwise the page is the deepest field that is set.
    """

    results: list[str] | None = None
    page: int = 0
    product: Product | None = None
    chosen: dict[str, str] = field(default_factory=dict)
    part: str | None = None


class WebshopEnv:
    """Shop for one goal.

    Pages have the form of WebShop's simple text mode, and buttons and links have the names in its list of available
    actions, in small letters; case doesn't matter in an action. A search is possible only on the search page (the
    paper's Table 1; the released program allows it anywhere).

    Attributes
    ----------
    task : str
        The instruction.
    had_effect : bool
        Whether the last action was possible; if not, the page stayed as it was.
    goal : Goal
    reward : Reward or None
        The reward of the purchase, once something is bought.
    """

    def __init__(self, shop: Shop, goal: Goal):
        self.task = goal.instruction
        self._shop, self.goal = shop, goal
        self.reset()

    def reset(self) -> str:
        """Go to the search page, with nothing bought."""
        self._state = PageState()
        self.reward: Reward | None = None
        self.had_effect = True
        return self._page()

    def step(self, action: str) -> tuple[str, float, bool]:
        """Do one action, ``search[words]`` or ``click[what]``.

        Returns
        -------
        observation : str
            The page that the action leads to.
        reward : float
            The reward of the purchase, 0 to 1; 0.0 until then.
        done : bool
            Whether something was bought.

        Raises
        ------
        GameError
            Something was bought before.
        """
        if self.reward is not None:
            raise GameError("the shopping is over: something was bought", hint="call reset() to shop again")
        verb, _, rest = action.strip().partition("[")
        argument = " ".join(rest[:-1].lower().split()) if rest.endswith("]") else ""
        self.had_effect = bool(argument) and (
            verb == "search" and self._search(argument) or verb == "click" and self._click(argument)
        )
        if self.reward is None:
            return self._page(), 0.0, False
        score = self.reward.score
        return f"Thank you for shopping with us! [SEP] Your score (min 0.0, max 1.0) [SEP] {score}", score, True

    def view(self) -> dict[str, Binding]:
        """What each slot of ``grammars/webshop.lark`` may be bound to now."""
        state = self._state
        slots: dict[str, Binding] = {slot: {} for slot in ("PRODUCT", "NEXT", "PREVIOUS", "OPTION", "PART")}
        if self.reward is not None or state.results is None or state.part is not None:
            return slots
        if state.product is None:
            slots["PRODUCT"] = [number.lower() for number in self._shown()] or {}
            slots["NEXT"] = [NEXT.lower()] if self._has_next() else {}
            slots["PREVIOUS"] = [PREVIOUS.lower()] if state.page else {}
        else:
            slots["OPTION"] = list(self._options()) or {}
            slots["PART"] = [part.lower() for part in PARTS]
        return slots

    def outcome(self) -> dict[str, float]:
        """Success (a reward of 1), the reward as "score", and its parts; all 0 while nothing is bought."""
        parts = asdict(self.reward or Reward())
        return {"success": float(parts["score"] == 1.0), **parts}

    def others(self) -> Iterator[WebshopEnv]:
        """The shop with each of the training part's goals for another product."""
        for goal in self._shop.training:
            if goal.product.number != self.goal.product.number:
                yield WebshopEnv(self._shop, goal)

    # -- actions -------------------------------------------------------------

    def _search(self, words: str) -> bool:
        if self._state.results is not None:
            return False
        self._state = PageState(self._shop.index.search(words, RESULTS))
        return True

    def _click(self, what: str) -> bool:
        state = self._state
        if what not in self.clickable():
            return False
        # Buttons of every page first; what else can be clicked depends on the page: a result, a part, an option.
        if what == BACK_TO_SEARCH.lower():
            self._state = PageState()
        elif what == BUY.lower():
            assert state.product is not None  # only a product's page has the button
            self.reward = reward(state.product, state.chosen, self.goal)
        elif what == NEXT.lower():
            state.page += 1
        elif what == PREVIOUS.lower():
            self._back()
        elif state.product is None:
            state.product = self._shop.products[next(n for n in self._shown() if n.lower() == what)]
        elif what in _BUTTONS:
            state.part = next(part for part in PARTS if part.lower() == what)
        else:
            state.chosen[self._options()[what]] = what
        return True

    def _back(self) -> None:
        state = self._state
        if state.part is not None:
            state.part = None
        elif state.product is not None:
            state.product, state.chosen = None, {}
        else:
            state.page -= 1

    # -- the page ------------------------------------------------------------

    @property
    def product(self) -> Product | None:
        """The product whose page, or a part of it, is shown."""
        return self._state.product

    def listed(self) -> list[Product]:
        """The products on the page of results that is shown; none on other pages."""
        if self._state.product is not None:
            return []
        return [self._shop.products[number] for number in self._shown()]

    def clickable(self) -> list[str]:
        """What can be clicked now; nothing on the search page."""
        if self.reward is not None or self._state.results is None:
            return []
        named = [name for names in self.view().values() for name in names] + [BACK_TO_SEARCH.lower()]
        if self._state.product is not None:
            named.append(PREVIOUS.lower())
            if self._state.part is None:
                named.append(BUY.lower())
        return named

    def _shown(self) -> list[str]:
        state = self._state
        return (state.results or [])[state.page * PAGE : (state.page + 1) * PAGE]

    def _has_next(self) -> bool:
        return (self._state.page + 1) * PAGE < len(self._state.results or [])

    def _options(self) -> dict[str, str]:
        """Value -> its option (of several, the last, as in the original). Buttons are no values."""
        product = self._state.product
        options = product.options if product else {}
        return {value: name for name, values in options.items() for value in values if value not in _BUTTONS}

    def _page(self) -> str:
        state = self._state
        if state.results is None:
            return " [SEP] ".join(["WebShop", "Instruction:", self.task, "Search"])
        parts = ["Instruction:", self.task, BACK_TO_SEARCH]
        if state.product is None:
            parts.append(f"Page {state.page + 1} (Total results: {len(state.results)})")
            parts += [PREVIOUS] * bool(state.page) + [NEXT] * self._has_next()
            for product in map(self._shop.products.__getitem__, self._shown()):
                parts += [product.number, product.name, product.price_shown]
            return " [SEP] ".join(parts)
        return " [SEP] ".join([*parts, PREVIOUS, *self._product_page(state.product)])

    def _product_page(self, product: Product) -> list[str]:
        if self._state.part == "Description":
            return [product.description]
        if self._state.part == "Features":
            return list(product.features)
        if self._state.part == "Reviews":
            return []  # the catalogue has no reviews
        options = [text for name, values in product.options.items() for text in (name, *values)]
        return [*options, product.name, f"Price: {product.price_shown}", "Rating: N.A.", *PARTS, BUY]


def webshop(*, split: str | None = None, limit: int | None = None, seed: int = 0) -> Suite:
    """The instructions of a split whose products are in the catalogue, in the published order; `seed`: price limits.

    Raises DataError: no such split, or no catalogue; it says which file is needed.
    """
    split = check_split("webshop", split, tuple(SPLITS))
    shop = open_shop(seed=seed)
    published = read_instructions()
    positions, members = published_positions(published), set(range(len(published))[SPLITS[split]])
    result = []
    for index, goal in enumerate(shop.goals):
        position = positions.get(goal.published)
        if position in members:
            result.append((position, index))
    tasks = []
    for position, index in sorted(result)[:limit]:
        product = shop.goals[index].product
        tasks.append(Task(f"{position} {product.number} {index}", product.category, partial(_open, index, seed)))
    measures = ("success", "score", "type", "attributes", "options", "price")
    return Suite(f"webshop/{split}", "webshop", tasks, MAX_STEPS, measures)


def _open(goal: int, seed: int) -> WebshopEnv:
    shop = open_shop(seed=seed)  # cached: a worker opens it once for all of its tasks
    return WebshopEnv(shop, shop.goals[goal])

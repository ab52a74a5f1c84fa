"""WebShop as a text environment: its pages in its own simple text mode, its buttons as slots."""

from __future__ import annotations

from dataclasses import dataclass, field

from constrained.environments.base import Binding
from constrained.environments.webshop.catalogue import Goal, Product
from constrained.environments.webshop.reward import Nouns, Reward, reward, title_words
from constrained.environments.webshop.shop import Shop
from constrained.errors import GameError

RESULTS = 50
"""Products that a search finds at most (Yao et al., 2022, section 3.2)."""
PAGE = 10
"""Products on a page of results."""
BACK_TO_SEARCH, NEXT, PREVIOUS, BUY = "Back to Search", "Next >", "< Prev", "Buy Now"
PARTS = ("Description", "Features", "Reviews")
_BUTTONS = {button.lower() for button in (BACK_TO_SEARCH, NEXT, PREVIOUS, BUY, *PARTS)}


@dataclass
class Place:
    """Where in the shop one is: the search page without results, else the deepest that is set."""

    results: list[str] | None = None
    page: int = 0
    product: Product | None = None
    chosen: dict[str, str] = field(default_factory=dict)
    part: str | None = None


class WebshopEnv:
    """Shop for one goal.

    A page is written as WebShop's simple text mode writes it, and what can be clicked is named as
    its list of available actions names it, in small letters; case doesn't matter in an action. A
    search is possible on the search page alone (the paper's Table 1; the released program takes
    it anywhere).

    Parameters
    ----------
    shop : Shop
    goal : Goal
    nouns : callable, optional
        See `reward`.

    Attributes
    ----------
    task : str
        The instruction.
    had_effect : bool
        Whether the last action was possible; if not, the page stayed as it was.
    reward : Reward or None
        What the purchase was worth, once something is bought.
    """

    def __init__(self, shop: Shop, goal: Goal, *, nouns: Nouns = title_words):
        self.task = goal.instruction
        self._shop, self._goal, self._nouns = shop, goal, nouns
        self.reset()

    def reset(self) -> str:
        """Go to the search page, with nothing bought."""
        self._place = Place()
        self.reward: Reward | None = None
        self.had_effect = True
        return self._page()

    def step(self, action: str) -> tuple[str, float, bool]:
        """Do one action, ``search[words]`` or ``click[what]``.

        Returns
        -------
        observation : str
            The page that it leads to.
        reward : float
            What the purchase is worth, 0 to 1; 0.0 before.
        done : bool
            Whether something was bought.

        Raises
        ------
        GameError
            When something was bought already.
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
        """Return what each slot of ``grammars/webshop.lark`` may be bound to now."""
        place = self._place
        slots: dict[str, Binding] = {slot: {} for slot in ("PRODUCT", "NEXT", "PREVIOUS", "OPTION", "PART")}
        if self.reward is not None or place.results is None or place.part is not None:
            return slots
        if place.product is None:
            slots["PRODUCT"] = [number.lower() for number in self._shown()] or {}
            slots["NEXT"] = [NEXT.lower()] if self._has_next() else {}
            slots["PREVIOUS"] = [PREVIOUS.lower()] if place.page else {}
        else:
            slots["OPTION"] = list(self._options()) or {}
            slots["PART"] = [part.lower() for part in PARTS]
        return slots

    def admissible(self) -> list[str]:
        """Return every click that is possible now; on the search page none is, but any search."""
        return [f"click[{button}]" for button in self._clickable()]

    def outcome(self) -> dict[str, float]:
        """Return success (a reward of 1), the reward as "score", and its parts; zeros while nothing is bought."""
        parts = (self.reward or Reward(0.0, 0.0, 0.0, 0.0, 0.0)).parts()
        return {"success": float(parts["score"] == 1.0), **parts}

    def memory(self, first_observation: str) -> None:
        """There is none: a prompt holds the pages."""
        return

    def close(self) -> None:
        """Nothing is held: the shop is shared."""

    # -- what actions do ---------------------------------------------------

    def _search(self, words: str) -> bool:
        if self._place.results is not None:
            return False
        self._place = Place(self._shop.index.search(words, RESULTS))
        return True

    def _click(self, what: str) -> bool:
        place = self._place
        if what not in self._clickable():
            return False
        if what == BACK_TO_SEARCH.lower():
            self._place = Place()
        elif what == BUY.lower():
            self.reward = reward(place.product, place.chosen, self._goal, self._nouns)
        elif what == NEXT.lower():
            place.page += 1
        elif what == PREVIOUS.lower():
            self._back()
        elif place.product is None:
            place.product = self._shop.products[next(n for n in self._shown() if n.lower() == what)]
        elif what in _BUTTONS:
            place.part = next(part for part in PARTS if part.lower() == what)
        else:
            place.chosen[self._options()[what]] = what
        return True

    def _back(self) -> None:
        place = self._place
        if place.part is not None:
            place.part = None
        elif place.product is not None:
            place.product, place.chosen = None, {}
        else:
            place.page -= 1

    # -- what is on the page -----------------------------------------------

    def _clickable(self) -> list[str]:
        if self.reward is not None or self._place.results is None:
            return []
        named = [name for names in self.view().values() for name in names] + [BACK_TO_SEARCH.lower()]
        if self._place.product is not None:
            named.append(PREVIOUS.lower())
            if self._place.part is None:
                named.append(BUY.lower())
        return named

    def _shown(self) -> list[str]:
        place = self._place
        return place.results[place.page * PAGE : (place.page + 1) * PAGE]

    def _has_next(self) -> bool:
        return (self._place.page + 1) * PAGE < len(self._place.results)

    def _options(self) -> dict[str, str]:
        """The option that each value belongs to: the last of several, as in the original; no button is an option."""
        options = self._place.product.options
        return {value: name for name, values in options.items() for value in values if value not in _BUTTONS}

    def _page(self) -> str:
        place = self._place
        if place.results is None:
            return " [SEP] ".join(["WebShop", "Instruction:", self.task, "Search"])
        parts = ["Instruction:", self.task, BACK_TO_SEARCH]
        if place.product is None:
            parts.append(f"Page {place.page + 1} (Total results: {len(place.results)})")
            parts += [PREVIOUS] * bool(place.page) + [NEXT] * self._has_next()
            for product in map(self._shop.products.__getitem__, self._shown()):
                parts += [product.number, product.name, product.price_shown]
            return " [SEP] ".join(parts)
        return " [SEP] ".join([*parts, PREVIOUS, *self._product_page(place.product)])

    def _product_page(self, product: Product) -> list[str]:
        if self._place.part == "Description":
            return [product.description]
        if self._place.part == "Features":
            return list(product.features)
        if self._place.part == "Reviews":
            return []  # the catalogue's three files hold none
        options = [text for name, values in product.options.items() for text in (name, *values)]
        return [*options, product.name, f"Price: {product.price_shown}", "Rating: N.A.", *PARTS, BUY]

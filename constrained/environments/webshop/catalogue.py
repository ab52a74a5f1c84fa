"""Products, goals and the shop, read from WebShop's own files, which its ``setup.sh`` downloads.

``items_shuffle.json``    a list of products
``items_ins_v2.json``     by product number: the attributes mined from its texts
``items_human_ins.json``  by product number: the instructions that people wrote for it
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from constrained.environments.data import (
    check_object,
    data_file,
    data_folder,
    fields,
    is_text_list,
    read_json,
    read_rows,
)
from constrained.environments.text_search import TextIndex
from constrained.errors import DataError

NO_PRICE = 100.0
"""Dollars that a product without a price costs."""
NO_LIMIT = 1_000_000.0
"""`Goal.price_upper` if there is no limit."""
PRICE_STEPS = [10.0 * tens for tens in range(1, 100)]
"""The possible price limits: multiples of ten dollars under 1,000."""
SPLITS = {"test": slice(0, 500), "eval": slice(500, 1500), "train": slice(1500, None)}
"""Slices of the published order of instructions (Yao et al., 2022, section 5.1: 500, 1,000 and 10,587)."""

PRODUCTS = ("items_shuffle.json", "items_shuffle.jsonl", "items_shuffle_1000.json")
ATTRIBUTES = ("items_ins_v2.json", "items_ins_v2_1000.json")
INSTRUCTIONS = ("items_human_ins.json",)


@dataclass(frozen=True)
class Product:
    """One product."""

    number: str  # Amazon's ASIN, in capitals
    name: str  # the title
    category: str  # the coarse category ("beauty"); `path` is the fine one ("Beauty › Hair Care › ...")
    path: str
    query: str  # the query that the product was scraped with
    description: str
    features: tuple[str, ...]
    # the values of each option, in small letters: {"color": ("red", "blue")}
    options: Mapping[str, tuple[str, ...]]
    price: float  # dollars
    price_shown: str  # as the shop shows it; may be a range
    attributes: tuple[str, ...]  # hidden from the agent; only the reward looks at them

    def text(self) -> str:
        """The text that is searched: title, description, the first feature, the options."""
        options = (f"{name}: {', '.join(values)}" for name, values in self.options.items())
        return " ".join([self.name, self.description, *self.features[:1], ", and ".join(options)])


@dataclass(frozen=True)
class Goal:
    """An instruction to buy something."""

    instruction: str  # with the price limit, as the agent reads it
    product: Product  # the product that the instruction was written for
    attributes: tuple[str, ...]  # asked for, like the next two
    options: tuple[str, ...]
    price_upper: float  # dollars; `NO_LIMIT` if the instruction names none

    @property
    def published(self) -> str:
        """The instruction as the published order spells it, without the price limit."""
        return published_spelling(self.instruction.partition(", and price lower than")[0])


@dataclass(frozen=True)
class Shop:
    """A shop: its products, a search engine over them, and the goals to reach in it."""

    products: Mapping[str, Product]  # by number
    goals: tuple[Goal, ...]
    index: TextIndex

    @classmethod
    def of(cls, products: Mapping[str, Product], goals: Iterable[Goal]) -> Shop:
        """A shop over these products and goals."""
        return cls(products, tuple(goals), TextIndex((product.number, product.text()) for product in products.values()))

    @cached_property
    def training(self) -> tuple[Goal, ...]:
        """The goals that are in no other published part than the training part."""
        try:
            positions = published_positions(read_instructions())
        except DataError:  # without the published order there are no parts
            positions = {}
        begins = SPLITS["train"].start
        return tuple(goal for goal in self.goals if positions.get(goal.published, begins) >= begins)


@lru_cache(maxsize=2)
def open_shop(folder: str | Path | None = None, seed: int = 0) -> Shop:
    """Open the shop in a folder; it is opened once in a process.

    Parameters
    ----------
    folder : path-like, optional
        Holds the files that WebShop's ``setup.sh`` downloads, compressed (``.gz``) or not; default: ``webshop`` in the
        data folder.
    seed : int, optional
        For the price limits and the order of the goals.

    Raises
    ------
    DataError
        A file is missing or damaged; it says which.
    """
    folder = data_folder() / "webshop" if folder is None else Path(folder)
    products = read_products(_find(folder, PRODUCTS), _find(folder, ATTRIBUTES))
    goals = list(read_goals(_find(folder, INSTRUCTIONS), products, seed))
    random.Random(f"goals {seed}").shuffle(goals)
    return Shop.of(products, goals)


def _find(folder: Path, names: tuple[str, ...]) -> Path:
    for name in names:
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                return path
    raise DataError(
        f"no WebShop catalogue in {folder}: {' or '.join(names)} is missing",
        hint=f"the setup.sh of princeton-nlp/WebShop downloads {PRODUCTS[0]}, {ATTRIBUTES[0]} and {INSTRUCTIONS[0]} "
        "(-d small: 1,000 products); put all three into that folder",
    )


def read_products(path: str | Path, attributes: str | Path) -> dict[str, Product]:
    """Read products by their numbers; of products with the same number the first is kept.

    Parameters
    ----------
    path : path-like
        ``items_shuffle.json``, or the same as ``.jsonl``, one product a line; compressed or not.
    attributes : path-like
        ``items_ins_v2.json``.

    Raises
    ------
    DataError
        A file is missing, cut short or of another form; the message names the row.
    """
    mined_by_number = _by_number(attributes)
    products: dict[str, Product] = {}
    for where, row in read_rows(path):
        (number,) = fields(where, row, asin=str)
        if number in products or number == "nan" or len(number) > 10:  # the original program leaves these out, too
            continue
        of_product = f"{attributes}, {number}"
        entry = {"attributes": [], **check_object(of_product, mined_by_number.get(number, {}))}
        (mined,) = fields(of_product, entry, attributes=list[str])
        products[number] = _product(where, row, tuple(mined))
    return products


def read_goals(path: str | Path, products: Mapping[str, Product], seed: int = 0) -> Iterator[Goal]:
    """Yield a goal for each instruction that people wrote for one of these products.

    Price limits are drawn as in the original program: the larger of two of the four multiples of ten dollars above the
    price. Here the draw follows from the seed and the instruction, so it is the same in every run.

    Raises DataError: the file is missing, cut short or of another form; the message names the product.
    """
    written = _by_number(path)
    for number, product in products.items():
        # In the order of the products; `open_shop` shuffles the goals by its seed.
        rows = written.get(number, [])
        if not isinstance(rows, list):
            raise DataError(f"{path}, {number}: not a list of instructions")
        for index, row in enumerate(rows, 1):
            where = f"{path}, {number}, instruction {index}"
            text, attributes = fields(
                where, check_object(where, row), instruction=str, instruction_attributes=list[str]
            )
            options = row.get("instruction_options", [])
            options = list(options.values()) if isinstance(options, dict) else options
            if not is_text_list(options):
                raise DataError(f"{where}: options must be texts")
            if attributes:  # the original program leaves out instructions without attributes
                upper, words = _price_limit(product.price, f"{seed} {number} {text}")
                yield Goal(text.strip().strip(".") + words, product, tuple(attributes), tuple(options), upper)


def _product(where: str, row: dict, attributes: tuple[str, ...]) -> Product:
    number, name, category, path, query = fields(
        where, row, asin=str, name=str, category=str, product_category=str, query=str
    )
    # Optional entries may be missing or null; anything else of the wrong form is an error.
    features = row.get("small_description") or []
    features = [features] if isinstance(features, str) else features
    description = row.get("full_description") or ""
    if not is_text_list(features) or not isinstance(description, str):
        raise DataError(f"{where}: 'small_description' and 'full_description' must be texts")
    prices = _prices(where, row.get("pricing"))
    low, high = prices[0], prices[min(1, len(prices) - 1)]
    shown = f"${low}" if len(prices) == 1 else f"${low} to ${high}"
    # A range of prices: draw a price within it, the same in every run.
    price = low if low == high else random.Random(f"price {number}").uniform(low, high)
    options = _options(where, row.get("customization_options"))
    return Product(
        number, name, category, path, query.lower().strip(), description, tuple(features), options, price, shown,
        attributes,
    )  # fmt: skip


def _prices(where: str, pricing: object) -> list[float]:
    if not pricing:
        return [NO_PRICE]
    prices = re.findall(r"\$\s*(\d[\d,]*(?:\.\d+)?)", pricing) if isinstance(pricing, str) else []
    if not prices:
        raise DataError(f"{where}: no price in dollars under 'pricing': {str(pricing)[:40]!r}")
    return [float(price.replace(",", "")) for price in prices]


def _options(where: str, options: object) -> dict[str, tuple[str, ...]]:
    options = options or {}
    if not isinstance(options, dict):
        raise DataError(f"{where}: no object under 'customization_options'")
    result = {}
    for name, values in options.items():
        values = values or []
        texts = [v.get("value") if isinstance(v, dict) else None for v in values] if isinstance(values, list) else None
        if not is_text_list(texts):
            raise DataError(f"{where}: the option {name!r} is no list of objects with a 'value'")
        written = (" ".join(text.replace("/", " | ").lower().split()) for text in texts)
        if kept := tuple(dict.fromkeys(filter(None, written))):
            result[name.lower()] = kept
    return result


def _price_limit(price: float, seed: str) -> tuple[float, str]:
    above = [limit for limit in PRICE_STEPS if limit > price][:4]
    if len(above) < 2:
        return NO_LIMIT, ""
    upper = max(random.Random(f"price limit {seed}").sample(above, 2))
    return upper, f", and price lower than {upper:.2f} dollars"


def _by_number(path: str | Path) -> dict:
    found = read_json(path)
    if not isinstance(found, dict):
        raise DataError(f"{path} is not an object with product numbers as keys")
    return found


def read_instructions() -> list[str]:
    """Read WebShop's 12,087 instructions in their published order, which determines their splits.

    They are in small letters and without the price limit, which a shop adds. Raises DataError: the file is missing, cut
    short or of another form.
    """
    goals = data_file("webshop/human_goals.json.gz")
    texts = read_json(goals)
    if not is_text_list(texts):
        raise DataError(f"{goals} is not a list of texts")
    return texts


def published_positions(instructions: Iterable[str]) -> dict[str, int]:
    """The first index of each instruction in the published order, by `published_spelling`."""
    return {published_spelling(instruction): index for index, instruction in reversed(list(enumerate(instructions)))}


def published_spelling(text: str) -> str:
    """An instruction as the published order spells it: small letters, no quotation marks, no last full stop."""
    return text.lower().replace('"', "").replace("'", "").strip().strip(".").strip()

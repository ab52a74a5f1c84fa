"""The published files are read as the original program reads them; what is wrong in one is named."""

import gzip
import json
import pickle

import pytest

from constrained.environments.webshop import catalogue
from constrained.environments.webshop.catalogue import (
    SPLITS,
    open_shop,
    published_positions,
    published_spelling,
    read_goals,
    read_instructions,
    read_products,
)
from constrained.environments.webshop.env import webshop
from constrained.errors import DataError
from tests.data import ROOT, shared
from tests.environments.webshop import small_catalogue as small


@pytest.fixture
def files(tmp_path):
    return small.write(tmp_path / "webshop")


def read(folder):
    return read_products(folder / "items_shuffle.json", folder / "items_ins_v2.json")


def test_the_published_instructions_are_read_in_their_order():
    shared("webshop/human_goals.json.gz")
    found = read_instructions()
    assert len(found) == 12_087
    assert found[0] == "i need a long clip-in hair extension which is natural looking"
    assert [len(found[part]) for part in SPLITS.values()] == [500, 1000, 10_587]
    places = published_positions(found)
    assert len(places) == len({published_spelling(text) for text in found}) > 11_000
    assert places[published_spelling(found[7].capitalize() + ".")] == 7


def test_products_have_what_the_shop_shows_and_the_reward_asks(files):
    products = read(files)
    assert len(products) == 28
    shampoo = products["B000000001"]
    assert shampoo.name.startswith("Tea Tree") and shampoo.query == "shampoo"
    assert shampoo.options == {"size": ("8 fl oz", "16 fl oz (pack of 2)"), "scent": ("mint | sage", "rose")}
    assert shampoo.attributes == ("sulfate free", "dry hair", "tea tree")
    assert (shampoo.price, shampoo.price_shown) == (12.99, "$12.99")
    rose = products["B00000000A"]
    assert rose.price_shown == "$1015.0 to $1025.5" and 1015 <= rose.price <= 1025.5
    assert rose.features == ("One feature alone",)
    assert rose.options == {"style": ("features", "one [size]")}
    assert products["B000000002"].price == catalogue.NO_PRICE


def test_goals_have_a_price_limit_drawn_from_the_seed(files):
    products = read(files)

    def goals(seed):
        return list(read_goals(files / "items_human_ins.json", products, seed))

    assert goals(0) == goals(0)
    shampoo, rose, shoes = goals(0)
    assert shampoo.instruction.startswith("I need a sulfate free shampoo")
    assert shampoo.instruction.endswith(f"and mint, and price lower than {shampoo.price_upper:.2f} dollars")
    assert shampoo.options == ("8 fl oz", "mint | sage")
    assert {goal.price_upper for seed in range(40) for goal in goals(seed)[:1]} == {30.0, 40.0, 50.0}
    assert (rose.price_upper, rose.instruction) == (catalogue.NO_LIMIT, "i want a rose shampoo")
    assert shoes.options == ("a01#black", "9")


def test_products_a_line_and_packed_are_the_same(files):
    whole = read(files)
    lines = "\n".join(map(json.dumps, small.PRODUCTS)).encode()
    (files / "items_shuffle.jsonl.gz").write_bytes(gzip.compress(lines))
    assert read_products(files / "items_shuffle.jsonl.gz", files / "items_ins_v2.json") == whole
    (files / "items_shuffle.json").unlink()
    assert open_shop(files).products == whole


@pytest.mark.parametrize(
    "change, message",
    [
        ({"asin": 7}, "items_shuffle.json, row 2: no text under 'asin'"),
        ({"name": None}, "row 2: no text under 'name'"),
        ({"pricing": 5}, "row 2: no price in dollars under 'pricing': '5'"),
        ({"pricing": "free"}, "row 2: no price in dollars"),
        ({"customization_options": ["red"]}, "row 2: no object under 'customization_options'"),
        ({"customization_options": {"color": ["red"]}}, "row 2: the option 'color' is no list of objects"),
        ({"customization_options": {"color": 5}}, "row 2: the option 'color'"),
        ({"small_description": [1]}, "row 2: 'small_description' and 'full_description' must be texts"),
        ({"full_description": ["a"]}, "row 2: 'small_description' and 'full_description'"),
    ],
)
def test_a_malformed_product_is_named(tmp_path, change, message):
    folder = small.write(tmp_path, [small.PRODUCTS[0], {**small.product("B1", "a soap"), **change}])
    with pytest.raises(DataError, match=message):
        read(folder)


@pytest.mark.parametrize(
    "written, message",
    [
        ([], "items_human_ins.json is not an object with product numbers"),
        ({"B000000001": {}}, "B000000001: not a list of instructions"),
        ({"B000000001": ["a"]}, "B000000001, instruction 1: not an object but a str"),
        ({"B000000001": [{"instruction": "a"}]}, "instruction 1: no list of texts under 'instruction_attributes'"),
        (
            {"B000000001": [{"instruction": "a", "instruction_attributes": [1]}]},
            "instruction 1: no list of texts under 'instruction_attributes'",
        ),
    ],
)
def test_a_malformed_instruction_is_named(tmp_path, written, message):
    folder = small.write(tmp_path, instructions=written)
    with pytest.raises(DataError, match=message):
        list(read_goals(folder / "items_human_ins.json", read(folder)))


def test_malformed_attributes_are_named(tmp_path):
    folder = small.write(tmp_path, attributes={"B000000001": {"attributes": "sulfate free"}})
    with pytest.raises(DataError, match="items_ins_v2.json, B000000001: no list of texts under 'attributes'"):
        read(folder)


@pytest.mark.parametrize("goals", [{}, ["a", 3]])
def test_malformed_published_goals_are_named(tmp_path, monkeypatch, goals):
    monkeypatch.setenv("CONSTRAINED_DATA", str(tmp_path))
    (tmp_path / "webshop").mkdir()
    (tmp_path / "webshop/human_goals.json.gz").write_bytes(gzip.compress(json.dumps(goals).encode()))
    with pytest.raises(DataError, match="human_goals.json.gz is not a list of texts"):
        read_instructions()


def test_without_a_catalogue_the_files_needed_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("CONSTRAINED_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"items_shuffle.json or .* is missing[\s\S]*items_human_ins.json"):
        webshop()
    with pytest.raises(DataError, match="no split 'dev'"):
        webshop(split="dev")


def test_the_suite_takes_the_published_order_and_split(tmp_path, monkeypatch):
    shared("webshop/human_goals.json.gz")
    (tmp_path / "webshop").mkdir()
    (tmp_path / "webshop/human_goals.json.gz").symlink_to(ROOT / "webshop/human_goals.json.gz")
    monkeypatch.setenv("CONSTRAINED_DATA", str(tmp_path))
    texts = [read_instructions()[place] for place in (499, 3, 500)]
    written = {"instruction_attributes": ["soft"], "instruction_options": []}
    small.write(tmp_path / "webshop", instructions={
        f"C{n:09}": [{"instruction": text.capitalize() + ".", **written}] for n, text in enumerate(texts)
    })  # fmt: skip
    open_shop.cache_clear()
    suite = webshop()
    assert [task.name.split()[:2] for task in suite.tasks] == [["3", "C000000001"], ["499", "C000000000"]]
    assert [task.name.split()[0] for task in webshop(split="eval").tasks] == ["500"]
    assert len(webshop(limit=1).tasks) == 1
    env = pickle.loads(pickle.dumps(suite.tasks[0].make))()
    assert published_spelling(env.task.partition(", and price")[0]) == texts[1]
    assert set(suite.measures) <= env.outcome().keys()
    open_shop.cache_clear()

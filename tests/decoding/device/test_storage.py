"""Tables on disk: the same afterwards, tied to their vocabulary, whole or refused."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from constrained import Grammar, Vocabulary, compile_grammar
from constrained.decoding.device import DeviceMatcher, DeviceTables, storage
from constrained.errors import DataError, VocabularyError

BYTES = [bytes((b,)) for b in range(256)]
VOCABULARY = Vocabulary([*BYTES, *(a + b for a in BYTES[97:123] for b in BYTES[97:123]), b""], [932])


@pytest.fixture
def tables() -> DeviceTables:
    grammars = [Grammar.from_regex(r"[a-z]{1,9}\."), Grammar.from_choices(["go", "go on"])]
    return DeviceTables.build([compile_grammar(g, VOCABULARY) for g in grammars])


def test_saved_and_loaded_is_the_same(tables, tmp_path):
    file = tmp_path / "deep" / "step.safetensors"
    tables.save(file)
    loaded = DeviceTables.load(file, VOCABULARY)
    assert repr(loaded) == repr(tables) and loaded.longest_list == tables.longest_list
    assert all(torch.equal(a, b) for a, b in zip(loaded.tensors().values(), tables.tensors().values()))
    torch.manual_seed(0)
    one, other = DeviceMatcher(tables, [0, 1], budget=6), DeviceMatcher(loaded, [0, 1], budget=6)
    for _ in range(8):
        logits = torch.randn(2, VOCABULARY.size)
        assert one.step(logits).tolist() == other.step(logits).tolist()
    assert [f.name for f in file.parent.iterdir()] == ["step.safetensors"], "no scratch file is left"


def test_tables_of_other_grammars_are_refused(tables, tmp_path):
    """Equal rules and bindings are the same grammar, another value of a slot is another."""
    lark = '%declare S\nstart: "go to " S\n'
    bound = [
        compile_grammar(Grammar.from_lark(lark).bind(S=values), VOCABULARY)
        for values in (["a", "b"], ["b", "a"], ["a"])
    ]
    DeviceTables.build(bound[0]).save(tmp_path / "t")
    assert DeviceTables.load(tmp_path / "t", VOCABULARY, compiled=bound[1]).states == 9
    with pytest.raises(DataError, match="built from other grammars.*\n.*build and save"):
        DeviceTables.load(tmp_path / "t", VOCABULARY, compiled=bound[2])
    with pytest.raises(DataError, match="built from other grammars"):
        DeviceTables.load(tmp_path / "t", VOCABULARY, compiled=bound[:2])


def test_what_was_left_out_is_remembered(tmp_path):
    compiled = compile_grammar(Grammar.from_regex("[a-z]{1,40}"), VOCABULARY)
    tables = DeviceTables.build(compiled, max_states=9, truncate=True)
    tables.save(tmp_path / "t")
    assert tables.truncated and DeviceTables.load(tmp_path / "t", VOCABULARY).truncated


def test_another_vocabulary_is_refused(tables, tmp_path):
    tables.save(tmp_path / "t")
    for other in (Vocabulary(VOCABULARY.tokens, [931]), Vocabulary(VOCABULARY.tokens, [932], size=1000)):
        with pytest.raises(VocabularyError, match="for another vocabulary.*\n.*build them again"):
            DeviceTables.load(tmp_path / "t", other)


def test_an_interrupted_save_leaves_the_old_file(tables, tmp_path, monkeypatch):
    file = tmp_path / "t"
    tables.save(file)
    before = file.read_bytes()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tables.save(file)
    assert file.read_bytes() == before and list(tmp_path.iterdir()) == [file]


def test_what_is_no_whole_file_of_tables_is_refused(tables, tmp_path):
    file = tmp_path / "t"
    with pytest.raises(DataError, match="no file.*\n.*DeviceTables.build"):
        DeviceTables.load(file, VOCABULARY)
    tables.save(file)
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="cut short.*\n.*build and save again"):
        DeviceTables.load(file, VOCABULARY)
    file.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    with pytest.raises(DataError, match="damaged"):
        DeviceTables.load(file, VOCABULARY)
    save_file({"x": torch.zeros(1)}, file)
    with pytest.raises(DataError, match="holds no device tables"):
        DeviceTables.load(file, VOCABULARY)


@pytest.mark.parametrize(
    "name, value",
    [
        ("after", 10**6),
        ("after", -1),
        ("next", -2),
        ("ids", 933),
        ("wide", 77),
        ("class_of", 99),
        ("start", 10**9),
        ("run_ids", 933),
        ("run_after", 10**6),
        ("run_length", 16),
        ("offsets", -5),
    ],
)
def test_numbers_that_name_nothing_are_refused(tables, tmp_path, name, value):
    """Even with a digest that fits them: no file leads a kernel out of its tables."""
    file = tmp_path / "t"
    tables.save(file)
    tensors = load_file(file)
    tensors[name].view(-1)[0] = value
    write(tables, tensors, file)
    with pytest.raises(DataError, match="damaged"):
        DeviceTables.load(file, VOCABULARY)


def test_missing_tensors_and_later_versions_are_refused(tables, tmp_path):
    file = tmp_path / "t"
    write(tables, {k: v for k, v in tables.tensors().items() if k != "fewest"}, file)
    with pytest.raises(DataError, match="damaged"):
        DeviceTables.load(file, VOCABULARY)
    write(tables, tables.tensors(), file, version="99")
    with pytest.raises(DataError, match="of version 99; this release reads 2"):
        DeviceTables.load(file, VOCABULARY)


def write(tables, tensors, file, version=str(storage.VERSION)):
    about = {"format": storage.FORMAT, "version": version, "vocabulary": tables.fingerprint, "size": str(tables.size)}
    save_file(
        tensors,
        file,
        {**about, "eos_token_ids": json.dumps([932]), "grammars": "[]", "digest": storage.digest(tensors)},
    )

"""Vocabularies from disk: the same as from the tokenizer, or made from it again; never another one, never an error."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from constrained import Grammar, Vocabulary, compile_grammar
from constrained.automaton import vocabulary_cache
from constrained.files import cache_folder
from tests.automaton.tokenizers import EOS, NAMES, make
from tests.automaton.tokenizers import tokenizer as real_tokenizer

tokenizers = pytest.importorskip("tokenizers")


def same(one: Vocabulary, other: Vocabulary) -> bool:
    return (
        one.fingerprint == other.fingerprint
        and one.sorted_tokens == other.sorted_tokens
        and np.array_equal(one.sorted_ids, other.sorted_ids)
        and one.tokens == other.tokens
    )


@pytest.fixture
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("name", NAMES)
def test_from_disk_it_is_the_same(name, tmp_path, quiet):
    tokenizer = real_tokenizer(name)
    plain = Vocabulary.from_tokenizer(tokenizer)
    assert same(Vocabulary.from_tokenizer(tokenizer, cache=tmp_path), plain)
    (file,) = tmp_path.iterdir()
    before = file.stat().st_mtime_ns
    again = Vocabulary.from_arrays(vocabulary_cache.load(vocabulary_cache.key_of(tokenizer), tmp_path))
    assert same(again, plain) and file.stat().st_mtime_ns == before
    matcher = compile_grammar(Grammar.from_regex("[a-z ]{3,9}!"), again).matcher()
    expected = compile_grammar(Grammar.from_regex("[a-z ]{3,9}!"), plain).matcher().allowed_token_ids()
    assert np.array_equal(matcher.allowed_token_ids(), expected)


def test_whatever_makes_another_vocabulary_makes_another_key(tmp_path):
    keys = [
        vocabulary_cache.key_of(make()),
        vocabulary_cache.key_of(make(), [EOS]),
        vocabulary_cache.key_of(make(), [EOS, 3]),
    ]
    keys += [vocabulary_cache.key_of(make(), [EOS], size) for size in (300, 320)]
    keys.append(vocabulary_cache.key_of(make(("hello", " worlds"))))
    changed = make()
    changed.add_tokens(["more"])
    keys.append(vocabulary_cache.key_of(changed))
    special = make()
    special.add_special_tokens(["more"])
    keys.append(vocabulary_cache.key_of(special))
    assert len(set(keys)) == len(keys)
    assert keys[1] == vocabulary_cache.key_of(make(), iter([EOS, EOS]))


def test_a_tokenizer_changed_in_memory_is_not_the_file_it_names(tmp_path, quiet):
    transformers = pytest.importorskip("transformers")
    make().save(str(tmp_path / "tokenizer.json"))

    def load():
        return transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path, eos_token="<eos>")

    cache = tmp_path / "cache"
    first = Vocabulary.from_tokenizer(load(), cache=cache)
    changed = load()
    changed.add_tokens(["more"])
    assert same(Vocabulary.from_tokenizer(changed, cache=cache), Vocabulary.from_tokenizer(changed))
    other = transformers.PreTrainedTokenizerFast(
        tokenizer_object=make(("other", " words")), eos_token="<eos>", name_or_path=str(tmp_path)
    )
    assert same(Vocabulary.from_tokenizer(other, cache=cache), Vocabulary.from_tokenizer(other))
    assert same(Vocabulary.from_tokenizer(load(), cache=cache), first)
    assert len(list(cache.iterdir())) == 3


def damaged(data: bytes):
    """Ways a file can be wrong."""
    yield "empty", b""
    yield "half", data[: len(data) // 2]
    yield "without its end", data[:-1]
    yield "longer", data + b"\0"
    yield "of another kind", b"PK\x03\x04" + data[4:]
    yield "one bit of the header", data[:200] + bytes([data[200] ^ 1]) + data[201:]
    for at in (len(data) // 2, len(data) - 70, len(data) - 1):
        yield f"one bit at {at}", data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
    yield "of another version", data.replace(b'"version":"3"', b'"version":"4"')
    yield "a huge header", b"\xff" * 8 + data[8:]


def test_a_damaged_file_is_made_anew(tmp_path):
    plain = Vocabulary.from_tokenizer(make(), eos_token_ids=[EOS], cache=tmp_path)
    (file,) = tmp_path.iterdir()
    good = file.read_bytes()
    for what, data in damaged(good):
        file.write_bytes(data)
        with pytest.warns(RuntimeWarning, match="a cached vocabulary is not used"):
            again = Vocabulary.from_tokenizer(make(), eos_token_ids=[EOS], cache=tmp_path)
        assert same(again, plain), what
        assert vocabulary_cache.load(vocabulary_cache.key_of(make(), [EOS]), tmp_path), what


def test_a_file_of_another_key_or_of_arrays_that_do_not_fit_is_not_used(tmp_path):
    vocabulary = Vocabulary.from_tokenizer(make(), eos_token_ids=[EOS])
    key = vocabulary_cache.key_of(make(), [EOS])
    assert vocabulary_cache.store(vocabulary.arrays(), key, tmp_path)
    (file,) = tmp_path.iterdir()
    arrays = vocabulary.arrays()
    other = "0" * 64
    shutil.copy(file, tmp_path / file.name.replace(key, other))
    with pytest.warns(RuntimeWarning, match="another key"):
        assert vocabulary_cache.load(other, tmp_path) is None
    for name, array in arrays.items():
        for wrong in (
            array[:-1] if array.ndim else array + 2**33,
            array.reshape(-1)[:0],
            array.reshape(1, -1),
            array.astype(np.int64),
            array - 1000 if array.dtype != np.uint8 else array[1:],
        ):
            if np.array_equal(wrong, array) and wrong.dtype == array.dtype:
                continue
            assert vocabulary_cache.store({**arrays, name: np.asarray(wrong)}, key, tmp_path)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = vocabulary_cache.load(key, tmp_path)
            assert (
                found is None
                or Vocabulary.from_arrays(found).fingerprint == vocabulary.fingerprint
                or name in ("eos_token_ids", "special_ids", "size")
            )
        missing = {n: a for n, a in arrays.items() if n != name}
        assert vocabulary_cache.store(missing, key, tmp_path)
        with pytest.warns(RuntimeWarning):
            assert vocabulary_cache.load(key, tmp_path) is None


def test_a_folder_that_can_not_be_written_is_no_error(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    for folder in (blocked, blocked / "below"):
        with pytest.warns(RuntimeWarning, match="the vocabulary is not cached"):
            assert Vocabulary.from_tokenizer(make(), eos_token_ids=[EOS], cache=folder).size == 259

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(RuntimeWarning, match="No space left"):
        Vocabulary.from_tokenizer(make(), eos_token_ids=[EOS], cache=tmp_path / "full")
    assert not list((tmp_path / "full").iterdir()), "nothing half-written is left"


def test_the_folder_is_the_users_unless_another_is_named(tmp_path, monkeypatch, quiet):
    monkeypatch.setenv("CONSTRAINED_CACHE", str(tmp_path / "chosen"))
    Vocabulary.from_tokenizer(make(), eos_token_ids=[EOS], cache=True)
    assert len(list((tmp_path / "chosen").iterdir())) == 1
    monkeypatch.delenv("CONSTRAINED_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / "constrained"
    for cache in (None, False):
        Vocabulary.from_tokenizer(make(), eos_token_ids=[EOS], cache=cache)
    assert not (tmp_path / "home").exists()


def test_several_processes_at_once(tmp_path):
    """All begin with an empty folder, write and read it over and over, and find only whole vocabularies."""
    program = """
import sys, warnings
warnings.simplefilter("error")
from constrained import Vocabulary
from tests.automaton.tokenizers import EOS, make
expected = Vocabulary.from_tokenizer(make(), eos_token_ids=[EOS]).fingerprint
from constrained.automaton import vocabulary_cache as cache
key = cache.key_of(make(), [EOS])
for i in range(60):
    found = Vocabulary.from_tokenizer(make(), eos_token_ids=[EOS], cache=sys.argv[1])
    assert found.fingerprint == expected
    if i % 3 == 0:
        assert cache.store(found.arrays(), key, sys.argv[1])
"""
    root = Path(__file__).resolve().parents[2]
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], cwd=root, stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for process in running:
        assert process.communicate()[1] == "" and process.returncode == 0
    assert len(list(tmp_path.iterdir())) == 1

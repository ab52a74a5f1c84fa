"""A GGUF file is read as llama.cpp's own package reads it; whatever is wrong with one is one clear error."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrained.errors import ModelError
from constrained.gguf_file import KINDS, MAX_ENTRIES, MAX_ITEMS, gguf_path, read_gguf
from tests.decoding.gguf_file import write_gguf
from tests.smollm2 import smollm2_file

gguf = pytest.importorskip("gguf", reason="needs the extra gguf")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf", kind="Q8_0", general__name="Tiny, \u00fc \u4e2d")


def test_metadata_and_tensors_are_those_of_the_package(tiny):
    ours, theirs = read_gguf(tiny), gguf.GGUFReader(tiny)
    fields = {name: field.contents() for name, field in theirs.fields.items() if not name.startswith("GGUF.")}
    assert ours.metadata == fields and ours.metadata["general.name"] == "Tiny, \u00fc \u4e2d"
    assert list(ours.tensors) == [tensor.name for tensor in theirs.tensors]
    for tensor in theirs.tensors:
        own = ours.tensors[tensor.name]
        assert own.shape == tuple(reversed(tensor.shape.tolist())) and own.kind == KINDS[tensor.tensor_type]
        assert (own.begin, own.bytes) == (tensor.data_offset, tensor.n_bytes)


def test_a_general_model():
    file = read_gguf(smollm2_file())
    assert file.metadata["llama.block_count"] == 30 and len(file.metadata["tokenizer.ggml.merges"]) == 48_900
    assert sum(1 for tensor in file.tensors.values() if tensor.kind.name == "Q4_1") == 210


def test_wherever_it_is_cut_off_that_is_said(tiny, tmp_path):
    data, path = tiny.read_bytes(), tmp_path / "cut.gguf"
    end = max(tensor.begin + tensor.bytes for tensor in read_gguf(tiny).tensors.values())
    for size in [*range(0, 24, 5), *range(24, end, end // 60), end - 1]:
        path.write_bytes(data[:size])
        with pytest.raises(ModelError, match="cut.gguf is cut off" if size >= 24 else "is no GGUF file") as caught:
            read_gguf(path)
        assert caught.value.hint == "download it again"


@given(st.data())
def test_any_other_bytes_are_read_or_refused(tiny, tmp_path_factory, data):
    whole = bytearray(tiny.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(4, 12_000))
        piece = data.draw(st.sampled_from([b"\xff" * 8, b"\0" * 8, b"\x7f"]) | st.binary(min_size=1, max_size=8))
        whole[at : at + len(piece)] = piece
    path = tmp_path_factory.getbasetemp() / "other.gguf"
    path.write_bytes(whole)
    try:
        read_gguf(path)
    except ModelError as error:
        assert "other.gguf" in error.message and error.hint


def head(tensors: int, keys: int, rest: bytes = b"", version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, keys) + rest


def text(words: str) -> bytes:
    return struct.pack("<Q", len(words.encode())) + words.encode()


def tensor(name: str, shape: tuple[int, ...] = (32,), kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


@pytest.mark.parametrize(
    "data, message",
    [
        (b"version https://git-lfs.github.com/spec/v1\n", "no GGUF file: it begins with b'vers'"),
        (head(0, 0, version=1), "version 1; 2 and 3 are read"),
        (head(0, 0, version=3 << 24), "version 50331648"),
        (head(0, 2**60), f"keys, more than {MAX_ENTRIES:,}"),
        (head(2**60, 0), f"tensors, more than {MAX_ENTRIES:,}"),
        (head(0, 1, text("a") + struct.pack("<I", 77)), "no values are of type 77"),
        (head(0, 1, text("a") + struct.pack("<IIQ", 9, 9, 1)), "no arrays are of type 9"),
        (head(0, 1, text("a") + struct.pack("<IIQ", 9, 8, 2**40)), f"items of an array, more than {MAX_ITEMS:,}"),
        (head(0, 1, text("a") + struct.pack("<IIQ", 9, 4, MAX_ITEMS)), "cut off: a value ends at byte 16,777,"),
        (head(0, 1, struct.pack("<Q", 2**63)), "cut off: a text ends at byte 9,223,372,036,854,775,840"),
        (head(0, 1, struct.pack("<Q", 1) + b"\xff"), "the text at byte 32 is not UTF-8"),
        (head(0, 2, (text("a") + b"\0\0\0\0\1") * 2), "the key 'a' comes twice"),
        (head(0, 1, text("general.alignment") + struct.pack("<II", 4, 0)), "general.alignment is 0"),
        (head(2, 0, tensor("t") * 2 + bytes(256)), "two tensors have the same name"),
        (head(1, 0, tensor("t", (1,) * 5)), "'t' has 5 dimensions"),
        (head(1, 0, tensor("t", (33,), 8)), r"'t' of shape \[33\] can't be stored as Q8_0"),
        (head(1, 0, tensor("t", (32,), 0, 1) + bytes(256)), "'t' begins between two multiples of 32 bytes"),
        (head(1, 0, tensor("t", (2**40, 2**40)) + bytes(256)), "cut off: t ends at byte"),
    ],
)
def test_what_is_wrong_is_said(data, message, tmp_path):
    path = tmp_path / "bad.gguf"
    path.write_bytes(data)
    with pytest.raises(ModelError, match=message):
        read_gguf(path)


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(ModelError, match="no such file"):
        gguf_path(f"{tmp_path}")

"""Files are written whole or not at all, and never over what is read."""

import os

import pytest

from constrained.errors import DataError
from constrained.files import check_new, check_separate, write_whole


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    file = tmp_path / "file.json"
    file.write_text("old")
    file.chmod(0o640)

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="No space"):
        patched.setattr(os, "replace", full)
        write_whole(file, "new")
    assert file.read_text() == "old" and list(tmp_path.iterdir()) == [file]
    write_whole(file, "new")
    assert file.read_text() == "new" and file.stat().st_mode & 0o777 == 0o640


def test_half_a_character_is_not_written(tmp_path):
    with pytest.raises(UnicodeEncodeError):
        write_whole(tmp_path / "file.json", "\ud800")
    assert list(tmp_path.iterdir()) == []


def test_folders_are_made_and_are_no_files(tmp_path):
    write_whole(tmp_path / "new" / "file", b"\xff")
    assert (tmp_path / "new" / "file").read_bytes() == b"\xff"
    with pytest.raises(DataError, match="is a folder"):
        write_whole(tmp_path / "new", "text")


def test_an_existing_file_is_kept_unless_forced(tmp_path):
    check_new(None), check_new(tmp_path / "none"), check_new(tmp_path, force=True)
    with pytest.raises(DataError, match="already exists"):
        check_new(tmp_path)


def test_an_output_is_no_input_under_another_name(tmp_path, monkeypatch):
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("")
    link.symlink_to(file)
    monkeypatch.chdir(tmp_path)
    check_separate(None, file), check_separate("other", file, None), check_separate("none", "none")
    for name in ("file", "./file", link):
        with pytest.raises(DataError, match="can't be the output"):
            check_separate(name, None, file)

"""A file is opened, saved whole, and never written over unseen."""

import pytest

from constrained.errors import ConstrainedError
from constrained.playground import bounds
from constrained.playground.document import OpenFile


def test_saving_writes_the_file(with_file):
    page, file = with_file('start: "a"\n')
    opened = page.ask("/api/open", document="file")
    assert opened["text"] == 'start: "a"\n'
    saved = page.ask("/api/save", text='start: "b"\n', version=opened["version"])
    assert saved["saved"] and file.read_text() == 'start: "b"\n'
    assert page.ask("/api/save", text='start: "c"\n', version=saved["version"])["saved"]


def test_a_file_that_changed_meanwhile_is_not_written_over(with_file):
    page, file = with_file('start: "a"\n')
    version = page.ask("/api/open", document="file")["version"]
    file.write_text('start: "theirs"\n')
    saved = page.ask("/api/save", text='start: "mine"\n', version=version)
    assert not saved["saved"] and file.read_text() == 'start: "theirs"\n'
    assert page.check('start: "mine"\n', "file")["version"] == saved["version"] != version
    assert page.ask("/api/save", text='start: "mine"\n', version=saved["version"])["saved"]


def test_a_new_file_is_made_by_saving(with_file):
    page, file = with_file(None)
    assert page.ask("/api/open", document="file") == {"text": None, "version": None}
    assert not file.exists()
    assert page.ask("/api/save", text="start:\n", version=None)["saved"] and file.read_text() == "start:\n"


def test_line_ends_stay_as_they_are(with_file):
    page, file = with_file('\ufeffstart: "a"\r\n')
    opened = page.ask("/api/open", document="file")
    assert opened["text"] == 'start: "a"\n'
    page.ask("/api/save", text='start: "b"\n', version=opened["version"])
    assert file.read_bytes() == b'start: "b"\r\n'


def test_permissions_and_links_stay(with_file, tmp_path):
    _, file = with_file("start:\n", "real.lark")
    file.chmod(0o640)
    link = tmp_path / "link.lark"
    link.symlink_to(file)
    document = OpenFile.open(str(link))
    assert document.save("start: \n", document.read()["version"])["saved"]
    assert link.is_symlink() and file.read_text() == "start: \n" and file.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda path: path.mkdir(), "is not a file"),
        (lambda path: path.write_bytes(b"\xff"), "not UTF-8"),
        (lambda path: path.write_text("x" * (4 * bounds.TEXT + 1)), "too large"),
    ],
)
def test_what_is_no_text_is_not_opened(tmp_path, make, words):
    make(tmp_path / "odd.lark")
    with pytest.raises(ConstrainedError, match=words):
        OpenFile.open(str(tmp_path / "odd.lark"))


def test_a_file_in_no_folder_is_not_opened(tmp_path):
    with pytest.raises(ConstrainedError, match="no folder"):
        OpenFile.open(str(tmp_path / "none" / "mine.lark"))


def test_without_a_file_nothing_is_saved(asking):
    assert asking.post("/api/save", text="start:", version=None).status_code == 400

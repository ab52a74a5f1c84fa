"""Files are written whole or not at all, and never over what is read."""

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

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


def test_a_link_stays_and_what_it_leads_to_is_written(tmp_path):
    file, link, further = tmp_path / "file", tmp_path / "link", tmp_path / "further"
    file.write_text("old")
    file.chmod(0o604)
    link.symlink_to("file")
    further.symlink_to(link)
    write_whole(further, "new")
    assert link.is_symlink() and further.is_symlink() and file.read_text() == "new"
    assert file.stat().st_mode & 0o777 == 0o604


def test_a_link_to_nothing_has_its_file_made_with_its_folder(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("folder/file")
    write_whole(link, "new")
    assert link.is_symlink() and (tmp_path / "folder" / "file").read_text() == "new"


def test_links_in_a_circle_are_refused_and_stay(tmp_path):
    for name, other in ("ab", "ba"):
        (tmp_path / name).symlink_to(other)
    with pytest.raises(DataError, match="lead in a circle"):
        write_whole(tmp_path / "a", "new")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_symlink()) == ["a", "b"]


def test_a_link_to_a_folder_is_a_folder(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(DataError, match="is a folder"):
        write_whole(tmp_path / "link", "new")


@pytest.mark.parametrize("through", ["fifo", "link"])
def test_a_fifo_is_written_into(tmp_path, through):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    (tmp_path / "link").symlink_to(fifo)
    with ThreadPoolExecutor(1) as readers:
        read = readers.submit(fifo.read_bytes)
        write_whole(tmp_path / through, "new" * 100_000)  # more than a pipe holds
        assert read.result(60) == b"new" * 100_000
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_devices_are_written_into():
    write_whole(os.devnull, "new")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_a_device_that_takes_nothing_is_named():
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        write_whole("/dev/full", "new")


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="the system has no /dev/fd")
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
@pytest.mark.parametrize("into", ["pipe", "file"])
def test_standard_output_goes_on_where_it_is(tmp_path, name, into):
    (tmp_path / "link").symlink_to("/dev/stdout")
    code = "import sys; from constrained.files import write_whole as w; print('a'); w(sys.argv[1], 'b\\n'); print('c')"
    with open(tmp_path / "out", "wb") as out:
        out.write(b"before\n")
        out.flush()
        done = subprocess.run(
            [sys.executable, "-c", code, name], cwd=tmp_path, stdout=out if into == "file" else subprocess.PIPE
        )
    assert done.returncode == 0
    written = (tmp_path / "out").read_bytes() + (done.stdout or b"")
    assert written == b"before\na\nb\nc\n" and (tmp_path / "link").is_symlink()


def test_a_file_is_written_whatever_the_length_of_its_name(tmp_path):
    write_whole(tmp_path / ("é" * 127), "new")
    assert (tmp_path / ("é" * 127)).read_text() == "new"


def test_devices_and_fifos_need_no_force(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    check_new(tmp_path / "fifo"), check_new(os.devnull)

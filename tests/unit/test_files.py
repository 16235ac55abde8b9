"""Files are written whole or not at all."""

import os
import stat

import pytest

from undertow._files import fill, write_whole


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def usual():
    """Let new files be readable by everybody."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.parametrize(("private", "rights"), [(True, 0o600), (False, 0o644)])
def test_a_file_takes_the_place_of_another(tmp_path, usual, private, rights):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_whole(path, b"new", private=private)
    assert (path.read_bytes(), mode(path)) == (b"new", rights)
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("name", ["write", "fsync", "replace"])
@pytest.mark.parametrize("fault", [OSError(28, "No space left"), KeyboardInterrupt()])
def test_a_fault_leaves_the_old_file_and_no_part(tmp_path, monkeypatch, name, fault):
    def fail(*_):
        raise fault

    path = tmp_path / "file"
    path.write_bytes(b"old")
    with monkeypatch.context() as patch:
        patch.setattr(os, name, fail)
        with pytest.raises(type(fault)):
            write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_part_that_was_made_before_is_used_and_stays_open(tmp_path):
    part = tmp_path / "part"
    handle = os.open(part, os.O_WRONLY | os.O_CREAT, 0o640)
    write_whole(tmp_path / "file", b"new", part=(part, handle))
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"new"
    os.close(handle)  # which fails on a closed handle


def test_a_file_is_filled_though_a_write_takes_a_part_of_it(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, rest: write(handle, rest[:3]))
    handle = os.open(tmp_path / "file", os.O_WRONLY | os.O_CREAT)
    fill(handle, b"0123456789")
    os.close(handle)
    assert (tmp_path / "file").read_bytes() == b"0123456789"

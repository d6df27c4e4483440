"""What is there is written over in memory: it is in the file at once, and a full disk is an error, not a signal."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from log.errors import StorageError
from log.storage import FileStorage
from log.storage.real_file import ROOM_BYTES
from tests.architecture.house import ROOT

SIZE_BYTES = 3 * ROOM_BYTES


def test_what_is_written_over_is_in_the_file_at_once(tmp_path: Path) -> None:
    file = FileStorage(tmp_path).open("index", create=True)
    file.truncate(SIZE_BYTES)
    expected = bytearray(SIZE_BYTES)
    for position in (0, 8, ROOM_BYTES - 4, ROOM_BYTES + 100, SIZE_BYTES - 8):
        entry = position.to_bytes(8)
        file.write_at(position, entry)
        expected[position : position + 8] = entry
        assert file.read_at(position, 8) == bytes(file.view()[position : position + 8]) == entry
    assert (tmp_path / "index").read_bytes() == expected


def test_it_goes_through_memory_and_asks_for_room_once_a_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "posix_fallocate", lambda descriptor, start, size: asked.append((start, size)))
    monkeypatch.setattr(os, "pwrite", lambda *_: pytest.fail("written by a call"))
    file = FileStorage(tmp_path).open("index", create=True)
    file.truncate(SIZE_BYTES - 4)
    for position in range(0, SIZE_BYTES - 8, 8):
        file.write_at(position, b"12345678")
    assert asked == [(0, ROOM_BYTES), (ROOM_BYTES, ROOM_BYTES), (2 * ROOM_BYTES, ROOM_BYTES - 4)]


def test_a_full_disk_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    file = FileStorage(tmp_path).open("index", create=True)
    file.truncate(SIZE_BYTES)
    with pytest.raises(StorageError) as refusal:
        file.write_at(0, b"12345678")
    assert "No space left on device" in str(refusal.value)
    assert file.read_at(0, 8) == bytes(8)


def test_where_room_cannot_be_asked_for_it_is_written_by_a_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    file = FileStorage(tmp_path).open("index", create=True)
    file.truncate(SIZE_BYTES)
    file.write_at(16, b"12345678")
    assert (tmp_path / "index").read_bytes()[16:24] == b"12345678"


def test_a_file_that_grew_is_mapped_anew_and_one_that_was_cut_is_not_stored_to_beyond_its_end(tmp_path: Path) -> None:
    file = FileStorage(tmp_path).open("index", create=True)
    file.truncate(100)
    file.write_at(0, b"first")
    file.truncate(SIZE_BYTES)
    file.write_at(SIZE_BYTES - 5, b"later")
    file.truncate(10)
    file.write_at(5, b"again")
    file.write_at(8, b"longer")
    assert (tmp_path / "index").read_bytes() == b"firstagalonger"


@pytest.mark.deep
def test_a_process_that_is_killed_leaves_what_it_has_stored(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, signal, sys; from log.storage import FileStorage;"
        "file = FileStorage(pathlib.Path(sys.argv[1])).open('index', create=True); file.truncate(4096);"
        "file.write_at(8, b'an entry'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, check=False)
    assert killed.returncode == -9
    assert (tmp_path / "index").read_bytes()[8:16] == b"an entry"

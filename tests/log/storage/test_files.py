"""What only real files can do wrong, and entries that are written over in memory."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from broker.errors import UsageError
from log.errors import MissingFileError, StorageError
from log.storage import FileStorage, SyncPolicy
from log.storage.real_file import ROOM_BYTES
from tests.architecture.house import ROOT


def test_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"secret")
    (tmp_path / "root" / "t-0").symlink_to(tmp_path / "outside")
    (tmp_path / "root" / "a").symlink_to(tmp_path / "outside" / "secret")
    storage = FileStorage(tmp_path / "root")
    with pytest.raises(UsageError, match="leads through a symbolic link"):
        storage.read("t-0/secret")
    with pytest.raises(UsageError, match="leads through a symbolic link"):
        storage.remove("t-0/secret")
    with pytest.raises(StorageError):
        storage.open("a", create=True)
    assert not storage.exists("a")
    assert not storage.is_directory("t-0")
    storage.replace("a", b"own")
    assert (tmp_path / "outside" / "secret").read_bytes() == b"secret"
    assert (tmp_path / "root" / "a").read_bytes() == b"own"


def test_removing_a_directory_leaves_what_its_links_name(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").write_bytes(b"")
    storage = FileStorage(tmp_path / "root")
    storage.make_directory("t-0")
    (tmp_path / "root" / "t-0" / "link").symlink_to(tmp_path / "outside")
    storage.remove_directory("t-0")
    assert (tmp_path / "outside" / "kept").exists()


def test_the_root_itself_may_be_reached_by_a_link_and_cannot_be_removed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    storage = FileStorage(tmp_path / "link")
    storage.replace("a", b"x")
    assert (tmp_path / "real" / "a").read_bytes() == b"x"
    with pytest.raises(UsageError, match="the root of a storage cannot be removed"):
        storage.remove_directory("")


def test_a_named_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for read_only in (False, True):
        with pytest.raises(StorageError, match="is not a regular file"):
            FileStorage(tmp_path, read_only=read_only).open("pipe")


def test_a_storage_that_only_reads_changes_nothing(tmp_path: Path) -> None:
    FileStorage(tmp_path).replace("a", b"abc")
    before = (tmp_path / "a").stat()
    storage = FileStorage(tmp_path, read_only=True)
    file = storage.open("a")
    for change in (
        lambda: file.append(b"x"),
        lambda: file.write_at(0, b"x"),
        lambda: file.truncate(1),
        lambda: storage.replace("a", b""),
        lambda: storage.remove("a"),
        lambda: storage.rename("a", "b"),
        lambda: storage.make_directory("d"),
        lambda: storage.remove_directory("d"),
        lambda: storage.set_modified_ms("a", 1),
    ):
        with pytest.raises((UsageError, MissingFileError)):
            change()
    assert bytes(file.view()) == b"abc"
    assert ((tmp_path / "a").stat(), os.listdir(tmp_path)) == (before, ["a"])
    with pytest.raises(MissingFileError):
        FileStorage(tmp_path / "missing", read_only=True)


def test_a_file_without_a_view_is_cut_in_place_and_one_with_a_view_goes_on_in_a_copy(tmp_path: Path) -> None:
    file = FileStorage(tmp_path).open("a", create=True)
    file.append(b"x" * 10_000)
    inode = (tmp_path / "a").stat().st_ino
    bytes(file.view())
    file.truncate(9_000)
    assert (tmp_path / "a").stat().st_ino == inode
    view = file.view()
    file.truncate(10)
    assert (tmp_path / "a").stat().st_ino != inode
    assert (bytes(view), os.listdir(tmp_path)) == (b"x" * 9_000, ["a"])


@pytest.mark.parametrize(
    ("policy", "file_syncs", "name_syncs"),
    [(SyncPolicy.ALWAYS, 2, 2), (SyncPolicy.WHEN_ASKED, 1, 1), (SyncPolicy.AT_END, 0, 0), (SyncPolicy.NEVER, 0, 0)],
)
def test_the_policy_says_when_files_and_names_are_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: SyncPolicy, file_syncs: int, name_syncs: int
) -> None:
    synced: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.path.isdir(f"/proc/self/fd/{descriptor}")))
    FileStorage(tmp_path, sync_policy=policy).replace("a", b"x")
    assert (synced.count(False), synced.count(True)) == (file_syncs, name_syncs)


def test_what_waits_for_the_end_is_synced_before_it_takes_a_name_and_not_written_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    replace = os.replace
    monkeypatch.setattr(os, "fsync", lambda descriptor: steps.append("sync"))
    monkeypatch.setattr(os, "sync", lambda: steps.append("sync all"))

    def replaced(path: str, new_path: str) -> None:
        steps.append(f"{Path(path).name} to {Path(new_path).name}")
        replace(path, new_path)

    monkeypatch.setattr(os, "replace", replaced)
    storage = FileStorage(tmp_path, sync_policy=SyncPolicy.AT_END)
    storage.replace("a", b"x")
    storage.replace("a", b"x")
    assert steps == []
    storage.replace("a", b"y")
    storage.open("a").sync()
    storage.sync_directory("")
    storage.rename("a", "b")
    storage.sync_all()
    assert steps == ["sync", "a.tmp to a", "sync", "a to b", "sync all"]


def test_what_the_system_says_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> int:
        raise OSError(28, "No space left on device")

    file = FileStorage(tmp_path).open("a", create=True)
    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(StorageError) as refusal:
        file.append(b"x")
    assert str(refusal.value) == "cannot write a: No space left on device"
    assert file.size_bytes == 0


def test_a_write_that_the_system_takes_in_pieces_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, data, position: write(file, bytes(data[:3]), position))
    file = FileStorage(tmp_path).open("a", create=True)
    file.append(b"0123456789")
    assert file.read_at(0, 20) == b"0123456789"


def test_descriptors_are_given_back(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(50):
        file = storage.open("a", create=True)
        file.append(b"x")
        view = file.view()
        file.truncate(0)
        file.close()
        storage.read("a")
        del view, file
    storage.open("a")  # Not closed: it goes with the object.
    assert len(os.listdir("/proc/self/fd")) <= before + 1


SIZE_BYTES = 3 * ROOM_BYTES


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

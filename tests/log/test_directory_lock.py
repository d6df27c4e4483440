"""One process at a time in a log directory: a second process is held against us, and we against it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from broker.cli import EXIT_REFUSED
from broker.clock import ManualClock
from broker.entropy import SplitMix64
from broker.errors import UsageError
from broker.units import TimeMs
from log.errors import LockedError
from log.log_dir import LOCK_FILE, DirectoryLock, LogDir
from log.storage import FileStorage, MemoryStorage, Storage
from log.storage.metadata_files import CLEAN_SHUTDOWN_FILE
from tests.log.cli.test_commands import COMPACTED, answer, contents
from tests.log.samples import DIRECTORY, write_sample

ROOT: Final = Path(__file__).parents[2]
NOW_MS: Final = TimeMs(1_700_000_000_000)
HOLDER: Final = """
import sys
from pathlib import Path
from log.log_dir import DirectoryLock
from log.errors import LockedError
from log.storage import FileStorage
try:
    lock = DirectoryLock(FileStorage(Path(sys.argv[1])))
except LockedError as refusal:
    sys.exit(str(refusal))
print("held", flush=True)
sys.stdin.read()
lock.release()
"""


def other_process(directory: Path) -> subprocess.Popen[str]:
    """Another process that takes the lock of a directory and keeps it until its input ends."""
    pipe, command = subprocess.PIPE, [sys.executable, "-c", HOLDER, str(directory)]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=ROOT)


@contextmanager
def held_elsewhere(directory: Path) -> Iterator[subprocess.Popen[str]]:
    with other_process(directory) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def opened(storage: Storage) -> LogDir:
    return LogDir.open(storage, now_ms=NOW_MS, entropy=SplitMix64(1))


@pytest.mark.deep
def test_a_directory_that_another_process_uses_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / CLEAN_SHUTDOWN_FILE).write_text('{"version":0,"brokerEpoch":1}')
    with held_elsewhere(tmp_path):
        with pytest.raises(LockedError) as refusal:
            opened(FileStorage(tmp_path))
        reason = "another process, a broker maybe, uses this directory"
        assert str(refusal.value) == f"cannot lock {tmp_path / LOCK_FILE}: {reason}"
        assert (tmp_path / CLEAN_SHUTDOWN_FILE).exists()


@pytest.mark.deep
def test_the_lock_of_a_process_that_was_killed_is_free(tmp_path: Path) -> None:
    with held_elsewhere(tmp_path) as process:
        process.kill()
        process.wait()
        assert (tmp_path / LOCK_FILE).exists()
        opened(FileStorage(tmp_path)).shut_down(now_ms=NOW_MS)


@pytest.mark.deep
def test_another_process_is_refused_while_a_directory_is_open_and_let_in_after_its_shutdown(tmp_path: Path) -> None:
    log_dir = opened(FileStorage(tmp_path))
    _, error = other_process(tmp_path).communicate("")
    assert error.startswith(f"cannot lock {tmp_path / LOCK_FILE}: another process")
    log_dir.shut_down(now_ms=NOW_MS)
    assert not (tmp_path / LOCK_FILE).exists()
    assert other_process(tmp_path).communicate("") == ("held\n", "")


def test_a_directory_that_cannot_be_loaded_is_given_back(tmp_path: Path) -> None:
    (tmp_path / "not-a-partition").mkdir()
    with pytest.raises(UsageError):
        opened(FileStorage(tmp_path))
    assert other_process(tmp_path).communicate("") == ("held\n", "")


def test_a_second_user_in_the_same_process_is_refused_and_does_not_cost_the_first_its_lock(tmp_path: Path) -> None:
    first = DirectoryLock(FileStorage(tmp_path))
    with pytest.raises(LockedError) as refusal:
        DirectoryLock(FileStorage(tmp_path))
    assert str(refusal.value) == f"cannot lock {tmp_path / LOCK_FILE}: this process uses this directory already"
    _, error = other_process(tmp_path).communicate("")
    assert error.startswith(f"cannot lock {tmp_path / LOCK_FILE}: another process")
    first.release()
    DirectoryLock(FileStorage(tmp_path)).abandon()
    DirectoryLock(FileStorage(tmp_path))  # Nobody keeps it: it is garbage at once.
    DirectoryLock(FileStorage(tmp_path)).release()


def test_who_only_reads_takes_no_lock(tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).touch()
    with pytest.raises(UsageError, match="opened to be read only"):
        DirectoryLock(FileStorage(tmp_path, read_only=True))


def test_memory_is_locked_by_nobody_else_and_shows_the_file() -> None:
    storage = MemoryStorage(ManualClock(NOW_MS))
    lock = DirectoryLock(storage)
    assert storage.list() == (LOCK_FILE,)
    lock.release()
    assert storage.list() == ()


@pytest.mark.deep
@pytest.mark.parametrize("command", ["compact", "recover"])
def test_files_are_not_changed_in_place_while_a_broker_runs(tmp_path: Path, command: str) -> None:
    write_sample("none", tmp_path)
    how = COMPACTED if command == "compact" else ()
    with held_elsewhere(tmp_path):
        before = contents(tmp_path)
        found = answer(command, tmp_path / DIRECTORY, "--in-place", "--yes", *how)
        assert (found.status, found.out) == (EXIT_REFUSED, "")
        reason = "another process, a broker maybe, uses this directory"
        assert found.err == f"brokerside log: cannot lock {tmp_path / LOCK_FILE}: {reason}\n"
        assert contents(tmp_path) == before
        assert answer(command, tmp_path / DIRECTORY, "--out", tmp_path / "out", *how).status == 0
    assert answer(command, tmp_path / DIRECTORY, "--in-place", "--yes", *how).status == 0
    assert not (tmp_path / LOCK_FILE).exists()


@pytest.mark.parametrize("command", ["compact", "recover"])
def test_the_help_says_that_the_broker_must_be_stopped(command: str) -> None:
    assert "The broker must be stopped." in answer(command, "--help").out

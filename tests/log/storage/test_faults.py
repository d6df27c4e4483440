"""Each fault strikes once, at its operation, and leaves what it is named after."""

from __future__ import annotations

import pytest

from broker.clock import ManualClock
from log.errors import StorageError
from log.storage import Fault, FaultKind, FaultyStorage
from tests.support.disk_image import DiskImage, storage_of


def faulty(kind: FaultKind, pattern: str = "*.log", passed_count: int = 0) -> FaultyStorage:
    memory = storage_of(ManualClock(), DiskImage({"t-0/a.log": b"12", "t-0/a.index": b"12"}))
    return FaultyStorage(memory, Fault(pattern, kind, passed_count))


@pytest.mark.parametrize(
    ("kind", "left"),
    [
        (FaultKind.TORN_WRITE, b"12ab"),
        (FaultKind.NO_SPACE, b"12"),
        (FaultKind.BIT_FLIP, b"12abbd"),
        (FaultKind.ZERO_FILL, b"12ab\0\0"),
    ],
)
def test_a_write_fault_leaves_what_it_is_named_after(kind: FaultKind, left: bytes) -> None:
    storage = faulty(kind)
    file = storage.open("t-0/a.log")
    if kind in (FaultKind.TORN_WRITE, FaultKind.NO_SPACE):
        with pytest.raises(StorageError) as refusal:
            file.append(b"abcd")
        assert str(refusal.value) == f"cannot write t-0/a.log: {kind.value}"
        assert not refusal.value.definite
    else:
        file.append(b"abcd")
    assert storage.has_struck
    assert bytes(file.view()) == left
    file.append(b"!")
    assert bytes(file.view()) == left + b"!"


@pytest.mark.parametrize("use", ["read", "read_at", "view"])
def test_a_read_fails_once(use: str) -> None:
    storage = faulty(FaultKind.READ_ERROR)
    file = storage.open("t-0/a.log")
    reads = {
        "read": lambda: storage.read("t-0/a.log"),
        "read_at": lambda: file.read_at(0, 2),
        "view": lambda: bytes(file.view()),
    }
    with pytest.raises(StorageError, match=r"cannot read t-0/a.log: read error"):
        reads[use]()
    assert reads[use]() == b"12"


def test_files_that_do_not_match_and_operations_before_are_let_pass() -> None:
    storage = faulty(FaultKind.NO_SPACE, passed_count=2)
    index, log = storage.open("t-0/a.index"), storage.open("t-0/a.log")
    for _ in range(5):
        index.append(b"x")
    log.append(b"1")
    log.append(b"2")
    assert not storage.has_struck
    with pytest.raises(StorageError):
        log.append(b"3")

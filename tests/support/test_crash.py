"""What power loss may leave: the states of small programs written out by hand, and rules that hold for all of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.clock import ManualClock
from broker.entropy import SplitMix64
from log.errors import StorageError
from log.storage import Fault, FaultKind, FaultyStorage
from tests.support.crash import crash_states, power_loss
from tests.support.disk_image import DiskImage, image_of, storage_of
from tests.support.recorded import RecordedStorage, Recording

BLOCK = 4


def recorded(files: dict[str, bytes] | None = None) -> RecordedStorage:
    return RecordedStorage(storage_of(ManualClock(), DiskImage(files or {})))


def states(recording: Recording, end: int | None = None) -> list[dict[str, bytes]]:
    images = list(crash_states(recording, SplitMix64(1), end=end, block_size_bytes=BLOCK))
    return sorted((dict(image.files) for image in images), key=repr)


def contents(storage: RecordedStorage, path: str = "a") -> set[bytes]:
    return {state[path] for state in states(storage.recording())}


def test_an_append_may_be_lost_or_whole_or_zeros() -> None:
    storage = recorded({"a": b"x"})
    storage.open("a").append(b"yz")
    assert contents(storage) == {b"x", b"x\0\0", b"xyz"}


def test_a_file_may_be_missing_until_its_directory_is_synced() -> None:
    storage = recorded()
    file = storage.open("a", create=True)
    file.append(b"x")
    file.sync()
    assert states(storage.recording()) == [{"a": b"x"}, {}]
    storage.sync_directory("")
    assert states(storage.recording()) == [{"a": b"x"}]


def test_a_rename_may_come_before_the_content_of_the_file() -> None:
    storage = recorded({"a": b"old"})
    storage.open("a.tmp", create=True).append(b"new")
    storage.rename("a.tmp", "a")
    found = states(storage.recording())
    assert {"a": b""} in found
    assert {"a": bytes(3)} in found
    assert {"a": b"new"} in found
    assert all(state.get("a") is not None for state in found)


def test_a_sync_that_failed_promises_nothing_and_no_later_one_makes_up_for_it() -> None:
    for sync_count in (1, 2):
        faulty = FaultyStorage(storage_of(ManualClock(), DiskImage({"a": b""})), Fault("a", FaultKind.FAILED_SYNC))
        storage = RecordedStorage(faulty)
        file = storage.open("a")
        file.append(b"x")
        with pytest.raises(StorageError):
            file.sync()
        file.append(b"y")
        for _ in range(sync_count):
            file.sync()
        assert faulty.has_struck
        assert file.read_at(0, 2) == b"xy"
        assert contents(storage) == {b"\0y", b"xy"}


def test_ten_operations_are_looked_at_exhaustively_and_more_by_sample() -> None:
    storage = recorded({"a": b""})
    file = storage.open("a")
    for _ in range(10):
        file.append(b"x")
    assert len(states(storage.recording())) == 2**11 - 1
    file.append(b"x")
    sample = list(crash_states(storage.recording(), SplitMix64(1), sample_count=50))
    assert [image.files["a"] for image in sample[:2]] == [b"", b"x" * 11]
    assert 20 < len(sample) <= 50
    assert sample == list(crash_states(storage.recording(), SplitMix64(1), sample_count=50))


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(("append", "write", "truncate", "sync", "sync names", "make", "move", "remove", "replace")),
        st.sampled_from(("a", "b", "c")),
        st.integers(0, 6),
    ),
    max_size=9,
)


def perform(storage: RecordedStorage, operation: str, name: str, number: int) -> None:
    if operation == "sync names":
        storage.sync_directory("")
    elif operation == "replace":
        storage.replace(name, bytes([65 + number]) * number)
    elif operation == "make" or not storage.exists(name):
        storage.open(name, create=True)
    elif operation == "move":
        storage.rename(name, "abc"[number % 3])
    elif operation == "remove":
        storage.remove(name)
    else:
        file = storage.open(name)
        act: dict[str, Callable[[], object]] = {
            "append": lambda: file.append(b"xyz"[: 1 + number % 3]),
            "write": lambda: file.write_at(number, b"W"),
            "truncate": lambda: file.truncate(number),
            "sync": file.sync,
        }
        act[operation]()


@given(operations=OPERATIONS, seed=st.integers(0, 2**40))
@settings(deadline=None)
def test_what_is_there_now_is_a_state_and_a_drawn_state_is_one_of_all(
    operations: list[tuple[str, str, int]], seed: int
) -> None:
    storage = recorded({"a": b"12345"})
    for operation in operations:
        perform(storage, *operation)
    recording = storage.recording()
    drawn = power_loss(recording, SplitMix64(seed), block_size_bytes=BLOCK)
    every = list(crash_states(recording, SplitMix64(seed), block_size_bytes=BLOCK, sample_count=2))
    assert image_of(storage) in every
    if len(every) > 2:
        assert drawn in every
    for path in storage.list():
        storage.open(path).sync()
    storage.sync_directory("")
    assert list(crash_states(storage.recording(), SplitMix64(seed))) == [image_of(storage)]


@pytest.mark.parametrize("block_size_bytes", [1, 3, 512, 4096])
def test_replacing_a_file_leaves_the_old_or_the_new_one_whole_at_every_moment(block_size_bytes: int) -> None:
    old, new = b"0\n1\nt 0 5\n", b"0\n2\nt 0 6\nt 1 7\n"
    storage = recorded({"c": old})
    storage.replace("c", new)
    recording = storage.recording()
    assert len(recording.operations) == 5  # Made, written, synced, renamed, names synced.
    for end in range(len(recording.operations) + 1):
        images = list(crash_states(recording, SplitMix64(1), end=end, block_size_bytes=block_size_bytes))
        found = {image.files["c"] for image in images}
        assert found <= {old, new}
        assert (old in found) == (end < 5)
        assert (new in found) == (end >= 4)


def test_replacing_without_the_first_sync_would_not_be_safe() -> None:
    storage = recorded({"c": b"old"})
    storage.open("c.tmp", create=True).append(b"new")
    storage.rename("c.tmp", "c")
    storage.sync_directory("")
    assert contents(storage, "c") == {b"", bytes(3), b"new"}

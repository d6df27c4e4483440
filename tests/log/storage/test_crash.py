"""What power loss may leave: the states of small programs written out by hand, and rules that hold for all of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.clock import ManualClock
from broker.entropy import SplitMix64
from log.errors import StorageError
from log.storage import (
    DiskImage,
    Fault,
    FaultKind,
    FaultyStorage,
    MemoryStorage,
    RecordedStorage,
    Recording,
    crash_states,
    image_of,
    lost_tail,
    power_loss,
    reordered_writes,
)

BLOCK = 4


def recorded(files: dict[str, bytes] | None = None) -> RecordedStorage:
    return RecordedStorage(MemoryStorage(ManualClock(), DiskImage(files or {})))


def states(recording: Recording, end: int | None = None) -> list[dict[str, bytes]]:
    images = list(crash_states(recording, SplitMix64(1), end=end, block_size_bytes=BLOCK))
    return sorted((dict(image.files) for image in images), key=repr)


def contents(storage: RecordedStorage, path: str = "a") -> set[bytes]:
    return {state[path] for state in states(storage.recording())}


def test_a_disk_that_was_left_alone_has_one_state() -> None:
    storage = recorded({"d/a": b"x"})
    assert states(storage.recording()) == [{"d/a": b"x"}]


def test_an_append_may_be_lost_or_whole_or_zeros() -> None:
    storage = recorded({"a": b"x"})
    storage.open("a").append(b"yz")
    assert contents(storage) == {b"x", b"x\0\0", b"xyz"}


def test_a_synced_append_stays() -> None:
    storage = recorded({"a": b""})
    file = storage.open("a")
    file.append(b"x")
    file.sync()
    assert contents(storage) == {b"x"}
    file.append(b"y")
    assert contents(storage) == {b"x", b"x\0", b"xy"}


def test_a_later_write_may_be_there_without_an_earlier_one() -> None:
    storage = recorded({"a": b""})
    file = storage.open("a")
    file.append(b"x")
    file.append(b"y")
    assert contents(storage) == {b"", b"\0", b"x", b"\0\0", b"x\0", b"\0y", b"xy"}


def test_an_append_arrives_block_by_block() -> None:
    storage = recorded({"a": b"12"})
    storage.open("a").append(b"abcdefgh")  # Blocks end at 4 and 8.
    found = {content.replace(b"\0", b".") for content in contents(storage)}
    assert found == {
        b"12",
        *(b"12..", b"12ab"),
        *(b"12......", b"12ab....", b"12..cdef", b"12abcdef"),
        *(b"12........", b"12ab......", b"12abcdef..", b"12..cdefgh", b"12......gh"),
        b"12abcdefgh",
    }


def test_writing_in_place_leaves_the_old_or_the_new_bytes() -> None:
    storage = recorded({"a": b"12345678"})
    storage.open("a").write_at(2, b"abcd")
    assert contents(storage) == {b"12345678", b"12ab5678", b"1234cd78", b"12abcd78"}


def test_sizes_change_in_order() -> None:
    storage = recorded({"a": b"abc"})
    file = storage.open("a")
    file.truncate(1)
    file.append(b"z")
    # Never the end of the old content behind the new one: that would need the append without the cut.
    assert contents(storage) == {b"abc", b"a", b"a\0", b"az"}


def test_a_file_may_be_missing_until_its_directory_is_synced() -> None:
    storage = recorded()
    file = storage.open("a", create=True)
    file.append(b"x")
    file.sync()
    assert states(storage.recording()) == [{"a": b"x"}, {}]
    storage.sync_directory("")
    assert states(storage.recording()) == [{"a": b"x"}]


def test_syncing_a_directory_does_not_save_the_content_of_its_files() -> None:
    storage = recorded()
    storage.open("a", create=True).append(b"x")
    storage.sync_directory("")
    assert contents(storage) == {b"", b"\0", b"x"}


def test_names_change_in_order_and_a_rename_is_whole() -> None:
    storage = recorded({"a": b"old", "b": b"new"})
    storage.rename("b", "a")
    storage.remove("a")
    assert states(storage.recording()) == [{"a": b"new"}, {"a": b"old", "b": b"new"}, {}]


def test_a_rename_may_come_before_the_content_of_the_file() -> None:
    storage = recorded({"a": b"old"})
    storage.open("a.tmp", create=True).append(b"new")
    storage.rename("a.tmp", "a")
    found = states(storage.recording())
    assert {"a": b""} in found
    assert {"a": bytes(3)} in found
    assert {"a": b"new"} in found
    assert all(state.get("a") is not None for state in found)


def test_directories_are_lost_with_what_is_in_them_and_keep_their_own_order() -> None:
    storage = recorded()
    storage.make_directory("t-0")
    storage.open("t-0/a", create=True).sync()
    assert states(storage.recording()) == [{"t-0/a": b""}, {}, {}]  # With t-0, empty, and without.
    storage.sync_directory("t-0")
    storage.rename("t-0", "t-1")
    assert states(storage.recording()) == [{"t-0/a": b""}, {"t-1/a": b""}, {}]
    storage.remove_directory("t-1")
    images = list(crash_states(storage.recording(), SplitMix64(1)))
    assert DiskImage({}, frozenset({"t-0"})) in images
    assert DiskImage({"t-1/a": b""}, frozenset({"t-1"})) in images


def test_a_sync_that_failed_promises_nothing_and_no_later_one_makes_up_for_it() -> None:
    for sync_count in (1, 2):
        faulty = FaultyStorage(MemoryStorage(ManualClock(), DiskImage({"a": b""})), Fault("a", FaultKind.FAILED_SYNC))
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


def test_of_a_torn_write_only_what_arrived_can_be_there() -> None:
    memory = MemoryStorage(ManualClock(), DiskImage({"a": b"x"}))
    storage = RecordedStorage(FaultyStorage(memory, Fault("a", FaultKind.TORN_WRITE)))
    with pytest.raises(StorageError):
        storage.open("a").append(b"1234")
    assert contents(storage) == {b"x", b"x\0\0", b"x12"}


def test_a_crash_can_be_put_after_any_operation() -> None:
    storage = recorded({"a": b""})
    file = storage.open("a")
    file.append(b"x")
    file.sync()
    recording = storage.recording()
    assert [len(states(recording, end)) for end in range(3)] == [1, 3, 1]


def test_lost_tails_and_writes_out_of_order_strike_the_files_named() -> None:
    storage = recorded({"a.log": b"", "b.log": b""})
    for path in ("a.log", "b.log"):
        storage.open(path).append(b"1")
        storage.open(path).append(b"2")
    assert lost_tail(storage.recording(), "a*").files == {"a.log": b"", "b.log": b"12"}
    assert reordered_writes(storage.recording(), "b*").files == {"a.log": b"12", "b.log": b"\x002"}


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

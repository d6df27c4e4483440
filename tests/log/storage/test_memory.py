"""What only files in memory promise."""

from __future__ import annotations

from broker.clock import ManualClock
from broker.units import MIB, DurationMs, TimeMs
from log.storage import MemoryStorage
from tests.support.disk_image import DiskImage, image_of, storage_of


def test_room_that_is_only_reserved_takes_no_memory() -> None:
    storage = MemoryStorage(ManualClock())
    files = [storage.open(f"{number}", create=True) for number in range(2000)]
    for file in files:
        file.truncate(10 * MIB)  # 20 GB together.
        file.write_at(8, b"entry")
    assert files[0].read_at(6, 10) == b"\0\0entry\0\0\0"
    assert files[0].size_bytes == 10 * MIB


def test_the_clock_says_when_a_file_was_changed() -> None:
    clock = ManualClock(TimeMs(100))
    storage = storage_of(clock, DiskImage({"a": b"x"}))
    assert storage.modified_ms("a") == 100
    clock.advance(DurationMs(5))
    storage.open("a").read_at(0, 1)
    storage.open("a").truncate(1)
    assert storage.modified_ms("a") == 100
    storage.open("a").append(b"y")
    assert storage.modified_ms("a") == 105


def test_an_image_is_the_whole_tree() -> None:
    image = DiskImage({"a": b"1", "t-0/b/c": b"2"}, frozenset({"t-0", "t-0/b", "t-1"}))
    assert image_of(storage_of(ManualClock(), image)) == image

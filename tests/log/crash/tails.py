"""Damage to the end of a log, and what recovery makes of it: S3 and S4 of a log that was not closed.

Decides, for one damaged log file, whether recovery did all that it owes:
- S3: what is left is a whole number of appends, all those before the first damaged byte, and all that was flushed; the
  log says of them what it said when they were its last (offsets, last stable offset, producers, leader epochs, aborted
  transactions).
- S4: indexes are sound, and a read from every offset through them is what a walk over the batches finds.
- Recovered once more, nothing changes; and an append goes on where the log ends and can be read.

A bit may flip where no checksum looks: the base offset, and in magic 2 the leader epoch and the magic. Kafka does not
see that either; then all that is asked for is that recovery ends, declares what it raises, and is stable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import attrs

from broker.clock import ManualClock
from broker.errors import BrokersideError
from broker.ids import Offset
from broker.units import TimeMs
from log.batches.in_buffer import batches_in
from log.partition.partition_log import PartitionLog
from log.partition.recovery import LastShutdown
from log.segments.file_names import OFFSET_INDEX, TIME_INDEX, kind_of
from tests.log.crash.shapes import CONFIG, LOG_PATH, Stage, Written, stage_of
from tests.log.made import EPOCH, NOW, batch, opened
from tests.support.disk_image import DiskImage, image_of, storage_of

HEADER_BITS: Final = 8 * 61
UNCHECKED: Final = {0: (range(8),), 1: (range(8),), 2: (range(8), range(12, 17))}
"""Bytes of a batch, by magic, that no checksum covers; a file of a magic above 2 is read as of magic 2."""
STALE_SHIFT: Final = 7
READ_BYTES_MAX: Final = 10_000
LATER: Final = TimeMs(NOW + CONFIG.file_delete_delay_ms)


@attrs.frozen
class Damage:
    """A log file as it was found after a crash; `is_seen` unless no checksum covers what was damaged."""

    name: str
    data: bytes
    is_seen: bool = True


def cuts(written: Written) -> Iterator[Damage]:
    """Yield the log cut at every byte of its tail."""
    for end in range(written.flushed.size_bytes, len(written.data)):
        yield Damage(f"cut at {end}", written.data[:end])


def zero_fills(written: Written) -> Iterator[Damage]:
    """Yield the log with zeros in place of its tail from every byte on: the size arrived, the bytes did not."""
    size = len(written.data)
    for start in range(written.flushed.size_bytes, size):
        yield Damage(f"zeros from {start}", written.data[:start] + bytes(size - start))


def stale_fills(written: Written) -> Iterator[Damage]:
    """Yield the log with what another file has left on the disk in place of its tail from every byte on."""
    data = written.data
    stale = data[STALE_SHIFT:] + data[:STALE_SHIFT]
    for start in range(written.flushed.size_bytes, len(data)):
        yield Damage(f"stale from {start}", data[:start] + stale[start:])


def bit_flips(written: Written, body_stride: int = 29) -> Iterator[Damage]:
    """Yield the log with one bit wrong: each of the first batch of its tail's header, every so many after it."""
    data, start = written.data, written.flushed.size_bytes
    found = next(batches_in(data[start:]))
    header_end = min(8 * found.size_bytes, HEADER_BITS)
    for bit in (*range(header_end), *range(header_end, 8 * (len(data) - start), body_stride)):
        flipped = bytearray(data)
        flipped[start + bit // 8] ^= 1 << bit % 8
        yield Damage(f"bit {bit} flipped", bytes(flipped), is_seen=is_checked(written, start + bit // 8))


def is_checked(written: Written, position: int) -> bool:
    """Tell whether a checksum covers the byte at `position`."""
    for found in batches_in(written.data):
        if found.position <= position < found.position + found.size_bytes:
            return all(position - found.position not in unchecked for unchecked in UNCHECKED[found.magic])
    raise AssertionError(position)


DAMAGES: Final = {"cut": cuts, "zeros": zero_fills, "stale blocks": stale_fills, "bit flip": bit_flips}


def check(written: Written, damage: Damage) -> str:
    """Recover a damaged log, assert what it owes, and return what was done: "kept", "cut", "emptied", "refused"."""
    image = DiskImage({**written.image.files, LOG_PATH: damage.data}, written.image.directories)
    if not damage.is_seen:
        return check_unseen(image, written)
    stage = [each for each in written.stages if damage.data[: each.size_bytes] == written.data[: each.size_bytes]][-1]
    assert stage.size_bytes >= written.flushed.size_bytes
    log = recovered(image, written)
    assert log.storage.read(LOG_PATH) == written.data[: stage.size_bytes]
    assert stage_of(log) == stage
    log.check_invariants()
    check_reads(log)
    check_stable(log, written, stage)
    check_goes_on(log, stage)
    return "cut" if stage.size_bytes < len(damage.data) else "kept"


def check_unseen(image: DiskImage, written: Written) -> str:
    """Assert what is owed where no checksum could tell that a batch is damaged."""
    try:
        log = recovered(image, written)
    except BrokersideError:
        return "refused"
    size = sum(segment.size_bytes for segment in log.segments)
    check_stable(log, written, stage_of(log))
    if size == 0:
        return "emptied"
    return "cut" if size < len(written.data) else "kept"


def recovered(image: DiskImage, written: Written) -> PartitionLog:
    """Open the log of an image that was not closed, flushed up to the end of its first append."""
    shutdown = LastShutdown(clean=False, recovery_point=Offset(written.flushed.end_offset))
    return opened(storage_of(ManualClock(NOW), image), CONFIG, last_shutdown=shutdown)


def check_reads(log: PartitionLog) -> None:
    """S4: a read from every offset begins with the batch that a walk over all batches finds."""
    batches = [found for segment in log.segments for found in segment.batches()]
    for offset in range(log.log_end_offset):
        expected = next(found for found in batches if found.last_offset >= offset)
        read = log.read(Offset(offset), READ_BYTES_MAX)
        assert read.start.position == expected.position, offset
        assert bytes(read.records[: expected.size_bytes]) == bytes(expected.data)


def check_stable(log: PartitionLog, written: Written, stage: Stage) -> None:
    """Recover once more what recovery has left, power being lost again: nothing changes."""
    again = recovered(image_of(log.storage), written)
    assert stage_of(again) == stage
    assert contents_of(again) == contents_of(log)


def contents_of(log: PartitionLog) -> list[object]:
    """Return all that the files of a log say: what is left over behind the entries of an index says nothing."""
    log.run_scheduled(LATER)  # What a split has left goes.
    directory, storage = log.directory, log.storage
    names = [name for name in storage.list(directory) if kind_of(name) not in (OFFSET_INDEX, TIME_INDEX)]
    entries = [
        (*segment.offset_index.entries().offsets.tolist(), *segment.time_index.entries().timestamps.tolist())
        for segment in log.segments
    ]
    return [*((name, storage.read(f"{directory}/{name}")) for name in names), *entries]


def check_goes_on(log: PartitionLog, stage: Stage) -> None:
    """Append to a recovered log and read it back."""
    info = log.append_as_leader(batch(2, value=b"new"), leader_epoch=EPOCH, now_ms=NOW)
    assert info.first_offset == stage.end_offset
    read = next(iter(batches_in(log.read(info.first_offset, READ_BYTES_MAX).records)))
    assert [(record.offset, record.value) for record in read.records()] == [
        (stage.end_offset, b"new"),
        (stage.end_offset + 1, b"new"),
    ]
    log.check_invariants()


def sweep(written: Written, kind: str, *, stride: int = 1, first: int = 0) -> Counter[str]:
    """Check every `stride`th damage of a kind, from the `first` on; return how many had which outcome."""
    outcomes: Counter[str] = Counter()
    for number, damage in enumerate(DAMAGES[kind](written)):
        if number % stride == first % stride:
            try:
                outcomes[check(written, damage)] += 1
            except AssertionError as finding:
                raise AssertionError(f"{written.name}, {damage.name}: {finding}") from finding
    return outcomes

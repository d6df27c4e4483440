"""Small logs, one a batch shape and codec, written live, with what was known after each append.

Decides which bytes are damaged: every shape of batch that a log may end with. The first append of each counts as
flushed, all others as the tail. What the log said after each append (`Stage`) is the oracle: a recovery that leaves the
first n appends has to say the same, of offsets, producers, leader epochs and aborted transactions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs
import pytest

from broker.clock import ManualClock
from broker.errors import BrokersideError
from broker.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.units import TimeMs
from log.batches.build import BatchSpec, build_batch, build_marker, emptied
from log.batches.in_buffer import batches_in
from log.codecs.compression import Codec
from log.log_config import LogConfig
from log.partition.log_offsets import ProducerView
from log.partition.partition_log import PartitionLog
from log.partition.recovery import LastShutdown
from log.record import ControlType, EndTransactionMarker, Header, Record, TimestampType
from log.segments.file_names import OFFSET_INDEX, TIME_INDEX, kind_of
from log.segments.txn_index import AbortedTransaction
from log.storage.checkpoints import EpochEntry
from tests.log.made import DIRECTORY, EPOCH, NOW, batch, config, memory, opened
from tests.support.disk_image import DiskImage, image_of, storage_of

CONFIG: Final = config(segment_bytes=1_000_000, index_interval_bytes=64, segment_index_bytes=1000)
PRODUCER: Final = ProducerId(9)
OTHER: Final = ProducerId(10)
LOG_PATH: Final = f"{DIRECTORY}/00000000000000000000.log"


@attrs.frozen
class Stage:
    """A log after some of its appends: how long its file is, and what it says."""

    size_bytes: int
    end_offset: int
    last_stable_offset: int
    producers: tuple[ProducerView, ...]
    epochs: tuple[EpochEntry, ...] | None
    aborted: tuple[AbortedTransaction, ...]


@attrs.frozen
class Written:
    """A log of one segment as it lies on the disk, and its stages, from the empty one on."""

    name: str
    image: DiskImage
    stages: tuple[Stage, ...]

    @property
    def data(self) -> bytes:
        """The log file."""
        return self.image.files[LOG_PATH]

    @property
    def flushed(self) -> Stage:
        """What is on the disk for sure: the first append."""
        return self.stages[1]


def stage_of(log: PartitionLog) -> Stage:
    """Return what a log of one segment says, all of it being replicated."""
    log.update_high_watermark(log.log_end_offset)
    state = log.state()
    return Stage(
        log.active_segment.size_bytes,
        state.log_end_offset,
        state.last_stable_offset,
        state.producers,
        state.leader_epochs,
        log.active_segment.txn_index.entries(),
    )


class Writer:
    """Appends batches of one codec to a log, as a follower gets them, and notes each stage."""

    def __init__(self, name: str, codec: Codec, settings: LogConfig = CONFIG) -> None:
        self.name = name
        self.codec = codec
        self.log = opened(memory(), settings)
        self.stages = [stage_of(self.log)]
        self.sequence = 0

    def records(self, count: int, *, headers: tuple[Header, ...] = ()) -> list[Record]:
        start = self.log.log_end_offset
        # Times go up and down: the largest is not the last.
        return [
            Record(
                Offset(start + number),
                TimeMs(NOW + start * 10 - number),
                b"key-%d" % number,
                b"value " * 4 + b"%d" % start,
                headers,
            )
            for number in range(count)
        ]

    def batch(self, count: int = 2, *, headers: tuple[Header, ...] = (), **fields: Any) -> bytes:
        """Return the next batch; its leader epoch changes every third append."""
        spec = BatchSpec(base_offset=self.log.log_end_offset, codec=self.codec)
        epoch = LeaderEpoch(len(self.stages) // 3)
        return build_batch(
            attrs.evolve(spec, **{"partition_leader_epoch": epoch, **fields}), self.records(count, headers=headers)
        )

    def from_producer(self, producer: ProducerId, count: int = 2, *, sequence: int, transactional: bool) -> bytes:
        return self.batch(
            count,
            producer_id=producer,
            producer_epoch=ProducerEpoch(0),
            base_sequence=sequence,
            is_transactional=transactional,
        )

    def marker(self, producer: ProducerId, kind: ControlType) -> bytes:
        spec = BatchSpec(
            base_offset=self.log.log_end_offset,
            producer_id=producer,
            producer_epoch=ProducerEpoch(0),
            is_transactional=True,
            partition_leader_epoch=LeaderEpoch(len(self.stages) // 3),
        )
        return build_marker(spec, EndTransactionMarker(kind, 1), TimeMs(NOW + 5))

    def append(self, data: bytes) -> None:
        self.log.append_as_follower(data, now_ms=NOW)
        self.stages.append(stage_of(self.log))

    def written(self) -> Written:
        return Written(self.name, image_of(self.log.storage), tuple(self.stages))


def _plain(writer: Writer) -> None:
    for count in (2, 1, 3, 2):
        writer.append(writer.batch(count))


def _idempotent(writer: Writer) -> None:
    for sequence in (0, 2, 4, 6):
        writer.append(writer.from_producer(PRODUCER, sequence=sequence, transactional=False))


def _transactional(writer: Writer) -> None:
    writer.append(writer.from_producer(PRODUCER, sequence=0, transactional=True))
    writer.append(writer.from_producer(OTHER, 1, sequence=0, transactional=True))
    writer.append(writer.marker(PRODUCER, ControlType.ABORT))
    writer.append(writer.from_producer(PRODUCER, 1, sequence=2, transactional=True))
    writer.append(writer.marker(OTHER, ControlType.COMMIT))
    writer.append(writer.marker(PRODUCER, ControlType.ABORT))


def _headers(writer: Writer) -> None:
    headers = (Header("trace", b"1"), Header("none", None), Header("", b""))
    for count in (1, 2, 2):
        writer.append(writer.batch(count, headers=headers))


def _empty(writer: Writer) -> None:
    """What compaction leaves of a producer's last batch when its records are gone."""
    for sequence in (0, 2, 4):
        full = writer.from_producer(PRODUCER, sequence=sequence, transactional=False)
        writer.append(emptied(next(iter(batches_in(full)))) if sequence else full)


def _delete_horizon(writer: Writer) -> None:
    for _ in range(3):
        writer.append(writer.batch(delete_horizon_ms=TimeMs(NOW + 1000)))


def _messages(magic: int) -> Callable[[Writer], None]:
    kind = TimestampType.CREATE_TIME if magic else TimestampType.NO_TIMESTAMP_TYPE

    def write(writer: Writer) -> None:
        for count in (2, 1, 3):
            if writer.codec is Codec.NONE:
                count = 1  # Without a wrapper each message stands alone.
            writer.append(writer.batch(count, magic=magic, timestamp_type=kind, partition_leader_epoch=LeaderEpoch(-1)))

    return write


WRITERS: Final[dict[str, Callable[[Writer], None]]] = {
    "plain": _plain,
    "idempotent": _idempotent,
    "transactional": _transactional,
    "headers": _headers,
    "empty": _empty,
    "delete horizon": _delete_horizon,
    "magic 0": _messages(0),
    "magic 1": _messages(1),
}
SHAPES: Final = tuple(
    (shape, codec) for shape in WRITERS for codec in Codec if not (codec is Codec.ZSTD and shape.startswith("magic"))
)
"""Every shape with every codec that it knows: a magic 0 or 1 with a codec is a wrapper message."""


def written(shape: str, codec: Codec) -> Written:
    """Return the log of a shape and codec."""
    writer = Writer(f"{shape}, {codec.label}", codec)
    WRITERS[shape](writer)
    return writer.written()


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
    """Return whether a checksum covers the byte at `position`."""
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
    """Assert what is owed where no checksum covers what is damaged."""
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


LEADER_EPOCH_BIT = 8 * 15  # No checksum covers the leader epoch of a batch.
STRIDES = {"cut": 41, "zeros": 79, "stale blocks": 79, "bit flip": 83}


@pytest.mark.parametrize("kind", DAMAGES)
def test_recovery_leaves_all_whole_appends_before_the_damage(kind: str) -> None:
    outcomes: Counter[str] = Counter()
    for number, (shape, codec) in enumerate(SHAPES[::3]):
        outcomes += sweep(written(shape, codec), kind, stride=7 * STRIDES[kind], first=number)
    assert outcomes["cut"] > 0


@pytest.mark.deep
@pytest.mark.parametrize("kind", DAMAGES)
def test_recovery_leaves_all_whole_appends_before_any_damage(kind: str) -> None:
    for number, (shape, codec) in enumerate(SHAPES):  # Every second damage: the odd ones of every second log.
        assert sweep(written(shape, codec), kind, stride=2, first=number).total() > 0, (shape, codec)


def test_a_damaged_batch_that_would_be_kept_is_found() -> None:
    log = written("plain", Codec.NONE)
    unseen = next(damage for damage in bit_flips(log) if damage.name == f"bit {LEADER_EPOCH_BIT} flipped")
    assert check(log, unseen) == "kept"
    with pytest.raises(AssertionError):
        check(log, Damage(unseen.name, unseen.data))
    assert log.image.files[LOG_PATH] == log.data

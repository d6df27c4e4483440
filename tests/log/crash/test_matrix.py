"""Faults in operation: one fault at each operation on each kind of file of a broker at work.

A read, write or sync that fails, or a full disk, strikes in turn at each operation on such a file. The broker stops
with an error that names the file, or counts an unreadable checkpoint as empty; its directory is opened again, after a
kill and after power loss, and all that was flushed has to be there. Damage at rest is in test_tails and test_recovery.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs
import pytest

from broker.clock import ManualClock
from broker.entropy import SplitMix64
from broker.ids import BrokerId, LeaderEpoch, Offset, PartitionId, ProducerEpoch, ProducerId, TopicPartition
from broker.units import TimeMs
from log.batches.build import BatchSpec, build_batch, build_marker
from log.errors import StorageError
from log.log_dir import LogDir, LogDirOptions
from log.partition.partition_log import PartitionLog
from log.partition.producer_append import AppendOrigin
from log.partition.reading import Isolation
from log.record import ControlType, EndTransactionMarker, Record
from log.storage import Fault, FaultKind, FaultyStorage, MemoryStorage, Storage
from log.storage.metadata_files import META_PROPERTIES_FILE, MetaProperties, read_meta_properties, write_meta_properties
from tests.log.made import NOW, config
from tests.support.crash import power_loss
from tests.support.disk_image import DiskImage, image_of, storage_of
from tests.support.recorded import RecordedStorage

EVENTS: Final = TopicPartition("events", PartitionId(0))
ORDERS: Final = TopicPartition("orders", PartitionId(0))
TOPIC_IDS: Final = {EVENTS: "Pza2aPRTs8lDJ5IF8BRtFg", ORDERS: "AAAAAAAAA-kAAAAAAAAAAw"}
OPTIONS: Final = LogDirOptions(
    config=config(segment_bytes=1000, index_interval_bytes=80, segment_index_bytes=96, retention_ms=-1)
)
PRODUCER: Final = ProducerId(5)
READ_BYTES_MAX: Final = 10_000
POWER_LOSS_COUNT: Final = 2
OPERATION_COUNT_MAX: Final = 1000


@attrs.frozen
class Seen:
    """What a broker finds in a directory: its node, records, aborted transactions, start, high watermark, topic."""

    node_id: BrokerId | None
    records: tuple[tuple[int, bytes | None], ...]
    aborted: tuple[tuple[int, int], ...]
    by_time: tuple[int | None, ...]
    producers: int
    epochs: tuple[tuple[int, int], ...]
    start_offset: int
    high_watermark: int
    topic_id: str | None


class Broker:
    """A broker with one log directory; `flushed` are the records that were on the disk at the last flush."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.flushed: tuple[tuple[int, bytes | None], ...] = ()
        self.log_dir: LogDir | None = None
        self.node_id: BrokerId | None = None

    def open(self) -> None:
        """Read whose the directory is, and open it."""
        meta = read_meta_properties(self.storage, META_PROPERTIES_FILE)
        self.node_id = None if meta is None else meta.node_id
        self.log_dir = LogDir.open(self.storage, OPTIONS, now_ms=NOW, entropy=SplitMix64(1))

    def look(self) -> Seen:
        """Look at everything in the directory."""
        log = self.log
        log.update_high_watermark(self.directory.checkpointed_high_watermark(EVENTS))
        start = log.log_start_offset
        high_watermark = log.high_watermark
        log.update_high_watermark(log.log_end_offset)
        aborted = log.read(start, READ_BYTES_MAX, isolation=Isolation.COMMITTED).aborted_transactions or ()
        by_time = [log.fetch_offset_by_timestamp(NOW + offset) for offset in range(0, log.log_end_offset, 2)]
        return Seen(
            self.node_id,
            records_of(log),
            tuple((each.first_offset, each.last_offset) for each in aborted),
            tuple(None if found is None else found.offset for found in by_time),
            len(log.state().producers),
            tuple((entry.epoch, entry.start_offset) for entry in log.state().leader_epochs or ()),
            start,
            high_watermark,
            log.topic_id,
        )

    @property
    def directory(self) -> LogDir:
        assert self.log_dir is not None
        return self.log_dir

    @property
    def log(self) -> PartitionLog:
        return self.directory.create_log(EVENTS, now_ms=NOW)

    def append(self, *, transactional: bool) -> None:
        log, start = self.log, self.log.log_end_offset
        known = log.producers.producers
        spec = BatchSpec(
            producer_id=PRODUCER,
            producer_epoch=ProducerEpoch(0),
            base_sequence=known[0].last_sequence + 1 if known else 0,
            is_transactional=transactional,
        )
        records = [Record(Offset(n), TimeMs(NOW + start + n), b"key", b"value-%d" % (start + n)) for n in range(3)]
        log.append_as_leader(build_batch(spec, records), leader_epoch=LeaderEpoch(start // 4), now_ms=NOW)
        if transactional:
            aborted = EndTransactionMarker(ControlType.ABORT, 1)
            marker = build_marker(attrs.evolve(spec, base_sequence=-1), aborted, TimeMs(NOW + start + 3))
            log.append_as_leader(
                marker,
                leader_epoch=LeaderEpoch(start // 4),
                now_ms=NOW,
                origin=AppendOrigin.COORDINATOR,
                transaction_version=0,
            )
        log.update_high_watermark(log.log_end_offset)

    def flush(self) -> None:
        self.log.flush(now_ms=NOW)
        self.flushed = records_of(self.log)

    def work(self) -> None:
        """Do everything that a broker does to its files, once."""
        self.directory.create_log(ORDERS, now_ms=NOW, topic_id=TOPIC_IDS[ORDERS])
        self.append(transactional=True)
        self.flush()
        self.log.increment_log_start_offset(Offset(2))
        self.log.roll(now_ms=NOW)
        self.directory.run_scheduled(NOW)
        self.append(transactional=False)
        self.directory.checkpoint_recovery_points()
        self.directory.checkpoint_log_start_offsets()
        self.directory.checkpoint_high_watermarks()
        write_meta_properties(self.storage, META_PROPERTIES_FILE, META)
        self.directory.shut_down(now_ms=NOW)
        self.flushed = records_of(self.log)


META: Final = MetaProperties(1, "cluster", BrokerId(2), "AAAAAAAAA-kAAAAAAAAAAw")


def records_of(log: PartitionLog) -> tuple[tuple[int, bytes | None], ...]:
    """Return offset and value of every record of a log."""
    return tuple(
        (record.offset, record.value)
        for segment in log.segments
        for found in segment.batches()
        if not found.is_control
        for record in found.records()
    )


def made(*, clean: bool) -> DiskImage:
    """Return a directory with every kind of file, shut down, or as a crash after the last flush leaves it."""
    storage = MemoryStorage(ManualClock(NOW))
    broker = Broker(storage)
    write_meta_properties(storage, META_PROPERTIES_FILE, META)
    broker.log_dir = LogDir.open(storage, OPTIONS, now_ms=NOW, entropy=SplitMix64(1))
    broker.directory.create_log(EVENTS, now_ms=NOW, topic_id=TOPIC_IDS[EVENTS])
    broker.append(transactional=True)
    broker.append(transactional=True)
    broker.flush()
    broker.log.roll(now_ms=NOW)
    broker.directory.run_scheduled(NOW)
    broker.append(transactional=False)
    broker.log.increment_log_start_offset(Offset(1))
    broker.directory.checkpoint_high_watermarks()
    broker.directory.checkpoint_log_start_offsets()
    broker.directory.checkpoint_recovery_points()
    if clean:
        broker.directory.shut_down(now_ms=NOW)
    return image_of(storage)


def started(image: DiskImage) -> Seen:
    """Return what a broker finds on a disk that works."""
    broker = Broker(storage_of(ManualClock(NOW), image))
    broker.open()
    return broker.look()


def strikes(pattern: str, kind: FaultKind) -> Iterator[str]:
    """Yield what the broker did at a fault, for each operation on the files in turn."""
    for passed_count in range(OPERATION_COUNT_MAX):
        recorded = RecordedStorage(storage_of(ManualClock(NOW), made(clean=True)))
        storage = FaultyStorage(recorded, Fault(pattern, kind, passed_count))
        broker = Broker(storage)
        outcome = _run(broker)
        if not storage.has_struck:
            return
        yield outcome
        images = [image_of(recorded)]
        images += [power_loss(recorded.recording(), SplitMix64(seed)) for seed in range(POWER_LOSS_COUNT)]
        for image in images:
            found = started(image).records
            assert found[: len(broker.flushed)] == broker.flushed, (pattern, kind, passed_count)
    raise AssertionError(f"{pattern}: the fault never ends")


def _run(broker: Broker) -> str:
    try:
        broker.open()
        broker.flushed = broker.look().records
        unreadable = broker.directory.unreadable
        broker.work()
    except StorageError as error:
        return "directory failed" if error.path in str(error) else "failed without a place"
    return "counts as empty" if unreadable else "nothing lost"


CHECKPOINTS: Final = tuple(f"{name}-offset-checkpoint" for name in ("recovery-point", "log-start", "replication"))
FILES: Final = (
    *("*.log", "*.index", "*.timeindex", "*.txnindex", "*.snapshot", "*leader-epoch-checkpoint", "*partition.metadata"),
    *CHECKPOINTS,
    *(".kafka_cleanshutdown", "meta.properties"),
)
KINDS: Final = (FaultKind.READ_ERROR, FaultKind.TORN_WRITE, FaultKind.NO_SPACE, FaultKind.FAILED_SYNC)


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pattern", FILES)
def test_a_fault_ends_the_work_and_all_that_was_flushed_is_there_later(pattern: str, kind: FaultKind) -> None:
    is_read = kind is FaultKind.READ_ERROR
    expected = {"directory failed"}
    if is_read and pattern in CHECKPOINTS:
        expected = {"counts as empty"}
    elif is_read and pattern == ".kafka_cleanshutdown":
        expected = set()  # Nobody reads it but to see whether it is there.
    assert set(strikes(pattern, kind)) == expected

"""Faults in operation: one fault at each operation on each kind of file of a broker at work.

A read, write or sync that fails, or a full disk, strikes in turn at each operation on such a file. The broker stops
with an error that names the file, or counts an unreadable checkpoint as empty; its directory is opened again, after a
kill and after power loss, and all that was flushed has to be there. Damage at rest is in test_tails and test_recovery.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

import pytest

from broker.clock import ManualClock
from broker.entropy import SplitMix64
from broker.ids import BrokerId, LeaderEpoch, Offset, PartitionId, TopicPartition
from log.errors import StorageError
from log.log_dir import LogDir, LogDirOptions
from log.partition.partition_log import PartitionLog
from log.partition.reading import Isolation
from log.storage import Fault, FaultKind, FaultyStorage, MemoryStorage, Storage
from log.storage.metadata_files import META_PROPERTIES_FILE, MetaProperties, read_meta_properties, write_meta_properties
from tests.log.made import NOW, abort_sequenced, append_sequenced, config
from tests.support.crash import power_loss
from tests.support.disk_image import DiskImage, image_of, storage_of
from tests.support.recorded import RecordedStorage

EVENTS: Final = TopicPartition("events", PartitionId(0))
ORDERS: Final = TopicPartition("orders", PartitionId(0))
TOPIC_IDS: Final = {EVENTS: "Pza2aPRTs8lDJ5IF8BRtFg", ORDERS: "AAAAAAAAA-kAAAAAAAAAAw"}
OPTIONS: Final = LogDirOptions(
    config=config(segment_bytes=1000, index_interval_bytes=80, segment_index_bytes=96, retention_ms=-1)
)
READ_BYTES_MAX: Final = 10_000
POWER_LOSS_COUNT: Final = 2
OPERATION_COUNT_MAX: Final = 1000


Records: TypeAlias = tuple[tuple[int, bytes | None], ...]


class Broker:
    """A broker with one log directory; `flushed` are the records that were on the disk at the last flush."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.flushed: Records = ()
        self.log_dir: LogDir | None = None

    def open(self) -> None:
        """Read whose the directory is, and open it."""
        read_meta_properties(self.storage, META_PROPERTIES_FILE)
        self.log_dir = LogDir.open(self.storage, OPTIONS, now_ms=NOW, entropy=SplitMix64(1))

    def look(self) -> Records:
        """Read everything in the directory as consumers do; return its records."""
        log = self.log
        log.update_high_watermark(self.directory.checkpointed_high_watermark(EVENTS))
        log.update_high_watermark(log.log_end_offset)
        log.read(log.log_start_offset, READ_BYTES_MAX, isolation=Isolation.COMMITTED)
        for offset in range(0, log.log_end_offset, 2):
            log.fetch_offset_by_timestamp(NOW + offset)
        return records_of(log)

    @property
    def directory(self) -> LogDir:
        assert self.log_dir is not None
        return self.log_dir

    @property
    def log(self) -> PartitionLog:
        return self.directory.create_log(EVENTS, now_ms=NOW)

    def append(self, *, transactional: bool) -> None:
        epoch = LeaderEpoch(self.log.log_end_offset // 4)
        append_sequenced(self.log, 3, leader_epoch=epoch, transactional=transactional)
        if transactional:
            abort_sequenced(self.log, leader_epoch=epoch)

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


def records_of(log: PartitionLog) -> Records:
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


def started(image: DiskImage) -> Records:
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
            found = started(image)
            assert found[: len(broker.flushed)] == broker.flushed, (pattern, kind, passed_count)
    raise AssertionError(f"{pattern}: the fault never ends")


def _run(broker: Broker) -> str:
    try:
        broker.open()
        broker.flushed = broker.look()
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

"""Run MirrorMaker's process between two clusters: its connectors, and the state that it loses when it dies.

What it decides: what is copied when, and where copying goes on after a failure. The process keeps everything in memory
except three topics: Connect's source offsets (on the target), the offset syncs (on the source) and the checkpoints (on
the target).

Goals, most important first:
1. Each record of the source is on the target at least once, in the source's order.
2. No checkpoint is ahead of the offset that it translates.
3. After a failure, copying goes on from the last committed source offset: records copied since are copied again.

Constraints: source offsets are committed only when everything before them is acknowledged. Nothing is copied before the
committed offsets are read to their end, and no offset is translated before the syncs are.

How: every `commit_ms` the source offsets are written; when that is acknowledged, the delayed syncs are sent. Every
`checkpoint_ms` the process looks at the source's groups: it writes checkpoints, and sets the offsets of groups that are
idle on the target. The heartbeat connector of the other direction writes into the source, and its topic is copied like
any other.

Example: killed at source offset 80 with 60 committed, it copies 61 to 80 a second time: the target holds them twice, in
the same order.

Left out: several tasks and their rebalancing, exactly-once sources (KIP-618), copied settings and ACLs; the groups have
a coordinator that never fails.

Source: Kafka connect-mirror MirrorSourceTask, MirrorSourceConnector, MirrorCheckpointTask, MirrorHeartbeatTask and
connect runtime SourceTaskOffsetCommitter, 4.3.1; KIP-382.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final

import attrs

from broker.ids import Offset, PartitionId, TopicPartition
from broker.units import DurationMs, TimeMs
from log.batches.build import build_batch
from log.batches.build_spec import BatchSpec
from log.record import Record
from replication.mirror.checkpoints import (
    CheckpointStore,
    new_checkpoints,
    offsets_to_set,
    target_partition,
)
from replication.mirror.layout import TopicLayout
from replication.mirror.partition_clients import ClusterConnection, PartitionReader, PartitionWriter
from replication.mirror.policy import DefaultPolicy, is_replicated, wanted_partitions
from replication.mirror.records import Checkpoint, MirrorHeartbeat, OffsetSync, read_checkpoint, read_offset_sync
from replication.mirror.sync_rule import OFFSET_LAG_MAX, SyncQueue
from replication.mirror.sync_store import SyncStore
from replication.simulation.options import WALL_CLOCK_MS

_OFFSET: Final = struct.Struct(">q")


@attrs.frozen(kw_only=True)
class MirrorSettings:
    """Hold the settings of a flow; times are a tenth of Kafka's, as runs are short.

    Kafka's: offset.flush.interval.ms and emit.checkpoints.interval.seconds 60 s, refresh.topics.interval.seconds 600 s;
    emit.heartbeats.interval.seconds is 1 s in both.
    """

    source: str = "source"
    target: str = "target"
    policy: DefaultPolicy = attrs.field(factory=DefaultPolicy)
    offset_lag_max: int = OFFSET_LAG_MAX
    commit_ms: DurationMs = attrs.field(default=DurationMs(6_000))
    checkpoint_ms: DurationMs = attrs.field(default=DurationMs(6_000))
    refresh_ms: DurationMs = attrs.field(default=DurationMs(60_000))
    heartbeat_ms: DurationMs = attrs.field(default=DurationMs(1_000))


class Groups:
    """Hold the committed offsets of groups in one cluster, by group and partition."""

    def __init__(self) -> None:
        self.committed: dict[str, dict[TopicPartition, Offset]] = {}

    def commit(self, group: str, offsets: dict[TopicPartition, Offset]) -> None:
        """Set offsets of a group; those of other partitions stay."""
        self.committed.setdefault(group, {}).update(offsets)


@attrs.frozen
class MirroredCluster:
    """Hold one cluster as the process sees it: its connection, its topics and its groups."""

    side: ClusterConnection
    layout: TopicLayout
    groups: Groups


@attrs.frozen
class MirrorEnvironment:
    """Hold what the process uses: both clusters, the time, a timer and the log."""

    source: MirroredCluster
    target: MirroredCluster
    now_ms: Callable[[], TimeMs]
    later: Callable[[int, Callable[[], None]], None]
    log_line: Callable[[str], None]


class MirrorProcess:
    """Run MirrorMaker's process, restart after restart; `checkpoints` holds every checkpoint ever emitted."""

    def __init__(self, settings: MirrorSettings, environment: MirrorEnvironment) -> None:
        self.settings = settings
        self.environment = environment
        self.is_up = False
        self.incarnation = 0
        self.checkpoints: list[Checkpoint] = []
        self.readers: dict[TopicPartition, PartitionReader] = {}
        self.writers: dict[TopicPartition, PartitionWriter[tuple[Offset, ...]]] = {}
        self._committed: dict[TopicPartition, Offset] = {}
        self._copied: dict[TopicPartition, Offset] = {}
        self.synced: set[TopicPartition] = set()
        """The partitions of which this incarnation has copied a record, and so written a sync."""
        self._forget()

    def _forget(self) -> None:
        self.readers.clear()
        self.writers.clear()
        self._committed.clear()
        self._copied.clear()
        self.synced.clear()
        self._queue = SyncQueue(self.settings.offset_lag_max)
        # Earlier checkpoints are read back, so that older syncs may be stored.
        self._syncs = SyncStore(must_read_to_end=False)
        self._store = CheckpointStore()
        self._loading: dict[str, PartitionReader] = {}
        self._is_loaded = False

    def start(self) -> None:
        """Start, and read the offsets, checkpoints and syncs that earlier runs of the process left."""
        assert not self.is_up, self.incarnation
        self.is_up = True
        self.incarnation += 1
        self.environment.log_line("the mirror starts")
        source, target = self.environment.source, self.environment.target
        self._loading = {
            "offsets": PartitionReader(target.side, target.layout.internal("offsets"), Offset(0), self._on_offsets),
            "checkpoints": PartitionReader(
                target.side, target.layout.internal("checkpoints"), Offset(0), self._on_checkpoints
            ),
            "syncs": PartitionReader(source.side, source.layout.internal("syncs"), Offset(0), self._on_syncs),
        }
        for name, reader in self._loading.items():
            (source if name == "syncs" else target).side.add(reader)
        self._offset_writer = PartitionWriter[dict[TopicPartition, Offset]](
            target.side, target.layout.internal("offsets"), self._on_committed
        )
        self._sync_writer = PartitionWriter[None](source.side, source.layout.internal("syncs"), self._on_sync_written)
        self._checkpoint_writer = PartitionWriter[None](
            target.side, target.layout.internal("checkpoints"), lambda _, offset: None
        )
        target.side.add(self._offset_writer)
        target.side.add(self._checkpoint_writer)
        source.side.add(self._sync_writer)
        self._await_loaded()
        self._again(self.settings.commit_ms, self._commit)
        self._again(self.settings.checkpoint_ms, self._checkpoint)

    def kill(self) -> None:
        """Die and lose everything in memory."""
        assert self.is_up, self.incarnation
        self.is_up = False
        self.environment.log_line("the mirror dies")
        self.environment.source.side.reset()
        self.environment.target.side.reset()
        self._forget()

    @property
    def is_drained(self) -> bool:
        """Return whether everything read so far is copied and committed."""
        if not self.is_up or not self.readers or not self._offset_writer.is_idle:
            return False
        return all(
            reader.position == reader.end_offset and self.writers[partition].is_idle
            for partition, reader in self.readers.items()
        ) and all(self._committed.get(partition) == offset for partition, offset in self._copied.items())

    def _again(self, every_ms: int, action: Callable[[], None]) -> None:
        """Repeat an action every `every_ms` until the process dies."""
        incarnation = self.incarnation

        def due() -> None:
            if self.is_up and self.incarnation == incarnation:
                action()
                self.environment.later(every_ms, due)

        self.environment.later(every_ms, due)

    # Beginning.

    def _await_loaded(self) -> None:
        incarnation = self.incarnation

        def look() -> None:
            if not self.is_up or self.incarnation != incarnation:
                return
            if all(0 <= reader.end_offset <= reader.position for reader in self._loading.values()):
                self._is_loaded = True
                self._syncs.read_to_end()
                self.refresh()
                self._again(self.settings.refresh_ms, self.refresh)
            else:
                self.environment.later(100, look)

        look()

    def refresh(self) -> None:
        """Create partitions that the target lacks, and start copying new partitions."""
        settings, source, target = self.settings, self.environment.source, self.environment.target
        counts = {
            topic: count
            for topic, count in source.layout.counts().items()
            if is_replicated(settings.policy, topic, settings.target, is_wanted=True)
        }
        for topic, count in wanted_partitions(settings.policy, settings.source, counts, target.layout.counts()).items():
            self.environment.log_line(f"the mirror makes {topic} with {count} partitions on the target")
            target.layout.make(topic, count)
        for topic, count in counts.items():
            for number in range(count):
                partition = TopicPartition(topic, PartitionId(number))
                if partition not in self.readers:
                    self._copy(partition)

    def _copy(self, partition: TopicPartition) -> None:
        source, target = self.environment.source, self.environment.target
        copy = self.renamed(partition)
        writer = PartitionWriter[tuple[Offset, ...]](
            target.side, target.layout.number(copy), lambda offsets, first: self._on_copied(partition, offsets, first)
        )
        # A committed offset is that of the last record copied.
        position = Offset(self._committed.get(partition, -1) + 1)
        reader = PartitionReader(
            source.side,
            source.layout.number(partition),
            position,
            lambda records: writer.write(copied_batch(records), tuple(record.offset for record in records)),
            may_read=lambda: writer.is_idle,
        )
        self.environment.log_line(f"the mirror copies {partition} to {copy} from offset {position} on")
        self.readers[partition], self.writers[partition] = reader, writer
        source.side.add(reader)
        target.side.add(writer)

    def renamed(self, partition: TopicPartition) -> TopicPartition:
        """Return the target partition of a source partition."""
        settings = self.settings
        return target_partition(settings.policy, settings.source, settings.target, partition)

    # Copying.

    def _on_copied(self, partition: TopicPartition, offsets: tuple[Offset, ...], first: Offset) -> None:
        for place, upstream in enumerate(offsets):
            self._queue.copied(partition, upstream, Offset(first + place))
        self._copied[partition] = offsets[-1]
        self.synced.add(partition)
        self._send_syncs()
        self.environment.source.side.wake_clients()

    def _send_syncs(self) -> None:
        for sync in self._queue.take():
            self._sync_writer.write(self._batch(sync.key, sync.value), None)

    def _on_sync_written(self, _token: None, _offset: Offset) -> None:
        self._queue.sent()
        self._send_syncs()

    def _commit(self) -> None:
        news = {each: offset for each, offset in self._copied.items() if self._committed.get(each) != offset}
        if not news:
            self._queue.on_commit()
            self._send_syncs()
            return
        records = [self._record(_offset_key(each), _OFFSET.pack(offset)) for each, offset in sorted(news.items())]
        self._offset_writer.write(copied_batch(records), news)

    def _on_committed(self, offsets: dict[TopicPartition, Offset], _first: Offset) -> None:
        self._committed.update(offsets)
        self._queue.on_commit()
        self._send_syncs()

    # Groups.

    def _checkpoint(self) -> None:
        source, target = self.environment.source, self.environment.target
        renamed = {partition: self.renamed(partition) for partition in self.readers}
        for group, committed in sorted(source.groups.committed.items()):
            for checkpoint in new_checkpoints(group, committed, self._syncs, self._store, renamed):
                self.checkpoints.append(checkpoint)
                # Counted as emitted before it is written, as in Kafka: it is written later, or the process dies.
                self._store.add(checkpoint)
                self._checkpoint_writer.write(self._batch(checkpoint.key, checkpoint.value), None)
            present = target.groups.committed.get(group, {})
            target.groups.commit(group, offsets_to_set(self._store.offsets(group), present))

    # What earlier runs of the process left.

    def _on_offsets(self, records: Sequence[Record]) -> None:
        if self._is_loaded:
            return
        for record in records:
            assert record.key is not None, record
            assert record.value is not None, record
            self._committed[_partition_of(record.key)] = Offset(_OFFSET.unpack(record.value)[0])
        self._copied = dict(self._committed)

    def _on_checkpoints(self, records: Sequence[Record]) -> None:
        if self._is_loaded:
            return
        for record in records:
            self._store.add(read_checkpoint(record.key or b"", record.value or b""))

    def _on_syncs(self, records: Sequence[Record]) -> None:
        for record in records:
            self._syncs.add(read_offset_sync(record.key or b"", record.value or b""))

    # Bytes.

    def _record(self, key: bytes, value: bytes) -> Record:
        return Record(Offset(0), TimeMs(WALL_CLOCK_MS + self.environment.now_ms()), key, value)

    def _batch(self, key: bytes, value: bytes) -> bytes:
        return copied_batch([self._record(key, value)])


def copied_batch(records: Sequence[Record]) -> bytes:
    """Return one batch with the same records, to be written to any partition."""
    placed = [attrs.evolve(record, offset=Offset(place), sequence=-1) for place, record in enumerate(records)]
    return build_batch(BatchSpec(), placed)


def heartbeat_batch(settings: MirrorSettings, now_ms: TimeMs) -> bytes:
    """Return a heartbeat of the other direction as a batch; it is written to the source and copied from there."""
    time_ms = TimeMs(WALL_CLOCK_MS + now_ms)
    beat = MirrorHeartbeat(settings.target, settings.source, time_ms)
    return copied_batch([Record(Offset(0), time_ms, beat.key, beat.value)])


def _offset_key(partition: TopicPartition) -> bytes:
    return OffsetSync(partition, Offset(0), Offset(0)).key


def _partition_of(key: bytes) -> TopicPartition:
    return read_offset_sync(key, bytes(16)).source_partition

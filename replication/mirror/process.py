"""Run MirrorMaker's process between two clusters: its connectors, and the state that it loses when it dies.

It keeps everything in memory but Connect's source offsets (on the target), the offset syncs (on the source) and the
checkpoints (on the target). Source offsets are committed only when everything before them is acknowledged; after a
failure records copied since are copied again, in the same order.

Left out: heartbeats; several tasks, exactly-once sources (KIP-618), copied settings and ACLs.

Source: Kafka connect-mirror MirrorSourceTask, MirrorSourceConnector, MirrorCheckpointTask and
connect runtime SourceTaskOffsetCommitter, 4.3.1; KIP-382.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final

import attrs

from broker.ids import Offset, PartitionId, TopicPartition
from broker.units import DurationMs, TimeMs
from log.batches.build import BatchSpec, build_batch
from log.record import Record
from replication.mirror.checkpoints import CheckpointStore
from replication.mirror.cluster import MirroredCluster
from replication.mirror.policy import is_replicated, target_partition, wanted_partitions
from replication.mirror.records import Checkpoint, OffsetSync, read_checkpoint, read_offset_sync
from replication.mirror.syncs import OFFSET_LAG_MAX, SyncQueue, SyncStore

SYNCS: Final = TopicPartition("syncs", PartitionId(0))
OFFSETS: Final = TopicPartition("offsets", PartitionId(0))
CHECKPOINTS: Final = TopicPartition("checkpoints", PartitionId(0))
_POLL_MS: Final = 500
_LOAD_MS: Final = 100
_OFFSET: Final = struct.Struct(">q")


@attrs.frozen(kw_only=True)
class MirrorSettings:
    """Hold the settings of a flow; times are a tenth of Kafka's, as runs are short.

    Kafka's: offset.flush.interval.ms and emit.checkpoints.interval.seconds 60 s, refresh.topics.interval.seconds 600 s.
    """

    source: str = "source"
    target: str = "target"
    offset_lag_max: int = OFFSET_LAG_MAX
    commit_ms: DurationMs = attrs.field(default=DurationMs(6_000))
    checkpoint_ms: DurationMs = attrs.field(default=DurationMs(6_000))
    refresh_ms: DurationMs = attrs.field(default=DurationMs(60_000))


class MirrorProcess:
    """Run MirrorMaker's process, restart after restart; `checkpoints` holds every checkpoint ever emitted.

    Time is that of the source; `log_line` takes a line for each change.
    """

    def __init__(
        self,
        settings: MirrorSettings,
        source: MirroredCluster,
        target: MirroredCluster,
        log_line: Callable[[str], None],
    ) -> None:
        self.settings = settings
        self.is_up = False
        self.checkpoints: list[Checkpoint] = []
        self.synced: set[TopicPartition] = set()
        """The partitions of which this incarnation has copied a record, and so written a sync."""
        self._source = source
        self._target = target
        self._log_line = log_line
        self._incarnation = 0
        self._forget()

    def _forget(self) -> None:
        self.positions: dict[TopicPartition, Offset] = {}
        """The next offset to read of each copied partition of the source."""
        self.synced.clear()
        self._under_way: set[TopicPartition] = set()
        self._committed: dict[TopicPartition, Offset] = {}
        self._copied: dict[TopicPartition, Offset] = {}
        self._queue = SyncQueue(self.settings.offset_lag_max)
        # Earlier checkpoints are read back, so that older syncs may be stored.
        self._syncs = SyncStore(must_read_to_end=False)
        self._sync_position = Offset(0)
        self._store = CheckpointStore()

    def start(self) -> None:
        """Start, and read the offsets, checkpoints and syncs that earlier runs of the process left."""
        assert not self.is_up, self._incarnation
        self.is_up = True
        self._incarnation += 1
        self._log_line("the mirror starts")
        if self._load():
            self._again(_LOAD_MS, self._load)
        self._again(self.settings.commit_ms, self._commit)
        self._again(self.settings.checkpoint_ms, self._checkpoint)

    def kill(self) -> None:
        """Die and lose everything in memory."""
        assert self.is_up, self._incarnation
        self.is_up = False
        self._log_line("the mirror dies")
        self._source.reset()
        self._target.reset()
        self._forget()

    def missing(self) -> str | None:
        """Return what is not copied and committed yet; None if everything is."""
        if not self.is_up or len(self.positions) < len(self._source.partitions()):
            return f"the mirror copies {len(self.positions)} partitions of {len(self._source.partitions())}"
        for partition, position in self.positions.items():
            if partition in self._under_way or position != self._source.end(partition):
                return f"the mirror has not copied {partition} to its end"
        return None if self._committed == self._copied else "the mirror has not committed all offsets"

    def renamed(self, partition: TopicPartition) -> TopicPartition:
        """Return the target partition of a source partition."""
        settings = self.settings
        return target_partition(settings.source, settings.target, partition)

    def _again(self, every_ms: int, action: Callable[[], bool | None]) -> None:
        """Repeat an action every `every_ms` until it returns False, or the process dies."""
        incarnation = self._incarnation

        def of_incarnation() -> bool:
            return self.is_up and self._incarnation == incarnation and action() is not False

        self._source.every(every_ms, of_incarnation)

    # Beginning.

    def _load(self) -> bool:
        """Read what earlier runs left once all three topics have a leader, then begin to copy."""
        if None in (self._source.end(SYNCS), self._target.end(OFFSETS), self._target.end(CHECKPOINTS)):
            return True
        for record in self._target.read(OFFSETS):
            key, value = record.key or b"", record.value or b""
            partition = read_offset_sync(key, bytes(16)).source_partition
            self._committed[partition] = Offset(_OFFSET.unpack(value)[0])
        self._copied = dict(self._committed)
        for record in self._target.read(CHECKPOINTS):
            self._store.add(read_checkpoint(record.key or b"", record.value or b""))
        self._read_syncs()
        self._syncs.read_to_end()
        self._refresh()
        self._again(self.settings.refresh_ms, self._refresh)
        self._again(_POLL_MS, self._poll)
        return False

    def _read_syncs(self) -> None:
        for record in self._source.read(SYNCS, self._sync_position):
            self._syncs.add(read_offset_sync(record.key or b"", record.value or b""))
            self._sync_position = Offset(record.offset + 1)

    def _refresh(self) -> None:
        """Create partitions that the target lacks, and start copying new partitions."""
        settings, target = self.settings, self._target
        counts = {
            topic: count for topic, count in self._source.counts().items() if is_replicated(topic, settings.target)
        }
        for topic, count in wanted_partitions(settings.source, counts, target.counts()).items():
            self._log_line(f"the mirror makes {topic} with {count} partitions on the target")
            target.create(topic, count)
        for partition in self._source.partitions():
            if partition.topic in counts and partition not in self.positions:
                # A committed offset is that of the last record copied.
                position = self.positions[partition] = Offset(self._committed.get(partition, -1) + 1)
                self._log_line(f"the mirror copies {partition} to {self.renamed(partition)} from offset {position} on")

    # Copying.

    def _poll(self) -> None:
        for partition in self.positions:
            if partition not in self._under_way:
                self._copy(partition)

    def _copy(self, partition: TopicPartition) -> None:
        """Write what is committed from the position on as one batch, and go on when that is acknowledged."""
        records = self._source.read(partition, self.positions[partition])
        if not records:
            return
        self._under_way.add(partition)
        offsets = tuple(record.offset for record in records)
        self.positions[partition] = Offset(offsets[-1] + 1)
        batch = copied_batch(records)
        self._target.write(self.renamed(partition), batch, lambda first: self._on_copied(partition, offsets, first))

    def _on_copied(self, partition: TopicPartition, offsets: tuple[Offset, ...], first: Offset) -> None:
        self._under_way.discard(partition)
        for place, upstream in enumerate(offsets):
            self._queue.copied(partition, upstream, Offset(first + place))
        self._copied[partition] = offsets[-1]
        self.synced.add(partition)
        self._send_syncs()
        self._copy(partition)

    def _send_syncs(self) -> None:
        for sync in self._queue.take():
            self._source.write(SYNCS, self._batch((sync.key, sync.value)), self._on_sync_written)

    def _on_sync_written(self, _: Offset) -> None:
        self._queue.sent()
        self._send_syncs()

    def _commit(self) -> None:
        """Commit the offsets that changed, and let the delayed syncs go once they are written."""
        changed = {each: offset for each, offset in self._copied.items() if self._committed.get(each) != offset}

        def committed(_: Offset) -> None:
            self._committed.update(changed)
            self._queue.on_commit()
            self._send_syncs()

        if changed:
            keys = {each: OffsetSync(each, Offset(0), Offset(0)).key for each in changed}
            records = [(keys[each], _OFFSET.pack(offset)) for each, offset in sorted(changed.items())]
            self._target.write(OFFSETS, self._batch(*records), committed)
        else:
            committed(Offset(0))

    # Groups.

    def _checkpoint(self) -> None:
        """Emit checkpoints of the source's groups, and set the offsets of groups that are idle on the target."""
        self._read_syncs()
        renamed = {partition: self.renamed(partition) for partition in self.positions}
        for group, committed in sorted(self._source.groups.items()):
            for checkpoint in self._store.emit(group, committed, self._syncs, renamed):
                self.checkpoints.append(checkpoint)
                self._target.write(CHECKPOINTS, self._batch((checkpoint.key, checkpoint.value)))
            present = self._target.groups.setdefault(group, {})
            present.update(self._store.offsets_to_set(group, present))

    def _batch(self, *records: tuple[bytes, bytes]) -> bytes:
        """Return a batch of the mirror's own records, from their keys and values."""
        cluster = self._source.cluster
        time_ms = TimeMs(cluster.options.wall_clock_ms + cluster.now_ms)
        return copied_batch([Record(Offset(0), time_ms, key, value) for key, value in records])


def copied_batch(records: Sequence[Record]) -> bytes:
    """Return one batch with the same records, to be written to any partition."""
    placed = [attrs.evolve(record, offset=Offset(place), sequence=-1) for place, record in enumerate(records)]
    return build_batch(BatchSpec(), placed)

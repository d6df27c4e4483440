"""The producers of a log: what each has written, and which transactions are not decided.

What it decides: what an append is to the producers in it (news, a duplicate, refused), how far readers of committed
records may read, and from which snapshot the state is rebuilt.

Goals, most important first:
1. Each answer, and each snapshot file, is Kafka's.
2. A log without producer ids pays nothing.

Constraints: the state speaks for the log up to `map_end_offset`, exclusive. What `analyze` prepares is not in the state
before `update`. A transaction is ongoing from its first record to its marker, and unreplicated from there until the
high watermark has passed the marker; the first offset of any of them is unstable. A producer is forgotten when nothing
came from it for the expiration time, unless its transaction is open.

How:
Snapshots are files named by the offset up to which they speak. Truncation goes back to the newest that is left in
range, and whoever owns the log replays what follows.

Example: a transaction of producer 7 from 10, its abort marker at 25: `first_unstable_offset` is 10, also after
`complete`, until `on_high_watermark_updated(26)`.

Left out: the metric of late transactions; state from tiered storage.

Source: Kafka storage/org.apache.kafka.storage.internals.log.ProducerStateManager, UnifiedLog, 4.0 (KIP-98).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sortedcontainers import SortedDict

from broker.ids import Offset, ProducerId
from broker.units import DAY_MS, DurationMs, TimeMs
from broker.values import value
from log.batches.batch import RecordBatch
from log.errors import CorruptSnapshotError, IllegalArgumentError
from log.producers.append import AppendOrigin, CompletedTransaction, ProducerAppend, StartedTransaction
from log.producers.entry import BatchMetadata, ProducerEntry
from log.producers.snapshot import SNAPSHOT_BYTES_MAX, encode_snapshot, parse_snapshot
from log.producers.snapshot_files import SnapshotFiles
from log.producers.table import ProducerTable
from log.storage.protocol import Storage

PRODUCER_ID_EXPIRATION_MS: Final = DurationMs(DAY_MS)
"""Kafka's default of producer.id.expiration.ms."""
_CLIENT: Final = AppendOrigin.CLIENT  # Named once, as in `log.batches.in_buffer`.


@value
class AppendAnalysis:
    """What a set of records would do. With a `duplicate`, nothing is to be written: that batch is in the log."""

    appends: tuple[ProducerAppend, ...]
    completed: tuple[CompletedTransaction, ...]
    duplicate: BatchMetadata | None = None


NOTHING_FOR_PRODUCERS: Final = AppendAnalysis((), ())


class ProducerState:
    """All producers of one partition's log."""

    def __init__(self, snapshots: SnapshotFiles, name: str, producer_id_expiration_ms: DurationMs) -> None:
        self._name = name
        self._expiration_ms = producer_id_expiration_ms
        self._producers = ProducerTable()
        self._ongoing: SortedDict[Offset, StartedTransaction] = SortedDict()
        self._unreplicated: SortedDict[Offset, CompletedTransaction] = SortedDict()
        self._snapshots = snapshots
        self._last_snapshot_offset = Offset(0)
        self.map_end_offset = Offset(0)

    def __repr__(self) -> str:
        return f"ProducerState({self._name!r}, {len(self._producers)} producers up to {self.map_end_offset})"

    @classmethod
    def open(
        cls,
        storage: Storage,
        directory: str,
        *,
        name: str,
        producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
    ) -> ProducerState:
        """Return an empty state, with the snapshots that `directory` holds; `name` stands in messages."""
        return cls(SnapshotFiles(storage, directory), name, DurationMs(producer_id_expiration_ms))

    @property
    def producers(self) -> tuple[ProducerEntry, ...]:
        """Every producer, in Kafka's order. Cost: a sort."""
        return self._producers.entries()

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a producer nor a transaction that waits for the high watermark."""
        return not self._producers and not self._unreplicated

    @property
    def first_unstable_offset(self) -> Offset | None:
        """The first offset of the oldest transaction that is ongoing or not yet replicated."""
        if not self._ongoing and not self._unreplicated:
            return None
        firsts: list[Offset] = [
            transactions.peekitem(0)[0] for transactions in (self._ongoing, self._unreplicated) if transactions
        ]
        return min(firsts)

    @property
    def first_undecided_offset(self) -> Offset | None:
        """The first offset of the oldest transaction that is ongoing."""
        return self._ongoing.peekitem(0)[0] if self._ongoing else None

    def last_entry(self, producer_id: ProducerId) -> ProducerEntry | None:
        """Return what is known of a producer."""
        return self._producers.get(producer_id)

    def analyze(self, batches: Iterable[RecordBatch], origin: AppendOrigin) -> AppendAnalysis:
        """Check an append and prepare what it does to the producers in it; the state stays as it is.

        Of a client's, the first batch that is in the log already ends the analysis. Raises what `ProducerAppend.append`
        raises.
        """
        appends: dict[ProducerId, ProducerAppend] = {}
        completed: list[CompletedTransaction] = []
        for batch in batches:
            if not batch.has_producer_id:
                continue
            entry = self._producers.get(batch.producer_id)
            if origin is _CLIENT and entry is not None:
                duplicate = entry.duplicate_of(batch)
                if duplicate is not None:
                    return AppendAnalysis(tuple(appends.values()), tuple(completed), duplicate)
            append = appends.get(batch.producer_id)
            if append is None:
                current = ProducerEntry(batch.producer_id) if entry is None else entry
                append = appends[batch.producer_id] = ProducerAppend(current, origin, self._name)
            ended = append.append(batch)
            if ended is not None:
                completed.append(ended)
        return AppendAnalysis(tuple(appends.values()), tuple(completed)) if appends else NOTHING_FOR_PRODUCERS

    def update(self, append: ProducerAppend) -> None:
        """Take over what was prepared, now that the log has the batches."""
        entry = self._producers.get(append.producer_id)
        if entry is None:
            self._producers.put(append.updated)
        else:
            entry.continue_with(append.updated)
        for started in append.started:
            self._ongoing[started.first_offset] = started

    def last_stable_offset_after(self, completed: CompletedTransaction) -> Offset:
        """Return the last stable offset once `completed` is: the oldest transaction of another producer, or its end."""
        for started in self._ongoing.values():
            if started.producer_id != completed.producer_id:
                return Offset(started.first_offset)
        return Offset(completed.last_offset + 1)

    def complete(self, completed: CompletedTransaction) -> None:
        """Note that a transaction is decided; it stays unstable until the high watermark has passed its marker.

        Raises IllegalArgumentError if it was not ongoing.
        """
        if self._ongoing.pop(completed.first_offset, None) is None:
            raise IllegalArgumentError(
                f"Attempted to complete transaction {completed} on partition {self._name} which was not started"
            )
        self._unreplicated[completed.first_offset] = completed

    def replay(self, batches: Iterable[RecordBatch]) -> None:
        """Take over batches that the log holds already, unchecked as replication's are."""
        analysis = self.analyze(batches, AppendOrigin.REPLICATION)
        for append in analysis.appends:
            self.update(append)
        for completed in analysis.completed:
            self.complete(completed)

    def update_map_end_offset(self, offset: int) -> None:
        """Say up to where, exclusive, the state speaks for the log."""
        self.map_end_offset = Offset(offset)

    def on_high_watermark_updated(self, high_watermark: int) -> None:
        """Forget the decided transactions whose markers lie below the high watermark."""
        self._drop_unreplicated_below(high_watermark)

    def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
        """Note that records below an offset are gone; the producers that wrote them stay known."""
        self._drop_unreplicated_below(log_start_offset)
        self.map_end_offset = max(self.map_end_offset, Offset(log_start_offset))
        latest = self._snapshots.latest_offset
        self._last_snapshot_offset = Offset(log_start_offset) if latest is None else latest

    def remove_expired(self, now_ms: TimeMs) -> None:
        """Forget the producers of which nothing came for the expiration time."""
        self._producers.remove(entry.producer_id for entry in self.producers if self._is_expired(entry, now_ms))

    def take_snapshot(self, *, sync: bool = True) -> str | None:
        """Write a snapshot at the map's end, unless the last one stands there; return the path of a new one."""
        if self.map_end_offset <= self._last_snapshot_offset:
            return None
        path = self._snapshots.write(self.map_end_offset, encode_snapshot(self.producers), sync=sync)
        self._last_snapshot_offset = self.map_end_offset
        return path

    def truncate_and_reload(self, log_start_offset: int, log_end_offset: int, now_ms: TimeMs) -> None:
        """Go back to the newest snapshot within the log, unless the state ends where the log does.

        Snapshots outside the log are removed, damaged ones too. What the log holds from `map_end_offset` on is for the
        caller to replay.
        """
        self._snapshots.remove_outside(log_start_offset, log_end_offset)
        if log_end_offset == self.map_end_offset:
            self.on_log_start_offset_incremented(log_start_offset)
            return
        self._forget_all()
        self._load_newest(Offset(log_start_offset), now_ms)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Forget everything and remove all snapshots."""
        self._forget_all()
        self._snapshots.remove_all()
        self._last_snapshot_offset = Offset(0)
        self.map_end_offset = Offset(offset)

    @property
    def latest_snapshot_offset(self) -> Offset | None:
        """The offset of the newest snapshot."""
        return self._snapshots.latest_offset

    def remove_stray_snapshots(self, segment_base_offsets: Iterable[int]) -> None:
        """Remove the snapshots without a segment at their offset; the last one stays if it is beyond all segments."""
        self._snapshots.remove_strays(segment_base_offsets)

    def mark_snapshot_for_deletion(self, offset: int) -> str | None:
        """Rename the snapshot at an offset to be deleted; return its new path, None if there is no such file."""
        return self._snapshots.mark_for_deletion(Offset(offset))

    def rename_directory(self, directory: str) -> None:
        """Say that the partition's directory was renamed."""
        self._snapshots.directory = directory

    def check_invariants(self) -> None:
        """Assert what always holds between appends."""
        for first_offset, started in self._ongoing.items():
            entry = self._producers.get(started.producer_id)
            assert entry is not None, started
            assert entry.current_txn_first_offset == first_offset == started.first_offset, (entry, started)
        for first_offset, completed in self._unreplicated.items():
            assert first_offset == completed.first_offset <= completed.last_offset, completed
            assert first_offset not in self._ongoing, completed

    def _load_newest(self, log_start_offset: Offset, now_ms: TimeMs) -> None:
        while (offset := self._snapshots.latest_offset) is not None:
            path = self._snapshots.path_of(offset)
            try:
                entries = parse_snapshot(self._snapshots.read(offset, size_bytes_max=SNAPSHOT_BYTES_MAX), source=path)
            except CorruptSnapshotError:
                self._snapshots.remove(offset)
                continue
            for entry in entries:
                if not self._is_expired(entry, now_ms):
                    self._load(entry)
            self._last_snapshot_offset = self.map_end_offset = offset
            return
        self._last_snapshot_offset = self.map_end_offset = log_start_offset

    def _load(self, entry: ProducerEntry) -> None:
        self._producers.put(entry)
        first_offset = entry.current_txn_first_offset
        if first_offset is not None:
            self._ongoing[first_offset] = StartedTransaction(entry.producer_id, first_offset)

    def _forget_all(self) -> None:
        self._producers.clear()
        self._ongoing.clear()
        self._unreplicated.clear()

    def _is_expired(self, entry: ProducerEntry, now_ms: TimeMs) -> bool:
        return entry.current_txn_first_offset is None and now_ms - entry.last_timestamp >= self._expiration_ms

    def _drop_unreplicated_below(self, offset: int) -> None:
        if self._unreplicated:
            for completed in tuple(self._unreplicated.values()):
                if completed.last_offset < offset:
                    del self._unreplicated[completed.first_offset]

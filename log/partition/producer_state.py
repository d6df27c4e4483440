"""Track the producers of a log and its undecided transactions.

The state speaks for the log up to `map_end_offset`, exclusive; what `analyze` prepares is not in it before `update`. A
transaction is ongoing from its first record to its marker, and unreplicated from there until the high watermark has
passed the marker; the first offset of any of them is unstable. A producer is forgotten when nothing came from it for
the expiration time, unless its transaction is open. Snapshots are files named by the offset up to which they speak;
truncation goes back to the newest snapshot left in range, and the caller replays the log from there.

Example: a transaction of producer 7 from 10, its abort marker at 25: `first_unstable_offset` is 10, also after
`complete`, until `on_high_watermark_updated(26)`.

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
from log.partition.producer_append import (
    REPLICATED_MARKER,
    AppendOrigin,
    CompletedTransaction,
    MarkerRule,
    ProducerAppend,
    StartedTransaction,
)
from log.partition.producer_entry import (
    SNAPSHOT_BYTES_MAX,
    BatchMetadata,
    ProducerEntry,
    ProducerTable,
    SnapshotFiles,
    encode_snapshot,
    parse_snapshot,
)
from log.storage.protocol import Storage

PRODUCER_ID_EXPIRATION_MS: Final = DurationMs(DAY_MS)
"""Kafka's default of producer.id.expiration.ms."""
_CLIENT: Final = AppendOrigin.CLIENT  # Named once, as in `log.batches.in_buffer`.


@value
class AppendAnalysis:
    """Hold an append's effects on producers; a `duplicate` is the batch in the log, and nothing is written."""

    appends: tuple[ProducerAppend, ...]
    completed: tuple[CompletedTransaction, ...]
    duplicate: BatchMetadata | None = None


NOTHING_FOR_PRODUCERS: Final = AppendAnalysis((), ())


class ProducerState:
    """Track all producers of one partition's log."""

    def __init__(self, snapshots: SnapshotFiles, name: str, producer_id_expiration_ms: DurationMs) -> None:
        self._name = name
        self._expiration_ms = producer_id_expiration_ms
        self._producers = ProducerTable()
        self._ongoing: SortedDict[Offset, StartedTransaction] = SortedDict()
        self._unreplicated: SortedDict[Offset, CompletedTransaction] = SortedDict()
        self._placed: set[Offset] = set()
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
        """Return an empty state with the snapshots in `directory`; error messages show `name`."""
        return cls(SnapshotFiles(storage, directory), name, DurationMs(producer_id_expiration_ms))

    @property
    def producers(self) -> tuple[ProducerEntry, ...]:
        """Return every producer in the order of Kafka's hash map. Cost: a sort."""
        return self._producers.entries()

    @property
    def is_empty(self) -> bool:
        """Return whether there is no producer and no transaction that waits for the high watermark."""
        return not self._producers and not self._unreplicated

    @property
    def first_unstable_offset(self) -> Offset | None:
        """Return the first offset of the oldest transaction that is open or not yet replicated."""
        if not self._ongoing and not self._unreplicated:
            return None
        firsts: list[Offset] = [
            transactions.peekitem(0)[0] for transactions in (self._ongoing, self._unreplicated) if transactions
        ]
        return min(firsts)

    @property
    def is_first_unstable_placed(self) -> bool:
        """Return whether the place in the file of the oldest unstable transaction is known, as it was just appended.

        A transaction read from a snapshot or replayed has its offset only.
        """
        return self.first_unstable_offset in self._placed

    def last_entry(self, producer_id: ProducerId) -> ProducerEntry | None:
        """Return the entry of a producer, None if it is unknown."""
        return self._producers.get(producer_id)

    def analyze(
        self, batches: Iterable[RecordBatch], origin: AppendOrigin, markers: MarkerRule = REPLICATED_MARKER
    ) -> AppendAnalysis:
        """Check an append and return its effects on the producers, without changing the state.

        A client's first duplicate batch ends the analysis. Raises what `ProducerAppend.append`
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
                append = appends[batch.producer_id] = ProducerAppend(current, origin, self._name, markers)
            ended = append.append(batch)
            if ended is not None:
                completed.append(ended)
        return AppendAnalysis(tuple(appends.values()), tuple(completed)) if appends else NOTHING_FOR_PRODUCERS

    def update(self, append: ProducerAppend, *, is_placed: bool = False) -> None:
        """Apply the effects of batches of a producer; `is_placed` says that they are being appended to the log."""
        entry = self._producers.get(append.producer_id)
        if entry is None:
            self._producers.put(append.updated)
        else:
            entry.continue_with(append.updated)
        for started in append.started:
            self._ongoing[started.first_offset] = started
            if is_placed:
                self._placed.add(started.first_offset)

    def last_stable_offset_after(self, completed: CompletedTransaction) -> Offset:
        """Return the last stable offset after `completed`: an older open transaction's start, or its end."""
        for started in self._ongoing.values():
            if started.producer_id != completed.producer_id:
                return Offset(started.first_offset)
        return Offset(completed.last_offset + 1)

    def complete(self, completed: CompletedTransaction) -> None:
        """Mark a transaction as decided; it stays unstable until the high watermark passes its marker.

        Raises IllegalArgumentError if it was not ongoing.
        """
        if self._ongoing.pop(completed.first_offset, None) is None:
            raise IllegalArgumentError(
                f"Attempted to complete transaction {completed} on partition {self._name} which was not started"
            )
        self._unreplicated[completed.first_offset] = completed

    def replay(self, batches: Iterable[RecordBatch]) -> None:
        """Apply batches that the log already holds, unchecked as on followers."""
        analysis = self.analyze(batches, AppendOrigin.REPLICATION)
        for append in analysis.appends:
            self.update(append)
        for completed in analysis.completed:
            self.complete(completed)

    def update_map_end_offset(self, offset: int) -> None:
        """Set the log offset, exclusive, that the state has reached."""
        self.map_end_offset = Offset(offset)

    def on_high_watermark_updated(self, high_watermark: int) -> None:
        """Forget decided transactions whose markers are below the high watermark."""
        self._drop_unreplicated_below(high_watermark)

    def on_log_start_offset_incremented(self, log_start_offset: int) -> None:
        """Forget replicated transactions below the new log start offset; producers stay known."""
        self._drop_unreplicated_below(log_start_offset)
        self.map_end_offset = max(self.map_end_offset, Offset(log_start_offset))
        latest = self._snapshots.latest_offset
        self._last_snapshot_offset = Offset(log_start_offset) if latest is None else latest

    def remove_expired(self, now_ms: TimeMs) -> None:
        """Forget producers without an append for producer.id.expiration.ms and without an open transaction."""
        self._producers.remove(entry.producer_id for entry in self.producers if self._is_expired(entry, now_ms))

    def take_snapshot(self, *, sync: bool = True) -> str | None:
        """Write a snapshot at the state's end offset unless there is one; return the path of a new file."""
        if self.map_end_offset <= self._last_snapshot_offset:
            return None
        path = self._snapshots.write(self.map_end_offset, encode_snapshot(self.producers), sync=sync)
        self._last_snapshot_offset = self.map_end_offset
        return path

    def truncate_and_reload(self, log_start_offset: int, log_end_offset: int, now_ms: TimeMs) -> None:
        """Reload the newest snapshot within the log, unless the state ends at the log's end.

        Snapshots outside the log are removed, damaged ones too. The caller replays the log from
        `map_end_offset` on.
        """
        self._snapshots.remove_outside(log_start_offset, log_end_offset)
        if log_end_offset == self.map_end_offset:
            self.on_log_start_offset_incremented(log_start_offset)
            return
        self._forget_all()
        self._load_newest(Offset(log_start_offset), now_ms)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Forget all producers, remove all snapshots, and continue at an offset."""
        self._forget_all()
        self._snapshots.remove_all()
        self._last_snapshot_offset = Offset(0)
        self.map_end_offset = Offset(offset)

    @property
    def latest_snapshot_offset(self) -> Offset | None:
        """Return the offset of the newest snapshot, None without one."""
        return self._snapshots.latest_offset

    def remove_stray_snapshots(self, segment_base_offsets: Iterable[int]) -> None:
        """Remove snapshots that match no segment's base offset; keep the newest if above all of them."""
        self._snapshots.remove_strays(segment_base_offsets)

    def mark_snapshot_for_deletion(self, offset: int) -> str | None:
        """Rename the snapshot at an offset to .deleted; return the new path, None if there is no such file."""
        return self._snapshots.mark_for_deletion(Offset(offset))

    def rename_directory(self, directory: str) -> None:
        """Use the new path of the renamed partition directory."""
        self._snapshots.directory = directory

    def check_invariants(self) -> None:
        """Assert the invariants between appends."""
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
                    self.load(entry)
            self._last_snapshot_offset = self.map_end_offset = offset
            return
        self._last_snapshot_offset = self.map_end_offset = log_start_offset

    def load(self, entry: ProducerEntry) -> None:
        """Add a producer, with its open transaction, as a snapshot holds it."""
        self._producers.put(entry)
        first_offset = entry.current_txn_first_offset
        if first_offset is not None:
            self._ongoing[first_offset] = StartedTransaction(entry.producer_id, first_offset)

    def _forget_all(self) -> None:
        self._producers.clear()
        self._ongoing.clear()
        self._unreplicated.clear()
        self._placed.clear()

    def _is_expired(self, entry: ProducerEntry, now_ms: TimeMs) -> bool:
        return entry.current_txn_first_offset is None and now_ms - entry.last_timestamp >= self._expiration_ms

    def _drop_unreplicated_below(self, offset: int) -> None:
        if self._unreplicated:
            for completed in tuple(self._unreplicated.values()):
                if completed.last_offset < offset:
                    del self._unreplicated[completed.first_offset]
                    self._placed.discard(completed.first_offset)

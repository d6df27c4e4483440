"""Check one log under retention and compaction (K1, K2, K5 to K7, and I12 in its form for such logs).

What each means on a compacted log
- K5: an offset that is not there, at or above the log's start and below its end, has a later committed record of its
  key, or is a tombstone. A log that was copied from a compacted one has its gaps from there; the later record need not
  be copied yet. So the last record of each key below the high watermark is on every replica that has got that far.
- K6: each remaining record equals the record at its offset before the cleaning; offsets rise.
- K7: a tombstone that is the last of its key is gone only when delete.retention.ms is over since a compaction, on any
  replica, first met it and left it. After a jump of a broker's clock K7 is not checked, as the clocks disagree.
- I12: the cache rises in both columns and gives each record its epoch. Where records at the start of an epoch are
  removed, a copied log may begin the epoch later. Records before the cache's first offset are allowed after a crash
  undid a log start that was not yet checkpointed: the truncated cache was written, and Kafka does not restore the entry
  either.

After an unclean election the last record of a key is uncertain; K5 and K7 are not checked then.

Source: Kafka core LogCleaner and its testing invariants (LogCleanerParameterizedIntegrationTest); KIP-534 for the
horizon; KAFKA-13194 for the bound by the high watermark.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise

from broker.units import DurationMs
from log.storage.checkpoints import EpochEntry
from replication.checkers.observed_log import LogChange
from replication.checkers.replicas import Broken, check_bounds
from replication.checkers.retention_model import RetainedObservedLog, RetainedReferenceLog
from replication.checkers.view import NodeView


def check_retained_log(
    reference: RetainedReferenceLog,
    node: NodeView,
    observed: RetainedObservedLog,
    change: LogChange,
    agreed_before: int,
) -> Iterator[Broken]:
    """Check one log after a change; `agreed_before` is its agreement before it was truncated."""
    reference.note_committed()
    yield from check_bounds(reference, node, observed, change, agreed_before)
    yield from _check_start(reference, observed)
    is_cleaned = observed.cleaning_count != observed.log.cleaning_count
    if is_cleaned:
        observed.cleaning_count = observed.log.cleaning_count
        yield from _check_cleaned(observed)
    yield from check_gaps(reference, observed)
    cache = observed.log.log.epochs
    if cache is not None:
        is_other = change.is_cut or cache.entries != observed.epochs
        yield from _check_epochs(observed, cache.entries, 0 if is_other else change.first_offset)
        observed.epochs = cache.entries


def _check_start(reference: RetainedReferenceLog, observed: RetainedObservedLog) -> Iterator[Broken]:
    log = observed.log.log
    start = log.log_start_offset
    if start > max(len(reference.committed), reference.former_end):
        yield "K1", f"broker {observed.broker} has a log from {start} on, committed is up to {len(reference.committed)}"
    announced = reference.announced_start
    if start > max(log.segments[0].base_offset, announced):
        yield "K2", f"broker {observed.broker} has a log from {start} on, nobody asked for more than {announced}"


def _check_cleaned(observed: RetainedObservedLog) -> Iterator[Broken]:
    """Compare the records that a cleaning left with the records before it, and note the missing records."""
    due = int(observed.log.log.log_start_offset)
    for batch in observed.held():
        for held in batch.records:
            if held.is_tombstone:
                observed.tombstones.append(held.entry.value)
            if held.offset < due - 1:
                yield "K6", f"broker {observed.broker} has offset {held.offset} behind {due - 1}"
            elif (
                held.offset >= observed.truth.deletable_end
                and held.offset not in observed.gaps
                and observed.entries[held.offset] != held.entry
            ):
                yield "K6", f"broker {observed.broker}: offset {held.offset} differs from what was written"
            _note_gaps(observed, due, held.offset)
            due = max(due, held.offset + 1)
        _note_gaps(observed, due, batch.next_offset)
        due = max(due, batch.next_offset)


def _note_gaps(observed: RetainedObservedLog, start: int, end: int) -> None:
    new = [offset for offset in range(start, end) if offset not in observed.gaps]
    observed.gaps.update(new)
    observed.new_gaps += new


def check_gaps(reference: RetainedReferenceLog, observed: RetainedObservedLog) -> Iterator[Broken]:
    """Check that each offset newly found missing may be missing (K5).

    One missing last record is Kafka's own weakness: the leader dates an epoch by its first record that compaction has
    left, so a follower that holds an uncommitted record of the epoch before in the place of a compacted one does not
    truncate (`RetainedReferenceLog.skips_epoch_start`). Its cleaner then lets that record supersede the last
    committed one of the same key (Cleaner.buildOffsetMap, 4.4.0). Only a log that itself holds such a record, at a
    later offset and of the same key, may lack the committed one.
    """
    log = observed.log.log
    end = min(log.log_end_offset, len(reference.committed))
    for offset in observed.new_gaps:
        may_go = reference.is_superseded(offset) or reference.is_tombstone(offset)
        # What superseded a record below the end of an ended history may have been lost with that history.
        if max(log.log_start_offset, reference.former_end) <= offset < end and not may_go:
            observed.agree(reference.committed)
            record = reference.record_at(offset)
            if record is None or observed.stale.get(record.key, -1) <= offset:
                yield "K5", f"broker {observed.broker} has no offset {offset}, the last of its key"


def early_tombstones(
    reference: RetainedReferenceLog, observed: RetainedObservedLog, cluster: tuple[int, DurationMs]
) -> Iterator[Broken]:
    """Yield the tombstones that went before delete.retention.ms was over since a compaction left them (K7).

    `cluster` gives the time and delete.retention.ms.
    """
    now_ms, kept_ms = cluster
    log = observed.log.log
    for offset in observed.new_gaps if kept_ms else ():
        record = reference.record_at(offset)
        if (
            record is None
            or offset < max(log.log_start_offset, reference.former_end)
            or reference.is_superseded(offset)
        ):
            continue
        met_ms = reference.cleaned_ms.get(record.entry.value, now_ms)
        if now_ms - met_ms < kept_ms:
            yield "K7", f"broker {observed.broker} has no tombstone at {offset}, met {now_ms - met_ms} ms ago"


def _check_epochs(observed: RetainedObservedLog, cached: tuple[EpochEntry, ...], since: int) -> Iterator[Broken]:
    """Check the epoch cache against the remaining records from `since` on."""
    entries, log, broker = observed.entries, observed.log.log, observed.broker
    starts = [(entry.epoch, entry.start_offset) for entry in cached]
    for (epoch, start), (next_epoch, next_start) in pairwise(starts):
        if epoch >= next_epoch or start >= next_start:
            yield "I12", f"broker {broker} has epochs {starts}"
    if starts and starts[-1][1] > log.log_end_offset:
        yield "I12", f"broker {broker} has epochs {starts} past its end {log.log_end_offset}"
    offsets = [start for _, start in starts]
    for offset in range(max(since, log.log_start_offset, observed.truth.deletable_end), len(entries)):
        if offset in observed.gaps:
            continue
        place = bisect_right(offsets, offset)
        known = starts[place - 1][0] if place else -1
        if not place and offset < observed.start_max:
            continue
        if known != entries[offset].epoch:
            yield "I12", f"broker {broker}: offset {offset} is of epoch {entries[offset].epoch}, the cache says {known}"
            return

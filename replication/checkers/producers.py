"""Check that a log knows its producers: an account of each producer's last sequence number, kept from batches (I21).

It is kept for each log alone, record by record, and truncated with the log; so it says what a leader may accept, what
it must not refuse, and what a log must know after it was cut or opened again. A producer whose last record lies below
the log start may be forgotten.

Source: Kafka storage ProducerStateManager, ProducerAppendInfo and UnifiedLog.analyzeAndValidateProducerState, 4.4.0;
KIP-98, KIP-360.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from broker.ids import ProducerId
from log.record import increment_sequence
from replication.checkers.observed_log import Entry, Last, LogChange, ObservedLog

NO_SEQUENCE: Final = -1
_FORGOTTEN: Final = -1


def check_producers(observed: ObservedLog, change: LogChange) -> Iterator[str]:
    """Bring the account of a log's producers up to date, and yield what the log does not know as it should."""
    entries = observed.entries
    if not change.is_cut and all(entry.producer_id < 0 for entry in entries[change.first_offset :]):
        return
    start, producers = observed.read_from, observed.producers
    if change.is_cut:
        producers.clear()
        for _ in _followed(observed, 0, change.first_offset):
            pass
    changed = producers if change.is_cut else {entry.producer_id for entry in entries[change.first_offset :]}
    for what in _followed(observed, change.first_offset, len(entries)):
        yield f"broker {observed.broker} has {what}"
    state = observed.log.log.producers
    for producer_id in sorted(changed):
        last = producers.get(producer_id)
        if last is None or last.offset < start:
            continue
        known = state.last_entry(ProducerId(producer_id))
        sequence = NO_SEQUENCE if known is None else known.last_sequence
        if sequence != last.sequence:
            yield f"broker {observed.broker} knows sequence {sequence} of producer {producer_id}, its last is {last}"
    if change.is_cut and start == 0:
        unknown = sorted(each.producer_id for each in state.producers if each.producer_id not in producers)
        if unknown:
            yield f"broker {observed.broker} knows producers {unknown}, of which its log has no record"


def _followed(observed: ObservedLog, begin: int, end: int) -> Iterator[str]:
    """Add a log's entries to its account; yield each sequence number that does not follow its producer's last one.

    Of a record that compaction has removed, the log may know the number or not.
    """
    producers, gaps, start = observed.producers, observed.gaps, observed.read_from
    for offset in range(begin, end):
        entry = observed.entries[offset]
        if entry.producer_id < 0:
            continue
        last = producers.get(entry.producer_id)
        if last is not None and not _follows(entry, last) and last.offset >= start and offset not in gaps:
            yield f"sequence {entry.sequence} of producer {entry.producer_id} at {offset} after {last}"
        place = _FORGOTTEN if offset in gaps else offset
        producers[entry.producer_id] = Last(entry.sequence, place, entry.producer_epoch)


def _follows(entry: Entry, last: Last) -> bool:
    """Return whether a record follows its producer's last one; a newer producer epoch begins at sequence 0."""
    if entry.producer_epoch != last.epoch:
        return entry.producer_epoch > last.epoch and entry.sequence == 0
    return entry.sequence == increment_sequence(last.sequence, 1)


def must_accept(producers: Mapping[int, Last], entry: Entry, start: int) -> bool:
    """Return whether a leader's log in this state must take a record that is not in it yet."""
    last = producers.get(entry.producer_id)
    if last is None:
        return start == 0
    return last.offset >= start and _follows(entry, last)

"""Count what retention and compaction removed by the end of a run, and check what consumers saw of each key.

A record can be read if the leader's log has it. A consumer that is reset to an earlier offset, as after a truncation,
does not violate K8.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from broker.units import TimeMs
from replication.checkers.catalogue import Finding
from replication.checkers.clients import ConsumedRecord, Write
from replication.checkers.reference_log import ReferenceLog
from replication.checkers.retention_model import RetainedObservedLog, RetainedReferenceLog
from replication.rules.produce import Fate


@attrs.frozen
class RetentionReport:
    """Count acknowledged records by outcome: expired, superseded, and missed by consumers.

    `unread_count` counts records that expired before a consumer could read them, each for each such consumer.
    """

    expired_count: int
    superseded_count: int
    unread_count: int


def retention_report(
    writes: Sequence[Write], consumed_records: Sequence[ConsumedRecord], references: Mapping[int, ReferenceLog]
) -> RetentionReport:
    """Return the counts of one run. Cost: linear in writes, logs and consumed records."""
    acked = {write.value for write in writes if write.fate is Fate.ACKED}
    expired = superseded = 0
    for _, reference in sorted(references.items()):
        observed = None if reference.state is None else reference.observed_logs.get(reference.state.leader)
        if isinstance(observed, RetainedObservedLog):
            start = observed.log.log.log_start_offset
            for offset, entry in enumerate(observed.entries):
                if entry.value in acked:
                    expired += offset < start
                    superseded += offset >= start and offset in observed.gaps
    return RetentionReport(expired, superseded, sum(_unread(consumed_records)))


def _unread(consumed_records: Sequence[ConsumedRecord]) -> Iterator[int]:
    """Yield the number of offsets that each reset skipped."""
    due: dict[tuple[int, int], int] = {}
    for seen in consumed_records:
        place = (seen.consumer, seen.partition)
        if seen.is_reset:
            yield max(0, seen.offset - due.get(place, 0))
        due[place] = seen.offset + 1


def check_keys(
    consumed_records: Sequence[ConsumedRecord], references: Mapping[int, ReferenceLog], now_ms: TimeMs
) -> list[Finding]:
    """Return the findings of consumers that saw an older record of a key after a newer one (K8)."""
    newest: dict[tuple[int, int], dict[bytes, int]] = {}
    broken = []
    for seen in consumed_records:
        reference = references.get(seen.partition)
        if not isinstance(reference, RetainedReferenceLog):
            continue
        record = reference.known.get(seen.value)
        if record is None or not record.key:
            continue
        place = (seen.consumer, seen.partition)
        if seen.is_reset:
            newest.pop(place, None)
        offsets = newest.setdefault(place, {})
        before = offsets.get(record.key, -1)
        if seen.offset < before:
            what = f"consumer {seen.consumer} saw {record.key.decode()} at {seen.offset} after {before}"
            broken.append(Finding("K8", now_ms, seen.partition, what))
        offsets[record.key] = seen.offset
    return broken

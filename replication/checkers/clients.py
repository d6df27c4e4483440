"""Check the history that producers and consumers saw, against itself and against the logs at the end.

The checks use only the clients' history and the final logs. After a reset of its position a consumer is checked anew.

Source: Jepsen's Kafka workload (jepsen.tests.kafka): lost-write, inconsistent-offsets, duplicate, poll-skip,
nonmonotonic-poll, and its reports on Redpanda 21.10.1 and Bufstream 0.1.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from broker.ids import Offset
from broker.units import TimeMs
from broker.values import value
from replication.checkers.catalogue import Finding
from replication.checkers.reference_log import ReferenceLog
from replication.rules.produce import ACKS_ALL, Fate


@attrs.define
class Write:
    """Hold one value of a producer; `offset` is known if it was acknowledged with acks=1 or all.

    `epoch` is the leader epoch of the record in the log of the leader that answered, where that is noted.
    """

    value: int
    partition: int
    acks: int
    sent_ms: TimeMs
    fate: Fate | None = None
    answered_ms: TimeMs = attrs.field(default=TimeMs(0))
    offset: Offset = attrs.field(default=Offset(-1))
    epoch: int = -1


@value
class ConsumedRecord:
    """Hold one record received by a consumer; `is_reset`: the consumer's offset was reset just before."""

    consumer: int
    partition: int
    offset: Offset
    value: int
    seen_ms: TimeMs
    is_reset: bool


Allows = Callable[[int, int], bool]
"""A function that returns whether an exception is allowed at an offset of a partition."""


def _nothing(_partition: int, _offset: int) -> bool:
    return False


def check_history(
    writes: Sequence[Write],
    consumed_records: Sequence[ConsumedRecord],
    references: Mapping[int, ReferenceLog],
    now_ms: TimeMs,
    *,
    may_skip: Allows = _nothing,
    is_expired: Allows = _nothing,
) -> list[Finding]:
    """Return the findings of a history: events that no correct cluster shows its clients.

    `may_skip` says which offsets a consumer may skip, as compaction may have removed their records. `is_expired` says
    which offsets' producers a leader may have forgotten, so that it accepts any sequence (KIP-360).

    Cost: linear in the history, but for one sort.
    """
    broken = list(_reads(consumed_records, references, may_skip, is_expired))
    for write in writes:
        reference = references.get(write.partition)
        if write.fate is Fate.FAILED and reference is not None and write.value in reference.appended:
            broken.append(("I20", write.partition, f"value {write.value} failed for certain and was written"))
    for partition, reference in sorted(references.items()):
        safe = [write for write in writes if write.acks == ACKS_ALL and write.fate is Fate.ACKED]
        acked = [write for write in safe if write.partition == partition]
        broken.extend(("I22", partition, what) for what in _real_time(_kept(acked, reference)))
    return [Finding(code, now_ms, partition, what) for code, partition, what in broken]


def _reads(
    consumed_records: Sequence[ConsumedRecord],
    references: Mapping[int, ReferenceLog],
    may_skip: Allows,
    is_expired: Allows,
) -> Iterator[tuple[str, int, str]]:
    """Yield what is wrong with the records that consumers saw: code, partition and words."""
    positions: dict[tuple[int, int], int] = {}
    offsets: dict[int, tuple[int, int]] = {}
    for seen in consumed_records:
        place = (seen.consumer, seen.partition)
        due = positions.get(place, 0)
        positions[place] = seen.offset + 1
        saw = f"consumer {seen.consumer} saw offset {seen.offset}"
        if not seen.is_reset:
            if seen.offset < due:
                yield "H1", seen.partition, f"{saw} after {due - 1}"
            elif not all(may_skip(seen.partition, offset) for offset in range(due, seen.offset)):
                yield "H3", seen.partition, f"{saw}, {due} was next"
        first = offsets.setdefault(seen.value, (seen.partition, seen.offset))
        if first == (seen.partition, seen.offset) or _is_former(references, first, seen):
            continue
        # Once the first is deleted a restarted leader may write it again: it reads no producer snapshot at or below the
        # log start (ProducerStateManager.truncateAndReload, 4.3.1).
        if not is_expired(seen.partition, min(first[1], seen.offset)):
            yield "H2", seen.partition, f"value {seen.value} was seen at offsets {first[1]} and {seen.offset}"


def _is_former(references: Mapping[int, ReferenceLog], first: tuple[int, int], seen: ConsumedRecord) -> bool:
    """Return whether one of the two places of a value may be of a history that an unclean election ended."""
    return any(
        partition in references and references[partition].is_former(offset, seen.value)
        for partition, offset in (first, (seen.partition, seen.offset))
    )


def _kept(acked: Sequence[Write], reference: ReferenceLog) -> Sequence[Write]:
    """Return the writes that no unclean election has removed; what takes their place begins at their offsets anew.

    A value whose acknowledged place was removed and that lies elsewhere now was left over from another attempt.
    """
    if not reference.losses:
        return acked
    committed, former = {entry.value for entry in reference.committed}, reference.former
    return [write for write in acked if write.value in committed and (write.offset, write.value) not in former]


def _real_time(acked: Sequence[Write]) -> Iterator[str]:
    """Yield each write whose offset is not above that of every write that was answered before it was sent."""
    answered = sorted(acked, key=lambda write: write.answered_ms)
    sent = sorted(acked, key=lambda write: write.sent_ms)
    place, last_offset = 0, -1
    for write in sent:
        while place < len(answered) and answered[place].answered_ms < write.sent_ms:
            last_offset = max(last_offset, answered[place].offset)
            place += 1
        if write.offset <= last_offset:
            yield f"value {write.value} lies at {write.offset}, though {last_offset} was answered before it was sent"

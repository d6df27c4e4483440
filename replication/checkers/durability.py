"""Find the acknowledged records that are lost, and the event that removed each of them.

The check reads the logs themselves. A record can be read if it is in the leader's log; while there is no leader, if it
is in the log of a replica that can be elected cleanly. acks=1 promises only the leader's log; the loss of such a write
is reported apart and is no fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from replication.checkers.clients import Write
from replication.checkers.elections import Ground
from replication.checkers.reference_log import ReferenceLog
from replication.rules.produce import ACKS_ALL, Fate

_UNKNOWN: Final = -1
"""The value of a record that is no longer remembered."""
_KINDS: Final = {
    Ground.LAST_KNOWN: "last known leader",
    Ground.SETTING: "unclean election",
    Ground.ORDER: "requested unclean election",
    Ground.CANCELLED: "cancelled move",
}


@attrs.frozen
class LostRecord:
    """Describe an acknowledged record that no consumer can read any more.

    `cause` names the election that lost the record and what allowed it, "" if no allowed election explains the loss.
    `event` removed the record from the last broker that had it, "" if a broker still has it.
    """

    value: int
    partition: int
    offset: int
    acks: int
    cause: str
    event: str

    @property
    def kind(self) -> str:
        """Return the kind of the cause in two or three words, such as "unclean election"."""
        if not self.cause:
            return "lost log ends"
        return next((kind for ground, kind in _KINDS.items() if self.cause.endswith(ground.value)), "retry")

    @property
    def is_anywhere(self) -> bool:
        """Return whether some broker still has the record."""
        return not self.event

    def __str__(self) -> str:
        what = f"value {self.value}, partition {self.partition}, offset {self.offset}, acks {self.acks}"
        return ": ".join(part for part in (what, self.cause, self.event or "a broker still has it") if part)


@attrs.frozen
class DurabilityReport:
    """Hold the number of acknowledged records, and those of them that are lost.

    `acked_count` counts those with acks=all, `acked_by_one_count` those with acks=1.
    """

    acked_count: int
    acked_by_one_count: int
    lost: tuple[LostRecord, ...]

    @property
    def lost_by_all(self) -> tuple[LostRecord, ...]:
        """Return the lost records that were acknowledged with acks=all."""
        return tuple(record for record in self.lost if record.acks == ACKS_ALL)

    @property
    def lost_by_one(self) -> tuple[LostRecord, ...]:
        """Return the lost records acknowledged with acks=1, a promise of the leader's log only."""
        return tuple(record for record in self.lost if record.acks != ACKS_ALL)

    @property
    def lost_for_no_reason(self) -> tuple[LostRecord, ...]:
        """Return the lost acks=all records that no allowed cause explains."""
        return tuple(record for record in self.lost_by_all if not record.cause)


def loss_lines(lost: Sequence[LostRecord]) -> list[str]:
    """Return one line for each group of records of a partition that the same event removed."""
    groups: dict[tuple[int, int, str, str], list[LostRecord]] = {}
    for record in lost:
        groups.setdefault((record.acks, record.partition, record.cause, record.event), []).append(record)
    lines = []
    for (acks, partition, cause, event), records in sorted(groups.items()):
        offsets = sorted(record.offset for record in records)
        what = f"{len(records)} of partition {partition} (acks {acks}), offsets {offsets[0]} to {offsets[-1]}"
        lines.append(": ".join(part for part in (what, cause, event or "a broker still has them") if part))
    return lines


def account(writes: Sequence[Write], references: Mapping[int, ReferenceLog]) -> DurabilityReport:
    """Return the fate of every acknowledged write. Cost: linear in writes and logs."""
    readable = {partition: _readable(reference) for partition, reference in references.items()}
    anywhere = {
        partition: {entry.value for observed in reference.observed_logs.values() for entry in observed.entries}
        for partition, reference in references.items()
    }
    causes = {value: cause for reference in references.values() for value, cause in reference.ended.items()}
    for reference in references.values():
        causes.update((value, loss.cause) for loss in reference.losses for value in loss.values)
    acked = [write for write in writes if write.fate is Fate.ACKED]
    lost = []
    for write in acked:
        partition = write.partition
        known = references.get(partition)
        if known is not None and (known.is_deleted or known.is_settled(write)):
            continue
        if write.value not in readable.get(partition, ()):
            event = ""
            if write.value not in anywhere.get(partition, ()):
                event = "never seen" if known is None else known.gone.get(write.value, "never seen")
            cause = causes.get(write.value, "")
            lost.append(LostRecord(write.value, partition, write.offset, write.acks, cause, event))
    counts = Counter(write.acks for write in acked)
    for partition, reference in sorted(references.items()):
        counts.update(reference.settled.acked_counts)
        if not reference.is_deleted:
            lost += [
                LostRecord(_UNKNOWN, partition, offset, acks, cause, "settled before")
                for offset, acks, cause in reference.settled.lost
            ]
    by_all = counts.pop(ACKS_ALL, 0)
    return DurabilityReport(by_all, counts.total(), tuple(lost))


def _readable(reference: ReferenceLog) -> set[int]:
    """Return the values that can be read in a partition, now or after a clean election."""
    state = reference.state
    if state is None:
        return set()
    sources = (state.leader,) if state.has_leader else (*state.isr, *state.elr)
    observed_logs = [reference.observed_logs[broker] for broker in sources if broker in reference.observed_logs]
    return {entry.value for observed in observed_logs for entry in observed.entries}

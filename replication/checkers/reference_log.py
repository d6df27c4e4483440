"""Keep the committed records of one partition, apart from the model.

What it decides: which records count as committed: the records below any leader's high watermark since the last unclean
election. No clean election may lose this prefix.

Constraints: the prefix only grows, except at an unclean election, which truncates it to the records that the new leader
has; the truncated records are noted as lost, with the cause.

How: `matching` holds, for each offset and leader epoch, the record and the epoch before it, from the first replica that
had it; every other replica must have the same (log matching by induction).
"""

from __future__ import annotations

import attrs

from broker.ids import BrokerId
from broker.units import TimeMs
from replication.checkers.observed_log import Entry, ObservedLog
from replication.rules.partition import AlterPartitionRequest, PartitionState


@attrs.frozen
class Loss:
    """Describe a loss: an unclean election removed the committed records from `start_offset` on."""

    at_ms: TimeMs
    partition: int
    start_offset: int
    values: tuple[int, ...]
    cause: str


class ReferenceLog:
    """Hold the committed records of one partition, and the checkers' knowledge of its replicas."""

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.state: PartitionState | None = None
        self.committed: list[Entry] = []
        self.observed_logs: dict[BrokerId, ObservedLog] = {}
        self.leaders: dict[int, BrokerId] = {}
        self.matching: dict[tuple[int, int], tuple[Entry, int]] = {}
        self.appended: set[int] = set()
        self.losses: list[Loss] = []
        self.gone: dict[int, str] = {}
        """The event that last removed each value from a broker."""
        self.asked: dict[BrokerId, AlterPartitionRequest | None] = {}
        """The pending change of the ISR that each leader was last seen with."""
        self.moved_away: dict[BrokerId, int] = {}
        """The partition epoch in which the controller last took each broker out of the replicas: its log is deleted."""
        self.dropped: dict[BrokerId, int] = {}
        """The partition epoch of the last AlterPartition request that a leader gave up after a metadata change."""
        self.clean_from_epoch = 0
        """The first leader epoch after the last unclean election; leaders of earlier epochs are not checked."""

    def learn(self, state: PartitionState) -> None:
        """Record the controller's new state of the partition."""
        before = () if self.state is None else self.state.replicas
        self.moved_away.update((broker, state.partition_epoch) for broker in before if broker not in state.replicas)
        self.state = state

    def give_up(self, keep: int, at_ms: TimeMs, leader_epoch: int, cause: str) -> None:
        """Truncate the committed records to the first `keep`, as an unclean leader has no more of them."""
        lost = self.committed[keep:]
        del self.committed[keep:]
        self.clean_from_epoch = leader_epoch
        values = tuple(entry.value for entry in lost)
        self.losses.append(Loss(at_ms, self.partition, keep, values, cause))

    @property
    def is_tainted(self) -> bool:
        """Return whether an unclean election has happened."""
        return self.clean_from_epoch > 0

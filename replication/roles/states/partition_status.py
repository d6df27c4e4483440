"""Define a partition's states at the controller as two tables: leadership and reassignment.

After an unclean election a partition is RECOVERING until a leader reports that it has recovered; a further election
does not end the recovery.

Source: Kafka metadata PartitionRegistration, LeaderRecoveryState and PartitionReassignmentReplicas, 4.3.1; KIP-455,
KIP-704.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from broker.ids import BrokerId
from broker.machines import step
from replication.rules.partition import PartitionState


class PartitionStatus(enum.Enum):
    """Name the states of a partition's leadership: no leader, an unrecovered leader, or a recovered one."""

    ABSENT = enum.auto()
    """The partition does not exist."""

    ONLINE = enum.auto()
    """The partition has a leader."""

    RECOVERING = enum.auto()
    """The partition has a leader that was elected uncleanly and has not reported its recovery."""

    OFFLINE = enum.auto()
    """The partition has no leader."""

    OFFLINE_RECOVERING = enum.auto()
    """The partition has no leader, and its last one had not recovered."""


class PartitionStatusInput(enum.Enum):
    """Name the events of a partition's leadership, derived from a change of the partition."""

    CREATED = enum.auto()
    """The partition is created, with a leader."""

    ELECTED = enum.auto()
    """A leader is elected that has every committed record."""

    ELECTED_UNCLEANLY = enum.auto()
    """A leader is elected that may lack records, and is marked RECOVERING."""

    LEADER_LOST = enum.auto()
    """The partition loses its leader, and no replica can be elected."""

    RECOVERED = enum.auto()
    """The leader reports that it has recovered."""

    CHANGED = enum.auto()
    """Any other change: of the ISR, the ELR, the replicas."""

    DELETED = enum.auto()
    """The partition's topic is deleted."""


_S, _I = PartitionStatus, PartitionStatusInput

PARTITION_STATUS_TRANSITIONS: Final[Mapping[tuple[PartitionStatus, PartitionStatusInput], PartitionStatus]] = (
    MappingProxyType(
        {
            (_S.ABSENT, _I.CREATED): _S.ONLINE,
            (_S.ONLINE, _I.ELECTED): _S.ONLINE,
            (_S.ONLINE, _I.ELECTED_UNCLEANLY): _S.RECOVERING,
            (_S.ONLINE, _I.LEADER_LOST): _S.OFFLINE,
            (_S.ONLINE, _I.CHANGED): _S.ONLINE,
            (_S.RECOVERING, _I.ELECTED): _S.RECOVERING,
            (_S.RECOVERING, _I.ELECTED_UNCLEANLY): _S.RECOVERING,
            (_S.RECOVERING, _I.LEADER_LOST): _S.OFFLINE_RECOVERING,
            (_S.RECOVERING, _I.RECOVERED): _S.ONLINE,
            (_S.RECOVERING, _I.CHANGED): _S.RECOVERING,
            (_S.OFFLINE, _I.ELECTED): _S.ONLINE,
            (_S.OFFLINE, _I.ELECTED_UNCLEANLY): _S.RECOVERING,
            (_S.OFFLINE, _I.CHANGED): _S.OFFLINE,
            (_S.OFFLINE_RECOVERING, _I.ELECTED): _S.RECOVERING,
            (_S.OFFLINE_RECOVERING, _I.ELECTED_UNCLEANLY): _S.RECOVERING,
            (_S.OFFLINE_RECOVERING, _I.CHANGED): _S.OFFLINE_RECOVERING,
            **{(state, _I.DELETED): _S.ABSENT for state in PartitionStatus if state is not _S.ABSENT},
        }
    )
)
"""Every step of a partition's status; any other step is a bug of the controller."""


class MoveState(enum.Enum):
    """State whether a partition is being reassigned."""

    SETTLED = enum.auto()
    """The partition is not being reassigned."""

    MOVING = enum.auto()
    """Replicas of the partition are being added or removed."""


class MoveInput(enum.Enum):
    """Name the events of a partition's reassignment, derived from a change of the partition."""

    STARTED = enum.auto()
    """An operator assigns other replicas."""

    REORDERED = enum.auto()
    """An operator assigns some or all of the present replicas, all in sync; the change is complete at once."""

    RETARGETED = enum.auto()
    """An operator assigns other replicas again while a reassignment is in progress."""

    COMPLETED = enum.auto()
    """All added replicas are in sync, and the replicas to be removed are removed."""

    CANCELLED = enum.auto()
    """An operator cancels the reassignment."""

    UNTOUCHED = enum.auto()
    """Any change that does not affect the reassignment."""


_M, _N = MoveState, MoveInput

MOVE_TRANSITIONS: Final[Mapping[tuple[MoveState, MoveInput], MoveState]] = MappingProxyType(
    {
        (_M.SETTLED, _N.STARTED): _M.MOVING,
        (_M.SETTLED, _N.REORDERED): _M.SETTLED,
        (_M.SETTLED, _N.UNTOUCHED): _M.SETTLED,
        (_M.MOVING, _N.RETARGETED): _M.MOVING,
        (_M.MOVING, _N.COMPLETED): _M.SETTLED,
        (_M.MOVING, _N.CANCELLED): _M.SETTLED,
        (_M.MOVING, _N.UNTOUCHED): _M.MOVING,
    }
)
"""Every step of a reassignment; any other step is a bug of the controller."""


def partition_status_of(partition: PartitionState | None) -> PartitionStatus:
    """Return the status of a partition; None stands for a partition that does not exist."""
    if partition is None:
        return PartitionStatus.ABSENT
    if partition.has_leader:
        return PartitionStatus.RECOVERING if partition.recovering else PartitionStatus.ONLINE
    return PartitionStatus.OFFLINE_RECOVERING if partition.recovering else PartitionStatus.OFFLINE


def partition_status_input(before: PartitionState | None, after: PartitionState) -> PartitionStatusInput:
    """Return the event of a partition's leadership for a change from `before` to `after`."""
    if before is None:
        return PartitionStatusInput.CREATED
    if before.has_leader and not after.has_leader:
        return PartitionStatusInput.LEADER_LOST
    if before.recovering and not after.recovering:
        return PartitionStatusInput.RECOVERED
    if after.leader == before.leader:
        return PartitionStatusInput.CHANGED
    # A mark that is new tells of an unclean election, even of a replica that was eligible until this very step: before
    # KAFKA-19522 it was elected as it lost its records. Releases without the mark hold such an election like any other.
    stays_complete = before.recovering and after.leader in (*before.isr, *before.elr)
    if after.recovering and not stays_complete:
        return PartitionStatusInput.ELECTED_UNCLEANLY
    return PartitionStatusInput.ELECTED


def move_of(partition: PartitionState) -> MoveState:
    """Return whether a partition is being reassigned."""
    return MoveState.MOVING if partition.is_reassigning else MoveState.SETTLED


def move_input(before: PartitionState, after: PartitionState) -> MoveInput:
    """Return the event of a partition's reassignment for a change from `before` to `after`."""
    if _sets_of(before) == _sets_of(after):
        return MoveInput.UNTOUCHED
    if not before.is_reassigning:
        return MoveInput.STARTED if after.is_reassigning else MoveInput.REORDERED
    if after.is_reassigning:
        return MoveInput.RETARGETED
    left = set(before.replicas) - set(before.removing)
    return MoveInput.COMPLETED if left == set(after.replicas) else MoveInput.CANCELLED


def _sets_of(partition: PartitionState) -> tuple[tuple[BrokerId, ...], ...]:
    return partition.replicas, partition.adding, partition.removing


def check_change(before: PartitionState | None, after: PartitionState) -> None:
    """Assert that the tables have the step from `before`, None for a new partition, to `after`."""
    event = partition_status_input(before, after)
    expected = step(PARTITION_STATUS_TRANSITIONS, partition_status_of(before), event, what="partition")
    assert expected is partition_status_of(after), (event, before, after)
    if before is not None:
        moved = move_input(before, after)
        expected_move = step(MOVE_TRANSITIONS, move_of(before), moved, what="move of a partition")
        assert expected_move is move_of(after), (moved, before, after)

"""Decide whether a leader accepts a produce request, when and how it answers, and what the producer may believe.

With acks=all nothing is appended under min.insync.replicas; acks=0 and 1 are appended all the same, and become visible
only when the ISR has grown.

Example: ISR (1,) with min.insync.replicas=2: acks=all is refused and not appended, acks=1 succeeds.

>>> from broker.ids import BrokerId, LeaderEpoch
>>> from replication.rules.partition import Follower, PartitionEpoch
>>> one, two = BrokerId(1), BrokerId(2)
>>> leader = LeaderState(one, LeaderEpoch(0), PartitionEpoch(0), Offset(0), (one,), (Follower(two),))
>>> [check_append(leader, acks, PartitionSettings(min_isr=2)).name for acks in (ACKS_ALL, 1)]
['NOT_ENOUGH_REPLICAS', 'NONE']
>>> fate(ErrorCode.NOT_ENOUGH_REPLICAS, appended=False).name, fate(ErrorCode.REQUEST_TIMED_OUT, appended=True).name
('FAILED', 'UNKNOWN')

Source: Kafka core Partition.appendRecordsToLeader, checkEnoughReplicasReachOffset, DelayedProduce and
ReplicaManager.isValidRequiredAcks, 4.3.1; KAFKA-15583.
"""

from __future__ import annotations

import enum
from typing import Final

from broker.error_codes import ErrorCode
from broker.ids import Offset
from replication.rules.isr import maximal_isr
from replication.rules.min_isr import effective_min_isr, is_under_min_isr
from replication.rules.partition import FollowerState, LeaderState
from replication.rules.settings import PartitionSettings

ACKS_ALL: Final = -1


class Fate(enum.Enum):
    """Name what a producer may believe of its records' fate after an answer, or after none."""

    ACKED = enum.auto()
    """The records were accepted; with acks=all they are committed."""

    FAILED = enum.auto()
    """The records are in no log."""

    UNKNOWN = enum.auto()
    """The records may be in a log, may become visible, and may be lost."""


_FAILED: Final = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.INVALID_REQUIRED_ACKS)
_FAILED_UNLESS_APPENDED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def check_append(role: LeaderState | FollowerState, acks: int, settings: PartitionSettings) -> ErrorCode:
    """Return the error with which a leader refuses a write; NONE if it is appended."""
    if acks not in (ACKS_ALL, 0, 1):
        return ErrorCode.INVALID_REQUIRED_ACKS
    if isinstance(role, FollowerState):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if acks == ACKS_ALL and is_under_min_isr(role, settings):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return ErrorCode.NONE


def answer_waiting(
    role: LeaderState | FollowerState, end_offset: Offset, high_watermark: Offset, settings: PartitionSettings
) -> ErrorCode | None:
    """Return the answer to an appended acks=all write that ends at `end_offset`; None to go on waiting."""
    if isinstance(role, FollowerState):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if high_watermark < end_offset:
        return None
    needed = effective_min_isr(settings.min_isr, role.replica_count, settings.rules)
    enough = needed <= len(maximal_isr(role, settings.rules))
    return ErrorCode.NONE if enough else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def fate(answer: ErrorCode | None, *, appended: bool) -> Fate:
    """Return what a producer may believe of its records; None stands for no answer, as after a lost connection.

    `appended` says whether the leader had appended when it gave the error, which the model knows and a producer does
    not: NOT_LEADER_OR_FOLLOWER and UNKNOWN_TOPIC_OR_PARTITION are definite refusals before the append, not later.
    """
    if answer is ErrorCode.NONE:
        return Fate.ACKED
    if answer in _FAILED:
        assert not appended, answer
        return Fate.FAILED
    if answer in _FAILED_UNLESS_APPENDED and not appended:
        return Fate.FAILED
    return Fate.UNKNOWN

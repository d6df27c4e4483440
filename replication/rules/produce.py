"""Decide acceptance of produce and DeleteRecords requests, the time and error of the response, and its guarantee.

With acks=all nothing is appended under min.insync.replicas; acks=0 and 1 are appended all the same, and become visible
only when the ISR has grown. A refused DeleteRecords request changes nothing; a replica whose broker is fenced is not
waited for, in sync or not, and one that has not fetched from this leader yet counts as -1.

Example: ISR (1,) with min.insync.replicas=2: acks=all is refused and not appended, acks=1 succeeds. A log from 10 to
50, committed up to 40, accepts a DeleteRecords request for offset 25 and refuses one for 45.

>>> from broker.ids import BrokerId, LeaderEpoch
>>> from replication.rules.partition import Follower, PartitionEpoch
>>> one, two = BrokerId(1), BrokerId(2)
>>> leader = LeaderState(one, LeaderEpoch(0), PartitionEpoch(0), Offset(0), (one,), (Follower(two),))
>>> [check_append(leader, acks, PartitionSettings(min_isr=2)).name for acks in (ACKS_ALL, 1)]
['NOT_ENOUGH_REPLICAS', 'NONE']
>>> fate(ErrorCode.NOT_ENOUGH_REPLICAS, appended=False).name, fate(ErrorCode.REQUEST_TIMED_OUT, appended=True).name
('FAILED', 'UNKNOWN')
>>> log = LogState(Offset(10), Offset(50), Offset(40))
>>> take_order(log, Offset(25), deletes=True).offset, take_order(log, Offset(45), deletes=True).error.name
(25, 'OFFSET_OUT_OF_RANGE')
>>> take_order(log, UP_TO_HIGH_WATERMARK, deletes=True).offset
40

Source: Kafka core Partition.appendRecordsToLeader, checkEnoughReplicasReachOffset, deleteRecordsOnLeader and
lowWatermarkIfLeader, DelayedProduce, DelayedDeleteRecords, ReplicaManager.isValidRequiredAcks, 4.3.1; KIP-107,
KAFKA-15583.
"""

from __future__ import annotations

import enum
from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.ids import Offset
from replication.rules.isr import maximal_isr
from replication.rules.partition import UNKNOWN_OFFSET, FollowerState, LeaderState, LogState
from replication.rules.settings import Moment, PartitionSettings, is_under_min_isr, needed_in_sync

ACKS_ALL: Final = -1


class Fate(enum.Enum):
    """Name what an answer, or none, proves about its records."""

    ACKED = enum.auto()
    """The records were accepted; with acks=all they are committed."""

    FAILED = enum.auto()
    """The records are in no log."""

    UNKNOWN = enum.auto()
    """The records may be in a log, may become visible, and may be lost."""


NEVER_APPENDED: Final = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.INVALID_REQUIRED_ACKS)
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
    needed = needed_in_sync(settings.min_isr, role.replica_count, settings.rules)
    enough = needed <= len(maximal_isr(role, settings.rules))
    return ErrorCode.NONE if enough else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def fate(answer: ErrorCode | None, *, appended: bool) -> Fate:
    """Return what an answer proves about its records; None stands for no answer, as after a lost connection.

    `appended` says whether the leader had appended when it gave the error, which the model knows and a producer does
    not: NOT_LEADER_OR_FOLLOWER and UNKNOWN_TOPIC_OR_PARTITION are definite refusals before the append, not later.
    """
    if answer is ErrorCode.NONE:
        return Fate.ACKED
    if answer in NEVER_APPENDED:
        assert not appended, answer
        return Fate.FAILED
    if answer in _FAILED_UNLESS_APPENDED and not appended:
        return Fate.FAILED
    return Fate.UNKNOWN


UP_TO_HIGH_WATERMARK: Final = Offset(-1)
"""The offset of a DeleteRecords request for all records below the high watermark."""


@attrs.frozen
class Deletion:
    """Hold the leader's verdict on a DeleteRecords request: the error, and the log start after it if there is none."""

    error: ErrorCode
    offset: Offset = UNKNOWN_OFFSET


def take_order(log: LogState, offset: Offset, *, deletes: bool) -> Deletion:
    """Return the leader's verdict on a DeleteRecords request; `deletes` says that cleanup.policy has "delete"."""
    if not deletes:
        return Deletion(ErrorCode.POLICY_VIOLATION)
    wanted = log.high_watermark if offset == UP_TO_HIGH_WATERMARK else offset
    if not 0 <= wanted <= log.high_watermark:
        return Deletion(ErrorCode.OFFSET_OUT_OF_RANGE)
    return Deletion(ErrorCode.NONE, wanted)


def low_watermark(leader: LeaderState, log: LogState, moment: Moment) -> Offset:
    """Return the least log start over the leader and the live replicas, as far as the leader knows them."""
    least = log.start_offset
    for follower in leader.followers:
        status = moment.brokers.get(follower.broker)
        if status is not None and not status.fenced:
            least = min(least, follower.start_offset)
    return least

"""Decide whether a leader accepts a DeleteRecords request, and when the request is done.

A refused request changes nothing. A replica whose broker is fenced is not waited for, in sync or not; it learns the new
log start from the answer to its first fetch. A replica that has not fetched from this leader yet counts as -1.

Example: a log from 10 to 50, committed up to 40, accepts a request for offset 25 and refuses one for 45.

>>> log = LogState(Offset(10), Offset(50), Offset(40))
>>> take_order(log, Offset(25), deletes=True).offset
25
>>> take_order(log, Offset(45), deletes=True).error.name
'OFFSET_OUT_OF_RANGE'
>>> take_order(log, UP_TO_HIGH_WATERMARK, deletes=True).offset
40

Source: Kafka core Partition.deleteRecordsOnLeader and lowWatermarkIfLeader, ReplicaManager.deleteRecordsOnLocalLog,
DelayedDeleteRecords, 4.3.1; KIP-107.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.ids import Offset
from replication.rules.partition import UNKNOWN_OFFSET, LeaderState, LogState
from replication.rules.settings import Moment

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

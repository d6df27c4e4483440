"""A client's order to delete the oldest records of a partition, and when it is done.

It decides whether a leader takes the order, from where its log begins after it, and what the low watermark is: the
least log start of the leader and of every replica that is alive. The order is done when that has reached its offset.

Goals, most important first
1. Nothing that is not committed is deleted.
2. An order that is answered holds on every replica that was alive then.

Constraints: a refused order changes nothing. A replica whose broker is fenced is not waited for, in sync or not; it
hears of the new start with its first fetch. A replica that has not fetched from this leader yet counts as -1.

Worked example: the leader's log is committed up to 40 and begins at 10, as both followers' do. Told to delete up to
25 it begins at 25 at once, the low watermark is 10; after both followers have fetched and fetched again it is 25.

Left out: internal topics, which Kafka refuses with INVALID_TOPIC_EXCEPTION; the replica that moves between directories.

Source: Kafka core Partition.deleteRecordsOnLeader and lowWatermarkIfLeader, ReplicaManager.deleteRecordsOnLocalLog,
DelayedDeleteRecords, commit 1eb7644 (2024-10); KIP-107.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.error_codes import ErrorCode
from broker.ids import Offset
from replication.rules.partition import UNKNOWN_OFFSET, LeaderState, LogState
from replication.rules.settings import Moment

UP_TO_HIGH_WATERMARK: Final = Offset(-1)
"""The offset of an order to delete all that is committed."""


@attrs.frozen
class Deletion:
    """What a leader makes of an order: the error, and the offset that its log begins at if there is none."""

    error: ErrorCode
    offset: Offset = UNKNOWN_OFFSET


def take_order(log: LogState, offset: Offset, *, deletes: bool) -> Deletion:
    """Return what a leader makes of an order; `deletes` says whether cleanup.policy has "delete"."""
    if not deletes:
        return Deletion(ErrorCode.POLICY_VIOLATION)
    wanted = log.high_watermark if offset == UP_TO_HIGH_WATERMARK else offset
    if not 0 <= wanted <= log.high_watermark:
        return Deletion(ErrorCode.OFFSET_OUT_OF_RANGE)
    return Deletion(ErrorCode.NONE, wanted)


def low_watermark(leader: LeaderState, log: LogState, moment: Moment) -> Offset:
    """Return the least log start over the leader and the replicas that are alive, as far as it knows them."""
    least = log.start_offset
    for follower in leader.followers:
        status = moment.brokers.get(follower.broker)
        if status is not None and not status.fenced:
            least = min(least, follower.start_offset)
    return least

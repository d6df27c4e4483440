"""How far the log is committed: the high watermark of a leader and of a follower.

It decides the end, exclusive, of what consumers may read and of what an acks=all producer may rely on.

Goals, most important first
1. What lies below it is on every replica that may be elected cleanly, so an election does not lose it.
2. It moves on as soon as the ISR has the records.

Constraints: on a leader it only rises; it never passes the log's end. On a follower it may fall after an election,
as a new leader starts from what it knew itself: what was once committed is still there, it is only not shown for a
while. Below min.insync.replicas it stands still, since 3.7.

How. The leader takes the least end offset over itself, the maximal ISR (who is being added counts already, who is being
removed counts still), and followers outside that are caught up and may join: were these not waited for, a
follower could run after a high watermark that it needs to reach for ever.

Worked example: ISR (1, 2), ends 10 and 8, replica 3 out of sync at 5 and not caught up: 8. With 3 being added: 5.

Left out: the last stable offset of transactions; it is bounded by this and lives with the log.

Source: Kafka core Partition.maybeIncrementLeaderHW, UnifiedLog.maybeIncrementHighWatermark and
updateHighWatermark, commit 1eb7644 (2024-10); KIP-497, KAFKA-15021, KAFKA-15583, KAFKA-9491.
"""

from __future__ import annotations

from broker.ids import Offset
from replication.rules.isr import is_caught_up, is_eligible, maximal_isr
from replication.rules.min_isr import is_under_min_isr
from replication.rules.partition import Follower, LeaderState, LogState
from replication.rules.settings import Moment, PartitionSettings
from replication.rules.switches import Rules


def leader_high_watermark(leader: LeaderState, log: LogState, moment: Moment, settings: PartitionSettings) -> Offset:
    """Return the leader's high watermark now; never less than `log.high_watermark`.

    To be asked after an append, after a follower's recorded end changed, after a change of the ISR was answered,
    and on becoming leader. Cost: linear in the followers.
    """
    rules = settings.rules
    if rules.strict_min_isr and is_under_min_isr(leader, settings):
        return log.high_watermark
    in_sync = maximal_isr(leader, rules)
    least = log.end_offset
    for follower in leader.followers:
        if follower.broker in in_sync:
            if rules.high_watermark_epoch_check and follower.leader_epoch != leader.leader_epoch:
                return log.high_watermark
            least = min(least, follower.end_offset)
        elif follower.end_offset < least and _is_joining(follower, log, moment, settings):
            least = follower.end_offset
    assert least <= log.end_offset, (least, log)
    return max(least, log.high_watermark)


def follower_high_watermark(log: LogState, leader_high_watermark: Offset) -> Offset:
    """Return a follower's high watermark after it appended an answer that carried the leader's."""
    return max(log.start_offset, min(leader_high_watermark, log.end_offset))


def truncated_high_watermark(high_watermark: Offset, end_offset: Offset) -> Offset:
    """Return the high watermark after the log was cut to `end_offset`."""
    return min(high_watermark, end_offset)


def restarted_high_watermark(high_watermark: Offset, start_offset: Offset, rules: Rules) -> Offset:
    """Return the high watermark after the whole log was truncated and starts again, empty, at `start_offset`."""
    return start_offset if rules.high_watermark_follows_full_truncation else high_watermark


def _is_joining(follower: Follower, log: LogState, moment: Moment, settings: PartitionSettings) -> bool:
    if not is_caught_up(follower, log.end_offset, moment.now_ms, settings):
        return False
    status = moment.brokers.get(follower.broker)
    return not settings.rules.high_watermark_ignores_ineligible or is_eligible(follower, status, settings.rules)

"""Decide how far the log is committed: the high watermark of a leader and of a follower.

What it decides: the exclusive end of what consumers may read, and of what an acks=all producer may rely on.

Goals, most important first:
1. What lies below the high watermark is on every replica that may be elected cleanly, so that no clean election loses
   it.
2. The high watermark moves on as soon as the ISR has the records.

Constraints: on a leader it only rises; it never passes the log's end. On a follower it may fall after an election, as a
new leader starts from its own: what was committed is still there, and is only not shown for a while. Below
min.insync.replicas it stands still, since 3.7.

How: the leader takes the least end offset over itself, the maximal ISR (a replica being added counts already, one being
removed counts still), and the caught-up followers outside it that may join: were these not waited for, a follower could
run after a rising high watermark for ever and never join.

Example: ISR (1, 2), ends 10 and 8; replica 3 is out of sync at 5 and not caught up. With 3 being added it is 5.

>>> from broker.ids import BrokerEpoch, BrokerId, LeaderEpoch
>>> from broker.units import TimeMs
>>> from replication.rules.isr import propose_expand
>>> from replication.rules.partition import PartitionEpoch
>>> one, two, three = BrokerId(1), BrokerId(2), BrokerId(3)
>>> followers = tuple(
...     Follower(broker, end_offset=Offset(end), leader_epoch=LeaderEpoch(0)) for broker, end in ((two, 8), (three, 5))
... )
>>> leader = LeaderState(one, LeaderEpoch(0), PartitionEpoch(0), Offset(0), (one, two), followers)
>>> log, later = LogState(Offset(0), Offset(10), Offset(0)), Moment(TimeMs(60_000), {})
>>> leader_high_watermark(leader, log, later, PartitionSettings())
8
>>> leader_high_watermark(propose_expand(leader, three, BrokerEpoch(0)), log, later, PartitionSettings())
5

Left out: the last stable offset of transactions; it is bounded by the high watermark and lives with the log.

Source: Kafka core Partition.maybeIncrementLeaderHW, UnifiedLog.maybeIncrementHighWatermark and updateHighWatermark,
4.3.1; KIP-497, KAFKA-15021, KAFKA-15583, KAFKA-9491.
"""

from __future__ import annotations

from broker.ids import Offset
from replication.rules.isr import is_caught_up, is_eligible, maximal_isr
from replication.rules.partition import Follower, LeaderState, LogState
from replication.rules.settings import Moment, PartitionSettings, is_under_min_isr
from replication.rules.switches import Rules


def leader_high_watermark(leader: LeaderState, log: LogState, moment: Moment, settings: PartitionSettings) -> Offset:
    """Return the leader's high watermark now (maybeIncrementLeaderHW); never less than `log.high_watermark`.

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
        elif not _is_joining(follower, log, moment, settings):
            continue
        least = min(least, follower.end_offset)
    assert least <= log.end_offset, (least, log)
    return max(least, log.high_watermark)


def follower_high_watermark(log: LogState, leader_high_watermark: Offset) -> Offset:
    """Return a follower's high watermark for the leader's, bounded by the follower's own log."""
    return max(log.start_offset, min(leader_high_watermark, log.end_offset))


def restarted_high_watermark(high_watermark: Offset, start_offset: Offset, rules: Rules) -> Offset:
    """Return the high watermark after the whole log was truncated and starts again, empty, at `start_offset`."""
    return start_offset if rules.high_watermark_follows_full_truncation else high_watermark


def _is_joining(follower: Follower, log: LogState, moment: Moment, settings: PartitionSettings) -> bool:
    if not is_caught_up(follower, log.end_offset, moment.now_ms, settings):
        return False
    status = moment.brokers.get(follower.broker)
    return not settings.rules.high_watermark_ignores_ineligible or is_eligible(follower, status, settings.rules)

"""How many in-sync replicas a partition needs, and whether it has them.

It decides the number that min.insync.replicas comes to for one partition, on the leader and on the controller.

Constraint: a partition with fewer replicas than min.insync.replicas needs all of them and no more, since 3.7;
before, it could never take an acks=all write.

Worked example: min.insync.replicas=3 on a partition of 2 replicas is 2 now, 3 under the rules of 3.6.

Left out: the controller counts the replicas of the topic's partition 0 and the leader those of its own
partition; callers pass the count that is theirs.

Source: Kafka core Partition.effectiveMinIsr and isUnderMinIsr, metadata
ReplicationControlManager.getTopicEffectiveMinIsr, commit 1eb7644 (2024-10); KAFKA-15583.
"""

from __future__ import annotations

from replication.rules.partition import LeaderState
from replication.rules.settings import PartitionSettings
from replication.rules.switches import Rules


def effective_min_isr(min_isr: int, replica_count: int, rules: Rules) -> int:
    """Return the number of in-sync replicas that are needed when there are `replica_count` replicas."""
    return min(min_isr, replica_count) if rules.effective_min_isr else min_isr


def is_under_min_isr(leader: LeaderState, settings: PartitionSettings) -> bool:
    """Return whether the ISR that the controller confirmed last is too small."""
    return len(leader.isr) < effective_min_isr(settings.min_isr, leader.replica_count, settings.rules)

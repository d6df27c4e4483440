"""Decide how many in-sync replicas a partition needs, and whether it has them.

`broker.min_isr` caps it by the replicas, as Kafka does since 3.7; before, a partition with fewer replicas could never
accept an acks=all write.

Example: min.insync.replicas is 3 and the partition has 2 replicas.

>>> from replication.rules.switches import CURRENT, rules_of
>>> effective_min_isr(3, 2, CURRENT), effective_min_isr(3, 2, rules_of("3.6"))
(2, 3)

Source: Kafka core Partition.effectiveMinIsr and isUnderMinIsr, metadata
ReplicationControlManager.getTopicEffectiveMinIsr, 4.3.1; KAFKA-15583.
"""

from __future__ import annotations

from broker.min_isr import effective_min_isr as cap
from replication.rules.partition import LeaderState
from replication.rules.settings import PartitionSettings
from replication.rules.switches import Rules


def effective_min_isr(min_isr: int, replica_count: int, rules: Rules) -> int:
    """Return the number of in-sync replicas that a partition of `replica_count` replicas needs."""
    return cap(min_isr, replica_count) if rules.effective_min_isr else min_isr


def is_under_min_isr(leader: LeaderState, settings: PartitionSettings) -> bool:
    """Return whether the ISR that the controller confirmed last is below the effective min.insync.replicas."""
    return len(leader.isr) < effective_min_isr(settings.min_isr, leader.replica_count, settings.rules)

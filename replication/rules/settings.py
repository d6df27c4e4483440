"""Hold the other inputs of a decision: a partition's settings, and the time and metadata at a broker.

Since 3.7 Kafka caps min.insync.replicas by the replicas (`broker.min_isr`); before, a partition with fewer replicas
could never accept an acks=all write. `needed_in_sync` asks the rules of a release which of the two it is.

Example: min.insync.replicas is 3 and the partition has 2 replicas.

>>> from replication.rules.switches import rules_of
>>> PartitionSettings(min_isr=3).lag_ms_max
30000
>>> needed_in_sync(3, 2, CURRENT), needed_in_sync(3, 2, rules_of("3.6"))
(2, 3)

Source: Kafka 4.0 TopicConfig, ReplicationConfigs and KRaftMetadataCache; core Partition.effectiveMinIsr and
isUnderMinIsr, metadata ReplicationControlManager.getTopicEffectiveMinIsr, 4.3.1; KAFKA-15583.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from broker.errors import UsageError
from broker.ids import BrokerEpoch, BrokerId
from broker.min_isr import effective_min_isr
from broker.units import DurationMs, TimeMs
from broker.values import changed_repr, value
from replication.rules.partition import UNKNOWN_BROKER_EPOCH, BrokerStatus, LeaderState
from replication.rules.switches import CURRENT, Rules

LAG_MS_MAX: Final = DurationMs(30_000)
"""Kafka's default of replica.lag.time.max.ms since 2.5, in milliseconds."""


@attrs.frozen(kw_only=True, repr=False)
class PartitionSettings:
    """Hold the rules of a release and the configuration of a partition.

    `topic_replica_count` is the number of replicas of the topic's partition 0, by which Kafka's controller bounds
    min.insync.replicas; None for the partition's own.

    Raises UsageError for a `min_isr` below 1 and a negative `lag_ms_max`.
    """

    rules: Rules = CURRENT
    min_isr: int = 1
    lag_ms_max: DurationMs = LAG_MS_MAX
    unclean_election: bool = False
    topic_replica_count: int | None = None

    def __attrs_post_init__(self) -> None:
        if type(self.min_isr) is not int or self.min_isr < 1:
            raise UsageError(f"min.insync.replicas is {self.min_isr!r}; allowed are 1 and more")
        if type(self.lag_ms_max) is not int or self.lag_ms_max < 0:
            raise UsageError(f"replica.lag.time.max.ms is {self.lag_ms_max!r}; allowed are 0 and more")
        if type(self.unclean_election) is not bool:
            raise UsageError(f"unclean.leader.election.enable is {self.unclean_election!r}; allowed are True and False")

    def __repr__(self) -> str:
        return changed_repr(self)


@value
class Moment:
    """Hold the time at a broker, in milliseconds, and the registered brokers in its copy of the metadata."""

    now_ms: TimeMs
    brokers: Mapping[BrokerId, BrokerStatus]


def registered_epoch(moment: Moment, broker: BrokerId) -> BrokerEpoch:
    """Return the broker epoch of a broker's registration in the metadata, -1 if it is not registered there."""
    status = moment.brokers.get(broker)
    return UNKNOWN_BROKER_EPOCH if status is None else status.epoch


def needed_in_sync(min_isr: int, replica_count: int, rules: Rules) -> int:
    """Return the number of in-sync replicas that a partition of `replica_count` replicas needs under the rules."""
    return effective_min_isr(min_isr, replica_count) if rules.effective_min_isr else min_isr


def is_under_min_isr(leader: LeaderState, settings: PartitionSettings) -> bool:
    """Return whether the ISR that the controller confirmed last is below the effective min.insync.replicas."""
    return len(leader.isr) < needed_in_sync(settings.min_isr, leader.replica_count, settings.rules)

"""Hold the intervals and sizes that the roles use, with Kafka's defaults.

Source: Kafka 4.0 ReplicationConfigs, ServerConfigs, KRaftConfigs; defaults of replica.fetch.wait.max.ms,
replica.fetch.backoff.ms, replica.high.watermark.checkpoint.interval.ms, broker.heartbeat.interval.ms,
broker.session.timeout.ms, leader.imbalance.check.interval.seconds.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.units import KIB, DurationMs, SizeBytes
from broker.values import changed_repr
from replication.rules.election import ElectionPolicy, elect
from replication.rules.settings import PartitionSettings

DEFAULT_PARTITION_SETTINGS: Final = PartitionSettings(min_isr=2)


@attrs.frozen(kw_only=True, repr=False)
class RoleSettings:
    """Hold the configuration of a broker and the controller.

    `answer_ms_max` is the time after which an unanswered request counts as lost: Kafka notices a broken connection
    soon, and its socket timeouts of 30 s are for silent connections. `directory_count` is the number of log directories
    of a broker, each on its own disk. `has_zookeeper` selects ZooKeeper mode, in which one of the brokers is the
    controller. `policy` elects the leaders: Kafka's own rule, unless a policy is being tried.
    """

    settings: PartitionSettings = DEFAULT_PARTITION_SETTINGS
    fetch_wait_ms: DurationMs = attrs.field(default=DurationMs(500))
    fetch_backoff_ms: DurationMs = attrs.field(default=DurationMs(1_000))
    fetch_bytes_max: SizeBytes = attrs.field(default=SizeBytes(64 * KIB))
    answer_ms_max: DurationMs = attrs.field(default=DurationMs(2_000))
    heartbeat_ms: DurationMs = attrs.field(default=DurationMs(2_000))
    session_ms: DurationMs = attrs.field(default=DurationMs(9_000))
    session_check_ms: DurationMs = attrs.field(default=DurationMs(1_000))
    checkpoint_ms: DurationMs = attrs.field(default=DurationMs(5_000))
    balance_ms: DurationMs = attrs.field(default=DurationMs(300_000))
    directory_count: int = 1
    has_zookeeper: bool = False
    produce_ms_max: DurationMs = attrs.field(default=DurationMs(30_000))
    policy: ElectionPolicy = elect

    def __repr__(self) -> str:
        return changed_repr(self)

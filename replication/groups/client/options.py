"""Define the settings of a consumer, and the behaviour of its application.

Source: ConsumerConfig, Kafka 4.0; `poll_ms` and `revoke_ms` are the application's own.
"""

from __future__ import annotations

import attrs

from broker.group.members import InstanceId
from broker.units import DurationMs


@attrs.frozen(kw_only=True)
class ClientOptions:
    """Hold Kafka's consumer settings; the application works for `poll_ms` on the records of one poll."""

    session_timeout_ms: DurationMs = attrs.field(default=DurationMs(45_000))
    heartbeat_interval_ms: DurationMs = attrs.field(default=DurationMs(3_000))
    max_poll_interval_ms: DurationMs = attrs.field(default=DurationMs(300_000))
    max_poll_records: int = 500
    auto_commit_interval_ms: DurationMs = attrs.field(default=DurationMs(5_000))
    metadata_age_ms_max: DurationMs = attrs.field(default=DurationMs(300_000))
    request_timeout_ms: DurationMs = attrs.field(default=DurationMs(30_000))
    retry_backoff_ms: DurationMs = attrs.field(default=DurationMs(100))
    poll_ms: DurationMs = attrs.field(default=DurationMs(500))


@attrs.frozen(kw_only=True)
class ClientSpec:
    """Describe one consumer: its name, group, topics and settings, and how its application behaves.

    `revoke_ms` is the time that the rebalance listener takes when partitions are revoked, 0 without a listener. An
    application that `remembers_partitions` asks, at every poll, for its position in each partition that it was first
    assigned, and fails if its consumer does not own that partition (SPARK-22968).
    """

    name: str
    group_id: str
    topics: tuple[str, ...]
    assignors: tuple[str, ...]
    """The names of the assignors, the preferred first; a member of a consumer group has at most one, the server's."""
    instance_id: InstanceId | None = None
    rack: str | None = None
    revoke_ms: DurationMs = attrs.field(default=DurationMs(0))
    remembers_partitions: bool = False
    options: ClientOptions = attrs.field(factory=ClientOptions)

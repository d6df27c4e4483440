"""List the broker settings that can change while the broker runs, per broker or for the whole cluster.

Example:

    >>> update_mode("num.io.threads"), update_mode("cordoned.log.dirs"), update_mode("broker.rack")
    ('cluster-wide', 'per-broker', '')

Left out: that a listener may have a value of its own.

Source: Kafka 4.3.1, DynamicBrokerConfig; the settings of the catalog have had one mode since 3.9.
"""

from __future__ import annotations

from typing import Final

PER_BROKER: Final = frozenset({"cordoned.log.dirs"})
"""A value may differ from broker to broker, and has no default for the whole cluster."""

CLUSTER_WIDE: Final = frozenset(
    {
        "background.threads",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "group.consumer.assignment.interval.ms",
        "group.coordinator.cached.buffer.max.bytes",
        "group.share.assignment.interval.ms",
        "group.streams.assignment.interval.ms",
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.delete.retention.ms",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.buffer.size",
        "log.cleaner.io.max.bytes.per.second",
        "log.cleaner.max.compaction.lag.ms",
        "log.cleaner.min.cleanable.ratio",
        "log.cleaner.min.compaction.lag.ms",
        "log.cleaner.threads",
        "log.cleanup.policy",
        "log.flush.interval.messages",
        "log.flush.interval.ms",
        "log.index.interval.bytes",
        "log.index.size.max.bytes",
        "log.local.retention.bytes",
        "log.local.retention.ms",
        "log.message.downconversion.enable",
        "log.message.timestamp.after.max.ms",
        "log.message.timestamp.before.max.ms",
        "log.message.timestamp.difference.max.ms",
        "log.message.timestamp.type",
        "log.preallocate",
        "log.retention.bytes",
        "log.retention.ms",
        "log.roll.jitter.ms",
        "log.roll.ms",
        "log.segment.bytes",
        "log.segment.delete.delay.ms",
        "max.connection.creation.rate",
        "max.connections",
        "max.connections.per.ip",
        "message.max.bytes",
        "min.insync.replicas",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
        "producer.id.expiration.ms",
        "share.coordinator.cached.buffer.max.bytes",
        "transaction.partition.verification.enable",
        "unclean.leader.election.enable",
    }
)
"""A value may be set for the whole cluster, and also for one broker."""


def update_mode(name: str) -> str:
    """Return "per-broker" or "cluster-wide", as Kafka's documentation says it; an empty text if it needs a restart."""
    return "per-broker" if name in PER_BROKER else "cluster-wide" if name in CLUSTER_WIDE else ""

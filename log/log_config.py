"""Hold the topic settings of a log as numbers in one value.

Source: org.apache.kafka.storage.internals.log.LogConfig of 4.3.1. `message.format.version` is a setting of Kafka
before 4.0, and ignored as it is since: a leader writes magic 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from broker.config import LONG_MAX, OLDEST_SETTINGS, Scope, Settings, lookup
from broker.errors import UsageError, shorten
from broker.releases import NEWEST, Release
from broker.units import DAY_MS, GIB, MIB, MINUTE_MS, DurationMs, SizeBytes

PRODUCER_COMPRESSION: Final = "producer"
"""A leader keeps the codec that the producer chose."""

LOG_APPEND_TIME: Final = "LogAppendTime"
CREATE_TIME: Final = "CreateTime"

INDEXES_EACH_BATCH_SINCE: Final = Release("3.9")
"""Since 3.9.1 and 4.0.1, to be exact: a `Release` has no patch number, so 3.9.0 and 4.0.0 are told by the field."""


@attrs.frozen(kw_only=True)
class LogConfig:
    """Hold the settings of one log: sizes in bytes, durations in ms, retention -1 for no limit.

    `release` is the Kafka whose log this is, where releases write or answer differently. Up to 3.9.0, and in 4.0.0,
    `indexes_whole_appends` holds: an append of several batches gets one index entry at most.
    """

    release: Release = NEWEST
    segment_size_bytes: SizeBytes = attrs.field(default=SizeBytes(GIB))
    segment_ms: DurationMs = attrs.field(default=DurationMs(7 * DAY_MS))
    segment_jitter_ms: DurationMs = attrs.field(default=DurationMs(0))
    index_size_bytes: SizeBytes = attrs.field(default=SizeBytes(10 * MIB))
    index_interval_bytes: SizeBytes = attrs.field(default=SizeBytes(4096))
    flush_messages: int = LONG_MAX
    flush_ms: DurationMs = attrs.field(default=DurationMs(LONG_MAX))
    retention_bytes: SizeBytes = attrs.field(default=SizeBytes(-1))
    retention_ms: DurationMs = attrs.field(default=DurationMs(7 * DAY_MS))
    file_delete_delay_ms: DurationMs = attrs.field(default=DurationMs(MINUTE_MS))
    compacts: bool = False
    deletes: bool = True
    delete_retention_ms: DurationMs = attrs.field(default=DurationMs(DAY_MS))
    min_compaction_lag_ms: DurationMs = attrs.field(default=DurationMs(0))
    max_compaction_lag_ms: DurationMs = attrs.field(default=DurationMs(LONG_MAX))
    min_cleanable_dirty_ratio: float = 0.5
    message_size_bytes_max: SizeBytes = attrs.field(default=SizeBytes(MIB + 12))
    timestamp_type: str = CREATE_TIME
    timestamp_before_max_ms: DurationMs = attrs.field(default=DurationMs(LONG_MAX))
    timestamp_after_max_ms: DurationMs = attrs.field(
        default=attrs.Factory(lambda self: _default("message.timestamp.after.max.ms", self.release), takes_self=True)
    )
    compression_type: str = PRODUCER_COMPRESSION
    gzip_level: int = -1
    lz4_level: int = 9
    zstd_level: int = 3
    indexes_whole_appends: bool = attrs.field(
        default=attrs.Factory(lambda self: self.release < INDEXES_EACH_BATCH_SINCE, takes_self=True)
    )

    @property
    def segment_ms_max(self) -> DurationMs:
        """Return the age in ms at which a segment is rolled; max.compaction.lag.ms may lower it in a compacted log."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compacts else self.segment_ms

    @property
    def stamps_log_append_time(self) -> bool:
        """Return whether the leader sets the timestamps of records (LogAppendTime), not the producer."""
        return self.timestamp_type == LOG_APPEND_TIME

    @classmethod
    def of(cls, settings: Settings) -> LogConfig:
        """Return the config of a topic with these settings."""
        values = {name: settings[name] for name in settings if name in NAMES or name == "cleanup.policy"}
        return cls.parse(values, settings.release)

    @classmethod
    def parse(cls, values: Mapping[str, Any], release: Release = NEWEST) -> LogConfig:
        """Return the config of settings by Kafka's names; settings not named have Kafka's defaults.

        Raises UsageError for a name that no log reads, and for a value of another type than the setting's.
        """
        fields: dict[str, Any] = {"release": release}
        for name, value in values.items():
            if name == "cleanup.policy":
                listed = value if isinstance(value, list | tuple | frozenset) else _typed(name, value, str, "a list")
                policies = listed.split(",") if isinstance(listed, str) else listed
                fields["compacts"], fields["deletes"] = "compact" in policies, "delete" in policies
            elif name == "message.format.version":
                _typed(name, value, str, "a version")
            elif name in NAMES:
                fields[NAMES[name]] = _checked(name, value)
            else:
                raise UsageError(f"no log reads a setting {name!r}")
        return cls(**fields)


NAMES: Final[Mapping[str, str]] = {
    "segment.bytes": "segment_size_bytes",
    "segment.ms": "segment_ms",
    "segment.jitter.ms": "segment_jitter_ms",
    "segment.index.bytes": "index_size_bytes",
    "index.interval.bytes": "index_interval_bytes",
    "flush.messages": "flush_messages",
    "flush.ms": "flush_ms",
    "retention.bytes": "retention_bytes",
    "retention.ms": "retention_ms",
    "file.delete.delay.ms": "file_delete_delay_ms",
    "delete.retention.ms": "delete_retention_ms",
    "min.compaction.lag.ms": "min_compaction_lag_ms",
    "max.compaction.lag.ms": "max_compaction_lag_ms",
    "min.cleanable.dirty.ratio": "min_cleanable_dirty_ratio",
    "max.message.bytes": "message_size_bytes_max",
    "message.timestamp.type": "timestamp_type",
    "message.timestamp.before.max.ms": "timestamp_before_max_ms",
    "message.timestamp.after.max.ms": "timestamp_after_max_ms",
    "compression.type": "compression_type",
    "compression.gzip.level": "gzip_level",
    "compression.lz4.level": "lz4_level",
    "compression.zstd.level": "zstd_level",
}
"""Kafka's name of each field; `compacts` and `deletes` come from cleanup.policy."""


def _default(name: str, release: Release) -> Any:
    """Return a setting's default in a release; those before the oldest whose settings are known had the same."""
    return lookup(name, Scope.TOPIC, max(release, OLDEST_SETTINGS)).default


_TEXTS: Final = frozenset({"message.timestamp.type", "compression.type"})
_FRACTIONS: Final = frozenset({"min.cleanable.dirty.ratio"})


def _checked(name: str, value: Any) -> Any:
    """Return the value of a setting; raise UsageError if it has another type than the setting."""
    if name in _TEXTS:
        return _typed(name, value, str, "a name")
    if name in _FRACTIONS:
        return _typed(name, value, int | float, "a number")
    return _typed(name, value, int, "a whole number")


def _typed(name: str, value: Any, kind: Any, wanted: str) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise UsageError(f"setting {name} is {shorten(repr(value))}; {wanted} is needed")
    return value

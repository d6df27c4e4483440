"""Define the settings of retention, compaction and auto.offset.reset in one value; impossible ones raise UsageError.

Retention deletes whole segments, so `retention_bytes` has little effect below a few times `segment_bytes`.

Source: Kafka 4.0 TopicConfig (retention.ms, retention.bytes, cleanup.policy, segment.bytes, delete.retention.ms,
min.cleanable.dirty.ratio), ServerLogConfigs (log.retention.check.interval.ms), ConsumerConfig (auto.offset.reset).
"""

from __future__ import annotations

import enum
from typing import Final

import attrs

from broker.errors import UsageError
from broker.ids import INT64_MAX
from broker.units import KIB, SECOND_MS, DurationMs, SizeBytes
from broker.values import changed_repr
from broker.wording import counted
from log.log_config import LogConfig

NO_LIMIT: Final = -1
SEGMENT_BYTES_MIN: Final = 500
"""The smallest segment: a few records; less would make a segment of each record."""
_SEGMENT_BYTES_MAX: Final = 1024 * KIB
_INDEX_BYTES: Final = SizeBytes(4 * KIB)
"""The index size in bytes of these small segments; Kafka's default would reserve 10 MiB each."""


class AutoOffsetReset(enum.Enum):
    """Name a consumer's reactions to an offset out of range: auto.offset.reset."""

    EARLIEST = "earliest"
    """The consumer goes on at the log start offset."""

    LATEST = "latest"
    """The consumer goes on at the high watermark."""

    NONE = "none"
    """The consumer stops; its application gets the error."""


@attrs.frozen(kw_only=True, repr=False)
class Retention:
    """Hold the retention and compaction settings of the logs that clients write to; -1 means no limit.

    Writes use `key_count` keys, and one record in `tombstones_one_in` is a tombstone; only a compacted log has keys.
    Each broker runs retention and cleaner every `check_ms`.
    """

    retention_ms: DurationMs = attrs.field(default=DurationMs(NO_LIMIT))
    retention_bytes: SizeBytes = attrs.field(default=SizeBytes(NO_LIMIT))
    compacts: bool = False
    deletes: bool = True
    segment_bytes: SizeBytes = attrs.field(default=SizeBytes(1_000))
    delete_retention_ms: DurationMs = attrs.field(default=DurationMs(20 * SECOND_MS))
    check_ms: DurationMs = attrs.field(default=DurationMs(5 * SECOND_MS))
    key_count: int = 8
    tombstones_one_in: int = 6
    reset: AutoOffsetReset = AutoOffsetReset.LATEST

    def __repr__(self) -> str:
        return changed_repr(self)

    def __attrs_post_init__(self) -> None:
        for what, value, least, most in (
            ("retention.ms", self.retention_ms, NO_LIMIT, INT64_MAX),
            ("retention.bytes", self.retention_bytes, NO_LIMIT, INT64_MAX),
            ("segment.bytes", self.segment_bytes, SEGMENT_BYTES_MIN, _SEGMENT_BYTES_MAX),
            ("delete.retention.ms", self.delete_retention_ms, 0, INT64_MAX),
            ("the time between looks at retention in ms", self.check_ms, 1, INT64_MAX),
            ("the number of keys", self.key_count, 1, 1_000_000),
            ("one tombstone in so many records", self.tombstones_one_in, 2, 1_000_000),
        ):
            if not least <= value <= most:
                raise UsageError(f"{what} is {value}; allowed are whole numbers from {least} to {most}")
        if not self.compacts and not self.deletes:
            raise UsageError("cleanup.policy is empty; allowed are compact, delete, or both")

    def log_config(self, config: LogConfig) -> LogConfig:
        """Return `config` with these settings."""
        return attrs.evolve(
            config,
            segment_size_bytes=self.segment_bytes,
            index_size_bytes=_INDEX_BYTES,
            retention_ms=self.retention_ms,
            retention_bytes=self.retention_bytes,
            compacts=self.compacts,
            deletes=self.deletes,
            delete_retention_ms=self.delete_retention_ms,
            min_cleanable_dirty_ratio=0.2,
        )

    def __str__(self) -> str:
        policy = ",".join(name for name, on in (("compact", self.compacts), ("delete", self.deletes)) if on)
        keys = f", {counted(self.key_count, 'key')}" if self.compacts else ""
        return (
            f"cleanup.policy {policy}, retention.ms {self.retention_ms}, retention.bytes {self.retention_bytes}, "
            f"segment.bytes {self.segment_bytes}, looked at every {self.check_ms} ms{keys}; "
            f"auto.offset.reset {self.reset.value}"
        )

"""How long records are kept, and what a consumer does that comes too late: the settings of retention in one value.

It decides nothing but what is allowed. Names follow Kafka's settings, given behind each; sizes and times are much
smaller than Kafka's defaults, as a run lasts minutes: a segment holds some ten records.

Constraints: a log that compacts is written with keys; whole segments go, so `retention_bytes` means little below a few
times `segment_bytes`. Raises UsageError for what cannot be.

Example: Retention(retention_ms=DurationMs(20_000)) deletes segments whose newest record is older than 20 s.

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
from log.log_config import LogConfig

NO_LIMIT: Final = -1
SEGMENT_BYTES_MIN: Final = 500
"""A few records: less would be a segment a record."""
_SEGMENT_BYTES_MAX: Final = 1024 * KIB
_INDEX_BYTES: Final = SizeBytes(4 * KIB)
"""Of small segments, which would reserve 10 MiB each otherwise."""


class AutoOffsetReset(enum.Enum):
    """What a consumer does whose offset is out of range: auto.offset.reset."""

    EARLIEST = "earliest"
    """It goes on at the start of the log."""

    LATEST = "latest"
    """It goes on at the high watermark."""

    NONE = "none"
    """It stops, as its application is told and nobody says what to do."""


@attrs.frozen(kw_only=True)
class Retention:
    """How the logs that clients write to are kept. -1 is no limit.

    `key_count` keys are written, one record in `tombstones_one_in` without a value; only a log that compacts has keys.
    Retention and cleaner of a broker run every `check_ms`.
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
        """Return the config of a log that is kept so, else like `config`."""
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
        keys = f", {self.key_count} keys" if self.compacts else ""
        return (
            f"cleanup.policy {policy}, retention.ms {self.retention_ms}, retention.bytes {self.retention_bytes}, "
            f"segment.bytes {self.segment_bytes}, looked at every {self.check_ms} ms{keys}; "
            f"auto.offset.reset {self.reset.value}"
        )

"""Keep the committed offsets of all groups on one coordinator.

An offset expires only when no consumer can need it: the group is empty for offsets.retention.minutes, or it is stable
and has long not subscribed to the topic (KIP-211); never while it rebalances (KAFKA-13636). Only `apply` changes the
offsets, once the records of a commit are stored, and at reload. The group checks a commit first. Offsets committed in a
transaction stay pending until its marker.

Source: org.apache.kafka.coordinator.group OffsetMetadataManager, OffsetExpirationConditionImpl and
ClassicGroup.offsetExpirationCondition, 4.0.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from broker.config.settings import Settings
from broker.error_codes import ErrorCode
from broker.group.records import CommittedOffset, OffsetKey
from broker.ids import LeaderEpoch, Offset, ProducerId, TopicPartition
from broker.units import DAY_MS, KIB, DurationMs, SizeBytes, TimeMs


@attrs.frozen(kw_only=True)
class OffsetOptions:
    """Hold the broker's settings for committed offsets; the defaults are Kafka's."""

    retention_ms: DurationMs = attrs.field(default=DurationMs(7 * DAY_MS))
    metadata_size_bytes_max: SizeBytes = attrs.field(default=SizeBytes(4 * KIB))

    @classmethod
    def of(cls, settings: Settings) -> OffsetOptions:
        """Return the options set by a broker's settings."""
        return cls(
            retention_ms=settings.duration_ms("offsets.retention.minutes"),
            metadata_size_bytes_max=settings.size_bytes("offset.metadata.max.bytes"),
        )


@attrs.frozen
class Commit:
    """Hold one partition of an OffsetCommit request."""

    partition: TopicPartition
    offset: Offset
    leader_epoch: LeaderEpoch | None = None
    metadata: str = ""


@attrs.frozen
class ExpiryRule:
    """Hold the time from which a group's offsets expire, and the topics that are exempt.

    `since_ms` is the moment at which the group became empty; None lets each offset age from its commit.
    """

    since_ms: TimeMs | None = None
    kept_topics: frozenset[str] = frozenset()


@attrs.frozen
class _Stored:
    value: CommittedOffset
    at: Offset


class CommittedOffsets:
    """Keep the committed offsets of all groups, and the pending offsets of open transactions."""

    def __init__(self, options: OffsetOptions) -> None:
        self.options = options
        self._offsets: dict[str, dict[TopicPartition, _Stored]] = {}
        self._pending: dict[ProducerId, dict[OffsetKey, _Stored]] = {}

    def takes_metadata_of(self, commit: Commit) -> bool:
        """Return whether the commit's metadata is short enough to be stored."""
        # Kafka measures the note in characters (UTF-16 units), whatever the setting's name says.
        return len(commit.metadata.encode("utf-16-be")) // 2 <= self.options.metadata_size_bytes_max

    def records(
        self, group_id: str, commits: Iterable[Commit], now_ms: TimeMs
    ) -> tuple[tuple[tuple[OffsetKey, CommittedOffset], ...], tuple[ErrorCode, ...]]:
        """Return a commit's records, and an error per partition; too long metadata refuses the partition."""
        kept, errors = [], []
        for commit in commits:
            is_long = not self.takes_metadata_of(commit)
            errors.append(ErrorCode.OFFSET_METADATA_TOO_LARGE if is_long else ErrorCode.NONE)
            if not is_long:
                key = OffsetKey(group_id, commit.partition.topic, commit.partition.partition)
                value = CommittedOffset(
                    offset=commit.offset,
                    leader_epoch=commit.leader_epoch,
                    metadata=commit.metadata,
                    committed_ms=now_ms,
                )
                kept.append((key, value))
        return tuple(kept), tuple(errors)

    def apply(
        self, key: OffsetKey, value: CommittedOffset | None, at: Offset, *, producer_id: ProducerId | None = None
    ) -> None:
        """Apply the record stored at offset `at`; offsets of a transaction stay pending until its marker."""
        if value is None:
            self._remove(key)
        elif producer_id is None:
            self._put(key, _Stored(value, at))
        else:
            self._pending.setdefault(producer_id, {})[key] = _Stored(value, at)

    def end_transaction(self, producer_id: ProducerId, *, committed: bool) -> None:
        """Commit or drop the pending offsets of a transaction, as its marker says.

        One that was overtaken by a later record of the same key does not come back: compaction may have removed it, and
        a coordinator that reloads must come to the same.
        """
        for key, stored in self._pending.pop(producer_id, {}).items():
            partition = TopicPartition(key.topic, key.partition)
            present = self._offsets.get(key.group_id, {}).get(partition)
            if committed and (present is None or stored.at > present.at):
                self._put(key, stored)

    def fetch(self, group_id: str, partition: TopicPartition) -> CommittedOffset | None:
        """Return the committed offset of a partition; None if there is none."""
        stored = self._offsets.get(group_id, {}).get(partition)
        return None if stored is None else stored.value

    def of_group(self, group_id: str) -> dict[TopicPartition, CommittedOffset]:
        """Return a copy of all committed offsets of a group."""
        return {partition: stored.value for partition, stored in self._offsets.get(group_id, {}).items()}

    def is_pending(self, group_id: str, partition: TopicPartition) -> bool:
        """Return whether an open transaction has an offset for the partition; readers get UNSTABLE_OFFSET_COMMIT."""
        key = OffsetKey(group_id, partition.topic, partition.partition)
        return any(key in offsets for offsets in self._pending.values())

    def expired(self, group_id: str, rule: ExpiryRule | None, now_ms: TimeMs) -> Iterator[OffsetKey]:
        """Yield the keys of the expired offsets, in order of partition; none without an expiry rule."""
        if rule is None:
            return
        for partition, value in sorted(self.of_group(group_id).items()):
            if partition.topic in rule.kept_topics or self.is_pending(group_id, partition):
                continue
            if self._is_expired(value, rule, now_ms):
                yield OffsetKey(group_id, partition.topic, partition.partition)

    def _is_expired(self, value: CommittedOffset, rule: ExpiryRule, now_ms: TimeMs) -> bool:
        if value.expires_ms is not None:
            return now_ms >= value.expires_ms
        since_ms = value.committed_ms if rule.since_ms is None else rule.since_ms
        return now_ms - since_ms >= self.options.retention_ms

    def _put(self, key: OffsetKey, stored: _Stored) -> None:
        self._offsets.setdefault(key.group_id, {})[TopicPartition(key.topic, key.partition)] = stored

    def _remove(self, key: OffsetKey) -> None:
        self._offsets.get(key.group_id, {}).pop(TopicPartition(key.topic, key.partition), None)
        for offsets in self._pending.values():
            offsets.pop(key, None)

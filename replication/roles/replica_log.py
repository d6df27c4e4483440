"""Hold one replica's real log beside the `LogState` value that the rules read, and answer consumers from it.

The `LogState` is made anew only after a change, as each fetch reads it. While it is the same object, nothing that the
rules read has changed.

Source: for consumers, Kafka core ReplicaManager.fetchMessages, 4.3.1; KIP-392.
"""

from __future__ import annotations

from broker.error_codes import ErrorCode
from broker.ids import LeaderEpoch, Offset
from broker.units import SizeBytes, TimeMs
from broker.values import value
from log.partition.appending import AppendInfo
from log.partition.partition_log import PartitionLog
from log.partition.reading import Isolation
from log.storage.checkpoints import EpochEntry
from replication.roles.messages import ConsumerFetch, ConsumerFetchResponse
from replication.roles.settings import RoleSettings
from replication.rules.follower_read import check_consumer_fetch, preferred_replica
from replication.rules.high_watermark import follower_high_watermark
from replication.rules.partition import EpochStart, FollowerState, LeaderState, LogState
from replication.rules.settings import Moment
from replication.rules.switches import Rules
from replication.rules.truncation import start_raised, started_anew, truncated


@value
class Appended:
    """Hold the records that a leader appended last, and the version of its log right after."""

    offset: Offset
    version: int
    records: bytes

    def is_at(self, offset: Offset, version: int) -> bool:
        """Return whether these records are the log's end from `offset` on, in the log of this version."""
        return version == self.version and offset == self.offset


class ReplicaLog:
    """Hold one replica's log; each change raises `version`, `cut_to` is the least end offset since `seen`."""

    def __init__(self, log: PartitionLog, rules: Rules) -> None:
        self.log = log
        self._rules = rules
        self._entries: tuple[EpochEntry, ...] = ()
        self._epochs: tuple[EpochStart, ...] = ()
        """The epochs of `_entries`, kept because they seldom change."""
        self._asked: tuple[Offset, SizeBytes, int] | None = None
        self._read = b""
        self._appended = Appended(Offset(0), -1, b"")
        self.version = 0
        self.cleaning_count = 0
        """The number of compactions that removed records from within the log."""
        self.cut_to: Offset | None = Offset(0)
        self.state = self._seen_by_rules()
        """The state of the log that the rules read."""
        self._write_epochs()

    def _seen_by_rules(self) -> LogState:
        log = self.log
        entries = () if log.epochs is None else log.epochs.entries
        if entries is not self._entries:
            self._entries = entries
            self._epochs = tuple(EpochStart(entry.epoch, entry.start_offset) for entry in entries)
        return LogState(log.log_start_offset, log.log_end_offset, log.high_watermark, self._epochs)

    def append_as_leader(self, records: bytes, epoch: LeaderEpoch, now_ms: TimeMs) -> AppendInfo:
        """Append a client's batch; raises RefusedError as the log does."""
        segment = self.log.active_segment
        position = segment.size_bytes
        info = self.log.append_as_leader(records, leader_epoch=epoch, now_ms=now_ms)
        self._changed()
        if segment is self.log.active_segment:
            # What followers wait for is what was just appended; nothing if it was appended before.
            self._appended = Appended(info.first_offset, self.version, bytes(segment.records.view()[position:]))
        return info

    def append_as_follower(self, records: bytes, now_ms: TimeMs) -> None:
        """Append the leader's batches unchanged."""
        self.log.append_as_follower(records, now_ms=now_ms)
        self._changed()

    def set_high_watermark(self, offset: Offset) -> None:
        """Set the high watermark, bounded by the log's start and end."""
        offset = follower_high_watermark(self.state, offset)
        if offset != self.state.high_watermark:
            self.log.update_high_watermark(offset)
            self._changed()

    def raise_start(self, offset: Offset) -> None:
        """Raise the log start to `offset`, at most the high watermark; a later start stays."""
        after = start_raised(self.state, offset)
        if after is not self.state:
            self.log.increment_log_start_offset(offset)
            self._write_epochs()
            self._changed()
            assert self.state == after, (self.state, after)

    def forget_old(self, now_ms: TimeMs) -> None:
        """Delete the segments whose retention is over, and let the log start after them."""
        if self.log.delete_old_segments(now_ms=now_ms):
            self._write_epochs()
            self._changed()

    def note_cleaned(self) -> None:
        """Count a compaction, which removed records from within the log."""
        self.cleaning_count += 1
        self._changed()

    def take_epochs(self, decided: LogState) -> None:
        """Assign the newest epoch of `decided` in the epoch cache, unless the cache holds it."""
        if decided is not self.state:
            newest = decided.epochs[-1]
            self.log.assign_epoch_start(newest.epoch, newest.start_offset)
            self._changed()
            assert self.state == decided, (self.state, decided)

    def cut(self, end_offset: Offset, now_ms: TimeMs) -> None:
        """Truncate the log to `end_offset`; at or past the end only the epochs are trimmed."""
        end_before = self.log.log_end_offset
        after = truncated(self.state, end_offset, self._rules)
        if after is self.state:
            return
        self.log.truncate_to(end_offset, now_ms=now_ms)
        self._write_epochs()
        self._noted_cut(self.log.log_end_offset, end_before)
        assert self.state == after, (self.state, after)

    def start_anew(self, offset: Offset, now_ms: TimeMs) -> None:
        """Truncate the whole log and start it at `offset`."""
        after = started_anew(self.state, offset, self._rules)
        self.log.truncate_fully_and_start_at(offset, now_ms=now_ms)
        self._noted_cut(Offset(0), Offset(1))
        # A PartitionLog bounds its high watermark by itself: with KAFKA-9491 open, too, it ends within the log.
        self.set_high_watermark(after.high_watermark)

    def read(self, offset: Offset, bytes_max: SizeBytes) -> bytes:
        """Return whole batches from `offset` on, at least one if there is one."""
        appended = self._appended
        if appended.is_at(offset, self.version) and 0 < len(appended.records) <= bytes_max:
            return appended.records
        asked = (offset, bytes_max, self.version)
        if asked != self._asked:
            # Followers ask for the same place one after the other.
            self._asked, self._read = asked, bytes(self.log.read(offset, bytes_max).records)
        return self._read

    def seen(self) -> None:
        """Reset `cut_to`."""
        self.cut_to = None

    def _write_epochs(self) -> None:
        """Write the truncated epoch cache to disk, which Kafka does in the background right after the truncation.

        If this were left for later, a crash could bring back an epoch without records above records of an older epoch.
        """
        if self.log.epochs is not None:
            self.log.epochs.flush()

    def _noted_cut(self, end_offset: Offset, end_before: Offset) -> None:
        if end_offset < end_before:
            self.cut_to = end_offset if self.cut_to is None else min(self.cut_to, end_offset)
        self._changed()

    def _changed(self) -> None:
        self.state = self._seen_by_rules()
        self.version += 1


def answer_consumer(
    role: LeaderState | FollowerState, log: ReplicaLog, ask: ConsumerFetch, moment: Moment, role_settings: RoleSettings
) -> ConsumerFetchResponse:
    """Return a replica's answer to a consumer's fetch: records, an error, or the replica to fetch from instead."""
    state, rules = log.state, role_settings.settings.rules
    if isinstance(role, LeaderState):
        preferred = preferred_replica(role, ask.offset, ask.rack, moment, rules)
        if preferred is not None:
            bounds = (state.start_offset, state.high_watermark)
            return ConsumerFetchResponse(ask.partition, ask.number, ErrorCode.NONE, b"", *bounds, preferred)
    error = check_consumer_fetch(role, state, ask.offset, rules)
    records = b""
    if error is ErrorCode.NONE:
        records = bytes(
            log.log.read(ask.offset, role_settings.fetch_bytes_max, isolation=Isolation.HIGH_WATERMARK).records
        )
    return ConsumerFetchResponse(ask.partition, ask.number, error, records, state.start_offset, state.high_watermark)

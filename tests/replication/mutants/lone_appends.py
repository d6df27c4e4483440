"""Send a leader's log batches of every kind, and compare what it takes, refuses and answers with a plain list.

What it decides: settings of a log, the batches that clients send to it, sound and unsound, and what is asked of it
afterwards, all from a seed; and by an oracle what has to come of each.

Constraints: the oracle is a list of rows (offset, time, leader epoch, key, value). It takes whole batches only.

Source: Kafka's LogValidator, UnifiedLog.fetchOffsetByTimestamp and LeaderEpochFileCache.endOffsetFor, as facts.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.entropy import SplitMix64, derive
from broker.errors import RefusedError
from broker.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.units import TimeMs
from log.batches.build import build_batch
from log.batches.build_spec import BatchSpec
from log.batches.in_buffer import batches_in
from log.codecs.compression import Codec
from log.codecs.crc import crc32c
from log.errors import CorruptBatchError
from log.log_config import LogConfig
from log.partition.partition_log import PartitionLog
from log.record import NO_TIMESTAMP, Record, TimestampType
from tests.log.made import DIRECTORY, NOW, config, memory, opened

LIVES_A_RUN: Final = 3
STEP_COUNT: Final = 14
_STREAM: Final = 18
_CODECS: Final = {"none": Codec.NONE, "gzip": Codec.GZIP, "snappy": Codec.SNAPPY, "lz4": Codec.LZ4}
_LIMIT_MS: Final = 1_000
_FORMATS: Final = ("0.9.0", "0.10.2")
"""The last release that wrote each magic."""
_LAST_OFFSET_DELTA, _BASE_SEQUENCE, _GZIP_TIME = 23, 53, 65
"""Where these numbers stand in a batch of magic 2, 4 bytes each; the last one if the records are compressed by gzip."""
_KEPT_FROM: Final = {1: 26, 2: 57}
"""From which byte on a compressed batch of each magic is not the leader's to change."""


@attrs.frozen
class Row:
    """Hold one record as a reader must find it."""

    offset: int
    time_ms: int
    epoch: int
    key: bytes | None
    value: bytes


@attrs.frozen
class Sent:
    """Hold a batch, its rows before the leader changes them, and whether the leader must take it."""

    data: bytes
    codec: Codec
    records: tuple[Record, ...]
    is_sound: bool
    magic: int = 2


def appends_noticed(seed: int) -> str:
    """Return in what the first of some leaders' logs differs from its list, "" if in nothing."""
    entropy = SplitMix64(derive(seed, _STREAM))
    return next((told for told in (_Life(entropy).run() for _ in range(LIVES_A_RUN)) if told), "")


class _Life:
    """Run one log through its appends."""

    def __init__(self, entropy: SplitMix64) -> None:
        self._entropy = entropy
        self._compression = ("producer", "producer", "none", *_CODECS)[self._drawn(0, len(_CODECS) + 2)]
        self._stamps = self._drawn(0, 1) == 0
        self._compacts = self._drawn(0, 3) == 0
        self._is_old = self._drawn(0, 2) == 0
        """Whether the log writes a format before 0.11, without leader epochs and producer ids."""
        self._magic = self._drawn(0, 1) if self._is_old else 2
        self._log: PartitionLog = opened(memory(), self._settings())
        self._rows: list[Row] = []
        self._epoch = 0
        self._now_ms = int(NOW)
        self._starts: dict[int, int] = {}
        """Where each epoch that wrote something began."""

    def _settings(self) -> LogConfig:
        return config(
            segment_bytes=1_200,
            compression_type=self._compression,
            message_timestamp_type="LogAppendTime" if self._stamps else "CreateTime",
            message_timestamp_before_max_ms=_LIMIT_MS,
            message_timestamp_after_max_ms=_LIMIT_MS,
            cleanup_policy="compact" if self._compacts else "delete",
            **({"message_format_version": _FORMATS[self._magic]} if self._is_old else {}),
        )

    def _drawn(self, least: int, most: int) -> int:
        return least + self._entropy.next_int_bound(most - least + 1)

    def run(self) -> str:
        """Append until the steps are over or something differs."""
        for _ in range(STEP_COUNT):
            self._now_ms += self._drawn(0, 300)
            self._epoch += self._drawn(0, 5) == 0
            if self._is_old and self._drawn(0, 15) == 0:
                self._is_old, self._magic = False, 2
                self._log.config = self._settings()
            told = self._send(self._made()) or self._compared()
            if told:
                return told
        return ""

    def _made(self) -> Sent:
        """Return a batch, sound in most cases."""
        # Long batches are read by columns.
        count, fault = self._drawn(1, 4) + 16 * (self._drawn(0, 5) == 0), self._drawn(0, 19)
        codec = [Codec.NONE, *_CODECS.values()][self._drawn(0, len(_CODECS))]
        is_late, is_keyless = fault == 0, fault == 1
        shift_ms = (_LIMIT_MS + self._drawn(1, 500)) * (1 if self._drawn(0, 1) else -1) if is_late else 0
        edge_ms = (0, _LIMIT_MS, -_LIMIT_MS)[self._drawn(0, 2)]
        records = tuple(
            Record(
                Offset(place),
                TimeMs(self._now_ms + (shift_ms or edge_ms or self._drawn(-500, 500))),
                None if is_keyless and place == count - 1 else b"k%d" % self._drawn(0, 5),
                bytes(self._drawn(0, 30 if count < 16 else 3)),
            )
            for place in range(count)
        )
        is_sound = not (is_late and not self._stamps) and not (is_keyless and self._compacts)
        spoilt = self._spoilt(fault, BatchSpec(codec=codec), records)
        if spoilt is not None:
            return Sent(spoilt, codec, records, is_sound=False)
        # A batch of another format is written anew; messages of the first one have no times.
        spec = BatchSpec(codec=codec, magic=(0, 1, 2, self._magic, self._magic)[self._drawn(0, 4)])
        data = build_batch(spec, records)
        if spec.magic < 2 and codec is Codec.NONE and self._drawn(0, 1):
            # Each message of an old producer may say that it is the first.
            data = b"".join(build_batch(spec, [attrs.evolve(each, offset=Offset(0))]) for each in records)
        if spec.magic == 2 and codec is Codec.GZIP:
            data = _forged(data, _GZIP_TIME, self._drawn(1, 10**9))  # As no builder of ours writes it.
        if spec.magic == 0:
            records = tuple(attrs.evolve(each, timestamp=NO_TIMESTAMP) for each in records)
            is_sound = not (is_keyless and self._compacts)
        return Sent(data, codec, records, is_sound, spec.magic)

    def _spoilt(self, fault: int, spec: BatchSpec, records: tuple[Record, ...]) -> bytes | None:
        """Return a batch that no leader takes, None for a sound one."""
        if fault == 2:
            return build_batch(attrs.evolve(spec, is_control=True), records)
        if fault == 3 and self._stamps:
            late_type, now_ms = TimestampType.LOG_APPEND_TIME, TimeMs(self._now_ms)
            return build_batch(attrs.evolve(spec, timestamp_type=late_type, log_append_time=now_ms), records)
        if fault == 4:
            producer = attrs.evolve(spec, producer_id=ProducerId(1), producer_epoch=ProducerEpoch(0), base_sequence=0)
            return _forged(build_batch(producer, records), _BASE_SEQUENCE, -1)
        data = build_batch(spec, records)
        if fault == 5:
            return _forged(data, _LAST_OFFSET_DELTA, len(records))
        if fault == 6:
            return data * 2
        if fault in (8, 9):
            return self._mixed(records, is_compressed=fault == 9)
        return data[:-1] + bytes([data[-1] ^ 1]) if fault == 7 else None

    def _mixed(self, records: tuple[Record, ...], *, is_compressed: bool) -> bytes:
        """Return messages of both old formats, or more than one where the first or the last is compressed."""
        magic, codecs = self._drawn(0, 1), [Codec.NONE, Codec.NONE]
        if is_compressed:
            codecs[self._drawn(0, 1)] = [*_CODECS.values()][self._drawn(1, len(_CODECS) - 1)]
        magics = (magic, magic if is_compressed else 1 - magic)
        specs = [BatchSpec(codec=codec, magic=each) for codec, each in zip(codecs, magics, strict=True)]
        return b"".join(build_batch(spec, records) for spec in specs)

    def _send(self, sent: Sent) -> str:
        log, before = self._log, self._log.state()
        try:
            info = log.append_as_leader(sent.data, leader_epoch=LeaderEpoch(self._epoch), now_ms=TimeMs(self._now_ms))
        except (RefusedError, CorruptBatchError) as error:
            if sent.is_sound:
                return f"a sound batch is refused: {error}"
            return "" if log.state() == before else "a refused batch changed the log"
        if not sent.is_sound:
            return f"an unsound batch of {len(sent.records)} is taken at {info.first_offset}"
        first = len(self._rows)
        if not self._is_old:
            self._starts.setdefault(self._epoch, first)
        self._rows += [
            Row(
                first + place,
                NO_TIMESTAMP if self._magic == 0 else self._now_ms if self._stamps else each.timestamp,
                -1 if self._is_old else self._epoch,
                each.key,
                each.value or b"",
            )
            for place, each in enumerate(sent.records)
        ]
        newest = max(row.time_ms for row in self._rows[first:])
        if (info.first_offset, info.last_offset) != (first, len(self._rows) - 1):
            return f"appended at {info.first_offset} to {info.last_offset}, and {first} was next"
        wanted = sent.codec if self._compression == "producer" else _CODECS[self._compression]
        *_, last = batches_in(log.read(Offset(first), 100_000).records)
        is_one_batch = wanted is not Codec.NONE or self._magic == 2
        of_newest = next(row.offset for row in self._rows[first:] if row.time_ms == newest)
        if is_one_batch:
            of_newest = len(self._rows) - 1
        told = (info.max_timestamp.timestamp, info.max_timestamp.offset)
        is_kept = sent.codec is wanted and sent.magic == self._magic
        if self._magic == 0 and self._stamps and not (is_kept and wanted is Codec.NONE):
            # A builder of messages without times tells the clock.
            newest, of_newest = self._now_ms, len(self._rows) - 1 if is_one_batch else first
        if told != ((newest, of_newest) if newest >= 0 else (-1, -1)):
            return f"the largest time is {told}, and {newest} at {of_newest} is so"
        if is_kept and wanted is not Codec.NONE and self._magic > 0:
            place = _KEPT_FROM[self._magic]
            if not bytes(log.read(Offset(first), 100_000).records).endswith(sent.data[place:]):
                return f"the bytes of a batch of {wanted} that had nothing to be changed are others"
        if self._is_old and (last.codec, last.magic) == (wanted, self._magic):
            return ""
        if (last.codec, last.partition_leader_epoch, last.max_timestamp) != (wanted, self._epoch, newest):
            return f"stored as {last.codec} of epoch {last.partition_leader_epoch} up to {last.max_timestamp}"
        return ""

    def _compared(self) -> str:
        """Return what the log answers otherwise than its list."""
        log, rows = self._log, self._rows
        log.update_high_watermark(log.log_end_offset)
        log.check_invariants()
        found = [
            Row(each.offset, each.timestamp, batch.partition_leader_epoch, each.key, each.value or b"")
            for segment in log.segments
            for batch in segment.batches()
            for each in batch.records()
        ]
        if found != rows:
            return f"{DIRECTORY} holds {found[-3:]}, its list {rows[-3:]}"
        if not rows:
            return ""
        if any(row.time_ms < 0 for row in rows):
            return self._epochs_compared()  # Segments without times count by their files' ages.
        since = rows[self._drawn(0, len(rows) - 1)].time_ms + self._drawn(-1, 1)
        first = next((row for row in rows if row.time_ms >= since), None)
        newest = max(rows, key=lambda row: (row.time_ms, -row.offset))
        earliest, latest = min(self._starts, default=None), max(self._starts, default=None)
        if earliest is not None and self._starts[earliest] > 0:
            earliest = None  # Of what stood there before the log had epochs nobody knows the epoch.
        asked = {
            since: None if first is None else (first.offset, first.time_ms, _named(first)),
            -1: (len(rows), -1, latest),
            -2: (0, -1, earliest),
            -4: (0, -1, earliest),
            -3: (newest.offset, newest.time_ms, _named(newest)),
            **dict.fromkeys((-5, -6), (-1, -1, -1)),  # Nothing is, or will be, in remote storage.
        }
        for time_ms, wanted in asked.items():
            told = log.fetch_offset_by_timestamp(time_ms)
            answer = None if told is None else (told.offset, told.timestamp_ms, told.leader_epoch)
            if answer != wanted:
                return f"for the time {time_ms} it answers {answer}, and {wanted} is so"
        return self._epochs_compared()

    def _epochs_compared(self) -> str:
        """Return where the log says that an epoch ends and its list says otherwise."""
        for epoch in range(-1, self._epoch + 2):
            told = self._log.end_offset_for_epoch(LeaderEpoch(epoch))
            later = [start for other, start in self._starts.items() if other > epoch]
            known = [other for other in self._starts if other <= epoch]
            wanted = None
            if epoch >= 0 and later:
                wanted = (max(known, default=epoch), min(later))
            elif epoch == max(self._starts, default=None):
                wanted = (epoch, len(self._rows))
            if (None if told is None else (told.epoch, told.end_offset)) != wanted:
                return f"epoch {epoch} ends at {told}, and {wanted} is so"
        return ""


def _named(row: Row) -> int | None:
    """Return the epoch that an answer names for a record, None for one of a format without."""
    return None if row.epoch < 0 else row.epoch


def _forged(data: bytes, place: int, number: int) -> bytes:
    """Return a batch with another number in its header, and a sound checksum."""
    changed = bytearray(data)
    changed[place : place + 4] = number.to_bytes(4, signed=True)
    changed[17:21] = crc32c(bytes(changed[21:])).to_bytes(4)
    return bytes(changed)

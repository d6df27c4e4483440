"""Small logs, one a batch shape and codec, written live, with what was known after each append.

Decides which bytes are damaged: every shape of batch that a log may end with. The first append of each counts as
flushed, all others as the tail. What the log said after each append (`Stage`) is the oracle: a recovery that leaves the
first n appends has to say the same, of offsets, producers, leader epochs and aborted transactions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs

from broker.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.units import TimeMs
from log.batches.build import build_batch, build_marker, emptied
from log.batches.build_spec import BatchSpec
from log.batches.in_buffer import batches_in
from log.codecs.compression import Codec
from log.log_config import LogConfig
from log.partition.log_description import ProducerView
from log.partition.partition_log import PartitionLog
from log.record import ControlType, EndTransactionMarker, Header, Record, TimestampType
from log.segments.txn_index import AbortedTransaction
from log.storage.checkpoints import EpochEntry
from tests.log.made import DIRECTORY, NOW, config, memory, opened
from tests.support.disk_image import DiskImage, image_of

CONFIG: Final = config(segment_bytes=1_000_000, index_interval_bytes=64, segment_index_bytes=1000)
PRODUCER: Final = ProducerId(9)
OTHER: Final = ProducerId(10)
LOG_PATH: Final = f"{DIRECTORY}/00000000000000000000.log"


@attrs.frozen
class Stage:
    """A log after some of its appends: how long its file is, and what it says."""

    size_bytes: int
    end_offset: int
    last_stable_offset: int
    producers: tuple[ProducerView, ...]
    epochs: tuple[EpochEntry, ...] | None
    aborted: tuple[AbortedTransaction, ...]


@attrs.frozen
class Written:
    """A log of one segment as it lies on the disk, and its stages, from the empty one on."""

    name: str
    image: DiskImage
    stages: tuple[Stage, ...]

    @property
    def data(self) -> bytes:
        """The log file."""
        return self.image.files[LOG_PATH]

    @property
    def flushed(self) -> Stage:
        """What is on the disk for sure: the first append."""
        return self.stages[1]


def stage_of(log: PartitionLog) -> Stage:
    """Return what a log of one segment says, all of it being replicated."""
    log.update_high_watermark(log.log_end_offset)
    state = log.state()
    return Stage(
        log.active_segment.size_bytes,
        state.log_end_offset,
        state.last_stable_offset,
        state.producers,
        state.leader_epochs,
        log.active_segment.txn_index.entries(),
    )


class Writer:
    """Appends batches of one codec to a log, as a follower gets them, and notes each stage."""

    def __init__(self, name: str, codec: Codec, settings: LogConfig = CONFIG) -> None:
        self.name = name
        self.codec = codec
        self.log = opened(memory(), settings)
        self.stages = [stage_of(self.log)]
        self.sequence = 0

    def records(self, count: int, *, headers: tuple[Header, ...] = ()) -> list[Record]:
        start = self.log.log_end_offset
        # Times go up and down: the largest is not the last.
        return [
            Record(
                Offset(start + number),
                TimeMs(NOW + start * 10 - number),
                b"key-%d" % number,
                b"value " * 4 + b"%d" % start,
                headers,
            )
            for number in range(count)
        ]

    def batch(self, count: int = 2, *, headers: tuple[Header, ...] = (), **fields: Any) -> bytes:
        """Return the next batch; its leader epoch changes every third append."""
        spec = BatchSpec(base_offset=self.log.log_end_offset, codec=self.codec)
        epoch = LeaderEpoch(len(self.stages) // 3)
        return build_batch(
            attrs.evolve(spec, **{"partition_leader_epoch": epoch, **fields}), self.records(count, headers=headers)
        )

    def from_producer(self, producer: ProducerId, count: int = 2, *, sequence: int, transactional: bool) -> bytes:
        return self.batch(
            count,
            producer_id=producer,
            producer_epoch=ProducerEpoch(0),
            base_sequence=sequence,
            is_transactional=transactional,
        )

    def marker(self, producer: ProducerId, kind: ControlType) -> bytes:
        spec = BatchSpec(
            base_offset=self.log.log_end_offset,
            producer_id=producer,
            producer_epoch=ProducerEpoch(0),
            is_transactional=True,
            partition_leader_epoch=LeaderEpoch(len(self.stages) // 3),
        )
        return build_marker(spec, EndTransactionMarker(kind, 1), TimeMs(NOW + 5))

    def append(self, data: bytes) -> None:
        self.log.append_as_follower(data, now_ms=NOW)
        self.stages.append(stage_of(self.log))

    def written(self) -> Written:
        return Written(self.name, image_of(self.log.storage), tuple(self.stages))


def _plain(writer: Writer) -> None:
    for count in (2, 1, 3, 2):
        writer.append(writer.batch(count))


def _idempotent(writer: Writer) -> None:
    for sequence in (0, 2, 4, 6):
        writer.append(writer.from_producer(PRODUCER, sequence=sequence, transactional=False))


def _transactional(writer: Writer) -> None:
    writer.append(writer.from_producer(PRODUCER, sequence=0, transactional=True))
    writer.append(writer.from_producer(OTHER, 1, sequence=0, transactional=True))
    writer.append(writer.marker(PRODUCER, ControlType.ABORT))
    writer.append(writer.from_producer(PRODUCER, 1, sequence=2, transactional=True))
    writer.append(writer.marker(OTHER, ControlType.COMMIT))
    writer.append(writer.marker(PRODUCER, ControlType.ABORT))


def _headers(writer: Writer) -> None:
    headers = (Header("trace", b"1"), Header("none", None), Header("", b""))
    for count in (1, 2, 2):
        writer.append(writer.batch(count, headers=headers))


def _empty(writer: Writer) -> None:
    """What compaction leaves of a producer's last batch when its records are gone."""
    for sequence in (0, 2, 4):
        full = writer.from_producer(PRODUCER, sequence=sequence, transactional=False)
        writer.append(emptied(next(iter(batches_in(full)))) if sequence else full)


def _delete_horizon(writer: Writer) -> None:
    for _ in range(3):
        writer.append(writer.batch(delete_horizon_ms=TimeMs(NOW + 1000)))


def _messages(magic: int) -> Callable[[Writer], None]:
    kind = TimestampType.CREATE_TIME if magic else TimestampType.NO_TIMESTAMP_TYPE

    def write(writer: Writer) -> None:
        for count in (2, 1, 3):
            if writer.codec is Codec.NONE:
                count = 1  # Without a wrapper each message stands alone.
            writer.append(writer.batch(count, magic=magic, timestamp_type=kind, partition_leader_epoch=LeaderEpoch(-1)))

    return write


WRITERS: Final[dict[str, Callable[[Writer], None]]] = {
    "plain": _plain,
    "idempotent": _idempotent,
    "transactional": _transactional,
    "headers": _headers,
    "empty": _empty,
    "delete horizon": _delete_horizon,
    "magic 0": _messages(0),
    "magic 1": _messages(1),
}
SHAPES: Final = tuple(
    (shape, codec) for shape in WRITERS for codec in Codec if not (codec is Codec.ZSTD and shape.startswith("magic"))
)
"""Every shape with every codec that it knows: a magic 0 or 1 with a codec is a wrapper message."""


def written(shape: str, codec: Codec) -> Written:
    """Return the log of a shape and codec."""
    writer = Writer(f"{shape}, {codec.label}", codec)
    WRITERS[shape](writer)
    return writer.written()

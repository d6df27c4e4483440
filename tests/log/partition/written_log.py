"""A log of plain batches and transactions, written at random beside a plain list of all that it must hold."""

from __future__ import annotations

from typing import Final

import attrs

from broker.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from log.batches.build import build_batch, build_marker
from log.batches.build_spec import BatchSpec
from log.partition.producer_append import AppendOrigin
from log.record import ControlType, EndTransactionMarker, Record
from tests.log.made import NOW, config, memory, opened
from tests.support.drawing import Draws

_PRODUCERS: Final = (4, 5, 6)
_EPOCH: Final = LeaderEpoch(0)


@attrs.frozen
class Batch:
    """Hold one batch as it must be stored; `producer` is whose transaction it is of, if of any."""

    base_offset: int
    end_offset: int
    data: bytes
    producer: int | None
    last_sequence: int
    """-1 for a marker, and for a batch of no producer."""


@attrs.define
class Transaction:
    """Hold a transaction: where it begins, and the offset of its marker once it is decided."""

    producer: int
    first_offset: int
    marker_offset: int | None = None
    is_aborted: bool = False


class WrittenLog:
    """Keep a log and the list of what was written to it."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        interval = draws.one((0, 0, 200, 4_096))
        self.log = opened(memory(), config(segment_bytes=draws.one((250, 500, 2_000)), index_interval_bytes=interval))
        self.batches: list[Batch] = []
        self.transactions: list[Transaction] = []
        self.start_offset = self.end_offset = self.high_watermark = 0
        self._sequences = dict.fromkeys(_PRODUCERS, 0)

    def write(self) -> None:
        """Append a batch or a marker, or raise the log start."""
        draws, producer = self._draws, self._draws.one(_PRODUCERS)
        open_ones = [each for each in self.transactions if each.marker_offset is None]
        act = draws.number(0, 9)
        if act == 0 and self.high_watermark > self.start_offset:
            self.start_offset = draws.number(self.start_offset, self.high_watermark)
            self.log.increment_log_start_offset(Offset(self.start_offset))
        elif act < 4 and open_ones:
            self._decide(draws.one(open_ones))
        elif act < 8:
            if all(each.producer != producer for each in open_ones):
                self.transactions.append(Transaction(producer, self.end_offset))
            self._append(draws.number(1, 3), producer)
        else:
            self._append(draws.number(1, 3), None)

    def replicate(self) -> None:
        """Raise the high watermark."""
        self.high_watermark = self._draws.number(self.high_watermark, self.end_offset)
        self.log.update_high_watermark(Offset(self.high_watermark))

    def base_of(self, offset: int) -> int:
        """Return where the batch that holds an offset begins; the offset itself at the log's end."""
        holding = [each.base_offset for each in self.batches if each.base_offset <= offset < each.end_offset]
        return holding[0] if holding else offset

    def stable_offset(self) -> int:
        """Return where the first transaction begins of which no marker is replicated, at most the high watermark."""
        high = self.high_watermark
        decided = [each for each in self.transactions if each.marker_offset is not None and each.marker_offset < high]
        return min([high, *(each.first_offset for each in self.transactions if each not in decided)])

    def _append(self, count: int, producer: int | None) -> None:
        spec, last_sequence = BatchSpec(), -1
        if producer is not None:
            spec = BatchSpec(
                producer_id=ProducerId(producer),
                producer_epoch=ProducerEpoch(0),
                base_sequence=self._sequences[producer],
                is_transactional=True,
            )
            self._sequences[producer] += count
            last_sequence = self._sequences[producer] - 1
        records = [Record(Offset(each), NOW, None, b"%d" % self.end_offset) for each in range(count)]
        self.log.append_as_leader(build_batch(spec, records), leader_epoch=_EPOCH, now_ms=NOW)
        moved = [attrs.evolve(each, offset=Offset(self.end_offset + each.offset)) for each in records]
        self._keep(build_batch(self._stored(spec), moved), count, producer, last_sequence)

    def _decide(self, transaction: Transaction) -> None:
        """Commit or abort a transaction by a marker."""
        transaction.is_aborted = self._draws.is_one_in(2)
        transaction.marker_offset = self.end_offset
        marker = EndTransactionMarker(ControlType.ABORT if transaction.is_aborted else ControlType.COMMIT, 0)
        spec = BatchSpec(producer_id=ProducerId(transaction.producer), producer_epoch=ProducerEpoch(0))
        self.log.append_as_leader(
            build_marker(spec, marker, NOW),
            leader_epoch=_EPOCH,
            now_ms=NOW,
            origin=AppendOrigin.COORDINATOR,
            transaction_version=0,
        )
        self._keep(build_marker(self._stored(spec), marker, NOW), 1, transaction.producer, -1)

    def _stored(self, spec: BatchSpec) -> BatchSpec:
        """Return what a batch is after the leader has given it its offset and epoch."""
        return attrs.evolve(spec, base_offset=Offset(self.end_offset), partition_leader_epoch=_EPOCH)

    def _keep(self, data: bytes, count: int, producer: int | None, last_sequence: int) -> None:
        self.batches.append(Batch(self.end_offset, self.end_offset + count, data, producer, last_sequence))
        self.end_offset += count

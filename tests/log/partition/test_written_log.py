"""A log of plain batches and transactions, written at random beside a plain list of all that it must hold."""

from __future__ import annotations

from itertools import accumulate
from typing import Final

import attrs
from hypothesis import given, settings

from broker.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from log.batches.build import BatchSpec, build_batch, build_marker
from log.errors import OffsetOutOfRangeError
from log.partition.producer_append import AppendOrigin
from log.partition.producer_state import ProducerState
from log.partition.reading import Isolation, OffsetPlace
from log.partition.segment_recovery import RebuildRequest, rebuild_producer_state
from log.record import ControlType, EndTransactionMarker, Record
from log.segments.file_names import PRODUCER_SNAPSHOT
from log.segments.txn_index import AbortedTransaction
from tests.log.made import NOW, config, memory, opened
from tests.support.drawing import DRAWS, Draws

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


STEP_COUNT: Final = 14
READS_A_STEP: Final = 4
WRITES_MAX: Final = 20
REBUILDS_A_LIFE: Final = 3
_FOLDER: Final = "rebuilt"


def _read(draws: Draws, written: WrittenLog) -> str:
    """Read once, and return what is wrong with it."""
    if draws.is_one_in(2):
        written.replicate()
    start, end = written.start_offset, written.end_offset
    isolation, is_whole = draws.one((*Isolation, Isolation.COMMITTED)), not draws.is_one_in(4)
    at, size = draws.number(-1, end + 1), draws.one((0, 1, 100, 300, 9_000))
    what = f"{isolation.name} at {at}, {size} bytes, at least one batch: {is_whole}"
    if isolation is not Isolation.LOG_END and at >= start:
        # Since Kafka 4.0 the high watermark of who consumes is where its batch begins, for all from then on.
        written.high_watermark = written.base_of(written.high_watermark)
    try:
        answer = written.log.read(Offset(at), size, isolation=isolation, min_one_message=is_whole)
    except OffsetOutOfRangeError:
        return f"{what}: out of range" if start <= at <= end else ""
    if not start <= at <= end:
        return f"{what}: taken of a log from {start} to {end}"
    limits = {Isolation.LOG_END: end, Isolation.HIGH_WATERMARK: written.high_watermark}
    limit, here = limits.get(isolation, written.stable_offset()), _segment_from(written, at)
    whole = here[0].data if here else b""
    wanted = b"".join(each.data for each in here if each.end_offset <= limit) if at < limit else b""
    wanted = wanted[: max(size, len(whole)) if is_whole else size]
    if bytes(answer.records) != wanted:
        return f"{what}: {len(answer.records)} bytes, and {len(wanted)} are due below {limit}"
    if answer.start != _place(written, at):
        return f"{what}: begins at {answer.start}, and {_place(written, at)} is where that is"
    is_cut = at < limit and not is_whole and size < len(whole)
    if answer.first_batch_incomplete != is_cut:
        return f"{what}: its first batch is cut: {answer.first_batch_incomplete}"
    names = answer.aborted_transactions
    if (names is not None) != (isolation is Isolation.COMMITTED):
        return f"{what}: the aborted transactions are {names}"
    differs = "" if names is None else _aborted(written, at, here, len(wanted), names)
    return f"{what}: {differs}" if differs else ""


def _segment_from(written: WrittenLog, at: int) -> list[Batch]:
    """Return the batches of a segment from the one that holds an offset on."""
    left = [each for each in written.batches if each.end_offset > at]
    bases = [each.base_offset for each in written.log.segments if left and each.base_offset > left[0].base_offset]
    return [each for each in left if each.base_offset < min(bases, default=written.end_offset)]


def _place(written: WrittenLog, at: int) -> OffsetPlace:
    """Return the segment of an offset, and the position of its batch there."""
    base = max(each.base_offset for each in written.log.segments if each.base_offset <= at)
    before = [each for each in written.batches if base <= each.base_offset and each.end_offset <= at]
    return OffsetPlace(Offset(at), base, sum(len(each.data) for each in before))


def _aborted(written: WrittenLog, at: int, here: list[Batch], size: int, answer: tuple[AbortedTransaction, ...]) -> str:
    """Return which aborted transaction a read does not name, or names though it has nothing in the segment."""
    known = [each for each in written.transactions if each.is_aborted and (each.marker_offset or 0) >= at]
    ends = [each.end_offset for each in here]
    begun = [end for end, position in zip(ends, _positions(here), strict=True) if position < size]
    names = [(each.producer_id, each.first_offset, each.last_offset) for each in answer]
    due = [each for each in known if each.first_offset < max(begun, default=at)] if size else []
    missing = [each for each in due if (each.producer, each.first_offset, each.marker_offset) not in names]
    if missing:
        return f"{missing} are not named in {names}"
    allowed = {
        (each.producer, each.first_offset, each.marker_offset)
        for each in known
        if each.first_offset < max(ends, default=at)
    }
    return "" if set(names) <= allowed and len({*names}) == len(names) else f"{names} are named, allowed are {allowed}"


def _positions(batches: list[Batch]) -> list[int]:
    """Return where each of some batches begins, in bytes after the first."""
    return [0, *accumulate(len(each.data) for each in batches)][: len(batches)]


def _rebuilds(draws: Draws) -> str:
    written = WrittenLog(draws)
    for _ in range(draws.number(1, WRITES_MAX)):
        written.write()
        written.replicate()
    written.log.storage.make_directory(_FOLDER)
    ends = [each for each in (0, *(batch.end_offset for batch in written.batches)) if each >= written.start_offset]
    bases = [int(segment.base_offset) for segment in written.log.segments]
    for count in range(REBUILDS_A_LIFE):
        before = _snapshots(written)
        is_clean = is_skipped = count == 0 and draws.is_one_in(4)
        last_offset = written.end_offset if is_skipped else draws.one(ends)
        answer = _rebuilt(written, last_offset, is_clean=is_clean)
        wanted = {} if is_skipped else _listed(written, last_offset)
        what = f"up to {last_offset} of {written.end_offset}, clean {is_clean}, segments {bases}"
        if answer != wanted:
            return f"{what}: {answer}, and {wanted} were written"
        snapshots = _snapshots(written)
        if last_offset > written.start_offset and not {last_offset} <= snapshots <= before | {last_offset, *bases[-2:]}:
            return f"{what}: snapshots at {snapshots}, before at {before}"
        if count == 0 and not is_skipped:
            # All is read, and what was read so far is written down where one of the last two segments begins.
            passed = {base for base in (*bases[-2:], last_offset) if written.start_offset < base <= last_offset}
            if snapshots != passed:
                return f"{what}: snapshots at {snapshots}, and {passed} were come to"
        if is_clean and not {*bases[-2:]} - {0} <= snapshots:
            return f"{what}: snapshots at {snapshots} only"
        if is_skipped:
            return ""  # The snapshots say that there are no producers.
    return ""


def _snapshots(written: WrittenLog) -> set[int]:
    names = written.log.storage.list(_FOLDER)
    return {int(name.removesuffix(PRODUCER_SNAPSHOT)) for name in names if name.endswith(PRODUCER_SNAPSHOT)}


def _rebuilt(written: WrittenLog, last_offset: int, *, is_clean: bool) -> dict[int, tuple[int, int | None]]:
    """Return the last sequence of each producer, and where its open transaction begins."""
    producers = ProducerState.open(written.log.storage, _FOLDER, name=_FOLDER)
    request = RebuildRequest(
        log_start_offset=Offset(written.start_offset),
        last_offset=Offset(last_offset),
        had_clean_shutdown=is_clean,
        now_ms=NOW,
    )
    rebuild_producer_state(producers, written.log.local.segments, request)
    assert producers.map_end_offset == last_offset, producers
    return {each.producer_id: (each.last_sequence, each.current_txn_first_offset) for each in producers.producers}


def _listed(written: WrittenLog, last_offset: int) -> dict[int, tuple[int, int | None]]:
    """Return the same by the list."""
    found: dict[int, tuple[int, int | None]] = {}
    for each in written.batches:
        if each.producer is None or not written.start_offset < each.end_offset <= last_offset:
            continue
        sequence, first_offset = found.get(each.producer, (-1, None))
        if each.last_sequence < 0:
            found[each.producer] = (sequence, None)
        else:
            found[each.producer] = (each.last_sequence, each.base_offset if first_offset is None else first_offset)
    return found


@settings(max_examples=40)
@given(draws=DRAWS)
def test_readers_get_what_the_list_holds(draws: Draws) -> None:
    written = WrittenLog(draws)
    for _ in range(STEP_COUNT):
        written.write()
        found = [_read(draws, written) for _ in range(READS_A_STEP)]
        assert not any(found), (found, written.transactions, written.high_watermark)


@given(draws=DRAWS)
def test_producers_are_rebuilt_as_the_list_says(draws: Draws) -> None:
    assert _rebuilds(draws) == ""

"""Write transactions into a log at random, and compare what readers of each isolation get with a plain list.

What it decides: how far what was written (`written_log`) is replicated, and from where and how much is read.

Constraints: the list keeps whole batches. Where segments begin is taken from the log, as rolls are the business of
other parts. Of the aborted transactions a log may name more than a read needs: those of the rest of the segment.

Source: kafka.log.LocalLog.read, UnifiedLog.{fetchLastStableOffsetMetadata,maybeIncrementFirstUnstableOffset}, 4.3.1, as
facts; KIP-98.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Final

from broker.ids import Offset
from log.errors import OffsetOutOfRangeError
from log.indexes.txn_index import AbortedTransaction
from log.partition.reading import Isolation, OffsetPlace
from tests.replication.mutants.drawing import Draws
from tests.replication.mutants.written_log import Batch, WrittenLog

LIVES_A_RUN: Final = 4
STEP_COUNT: Final = 14
READS_A_STEP: Final = 4
_STREAM: Final = 55


def reads_noticed(seed: int) -> str:
    """Return in what the first log of a run is read otherwise than its list, "" if in nothing."""
    draws = Draws(seed, _STREAM)
    for _ in range(LIVES_A_RUN):
        written = WrittenLog(draws)
        for _ in range(STEP_COUNT):
            written.write()
            told = next((told for told in (_read(draws, written) for _ in range(READS_A_STEP)) if told), "")
            if told:
                return f"{told}; transactions {written.transactions}, high watermark {written.high_watermark}"
    return ""


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
        told = written.log.read(Offset(at), size, isolation=isolation, min_one_message=is_whole)
    except OffsetOutOfRangeError:
        return f"{what}: out of range" if start <= at <= end else ""
    if not start <= at <= end:
        return f"{what}: taken of a log from {start} to {end}"
    limits = {Isolation.LOG_END: end, Isolation.HIGH_WATERMARK: written.high_watermark}
    limit, here = limits.get(isolation, written.stable_offset()), _segment_from(written, at)
    whole = here[0].data if here else b""
    wanted = b"".join(each.data for each in here if each.end_offset <= limit) if at < limit else b""
    wanted = wanted[: max(size, len(whole)) if is_whole else size]
    if bytes(told.records) != wanted:
        return f"{what}: {len(told.records)} bytes, and {len(wanted)} are due below {limit}"
    if told.start != _place(written, at):
        return f"{what}: begins at {told.start}, and {_place(written, at)} is where that is"
    is_cut = at < limit and not is_whole and size < len(whole)
    if told.first_batch_incomplete != is_cut:
        return f"{what}: its first batch is cut: {told.first_batch_incomplete}"
    names = told.aborted_transactions
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


def _aborted(written: WrittenLog, at: int, here: list[Batch], size: int, told: tuple[AbortedTransaction, ...]) -> str:
    """Return which aborted transaction a read does not name, or names though it has nothing in the segment."""
    known = [each for each in written.transactions if each.is_aborted and (each.marker_offset or 0) >= at]
    ends = [each.end_offset for each in here]
    begun = [end for end, position in zip(ends, _positions(here), strict=True) if position < size]
    names = [(each.producer_id, each.first_offset, each.last_offset) for each in told]
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

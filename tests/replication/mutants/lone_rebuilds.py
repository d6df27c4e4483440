"""Rebuild the state of a log's producers up to drawn offsets, and compare it with what a plain list says.

What it decides: what was written, up to which batch the state is rebuilt, and that it is rebuilt again beside the
snapshots that were written on the way, to the same offset or another.

Constraints: the log start stays where it is between two of them: a snapshot may know of producers below it.

Source: UnifiedLog.rebuildProducerState, 4.3.1, as facts: the state is that of the batches below the offset, and nothing
where there is no snapshot after a clean shutdown, or in a log of an old format.
"""

from __future__ import annotations

from typing import Final

from broker.ids import Offset
from log.partition.producer_rebuild import RebuildRequest, rebuild_producer_state
from log.producers.state import ProducerState
from log.segments.file_names import PRODUCER_SNAPSHOT
from tests.log.made import NOW
from tests.replication.mutants.drawing import Draws
from tests.replication.mutants.written_log import WrittenLog

LIVES_A_RUN: Final = 12
WRITES_MAX: Final = 20
REBUILDS_A_LIFE: Final = 3
_FOLDER: Final = "rebuilt"
_STREAM: Final = 56


def rebuilds_noticed(seed: int) -> str:
    """Return in what the first state of a run differs from the list, "" if in nothing."""
    draws = Draws(seed, _STREAM)
    return next((told for told in (_life_noticed(draws) for _ in range(LIVES_A_RUN)) if told), "")


def _life_noticed(draws: Draws) -> str:
    written = WrittenLog(draws)
    for _ in range(draws.number(1, WRITES_MAX)):
        written.write()
        written.replicate()
    written.log.storage.make_directory(_FOLDER)
    ends = [each for each in (0, *(batch.end_offset for batch in written.batches)) if each >= written.start_offset]
    bases = [int(segment.base_offset) for segment in written.log.segments]
    for count in range(REBUILDS_A_LIFE):
        before = _snapshots(written)
        is_clean, magic = count == 0 and draws.is_one_in(4), draws.one((1, 2, 2, 2))
        is_skipped = magic < 2 or is_clean
        last_offset = written.end_offset if is_skipped else draws.one(ends)
        told = _rebuilt(written, last_offset, magic=magic, is_clean=is_clean)
        wanted = {} if is_skipped else _listed(written, last_offset)
        what = f"up to {last_offset} of {written.end_offset}, magic {magic}, clean {is_clean}, segments {bases}"
        if told != wanted:
            return f"{what}: {told}, and {wanted} were written"
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


def _rebuilt(written: WrittenLog, last_offset: int, *, magic: int, is_clean: bool) -> dict[int, tuple[int, int | None]]:
    """Return the last sequence of each producer, and where its open transaction begins."""
    producers = ProducerState.open(written.log.storage, _FOLDER, name=_FOLDER)
    request = RebuildRequest(
        log_start_offset=Offset(written.start_offset),
        last_offset=Offset(last_offset),
        magic=magic,
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

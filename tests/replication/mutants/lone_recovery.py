"""Harm a log's files as crashes do, open it again, and compare what is left with what was written.

What it decides: the batches of a log, which harm its files take, and by a list of whole batches what must be left: the
longest prefix that no harm touched. Both ways to recover a segment, batch by batch and by columns, take turns.

Constraints: what was flushed is never harmed. Bytes that no checksum covers are left alone: what they say is believed.

Source: Kafka's LogLoader and LogSegment.recover, as facts: a segment ends before its first batch that is not whole, and
those after it go; `.cleaned` and `.deleted` files go, complete `.swap` files take the place of what they cover.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Final

import attrs

from broker.clock import ManualClock
from broker.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.units import TimeMs
from log.batches.build import build_batch
from log.batches.build_spec import BatchSpec
from log.batches.in_buffer import batches_in
from log.codecs.compression import Codec
from log.partition import segment_recovery
from log.partition.partition_log import PartitionLog
from log.partition.recovery import LastShutdown
from log.record import Record
from log.storage import DiskImage, MemoryStorage, image_of
from tests.log.made import DIRECTORY, NOW, config, opened
from tests.replication.mutants.drawing import Draws

LIVES_A_RUN: Final = 30
_STREAM: Final = 21
_CODECS: Final = (Codec.NONE, Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)
_BATCH_COUNT_MAX: Final = 14
_FAR: Final = 2**31
"""A gap of offsets that no index entry relative to a segment's base can hold."""
_CHECKED_FROM: Final = 21
"""From which byte on a batch's checksum covers it."""


@attrs.frozen
class Batch:
    """Hold a batch as it must be found again."""

    data: bytes
    base_offset: int
    next_offset: int
    time_ms: int
    epoch: int
    producer: int
    last_sequence: int


def recovery_noticed(seed: int) -> str:
    """Return what one of a run's logs that were opened again lost or made up, "" if nothing."""
    draws = Draws(seed, _STREAM)
    return next((told for told in (_life_noticed(draws) for _ in range(LIVES_A_RUN)) if told), "")


def _life_noticed(draws: Draws) -> str:
    segment_bytes, interval_bytes = draws.number(150, 700), draws.one((0, 0, 200))
    settings = config(segment_bytes=segment_bytes, index_interval_bytes=interval_bytes, retention_ms=-1)
    batches = _written(draws)
    image = _stored(draws, batches, segment_bytes)
    left, image = _harmed(draws, image, batches)
    storage = MemoryStorage(ManualClock(NOW), image)
    with _columns_from(draws.one((0, 10**9))):
        log = PartitionLog.open(storage, DIRECTORY, settings, LastShutdown(clean=False), now_ms=NOW)
        told = _compared(log, left)
        if told:
            return told
        log.run_scheduled(NOW)
        log.close(now_ms=NOW)
        again = LastShutdown(clean=draws.is_one_in(2), recovery_point=log.log_end_offset)
        reopened = opened(MemoryStorage(ManualClock(NOW), image_of(storage)), settings, last_shutdown=again)
        return _compared(reopened, left)


@contextmanager
def _columns_from(size_bytes: int) -> Iterator[None]:
    before = segment_recovery.COLUMNS_FROM_BYTES
    vars(segment_recovery)["COLUMNS_FROM_BYTES"] = size_bytes
    try:
        yield
    finally:
        vars(segment_recovery)["COLUMNS_FROM_BYTES"] = before


def _written(draws: Draws) -> list[Batch]:
    batches: list[Batch] = []
    offset, epoch, sequences = 0, draws.number(0, 2), dict.fromkeys(range(3), 0)
    is_far, is_new = draws.is_one_in(3), False
    for number in range(draws.number(1, _BATCH_COUNT_MAX)):
        count, producer = draws.number(1, 4), draws.number(-1, 2)
        if draws.is_one_in(4):
            epoch += draws.number(1, 2)
        if draws.is_one_in(5) and number:
            offset += _FAR if is_far and not is_new else draws.number(1, 9)
            is_new = is_far
        time_ms = NOW + draws.number(-500, 500)
        records = [
            Record(Offset(offset + place), TimeMs(time_ms), b"k%d" % place, b"v" * draws.number(0, 40))
            for place in range(count)
        ]
        base = BatchSpec(
            base_offset=Offset(offset), codec=draws.one(_CODECS), partition_leader_epoch=LeaderEpoch(epoch)
        )
        if producer >= 0:
            base = attrs.evolve(
                base,
                producer_id=ProducerId(producer),
                producer_epoch=ProducerEpoch(0),
                base_sequence=sequences[producer],
            )
            sequences[producer] += count
        last = sequences[producer] - 1 if producer >= 0 else -1
        batches.append(Batch(build_batch(base, records), offset, offset + count, time_ms, epoch, producer, last))
        offset += count
    return batches


def _stored(draws: Draws, batches: list[Batch], segment_bytes: int) -> DiskImage:
    """Return a disk with the batches in segments; now and then one segment holds more offsets than it may."""
    files: dict[str, bytes] = {}
    base, data = batches[0].base_offset, b""
    for each in batches:
        is_far = each.base_offset - base >= _FAR and not draws.is_one_in(2)
        if data and (len(data) + len(each.data) > segment_bytes or is_far):
            files[_name(base)] = data
            base, data = each.base_offset, b""
        data += each.data
    files[_name(base)] = data
    # Indexes that are there are not believed; a segment without one is cut on its own, as in Kafka.
    indexes = {name.removesuffix(".log") + kind: b"" for name in files for kind in (".index", ".timeindex")}
    return DiskImage({**files, **indexes}, frozenset({DIRECTORY}))


def _name(base_offset: int, suffix: str = ".log") -> str:
    return f"{DIRECTORY}/{base_offset:020d}{suffix}"


@attrs.frozen
class Left:
    """Hold the batches that must be left, and the base of the last segment, below which no log ends."""

    batches: list[Batch]
    last_base_offset: int


def _harmed(draws: Draws, image: DiskImage, batches: list[Batch]) -> tuple[Left, DiskImage]:
    """Return what must be left, and the disk after the harm."""
    files = dict(image.files)
    names = sorted(name for name in files if name.endswith(".log"))
    left = Left(batches, _base_of(names[-1]))
    harm = draws.number(0, 5)
    bases = [_base_of(name) for name in names]
    # A segment with too many offsets is split before it is cut; Kafka fails where it is torn as well.
    is_far = any(each.base_offset - max(b for b in bases if b <= each.base_offset) >= _FAR for each in batches)
    if harm in (1, 2) and not is_far:
        left = _torn(draws, files, names, batches, is_cut=harm == 1)
    elif harm in (3, 4):
        _break_off_replacement(draws, files, names, is_complete=harm == 3)
    elif harm == 5:
        files[_name(draws.number(0, 50), ".log.deleted")] = b"old"
        files[_name(10**9, draws.one((".index", ".timeindex", ".txnindex")))] = bytes(24)
    return left, DiskImage(files, image.directories)


def _torn(draws: Draws, files: dict[str, bytes], names: list[str], batches: list[Batch], *, is_cut: bool) -> Left:
    """Cut one of the segments at any byte, or change one of its bits."""
    name = draws.one(names)
    at, before = draws.number(0, len(files[name]) - 1), sum(len(files[each]) for each in names if each < name)
    ends = list(accumulate(len(each.data) for each in batches))
    place = next(index for index, end in enumerate(ends) if end > before + at)
    start, end = ends[place] - len(batches[place].data) - before, before + len(files[name])
    if is_cut:
        files[name] = files[name][:at]
    else:
        at = max(at, start + _CHECKED_FROM)
        spoilt = bytearray(files[name])
        spoilt[at] ^= 1 << draws.number(0, 7)
        files[name] = bytes(spoilt)
    if is_cut and at == start:
        # What ends between two batches is whole: nobody can tell, and the segments behind it stay.
        later = [each for index, each in enumerate(batches) if index < place or ends[index] > end]
        return Left(later, _base_of(names[-1]))
    return Left(batches[:place], _base_of(name))


def _break_off_replacement(draws: Draws, files: dict[str, bytes], names: list[str], *, is_complete: bool) -> None:
    """Leave the files of a cleaner's pass that put the first segments into one, and was broken off."""
    count = draws.number(1, len(names))
    merged = b"".join(files[each] for each in names[:count])
    files[_name(_base_of(names[0]), ".log.swap" if is_complete else ".log.cleaned")] = merged
    for name in names[:count]:
        if is_complete and draws.is_one_in(2):
            del files[name]
    if not is_complete and count < len(names):
        files[_name(_base_of(names[count]), ".log.swap")] = b"unfinished"


def _base_of(name: str) -> int:
    return int(name.rpartition("/")[2].partition(".")[0])


def _compared(log: PartitionLog, left: Left) -> str:
    """Return where the log and what must be left differ."""
    kept = left.batches
    log.check_invariants()
    stored = b"".join(bytes(each.records.view()) for each in log.segments)
    wanted = b"".join(each.data for each in kept)
    if stored != wanted:
        return f"{len(stored)} bytes are left, and {len(wanted)} were whole"
    end = max([left.last_base_offset, *(each.next_offset for each in kept[-1:])])
    if log.log_end_offset != end:
        return f"the log ends at {log.log_end_offset}, and {end} is next"
    starts: dict[int, int] = {}
    for each in kept:
        if each.epoch > max(starts, default=-1):
            starts[each.epoch] = each.base_offset
    if log.epochs is not None and [(e.epoch, e.start_offset) for e in log.epochs.entries] != list(starts.items()):
        return f"it has epochs {log.epochs.entries}, and {starts} begin in it"
    last = {each.producer: each.last_sequence for each in kept if each.producer >= 0}
    known = {each.producer_id: each.last_sequence for each in log.state().producers}
    if known != last:
        return f"producers are at {known}, and {last} were written"
    log.update_high_watermark(log.log_end_offset)
    for each in kept:
        first = next(iter(batches_in(log.read(Offset(each.next_offset - 1), 1).records)), None)
        if first is None or first.base_offset != each.base_offset:
            return f"a read at {each.next_offset - 1} begins with {first}"
    return ""

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
from itertools import accumulate, pairwise
from typing import Final

import attrs

from broker.clock import ManualClock
from broker.errors import CorruptDataError, RefusedError
from broker.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.units import TimeMs
from log.batches.build import build_batch
from log.batches.build_spec import BatchSpec
from log.batches.in_buffer import batches_in
from log.codecs.compression import Codec
from log.codecs.crc import crc32c
from log.log_config import LogConfig
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
_CHECKED_FROM: Final = {0: 17, 1: 17, 2: 21}
"""From which byte on a batch's checksum covers it, by its magic, but for the magic itself."""
_HEADER_BYTES, _OFFSET_LAST_BYTE = 21, 7
"""The length of what a checksum does not cover, with itself; and where in it the base offset ends."""
_FORMATS: Final = ("0.9.0", "0.10.2")
"""The last release that wrote each old magic."""


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
    magic: int


def recovery_noticed(seed: int) -> str:
    """Return what one of a run's logs that were opened again lost or made up, "" if nothing."""
    draws = Draws(seed, _STREAM)
    return next((told for told in (_life_noticed(draws) for _ in range(LIVES_A_RUN)) if told), "")


def _life_noticed(draws: Draws) -> str:
    segment_bytes, interval_bytes = draws.number(150, 700), draws.one((0, 0, 200))
    old_count = draws.number(1, _BATCH_COUNT_MAX) if draws.is_one_in(4) else 0
    named = {"message_format_version": draws.one(_FORMATS)} if draws.is_one_in(5) else {}
    settings = config(segment_bytes=segment_bytes, index_interval_bytes=interval_bytes, retention_ms=-1, **named)
    batches = _written(draws, old_count)
    image = _stored(draws, batches, segment_bytes)
    if draws.is_one_in(4):
        return _ways_compared(draws, image, settings)
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


def _ways_compared(draws: Draws, image: DiskImage, settings: LogConfig) -> str:
    """Return where the two ways to recover differ for a log with a changed byte that no checksum covers."""
    files = dict(image.files)
    name = draws.one(sorted(name for name in files if name.endswith(".log")))
    starts = [each.position for each in batches_in(files[name])]
    spoilt = bytearray(files[name])
    # Most of the others say no more than that there is no such batch.
    byte = draws.one((_OFFSET_LAST_BYTE, draws.number(0, _HEADER_BYTES - 1)))
    spoilt[draws.one((starts[0], draws.one(starts))) + byte] ^= 1 << draws.number(0, 7)
    files[name] = bytes(spoilt)
    told = []
    for size_bytes in (0, 10**9):
        storage = MemoryStorage(ManualClock(NOW), DiskImage(files, image.directories))
        with _columns_from(size_bytes):
            try:
                log = PartitionLog.open(storage, DIRECTORY, settings, LastShutdown(clean=False), now_ms=NOW)
            except (RefusedError, CorruptDataError) as error:
                told.append(f"{type(error).__name__}")
                continue
            stored = [bytes(each.records.view()) for each in log.segments]
            told.append(f"{log.state()} of {crc32c(b''.join(stored))}")
    return "" if told[0] == told[1] else f"by columns it is {told[0]}, batch by batch {told[1]}"


@contextmanager
def _columns_from(size_bytes: int) -> Iterator[None]:
    before = segment_recovery.COLUMNS_FROM_BYTES
    vars(segment_recovery)["COLUMNS_FROM_BYTES"] = size_bytes
    try:
        yield
    finally:
        vars(segment_recovery)["COLUMNS_FROM_BYTES"] = before


def _written(draws: Draws, old_count: int) -> list[Batch]:
    """Return batches, of which the first `old_count` are of an old format."""
    batches: list[Batch] = []
    offset, epoch, sequences = 0, draws.number(0, 2), dict.fromkeys(range(3), 0)
    is_far, is_new = draws.is_one_in(3), False
    for number in range(draws.number(1, _BATCH_COUNT_MAX)):
        count, producer = draws.number(1, 4), draws.number(-1, 2)
        magic, codec = draws.number(0, 1) if number < old_count else 2, draws.one(_CODECS)
        if magic < 2:
            # Of the old formats a message that is not compressed is a batch, and neither has a producer or an epoch.
            count, producer = 1 if codec is Codec.NONE else count, -1
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
        base = BatchSpec(Offset(offset), magic, codec, partition_leader_epoch=LeaderEpoch(epoch if magic == 2 else -1))
        if producer >= 0:
            base = attrs.evolve(
                base,
                producer_id=ProducerId(producer),
                producer_epoch=ProducerEpoch(0),
                base_sequence=sequences[producer],
            )
            sequences[producer] += count
        last, known_epoch = sequences[producer] - 1 if producer >= 0 else -1, base.partition_leader_epoch
        data = build_batch(base, records)
        batches.append(Batch(data, offset, offset + count, time_ms, known_epoch, producer, last, magic))
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
    elif harm == 3:
        left = _complete_replacement(draws, files, names, batches)
    elif harm == 4:
        _break_off_replacement(draws, files, names, batches)
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
        at = max(at, start + _CHECKED_FROM[batches[place].magic])
        spoilt = bytearray(files[name])
        spoilt[at] ^= 1 << draws.number(0, 7)
        files[name] = bytes(spoilt)
    if is_cut and at == start:
        # What ends between two batches is whole: nobody can tell, and the segments behind it stay.
        later = [each for index, each in enumerate(batches) if index < place or ends[index] > end]
        return Left(later, _base_of(names[-1]))
    return Left(batches[:place], _base_of(name))


def _cleaned(draws: Draws, names: list[str], batches: list[Batch]) -> tuple[list[Batch], dict[int, bytes]]:
    """Return what a pass over some segments from the first on leaves of all batches, and its outputs by base offset.

    A cleaner drops superseded batches, but neither the last one of a segment that it writes nor a producer's.
    """
    bases = [_base_of(each) for each in names]
    first_kept = [*bases[1:], None][draws.number(0, len(names) - 1)]
    starts = [base for base in bases if first_kept is None or base < first_kept]
    cuts = starts[:1] if len(starts) == 1 or draws.is_one_in(2) else [starts[0], draws.one(starts[1:])]
    left: list[Batch] = []
    outputs: dict[int, bytes] = {}
    for base, end in pairwise((*cuts, first_kept)):
        assert base is not None
        covered = [each for each in batches if each.base_offset >= base and (end is None or each.base_offset < end)]
        kept = [each for each in covered[:-1] if each.producer >= 0 or not draws.is_one_in(3)] + covered[-1:]
        outputs[base] = b"".join(each.data for each in kept)
        left += kept
    return left + [each for each in batches if first_kept is not None and each.base_offset >= first_kept], outputs


def _complete_replacement(draws: Draws, files: dict[str, bytes], names: list[str], batches: list[Batch]) -> Left:
    """Leave the files of a pass that had written all its output, and maybe of another one that had begun behind it."""
    left, outputs = _cleaned(draws, names, batches)
    for base, data in outputs.items():
        files[_name(base, ".log.swap")] = data
    last = _last_replaced(names, left, outputs)
    behind = [each for each in names if _base_of(each) > last]
    for name in names:
        if name not in behind and draws.is_one_in(2):
            del files[name]
    if behind and draws.is_one_in(2):
        kind = draws.one((".log", ".index", ".timeindex"))
        files[_name(_base_of(draws.one(behind)), f"{kind}.cleaned")] = b"begun"
    return Left(left, max(_base_of(name) for name in (*behind, _name(max(outputs)))))


def _last_replaced(names: list[str], left: list[Batch], outputs: dict[int, bytes]) -> int:
    """Return the base of the last segment that the outputs of a pass take the place of."""
    written = sum(len(data) for data in outputs.values())
    ends = list(accumulate(len(each.data) for each in left))
    last = left[ends.index(written)]
    return max(base for base in map(_base_of, names) if base <= last.base_offset)


def _break_off_replacement(draws: Draws, files: dict[str, bytes], names: list[str], batches: list[Batch]) -> None:
    """Leave the files of a pass that was broken off as it renamed its output, from the last to the first."""
    _, outputs = _cleaned(draws, names, batches)
    written = [
        (_name(base, kind), data if kind == ".log" else b"")
        for base, data in sorted(outputs.items(), reverse=True)
        for kind in (".log", ".index", ".timeindex")
    ]
    renamed_count = draws.number(0, len(written) - 1)
    for index, (name, data) in enumerate(written):
        files[name + (".swap" if index < renamed_count else ".cleaned")] = data


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
    # A log of an old format is taken to have no producers.
    keeps_producers = log.config.magic == 2
    last = {each.producer: each.last_sequence for each in kept if each.producer >= 0 and keeps_producers}
    known = {each.producer_id: each.last_sequence for each in log.state().producers}
    if known != last:
        return f"producers are at {known}, and {last} were written"
    log.update_high_watermark(log.log_end_offset)
    for each in kept:
        first = next(iter(batches_in(log.read(Offset(each.next_offset - 1), 1).records)), None)
        if first is None or first.base_offset != each.base_offset:
            return f"a read at {each.next_offset - 1} begins with {first}"
    return ""

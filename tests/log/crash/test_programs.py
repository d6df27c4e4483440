"""Short programs on a log directory, and every disk that power loss may leave at any moment of them.

Decides, for one such disk, whether the directory that is opened from it owes nothing:
- no checkpoint is unreadable, and the marker of a clean shutdown is there only after all else;
- S3: the log is a whole number of batches from its start on, as they stood at some moment of the program, with all that
  was flushed before the loss, and begins no later than its log start was. One exception is Kafka's own and counted:
  where two segments are not flushed, the first may end early between two batches; nothing is cut then and the second
  stays;
- after a pass of the cleaner, S1: nothing but superseded records is gone, and each group is old or new;
- opened once more, nothing changes, and an append goes on.

How: the program runs on a recorded storage; after each file operation all states are made that the block model allows
(`tests.support.crash`), exhaustively up to ten operations that are not synced, a sample beyond. What a program has
written and flushed is noted after each of its steps; a loss within a step may leave the state before or after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise, product
from typing import Final, TypeAlias

import attrs
import pytest

from broker.clock import ManualClock
from broker.entropy import SplitMix64
from broker.ids import LeaderEpoch, Offset, PartitionId, TopicPartition
from broker.units import DurationMs
from log.batches.build import BatchSpec, build_batch
from log.compaction import CleanerManager, CleanerOptions
from log.log_dir import LogDir, LogDirOptions
from log.partition.log_offsets import check_epochs, check_offsets
from log.partition.partition_log import PartitionLog
from log.record import Record
from log.storage import MemoryStorage
from tests.log.made import NOW, abort_sequenced, append_sequenced, config
from tests.support.crash import EXHAUSTIVE_OPERATION_COUNT, crash_states, sorted_out
from tests.support.disk_image import DiskImage, image_of, storage_of
from tests.support.recorded import RecordedStorage

EVENTS: Final = TopicPartition("events", PartitionId(0))
OPTIONS: Final = LogDirOptions(
    config=config(
        segment_bytes=1000,
        index_interval_bytes=100,
        segment_index_bytes=96,
        cleanup_policy="compact,delete",
        min_cleanable_dirty_ratio=0.0,
        file_delete_delay_ms=1000,
        retention_ms=-1,
    )
)
CLEANER: Final = CleanerOptions(map_slot_count=100)
BLOCK_SIZE_BYTES: Final = 4096
READ_BYTES_MAX: Final = 10_000

Contents: TypeAlias = tuple[tuple[int, bytes | None, bytes | None], ...]
"""Offset, key and value of every record that is not a marker."""


@attrs.frozen
class Moment:
    """A log after a step: how many file operations were done, what is in it, where it begins, what is flushed."""

    operation_count: int
    contents: Contents
    start_offset: int
    end_offset: int
    flushed_offset: int
    batch_ends: frozenset[int]


class Program:
    """A log directory whose file operations are recorded, and what was in its log after each step."""

    def __init__(self, start: DiskImage) -> None:
        self.clock = ManualClock(NOW)
        self.storage = RecordedStorage(storage_of(self.clock, start))
        self.log_dir = opened(self.storage)
        self.epoch = 1
        self.moments: list[Moment] = []
        self.log.update_high_watermark(self.log.log_end_offset)
        self.note()

    @property
    def log(self) -> PartitionLog:
        return self.log_dir.logs[EVENTS]

    def note(self) -> None:
        """Note the state after a step; a step may only add to what is flushed, but for a cut."""
        log = self.log
        self.moments.append(
            Moment(
                len(self.storage.recording().operations),
                contents_of(log),
                log.log_start_offset,
                log.log_end_offset,
                log.recovery_point,
                frozenset(found.next_offset for segment in log.segments for found in segment.batches()),
            )
        )

    def append(self, count: int = 2, *, transactional: bool = False) -> None:
        append_sequenced(self.log, count, leader_epoch=LeaderEpoch(self.epoch), transactional=transactional)

    def abort(self) -> None:
        abort_sequenced(self.log, leader_epoch=LeaderEpoch(self.epoch))

    def wait(self) -> None:
        """Let the time of delayed deletions come."""
        self.clock.advance(DurationMs(1000))
        self.log_dir.run_scheduled(self.clock.now_ms())


def opened(storage: RecordedStorage | MemoryStorage) -> LogDir:
    """Open the log directory of a storage, made if it is empty."""
    return LogDir.open(storage, OPTIONS, now_ms=NOW, entropy=SplitMix64(1))


def start_image() -> DiskImage:
    """Return a directory that was shut down: one log with two batches in a rolled segment and one in the active one."""
    storage = MemoryStorage(ManualClock(NOW))
    opened(storage).create_log(EVENTS, now_ms=NOW)
    program = Program(image_of(storage))
    program.append()
    program.append()
    program.log.roll(now_ms=NOW)
    program.append()
    program.log_dir.run_scheduled(NOW)
    program.log_dir.shut_down(now_ms=NOW)
    return image_of(program.storage)


Step: TypeAlias = Callable[[Program], object]


def clean(program: Program) -> None:
    CleanerManager(program.storage, program.log_dir.logs, CLEANER).clean_filthiest(now_ms=NOW)


def next_leader(program: Program) -> None:
    program.epoch += 1
    program.log.assign_epoch_start(LeaderEpoch(program.epoch), program.log.log_end_offset)


STEPS: Final[dict[str, Step]] = {
    "append": Program.append,
    "transactional append": lambda program: program.append(transactional=True),
    "abort": Program.abort,
    "flush": lambda program: program.log.flush(now_ms=NOW),
    "roll": lambda program: program.log.roll(now_ms=NOW),
    "scheduled work": lambda program: program.log_dir.run_scheduled(NOW),
    "wait": Program.wait,
    "next leader": next_leader,
    "truncate": lambda program: program.log.truncate_to(Offset(program.log.log_end_offset - 2), now_ms=NOW),
    "truncate fully": lambda program: program.log.truncate_fully_and_start_at(Offset(20), now_ms=NOW),
    "delete before": lambda program: program.log.increment_log_start_offset(Offset(5)),
    "retention": lambda program: program.log.delete_old_segments(now_ms=NOW),
    "recovery points": lambda program: program.log_dir.checkpoint_recovery_points(),
    "log starts": lambda program: program.log_dir.checkpoint_log_start_offsets(),
    "high watermarks": lambda program: program.log_dir.checkpoint_high_watermarks(),
    "clean": clean,
    "shutdown": lambda program: program.log_dir.shut_down(now_ms=NOW),
}
PROGRAMS: Final[dict[str, tuple[str, ...]]] = {
    "append": ("append", "append", "append"),
    "append and flush": ("append", "flush", "append", "append", "flush"),
    "transaction": ("transactional append", "abort", "flush"),
    "roll": ("append", "roll", "scheduled work", "append", "flush"),
    "roll twice": ("roll", "append", "roll", "append", "flush"),
    "another leader": ("append", "next leader", "append", "flush"),
    "truncate": ("append", "truncate", "append", "flush"),
    "truncate what was flushed": ("append", "flush", "truncate", "recovery points", "append"),
    "truncate fully": ("truncate fully", "append", "flush"),
    "delete before": ("delete before", "log starts", "retention", "wait", "append"),
    "checkpoints": ("append", "flush", "recovery points", "high watermarks", "log starts"),
    "compaction and swap": ("append", "flush", "roll", "scheduled work", "clean", "wait", "recovery points"),
    "shutdown": ("append", "roll", "append", "shutdown"),
}


@attrs.frozen
class CrashRun:
    """A program that was run, to be crashed."""

    steps: tuple[str, ...]
    program: Program

    def losses(self) -> Iterator[tuple[int, DiskImage, bool]]:
        """Yield each disk with the number of the last moment before it, and whether the states there are complete."""
        recording = self.program.storage.recording()
        seen: set[tuple[int, frozenset[str], frozenset[tuple[str, bytes]]]] = set()
        for end in range(self.program.moments[0].operation_count, len(recording.operations) + 1):
            last = sum(moment.operation_count <= end for moment in self.program.moments) - 1
            is_complete = sorted_out(recording, end, BLOCK_SIZE_BYTES).pending_count <= EXHAUSTIVE_OPERATION_COUNT
            for image in crash_states(recording, SplitMix64(end), end=end, block_size_bytes=BLOCK_SIZE_BYTES):
                known_by = last, image.directories, frozenset(image.files.items())
                if known_by not in seen:
                    seen.add(known_by)
                    yield last, image, is_complete


def run(steps: tuple[str, ...]) -> CrashRun:
    """Run a program, noting the state after each step."""
    program = Program(start_image())
    for step in steps:
        STEPS[step](program)
        program.note()
    return CrashRun(steps, program)


def pairs() -> list[tuple[str, str]]:
    """Return all programs of two steps, but for those that no broker runs.

    Nothing follows a shutdown, an abort follows its transaction only, which no plain append follows; and what is cut
    cannot begin at a later offset. What was cut is not cleaned here: S1 compares with all that ever was in the log.
    """
    return [
        (first, second)
        for first, second in product(STEPS, STEPS)
        if first not in ("shutdown", "abort")
        and (second == "abort") <= (first == "transactional append")
        and (first, second) not in {("transactional append", "append"), ("truncate", "delete before")}
        and not ({first, second} & {"truncate", "truncate fully"} and "clean" in (first, second))
    ]


def contents_of(log: PartitionLog) -> Contents:
    """Return all that can be read of a log."""
    return tuple(
        (record.offset, record.key, record.value)
        for segment in log.segments
        for found in segment.batches()
        if not found.is_control
        for record in found.records()
        if record.offset >= log.log_start_offset
    )


def check_loss(crashed: CrashRun, last: int, image: DiskImage) -> bool:
    """Open the directory of a disk found after a loss behind moment `last`, and assert what it owes.

    Return whether the log has no gap.
    """
    moments = crashed.program.moments
    storage = storage_of(ManualClock(NOW), image)
    log_dir = opened(storage)
    log = log_dir.logs[EVENTS]
    assert log_dir.unreadable == {}, log_dir.unreadable
    check_offsets(log.state())
    check_epochs(log.epochs, log.log_end_offset)
    check_indexes_read_alike(log)
    found = contents_of(log)
    is_prefix = True
    if "clean" in crashed.steps:
        check_cleaned(moments, last, log)
    else:
        is_prefix = check_prefix(moments, last, log)
    again = opened(storage_of(ManualClock(NOW), image_of(storage))).logs[EVENTS]
    assert contents_of(again) == found
    assert again.log_end_offset == log.log_end_offset
    # Producers of whom nothing is left in a log that was emptied are forgotten at the second start only, as in Kafka.
    assert set(again.state().producers) <= set(log.state().producers)
    end = log.log_end_offset
    log.append_as_leader(
        build_batch(BatchSpec(), [Record(Offset(0), NOW, b"k", b"new")]), leader_epoch=LeaderEpoch(9), now_ms=NOW
    )
    assert contents_of(log) == (*found, (end, b"k", b"new"))
    return is_prefix


def check_indexes_read_alike(log: PartitionLog) -> None:
    """S4: a read from every offset begins with the batch that a walk over its segment finds.

    Not more than that: as in Kafka an index of a segment below the recovery point is taken as it is, and its trimming
    at a roll may be lost, which leaves zeros behind its entries.
    """
    found = [(each.last_offset, bytes(each.data)) for segment in log.segments for each in segment.batches()]
    for offset in range(log.log_start_offset, log.log_end_offset):
        expected = next((data for last_offset, data in found if last_offset >= offset), b"")
        assert bytes(log.read(Offset(offset), READ_BYTES_MAX).records[: len(expected)]) == expected, offset


def check_prefix(moments: list[Moment], last: int, log: PartitionLog) -> bool:
    """S3: what was flushed is there, and all that is there is how the log began at some moment.

    Return whether the log has no gap.
    """
    around, before = moments[last : last + 2], moments[: last + 2]
    sure_offset = min(min(moment.flushed_offset, end_of(moment.contents)) for moment in around)
    start_offset, end_offset = log.log_start_offset, log.log_end_offset
    assert start_offset <= max(moment.start_offset for moment in around)
    assert end_offset >= sure_offset
    assert end_offset in {start_offset, *(end for moment in before for end in (moment.end_offset, *moment.batch_ends))}
    found = contents_of(log)
    assert any(
        between(found, moment.start_offset, sure_offset) == between(moment.contents, start_offset, sure_offset)
        for moment in around
    )
    if any(
        between(found, moment.start_offset, end_offset) == between(moment.contents, start_offset, end_offset)
        for moment in before
    ):
        return True
    # A gap ends where a segment begins, and each side of it is whole.
    bases = [*(segment.base_offset for segment in log.segments if segment.base_offset > sure_offset), end_offset]
    parts = [between(found, start, end) for start, end in pairwise([start_offset, *bases])]
    assert any(
        all(part == between(moment.contents, part[0][0], part[-1][0] + 1) for part in parts if part)
        for moment in before
    )
    return False


def check_cleaned(moments: list[Moment], last: int, log: PartitionLog) -> None:
    """S1: what was flushed is there, or something newer of its key is."""
    before = tuple(sorted({record for moment in moments for record in moment.contents}))
    found = contents_of(log)
    assert found == tuple(record for record in before if record in found)
    sure = [record for record in before if record[0] < moments[last].flushed_offset]
    newest = {key: offset for offset, key, _ in found}
    assert all(record in found or newest[record[1]] > record[0] for record in sure)
    assert log.log_end_offset >= moments[last].flushed_offset
    after = moments[-1].contents
    assert all(record in found for record in after if record[0] < log.log_end_offset)


def end_of(contents: Contents) -> int:
    """Return the offset after the last record."""
    return contents[-1][0] + 1 if contents else 0


def between(contents: Contents, start_offset: int, end_offset: int) -> Contents:
    """Return the records of a range of offsets."""
    return tuple(record for record in contents if start_offset <= record[0] < end_offset)


@attrs.frozen
class ProgramCounts:
    """How many disks were checked, how many of them were drawn, and how many logs have a gap as Kafka's would."""

    state_count: int
    sampled_count: int
    gap_count: int


def sweep(name: str, *, stride: int = 1) -> ProgramCounts:
    """Check every `stride`th disk that a program of `PROGRAMS` may leave."""
    return sweep_steps(PROGRAMS[name], stride=stride)


def sweep_steps(steps: tuple[str, ...], *, stride: int = 1) -> ProgramCounts:
    """Check every `stride`th disk that a program of these steps may leave."""
    crashed = run(steps)
    state_count = sampled_count = gap_count = 0
    for number, (last, image, is_complete) in enumerate(crashed.losses()):
        if number % stride == 0:
            try:
                gap_count += not check_loss(crashed, last, image)
            except AssertionError as finding:
                raise AssertionError(f"{steps}: disk {number}, after {last} steps: {finding}") from finding
            state_count += 1
            sampled_count += not is_complete
    return ProgramCounts(state_count, sampled_count, gap_count)


STRIDE = 97
RECOVERY_POINTS = "recovery-point-offset-checkpoint"


@pytest.mark.parametrize("name", list(PROGRAMS)[::4])
def test_power_loss_leaves_whole_batches_and_all_that_was_flushed(name: str) -> None:
    assert sweep(name, stride=STRIDE).state_count > 0


@pytest.mark.deep
@pytest.mark.parametrize("steps", [*PROGRAMS.values(), *pairs()], ids=", ".join)
def test_every_power_loss_of_a_program_leaves_whole_batches_and_all_that_was_flushed(steps: tuple[str, ...]) -> None:
    assert sweep_steps(steps).state_count > 0


def test_a_lost_flushed_record_is_found() -> None:
    crashed = run(PROGRAMS["append and flush"])
    last, image, _ = list(crashed.losses())[-1]
    check_loss(crashed, last, image)
    active = "events-0/00000000000000000004.log"
    cut = DiskImage({**image.files, active: image.files[active][:99]}, image.directories)
    with pytest.raises(AssertionError):
        check_loss(crashed, last, cut)


def test_a_checkpoint_that_is_not_whole_is_found() -> None:
    crashed = run(PROGRAMS["append"])
    image = next(image for _, image, _ in crashed.losses())
    torn = attrs.evolve(image, files={**image.files, RECOVERY_POINTS: b"0\n1\nevents 0 x\n"})
    with pytest.raises(AssertionError, match="recovery-point"):
        check_loss(crashed, 0, torn)

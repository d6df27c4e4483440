"""Golden recoveries: a cleanly closed log, damaged in many ways, opened after an unclean shutdown; and truncations.

Three lists of damage: the last log file cut to each length, single bits of its last batch flipped, and scenarios. A
scenario is named by a sentence, which is looked up in `SCENARIOS` with the numbers in it left out.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import attrs

from broker.clock import ManualClock
from broker.errors import CorruptDataError, RefusedError
from broker.ids import Offset
from broker.units import TimeMs
from log.batches.in_buffer import BatchReader, batches_in
from log.log_config import LogConfig
from log.partition.partition_log import PartitionLog
from log.partition.recovery import LastShutdown
from tests.golden.log.cases import Json
from tests.golden.log.states import file_contents, file_names, state_json
from tests.golden.log.states import storage_of as storage_of_folder
from tests.golden.runners import MalformedCaseError, compare
from tests.golden.sources import config_of
from tests.support.disk_image import DiskImage, storage_of

DIRECTORY: Final = "topic-0"
OPENED_MS: Final = TimeMs(1_700_001_000_000)
SEGMENT_KINDS: Final = ("log", "index", "timeindex")
DIGEST_LENGTH: Final = 16

Files: TypeAlias = dict[str, bytes]
Damage: TypeAlias = Callable[["Closed", tuple[int, ...]], Files]


@attrs.frozen
class Closed:
    """The cleanly closed log: its files, and the base offsets of its segments."""

    files: Mapping[str, bytes]
    end_offset: int

    @property
    def bases(self) -> list[int]:
        return sorted(int(name[:20]) for name in self.files if name.endswith(".log"))

    def name(self, segment: int, kind: str) -> str:
        return f"{self.bases[segment]:020d}.{kind}"

    def without(self, *endings: str) -> Files:
        return {name: content for name, content in self.files.items() if not name.endswith(endings)}

    def with_log(self, segment: int, content: bytes) -> Files:
        return {**self.files, self.name(segment, "log"): content}

    def log(self, segment: int) -> bytes:
        return self.files[self.name(segment, "log")]

    def staged(self, segment: int, suffix: str) -> Files:
        """Return copies of a segment's files with a suffix."""
        return {self.name(segment, kind) + suffix: self.files[self.name(segment, kind)] for kind in SEGMENT_KINDS}


@attrs.frozen
class Scenario:
    """What is done to the files, and how the log is opened; both functions take the closed log and the numbers."""

    damage: Damage
    clean: bool = False
    recovery_point: Callable[[Closed, tuple[int, ...]], int] = lambda closed, numbers: 0


def nothing(closed: Closed, numbers: tuple[int, ...]) -> Files:
    return dict(closed.files)


def lacking(*endings: str) -> Damage:
    return lambda closed, numbers: closed.without(*endings)


def first_log_flipped(closed: Closed, numbers: tuple[int, ...]) -> Files:
    content = bytearray(closed.log(0))
    content[-1] ^= 1
    return closed.with_log(0, bytes(content))


def zeros_appended(closed: Closed, numbers: tuple[int, ...]) -> Files:
    return closed.with_log(-1, closed.log(-1) + bytes(numbers[0]))


def first_index_cut(closed: Closed, numbers: tuple[int, ...]) -> Files:
    name = closed.name(0, "index")
    return {**closed.files, name: closed.files[name][: numbers[0]]}


def leftovers(closed: Closed, numbers: tuple[int, ...]) -> Files:
    orphan = {f"{closed.end_offset + 1000:020d}.index": b""}
    return {**closed.files, **closed.staged(-1, ".deleted"), **closed.staged(-1, ".cleaned"), **orphan}


def only_swapped(closed: Closed, numbers: tuple[int, ...]) -> Files:
    originals = {closed.name(0, kind) for kind in SEGMENT_KINDS}
    kept = {name: content for name, content in closed.files.items() if name not in originals}
    return {**kept, **closed.staged(0, ".swap")}


def swapped_too(closed: Closed, numbers: tuple[int, ...]) -> Files:
    # The plain file lacks its end, so that it shows which of the two is taken.
    return {**closed.with_log(0, closed.log(0)[:-7]), **closed.staged(0, ".swap")}


def swap_above_cleaned(closed: Closed, numbers: tuple[int, ...]) -> Files:
    swap = {name: content[:-7] for name, content in closed.staged(1, ".swap").items()}
    return {**closed.files, **closed.staged(0, ".cleaned"), **swap}


def without_second(closed: Closed, numbers: tuple[int, ...]) -> Files:
    gone = f"{closed.bases[1]:020d}."
    return {name: content for name, content in closed.files.items() if not name.startswith(gone)}


def at_end(closed: Closed, numbers: tuple[int, ...]) -> int:
    return closed.end_offset


def at_second(closed: Closed, numbers: tuple[int, ...]) -> int:
    return closed.bases[1]


def at_number(closed: Closed, numbers: tuple[int, ...]) -> int:
    return numbers[-1]


SCENARIOS: Final[Mapping[str, Scenario]] = {
    "unclean, recovery point #, nothing damaged": Scenario(nothing),
    "clean shutdown, nothing damaged": Scenario(nothing, clean=True),
    "unclean, recovery point = log end": Scenario(nothing, recovery_point=at_end),
    "unclean, recovery point = base of #nd segment (#)": Scenario(nothing, recovery_point=at_second),
    "unclean, recovery point in the middle of the first segment (#)": Scenario(nothing, recovery_point=at_number),
    "all .index and .timeindex deleted, clean": Scenario(lacking(".index", ".timeindex"), clean=True),
    "all .timeindex deleted, clean": Scenario(lacking(".timeindex"), clean=True),
    "all .index deleted, unclean, recovery point = log end": Scenario(lacking(".index"), recovery_point=at_end),
    "all .snapshot deleted, unclean": Scenario(lacking(".snapshot")),
    "leader-epoch-checkpoint deleted, unclean, recovery point #": Scenario(lacking("leader-epoch-checkpoint")),
    "leader-epoch-checkpoint deleted, clean": Scenario(lacking("leader-epoch-checkpoint"), clean=True),
    "bit # of the last byte of the first segment flipped, recovery point #: later segments are deleted": Scenario(
        first_log_flipped
    ),
    "same flip, recovery point = base of #nd segment: not noticed": Scenario(
        first_log_flipped, recovery_point=at_second
    ),
    "same flip, clean shutdown: not noticed": Scenario(first_log_flipped, clean=True),
    "# zero bytes appended to the last log, unclean": Scenario(zeros_appended),
    "index of the first segment truncated to # bytes, unclean": Scenario(first_index_cut),
    "last segment copied with suffix .deleted, .cleaned, an orphan .index present, unclean": Scenario(leftovers),
    "first segment log+index+timeindex present as .swap and the original removed": Scenario(only_swapped),
    "first segment present both plain and as .swap (swap wins)": Scenario(swapped_too),
    "swap file with base >= smallest .cleaned base is dropped": Scenario(swap_above_cleaned),
    "second segment missing (a gap), clean": Scenario(without_second, clean=True),
    "empty directory": Scenario(lambda closed, numbers: {}),
}


def run(case: Mapping[str, Json], folder: Path) -> str | None:
    """Return where the first of the cuts, flips and scenarios differs."""
    closed = Closed(
        {path.name: path.read_bytes() for path in sorted((folder / DIRECTORY).iterdir())}, case["logEndOffset"]
    )
    config = config_of(case)
    last_log = case["lastLog"]
    for size, expected in case["cuts"]:
        files = {**closed.files, last_log: closed.files[last_log][:size]}
        difference = compare(recovered(files, config), expected, f"cuts {size}")
        if difference is not None:
            return difference
    for position, bit, expected in case["flips"]:
        content = bytearray(closed.files[last_log])
        content[position] ^= 1 << bit
        difference = compare(
            recovered({**closed.files, last_log: bytes(content)}, config), expected, f"flips {position}"
        )
        if difference is not None:
            return difference
    differences = (compare_scenario(each, closed, config) for each in case["scenarios"])
    return next((difference for difference in differences if difference is not None), None)


def opened(files: Files, config: LogConfig, last_shutdown: LastShutdown) -> PartitionLog:
    """Return the log that a directory of these files opens as."""
    clock = ManualClock(OPENED_MS)
    image = DiskImage({f"{DIRECTORY}/{name}": content for name, content in files.items()}, frozenset({DIRECTORY}))
    return PartitionLog.open(storage_of(clock, image), DIRECTORY, config, last_shutdown, now_ms=OPENED_MS)


def recovered(files: Files, config: LogConfig) -> Json:
    """Return the log's end and a row for each segment, or the Java class of the refusal to open or to read it.

    A batch whose magic is 18 or the like has a right checksum and is recovered, by Kafka 4.0.1 too; the program that
    printed the cases then read the log as one does in memory, and that refuses an unknown magic.
    """
    try:
        log = opened(files, config, LastShutdown(clean=False))
        state = log.state()
        for segment in log.segments:
            deque(batches_in(segment.records.view(), reader=BatchReader.MEMORY), maxlen=0)
    except (CorruptDataError, RefusedError) as refusal:
        return {"exception": getattr(refusal, "kafka_class", type(refusal).__name__)}
    rows = [
        [segment.base_offset, segment.size_bytes, segment.offset_entry_count, segment.time_entry_count]
        for segment in state.segments
    ]
    return [state.log_end_offset, rows]


def compare_scenario(expected: Mapping[str, Json], closed: Closed, config: LogConfig) -> str | None:
    """Return where the log that is opened after the damage differs."""
    name = expected["scenario"]
    scenario = SCENARIOS.get(re.sub(r"\d+", "#", name))
    if scenario is None:
        raise MalformedCaseError(f"unknown scenario {name!r}")
    numbers = tuple(map(int, re.findall(r"\d+", name)))
    last_shutdown = LastShutdown(clean=scenario.clean, recovery_point=Offset(scenario.recovery_point(closed, numbers)))
    log = opened(scenario.damage(closed, numbers), config, last_shutdown)
    answer = {
        "scenario": name,
        "logEndOffset": log.log_end_offset,
        "state": state_json(log.state()),
        "filesAfterOpen": file_names(log),
    }
    log.close(now_ms=OPENED_MS)
    answer["filesAfterClose"] = [
        [name, len(content), hashlib.sha256(content).hexdigest()[:DIGEST_LENGTH]]
        for name, content in sorted(file_contents(log.storage, DIRECTORY).items())
    ]
    return compare(answer, expected, f"scenario {name!r}")


def run_truncations(case: Mapping[str, Json], folder: Path) -> str | None:
    """Return where the state or the files after one of the cuts first differ."""
    for expected in case["results"]:
        answer = truncated(config_of(case), folder, Offset(expected["offset"]))
        difference = compare(answer, expected, f"offset {expected['offset']}")
        if difference is not None:
            return difference
    return None


def truncated(config: LogConfig, folder: Path, offset: Offset) -> Json:
    """Open a copy of the log, cut it at `offset`, and return what is said of it."""
    clock = ManualClock(OPENED_MS)
    log = PartitionLog.open(storage_of_folder(folder, clock), DIRECTORY, config, now_ms=OPENED_MS)
    is_cut = log.truncate_to(offset, now_ms=OPENED_MS)
    log.run_scheduled(OPENED_MS)
    return {
        "offset": offset,
        "truncated": is_cut,
        "state": state_json(log.state()),
        "files": file_names(log),
        "leaderEpochCheckpoint": log.storage.read(f"{DIRECTORY}/leader-epoch-checkpoint").decode(),
    }

"""Golden log directory: what Kafka's log manager left, loaded, left again, loaded after a crash, and a log deleted.

The case has no operations, so the logs are first made anew: their batches, as a follower, in the case's settings. All
the files and states of the case follow from there, and each directory that the case holds is loaded too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from broker.clock import ManualClock
from broker.entropy import SplitMix64
from broker.ids import BrokerEpoch, Offset, PartitionId, TopicPartition
from broker.units import TimeMs
from log.batches.in_buffer import batches_in
from log.log_dir import LOCK_FILE, LogDir, LogDirOptions
from log.partition.partition_log import PartitionLog
from log.segments.file_names import LOG
from log.storage import MemoryStorage
from log.storage.checkpoints import LOG_START_FILE, RECOVERY_POINT_FILE, read_offset_checkpoint, write_offset_checkpoint
from log.storage.metadata_files import CLEAN_SHUTDOWN_FILE, read_clean_shutdown
from tests.golden.log.cases import Json
from tests.golden.log.states import state_json, storage_of
from tests.golden.runners import MalformedCaseError, compare
from tests.golden.sources import config_of
from tests.support.disk_image import image_of

CUT_BYTES: Final = 7
_UNIQUE_ID: Final = re.compile(r"\.[0-9a-f]{32}-")
_DELETED_NAME: Final = re.compile(r"(.+)-([0-9]+)\.<32 hex digits>-delete")


def run(case: Mapping[str, Json], folder: Path) -> str | None:
    """Return the first difference, or None."""
    clock = ManualClock(_now_ms(case))
    clean = storage_of(folder / "clean-shutdown", clock)
    options = LogDirOptions(config=config_of(case))
    made = _made_anew(case, clean, options, clock)
    difference = compare(_states(made), _expected_states(case["stateBeforeShutdown"]), "stateBeforeShutdown")
    if difference is not None:
        return difference
    made.shut_down(now_ms=clock.now_ms(), broker_epoch=_broker_epoch(clean))
    difference = _file_difference(made.storage, clean, "after the first shutdown") or compare(
        _listing(made.storage), _in_one_order(case["cleanShutdownFiles"]), "cleanShutdownFiles"
    )
    if difference is not None:
        return difference
    return _reopened(case, folder, made.storage, options, clock)


def _reopened(
    case: Mapping[str, Json], folder: Path, storage: MemoryStorage, options: LogDirOptions, clock: ManualClock
) -> str | None:
    now_ms = clock.now_ms()
    crashed = crashed_partition(case)
    log_dir = LogDir.open(storage, options, now_ms=now_ms, entropy=SplitMix64(1))
    seen = {
        "stateAfterCleanReopen": _states(log_dir),
        "cleanShutdownFileStillThereAfterReopen": storage.exists(CLEAN_SHUTDOWN_FILE),
    }
    log_dir.shut_down(now_ms=now_ms, broker_epoch=BrokerEpoch(0))
    crash(storage, str(crashed))
    seen["crashedFiles"] = _listing(storage)
    difference = _file_difference(storage, storage_of(folder / "crashed", clock), "after the crash")
    if difference is not None:
        return difference
    log_dir = LogDir.open(storage, options, now_ms=now_ms, entropy=SplitMix64(1))
    seen["stateAfterCrashReopen"] = _states(log_dir)
    log_dir.delete_log(crashed, now_ms=now_ms)
    seen["rootListingAfterAsyncDelete"] = [_UNIQUE_ID.sub(".<32 hex digits>-", name) for name in storage.list()]
    seen["recoveryPointCheckpointAfterDelete"] = _offsets(storage.read(RECOVERY_POINT_FILE).decode())
    for name, found in seen.items():
        difference = compare(found, _EXPECTED.get(name, lambda given: given)(case[name]), name)
        if difference is not None:
            return difference
    return None


def _made_anew(case: Mapping[str, Json], clean: MemoryStorage, options: LogDirOptions, clock: ManualClock) -> LogDir:
    """Return a log directory to which the batches of the one left by Kafka were appended."""
    now_ms = clock.now_ms()
    log_dir = LogDir.open(MemoryStorage(clock), options, now_ms=now_ms, entropy=SplitMix64(1))
    for each in case["stateBeforeShutdown"]:
        partition = TopicPartition(each["topic"], PartitionId(each["partition"]))
        log = log_dir.create_log(partition, now_ms=now_ms, topic_id=each["topicId"])
        for name in clean.list(str(partition)):
            if name.endswith(LOG):
                for batch in batches_in(clean.read(f"{partition}/{name}")):
                    log.append_as_follower(batch.data, now_ms=now_ms)
        log.update_high_watermark(log.log_end_offset)
        log.increment_log_start_offset(Offset(each["state"]["logStartOffset"]))
        log_dir.run_scheduled(now_ms)
    return log_dir


def crashed_partition(case: Mapping[str, Json]) -> TopicPartition:
    """Return the partition whose last log was cut and which was deleted in the end: the listing of the root tells."""
    names = map(_DELETED_NAME.fullmatch, case["rootListingAfterAsyncDelete"])
    found = [TopicPartition(name[1], PartitionId(int(name[2]))) for name in names if name]
    if len(found) != 1:
        raise MalformedCaseError(f"{len(found)} partitions were deleted at the end, expected 1")
    return found[0]


def crash(storage: MemoryStorage, directory: str) -> None:
    """Make the log directory look as the case made its one look crashed, the last log in `directory` cut."""
    storage.remove(CLEAN_SHUTDOWN_FILE)
    points = read_offset_checkpoint(storage, RECOVERY_POINT_FILE)
    write_offset_checkpoint(storage, RECOVERY_POINT_FILE, dict.fromkeys(points, Offset(0)))
    file = storage.open(f"{directory}/{max(name for name in storage.list(directory) if name.endswith(LOG))}")
    file.truncate(file.size_bytes - CUT_BYTES)


def _now_ms(case: Mapping[str, Json]) -> TimeMs:
    return TimeMs(max(row[4] for each in case["stateBeforeShutdown"] for row in each["state"]["segments"]))


def _broker_epoch(storage: MemoryStorage) -> BrokerEpoch:
    epoch = read_clean_shutdown(storage, CLEAN_SHUTDOWN_FILE)
    assert epoch is not None
    return epoch


def _states(log_dir: LogDir) -> Json:
    log_dir.check_invariants()
    return [_state(partition, log) for partition, log in sorted(log_dir.logs.items())]


def _state(partition: TopicPartition, log: PartitionLog) -> Json:
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "topicId": log.topic_id,
        "state": state_json(log.state()),
    }


def _expected_states(states: Json) -> Json:
    return sorted(states, key=lambda each: (each["topic"], each["partition"]))


def _offsets(text: str) -> list[str]:
    """Return a checkpoint's lines in one order, as Kafka writes them in any."""
    version, count, *lines = text.splitlines()
    return [version, count, *sorted(lines)]


def _listing(storage: MemoryStorage) -> Json:
    """Return the directory as the case lists it: name, size, and the text of small files; no lock."""
    root = [name for name in storage.list() if not storage.is_directory(name) and name != LOCK_FILE]
    directories = [name for name in storage.list() if storage.is_directory(name)]
    return {
        "root": [_listed(storage, name) for name in root],
        "partitions": [
            {"dir": name, "files": [_listed(storage, f"{name}/{file}") for file in storage.list(name)]}
            for name in directories
        ],
    }


def _listed(storage: MemoryStorage, path: str) -> Json:
    name = path.rpartition("/")[2]
    content = storage.read(path)
    listed: dict[str, Json] = {"file": name, "size": len(content)}
    if not name[:20].isdecimal():
        listed["text"] = content.decode()
    return listed


def _in_one_order(listing: Json) -> Json:
    """Return a listing with the lines of its checkpoints sorted."""
    root = [
        {**each, "text": "".join(f"{line}\n" for line in _offsets(each["text"]))}
        if "checkpoint" in each["file"]
        else each
        for each in listing["root"]
    ]
    return {**listing, "root": root}


_EXPECTED: Final = {
    "stateAfterCleanReopen": _expected_states,
    "stateAfterCrashReopen": _expected_states,
    "crashedFiles": _in_one_order,
    "recoveryPointCheckpointAfterDelete": _offsets,
}
"""What makes equal content of a case equal to ours, where Kafka's order is that of a hash map."""


def _file_difference(ours: object, theirs: MemoryStorage, when: str) -> str | None:
    assert isinstance(ours, MemoryStorage)
    return compare(_contents(ours), _contents(theirs), when)


def _contents(storage: MemoryStorage) -> dict[str, Json]:
    contents: dict[str, Json] = {}
    for path in sorted(image_of(storage).files):
        content = storage.read(path)
        is_checkpoint = path in (RECOVERY_POINT_FILE, LOG_START_FILE)
        if path != LOCK_FILE:
            contents[path] = _offsets(content.decode()) if is_checkpoint else content.hex()
    return contents

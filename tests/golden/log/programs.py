"""Golden programs: operations on one log, with the state after each and the files at the end."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from broker.clock import ManualClock
from broker.errors import CorruptDataError, RefusedError
from broker.ids import Offset, PartitionId, TopicPartition
from broker.units import DurationMs, TimeMs
from log.compaction import CleanedLog, CleanerManager, CleanerOptions, LogToClean
from log.partition.appending import AppendInfo
from log.partition.partition_log import PartitionLog
from log.partition.producer_append import AppendOrigin
from log.partition.recovery import LastShutdown
from log.storage import MemoryStorage
from log.storage.checkpoints import CLEANER_FILE
from tests.golden.log.cases import Json
from tests.golden.log.compressors import Compressor, kafkas_compressors
from tests.golden.log.states import (
    batch_bytes,
    file_contents,
    file_names,
    files_json,
    found_json,
    listed,
    state_json,
)
from tests.golden.runners import MalformedCaseError, compare
from tests.golden.sources import config_of

DIRECTORY: Final = "topic-0"
PARTITION: Final = TopicPartition("topic", PartitionId(0))
CASES_WITH_FILE_TIMES: Final = "compact-v1"
UNKNOWN_TRANSACTION_VERSION: Final = -1
MACHINE_TIME_MS: Final = TimeMs(1_900_000_000_000)


class Program:
    """A log, its clock, and what the case says of both."""

    def __init__(self, case: Mapping[str, Json]) -> None:
        self.clock = ManualClock(TimeMs(case["startTimeMs"]))
        # Kafka's files had the times of the machine that wrote them, years after the mocked clock; but where the
        # cleaner goes by them, the case's program had set them.
        goes_by_files = case.get("fileTimes") == "clock" or str(case.get("case")).startswith(CASES_WITH_FILE_TIMES)
        self.storage = MemoryStorage(self.clock if goes_by_files else ManualClock(MACHINE_TIME_MS))
        self.config = config_of(case)
        self.topic_id: str | None = case.get("topicId")
        self.log = self.open(LastShutdown())

    @property
    def now_ms(self) -> TimeMs:
        return self.clock.now_ms()

    def open(self, last_shutdown: LastShutdown) -> PartitionLog:
        return PartitionLog.open(
            self.storage, DIRECTORY, self.config, last_shutdown, now_ms=self.now_ms, topic_id=self.topic_id
        )


Operation: TypeAlias = Callable[[Program, Mapping[str, Json]], Json]


def append_as_leader(program: Program, given: Mapping[str, Json]) -> Json:
    version = given.get("transactionVersion", 0)  # Cases from before 4.2 do not say it.
    info = program.log.append_as_leader(
        batch_bytes(given["batch"]),
        leader_epoch=given["leaderEpoch"],
        now_ms=program.now_ms,
        origin=AppendOrigin(given["origin"]),
        transaction_version=None if version == UNKNOWN_TRANSACTION_VERSION else version,
    )
    return appended(program, given, info)


def append_as_follower(program: Program, given: Mapping[str, Json]) -> Json:
    records = b"".join(map(batch_bytes, given["batches"]))
    return appended(program, given, program.log.append_as_follower(records, now_ms=program.now_ms))


def appended(program: Program, given: Mapping[str, Json], info: AppendInfo) -> Json:
    if given["advanceHighWatermark"]:
        program.log.update_high_watermark(program.log.log_end_offset)
    return {
        "firstOffset": info.first_offset,
        "lastOffset": info.last_offset,
        "maxTimestamp": info.max_timestamp.timestamp,
        "duplicate": info.is_duplicate,
    }


def sleep(program: Program, given: Mapping[str, Json]) -> Json:
    program.clock.advance(DurationMs(given["ms"]))
    program.log.run_scheduled(program.now_ms)
    return {}


def roll(program: Program, given: Mapping[str, Json]) -> Json:
    return {"newBaseOffset": program.log.roll(now_ms=program.now_ms).base_offset}


def flush(program: Program, given: Mapping[str, Json]) -> Json:
    program.log.flush(now_ms=program.now_ms)
    return {}


def truncate_to(program: Program, given: Mapping[str, Json]) -> Json:
    truncated = program.log.truncate_to(Offset(given["offset"]), now_ms=program.now_ms)
    return {"truncated": truncated, "files": names_left(program)}


def update_high_watermark(program: Program, given: Mapping[str, Json]) -> Json:
    return {"highWatermark": program.log.update_high_watermark(Offset(given["offset"]))}


def increment_log_start_offset(program: Program, given: Mapping[str, Json]) -> Json:
    return {"incremented": program.log.increment_log_start_offset(Offset(given["offset"]))}


def delete_old_segments(program: Program, given: Mapping[str, Json]) -> Json:
    return {"deleted": program.log.delete_old_segments(now_ms=program.now_ms), "files": names_left(program)}


def names_left(program: Program) -> list[str]:
    """Return the names of the log's files; what is deleted without delay is gone by then."""
    program.log.run_scheduled(program.now_ms)
    return file_names(program.log)


def take_producer_snapshot(program: Program, given: Mapping[str, Json]) -> Json:
    program.log.take_producer_snapshot()
    return {"files": file_names(program.log)}


def close_and_reopen(program: Program, given: Mapping[str, Json]) -> Json:
    log = program.log
    log.close(now_ms=program.now_ms)
    recovery_point, log_start = given["recoveryPoint"], given["logStart"]
    program.log = program.open(
        LastShutdown(
            clean=given["clean"],
            recovery_point=log.log_end_offset if recovery_point == -1 else recovery_point,
            log_start_offset=log.log_start_offset if log_start == -1 else log_start,
        )
    )
    return {"files": names_left(program)}


def fetch_offset_by_timestamp(program: Program, given: Mapping[str, Json]) -> Json:
    lookups = given["result"]["lookups"]
    found = [found_json(program.log.fetch_offset_by_timestamp(lookup["timestamp"])) for lookup in lookups]
    return {
        "lookups": [
            {"timestamp": lookup["timestamp"], "found": each} for lookup, each in zip(lookups, found, strict=True)
        ]
    }


def end_offset_for_epoch(program: Program, given: Mapping[str, Json]) -> Json:
    answers = []
    for lookup in given["result"]["lookups"]:
        end = program.log.end_offset_for_epoch(lookup["epoch"])
        answers.append({"epoch": lookup["epoch"], "result": None if end is None else [end.epoch, end.end_offset]})
    return {"lookups": answers}


def keep_files(program: Program, given: Mapping[str, Json]) -> Json:
    return {"files": files_json(file_contents(program.storage, DIRECTORY, program.log))}


def clean(program: Program, operation: Mapping[str, Json]) -> Json:
    """Let the cleaner make one pass, if it finds the log due; move the clock past the delay of deletions."""
    log, clock = program.log, program.clock
    options = CleanerOptions(
        map_slot_count=operation["offsetMapSlots"], map_load_factor=operation["dupBufferLoadFactor"]
    )
    now_ms = clock.now_ms()
    manager = CleanerManager(log.storage, {PARTITION: log}, options)
    checkpoint = manager.checkpoints().get(PARTITION)
    target = manager.candidates(now_ms=now_ms)[PARTITION]
    found = {"currentTimeMs": now_ms, "checkpointBefore": checkpoint, **_found(target)}
    done = manager.clean_filthiest(now_ms=now_ms)
    if done is None:
        return {**found, "selected": False}
    log.run_scheduled(now_ms)  # What is deleted without delay is gone by the end of the operation.
    right_after = file_names(log)
    clock.advance(DurationMs(log.config.file_delete_delay_ms + 1))
    log.run_scheduled(clock.now_ms())
    return {
        **found,
        "selected": True,
        **_cleaned(done),
        "filesRightAfter": right_after,
        "filesAfterDeleteDelay": file_names(log),
        "cleanerOffsetCheckpoint": log.storage.read(CLEANER_FILE).decode(),
        "survivors": list(_survivors(log)),
    }


def _found(target: LogToClean) -> dict[str, Json]:
    return {
        "firstDirtyOffset": target.first_dirty_offset,
        "firstUncleanableOffset": target.first_uncleanable_offset,
        "cleanableRatio": target.cleanable_ratio,
        "cleanBytes": target.clean_bytes,
        "cleanableBytes": target.cleanable_bytes,
    }


def _cleaned(done: CleanedLog) -> dict[str, Json]:
    stats = done.cleaned.stats
    return {
        "needCompactionNow": done.target.is_overdue,
        "endOffset": done.cleaned.end_offset,
        "messagesRead": stats.records_read,
        "messagesWritten": stats.records_written,
        "bytesRead": stats.bytes_read,
        "bytesWritten": stats.bytes_written,
        "mapMessagesRead": done.cleaned.records_mapped,
        "invalidMessagesRead": stats.keyless_count,
    }


def _survivors(log: PartitionLog) -> Iterator[Json]:
    for segment in log.segments:
        for batch in segment.batches():
            for record in batch.records():
                texts = [
                    None if data is None else base64.b64encode(data).decode() for data in (record.key, record.value)
                ]
                yield [segment.base_offset, record.offset, record.timestamp, *texts, batch.is_control]


OPERATIONS: Final[Mapping[str, Operation]] = {
    "appendAsFollower": append_as_follower,
    "appendAsLeader": append_as_leader,
    "clean": clean,
    "closeAndReopen": close_and_reopen,
    "deleteOldSegments": delete_old_segments,
    "endOffsetForEpoch": end_offset_for_epoch,
    "fetchOffsetByTimestamp": fetch_offset_by_timestamp,
    "flush": flush,
    "incrementLogStartOffset": increment_log_start_offset,
    "keepFiles": keep_files,
    "roll": roll,
    "sleep": sleep,
    "takeProducerSnapshot": take_producer_snapshot,
    "truncateTo": truncate_to,
    "updateHighWatermark": update_high_watermark,
}


def run(case: Mapping[str, Json], folder: Path) -> str | None:
    """Return where the program's results, states or files first differ."""
    with kafkas_compressors(folder) as compressor:
        return run_program(Program(case), case, compressor)


def run_program(program: Program, case: Mapping[str, Json], compressor: Compressor) -> str | None:
    """Do one operation after the other, comparing each."""
    expected_state: Json = None
    for index, given in enumerate(case["ops"]):
        where = f"ops[{index}] {given['op']}"
        operation = OPERATIONS.get(given["op"])
        if operation is None:
            raise MalformedCaseError(f"unknown operation {given['op']!r}")
        if given["nowMs"] != program.now_ms:
            return f"{where}: the clock stands at {program.now_ms}, expected {given['nowMs']}"
        compressor.size_bytes = size_of_appended(given, expected_state)
        difference = compare(performed(program, operation, given), comparable(given["result"]), f"{where}: result")
        if difference is not None:
            return difference
        if "stateAtClose" not in case and index == len(case["ops"]) - 1:
            return None  # The log could not be opened again, by either.
        expected_state = given.get("state", expected_state)
        difference = compare(state_json(program.log.state()), expected_state, f"{where}: state")
        if difference is not None:
            return difference
    return compare_end(program, case)


def size_of_appended(given: Mapping[str, Json], state_before: Json) -> int | None:
    """Return the size of the one batch that an operation appended, by how much the log grew; None where none was."""
    is_one = given["op"] == "appendAsLeader" or len(given.get("batches", ())) == 1
    if not is_one or "state" not in given:
        return None
    before, after = map(size_of_log, (state_before, given["state"]))
    return after - before if after > before else None


def size_of_log(state: Json) -> int:
    return sum(segment[1] for segment in (state or {}).get("segments", ()))


def performed(program: Program, operation: Operation, given: Mapping[str, Json]) -> Json:
    """Return the result of an operation, or the Java class of its refusal; what is due at once is then done."""
    try:
        return operation(program, given)
    except (RefusedError, CorruptDataError) as refusal:
        return {"exception": getattr(refusal, "kafka_class", type(refusal).__name__)}
    finally:
        program.log.run_scheduled(program.now_ms)


def comparable(result: Json) -> Json:
    """Return an expected result without what is decoded from files, as their bytes are compared."""
    if not isinstance(result, Mapping) or not isinstance(result.get("files"), list):
        return result
    return {**result, "files": [listed(file) for file in result["files"]]}


def compare_end(program: Program, case: Mapping[str, Json]) -> str | None:
    """Return where the state at the end and the files after closing differ."""
    difference = compare(state_json(program.log.state()), case["stateAtClose"], "stateAtClose")
    if difference is not None:
        return difference
    program.log.close(now_ms=program.now_ms)
    files = files_json(file_contents(program.storage, DIRECTORY))
    return compare(files, [listed(file) for file in case["closedFiles"]], "closedFiles")

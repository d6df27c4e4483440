"""States and files of a log as golden cases write them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from log.partition.log_offsets import LogDescription, ProducerView
from log.partition.partition_log import PartitionLog
from log.segments.file_names import OFFSET_INDEX, TIME_INDEX
from log.segments.search import FoundOffset
from log.storage.protocol import Storage
from tests.golden.log.cases import Json


def state_json(state: LogDescription) -> Json:
    """Return a log's state in the form of the cases, which leave out epochs that are not kept, and no producers."""
    answer: dict[str, Json] = {
        "logStartOffset": state.log_start_offset,
        "logEndOffset": state.log_end_offset,
        "highWatermark": state.high_watermark,
        "lastStableOffset": state.last_stable_offset,
        "recoveryPoint": state.recovery_point,
        "segments": [
            [
                segment.base_offset,
                segment.size_bytes,
                segment.offset_entry_count,
                segment.time_entry_count,
                segment.max_timestamp.timestamp,
                segment.max_timestamp.offset,
            ]
            for segment in state.segments
        ],
    }
    if state.leader_epochs is not None:
        answer["leaderEpochs"] = [[entry.epoch, entry.start_offset] for entry in state.leader_epochs]
    if state.producers:
        answer["producers"] = producers_json(state.producers)
    return answer


def producers_json(producers: Iterable[ProducerView]) -> Json:
    """Return producers as rows."""
    return [
        [
            producer.producer_id,
            producer.producer_epoch,
            producer.last_sequence,
            producer.last_data_offset,
            producer.last_offset_delta,
            producer.last_timestamp,
            producer.coordinator_epoch,
            -1 if producer.current_txn_first_offset is None else producer.current_txn_first_offset,
        ]
        for producer in producers
    ]


def found_json(found: FoundOffset | None) -> Json:
    """Return what a look-up by time found."""
    if found is None:
        return None
    answer = {"timestamp": found.timestamp_ms, "offset": found.offset}
    return answer if found.leader_epoch is None else {**answer, "leaderEpoch": found.leader_epoch}


def file_names(log: PartitionLog) -> list[str]:
    """Return the names of the files in a log's directory."""
    return list(log.storage.list(log.directory))


def file_contents(storage: Storage, directory: str, log: PartitionLog | None = None) -> dict[str, bytes]:
    """Return the files of a directory by name; of a `log` in use the indexes without their reserved rest."""
    contents = {name: storage.read(f"{directory}/{name}") for name in storage.list(directory)}
    if log is not None:
        active = log.active_segment
        for name, index in (
            (active.place.name(OFFSET_INDEX), active.offset_index),
            (active.place.name(TIME_INDEX), active.time_index),
        ):
            contents[name] = contents[name][: index.size_bytes]
    return contents


def files_json(contents: dict[str, bytes]) -> Json:
    """Return name, size and digest of each file."""
    return [
        {"file": name, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in sorted(contents.items())
    ]


def listed(file: Json) -> Json:
    """Return a file of a case's listing without what is decoded from it, as its bytes are compared."""
    return file if isinstance(file, str) else {key: file[key] for key in ("file", "size", "sha256")}

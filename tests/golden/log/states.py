"""Batches, files and states of a log as golden cases write them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from broker.clock import ManualClock
from broker.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.units import TimeMs
from log.batches.build import BatchSpec, build_batch, build_marker
from log.codecs.compression import Codec
from log.partition.log_offsets import LogDescription, ProducerView
from log.partition.partition_log import PartitionLog
from log.record import ControlType, EndTransactionMarker, Header, Record, TimestampType
from log.segments.file_names import OFFSET_INDEX, TIME_INDEX
from log.segments.search import FoundOffset
from log.storage import MemoryStorage
from log.storage.protocol import Storage
from tests.golden.log.cases import Json
from tests.support.disk_image import DiskImage
from tests.support.disk_image import storage_of as copy_of


def batch_bytes(given: Mapping[str, Json]) -> bytes:
    """Return the bytes of one batch given as JSON."""
    spec = BatchSpec(
        base_offset=Offset(given["baseOffset"]),
        magic=given["magic"],
        codec=Codec[given["compression"].upper()],
        timestamp_type=TimestampType(given["timestampType"]),
        log_append_time=TimeMs(given.get("logAppendTime", -1)),
        producer_id=ProducerId(given.get("producerId", -1)),
        producer_epoch=ProducerEpoch(given.get("producerEpoch", -1)),
        base_sequence=given.get("baseSequence", -1),
        is_transactional=given.get("transactional", False),
        partition_leader_epoch=LeaderEpoch(given.get("partitionLeaderEpoch", -1)),
        delete_horizon_ms=given.get("deleteHorizonMs"),
    )
    if given.get("control"):
        marker = EndTransactionMarker(ControlType[given["control"]], given.get("coordinatorEpoch", -1))
        return build_marker(spec, marker, given["records"][0]["timestamp"])
    records, next_offset = [], given["baseOffset"]
    for each in given["records"]:
        offset = each.get("offset", next_offset)
        next_offset = offset + 1
        headers = tuple(Header(name, decoded(value)) for name, value in each.get("headers", ()))
        records.append(
            Record(Offset(offset), TimeMs(each["timestamp"]), decoded(each["key"]), decoded(each["value"]), headers)
        )
    return build_batch(spec, records)


def decoded(text: str | None) -> bytes | None:
    """Return the bytes that base64 stands for."""
    return None if text is None else base64.b64decode(text)


def storage_of(folder: Path, clock: ManualClock) -> MemoryStorage:
    """Return the files below `folder` as a storage in memory."""
    files = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    directories = frozenset(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_dir())
    return copy_of(clock, DiskImage(files, directories))


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

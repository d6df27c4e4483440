"""What golden cases give: batches as JSON, files in folders."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

from broker.clock import ManualClock
from broker.ids import LeaderEpoch, Offset, ProducerEpoch, ProducerId
from broker.units import TimeMs
from log.batches.build import BatchSpec, build_batch, build_marker
from log.codecs.compression import Codec
from log.record import ControlType, EndTransactionMarker, Header, Record, TimestampType
from log.storage import MemoryStorage
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

"""Small metadata logs: records given short, put into batches, snapshots and files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from broker.ids import LeaderEpoch, Offset
from broker.units import TimeMs
from broker.wire.fields import encode_uuid
from log import BatchSpec, Record, build_batch
from log.metadata import MetadataFile, MetadataRecord, RecordType, is_metadata_file
from log.metadata.records import ControlRecord
from log.metadata.schemas import SCHEMAS
from log.record import ControlType

REAL: Final = Path(__file__).parents[2] / "real_data" / "kraft"
REAL_LOG: Final = REAL / "__cluster_metadata-0"
REAL_NEWEST: Final = Path(__file__).parents[2] / "real_data" / "kraft-4.3"
ORDERS: Final = encode_uuid(b"o" * 16)
START_MS: Final = 1_700_000_000_000

Change = Sequence[MetadataRecord | ControlRecord]


def made(kind: RecordType, **data: Any) -> MetadataRecord:
    """Return a record of the newest version; what is not given is the default."""
    schema = SCHEMAS[kind]
    return MetadataRecord(kind, schema.version_max, {each.name: each.default for each in schema.fields} | data)


def broker(broker_id: int, **data: Any) -> MetadataRecord:
    """Return the registration of a broker that is not fenced."""
    given = {"brokerId": broker_id, "brokerEpoch": broker_id, "fenced": False, "rack": f"rack-{broker_id}"}
    return made(RecordType.REGISTER_BROKER_RECORD, **given | data)


def topic(name: str = "orders", topic_id: str = ORDERS) -> MetadataRecord:
    """Return the creation of a topic."""
    return made(RecordType.TOPIC_RECORD, name=name, topicId=topic_id)


def partition(*replicas: int, number: int = 0, **data: Any) -> MetadataRecord:
    """Return the creation of a partition of "orders", all replicas in sync and the first leading."""
    given = {"partitionId": number, "topicId": ORDERS, "replicas": replicas, "isr": replicas, "leader": replicas[0]}
    return made(RecordType.PARTITION_RECORD, **given | {"leaderEpoch": 0, "partitionEpoch": 0} | data)


def change(number: int = 0, **data: Any) -> MetadataRecord:
    """Return a change of a partition of "orders"."""
    return made(RecordType.PARTITION_CHANGE_RECORD, partitionId=number, topicId=ORDERS, **data)


def config(name: str, value: str | None, *, topic: str | None = None) -> MetadataRecord:
    """Return a setting of a topic, or of all brokers."""
    where = {"resourceType": 4, "resourceName": ""} if topic is None else {"resourceType": 2, "resourceName": topic}
    return made(RecordType.CONFIG_RECORD, name=name, value=value, **where)


def fenced(broker_id: int, is_fenced: bool = True) -> MetadataRecord:
    """Return the fencing of a broker, or its end."""
    number = 1 if is_fenced else -1
    return made(RecordType.BROKER_REGISTRATION_CHANGE_RECORD, brokerId=broker_id, brokerEpoch=broker_id, fenced=number)


def batches(*appends: Change, start_offset: int = 0, step_ms: int = 1000) -> bytes:
    """Return the bytes of a log: one batch an append, a second after the other."""
    data, offset = b"", start_offset
    for place, records in enumerate(appends):
        time_ms = TimeMs(START_MS + place * step_ms)
        values = [
            Record(Offset(offset + row), time_ms, each.key(), each.value())
            if isinstance(each, ControlRecord)
            else Record(Offset(offset + row), time_ms, None, each.to_bytes())
            for row, each in enumerate(records)
        ]
        is_control = isinstance(records[0], ControlRecord)
        spec = BatchSpec(Offset(offset), is_control=is_control, partition_leader_epoch=LeaderEpoch(1))
        data += build_batch(spec, values)
        offset += len(records)
    return data


def log_file(*appends: Change, start_offset: int = 0) -> MetadataFile:
    """Return a segment."""
    name = f"{start_offset:020d}.log"
    return MetadataFile(name, name, batches(*appends, start_offset=start_offset))


def snapshot_file(end_offset: int, *records: MetadataRecord, time_ms: int = START_MS) -> MetadataFile:
    """Return a snapshot of all below `end_offset`."""
    header = ControlRecord(ControlType.SNAPSHOT_HEADER, {"version": 0, "lastContainedLogTimestamp": time_ms})
    footer = ControlRecord(ControlType.SNAPSHOT_FOOTER, {"version": 0})
    name = f"{end_offset:020d}-{1:010d}.checkpoint"
    parts: list[Change] = [[header], records, [footer]] if records else [[header], [footer]]
    return MetadataFile(name, name, batches(*parts))


def real_files(folder: Path = REAL) -> list[MetadataFile]:
    """Return the files of a real log, by default that of 4.0.1."""
    return [
        MetadataFile(path.name, path.name, path.read_bytes())
        for path in sorted((folder / "__cluster_metadata-0").iterdir())
        if is_metadata_file(path.name)
    ]

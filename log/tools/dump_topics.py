"""Print the records of internal topics as the decoders of kafka-dump-log do.

Source: org.apache.kafka.tools.DumpLogSegments, coordinator.common.runtime.CoordinatorRecordSerde and
server.log.remote.metadata.storage.serialization.RemoteLogMetadataSerde, 4.4.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from broker.errors import CorruptDataError
from broker.group.schemas import ASSIGNMENT, CONSUMER_GROUP_RECORDS, SUBSCRIPTION
from broker.units import MIB
from broker.wire.fields import Fields, Message, RecordSchema
from broker.wire.reading import MessageError, Reader, read_message
from log.metadata.json_text import fields_json
from log.metadata.records import read_frame
from log.metadata.schemas import messages, record_schemas
from log.record import Record

REMOTE_LOG_RECORDS: Final = messages("remote log metadata")
_SEGMENT_STATES: Final = (
    "COPY_SEGMENT_STARTED",
    "COPY_SEGMENT_FINISHED",
    "DELETE_SEGMENT_STARTED",
    "DELETE_SEGMENT_FINISHED",
)
_PARTITION_STATES: Final = ("DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED")
_TRANSACTION_STATES: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
MESSAGE_BYTES_MAX: Final = 8 * MIB
"""A record's key or value of an internal topic; a topic's max.message.bytes is 1 MiB by default."""
SEGMENT, UPDATE, PARTITION_DELETE, SNAPSHOT = range(4)


def refused(text: str | None) -> MessageError:
    """Return an error with the message of Kafka's exception."""
    return MessageError(text or "no message", text)


def remote_log_text(record: Record) -> str:
    """Return the text after "payload: " in the dump of a record."""
    try:
        return _remote_log_payload(record.value)
    except MessageError as error:
        message = "null" if error.kafka_message is None else error.kafka_message
        return f"Error at offset {record.offset}, skipping. {message}"


def _remote_log_payload(value: bytes | None) -> str:
    if value is None:
        raise refused(
            'Cannot invoke "java.nio.ByteBuffer.remaining()" because the return value of'
            ' "org.apache.kafka.common.record.internal.Record.value()" is null'
        )
    reader = Reader(value, is_strict=False)
    try:
        kind, version = read_frame(reader)
    except CorruptDataError as error:
        raise refused(error.what) from None
    if kind not in REMOTE_LOG_RECORDS:
        raise refused(f"org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id {kind}")
    try:
        fields = read_message(REMOTE_LOG_RECORDS[kind], reader, version=version)
    except MessageError:
        raise refused(f"Failed to deserialize record with type {kind}") from None
    if reader.left:
        raise refused(f"Found {reader.left} byte(s) of garbage after {kind}")
    if kind == PARTITION_DELETE:
        return _partition_delete(fields)
    return _update(fields) if kind == UPDATE else _segment(fields, is_snapshot=kind == SNAPSHOT)


def _segment(fields: Fields, *, is_snapshot: bool) -> str:
    last = {each["leaderEpoch"]: each["offset"] for each in fields["segmentLeaderEpochs"]}
    epochs = dict(sorted(last.items()))
    if not is_snapshot:
        _check_offsets(fields["startOffset"], fields["endOffset"])
        _check_epochs(epochs)
    state = _state(_SEGMENT_STATES, fields["remoteLogSegmentState"])
    _check_epochs(epochs)
    start = (
        f"RemoteLogSegmentMetadataSnapshot{{segmentId={fields['segmentId']}"
        if is_snapshot
        else f"RemoteLogSegmentMetadata{{remoteLogSegmentId={_segment_id(fields['remoteLogSegmentId'])}"
    )
    own = "" if is_snapshot else f", brokerId={fields['brokerId']}"
    event = "" if is_snapshot else f", eventTimestampMs={fields['eventTimestampMs']}"
    listed = ", ".join(f"{epoch}={offset}" for epoch, offset in epochs.items())
    return (
        f"{start}, startOffset={fields['startOffset']}, endOffset={fields['endOffset']}{own}"
        f", maxTimestampMs={fields['maxTimestampMs']}{event}, segmentLeaderEpochs={{{listed}}}"
        f", segmentSizeInBytes={fields['segmentSizeInBytes']}, customMetadata={_custom(fields['customMetadata'])}"
        f", state={state}, txnIdxEmpty={str(fields['txnIndexEmpty']).lower()}}}"
    )


def _check_offsets(start: int, end: int) -> None:
    """Refuse what the constructor of RemoteLogSegmentMetadata refuses."""
    if start < 0:
        raise refused(f"Unexpected start offset = {start}. StartOffset for a remote segment cannot be negative")
    if end < start:
        raise refused(
            f"Unexpected end offset = {end}. EndOffset for a remote segment cannot be less than startOffset = {start}"
        )


def _check_epochs(epochs: dict[int, int]) -> None:
    if not epochs:
        raise refused("segmentLeaderEpochs can not be null or empty")


def _update(fields: Fields) -> str:
    return (
        f"RemoteLogSegmentMetadataUpdate{{remoteLogSegmentId={_segment_id(fields['remoteLogSegmentId'])}"
        f", customMetadata={_custom(fields['customMetadata'])}"
        f", state={_state(_SEGMENT_STATES, fields['remoteLogSegmentState'])}"
        f", eventTimestampMs={fields['eventTimestampMs']}, brokerId={fields['brokerId']}}}"
    )


def _partition_delete(fields: Fields) -> str:
    state = _state(_PARTITION_STATES, fields["remotePartitionDeleteState"], message=None)
    return (
        f"RemotePartitionDeleteMetadata{{topicPartition={_partition(fields['topicIdPartition'])}, state={state}"
        f", eventTimestampMs={fields['eventTimestampMs']}, brokerId={fields['brokerId']}}}"
    )


def _segment_id(fields: Fields) -> str:
    return f"RemoteLogSegmentId{{topicIdPartition={_partition(fields['topicIdPartition'])}, id={fields['id']}}}"


def _partition(fields: Fields) -> str:
    return f"{fields['id']}:{fields['name']}-{fields['partition']}"


def _custom(data: bytes | None) -> str:
    return "Optional.empty" if data is None else f"Optional[CustomMetadata{{{len(data)} bytes}}]"


def _state(names: tuple[str, ...], number: int, message: str | None = "state can not be null") -> str:
    if not 0 <= number < len(names):
        raise refused(message)
    return names[number]


OFFSETS: Final = "offsets"
REMOTE_LOG_METADATA: Final = "remote-log-metadata"
TOPIC_DECODERS: Final[Mapping[str, Mapping[int, RecordSchema]]] = {
    OFFSETS: {**CONSUMER_GROUP_RECORDS, **record_schemas("groups")},
    "transaction-log": record_schemas("transactions"),
    REMOTE_LOG_METADATA: {},
    "share-group-state": record_schemas("share state"),
}
"""The records by type for each decoder, in the order in which Kafka's tool prefers the decoders."""
GROUP_METADATA: Final = 2
_EMBEDDED: Final = {"subscription": SUBSCRIPTION, "assignment": ASSIGNMENT}


def decoded(record: Record, decoder: str) -> tuple[str | None, str | None]:
    """Return the texts after "key: " and "payload: "; raise CorruptDataError for a record without a key."""
    if decoder == REMOTE_LOG_METADATA:
        return None, remote_log_text(record)
    if record.key is None:
        raise CorruptDataError(
            f"Failed to decode message at offset {record.offset} using the specified decoder"
            " (message had a missing key)"
        )
    try:
        return _texts(record.key, record.value, decoder)
    except _UnknownTypeError as unknown:
        return f"Unknown record type {unknown.kind} at offset {record.offset}, skipping.", None
    except MessageError as error:
        return f"Error at offset {record.offset}, skipping. {_shown(error)}", None


class _UnknownTypeError(Exception):
    """Report a type of record that the topic does not have."""

    def __init__(self, kind: int) -> None:
        self.kind = kind
        super().__init__(str(kind))


def _texts(key: bytes, value: bytes | None, decoder: str) -> tuple[str, str]:
    kind = _version(key, "key")
    schema = TOPIC_DECODERS[decoder].get(kind)
    if schema is None:
        raise _UnknownTypeError(kind)
    # The key's "version" is its type; its fields are those of version 0.
    fields = _read(schema.key, key[2:], version=0, shown_version=kind, where="key")
    key_text = f'{{"type":"{kind}","data":{fields_json(schema.key.fields, 0, fields)}}}'
    if value is None:
        return key_text, "<DELETE>"
    version = _version(value, "value")
    if not 0 <= version <= schema.value.version_max:
        raise refused(f"Found an unknown record version {version} for {kind} type")
    message = schema.value
    values = _read(message, value[2:], version=version, shown_version=version, where="value")
    if decoder == OFFSETS and kind == GROUP_METADATA and values["protocolType"] == "consumer":
        text = _group_json(message, version, values)
    elif message.name == "TransactionLogValue":
        status = values["transactionStatus"]
        shown = _TRANSACTION_STATES[status] if 0 <= status < len(_TRANSACTION_STATES) else str(status)
        text = fields_json(message.fields, version, values, {"transactionStatus": f'"{shown}"'})
    else:
        text = fields_json(message.fields, version, values)
    return key_text, f'{{"version":"{version}","data":{text}}}'


def _group_json(message: Message, version: int, values: Fields) -> str:
    """Return a classic consumer group with its members' subscriptions and assignments as JSON."""
    (members,) = (field for field in message.fields if field.name == "members")
    shown = ",".join(_member_json(members.fields, version, member) for member in values["members"])
    return fields_json(message.fields, version, values, {"members": f"[{shown}]"})


def _member_json(fields: tuple[Any, ...], version: int, member: Fields) -> str:
    shown = {name: _embedded_json(embedded, member[name]) for name, embedded in _EMBEDDED.items()}
    return fields_json(fields, version, member, {name: text for name, text in shown.items() if text is not None})


def _embedded_json(message: Message, data: bytes) -> str | None:
    """Return a structure that stands as bytes in a record; None if it cannot be read, then bytes are shown."""
    try:
        version = _version(data, message.name)
        return fields_json(
            message.fields, version, read_message(message, Reader(data[2:], is_strict=False), version=version)
        )
    except MessageError:
        return None


def _read(message: Message, data: bytes, *, version: int, shown_version: int, where: str) -> dict[str, Any]:
    try:
        return read_message(message, Reader(data, is_strict=False), version=version)
    except MessageError as error:
        raise refused(
            f"Could not read record with version {shown_version} from {where}'s buffer due to: {_shown(error)}."
        ) from None


def _version(data: bytes, where: str) -> int:
    if len(data) > MESSAGE_BYTES_MAX:
        raise refused(f"the {where} has {len(data):,} bytes; at most {MESSAGE_BYTES_MAX:,} are decoded")
    if len(data) < 2:
        raise refused(f"Could not read version from {where}'s buffer.")
    return int.from_bytes(data[:2], "big", signed=True)


def _shown(error: MessageError) -> str:
    """Return the message of Kafka's exception as Java prints it."""
    return "null" if error.kafka_message is None else error.kafka_message

"""Print the records of `__remote_log_metadata` as --remote-log-metadata-decoder does.

Source: org.apache.kafka.server.log.remote.metadata.storage.serialization.RemoteLogMetadataSerde and the classes of
org.apache.kafka.server.log.remote.storage, 4.3.1.
"""

from __future__ import annotations

from typing import Final

from broker.errors import CorruptDataError
from broker.wire.fields import Fields
from broker.wire.reading import MessageError, Reader, read_message
from log.metadata.records import read_frame
from log.record import Record
from log.tools.topic_schemas import REMOTE_LOG_RECORDS

_SEGMENT_STATES: Final = (
    "COPY_SEGMENT_STARTED",
    "COPY_SEGMENT_FINISHED",
    "DELETE_SEGMENT_STARTED",
    "DELETE_SEGMENT_FINISHED",
)
_PARTITION_STATES: Final = ("DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED")
SEGMENT, UPDATE, PARTITION_DELETE, SNAPSHOT = range(4)


def refused(text: str | None) -> MessageError:
    """Return an error with the message of Kafka's exception."""
    return MessageError(text or "no message", text)


def remote_log_text(record: Record) -> str:
    """Return the text after "payload: " in the dump of a record."""
    try:
        return _text(record.value)
    except MessageError as error:
        message = "null" if error.kafka_message is None else error.kafka_message
        return f"Error at offset {record.offset}, skipping. {message}"


def _text(value: bytes | None) -> str:
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

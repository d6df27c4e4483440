"""Print the records of internal topics as the decoders of kafka-dump-log do.

Source: org.apache.kafka.tools.DumpLogSegments and
org.apache.kafka.coordinator.common.runtime.CoordinatorRecordSerde, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from broker.errors import CorruptDataError
from broker.group.schemas import ASSIGNMENT, CONSUMER_GROUP_RECORDS, SUBSCRIPTION
from broker.wire.fields import Fields, Message, RecordSchema
from broker.wire.reading import MessageError, Reader, read_message
from log.metadata.json_text import fields_json, value_json
from log.record import Record
from log.tools.dump_remote import refused, remote_log_text
from log.tools.topic_schemas import OTHER_GROUP_RECORDS, SHARE_STATE_RECORDS, TRANSACTION_RECORDS

OFFSETS: Final = "offsets"
REMOTE_LOG_METADATA: Final = "remote-log-metadata"
TOPIC_DECODERS: Final[Mapping[str, Mapping[int, RecordSchema]]] = {
    OFFSETS: {**CONSUMER_GROUP_RECORDS, **OTHER_GROUP_RECORDS},
    "transaction-log": TRANSACTION_RECORDS,
    REMOTE_LOG_METADATA: {},
    "share-group-state": SHARE_STATE_RECORDS,
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
    else:
        text = fields_json(message.fields, version, values)
    return key_text, f'{{"version":"{version}","data":{text}}}'


def _group_json(message: Message, version: int, values: Fields) -> str:
    """Return a classic consumer group with its members' subscriptions and assignments as JSON."""
    (members,) = (field for field in message.fields if field.name == "members")
    parts = []
    for field in message.fields:
        if field.since > version:
            continue
        text = value_json(field, version, values[field.name])
        if field is members:
            shown = (_member_json(members.fields, version, member) for member in values[field.name])
            text = f"[{','.join(shown)}]"
        parts.append(f'"{field.name}":{text}')
    return "{" + ",".join(parts) + "}"


def _member_json(fields: tuple[Any, ...], version: int, member: Fields) -> str:
    parts = []
    for field in fields:
        if field.since > version:
            continue
        text = None
        if field.name in _EMBEDDED:
            text = _embedded_json(_EMBEDDED[field.name], member[field.name])
        parts.append(f'"{field.name}":{value_json(field, version, member[field.name]) if text is None else text}')
    return "{" + ",".join(parts) + "}"


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
    if len(data) < 2:
        raise refused(f"Could not read version from {where}'s buffer.")
    return int.from_bytes(data[:2], "big", signed=True)


def _shown(error: MessageError) -> str:
    """Return the message of Kafka's exception as Java prints it."""
    return "null" if error.kafka_message is None else error.kafka_message

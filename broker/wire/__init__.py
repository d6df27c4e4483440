"""Read and write Kafka's messages by tables of fields: records of internal topics and of the metadata log.

fields          Describe messages as data: fields with a kind, versions, a tag and a default; print ids of 16 bytes.
reading         Read a message of a version, flexible or not; refuse what Kafka's classes refuse.
writing         Write a message of a version.
"""

from __future__ import annotations

from broker.wire.fields import UUID_ZERO, Field, Fields, Kind, Message, RecordSchema, array_of, record, strings
from broker.wire.reading import MessageError, Reader, read_message
from broker.wire.writing import unsigned_varint, write_message, write_versioned

__all__ = (
    "UUID_ZERO",
    "Field",
    "Fields",
    "Kind",
    "Message",
    "MessageError",
    "Reader",
    "RecordSchema",
    "array_of",
    "read_message",
    "record",
    "strings",
    "unsigned_varint",
    "write_message",
    "write_versioned",
)

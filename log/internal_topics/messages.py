"""Read Kafka's messages of all versions, flexible or not, with the errors of Kafka's generated classes.

What it decides: how a message is read whose older versions are not flexible (KIP-482): there lengths have 16 or
32 bits, -1 is null, and nothing is tagged.

Constraints: an error has the words of Kafka's classes, since its tools print them; None where Kafka's exception has no
message, which it has not when the bytes end. Bytes after the last field are passed over, as in Kafka.

Example: read_message(SUBSCRIPTION, data, version=1)["topics"]

Left out: writing.

Source: org.apache.kafka.common.protocol.ByteBufferAccessor and the code that Kafka's generator makes, 4.3.1.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final

import attrs

from log.codecs.java_utf8 import decode_java_utf8
from log.files.java_text import UUID_SIZE_BYTES, encode_uuid
from log.metadata.fields import Field, Kind

STRING_SIZE_MAX: Final = 0x7FFF
_NUMBERS: Final[Mapping[Kind, struct.Struct]] = {
    Kind.INT8: struct.Struct(">b"),
    Kind.INT16: struct.Struct(">h"),
    Kind.UINT16: struct.Struct(">H"),
    Kind.INT32: struct.Struct(">i"),
    Kind.INT64: struct.Struct(">q"),
    Kind.FLOAT64: struct.Struct(">d"),
}
_VARINT_BYTES_MAX: Final = 5
_INT32_SIGN: Final = 1 << 31


@attrs.frozen
class Message:
    """Describe one message: its fields, highest version and first flexible version (None: none is)."""

    name: str
    version_max: int
    flexible_since: int | None
    fields: tuple[Field, ...]


@attrs.frozen
class RecordSchema:
    """Describe the key and the value of one type of record."""

    key: Message
    value: Message


class MessageError(Exception):
    """Report that a message cannot be read; `kafka_message` is the message of Kafka's exception, None for none."""

    def __init__(self, kafka_message: str | None) -> None:
        self.kafka_message = kafka_message
        super().__init__(kafka_message or "the bytes end before the message does")


def read_message(message: Message, data: bytes, *, version: int) -> dict[str, Any]:
    """Return the fields of a message by name; raise MessageError."""
    return _reader(message, data, version).structure(message.fields)


def read_whole_message(message: Message, data: bytes, *, version: int) -> tuple[dict[str, Any], int]:
    """Return the fields of a message by name, and the count of bytes after it; raise MessageError."""
    reader = _reader(message, data, version)
    return reader.structure(message.fields), reader.left


def _reader(message: Message, data: bytes, version: int) -> _Reader:
    is_flexible = message.flexible_since is not None and version >= message.flexible_since
    return _Reader(data, version, is_flexible, message.version_max)


class _Reader:
    """Read values from the front of `data`."""

    def __init__(self, data: bytes, version: int, is_flexible: bool, version_max: int) -> None:
        self._data = data
        self._position = 0
        self._version = version
        self._is_flexible = is_flexible
        self._version_max = version_max

    @property
    def left(self) -> int:
        """Return the count of bytes not read yet."""
        return len(self._data) - self._position

    def structure(self, fields: tuple[Field, ...]) -> dict[str, Any]:
        values = {field.name: _absent(field) for field in fields}
        tagged: dict[int, Field] = {}
        for field in fields:
            if field.tag is not None:
                tagged[field.tag] = field
            elif field.since <= self._version and (field.until is None or self._version <= field.until):
                values[field.name] = self._value(field)
        if self._is_flexible:
            for _ in range(self._varint()):
                tag, size_bytes = self._varint(), self._varint()
                if tag in tagged:
                    values[tagged[tag].name] = self._value(tagged[tag])
                else:
                    self._take_array(size_bytes)
        return values

    def _value(self, field: Field) -> Any:
        if not field.is_array:
            return self._one(field)
        count = self._length(32)
        if count < 0:
            return _null(field.name, is_nullable=field.is_nullable)
        left = self.left
        if count > left:
            raise MessageError(
                f"Tried to allocate a collection of size {count}, but there are only {left} bytes remaining."
            )
        return tuple(self._one(field) for _ in range(count))

    def _one(self, field: Field) -> Any:
        if field.kind in _NUMBERS:
            number = _NUMBERS[field.kind]
            return number.unpack(self._take(number.size))[0]
        if field.kind is Kind.BOOL:
            return self._take(1) != b"\0"
        if field.kind is Kind.UUID:
            return encode_uuid(self._take(UUID_SIZE_BYTES))
        if field.kind is Kind.STRUCT:
            return self._nested(field)
        shown = f"{field.name} element" if field.is_array else field.name
        length = self._length(16 if field.kind is Kind.STRING else 32)
        if length < 0:
            return _null(shown, is_nullable=field.is_nullable and not field.is_array)
        if field.kind is Kind.BYTES:
            return self._take_array(length)
        if length > STRING_SIZE_MAX:
            raise MessageError(f"string field {shown} had invalid length {length}")
        return decode_java_utf8(self._take_array(length))

    def _nested(self, field: Field) -> Any:
        if field.is_nullable and not field.is_array:
            is_null = self._varint() <= 0 if field.tag is not None else self._take(1)[0] >= 0x80
            if is_null:
                return None
        if self._version > self._version_max:  # Kafka's nested classes refuse what its outer ones read.
            raise MessageError(f"Can't read version {self._version}")
        return self.structure(field.fields)

    def _length(self, bits: int) -> int:
        if self._is_flexible:
            return self._varint() - 1
        return int.from_bytes(self._take(bits // 8), "big", signed=True)

    def _varint(self) -> int:
        """Read an unsigned varint as Java does, into an int of 32 bits."""
        number = 0
        for index in range(_VARINT_BYTES_MAX):
            byte = self._take(1)[0]
            number |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                number &= 0xFFFF_FFFF
                return number - (1 << 32) if number & _INT32_SIGN else number
        shown = number & 0xFFFF_FFFF
        raise MessageError(
            f"Varint is too long, the most significant bit in the 5th byte is set, converted value: {shown:x}"
        )

    def _take(self, size_bytes: int) -> bytes:
        if size_bytes > len(self._data) - self._position:
            raise MessageError(None)
        self._position += size_bytes
        return self._data[self._position - size_bytes : self._position]

    def _take_array(self, size_bytes: int) -> bytes:
        left = self.left
        if size_bytes > left:
            raise MessageError(f"Error reading byte array of {size_bytes} byte(s): only {left} byte(s) available")
        if size_bytes < 0:
            raise MessageError(str(size_bytes))
        return self._take(size_bytes)


def _absent(field: Field) -> Any:
    """Return the value of a field that is not there; of a tagged structure that is an empty one, not null."""
    if field.tag is not None and field.kind is Kind.STRUCT and not field.is_array:
        return {each.name: each.default for each in field.fields}
    return field.default


def _null(shown: str, *, is_nullable: bool) -> None:
    """Take null as a value; raise MessageError where it is not allowed. No element of an array may be null."""
    if not is_nullable:
        raise MessageError(f"non-nullable field {shown} was serialized as null")

"""Encode and decode the fields of a schema in Kafka's flexible encoding.

What it decides: how a structure is read and written. A structure is its fields in order, the untagged ones; then the
number of tagged fields, each with tag, size and value, tags ascending.

Goals, most important first:
1. What Kafka reads means the same here; what Kafka's generated code refuses is refused.
2. Nothing is taken before it is known to be there: a length beyond the bytes that are left is damage.
3. A record takes some microseconds, since a log has millions.

Constraints: tags that are not known are passed over, as Kafka keeps them without a meaning; bytes left over after the
last field are damage. A known tag's value must fill its size, which Kafka does not ask.

Example: encode_fields(fields, 0, {"name": "a"}) == b"\\x02a\\0" for one string field.

Source: org.apache.kafka.common.protocol.ByteBufferAccessor and the code that Kafka's generator makes, 4.0; KIP-482.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from broker.errors import CorruptDataError, UsageError, shorten
from log.codecs.java_utf8 import decode_java_utf8
from log.files.java_text import UUID_SIZE_BYTES, decode_uuid, encode_uuid
from log.metadata.fields import Field, Fields, Kind

STRING_BYTES_MAX: Final = 0x7FFF
"""Kafka neither writes nor reads a longer string."""
VARINT_BYTES_MAX: Final = 5  # 32 bits at seven bits a byte.
_NUMBERS: Final[Mapping[Kind, struct.Struct]] = {
    Kind.INT8: struct.Struct(">b"),
    Kind.INT16: struct.Struct(">h"),
    Kind.UINT16: struct.Struct(">H"),
    Kind.INT32: struct.Struct(">i"),
    Kind.INT64: struct.Struct(">q"),
    Kind.FLOAT64: struct.Struct(">d"),
}


class FieldReader:
    """Read values from the front of `data`; raise CorruptDataError with the byte position in `data`."""

    __slots__ = ("_data", "_end", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        self._end = len(data)

    @property
    def left(self) -> int:
        """Return the number of unread bytes."""
        return self._end - self._position

    @property
    def position(self) -> int:
        """Return the count of the bytes read."""
        return self._position

    def take(self, size_bytes: int) -> bytes:
        """Read the next bytes."""
        start, end = self._position, self._position + size_bytes
        if not start <= end <= self._end:
            raise self.corrupt(f"a field of {size_bytes} bytes does not fit into the {self.left} that are left")
        self._position = end
        return self._data[start:end]

    def unsigned_varint(self) -> int:
        """Read an unsigned varint of at most 32 bits."""
        data, position = self._data, self._position
        if position < self._end and (byte := data[position]) < 0x80:
            self._position += 1
            return byte
        number = 0
        for index in range(VARINT_BYTES_MAX):
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                return number & 0xFFFF_FFFF
        raise self.corrupt(f"a number takes more than {VARINT_BYTES_MAX} bytes")

    def length(self) -> int:
        """Read a length in bytes or elements; -1 is null."""
        length = self.unsigned_varint() - 1
        if length > self.left:  # Whatever it counts takes a byte at least.
            raise self.corrupt(f"a length of {length} does not fit into the {self.left} bytes that are left")
        return length

    def corrupt(self, what: str) -> CorruptDataError:
        """Return a CorruptDataError with the message `what` at the current position."""
        return CorruptDataError(what, position=self._position)


def read_fields(reader: FieldReader, fields: tuple[Field, ...], version: int) -> dict[str, Any]:
    """Read a structure of `version`, without the fields that this version lacks; raise CorruptDataError."""
    plain, tagged, values = _plan(fields, version)
    values = dict(values)
    for name, read in plain:
        values[name] = read(reader)
    previous = -1
    for _ in range(reader.length() + 1):
        tag, size_bytes = reader.unsigned_varint(), reader.unsigned_varint()
        if tag <= previous:
            raise reader.corrupt(f"tag {tag} follows tag {previous}; tags ascend")
        previous = tag
        if tag not in tagged:
            reader.take(size_bytes)
            continue
        if tagged[tag] is None:
            raise reader.corrupt(f"tag {tag} is not valid for version {version}")
        name, read = tagged[tag]
        left = reader.left
        values[name] = read(reader)
        if left - reader.left != size_bytes:
            raise reader.corrupt(f"{name} takes {left - reader.left} bytes, and its tag says {size_bytes}")
    return values


@functools.lru_cache(maxsize=256)
def _plan(fields: tuple[Field, ...], version: int) -> tuple[tuple[Any, ...], dict[int, Any], dict[str, Any]]:
    """Return how to read: untagged fields, tagged ones (None for a later version's), and all names with defaults."""
    present = [field for field in fields if field.since <= version]
    plain = tuple((field.name, _reading(field, version)) for field in present if field.tag is None)
    tagged: dict[int, Any] = {field.tag: None for field in fields if field.tag is not None}
    tagged |= {field.tag: (field.name, _reading(field, version)) for field in present if field.tag is not None}
    return plain, tagged, {field.name: field.default for field in present}


def _reading(field: Field, version: int) -> Callable[[FieldReader], Any]:
    """Return what takes the value of a field."""
    one = _reading_one(field, version)
    if not field.is_array:
        return one

    def array(reader: FieldReader) -> tuple[Any, ...] | None:
        count = reader.length()
        if count < 0:
            _ensure_nullable(reader, field)
            return None
        return tuple([one(reader) for _ in range(count)])

    return array


def _reading_one(field: Field, version: int) -> Callable[[FieldReader], Any]:
    if field.kind in _NUMBERS:
        number = _NUMBERS[field.kind]
        size_bytes, unpack = number.size, number.unpack
        return lambda reader: unpack(reader.take(size_bytes))[0]
    if field.kind is Kind.BOOL:
        return lambda reader: reader.take(1) != b"\0"
    if field.kind is Kind.UUID:
        return lambda reader: encode_uuid(reader.take(UUID_SIZE_BYTES))
    if field.kind is Kind.STRUCT:
        return lambda reader: read_fields(reader, field.fields, version)
    is_string = field.kind is Kind.STRING
    decode: Callable[[bytes], Any] = decode_java_utf8 if is_string else bytes

    def sized(reader: FieldReader) -> Any:
        size_bytes = reader.length()
        if size_bytes < 0:
            _ensure_nullable(reader, field)
            return None
        if is_string and size_bytes > STRING_BYTES_MAX:
            raise reader.corrupt(f"string field {field.name} had invalid length {size_bytes}")
        return decode(reader.take(size_bytes))

    return sized


def _ensure_nullable(reader: FieldReader, field: Field) -> None:
    if not field.is_nullable:
        raise reader.corrupt(f"non-nullable field {field.name} was serialized as null")


def encode_fields(fields: tuple[Field, ...], version: int, values: Fields) -> bytes:
    """Return a structure as bytes; absent `values` are defaults. Raises UsageError for a value that does not fit.

    As in Kafka, a tagged field that is its default is not written, and a field that `version` has not must be its
    default.
    """
    if not isinstance(values, Mapping):
        raise UsageError(f"fields are {shorten(repr(values))}; a mapping by name is needed")
    unknown = sorted(map(str, set(values) - {field.name for field in fields}))
    if unknown:
        raise UsageError(f"there is no field {unknown[0]}; there are {', '.join(field.name for field in fields)}")
    out, tagged = bytearray(), {}
    for field in fields:
        value = values.get(field.name, field.default)
        is_default = value == field.default
        if field.since > version:
            if not is_default:
                raise UsageError(f"version {version} has no field {field.name}")
        elif field.tag is None:
            out += _encoded(field, version, value)
        elif not is_default:
            tagged[field.tag] = _encoded(field, version, value)
    out += unsigned_varint(len(tagged))
    for tag in sorted(tagged):
        out += unsigned_varint(tag) + unsigned_varint(len(tagged[tag])) + tagged[tag]
    return bytes(out)


def unsigned_varint(number: int) -> bytes:
    """Return an unsigned number of at most 32 bits as a varint."""
    assert 0 <= number < 1 << 32, number
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _encoded(field: Field, version: int, value: Any) -> bytes:
    if value is None:
        if not field.is_nullable:
            raise UsageError(f"{field.name} is None, which it may not be")
        return b"\0"
    if field.is_array:
        if not isinstance(value, list | tuple):
            raise UsageError(f"{field.name} is {shorten(repr(value))}; it must be an array of {field.kind.value}")
        return unsigned_varint(len(value) + 1) + b"".join(_encoded_one(field, version, each) for each in value)
    return _encoded_one(field, version, value)


def _encoded_one(field: Field, version: int, value: Any) -> bytes:
    try:
        if field.kind in _NUMBERS:
            return _NUMBERS[field.kind].pack(value)
        if field.kind is Kind.BOOL:
            return b"\1" if value else b"\0"
        if field.kind is Kind.STRUCT:
            return encode_fields(field.fields, version, value)
        if field.kind is Kind.UUID:
            found = decode_uuid(value)
            if found is None:
                raise ValueError
            return found
        if field.kind is Kind.BYTES and not isinstance(value, bytes | bytearray | memoryview):
            raise TypeError  # A number would be taken for a size.
        data = value.encode("utf-8", "replace") if field.kind is Kind.STRING else bytes(value)
    except (struct.error, TypeError, ValueError, AttributeError, OverflowError):
        raise UsageError(f"{field.name} is {shorten(repr(value))}; it must be {field.kind.value}") from None
    if field.kind is Kind.STRING and len(data) > STRING_BYTES_MAX:
        raise UsageError(f"{field.name} has {len(data)} bytes; a string has at most {STRING_BYTES_MAX}")
    return unsigned_varint(len(data) + 1) + data

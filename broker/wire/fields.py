"""Describe Kafka's messages as data: one `Field` per line in wire order, with a kind, versions, a tag and a default.

Whole numbers are int, `float64` is float, `uuid` is the 22 characters that Kafka prints, arrays are tuples, structures
are mappings by the field's name in Kafka's JSON. From a message's first flexible version on (KIP-482) a length is an
unsigned varint of the size plus one, 0 for null, and every structure ends with tagged fields.

Source: the *.json files of Kafka's message generator, their README, and KIP-482.
"""

from __future__ import annotations

import enum
import re
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import attrs

Fields: TypeAlias = Mapping[str, Any]
"""The values of a structure by name, in the order of the table."""

UUID_ZERO: Final = "AAAAAAAAAAAAAAAAAAAAAA"
STRING_BYTES_MAX: Final = 0x7FFF
"""Kafka neither writes nor reads a longer string."""


class Kind(enum.Enum):
    """List the wire types of single values."""

    BOOL = "bool"
    """One byte, 0 for false."""
    INT8 = "int8"
    """One byte, signed."""
    INT16 = "int16"
    """Two bytes, signed."""
    UINT16 = "uint16"
    """Two bytes, unsigned."""
    INT32 = "int32"
    """Four bytes, signed."""
    UINT32 = "uint32"
    """Four bytes, unsigned."""
    INT64 = "int64"
    """Eight bytes, signed."""
    FLOAT64 = "float64"
    """Eight bytes, IEEE 754."""
    UUID = "uuid"
    """Sixteen bytes."""
    STRING = "string"
    """A length and UTF-8."""
    BYTES = "bytes"
    """A length and bytes."""
    RECORDS = "records"
    """A length and record batches, as bytes."""
    STRUCT = "struct"
    """The fields of `Field.fields`, then tagged ones."""


NUMBERS: Final[Mapping[Kind, struct.Struct]] = {
    Kind.INT8: struct.Struct(">b"),
    Kind.INT16: struct.Struct(">h"),
    Kind.UINT16: struct.Struct(">H"),
    Kind.INT32: struct.Struct(">i"),
    Kind.UINT32: struct.Struct(">I"),
    Kind.INT64: struct.Struct(">q"),
    Kind.FLOAT64: struct.Struct(">d"),
}
_DEFAULTS: Final[Mapping[Kind, Any]] = {
    Kind.BOOL: False,
    Kind.FLOAT64: 0.0,
    Kind.UUID: UUID_ZERO,
    Kind.STRING: "",
    Kind.BYTES: b"",
    Kind.RECORDS: None,
    Kind.STRUCT: None,
}


def _default(field: Field) -> Any:
    return () if field.is_array else _DEFAULTS.get(field.kind, 0)


@attrs.frozen
class Field:
    """Describe one field. `since` and `until` are its first and last version, None if the newest has it.

    A field with a `tag` may be absent and is `default` then. `nullable_since` is the first version that may hold null.
    A field that is `always_fixed` has a length of 16 or 32 bits in flexible versions too, as the client id in requests.
    """

    name: str
    kind: Kind
    since: int = attrs.field(default=0, kw_only=True)
    until: int | None = attrs.field(default=None, kw_only=True)
    is_array: bool = attrs.field(default=False, kw_only=True)
    is_nullable: bool = attrs.field(default=False, kw_only=True)
    nullable_since: int = attrs.field(default=0, kw_only=True)
    tag: int | None = attrs.field(default=None, kw_only=True)
    always_fixed: bool = attrs.field(default=False, kw_only=True)
    fields: tuple[Field, ...] = attrs.field(default=(), kw_only=True)
    default: Any = attrs.field(default=attrs.Factory(_default, takes_self=True), kw_only=True)

    def __attrs_post_init__(self) -> None:
        assert bool(self.fields) == (self.kind is Kind.STRUCT), self.name

    def is_in(self, version: int) -> bool:
        """Return whether a version has the field."""
        return self.since <= version and (self.until is None or version <= self.until)

    def allows_null(self, version: int) -> bool:
        """Return whether the field may be null in a version; no element of an array may be."""
        return self.is_nullable and version >= self.nullable_since


@attrs.frozen(eq=False)
class Message:
    """Describe one message: its fields, highest version and first flexible version (None: none is)."""

    name: str
    version_max: int
    flexible_since: int | None
    fields: tuple[Field, ...]
    plans: dict[int, Any] = attrs.field(factory=dict, init=False, repr=False)
    """How to read each version, kept by `broker.wire.reading`."""

    def is_flexible(self, version: int) -> bool:
        """Return whether a version has varint lengths and tagged fields."""
        return self.flexible_since is not None and version >= self.flexible_since


@attrs.frozen
class RecordSchema:
    """Describe the key and the value of one type of record."""

    key: Message
    value: Message


def record(
    name: str, key: tuple[Field, ...], *value: Field, version_max: int = 0, flexible_since: int | None = 0
) -> RecordSchema:
    """Return the schema of a record; versions are those of its value. Kafka names both messages after the record."""
    return RecordSchema(
        Message(f"{name}Key", 0, None, key), Message(f"{name}Value", version_max, flexible_since, value)
    )


def strings(*names: str) -> tuple[Field, ...]:
    """Return fields of strings that are not null."""
    return tuple(Field(name, Kind.STRING) for name in names)


def array_of(name: str, *fields: Field, **options: Any) -> Field:
    """Return a field that is an array of structures."""
    return Field(name, Kind.STRUCT, is_array=True, fields=fields, **options)


UUID_SIZE_BYTES: Final = 16
_BASE64_URL: Final = re.compile(r"[A-Za-z0-9_-]*={0,2}")
_UUID_TEXT_LENGTH_MAX: Final = 24  # Kafka's own bound: 22 digits and padding.


def encode_uuid(uuid: bytes) -> str:
    """Return the 22 characters that Kafka prints for an id of 16 bytes."""
    assert len(uuid) == UUID_SIZE_BYTES, uuid
    return urlsafe_b64encode(uuid).decode("ascii").rstrip("=")


def decode_uuid(text: str) -> bytes | None:
    """Return the 16 bytes of an id; None where Kafka's `Uuid.fromString` throws."""
    if len(text) > _UUID_TEXT_LENGTH_MAX or _BASE64_URL.fullmatch(text) is None:
        return None
    digits = text.rstrip("=")
    if len(digits) % 4 == 1 or (digits != text and len(text) % 4):
        return None
    decoded = urlsafe_b64decode(digits + "=" * (-len(digits) % 4))
    return decoded if len(decoded) == UUID_SIZE_BYTES else None

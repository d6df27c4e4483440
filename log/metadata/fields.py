"""Define the parts of a record schema: fields with a kind, versions, a tag and a default.

What it decides: the form of the tables in `log.metadata.schemas`, one `Field` per line in wire order; and the
Python types of field values: whole numbers are int, `float64` is float, `uuid` is the 22 characters that Kafka prints,
arrays are tuples, structures are mappings by the field's name in Kafka's JSON.

Constraints: every version is flexible (KIP-482), as in all records of the metadata log: a length is an unsigned varint
of the size plus one, 0 for null, and every structure ends with tagged fields.

Example: Field("isr", Kind.INT32, is_array=True, tag=0, is_nullable=True, default=None) may be left out of a record,
which means None.

Left out: fixed-length lengths, which `log.internal_topics.messages` reads.

Source: the *.json files of Kafka's message generator, their README, and KIP-482.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import attrs

Fields: TypeAlias = Mapping[str, Any]
"""The values of a structure by name, in the order of the schema."""

UUID_ZERO: Final = "AAAAAAAAAAAAAAAAAAAAAA"


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
    STRUCT = "struct"
    """The fields of `Field.fields`, then tagged ones."""


_DEFAULTS: Final[Mapping[Kind, Any]] = {
    Kind.BOOL: False,
    Kind.FLOAT64: 0.0,
    Kind.UUID: UUID_ZERO,
    Kind.STRING: "",
    Kind.BYTES: b"",
    Kind.STRUCT: None,
}


def _default(field: Field) -> Any:
    return () if field.is_array else _DEFAULTS.get(field.kind, 0)


@attrs.frozen
class Field:
    """Describe one field. `since` is its first version; a field with a `tag` may be absent and is `default` then."""

    name: str
    kind: Kind
    since: int = attrs.field(default=0, kw_only=True)
    until: int | None = attrs.field(default=None, kw_only=True)
    """The last version with the field, None if the newest has it; no record of the metadata log has such a field."""
    is_array: bool = attrs.field(default=False, kw_only=True)
    is_nullable: bool = attrs.field(default=False, kw_only=True)
    tag: int | None = attrs.field(default=None, kw_only=True)
    fields: tuple[Field, ...] = attrs.field(default=(), kw_only=True)
    default: Any = attrs.field(default=attrs.Factory(_default, takes_self=True), kw_only=True)

    def __attrs_post_init__(self) -> None:
        assert bool(self.fields) == (self.kind is Kind.STRUCT), self.name


@attrs.frozen
class Schema:
    """Hold the fields of one structure, and its highest version."""

    name: str
    version_max: int
    fields: tuple[Field, ...]

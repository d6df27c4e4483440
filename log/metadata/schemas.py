"""Read the schemas of the records of internal topics from `messages.txt`: metadata, control records, groups and others.

Of each message it has a line (its name, the number of its type, its highest version) above those of its fields: name,
type, and, where it has them, its first version ("3+"), tag, "nullable", and default. "[]" is an array, "{}" a
structure, whose fields are indented; "@" stands before the fields of a record's key.

Source: the messages of metadata, clients, group-coordinator, transaction-coordinator, share-coordinator and storage,
4.3.1, and metadata of 4.4.0. ClearElrRecord came with release 4.0, cordoned directories with 4.3,
UnregisterControllerRecord with 4.4.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, Final

from broker.wire.fields import Field, Kind, Message, RecordSchema, record

_WORDS: Final[Mapping[str, Any]] = {"true": True, "null": None}
_INDENT: Final = "  "


class RecordType(enum.IntEnum):
    """List the types of metadata records; the value is the type's `apiKey` on the wire."""

    REGISTER_BROKER_RECORD = 0
    UNREGISTER_BROKER_RECORD = 1
    TOPIC_RECORD = 2
    PARTITION_RECORD = 3
    CONFIG_RECORD = 4
    PARTITION_CHANGE_RECORD = 5
    FENCE_BROKER_RECORD = 7
    UNFENCE_BROKER_RECORD = 8
    REMOVE_TOPIC_RECORD = 9
    DELEGATION_TOKEN_RECORD = 10
    USER_SCRAM_CREDENTIAL_RECORD = 11
    FEATURE_LEVEL_RECORD = 12
    CLIENT_QUOTA_RECORD = 14
    PRODUCER_IDS_RECORD = 15
    BROKER_REGISTRATION_CHANGE_RECORD = 17
    ACCESS_CONTROL_ENTRY_RECORD = 18
    REMOVE_ACCESS_CONTROL_ENTRY_RECORD = 19
    NO_OP_RECORD = 20
    ZK_MIGRATION_STATE_RECORD = 21
    REMOVE_USER_SCRAM_CREDENTIAL_RECORD = 22
    BEGIN_TRANSACTION_RECORD = 23
    END_TRANSACTION_RECORD = 24
    ABORT_TRANSACTION_RECORD = 25
    REMOVE_DELEGATION_TOKEN_RECORD = 26
    REGISTER_CONTROLLER_RECORD = 27
    CLEAR_ELR_RECORD = 28
    UNREGISTER_CONTROLLER_RECORD = 29


def _sections() -> Mapping[str, Sequence[str]]:
    text = files("log.metadata").joinpath("messages.txt").read_text(encoding="utf-8")
    parts = (part.splitlines() for part in text.split("# ")[1:])
    return {heading: [line for line in lines if line] for heading, *lines in parts}


_SECTIONS: Final = _sections()


def messages(section: str) -> dict[int, Message]:
    """Return the messages of a section by the number of their type."""
    return {
        number: Message(name, version_max, flexible_since, fields)
        for number, name, version_max, flexible_since, fields in _parsed(section)
    }


def record_schemas(section: str) -> dict[int, RecordSchema]:
    """Return the records with keys of a section by the number of their type."""
    found: dict[int, RecordSchema] = {}
    for number, name, version_max, flexible_since, fields in _parsed(section):
        key = tuple(Field(each.name[1:], each.kind) for each in fields if each.name.startswith("@"))
        value = fields[len(key) :]
        found[number] = record(name, key, *value, version_max=version_max, flexible_since=flexible_since)
    return found


def _parsed(section: str) -> Iterator[tuple[int, str, int, int, tuple[Field, ...]]]:
    """Yield number, name, highest version, first flexible version and fields of each message."""
    lines = deque(_SECTIONS[section])
    while lines:
        name, number, version_max, *flexible = lines.popleft().split()
        flexible_since = int(flexible[0].removeprefix("flexible=")) if flexible else 0
        yield int(number), name, int(version_max), flexible_since, _fields(lines, _INDENT)


def _fields(lines: deque[str], indent: str) -> tuple[Field, ...]:
    """Take the fields from the front of `lines` that are indented by `indent` at least, and return them."""
    found: list[Field] = []
    while lines and lines[0].startswith(indent):
        name, kind, *options = lines.popleft().split()
        found.append(_field(name, kind, options, _fields(lines, indent + _INDENT)))
    return tuple(found)


def _field(name: str, kind: str, options: Sequence[str], fields: tuple[Field, ...]) -> Field:
    given: dict[str, Any] = {"is_array": kind.startswith("[]"), "fields": fields}
    for option in options:
        if option == "nullable":
            given["is_nullable"] = True
        elif option.startswith("tag="):
            given["tag"] = int(option.removeprefix("tag="))
        elif option.startswith("="):
            given["default"] = _WORDS[option[1:]] if option[1:] in _WORDS else int(option[1:])
        else:
            given["since"] = int(option.removesuffix("+"))
    return Field(name, Kind.STRUCT if fields else Kind(kind.removeprefix("[]")), **given)


SCHEMAS: Final[Mapping[RecordType, Message]] = {
    RecordType(number): message for number, message in messages("metadata").items()
}
"""Every type of metadata record with its fields."""

DECIDE_WHO_IS_ALIVE: Final = frozenset(
    {
        RecordType.REGISTER_BROKER_RECORD,
        RecordType.UNREGISTER_BROKER_RECORD,
        RecordType.FENCE_BROKER_RECORD,
        RecordType.UNFENCE_BROKER_RECORD,
        RecordType.BROKER_REGISTRATION_CHANGE_RECORD,
    }
)
"""The types of the records that register, fence and unregister brokers; without one of them a dead broker may look
alive."""
assert len(SCHEMAS) == len(RecordType)

"""Build the schemas of records of internal topics from the parts that many of them share.

What it decides: how a record is written down: a name, the fields of its key, the fields of its value. Kafka names both
messages after the record, and most keys are a group, or a group and a member.

Example: record("ShareGroupMetadata", GROUP, Field("epoch", Kind.INT32)).value.name == "ShareGroupMetadataValue"

Source: the naming in Kafka's */src/main/resources/common/message/*.json, 4.3.1.
"""

from __future__ import annotations

from typing import Any, Final

from log.internal_topics.messages import Message, RecordSchema
from log.metadata.fields import Field, Kind


def texts(*names: str) -> tuple[Field, ...]:
    """Return fields of strings that are not null."""
    return tuple(Field(name, Kind.STRING) for name in names)


def each(name: str, *fields: Field, **options: Any) -> Field:
    """Return a field that is an array of structures."""
    return Field(name, Kind.STRUCT, is_array=True, fields=fields, **options)


def record(
    name: str, key: tuple[Field, ...], *value: Field, version_max: int = 0, flexible_since: int | None = 0
) -> RecordSchema:
    """Return the schema of a record; versions are those of its value."""
    return RecordSchema(
        Message(f"{name}Key", 0, None, key), Message(f"{name}Value", version_max, flexible_since, value)
    )


GROUP: Final = texts("groupId")
"""The key of what a group has once."""
MEMBER: Final = texts("groupId", "memberId")
"""The key of what each member of a group has."""
TOPIC_ID: Final = Field("topicId", Kind.UUID)
PARTITIONS: Final = Field("partitions", Kind.INT32, is_array=True)
ASSIGNMENT_EPOCHS: Final = Field("assignmentEpochs", Kind.INT32, is_array=True, is_nullable=True, tag=0)
TARGET_ASSIGNMENT: Final = (Field("assignmentEpoch", Kind.INT32), Field("assignmentTimestamp", Kind.INT64, tag=0))
"""The value of any group's target assignment: of which epoch it is, and when it was made (KIP-1263)."""
MEMBER_STATE: Final = (
    Field("memberEpoch", Kind.INT32),
    Field("previousMemberEpoch", Kind.INT32),
    Field("state", Kind.INT8),
)
"""What any member's current assignment begins with."""
SETTINGS: Final = texts("key", "value")

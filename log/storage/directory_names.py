"""Name and parse the directories inside a broker's log directory.

Source: kafka.log.LocalLog, 4.3.1.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import ClassVar, Final

import attrs

from broker.entropy import RandomSource
from broker.errors import UsageError
from broker.ids import INT32_MAX, PartitionId, TopicPartition

METADATA_TOPIC: Final = "__cluster_metadata"
NAME_LENGTH_MAX: Final = 255  # Most file systems' limit.
_UNIQUE: Final = re.compile(r"\S+-\S+\.\S+")
_PARTITION: Final = re.compile(r"\+?\d{1,255}", re.ASCII)  # What Java's Integer.parseInt takes, after the last "-".


class DirectoryRole(Enum):
    """List the roles of partition directories; the value is the suffix of the directory's name."""

    CURRENT = ""
    FUTURE = "-future"
    DELETE = "-delete"
    STRAY = "-stray"


class UnexpectedDirectoryError(UsageError):
    """A log directory contains a directory that is no partition's; Kafka's broker does not start then."""

    kafka_class: ClassVar[str] = "org.apache.kafka.common.KafkaException"

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"directory {name!r} is not named topic-partition, nor topic-partition.id-delete and the like")


@attrs.frozen
class PartitionDirectory:
    """Hold a directory's name, and the partition and role that the name states."""

    name: str
    partition: TopicPartition
    role: DirectoryRole


def parse_directory_name(name: str) -> PartitionDirectory:
    """Return the partition and role of the directory `name`; raise UnexpectedDirectoryError as Kafka does."""
    role = next((each for each in DirectoryRole if each.value and name.endswith(each.value)), DirectoryRole.CURRENT)
    if role is not DirectoryRole.CURRENT and _UNIQUE.fullmatch(name.removesuffix(role.value)) is None:
        raise UnexpectedDirectoryError(name)
    held = name if role is DirectoryRole.CURRENT else name[: name.rindex(".")]
    topic, dash, partition = held.rpartition("-")
    if not (dash and topic) or _PARTITION.fullmatch(partition) is None or int(partition) > INT32_MAX:
        raise UnexpectedDirectoryError(name)
    return PartitionDirectory(name, TopicPartition(topic, PartitionId(int(partition))), role)


def directory_name(partition: TopicPartition, role: DirectoryRole, entropy: RandomSource | None = None) -> str:
    """Return a directory name for `partition` in `role`; roles other than CURRENT draw an id from `entropy`.

    Raises UsageError for a partition number that no directory can have, and for such a role without `entropy`.
    """
    if not 0 <= partition.partition <= INT32_MAX:
        raise UsageError(f"partition {partition.partition} cannot have a directory; allowed are 0 to {INT32_MAX}")
    if role is DirectoryRole.CURRENT:
        return str(partition)
    if entropy is None:
        raise UsageError(f"the name of a directory in role {role.name} needs a random source for its id")
    unique_id = "".join(f"{entropy.next_int() & 0xFFFFFFFF:08x}" for _ in range(4))
    ending = f"-{partition.partition}.{unique_id}{role.value}"
    cut = None if role is DirectoryRole.FUTURE else NAME_LENGTH_MAX - len(ending)
    return partition.topic[:cut] + ending

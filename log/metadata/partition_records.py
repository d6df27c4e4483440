"""Apply PartitionRecord, PartitionChangeRecord and ClearElrRecord to a partition's image.

What it decides: the merge of a PartitionChangeRecord into what was known, the rule that all readers of the log must
share:

- the leader epoch rises exactly if the record names a leader, even the same one, even none (-1);
- the partition epoch rises with every change;
- each list that the record has replaces the old one, and what it leaves out stays;
- directories that are all "migrating", or absent, are as many "migrating" as there are replicas.

Constraints: a record whose replicas and directories differ in number is refused, as in Kafka.

Example: a record of leader 2 and ISR (2, 3) on leader epoch 4, partition epoch 9 gives epochs 5 and 10.

Source: org.apache.kafka.metadata.PartitionRegistration (constructor, merge), LeaderRecoveryState and TopicDelta,
4.0; KIP-858 and KIP-966 for directories and eligible leaders.
"""

from __future__ import annotations

from typing import Final, TypeVar

from broker.errors import CorruptDataError
from broker.ids import BrokerId, LeaderEpoch
from broker.wire.fields import Fields
from log.metadata.image import MIGRATING, DirectoryId, PartitionImage
from log.metadata.schemas import SCHEMAS, RecordType

NO_LEADER_CHANGE: Final = BrokerId(-2)
Id = TypeVar("Id", BrokerId, DirectoryId)
_CLEARING: Final[Fields] = {
    **{field.name: field.default for field in SCHEMAS[RecordType.PARTITION_CHANGE_RECORD].fields},
    "eligibleLeaderReplicas": (),
    "lastKnownElr": (),
}
_RECOVERED: Final = 0
_RECOVERING: Final = 1
_NO_STATE_CHANGE: Final = -1


def created(data: Fields) -> PartitionImage:
    """Return the partition image that a PartitionRecord describes; raise CorruptDataError if malformed."""
    replicas = data["replicas"]
    state = data["leaderRecoveryState"]
    return PartitionImage(
        replicas=replicas,
        isr=data["isr"],
        leader=data["leader"],
        leader_epoch=data["leaderEpoch"],
        partition_epoch=data["partitionEpoch"],
        removing=data["removingReplicas"],
        adding=data["addingReplicas"],
        elr=data.get("eligibleLeaderReplicas") or (),
        last_known_elr=data.get("lastKnownElr") or (),
        directories=_directories(data.get("directories", ()), len(replicas)),
        recovering=_recovering(state, before=False, is_change=False),
    )


def merged(before: PartitionImage, data: Fields) -> PartitionImage:
    """Return the partition image after a PartitionChangeRecord; raise CorruptDataError if malformed."""
    replicas = _or(data["replicas"], before.replicas)
    leader, leader_epoch = before.leader, before.leader_epoch
    if data["leader"] != NO_LEADER_CHANGE:
        leader, leader_epoch = data["leader"], LeaderEpoch(leader_epoch + 1)
    return PartitionImage(
        replicas=replicas,
        isr=_or(data["isr"], before.isr),
        leader=leader,
        leader_epoch=leader_epoch,
        partition_epoch=before.partition_epoch + 1,
        removing=_or(data["removingReplicas"], before.removing),
        adding=_or(data["addingReplicas"], before.adding),
        elr=_or(data.get("eligibleLeaderReplicas"), before.elr),
        last_known_elr=_or(data.get("lastKnownElr"), before.last_known_elr),
        directories=_directories(_or(data.get("directories"), before.directories), len(replicas)),
        recovering=_recovering(data["leaderRecoveryState"], before=before.recovering, is_change=True),
    )


def without_elr(before: PartitionImage) -> PartitionImage:
    """Return the partition image after a ClearElrRecord: no eligible leaders, partition epoch plus one."""
    return merged(before, _CLEARING)


def _or(new: tuple[Id, ...] | None, old: tuple[Id, ...]) -> tuple[Id, ...]:
    return old if new is None else new


def _directories(directories: tuple[DirectoryId, ...], replica_count: int) -> tuple[DirectoryId, ...]:
    if all(directory == MIGRATING for directory in directories):
        return (MIGRATING,) * replica_count
    if len(directories) != replica_count:
        raise CorruptDataError(f"{len(directories)} directories are named for {replica_count} replicas")
    return directories


def _recovering(state: int, *, before: bool, is_change: bool) -> bool:
    if state == _NO_STATE_CHANGE and is_change:
        return before
    if state not in (_RECOVERED, _RECOVERING):
        raise CorruptDataError(f"leader recovery state is {state}; there are {_RECOVERED} and {_RECOVERING}")
    return state == _RECOVERING

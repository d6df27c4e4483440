"""Apply PartitionRecord, PartitionChangeRecord and ClearElrRecord to a partition's image.

Source: org.apache.kafka.metadata.PartitionRegistration (constructor, merge), LeaderRecoveryState and TopicDelta,
4.0; KIP-858 and KIP-966 for directories and eligible leaders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import attrs

from broker.errors import CorruptDataError
from broker.ids import BrokerId, LeaderEpoch
from broker.wire.fields import Fields
from log.metadata.image import MIGRATING, BrokerImage, DirectoryId, Endpoint, PartitionImage
from log.metadata.schemas import SCHEMAS, RecordType

_FENCED_CHANGE: Final[Mapping[int, bool | None]] = {-1: False, 0: None, 1: True}
_SHUTDOWN_CHANGE: Final[Mapping[int, bool | None]] = {0: None, 1: True}


def registered(data: Fields) -> BrokerImage:
    """Return the broker image that a RegisterBrokerRecord describes."""
    return BrokerImage(
        id=data["brokerId"],
        epoch=data["brokerEpoch"],
        incarnation_id=data["incarnationId"],
        rack=data["rack"],
        fenced=data["fenced"],
        in_controlled_shutdown=data.get("inControlledShutdown", False),
        is_migrating=data.get("isMigratingZkBroker", False),
        endpoints=tuple(
            Endpoint(each["name"], each["host"], each["port"], each["securityProtocol"])
            for each in in_order(data["endPoints"])
        ),
        features=tuple(
            sorted(
                (each["name"], each["minSupportedVersion"], each["maxSupportedVersion"]) for each in data["features"]
            )
        ),
        directories=tuple(sorted(data.get("logDirs", ()))),
        cordoned=_cordoned(data),
    )


def _cordoned(data: Fields) -> tuple[DirectoryId, ...] | None:
    cordoned = data.get("cordonedLogDirs")
    return None if cordoned is None else tuple(sorted(cordoned))


def changed(before: BrokerImage, data: Fields) -> BrokerImage:
    """Return the broker image after a BrokerRegistrationChangeRecord; raise CorruptDataError for unknown values."""
    cordoned = _cordoned(data)
    return attrs.evolve(
        before,
        fenced=_after(before.fenced, _FENCED_CHANGE, data["fenced"], "fenced"),
        in_controlled_shutdown=_after(
            before.in_controlled_shutdown,
            _SHUTDOWN_CHANGE,
            data.get("inControlledShutdown", 0),
            "inControlledShutdown",
        ),
        directories=tuple(sorted(data.get("logDirs", ()))) or before.directories,
        cordoned=before.cordoned if cordoned is None else cordoned,
    )


def in_order(structures: Sequence[Fields]) -> tuple[Fields, ...]:
    """Return a record's structures, such as endpoints or features, sorted by their field `name`."""
    return tuple(sorted(structures, key=lambda each: str(each["name"])))


def _after(before: bool, meanings: Mapping[int, bool | None], number: int, name: str) -> bool:
    if number not in meanings:
        raise CorruptDataError(f"unknown value for {name} field: {number}")
    after = meanings[number]
    return before if after is None else after


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

"""Hold the metadata after one offset of the metadata log as an immutable value; apply records to its parts.

Source: org.apache.kafka.image.MetadataImage and its parts, org.apache.kafka.metadata.{PartitionRegistration,
BrokerRegistration, LeaderRecoveryState}, 4.3.1; KIP-858 and KIP-966 for directories and eligible leaders.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NewType, TypeAlias, TypeVar

import attrs

from broker.errors import CorruptDataError
from broker.ids import NO_LEADER, BrokerEpoch, BrokerId, LeaderEpoch, Offset, PartitionId
from broker.units import TimeMs
from broker.values import value
from broker.wire.fields import UUID_ZERO, Fields
from log.metadata.schemas import SCHEMAS, RecordType


@attrs.frozen
class BrokerDelta:
    """Describe how a broker was registered, changed or unregistered."""

    before: BrokerImage | None
    after: BrokerImage | None


@attrs.frozen
class TopicDelta:
    """Describe how a topic was created, or deleted with `partition_count` partitions."""

    id: TopicId
    name: str
    deleted: bool
    partition_count: int = 0


@value
class PartitionDelta:
    """Describe how a partition was created, changed, or deleted with its topic."""

    topic: str
    partition: PartitionId
    before: PartitionImage | None
    after: PartitionImage | None


@attrs.frozen
class ConfigDelta:
    """Describe how a setting of a resource was set, changed or removed."""

    resource: Resource
    name: str
    before: str | None
    after: str | None


@attrs.frozen
class FeatureDelta:
    """Describe how the level of a feature changed; 0 means the feature is off."""

    name: str
    before: int
    after: int


@attrs.frozen
class ControllerDelta:
    """Describe the election of a quorum leader, perhaps the same controller in a new epoch."""

    leader: BrokerId
    epoch: LeaderEpoch


@attrs.frozen
class OtherDelta:
    """Describe a changed quota, ACL, credential or token; `subject` names it, without secrets."""

    type: RecordType
    subject: str


Delta: TypeAlias = BrokerDelta | TopicDelta | PartitionDelta | ConfigDelta | FeatureDelta | ControllerDelta | OtherDelta


TopicId = NewType("TopicId", str)
DirectoryId = NewType("DirectoryId", str)

MIGRATING: Final = DirectoryId(UUID_ZERO)
"""The directory is not known yet, as the cluster's metadata once had no directories."""
UNASSIGNED: Final = DirectoryId("AAAAAAAAAAAAAAAAAAAAAQ")
"""The broker has not chosen a directory."""
LOST: Final = DirectoryId("AAAAAAAAAAAAAAAAAAAAAg")
"""The replica is in a directory that is offline."""

RESOURCE_TOPIC: Final = 2
RESOURCE_BROKER: Final = 4
CLUSTER_DEFAULT: Final = ""
"""The name under which settings of all brokers stand."""
METADATA_VERSION: Final = "metadata.version"
_PROVENANCE: Final = ("offset", "epoch", "time_ms")


@attrs.frozen(order=True)
class Resource:
    """Name the owner of a setting: Kafka's config resource type as a number, and the resource's name."""

    type: int
    name: str


@value
class PartitionImage:
    """Describe one partition; `recovering` lasts from an unclean election until the leader has recovered."""

    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    leader: BrokerId = NO_LEADER
    leader_epoch: LeaderEpoch = LeaderEpoch(0)
    partition_epoch: int = 0
    removing: tuple[BrokerId, ...] = ()
    adding: tuple[BrokerId, ...] = ()
    elr: tuple[BrokerId, ...] = ()
    last_known_elr: tuple[BrokerId, ...] = ()
    directories: tuple[DirectoryId, ...] = ()
    recovering: bool = False


@attrs.frozen
class TopicImage:
    """Hold one topic and its partitions."""

    name: str
    id: TopicId
    partitions: Mapping[PartitionId, PartitionImage]


@attrs.frozen
class Endpoint:
    """Describe one listener of a node: host, port and security protocol."""

    name: str
    host: str
    port: int
    security_protocol: int


@attrs.frozen(kw_only=True)
class BrokerImage:
    """Describe one registered broker; `directories` are the ids of its online log directories.

    `cordoned` are those that get no new replicas; None if the broker has not reported which.
    """

    id: BrokerId
    epoch: BrokerEpoch
    incarnation_id: str
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    is_migrating: bool
    endpoints: tuple[Endpoint, ...]
    features: tuple[tuple[str, int, int], ...]
    directories: tuple[DirectoryId, ...]
    cordoned: tuple[DirectoryId, ...] | None = None

    @property
    def is_cordoned(self) -> bool:
        """Return whether all its directories are cordoned, so that no new replica is placed on the broker."""
        return bool(self.directories) and self.cordoned is not None and set(self.directories) <= set(self.cordoned)


QuotaEntity: TypeAlias = tuple[tuple[str, str | None], ...]
"""Types and names, such as (("user", "alice"),), sorted by type; None is the type's default."""


@attrs.frozen(kw_only=True)
class MetadataImage:
    """Hold the metadata up to and including `offset`; -1 stands for no offset, no epoch and no time."""

    offset: Offset
    epoch: LeaderEpoch
    time_ms: TimeMs
    brokers: Mapping[BrokerId, BrokerImage]
    controllers: Mapping[BrokerId, Fields]
    topics: Mapping[TopicId, TopicImage]
    configs: Mapping[Resource, Mapping[str, str]]
    features: Mapping[str, int]
    quotas: Mapping[QuotaEntity, Mapping[str, float]]
    acls: Mapping[str, Fields]
    scram: Mapping[tuple[str, int], Fields]
    tokens: Mapping[str, Fields]
    next_producer_id: int

    def topic_id(self, name: str) -> TopicId | None:
        """Return the id of the topic of this name, None if there is none. Cost: linear in topics."""
        return next((topic.id for topic in self.topics.values() if topic.name == name), None)

    def differences(self, other: MetadataImage) -> Iterator[str]:
        """Yield the differences of two images as text; offset, epoch and time are not compared."""
        for field in attrs.fields(MetadataImage):
            if field.name in _PROVENANCE:
                continue
            one, two = getattr(self, field.name), getattr(other, field.name)
            if one == two:
                continue
            if not isinstance(one, Mapping):
                yield f"{field.name}: {one} and {two}"
                continue
            keys = [key for key in sorted({*one, *two}, key=repr) if one.get(key) != two.get(key)]
            yield f"{field.name}: {', '.join(map(str, keys[:3]))}{' …' if len(keys) > 3 else ''}"


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

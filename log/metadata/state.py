"""Apply metadata records one after another to a cluster's metadata.

Source:
org.apache.kafka.image.{ClusterDelta,TopicsDelta,TopicDelta,ConfigurationsDelta,FeaturesDelta,ClientQuotasDelta,
AclsDelta,ScramDelta,DelegationTokenDelta,ProducerIdsDelta}, 4.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from broker.errors import CorruptDataError
from broker.ids import BrokerEpoch, BrokerId, LeaderEpoch, Offset, PartitionId
from broker.units import TimeMs
from broker.wire.fields import Fields
from log.metadata.image import (
    RESOURCE_TOPIC,
    BrokerDelta,
    BrokerImage,
    ConfigDelta,
    Delta,
    FeatureDelta,
    MetadataImage,
    OtherDelta,
    PartitionDelta,
    PartitionImage,
    QuotaEntity,
    Resource,
    TopicDelta,
    TopicId,
    TopicImage,
    changed,
    created,
    in_order,
    merged,
    registered,
    without_elr,
)
from log.metadata.records import MetadataRecord
from log.metadata.schemas import RecordType

NONE: Final[tuple[Delta, ...]] = ()


@attrs.define
class _Topic:
    name: str
    id: TopicId
    partitions: dict[PartitionId, PartitionImage] = attrs.field(factory=dict)


class MetadataState:
    """Hold the metadata after the records applied so far; `image` returns an immutable copy."""

    def __init__(self) -> None:
        self.brokers: dict[BrokerId, BrokerImage] = {}
        self._controllers: dict[BrokerId, Fields] = {}
        self._topics: dict[TopicId, _Topic] = {}
        self._topic_ids: dict[str, TopicId] = {}
        self.configs: dict[Resource, dict[str, str]] = {}
        self._features: dict[str, int] = {}
        self._quotas: dict[QuotaEntity, dict[str, float]] = {}
        self._acls: dict[str, Fields] = {}
        self._scram: dict[tuple[str, int], Fields] = {}
        self._tokens: dict[str, Fields] = {}
        self._next_producer_id = -1

    def apply(self, record: MetadataRecord) -> tuple[Delta, ...]:
        """Apply one record and return its changes; raise CorruptDataError for a contradicting record."""
        method = _METHODS.get(record.type)
        return NONE if method is None else method(self, record.data)

    def partitions(self, topic: str) -> Mapping[PartitionId, PartitionImage]:
        """Return the current partitions of the topic of this name; none if there is no such topic."""
        topic_id = self._topic_ids.get(topic)
        return {} if topic_id is None else self._topics[topic_id].partitions

    @property
    def has_topics(self) -> bool:
        """Return whether any topic exists."""
        return bool(self._topics)

    def image(self, *, offset: Offset, epoch: LeaderEpoch, time_ms: TimeMs) -> MetadataImage:
        """Return an immutable copy. Cost: linear in topics, partitions and settings."""
        topics = self._topics.values()
        return MetadataImage(
            offset=offset,
            epoch=epoch,
            time_ms=time_ms,
            brokers=dict(self.brokers),
            controllers=dict(self._controllers),
            topics={topic.id: TopicImage(topic.name, topic.id, dict(topic.partitions)) for topic in topics},
            configs={resource: dict(settings) for resource, settings in self.configs.items()},
            features=dict(self._features),
            quotas={entity: dict(quotas) for entity, quotas in self._quotas.items()},
            acls=dict(self._acls),
            scram=dict(self._scram),
            tokens=dict(self._tokens),
            next_producer_id=self._next_producer_id,
        )

    def _register_broker(self, data: Fields) -> tuple[Delta, ...]:
        return self._put(registered(data))

    def _unregister_broker(self, data: Fields) -> tuple[Delta, ...]:
        before = self.brokers.pop(data["brokerId"], None)
        return NONE if before is None else (BrokerDelta(before, None),)

    def _fence(self, data: Fields) -> tuple[Delta, ...]:
        return self._put(attrs.evolve(self._broker(data["id"], data["epoch"], "fence"), fenced=True))

    def _unfence(self, data: Fields) -> tuple[Delta, ...]:
        return self._put(attrs.evolve(self._broker(data["id"], data["epoch"], "unfence"), fenced=False))

    def _change_broker(self, data: Fields) -> tuple[Delta, ...]:
        return self._put(changed(self._broker(data["brokerId"], data["brokerEpoch"], "change"), data))

    def _broker(self, broker_id: BrokerId, epoch: BrokerEpoch, action: str) -> BrokerImage:
        broker = self.brokers.get(broker_id)
        if broker is None:
            raise CorruptDataError(f"Tried to {action} broker {broker_id}, but that broker was not registered.")
        if broker.epoch != epoch:
            raise CorruptDataError(
                f"Tried to {action} broker {broker_id}, but the given epoch, {epoch}, "
                f"did not match the current broker epoch, {broker.epoch}"
            )
        return broker

    def _put(self, broker: BrokerImage) -> tuple[Delta, ...]:
        before = self.brokers.get(broker.id)
        if before == broker:
            return NONE
        self.brokers[broker.id] = broker
        return (BrokerDelta(before, broker),)

    def _register_controller(self, data: Fields) -> tuple[Delta, ...]:
        unordered = {name: in_order(data[name]) for name in ("endPoints", "features")}
        self._controllers[data["controllerId"]] = {**data, **unordered}
        return NONE

    def _unregister_controller(self, data: Fields) -> tuple[Delta, ...]:
        self._controllers.pop(data["controllerId"], None)
        return NONE

    def _create_topic(self, data: Fields) -> tuple[Delta, ...]:
        topic = _Topic(data["name"], data["topicId"])
        self._topics[topic.id] = topic
        self._topic_ids[topic.name] = topic.id
        return (TopicDelta(topic.id, topic.name, deleted=False),)

    def _remove_topic(self, data: Fields) -> tuple[Delta, ...]:
        topic = self._topic(data)
        del self._topics[topic.id]
        if self._topic_ids.get(topic.name) == topic.id:
            del self._topic_ids[topic.name]
        self.configs.pop(Resource(RESOURCE_TOPIC, topic.name), None)
        gone = (PartitionDelta(topic.name, number, each, None) for number, each in sorted(topic.partitions.items()))
        return (*gone, TopicDelta(topic.id, topic.name, deleted=True, partition_count=len(topic.partitions)))

    def _topic(self, data: Fields) -> _Topic:
        topic = self._topics.get(data["topicId"])
        if topic is None:
            raise CorruptDataError(f"there is no topic of id {data['topicId']}")
        return topic

    def _create_partition(self, data: Fields) -> tuple[Delta, ...]:
        topic, number = self._topic(data), data["partitionId"]
        before = topic.partitions.get(number)
        topic.partitions[number] = created(data)
        return (PartitionDelta(topic.name, number, before, topic.partitions[number]),)

    def _change_partition(self, data: Fields) -> tuple[Delta, ...]:
        topic, number = self._topic(data), data["partitionId"]
        before = topic.partitions.get(number)
        if before is None:
            raise CorruptDataError(f"Unable to find partition {data['topicId']}:{number}")
        topic.partitions[number] = merged(before, data)
        return (PartitionDelta(topic.name, number, before, topic.partitions[number]),)

    def _clear_elr(self, data: Fields) -> tuple[Delta, ...]:
        name = data["topicName"]
        if name and name not in self._topic_ids:
            raise CorruptDataError(f"Unable to clear elr for topic with name {name}: no such topic found.")
        topics = [self._topics[self._topic_ids[name]]] if name else list(self._topics.values())
        found: list[Delta] = []
        for topic in topics:
            for number, before in topic.partitions.items():
                if before.elr or before.last_known_elr:
                    topic.partitions[number] = without_elr(before)
                    found.append(PartitionDelta(topic.name, number, before, topic.partitions[number]))
        return tuple(found)

    def _config(self, data: Fields) -> tuple[Delta, ...]:
        resource = Resource(data["resourceType"], data["resourceName"])
        settings = self.configs.setdefault(resource, {})
        before, after = settings.get(data["name"]), data["value"]
        if after is None:
            settings.pop(data["name"], None)
        else:
            settings[data["name"]] = after
        if not settings:
            del self.configs[resource]
        return NONE if before == after else (ConfigDelta(resource, data["name"], before, after),)

    def _feature(self, data: Fields) -> tuple[Delta, ...]:
        name, after = data["name"], data["featureLevel"]
        before = self._features.get(name, 0)
        if after:
            self._features[name] = after
        else:
            self._features.pop(name, None)
        return NONE if before == after else (FeatureDelta(name, before, after),)

    def _quota(self, data: Fields) -> tuple[Delta, ...]:
        entity = tuple(sorted((each["entityType"], each["entityName"]) for each in data["entity"]))
        quotas = self._quotas.setdefault(entity, {})
        if data["remove"]:
            quotas.pop(data["key"], None)
        else:
            quotas[data["key"]] = data["value"]
        if not quotas:
            del self._quotas[entity]
        owner = ", ".join(f"{kind} {'default' if name is None else name}" for kind, name in entity)
        return (OtherDelta(RecordType.CLIENT_QUOTA_RECORD, f"{data['key']} of {owner}"),)

    def _acl(self, data: Fields) -> tuple[Delta, ...]:
        self._acls[data["id"]] = data
        return (OtherDelta(RecordType.ACCESS_CONTROL_ENTRY_RECORD, _of_acl(data)),)

    def _remove_acl(self, data: Fields) -> tuple[Delta, ...]:
        before = self._acls.pop(data["id"], None)
        if before is None:
            raise CorruptDataError(f"there is no access rule of id {data['id']}")
        return (OtherDelta(RecordType.REMOVE_ACCESS_CONTROL_ENTRY_RECORD, _of_acl(before)),)

    def _credential(self, data: Fields) -> tuple[Delta, ...]:
        self._scram[data["name"], data["mechanism"]] = data
        return (OtherDelta(RecordType.USER_SCRAM_CREDENTIAL_RECORD, data["name"]),)

    def _remove_credential(self, data: Fields) -> tuple[Delta, ...]:
        self._scram.pop((data["name"], data["mechanism"]), None)
        return (OtherDelta(RecordType.REMOVE_USER_SCRAM_CREDENTIAL_RECORD, data["name"]),)

    def _token(self, data: Fields) -> tuple[Delta, ...]:
        self._tokens[data["tokenId"]] = data
        return (OtherDelta(RecordType.DELEGATION_TOKEN_RECORD, data["owner"]),)

    def _remove_token(self, data: Fields) -> tuple[Delta, ...]:
        before = self._tokens.pop(data["tokenId"], None)
        return NONE if before is None else (OtherDelta(RecordType.REMOVE_DELEGATION_TOKEN_RECORD, before["owner"]),)

    def _producer_ids(self, data: Fields) -> tuple[Delta, ...]:
        self._next_producer_id = data["nextProducerId"]
        return NONE


def _of_acl(data: Fields) -> str:
    return f"{data['principal']} on {data['resourceName']}"


_METHODS: Final[Mapping[RecordType, Callable[[MetadataState, Any], tuple[Delta, ...]]]] = {
    RecordType.REGISTER_BROKER_RECORD: MetadataState._register_broker,
    RecordType.UNREGISTER_BROKER_RECORD: MetadataState._unregister_broker,
    RecordType.FENCE_BROKER_RECORD: MetadataState._fence,
    RecordType.UNFENCE_BROKER_RECORD: MetadataState._unfence,
    RecordType.BROKER_REGISTRATION_CHANGE_RECORD: MetadataState._change_broker,
    RecordType.REGISTER_CONTROLLER_RECORD: MetadataState._register_controller,
    RecordType.UNREGISTER_CONTROLLER_RECORD: MetadataState._unregister_controller,
    RecordType.TOPIC_RECORD: MetadataState._create_topic,
    RecordType.REMOVE_TOPIC_RECORD: MetadataState._remove_topic,
    RecordType.PARTITION_RECORD: MetadataState._create_partition,
    RecordType.PARTITION_CHANGE_RECORD: MetadataState._change_partition,
    RecordType.CLEAR_ELR_RECORD: MetadataState._clear_elr,
    RecordType.CONFIG_RECORD: MetadataState._config,
    RecordType.FEATURE_LEVEL_RECORD: MetadataState._feature,
    RecordType.CLIENT_QUOTA_RECORD: MetadataState._quota,
    RecordType.ACCESS_CONTROL_ENTRY_RECORD: MetadataState._acl,
    RecordType.REMOVE_ACCESS_CONTROL_ENTRY_RECORD: MetadataState._remove_acl,
    RecordType.USER_SCRAM_CREDENTIAL_RECORD: MetadataState._credential,
    RecordType.REMOVE_USER_SCRAM_CREDENTIAL_RECORD: MetadataState._remove_credential,
    RecordType.DELEGATION_TOKEN_RECORD: MetadataState._token,
    RecordType.REMOVE_DELEGATION_TOKEN_RECORD: MetadataState._remove_token,
    RecordType.PRODUCER_IDS_RECORD: MetadataState._producer_ids,
}
"""What each record type does. NoOp does nothing, nor does the state of a migration from ZooKeeper, which no image of
4.0 has; the frames of transactions are the replay's."""

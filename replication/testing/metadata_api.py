"""Serve Metadata, DescribeTopicPartitions and DescribeCluster: what a broker knows of the cluster.

A broker shows a topic once it has read all of its partitions.

Source: Kafka core KafkaApis, DescribeTopicPartitionsRequestHandler; metadata KRaftMetadataCache; 4.4.0; KIP-966.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from broker.error_codes import ErrorCode
from broker.ids import NO_LEADER, BrokerId
from replication.roles.outbox import Outbox
from replication.rules.partition import PartitionState
from replication.testing.gateway import Call, Gateway, Values, authorized
from replication.testing.topics import OFFSETS_TOPIC, Topic, is_legal_name, visible
from replication.testing.topics_api import create_for_client

_ALL_BY_EMPTY_LIST_BEFORE: Final = 1
"""The version of Metadata before which an empty list of topics asks for all."""
_BY_ID_SINCE: Final = 12
"""The version of Metadata since which topics are asked for by their ids."""
_CLUSTER_OPERATIONS: Final = 8_096
_TOPIC_OPERATIONS: Final = 3_576
"""The operations on clusters and topics as bits: without ACLs anybody may do all."""
_DESCRIBED_COUNT_MAX: Final = 2_000
"""The most partitions of a response to DescribeTopicPartitions: max.request.partition.size.limit by default."""


def describe_cluster(call: Call, out: Outbox) -> None:
    """Name the cluster and its brokers."""
    gateway = call.gateway
    brokers = [{"broker_id": each["node_id"], **each} for each in _brokers(gateway)]
    values = {"cluster_id": gateway.shared.cluster_id, "controller_id": _first(brokers), "brokers": brokers}
    values |= authorized(call, _CLUSTER_OPERATIONS, "cluster_")
    call.answer(values, out)


def metadata(call: Call, out: Outbox) -> None:
    """Show the brokers and topics that this broker knows; create a missing topic if that is wanted."""
    gateway, body = call.gateway, call.request.body
    seen = {topic.name: topic for topic in visible(gateway.topics, gateway.broker.image)}
    if body.topics is None or (call.request.version < _ALL_BY_EMPTY_LIST_BEFORE and not body.topics):
        topics = [_shown(gateway, topic) for topic in seen.values()]
    elif call.request.version < _BY_ID_SINCE and any(each.name is None for each in body.topics):
        topics = [{"error_code": ErrorCode.INVALID_REQUEST, "name": each.name or ""} for each in body.topics]
    else:
        may_create = gateway.shared.auto_create and getattr(body, "allow_auto_topic_creation", True)
        topics = [_asked(gateway, each, seen, out, may_create=may_create) for each in body.topics]
    brokers = _brokers(gateway)
    call.answer(
        {
            "brokers": brokers,
            "cluster_id": gateway.shared.cluster_id,
            "controller_id": _first(brokers),
            "topics": [
                topic
                if topic.get("error_code") is ErrorCode.UNKNOWN_TOPIC_ID
                else {**topic, **authorized(call, _TOPIC_OPERATIONS, "topic_")}
                for topic in topics
            ],
            **authorized(call, _CLUSTER_OPERATIONS, "cluster_"),
        },
        out,
    )


def _brokers(gateway: Gateway) -> list[dict[str, object]]:
    """Return the brokers that are not fenced, as this broker knows them."""
    return [
        endpoint.shown(broker)
        for broker, endpoint in sorted(gateway.shared.endpoints.items())
        if _is_alive(gateway, broker)
    ]


def _is_alive(gateway: Gateway, broker: BrokerId) -> bool:
    status = gateway.broker.image.brokers.get(broker)
    return status is not None and not status.fenced


def _first(brokers: Sequence[Mapping[str, object]]) -> object:
    return brokers[0]["node_id"] if brokers else -1


def _asked(gateway: Gateway, asked: Any, seen: Mapping[str, Topic], out: Outbox, *, may_create: bool) -> Values:
    """Return what is shown of a topic that is asked for, by its name or its id."""
    name = asked.name
    if name is None:
        topic = gateway.topics.of_id(asked.topic_id)
        if topic is None or topic.name not in seen:
            return {"error_code": ErrorCode.UNKNOWN_TOPIC_ID, "topic_id": asked.topic_id, "name": None}
        return _shown(gateway, topic)
    if name in seen:
        return _shown(gateway, seen[name])
    if not is_legal_name(name):
        return {"error_code": ErrorCode.INVALID_TOPIC_EXCEPTION, "name": name}
    if may_create and gateway.topics.get(name) is None:
        create_for_client(gateway, name, out)
    return {"error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "name": name, "is_internal": name == OFFSETS_TOPIC}


def _shown(gateway: Gateway, topic: Topic) -> Values:
    image = gateway.broker.image
    return {
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.is_internal,
        "partitions": [
            _partition(gateway, index, image.partitions[number]) for index, number in enumerate(topic.numbers)
        ],
    }


def _partition(gateway: Gateway, index: int, state: PartitionState) -> dict[str, object]:
    has_leader = state.leader != NO_LEADER and _is_alive(gateway, state.leader)
    return {
        "partition_index": index,
        "error_code": ErrorCode.NONE if has_leader else ErrorCode.LEADER_NOT_AVAILABLE,
        "leader_id": state.leader if has_leader else NO_LEADER,
        "leader_epoch": state.leader_epoch,
        "replica_nodes": state.replicas,
        "isr_nodes": state.isr,
        "offline_replicas": [broker for broker in state.replicas if not _is_alive(gateway, broker)],
    }


# By pages, with the replicas that may be elected (KIP-966).


def describe_topic_partitions(call: Call, out: Outbox) -> None:
    """Show topics and their partitions in the order of names, from the cursor on, and where the next page begins."""
    body, cursor = call.request.body, call.request.body.cursor
    first_name, first_index = ("", 0) if cursor is None else (cursor.topic_name, cursor.partition_index)
    seen = {topic.name: topic for topic in visible(call.gateway.topics, call.gateway.broker.image)}
    names = sorted(name for name in {each.name for each in body.topics} or seen if name >= first_name)
    if cursor is not None and (first_index < 0 or (body.topics and first_name not in names)):
        refused = [{"name": each.name, "error_code": ErrorCode.INVALID_REQUEST} for each in body.topics]
        call.answer({"topics": refused}, out)
        return
    left = max(min(_DESCRIBED_COUNT_MAX, body.response_partition_limit), 1)
    topics: list[Values] = []
    next_cursor: Values | None = None
    for name in names:
        if not left:
            next_cursor = {"topic_name": name, "partition_index": 0}
            break
        if name not in seen:
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_legal_name(name) else ErrorCode.INVALID_TOPIC_EXCEPTION
            topics.append({"name": name, "error_code": unknown, "is_internal": name == OFFSETS_TOPIC})
            continue
        start, count = first_index if name == first_name else 0, len(seen[name].numbers)
        end = min(count, start + left)
        topics.append(_described(call.gateway, seen[name], range(start, end)))
        if end < count:
            next_cursor = {"topic_name": name, "partition_index": end}
            break
        left -= max(end - start, 0)
    listed = [{**topic, "topic_authorized_operations": _TOPIC_OPERATIONS} for topic in topics]
    call.answer({"topics": listed, "next_cursor": next_cursor}, out)


def _described(gateway: Gateway, topic: Topic, indexes: range) -> Values:
    """Return a topic with some of its partitions; a partition without a leader is no error here."""
    partitions = []
    for index in indexes:
        state = gateway.broker.image.partitions[topic.numbers[index]]
        eligible = {"eligible_leader_replicas": state.elr, "last_known_elr": state.last_known}
        partitions.append({**_partition(gateway, index, state), **eligible, "error_code": ErrorCode.NONE})
    return {**_shown(gateway, topic), "partitions": partitions}

"""Ask a cluster for everything that a snapshot holds.

What is decided: a cluster whose metadata no broker gives is an error; every other request that fails is a note, and its
part of the snapshot stays null. Of a topic all settings are kept, of a broker those of `OF_BROKERS`; sensitive values
are never sent by Kafka, and left out here. Lags are of partitions that a group has committed.

Source: Kafka 4.4.0 clients KafkaAdminClient, tools ConsumerGroupCommand (lag = end offset - committed offset).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from broker.errors import InputError
from broker.min_isr import MIN_ISR
from placement.formats.kcat import ALL_TOPICS
from placement.formats.snapshot import DEFAULT_CONFIG, UNCLEAN, VERSION, VERSION_KEY
from spark_analysis.live.client import Asker
from spark_analysis.live.replicas import Eligible, replicas_of

OF_BROKERS: Final = (MIN_ISR, UNCLEAN)


def gather(asker: Asker, *, taken_at: str) -> dict[str, Any]:
    """Return the document of a snapshot; raise InputError if no broker answers or the client is not authorized."""
    metadata = asker.metadata()
    racks = _racks(asker)
    settings = _topic_settings(asker, sorted(metadata.topics))
    of_brokers = _broker_settings(asker, sorted(metadata.brokers))
    if asker.is_refused and not metadata.topics:
        raise InputError("the cluster shows this client no topic: authorization failed", source=asker.servers)
    log_dirs, eligible = replicas_of(asker, sorted(metadata.topics), sorted(metadata.brokers))
    return {
        VERSION_KEY: VERSION,
        "taken_at": taken_at,
        "cluster_id": metadata.cluster_id,
        "controllerid": metadata.controller_id,
        "originating_broker": {"id": -1, "name": asker.servers},
        "query": {"topic": ALL_TOPICS},
        "brokers": [
            {"id": number, "name": f"{broker.host}:{broker.port}", "rack": racks.get(number)}
            | {"configs": of_brokers.get(number)}
            for number, broker in sorted(metadata.brokers.items())
        ],
        "topics": [_topic(topic, settings.get(name), eligible) for name, topic in sorted(metadata.topics.items())],
        "log_dirs": log_dirs,
        "groups": _groups(asker, metadata),
        "notes": list(asker.notes),
    }


def _topic(topic: Any, settings: Mapping[str, Any] | None, eligible: Eligible) -> dict[str, Any]:
    found: dict[str, Any] = {"topic": topic.topic, "configs": settings}
    if topic.error is not None:
        found["error"] = topic.error.str()
    found["partitions"] = [
        {
            "partition": number,
            "leader": one.leader,
            "replicas": [{"id": each} for each in one.replicas],
            "isrs": [{"id": each} for each in one.isrs],
            **eligible.get((topic.topic, number), {}),
        }
        for number, one in sorted(topic.partitions.items())
    ]
    return found


def _racks(asker: Asker) -> dict[int, str]:
    found = asker.one("DescribeCluster", lambda seconds: asker.admin.describe_cluster(request_timeout=seconds))
    return {} if found is None else {node.id: node.rack for node in found.nodes if node.rack}


def _topic_settings(asker: Asker, names: list[str]) -> dict[str, dict[str, Any]]:
    from confluent_kafka.admin import ConfigResource, ResourceType

    def ask(some: list[str]) -> Mapping[Any, Any]:
        asked = [ConfigResource(ResourceType.TOPIC, name) for name in some]
        return {each.name: future for each, future in _configs(asker, asked).items()}

    return {name: _entries(found) for name, found in asker.many("DescribeConfigs (topics)", names, ask).items()}


def _broker_settings(asker: Asker, numbers: list[int]) -> dict[int, dict[str, Any]]:
    from confluent_kafka.admin import ConfigResource, ResourceType

    def ask(number: int) -> Any:
        (future,) = _configs(asker, [ConfigResource(ResourceType.BROKER, str(number))]).values()
        return future

    asked = {number: partial(ask, number) for number in numbers}
    found = asker.each("DescribeConfigs (brokers)", asked)
    return {number: {name: one for name, one in _entries(of).items() if name in OF_BROKERS} for number, of in found}


def _configs(asker: Asker, resources: list[Any]) -> dict[Any, Any]:
    return dict(asker.admin.describe_configs(resources, request_timeout=asker.timeout_s))


def _entries(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are not Kafka's defaults, and the two that decide about losses."""
    return {
        name: {"value": entry.value, "source": _source(entry.source)}
        for name, entry in sorted(found.items())
        if not entry.is_sensitive and (_source(entry.source) != DEFAULT_CONFIG or name in OF_BROKERS)
    }


def _source(source: Any) -> str:
    from confluent_kafka.admin import ConfigSource

    return str(ConfigSource(source).name)


def _groups(asker: Asker, metadata: Any) -> list[dict[str, Any]] | None:
    """Return the groups with their members, offsets and lags; None where the cluster does not list them."""
    listed = asker.one("ListGroups", lambda seconds: asker.admin.list_consumer_groups(request_timeout=seconds))
    if listed is None:
        return None
    reasons = dict.fromkeys(asker.reason(error) for error in listed.errors)
    asker.notes += [f"ListGroups was not answered by every broker: {reason}" for reason in reasons]
    if listed.errors and not listed.valid:
        return None
    names = sorted(each.group_id for each in listed.valid)
    described = asker.many(
        "DescribeGroups",
        names,
        lambda some: asker.admin.describe_consumer_groups(some, request_timeout=asker.timeout_s),
    )
    committed = _committed(asker, names)
    ends = _end_offsets(asker, metadata, {one for offsets in committed.values() for one in offsets})
    return [_group(name, described.get(name), committed.get(name, {}), ends) for name in names]


def _group(name: str, found: Any, committed: Mapping[tuple[str, int], int], ends: Mapping[Any, int]) -> dict[str, Any]:
    node = None if found is None else found.coordinator
    return {
        "group": name,
        "state": None if found is None else found.state.name,
        "assignor": None if found is None else found.partition_assignor or None,
        "coordinator": None if node is None else f"{node.host}:{node.port} ({node.id})",
        "members": [] if found is None else [_member(each) for each in found.members],
        "offsets": [
            {"topic": topic, "partition": number, "offset": offset, "end_offset": ends.get((topic, number))}
            | {"lag": None if (topic, number) not in ends else ends[topic, number] - offset}
            for (topic, number), offset in sorted(committed.items())
        ],
    }


def _member(member: Any) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "client_id": member.client_id,
        "host": member.host,
        "group_instance_id": member.group_instance_id,
        "assignment": _partitions(member.assignment.topic_partitions),
        "target": None if member.target_assignment is None else _partitions(member.target_assignment.topic_partitions),
    }


def _partitions(found: Iterable[Any]) -> list[dict[str, Any]]:
    return [{"topic": each.topic, "partition": each.partition} for each in found]


def _committed(asker: Asker, names: list[str]) -> dict[str, dict[tuple[str, int], int]]:
    from confluent_kafka import ConsumerGroupTopicPartitions

    def ask(name: str) -> Any:
        asked = [ConsumerGroupTopicPartitions(name)]
        (future,) = asker.admin.list_consumer_group_offsets(asked, request_timeout=asker.timeout_s).values()
        return future

    found = dict(asker.each("OffsetFetch", {name: partial(ask, name) for name in names}))
    return {
        name: {(each.topic, each.partition): each.offset for each in of.topic_partitions or () if each.offset >= 0}
        for name, of in found.items()
    }


def _end_offsets(asker: Asker, metadata: Any, wanted: set[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """Return the end offsets of partitions that have a leader."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import OffsetSpec

    leaders = {
        (name, number): one.leader for name, of in metadata.topics.items() for number, one in of.partitions.items()
    }
    asked = sorted(each for each in wanted if leaders.get(each) in metadata.brokers)

    def ask(some: list[tuple[str, int]]) -> Mapping[Any, Any]:
        specs = {TopicPartition(topic, number): OffsetSpec.latest() for topic, number in some}
        futures = asker.admin.list_offsets(specs, request_timeout=asker.timeout_s)
        return {(each.topic, each.partition): future for each, future in futures.items()}

    return {where: found.offset for where, found in asker.many("ListOffsets", asked, ask).items()}

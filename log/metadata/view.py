"""Convert a metadata image to a ClusterView, the input of every measure and every report.

Source: kafka.server.metadata.KRaftMetadataCache.getOfflineReplicas, org.apache.kafka.common.DirectoryId.isOnline and
org.apache.kafka.controller.ConfigurationControlManager.getTopicConfig, 4.0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from broker.cluster import PAD, BrokerView, ClusterView, Int32Array, PartitionTable, SettingsShown, TopicView
from broker.ids import BrokerId, PartitionId
from broker.liveness import Liveness
from broker.min_isr import MIN_ISR, MinIsr, min_isr
from broker.partition_faults import PARTITION_ID_MAX, fault_of_ids, fault_of_number, fault_of_row
from log.metadata.image import (
    CLUSTER_DEFAULT,
    LOST,
    METADATA_VERSION,
    MIGRATING,
    RESOURCE_BROKER,
    RESOURCE_TOPIC,
    UNASSIGNED,
    DirectoryId,
    MetadataImage,
    PartitionImage,
    Resource,
    TopicImage,
)
from log.metadata.reading import ImpossiblePartitionError, RejectedRecords

FORMAT: Final = "kraft-metadata"


def view_of(image: MetadataImage, *, name: str, source: str, rejected: RejectedRecords | None = None) -> ClusterView:
    """Return the view of an image. Cost: linear in replicas, and a sort of the topics by name.

    A partition that cannot be, such as one with a stranger in its ISR, is left out and added to `rejected`; without
    `rejected`, ImpossiblePartitionError is raised.
    """
    topics = sorted(image.topics.values(), key=lambda topic: topic.name)
    known = set(map(str, () if rejected is None else rejected.errors))
    rows: list[tuple[int, PartitionImage, PartitionId]] = []
    for index, topic in enumerate(topics):
        for number in sorted(topic.partitions):
            partition = topic.partitions[number]
            fault = _fault(number, partition)
            if fault is None:
                rows.append((index, partition, number))
                continue
            error = ImpossiblePartitionError(f"{topic.name}-{number}: {fault}", source=source)
            if rejected is None:
                raise error
            if str(error) not in known:  # Of another moment.
                rejected.add(error)
    partitions = [partition for _, partition, _ in rows]

    def column(members: Callable[[PartitionImage], Sequence[int]]) -> Int32Array:
        return _matrix([members(partition) for partition in partitions])

    table = PartitionTable(
        topic_index=[index for index, _, _ in rows],
        partition_ids=[number for _, _, number in rows],
        leader=[partition.leader for partition in partitions],
        replicas=column(lambda partition: partition.replicas),
        isr=column(lambda partition: partition.isr),
        elr=column(lambda partition: partition.elr),
        last_known_elr=column(lambda partition: partition.last_known_elr),
        adding=column(lambda partition: partition.adding),
        removing=column(lambda partition: partition.removing),
        offline=column(lambda partition: offline_replicas(image, partition)),
    )
    brokers = (
        BrokerView(
            id=broker.id,
            rack=broker.rack,
            fenced=broker.fenced,
            host=next((each.host for each in broker.endpoints), None),
            cordoned=broker.is_cordoned,
            in_controlled_shutdown=broker.in_controlled_shutdown and not broker.fenced,
            stated=None if broker.fenced or broker.in_controlled_shutdown else Liveness.ALIVE,
        )
        for broker in image.brokers.values()
    )
    gone = (
        BrokerView(id=BrokerId(number), stated=Liveness.UNREGISTERED)
        for number in table.broker_ids().tolist()
        if image.brokers and number not in image.brokers
    )
    return ClusterView.build(
        name=name,
        source=source,
        format=FORMAT,
        brokers=(*brokers, *gone),
        topics=tuple(_topic(image, topic) for topic in topics),
        partitions=table,
        settings_shown=SettingsShown.OWN,
        facts=tuple(_facts(image)),
        notes=tuple(_notes(image)),
    )


def _fault(number: PartitionId, partition: PartitionImage) -> str | None:
    """Return why a partition cannot be, or None."""
    return (
        fault_of_number(number, "partition", high=PARTITION_ID_MAX)
        or fault_of_ids(partition.replicas, "replicas")
        or fault_of_ids(partition.isr, "isr")
        or fault_of_row(partition.leader, partition.replicas, partition.isr, isr_name="isr")
    )


def min_insync_replicas(configs: Mapping[Resource, Mapping[str, str]], topic: str) -> MinIsr:
    """Return the min.insync.replicas of a topic: its own, else the cluster's default, else Kafka's; never unknown."""
    own = configs.get(Resource(RESOURCE_TOPIC, topic), {}).get(MIN_ISR)
    default = configs.get(Resource(RESOURCE_BROKER, CLUSTER_DEFAULT), {}).get(MIN_ISR)
    return min_isr(topic=own, cluster=default, all_known=True)


def offline_replicas(image: MetadataImage, partition: PartitionImage) -> tuple[BrokerId, ...]:
    """Return the offline replicas of a partition, in the order of its replicas."""
    directories = partition.directories or (MIGRATING,) * len(partition.replicas)
    return tuple(
        broker_id
        for broker_id, directory in zip(partition.replicas, directories, strict=True)
        if not _is_online(image, broker_id, directory)
    )


def _is_online(image: MetadataImage, broker_id: BrokerId, directory: DirectoryId) -> bool:
    broker = image.brokers.get(broker_id)
    if broker is None or broker.fenced or directory == LOST:
        return False
    return directory in (MIGRATING, UNASSIGNED) or not broker.directories or directory in broker.directories


def _topic(image: MetadataImage, topic: TopicImage) -> TopicView:
    configs = image.configs.get(Resource(RESOURCE_TOPIC, topic.name), {})
    least = min_insync_replicas(image.configs, topic.name)
    return TopicView(
        topic.name,
        partition_count=len(topic.partitions),
        replication_factor=_factor(topic),
        min_insync_replicas=least.count,
        stated_source=least.source,
        topic_id=topic.id,
        configs=tuple(sorted(configs.items())),
    )


def _factor(topic: TopicImage) -> int | None:
    """Return how many replicas the first partition has, those being added left out, as kafka-topics says it."""
    if not topic.partitions:
        return None
    first = topic.partitions[min(topic.partitions)]
    return len(first.replicas) - len(first.adding)


def _facts(image: MetadataImage) -> Iterator[tuple[str, str]]:
    if image.offset >= 0:
        yield "offset", str(image.offset)
        yield "epoch", str(image.epoch)
    for name, level in sorted(image.features.items()):
        yield name, str(level)
    held = Counter(
        (broker_id, directory)
        for topic in image.topics.values()
        for partition in topic.partitions.values()
        for broker_id, directory in zip(partition.replicas, partition.directories, strict=False)
    )
    for broker in sorted(image.brokers.values(), key=lambda broker: broker.id):
        for directory in broker.directories:
            count = held[broker.id, directory]
            cordoned = ", cordoned" if directory in (broker.cordoned or ()) else ""
            yield (
                f"directory {directory} of broker {broker.id}",
                f"{count} replica{'' if count == 1 else 's'}{cordoned}",
            )


def _notes(image: MetadataImage) -> Iterator[str]:
    stopping = sorted(
        broker.id for broker in image.brokers.values() if broker.in_controlled_shutdown and not broker.fenced
    )
    if stopping:
        yield f"in controlled shutdown: broker {', '.join(map(str, stopping))}"
    cordoned = sorted(broker.id for broker in image.brokers.values() if broker.is_cordoned)
    if cordoned:
        yield f"all directories cordoned, so that no new replica is placed: broker {', '.join(map(str, cordoned))}"
    own = sorted(
        resource.name
        for resource, settings in image.configs.items()
        if resource.type == RESOURCE_BROKER and resource.name != CLUSTER_DEFAULT and MIN_ISR in settings
    )
    if own:
        yield f"{MIN_ISR} that single brokers set are not looked at: broker {', '.join(own)}"
    if METADATA_VERSION not in image.features:
        yield f"no {METADATA_VERSION} is set: the log holds less than a whole cluster's metadata"


def _matrix(rows: Sequence[Sequence[int]]) -> Int32Array:
    """Return rows of different lengths as int32[rows, longest], padded."""
    width = max(map(len, rows), default=0)
    matrix = np.full((len(rows), width), PAD, dtype=np.int32)
    for place, row in enumerate(rows):
        matrix[place, : len(row)] = row
    return matrix

"""Apply the records of the metadata log, in order, to a broker's or the controller's image.

The log only grows, and every image is made from a prefix of the log.

Source: Kafka metadata PartitionChangeRecord, RegisterBrokerRecord, BrokerRegistrationChangeRecord, 4.0.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from broker.ids import BrokerId
from replication.roles.messages import ConfigRecord, MetadataRecord, PartitionRecord, PartitionRemoved
from replication.rules.partition import BrokerStatus, PartitionState
from replication.rules.settings import PartitionSettings


class MetadataImage:
    """Hold the state after the first `offset` records; `brokers` is replaced, never changed, when a broker changes."""

    def __init__(self) -> None:
        self.offset = 0
        self.brokers: dict[BrokerId, BrokerStatus] = {}
        self.partitions: dict[int, PartitionState] = {}
        self.topics: dict[int, str] = {}
        """The name of each partition's topic."""
        self.configs: dict[int, ConfigRecord] = {}
        """The settings of the partitions whose topic has some of its own."""

    def apply(self, records: Iterable[MetadataRecord]) -> tuple[int, ...]:
        """Apply records; return the partitions that they change, ascending."""
        changed: set[int] = set()
        for record in records:
            self.offset += 1
            if isinstance(record, PartitionRecord):
                known = self.partitions.get(record.partition)
                assert known is None or known.partition_epoch < record.state.partition_epoch, (known, record)
                self.partitions[record.partition] = record.state
                self.topics.setdefault(record.partition, record.topic or f"topic-{record.partition}")
                changed.add(record.partition)
            elif isinstance(record, PartitionRemoved):
                del self.partitions[record.partition]
                del self.topics[record.partition]
                self.configs.pop(record.partition, None)
                changed.add(record.partition)
            elif isinstance(record, ConfigRecord):
                self.configs[record.partition] = record
                changed |= {record.partition} & self.partitions.keys()
            else:
                self.brokers = {**self.brokers, record.broker: record.status}
        return tuple(sorted(changed))

    def settings_of(self, partition: int, settings: PartitionSettings) -> PartitionSettings:
        """Return a partition's settings, where `settings` are those of the brokers."""
        own = self.configs.get(partition)
        return settings if own is None else with_own(settings, own)


def with_own(settings: PartitionSettings, own: ConfigRecord) -> PartitionSettings:
    """Return the brokers' settings, overridden by those of the topic itself."""
    return attrs.evolve(
        settings,
        min_isr=settings.min_isr if own.min_isr is None else own.min_isr,
        unclean_election=settings.unclean_election if own.unclean_election is None else own.unclean_election,
    )

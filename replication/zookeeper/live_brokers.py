"""Track which brokers are live, and which replicas are offline, as the ZooKeeper-era ControllerContext does.

Constraints: the state comes from ZooKeeper and the brokers' responses only; a broker epoch identifies a broker's
session.

Source: Kafka core ControllerContext (isReplicaOnline, replicasOnOfflineDirs, shuttingDownBrokerIds) and
KafkaController.processBrokerChange (bounced brokers), 2.8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from broker.ids import BrokerEpoch, BrokerId
from replication.rules.partition import BrokerStatus


class LiveBrokers:
    """Hold the brokers as ZooKeeper listed them last; `stopping` maps those in controlled shutdown to epochs."""

    def __init__(self) -> None:
        self.stopping: dict[BrokerId, BrokerEpoch] = {}
        self._brokers: Mapping[BrokerId, BrokerStatus] = {}
        self._epochs: dict[tuple[int, BrokerId], BrokerEpoch] = {}
        self._failed: dict[tuple[int, BrokerId], BrokerEpoch] = {}

    def update(self, brokers: Mapping[BrokerId, BrokerStatus]) -> None:
        """Replace the brokers; forget the controlled shutdowns of earlier broker epochs."""
        self._brokers = brokers
        self.stopping = {broker: epoch for broker, epoch in self.stopping.items() if self.epoch_of(broker) == epoch}

    def epoch_of(self, broker: BrokerId) -> BrokerEpoch | None:
        """Return the epoch of a broker with a session; None for any other."""
        status = self._brokers.get(broker)
        return status.epoch if status is not None and status.is_active else None

    def brokers(self) -> tuple[BrokerId, ...]:
        """Return the brokers with sessions, ascending."""
        return tuple(broker for broker in sorted(self._brokers) if self.epoch_of(broker) is not None)

    def record_epoch(self, partition: int, broker: BrokerId) -> None:
        """Record that a replica belongs to its broker's current epoch."""
        epoch = self.epoch_of(broker)
        assert epoch is not None, (partition, broker)
        self._epochs[partition, broker] = epoch

    def has_epoch(self, partition: int, broker: BrokerId) -> bool:
        """Return whether a broker epoch is recorded for a replica."""
        return (partition, broker) in self._epochs

    def forget_epoch(self, partition: int, broker: BrokerId) -> None:
        """Forget the broker epoch of a replica."""
        self._epochs.pop((partition, broker), None)

    def record_failed_directory(self, partition: int, broker: BrokerId, epoch: BrokerEpoch) -> None:
        """Record that a replica's directory failed under a broker epoch."""
        self._failed[partition, broker] = epoch

    def is_offline(self, partition: int, broker: BrokerId) -> bool:
        """Return whether a replica's broker has no session or another epoch, or its directory has failed."""
        epoch = self.epoch_of(broker)
        if epoch is None or self._failed.get((partition, broker)) == epoch:
            return True
        return self._epochs.get((partition, broker), epoch) != epoch

    def electable(self, partition: int, replicas: Iterable[BrokerId]) -> frozenset[BrokerId]:
        """Return the brokers that may lead: their replica is online and they are not in controlled shutdown."""
        return frozenset(
            broker for broker in replicas if broker not in self.stopping and not self.is_offline(partition, broker)
        )

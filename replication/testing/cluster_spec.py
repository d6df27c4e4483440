"""Describe a cluster to serve: its brokers, racks and topics, and what is done to it.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from broker.config import Scope, format_value
from broker.errors import UsageError
from broker.ids import NO_LEADER, BrokerId
from broker.units import DAY_MS, DurationMs, TimeMs
from log.log_config import CREATE_TIME, LOG_APPEND_TIME
from replication.roles.settings import RoleSettings
from replication.rules.settings import PartitionSettings
from replication.simulation.fault import Fault
from replication.simulation.options import WALL_CLOCK_MS, NetworkOptions, Options
from replication.testing import configs_api
from replication.testing.log_admin_api import LOG_DIRECTORY
from replication.testing.topics import OFFSETS_TOPIC

OFFSETS_PARTITION_COUNT: Final = 4
DURATION_MS: Final = DurationMs(30 * DAY_MS)
"""How long a served cluster may run; what lasts until it is undone lasts as long."""


@attrs.frozen
class TopicSpec:
    """Describe a topic by the replicas of each partition, the preferred leader first, and by its settings."""

    replicas: tuple[tuple[BrokerId, ...], ...]
    leaders: tuple[BrokerId, ...] = ()
    """Who leads each partition at first; NO_LEADER, or none given: its preferred leader."""
    configs: Mapping[str, str] = attrs.field(factory=dict)

    def leader(self, partition: int) -> BrokerId:
        """Return the first leader of a partition, NO_LEADER for the preferred one."""
        return self.leaders[partition] if self.leaders else NO_LEADER


@attrs.frozen(kw_only=True)
class ClusterSpec:
    """Describe a cluster to serve; impossible values raise UsageError.

    `topics` gives each topic's number of partitions, or its replicas; `racks` are the brokers' racks in turn; `factor`
    is the replication factor of the other topics, `min_insync_replicas` that of all which have no other.
    """

    brokers: int = 3
    broker_ids: tuple[BrokerId, ...] = ()
    """The ids of the brokers; 0 to `brokers` - 1 without it."""
    down: frozenset[BrokerId] = frozenset()
    """The brokers that are down when the cluster has begun; the controller has fenced them."""
    racks: tuple[str | None, ...] = ()
    topics: Mapping[str, int | TopicSpec] = attrs.field(factory=dict)
    seed: int = 0
    factor: int = 0
    """0: three, or the number of brokers if that is less."""
    min_insync_replicas: int = 0
    """0: one less than the factor, at least one."""
    faults: tuple[Fault, ...] = ()
    auto_create: bool = True
    unclean_election: bool = False
    is_strict: bool = False
    """Whether fewer than min.insync.replicas brokers lose records at one time, whatever the faults say."""
    default_partitions: int = 1
    wall_clock_ms: int = WALL_CLOCK_MS
    """What the brokers' clocks show at the start, in ms since 1970."""
    is_append_time: bool = False
    """Whether leaders stamp the records (message.timestamp.type=LogAppendTime), not the producers."""
    ports: tuple[int, ...] = ()
    host: str = "127.0.0.1"

    def __attrs_post_init__(self) -> None:
        for topic, count in self.topics.items():
            if isinstance(count, int) and count < 1:
                raise UsageError(f"topic {topic!r} has {count} partitions; 1 or more are allowed")
        if not 0 <= self.factor <= self.brokers:
            raise UsageError(f"the replication factor is {self.factor}; {self.brokers} brokers allow 1 to that")

    @property
    def replication_factor(self) -> int:
        """Return the replication factor of every topic."""
        return self.factor or min(3, self.brokers)

    @property
    def min_isr(self) -> int:
        """Return min.insync.replicas of every topic."""
        return self.min_insync_replicas or max(self.replication_factor - 1, 1)

    @property
    def ids(self) -> tuple[BrokerId, ...]:
        """Return the ids of the brokers."""
        return self.broker_ids or tuple(map(BrokerId, range(self.brokers)))

    @property
    def rack_of(self) -> Mapping[BrokerId, str | None]:
        """Return each broker's rack; None without racks."""
        racks = self.racks or (None,)
        return {broker: racks[place % len(racks)] for place, broker in enumerate(self.ids)}

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions that a topic begins with."""
        given = self.topics.get(topic, OFFSETS_PARTITION_COUNT if topic == OFFSETS_TOPIC else 0)
        return given if isinstance(given, int) else len(given.replicas)

    def replicas_given(self, topic: str) -> TopicSpec | None:
        """Return the replicas that a topic is to have; None where the placer decides."""
        given = self.topics.get(topic)
        return given if isinstance(given, TopicSpec) else None

    def static_configs(self) -> dict[str, str]:
        """Return the settings in the brokers' server.properties."""
        given = {
            "num.partitions": str(self.default_partitions),
            "default.replication.factor": str(self.replication_factor),
            "auto.create.topics.enable": format_value(self.auto_create),
            "unclean.leader.election.enable": format_value(self.unclean_election),
            "log.message.timestamp.type": LOG_APPEND_TIME if self.is_append_time else CREATE_TIME,
            "offsets.topic.num.partitions": str(self.partition_count(OFFSETS_TOPIC)),
            "offsets.topic.replication.factor": str(self.replication_factor),
            "process.roles": "broker",
            "log.dirs": LOG_DIRECTORY,
        }
        defaults = configs_api.named(Scope.BROKER)
        return {name: value for name, value in given.items() if value != defaults[name].default}

    def options(self) -> Options:
        """Return the options of the simulation: no clients of its own, a network that loses nothing."""
        settings = PartitionSettings(min_isr=self.min_isr, unclean_election=self.unclean_election)
        return Options(
            seed=self.seed,
            brokers=self.brokers,
            broker_ids=self.broker_ids,
            racks=min(len(set(self.racks)), self.brokers) or self.brokers,
            partitions=0,
            replication_factor=self.replication_factor,
            producers=0,
            consumers=0,
            duration_ms=DURATION_MS,
            wall_clock_ms=TimeMs(self.wall_clock_ms),
            network=NetworkOptions(delay_ms_max=1),
            is_strict=self.is_strict,
            role_settings=RoleSettings(settings=settings),
            name="served",
        )

"""Describe a cluster to serve: its brokers, racks and topics, and what is done to it.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from typing import Any, Final

import attrs

from broker.config import Scope, format_value
from broker.errors import UsageError
from broker.ids import INT64_MAX, NO_LEADER, BrokerId
from broker.partition_faults import fault_of_ids, fault_of_number, fault_of_row, fault_of_topic_name
from broker.units import TimeMs
from broker.wording import counted
from log.log_config import CREATE_TIME, LOG_APPEND_TIME
from replication.roles.settings import RoleSettings
from replication.rules.settings import PartitionSettings
from replication.simulation.fault import Fault, check_plan
from replication.simulation.options import BROKER_COUNT_MAX, WALL_CLOCK_MS, NetworkOptions, Options
from replication.testing import configs_api
from replication.testing.log_admin_api import LOG_DIRECTORY
from replication.testing.topics import DURATION_MS, OFFSETS_TOPIC, PARTITION_COUNT_MAX, PORT_MAX

OFFSETS_PARTITION_COUNT: Final = 4
_FLAGS: Final = ("auto_create", "unclean_election", "is_strict", "is_append_time")


@attrs.frozen
class TopicSpec:
    """Describe a topic by the replicas of each partition, the preferred leader first, and by its settings.

    Impossible values raise UsageError.
    """

    replicas: tuple[tuple[BrokerId, ...], ...]
    leaders: tuple[BrokerId, ...] = ()
    """Who leads each partition at first; NO_LEADER, or none given: its preferred leader."""
    configs: Mapping[str, str] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        rows = checked_list("replicas", self.replicas)
        if not rows:
            raise UsageError("a topic has no partition; 1 or more are allowed")
        leaders = checked_list("leaders", self.leaders) or (None,) * len(rows)
        if len(leaders) != len(rows):
            raise UsageError(
                f"{counted(len(leaders), 'leader')} of {counted(len(rows), 'partition')}; wanted is one each"
            )
        for number, (row, leader) in enumerate(zip(rows, leaders, strict=True)):
            if fault := fault_of_ids(row, "the list of replicas") or fault_of_row(leader, row, None):
                raise UsageError(f"partition {number}: {fault}")
        if fault := _fault_of_configs(self.configs):
            raise UsageError(fault)

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
        checked_count("brokers", self.brokers, 1, BROKER_COUNT_MAX)
        checked_count("seed", self.seed, 0, INT64_MAX)
        checked_count("factor", self.factor, 0, self.brokers)
        checked_count("min_insync_replicas", self.min_insync_replicas, 0, self.replication_factor)
        checked_count("wall_clock_ms", self.wall_clock_ms, 0, INT64_MAX)
        checked_count("default_partitions", self.default_partitions, 1, PARTITION_COUNT_MAX)
        for name in _FLAGS:
            if not isinstance(getattr(self, name), bool):
                raise UsageError(f"{name} is {getattr(self, name)!r}; allowed are True and False")
        self._check_brokers()
        self._check_topics()
        check_plan(checked_list("faults", self.faults), self.options())

    def _check_brokers(self) -> None:
        checked_list("broker_ids", self.broker_ids)
        shown = self.options().ids_shown  # It has checked the ids.
        if not isinstance(self.down, Set | tuple | list):
            raise UsageError(f"down is {self.down!r}; wanted is a set of brokers, such as {{0, 1}}")
        if wrong := first_other(self.down, self.ids):
            raise UsageError(f"down names broker {wrong[0]!r}; brokers are {shown}")
        if self.brokers - len(self.down) < self.replication_factor:
            what = f"{len(self.down)} of {counted(self.brokers, 'broker')} are down"
            raise UsageError(f"{what}, and the replication factor is {self.replication_factor}")
        for rack in checked_list("racks", self.racks):
            if rack is not None and not (isinstance(rack, str) and rack):
                raise UsageError(f"a rack is {rack!r}; wanted is a name, or None for a broker without one")
        if len(self.racks) > self.brokers:
            racks, brokers = counted(len(self.racks), "rack"), counted(self.brokers, "broker")
            raise UsageError(f"there are {racks} for {brokers}; at most as many racks as brokers are allowed")
        if len(checked_list("ports", self.ports)) not in (0, self.brokers):
            raise UsageError(
                f"{counted(len(self.ports), 'port')} of {counted(self.brokers, 'broker')}; wanted is one each"
            )
        for port in self.ports:
            checked_count("a port", port, 0, PORT_MAX)

    def _check_topics(self) -> None:
        known = set(self.ids)
        for name, given in checked_topics(self.topics).items():
            if fault := fault_of_topic_name(name):
                raise UsageError(f"topic {name!r}: {fault}")
            if not isinstance(given, TopicSpec):
                checked_count(f"the number of partitions of topic {name!r}", given, 1, PARTITION_COUNT_MAX)
                continue
            for number, row in enumerate(given.replicas):
                if wrong := first_other(row, known):
                    what = f"partition {number} of topic {name!r} has a replica on broker {wrong[0]}"
                    raise UsageError(f"{what}; brokers are {self.options().ids_shown}")
        count = sum(map(self.partition_count, {OFFSETS_TOPIC, *self.topics}))
        if count > PARTITION_COUNT_MAX:
            what = f"there are {count:,} partitions with those of {OFFSETS_TOPIC}"
            raise UsageError(f"{what}; at most {PARTITION_COUNT_MAX:,} are served")

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
            "group.consumer.migration.policy": "disabled",
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


def checked_count(what: str, value: object, least: int, most: int) -> None:
    """Raise UsageError for a value that is no whole number from `least` to `most`."""
    if fault := fault_of_number(value, what, low=least, high=most):
        raise UsageError(fault)


def checked_topics(topics: object) -> Mapping[str, int | TopicSpec]:
    """Return topics by name; raise UsageError for anything else."""
    if not isinstance(topics, Mapping):
        raise UsageError(f"topics are {topics!r}; wanted are numbers of partitions by name, such as {{'orders': 6}}")
    return topics


def checked_list(what: str, values: object) -> tuple[Any, ...]:
    """Return several values as a tuple; raise UsageError for a text, a number and the like."""
    if not isinstance(values, tuple | list):
        raise UsageError(f"{what} are {values!r}; wanted is a tuple")
    return tuple(values)


def first_other(ids: Iterable[object], known: Collection[object]) -> list[object]:
    """Return the first of the ids that is none of those known, in a list; an empty one without any."""
    return [each for each in ids if type(each) is not int or each not in known][:1]


def _fault_of_configs(configs: object) -> str | None:
    """Return why Kafka takes no topic with these settings, or None."""
    if not isinstance(configs, Mapping):
        return f"configs are {configs!r}; wanted are texts by name, such as {{'retention.ms': '1000'}}"
    for name, value in configs.items():
        if not isinstance(name, str) or not isinstance(value, str):
            return f"the setting {name!r} is {value!r}; names and values are texts, such as '1000'"
    return configs_api.check(Scope.TOPIC, configs)[1]

"""Define the options of a simulation: the cluster, its clients, the network, and the rate of each fault.

A strict run keeps the number of replicas that lost records at the same time below min.insync.replicas: a record that
was acknowledged with acks=all is then lost only to an election that a setting or rule allows, and is reported with it;
any other such loss is a finding (I9, I10). Without ELR a strict run loses none, as a member of the ISR leads on without
them (KIP-966). All four kinds of options have the newest release's rules without its own weaknesses (S99, S100).

>>> from replication.simulation import swarm
>>> swarm(7, DurationMs(600_000)) == swarm(7, DurationMs(600_000))
True

Source: the ranges are ours; swarm options follow TigerBeetle's VOPR and FoundationDB.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Final

import attrs

from broker.entropy import SplitMix64, derive
from broker.errors import UsageError
from broker.ids import INT64_MAX, BrokerId
from broker.units import MIB, MINUTE_MS, DurationMs, SizeBytes, TimeMs
from broker.values import changed_repr
from broker.wording import first_of
from replication.retention.policy import SEGMENT_BYTES_MIN, Retention
from replication.roles.messages import CONTROLLER
from replication.roles.settings import RoleSettings
from replication.rules.settings import PartitionSettings
from replication.rules.switches import SOUND, Rules

BROKER_COUNT_MAX: Final = 100
BROKER_ID_MAX: Final = CONTROLLER - 1
PARTITION_COUNT_MAX: Final = 1_000
MINUTES_MAX: Final = 100_000
WALL_CLOCK_MS: Final = TimeMs(1_700_000_000_000)
"""What all clocks show at the start unless an option says otherwise."""
PER_MILLE: Final = 1_000
_IDS_SHOWN_MAX: Final = 10


class FaultKind(enum.Enum):
    """Name the kinds of faults; the value says what a fault of the kind strikes; `choice` decides the rest."""

    KILL = "the process dies; the disk keeps all that was written"
    POWER_LOSS = "the machine loses power: the end of its logs may be gone"
    WIPE = "the machine comes back with an empty disk"
    STOP = "the broker is told to stop, hands over and stops cleanly"
    RACK_OUTAGE = "all machines of a rack lose power"
    PAUSE = "the process stands still, then goes on"
    ISOLATE = "a broker hears nobody and is heard by nobody"
    DEAF = "a broker hears nobody, but is heard"
    MUTE = "a broker hears, but is not heard"
    CUT_CONTROLLER = "a broker and the controller do not hear each other"
    CUT_PEERS = "a broker and the other brokers do not hear each other; the controller hears all"
    SLOW = "messages to a broker take long"
    CLOCK_JUMP = "a broker's clock jumps"
    CONTROLLER_FAILOVER = "another controller takes over"
    HOLD = "the next messages of a kind are held back, across whatever happens meanwhile"
    CRASH_AT_COMMIT = "a leader dies right after its high watermark rose"
    CRASH_AT_ISR = "a leader dies right after the controller changed its ISR"
    REASSIGN = "an operator moves a partition, and cancels the move at the end if `choice` is odd"
    DELETE_RECORDS = "a client has records of a partition deleted"
    RETENTION = "retention and cleaner of a broker run at once"
    RETENTION_AT_CHANGE = "retention and cleaner of a broker run right after it has another part, or cut its log"
    BLOCK_LOSS = "the machine loses power: blocks in the middle of what was not flushed may be gone"
    FULL_DISK = "a log directory's disk is full, until an operator makes room and restarts the broker"
    FAILED_DIRECTORY = "a log directory fails in the middle of a write, until an operator repairs it"
    SLOW_DISK = "a broker's disk is slow: reads and writes wait, heartbeats do not"
    SPLIT = "two groups of brokers do not hear each other; the controller hears one or both of them"
    SPLIT_RACK = "a rack hears nobody outside and is not heard there; the controller may be inside"
    CONTROLLER_AWAY = "nobody is controller for a while"
    ZOMBIE_CONTROLLER = "some brokers still ask the former controller for a while"
    LATE_METADATA = "a broker gets no metadata for a while"
    CLOCK_DRIFT = "a broker's clock runs too fast or too slow for a while"
    CANCEL_REASSIGNMENT = (
        "an operator moves a partition and cancels the move, once an added one is in sync if `choice` is odd"
    )
    DELETE_TOPIC = "an operator deletes a topic while it is written, and creates another one of its name"

    def __repr__(self) -> str:
        return f"FaultKind.{self.name}"


@attrs.frozen(kw_only=True, repr=False)
class NetworkOptions:
    """Hold delays in ms and chances in a thousand; `is_ordered` keeps the order between two nodes."""

    delay_ms_max: int = 4
    loss: int = 0
    duplicates: int = 0
    stragglers: int = 0
    straggler_ms_max: int = 3_000
    is_ordered: bool = True

    def __repr__(self) -> str:
        return changed_repr(self)


@attrs.frozen(kw_only=True, slots=False, repr=False)
class Options:
    """Hold the options of one simulation; impossible options raise UsageError.

    Producers and consumers use the first `partitions`, hosted roles the `internal_partitions` after them; broker b is
    in rack b modulo `racks`. `topics` gives names and numbers of partitions, created in one batch; else they are
    topic-0 and so on, one by one. `assignment` gives the replicas, preferred leader first; else those of p are brokers
    p, p + 1 and so on. `fault_ms` is the mean time between faults of a kind; `acks` are those of writes, -1 for all.
    `min_isr`, `unclean_election`, `lag_ms_max` (replica.lag.time.max.ms) take the place of those in `role_settings`.
    `broker_ids` are the brokers' ids, 0 and so on without it; a cluster with ids of its own has no clients of its own.
    `segment_bytes` is segment.bytes; `retention` None keeps all. Clocks begin at `wall_clock_ms`, not 0.
    """

    seed: int
    brokers: int = 3
    racks: int = 3
    partitions: int = 2
    internal_partitions: int = 0
    topics: tuple[tuple[str, int], ...] = ()
    replication_factor: int = 3
    min_isr: int | None = None
    unclean_election: bool | None = None
    lag_ms_max: DurationMs | None = None
    producers: int = 2
    consumers: int = 1
    produce_ms: DurationMs = attrs.field(default=DurationMs(500))
    acks: tuple[int, ...] = (-1,)
    is_idempotent: bool = False
    duration_ms: DurationMs = attrs.field(default=DurationMs(MINUTE_MS))
    heal_ms_max: DurationMs = attrs.field(default=DurationMs(3 * MINUTE_MS))
    network: NetworkOptions = attrs.field(default=NetworkOptions())
    fault_ms: tuple[tuple[FaultKind, DurationMs], ...] = ()
    is_strict: bool = True
    role_settings: RoleSettings = attrs.field(default=RoleSettings(produce_ms_max=DurationMs(5_000)))
    name: str = "quiet"
    assignment: tuple[tuple[BrokerId, ...], ...] = ()
    segment_bytes: SizeBytes = attrs.field(default=SizeBytes(MIB))
    retention: Retention | None = None
    wall_clock_ms: TimeMs = WALL_CLOCK_MS
    broker_ids: tuple[BrokerId, ...] = ()

    def __attrs_post_init__(self) -> None:
        own = {name: getattr(self, name) for name in ("min_isr", "unclean_election", "lag_ms_max")}
        if changed := {name: value for name, value in own.items() if value is not None}:
            settings = attrs.evolve(self.role_settings.settings, **changed)
            # As attrs does it: the instance is frozen as soon as it is made.
            object.__setattr__(self, "role_settings", attrs.evolve(self.role_settings, settings=settings))
        self._check_numbers()
        self._check_values()
        self._check_assignment()

    def __repr__(self) -> str:
        return changed_repr(self)

    def _check_numbers(self) -> None:
        for what, value, least, most in (
            ("the seed", self.seed, 0, INT64_MAX),
            ("the number of brokers", self.brokers, 1, BROKER_COUNT_MAX),
            ("the number of racks", self.racks, 1, self.brokers),
            ("the number of partitions", self.partitions, 0, PARTITION_COUNT_MAX),
            ("the number of internal partitions", self.internal_partitions, 0, PARTITION_COUNT_MAX),
            ("the replication factor", self.replication_factor, 1, self.brokers),
            ("min.insync.replicas", self.settings.min_isr, 1, self.replication_factor),
            ("the number of producers", self.producers, 0, 100),
            ("the number of consumers", self.consumers, 0, 100),
            ("the time between writes in ms", self.produce_ms, 1, MINUTE_MS),
            ("the duration in ms", self.duration_ms, 1, MINUTES_MAX * MINUTE_MS),
            ("the longest time to become whole in ms", self.heal_ms_max, 0, MINUTES_MAX * MINUTE_MS),
            ("the greatest delay in ms", self.network.delay_ms_max, 1, MINUTE_MS),
            ("the greatest delay of a straggler in ms", self.network.straggler_ms_max, 1, MINUTE_MS),
            ("the loss in a thousand", self.network.loss, 0, PER_MILLE - 1),
            ("the duplicates in a thousand", self.network.duplicates, 0, PER_MILLE),
            ("the stragglers in a thousand", self.network.stragglers, 0, PER_MILLE),
            ("segment.bytes", self.segment_bytes, SEGMENT_BYTES_MIN, MIB),
            ("the time of the clocks in ms", self.wall_clock_ms, 1, INT64_MAX),
        ):
            if type(value) is not int or not least <= value <= most:
                raise UsageError(f"{what} is {value!r}; allowed are whole numbers from {least} to {most}")

    def _check_values(self) -> None:
        if not self.acks or not {-1, 0, 1}.issuperset(self.acks):
            raise UsageError(f"acks are {self.acks}; allowed are -1 (all), 0 and 1")
        for kind, mean_ms in self.fault_ms:
            if not isinstance(kind, FaultKind) or type(mean_ms) is not int or mean_ms < 1:
                raise UsageError(
                    f"fault_ms has {kind!r} every {mean_ms!r} ms; wanted is a FaultKind and a whole number from 1 on"
                )
        rules = self.settings.rules
        if self.role_settings.has_zookeeper and (rules.elr or rules.isr_shrink_keeps_leader_epoch):
            raise UsageError(
                "with ZooKeeper there is no ELR, and each shrink begins a leader epoch: take rules before 3.6"
            )
        if self.topics and self.role_settings.has_zookeeper:
            raise UsageError("with ZooKeeper a topic has one partition; leave topics out")
        names = [name for name, _ in self.topics]
        if self.topics and (
            sum(count for _, count in self.topics) != self.partitions
            or len(set(names)) < len(names)
            or any(count < 1 for _, count in self.topics)
        ):
            raise UsageError(
                f"topics are {self.topics}; wanted are different names whose partitions are {self.partitions} in all"
            )

    def _check_assignment(self) -> None:
        if self.broker_ids and (
            len(set(self.broker_ids)) != self.brokers
            or any(type(each) is not int or not 0 <= each <= BROKER_ID_MAX for each in self.broker_ids)
            or self.producers
            or self.consumers
        ):
            raise UsageError(
                f"broker_ids are {self.broker_ids}; wanted are {self.brokers} different ids from 0 to {BROKER_ID_MAX}, "
                f"of a cluster without producers and consumers"
            )
        if len(self.assignment) not in (0, self.partition_count):
            raise UsageError(f"the assignment has {len(self.assignment)} partitions of {self.partition_count}")
        for partition, replicas in enumerate(self.assignment):
            known = set(replicas).intersection(self.ids)
            if len(replicas) != self.replication_factor or len(known) != len(replicas):
                raise UsageError(
                    f"partition {partition} is assigned to {', '.join(map(str, replicas)) or 'nobody'}; wanted are "
                    f"{self.replication_factor} different brokers from 0 to {self.brokers - 1}"
                )

    @property
    def partition_count(self) -> int:
        """Return the number of all partitions."""
        return self.partitions + self.internal_partitions

    @property
    def ids(self) -> Sequence[BrokerId]:
        """Return the ids of the brokers."""
        return self.broker_ids or tuple(map(BrokerId, range(self.brokers)))

    @property
    def ids_shown(self) -> str:
        """Return the ids of the brokers as text."""
        return first_of(self.broker_ids, _IDS_SHOWN_MAX) if self.broker_ids else f"0 to {self.brokers - 1}"

    @property
    def settings(self) -> PartitionSettings:
        """Return the rules and settings of every partition."""
        return self.role_settings.settings


def with_partition_settings(options: Options, settings: PartitionSettings) -> Options:
    """Return the options with other rules or settings of the partitions."""
    role_settings = attrs.evolve(options.role_settings, settings=settings)
    return attrs.evolve(options, role_settings=role_settings, min_isr=None, unclean_election=None, lag_ms_max=None)


def quiet(seed: int, duration_ms: DurationMs, rules: Rules = SOUND) -> Options:
    """Return options without faults."""
    return with_partition_settings(
        Options(seed=seed, duration_ms=duration_ms), PartitionSettings(rules=rules, min_isr=2)
    )


FAULT_MS_MEAN: Final = {
    FaultKind.KILL: 90_000,
    FaultKind.POWER_LOSS: 120_000,
    FaultKind.WIPE: 300_000,
    FaultKind.STOP: 120_000,
    FaultKind.RACK_OUTAGE: 300_000,
    FaultKind.PAUSE: 90_000,
    FaultKind.ISOLATE: 120_000,
    FaultKind.DEAF: 180_000,
    FaultKind.MUTE: 180_000,
    FaultKind.CUT_CONTROLLER: 120_000,
    FaultKind.CUT_PEERS: 120_000,
    FaultKind.SLOW: 120_000,
    FaultKind.CLOCK_JUMP: 240_000,
    FaultKind.CONTROLLER_FAILOVER: 180_000,
    FaultKind.HOLD: 45_000,
    FaultKind.CRASH_AT_COMMIT: 90_000,
    FaultKind.CRASH_AT_ISR: 120_000,
    FaultKind.REASSIGN: 180_000,
}


def harsh(seed: int, duration_ms: DurationMs, rules: Rules = SOUND) -> Options:
    """Return options with every kind of fault, often, and a bad network."""
    options = Options(
        seed=seed,
        brokers=4,
        racks=2,
        duration_ms=duration_ms,
        network=NetworkOptions(loss=10, duplicates=10, stragglers=10, is_ordered=False),
        fault_ms=tuple((kind, DurationMs(mean)) for kind, mean in FAULT_MS_MEAN.items()),
        is_idempotent=True,
        name="harsh",
    )
    return with_partition_settings(options, PartitionSettings(rules=rules, min_isr=2))


_SWARM_STREAM: Final = 1


def swarm(seed: int, duration_ms: DurationMs, rules: Rules = SOUND) -> Options:
    """Return options drawn from the seed."""
    entropy = SplitMix64(derive(seed, _SWARM_STREAM))

    def drawn(least: int, most: int) -> int:
        return least + entropy.next_int_bound(most - least + 1)

    brokers = drawn(3, 5)
    options = Options(
        seed=seed,
        brokers=brokers,
        racks=drawn(1, brokers),
        partitions=drawn(1, 3),
        replication_factor=drawn(2, 3),
        producers=drawn(1, 3),
        acks=((-1,), (-1,), (-1, 1), (-1, 1, 0))[drawn(0, 3)],
        is_idempotent=bool(drawn(0, 1)),
        produce_ms=DurationMs((200, 500, 1_000)[drawn(0, 2)]),
        duration_ms=duration_ms,
        network=NetworkOptions(
            delay_ms_max=(2, 10, 50)[drawn(0, 2)],
            loss=(0, 0, 5, 30)[drawn(0, 3)],
            duplicates=(0, 0, 10)[drawn(0, 2)],
            stragglers=(0, 0, 10)[drawn(0, 2)],
            is_ordered=bool(drawn(0, 1)),
        ),
        fault_ms=tuple(
            (kind, DurationMs(mean * drawn(5, 20) // 10)) for kind, mean in FAULT_MS_MEAN.items() if drawn(0, 2) != 0
        ),
        name="swarm",
    )
    return with_partition_settings(
        options, PartitionSettings(rules=rules, min_isr=drawn(1, options.replication_factor))
    )

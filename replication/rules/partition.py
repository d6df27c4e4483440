"""Define the values that rules take and return: a partition as controller, leader and follower see it, and a log.

Tuples keep Kafka's orders (replicas: assignment order, preferred leader first; ISR: as the last change wrote it). An
end offset is exclusive. -1 stands for "not known" where Kafka writes -1 on the wire.

Example: replicas (1, 2, 3) with ISR (2, 1).

>>> one, two, three = BrokerId(1), BrokerId(2), BrokerId(3)
>>> PartitionState(replicas=(one, two, three), isr=(two, one), leader=two).out_of_sync
(3,)

Source: Kafka metadata PartitionRegistration, core Partition.scala and Replica.scala, 4.3.1; KIP-497 (pending change of
the ISR), KIP-903 (broker epochs in it), KIP-966 (ELR).
"""

from __future__ import annotations

from typing import Final, NewType

from broker.ids import NO_LEADER, BrokerEpoch, BrokerId, LeaderEpoch, Offset
from broker.units import TimeMs
from broker.values import value

PartitionEpoch = NewType("PartitionEpoch", int)

START: Final = TimeMs(0)
"""The time at which no follower was caught up yet, as in Kafka's Replica."""

FIRST_LEADER_EPOCH: Final = LeaderEpoch(0)
FIRST_PARTITION_EPOCH: Final = PartitionEpoch(0)

UNKNOWN_OFFSET: Final = Offset(-1)
UNKNOWN_EPOCH: Final = LeaderEpoch(-1)
UNKNOWN_BROKER_EPOCH: Final = BrokerEpoch(-1)
"""The broker epoch in requests without one: the receiver checks nothing."""


@value
class EpochStart:
    """Hold one entry of the epoch cache: the first offset of a leader epoch."""

    epoch: LeaderEpoch
    start_offset: Offset


@value
class EpochEnd:
    """Hold the exclusive end of a leader epoch in a log; both -1 if the log does not know it."""

    epoch: LeaderEpoch = UNKNOWN_EPOCH
    end_offset: Offset = UNKNOWN_OFFSET


@value
class LogState:
    """Hold the offsets and epochs of one replica's log; start_offset <= high_watermark <= end_offset."""

    start_offset: Offset
    end_offset: Offset
    high_watermark: Offset
    epochs: tuple[EpochStart, ...] = ()

    def check_invariants(self) -> None:
        """Assert that the offsets are in order and that the epochs rise strictly within them."""
        assert 0 <= self.start_offset <= self.high_watermark <= self.end_offset, self
        for earlier, later in zip(self.epochs, self.epochs[1:], strict=False):
            assert earlier.epoch < later.epoch, self
            assert earlier.start_offset < later.start_offset, self
        if self.epochs:
            assert self.start_offset <= self.epochs[0].start_offset, self
            assert self.epochs[-1].start_offset <= self.end_offset, self


@value(kw_only=True)
class BrokerStatus:
    """Describe a registered broker as metadata does; a broker that is not registered has none.

    `offline` are the partitions whose replica lies in a directory that has failed; `rack` is broker.rack, "" for none.
    """

    epoch: BrokerEpoch
    fenced: bool = False
    shutting_down: bool = False
    offline: frozenset[int] = frozenset()
    rack: str = ""

    @property
    def is_active(self) -> bool:
        """Return whether the broker may lead partitions and be in ISRs: neither fenced nor shutting down."""
        return not self.fenced and not self.shutting_down


@value(kw_only=True)
class PartitionState:
    """Hold a partition as the controller sees it: the metadata record from which brokers learn the partition.

    `leader` is -1 for none. `last_known` holds the last leader (or, where that is not kept, the last eligible
    replicas). `adding` and `removing` are not empty while a reassignment is under way. `recovering` says that
    the leader was elected uncleanly and has not reported that it recovered.
    """

    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    leader: BrokerId
    leader_epoch: LeaderEpoch = FIRST_LEADER_EPOCH
    partition_epoch: PartitionEpoch = FIRST_PARTITION_EPOCH
    elr: tuple[BrokerId, ...] = ()
    last_known: tuple[BrokerId, ...] = ()
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()
    recovering: bool = False

    @property
    def out_of_sync(self) -> tuple[BrokerId, ...]:
        """Return the replicas outside the ISR (OSR), in assignment order."""
        return tuple(broker for broker in self.replicas if broker not in self.isr)

    @property
    def has_leader(self) -> bool:
        """Return whether the partition has a leader."""
        return self.leader != NO_LEADER

    @property
    def is_reassigning(self) -> bool:
        """Return whether a reassignment is in progress."""
        return bool(self.adding or self.removing)

    def check_invariants(self) -> None:
        """Assert what holds of every partition under every release's rules."""
        replicas = set(self.replicas)
        assert len(replicas) == len(self.replicas) > 0, self
        for part in (self.isr, self.elr, self.adding, self.removing):
            assert len(set(part)) == len(part), self
            # As a reassignment ends, Kafka leaves a removed replica in the ELR.
            assert part is self.elr or replicas.issuperset(part), self
        assert not set(self.isr).intersection(self.elr), self
        assert self.leader == NO_LEADER or self.leader in self.isr, self


@value
class IsrMember:
    """Name one member of a proposed ISR, with the broker epoch that the leader knows of it, -1 for none."""

    broker: BrokerId
    epoch: BrokerEpoch = UNKNOWN_BROKER_EPOCH


@value(kw_only=True)
class AlterPartitionRequest:
    """Hold a leader's AlterPartition request: the proposed ISR and the leader's epochs."""

    leader: BrokerId
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    isr: tuple[IsrMember, ...]
    recovering: bool = False

    @property
    def members(self) -> tuple[BrokerId, ...]:
        """Return the brokers of the proposed ISR."""
        return tuple(member.broker for member in self.isr)


@value
class Follower:
    """Hold a leader's knowledge of one follower, all of it from the follower's own fetches (Kafka's ReplicaState).

    `leader_end_offset` is the leader's end at the last fetch; `caught_up_at_ms` the last time at which the follower
    is known to have had everything. `broker_epoch` is None before the first fetch. `leader_epoch` is the epoch
    in which the follower last fetched, -1 if it did not since it is known.
    """

    broker: BrokerId
    end_offset: Offset = UNKNOWN_OFFSET
    start_offset: Offset = UNKNOWN_OFFSET
    leader_end_offset: Offset = UNKNOWN_OFFSET
    fetched_at_ms: TimeMs = START
    caught_up_at_ms: TimeMs = START
    broker_epoch: BrokerEpoch | None = None
    leader_epoch: LeaderEpoch = UNKNOWN_EPOCH


@value
class LeaderState:
    """Hold a partition as its leader sees it.

    `isr` is what the controller confirmed last; `pending` the change that was asked for and not answered yet.
    `epoch_start_offset` is the leader's end at the instant it learned its epoch (LESO). `followers` are all
    replicas but the leader, in assignment order.
    """

    broker: BrokerId
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch
    epoch_start_offset: Offset
    isr: tuple[BrokerId, ...]
    followers: tuple[Follower, ...]
    pending: AlterPartitionRequest | None = None

    @property
    def replica_count(self) -> int:
        """Return the number of replicas, the leader included."""
        return len(self.followers) + 1

    def follower(self, broker: BrokerId) -> Follower | None:
        """Return the leader's state of one follower; None for a non-replica."""
        for follower in self.followers:
            if follower.broker == broker:
                return follower
        return None

    def with_follower(self, changed: Follower) -> LeaderState:
        """Return the state with one of its followers replaced."""
        # Spelt out and by place, as this happens with every fetch: attrs.evolve takes five times as long.
        followers, place = self.followers, 0
        while followers[place].broker != changed.broker:
            place += 1
        return LeaderState(
            self.broker,
            self.leader_epoch,
            self.partition_epoch,
            self.epoch_start_offset,
            self.isr,
            (*followers[:place], changed, *followers[place + 1 :]),
            self.pending,
        )


@value(kw_only=True)
class FollowerState:
    """Hold a partition as its follower sees it; `leader` is -1 while there is none to fetch from."""

    broker: BrokerId
    leader: BrokerId
    leader_epoch: LeaderEpoch
    partition_epoch: PartitionEpoch

"""Short words for the values of replication, so that a test shows what matters in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from broker.ids import NO_LEADER, BrokerEpoch, BrokerId, LeaderEpoch, Offset
from broker.units import DurationMs, TimeMs
from replication.rules.fetch import FetchRequest
from replication.rules.partition import (
    UNKNOWN_BROKER_EPOCH,
    UNKNOWN_EPOCH,
    AlterPartitionRequest,
    BrokerStatus,
    EpochStart,
    Follower,
    IsrMember,
    LeaderState,
    LogState,
    PartitionEpoch,
    PartitionState,
)
from replication.rules.settings import Moment, PartitionSettings
from replication.rules.switches import CURRENT, Rules

NOW = 1_000_000
LAG_MS_MAX = 30_000


def ids(*numbers: int) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(number) for number in numbers)


def epochs(*pairs: tuple[int, int]) -> tuple[EpochStart, ...]:
    """Pairs of (epoch, first offset)."""
    return tuple(EpochStart(LeaderEpoch(epoch), Offset(start)) for epoch, start in pairs)


def log(end: int, *pairs: tuple[int, int], start: int = 0, committed: int = 0) -> LogState:
    """A log that ends at `end`, with pairs of (epoch, first offset)."""
    return LogState(Offset(start), Offset(end), Offset(max(start, committed)), epochs(*pairs))


def follower(
    broker: int,
    end: int = -1,
    *,
    epoch: int = 5,
    broker_epoch: int | None = 0,
    caught_up_at: int = 0,
    fetched_at: int = 0,
    leader_end: int = -1,
) -> Follower:
    return Follower(
        BrokerId(broker),
        end_offset=Offset(end),
        start_offset=Offset(0),
        leader_end_offset=Offset(leader_end),
        fetched_at_ms=TimeMs(fetched_at),
        caught_up_at_ms=TimeMs(caught_up_at),
        broker_epoch=None if broker_epoch is None else BrokerEpoch(broker_epoch),
        leader_epoch=LeaderEpoch(epoch),
    )


def leader(
    *followers: Follower, isr: Iterable[int] = (1, 2, 3), epoch: int = 5, epoch_start: int = 0, partition_epoch: int = 7
) -> LeaderState:
    """Broker 1 leads; its followers are 2 and 3 if none are given."""
    return LeaderState(
        broker=BrokerId(1),
        leader_epoch=LeaderEpoch(epoch),
        partition_epoch=PartitionEpoch(partition_epoch),
        epoch_start_offset=Offset(epoch_start),
        isr=ids(*isr),
        followers=followers or (follower(2), follower(3)),
    )


def partition(
    isr: Iterable[int] = (1, 2, 3),
    *,
    replicas: Iterable[int] = (1, 2, 3),
    leader: int = 1,
    elr: Iterable[int] = (),
    last_known: Iterable[int] = (),
    adding: Iterable[int] = (),
    removing: Iterable[int] = (),
    recovering: bool = False,
) -> PartitionState:
    """A partition in leader epoch 5 and partition epoch 7."""
    return PartitionState(
        replicas=ids(*replicas),
        isr=ids(*isr),
        leader=BrokerId(leader),
        leader_epoch=LeaderEpoch(5),
        partition_epoch=PartitionEpoch(7),
        elr=ids(*elr),
        last_known=ids(*last_known),
        adding=ids(*adding),
        removing=ids(*removing),
        recovering=recovering,
    )


NOBODY = int(NO_LEADER)


def statuses(
    *,
    fenced: Iterable[int] = (),
    stopping: Iterable[int] = (),
    broker_epochs: Mapping[int, int] | None = None,
    racks: Mapping[int, str] | None = None,
) -> dict[BrokerId, BrokerStatus]:
    """Brokers 1 to 4, all active in their first life if nothing else is said."""
    out, leaving, ages = set(fenced), set(stopping), broker_epochs or {}
    return {
        BrokerId(broker): BrokerStatus(
            epoch=BrokerEpoch(ages.get(broker, 0)),
            fenced=broker in out,
            shutting_down=broker in leaving,
            rack=(racks or {}).get(broker, ""),
        )
        for broker in (1, 2, 3, 4)
    }


def moment(brokers: Mapping[BrokerId, BrokerStatus] | None = None, now: int = NOW) -> Moment:
    return Moment(TimeMs(now), statuses() if brokers is None else brokers)


def settings(rules: Rules = CURRENT, *, min_isr: int = 1, unclean: bool = False) -> PartitionSettings:
    return PartitionSettings(rules=rules, min_isr=min_isr, lag_ms_max=DurationMs(LAG_MS_MAX), unclean_election=unclean)


def active(*brokers: int) -> frozenset[BrokerId]:
    return frozenset(ids(*brokers))


def fetch(
    replica: int, offset: int, *, epoch: int = 5, last: int = UNKNOWN_EPOCH, broker_epoch: int = UNKNOWN_BROKER_EPOCH
) -> FetchRequest:
    return FetchRequest(
        replica=BrokerId(replica),
        offset=Offset(offset),
        leader_epoch=LeaderEpoch(epoch),
        last_fetched_epoch=LeaderEpoch(last),
        start_offset=Offset(0),
        broker_epoch=BrokerEpoch(broker_epoch),
    )


def request(
    *isr: int,
    sender: int = 1,
    epoch: int = 5,
    partition_epoch: int = 7,
    recovering: bool = False,
    broker_epochs: Mapping[int, int] | None = None,
) -> AlterPartitionRequest:
    ages = broker_epochs or {}
    return AlterPartitionRequest(
        leader=BrokerId(sender),
        leader_epoch=LeaderEpoch(epoch),
        partition_epoch=PartitionEpoch(partition_epoch),
        isr=tuple(IsrMember(BrokerId(broker), BrokerEpoch(ages.get(broker, 0))) for broker in isr),
        recovering=recovering,
    )


def on(rules: Rules, **switches: bool) -> Rules:
    """The rules with switches set."""
    return attrs.evolve(rules, **switches)  # type: ignore[arg-type] # - every switch is a bool.

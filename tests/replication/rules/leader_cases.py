"""Leaders as they can come to know their followers: a log, last fetches, registrations and the rules.

By lists it says who is caught up, who may join and who counts: Kafka's Partition (isFollowerInSync,
isReplicaIsrEligible); KIP-497, 841, 903, 966.
"""

from __future__ import annotations

from typing import Final

import attrs

from broker.ids import BrokerEpoch, BrokerId, LeaderEpoch, Offset
from broker.units import DurationMs, TimeMs
from replication.rules.isr import propose_expand, propose_shrink
from replication.rules.partition import (
    START,
    BrokerStatus,
    EpochStart,
    Follower,
    LeaderState,
    LogState,
    PartitionEpoch,
)
from replication.rules.settings import Moment, PartitionSettings
from tests.support.drawing import Draws

NOW_MS: Final = TimeMs(100_000)
LAG_MS: Final = DurationMs(30_000)
EPOCH: Final = LeaderEpoch(5)
RACKS: Final = ("", "a", "b")


@attrs.frozen
class Case:
    """Hold what a leader knows, and the rules and settings by which it decides."""

    leader: LeaderState
    log: LogState
    moment: Moment
    settings: PartitionSettings

    @property
    def min_isr(self) -> int:
        """Return the effective min.insync.replicas."""
        replicas = len(self.leader.followers) + 1
        return min(self.settings.min_isr, replicas) if self.settings.rules.effective_min_isr else self.settings.min_isr

    def status(self, broker: BrokerId) -> BrokerStatus | None:
        """Return a broker's registration."""
        return self.moment.brokers.get(broker)

    def is_caught_up(self, follower: Follower) -> bool:
        """Return whether a follower has everything, or had within the lag that is allowed."""
        has_all = self.settings.rules.caught_up_at_end_offset and follower.end_offset == self.log.end_offset
        return has_all or follower.caught_up_at_ms + LAG_MS >= NOW_MS

    def is_eligible(self, follower: Follower) -> bool:
        """Return whether a follower's broker may be in the ISR, by its registration."""
        rules, status = self.settings.rules, self.status(follower.broker)
        demands = set[bool]()
        if rules.isr_join_eligibility:
            demands.add(status is not None and not status.fenced and not status.shutting_down)
        if rules.isr_join_broker_epoch:
            demands.add(
                status is not None
                and not status.fenced
                and follower.broker_epoch is not None
                and (follower.broker_epoch == -1 or follower.broker_epoch == status.epoch)
            )
        return False not in demands

    def counted(self) -> set[int]:
        """Return the brokers of the maximal ISR (KIP-497); before, an ISR that shrinks counted as shrunk."""
        isr: set[int] = set(self.leader.isr)
        if self.leader.pending is None:
            return isr
        asked: set[int] = {member.broker for member in self.leader.pending.isr}
        return isr | asked if self.settings.rules.maximal_isr else isr & asked


def drawn_case(draws: Draws) -> Case:
    brokers = [BrokerId(broker) for broker in range(draws.number(2, 5))]
    statuses = {
        broker: BrokerStatus(
            epoch=BrokerEpoch(draws.number(7, 8)),
            fenced=draws.is_one_in(6),
            shutting_down=draws.is_one_in(6),
            rack=draws.one(RACKS),
        )
        for broker in brokers
        if not draws.is_one_in(8)
    }
    start = draws.number(0, 3)
    high = start + draws.number(0, 4)
    end = high + draws.number(0, 4)
    log = LogState(Offset(start), Offset(end), Offset(high), (EpochStart(EPOCH, Offset(start)),))
    followers = tuple(_follower(draws, broker, start, end) for broker in brokers[1:])
    isr = (brokers[0], *draws.some(brokers[1:]))
    epoch_start = Offset(draws.number(start, end))
    leader = LeaderState(brokers[0], EPOCH, PartitionEpoch(draws.number(0, 3)), epoch_start, isr, followers)
    outside = [broker for broker in brokers if broker not in isr]
    if draws.is_one_in(3):
        own = BrokerEpoch(7)
        if outside and draws.is_one_in(2):
            leader = propose_expand(leader, draws.one(outside), own)
        elif len(isr) > 1:
            leader = propose_shrink(leader, draws.some(isr[1:], 1), own)
    settings = PartitionSettings(rules=draws.rules(), min_isr=draws.number(1, 4), lag_ms_max=LAG_MS)
    return Case(leader, log, Moment(NOW_MS, statuses), settings)


def _follower(draws: Draws, broker: BrokerId, start: int, end: int) -> Follower:
    if draws.is_one_in(6):
        return Follower(broker, caught_up_at_ms=draws.one((START, TimeMs(90_000))))
    fetched_ms = NOW_MS - draws.one((0, 500, LAG_MS, LAG_MS + 1))
    caught_up_ms = max(0, fetched_ms - draws.one((0, 0, 400, LAG_MS - 500, LAG_MS))) * (not draws.is_one_in(8))
    return Follower(
        broker,
        end_offset=Offset(draws.number(start, end)),
        start_offset=Offset(draws.number(0, start)),
        leader_end_offset=Offset(draws.number(start, end)),
        fetched_at_ms=TimeMs(fetched_ms),
        caught_up_at_ms=TimeMs(caught_up_ms),
        broker_epoch=draws.one((None, BrokerEpoch(-1), BrokerEpoch(7), BrokerEpoch(8))),
        leader_epoch=draws.one((EPOCH, EPOCH, EPOCH, LeaderEpoch(4))),
    )

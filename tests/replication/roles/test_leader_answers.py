"""One leader: when it answers a fetch, and what it takes from the answers to its AlterPartition requests."""

from __future__ import annotations

import attrs
import pytest

from broker.error_codes import ErrorCode
from broker.ids import BrokerEpoch, BrokerId, LeaderEpoch, Offset
from broker.units import TimeMs
from log.batches.build import BatchSpec, build_batch
from log.record import Record
from replication.roles.leader import LeaderRole
from replication.roles.messages import (
    Address,
    AlterPartition,
    AlterPartitionRetryDue,
    Fetch,
    FetchResponse,
    NodeId,
    Produce,
    ProduceResponse,
)
from replication.roles.outbox import Outbox
from replication.roles.settings import RoleSettings
from replication.rules.fetch import FetchRequest
from replication.rules.partition import BrokerStatus
from replication.rules.produce import ACKS_ALL
from replication.rules.settings import Moment, PartitionSettings
from replication.rules.switches import CURRENT, Rules, rules_of
from tests.replication.builders import LAG_MS_MAX, follower, ids, leader, partition
from tests.replication.roles.test_replica_log import opened

NOW = TimeMs(1_000_000)
FOLLOWER = BrokerId(2)
CLIENT = Address(NodeId(100))
BATCH = build_batch(BatchSpec(), (Record(Offset(0), NOW, None, b"x"),))


class Leading:
    """Broker 1 leads in epoch 5; its one follower, broker 2, is in sync unless the ISR is another."""

    def __init__(self, rules: Rules, isr: tuple[int, ...] = (1, 2)) -> None:
        settings = RoleSettings(settings=PartitionSettings(rules=rules))
        state = leader(follower(FOLLOWER, caught_up_at=NOW if FOLLOWER in isr else 0), isr=isr)
        self.role = LeaderRole(0, state, opened(rules), BrokerEpoch(0), settings)
        self.moment = Moment(NOW, {BrokerId(each): BrokerStatus(epoch=BrokerEpoch(0)) for each in (1, 2)})
        self.number = 0

    def append(self) -> None:
        self.role.on_produce(Produce(0, 0, 1, BATCH), CLIENT, self.moment, Outbox())

    def check_lag(self, now_ms: int) -> list[AlterPartition]:
        """Return what the leader asks the controller for as it looks for members that lag."""
        out = Outbox()
        self.role.on_lag_check(Moment(TimeMs(now_ms), self.moment.brokers), out)
        return [each for _, each in out.sent if isinstance(each, AlterPartition)]

    def fetch(self, offset: int) -> list[int]:
        """Let the follower fetch; return the high watermark that it is told at once, none if its fetch waits."""
        out, self.number = Outbox(), self.number + 1
        request = FetchRequest(replica=FOLLOWER, offset=Offset(offset), leader_epoch=LeaderEpoch(5))
        self.role.on_fetch(Fetch(0, self.number, request), Address(NodeId(FOLLOWER)), self.moment, out)
        return [each.answer.high_watermark for _, each in out.sent if isinstance(each, FetchResponse)]


@pytest.mark.parametrize(("release", "told_at_once"), [("2.4", [1]), ("2.5", [1]), ("2.6", []), ("4.1", [])])
def test_in_2_4_and_2_5_an_idle_follower_is_told_of_a_new_high_watermark_at_once_and_once(
    release: str, told_at_once: list[int]
) -> None:
    """KAFKA-9731: Replica.lastSentHighWatermark, added for KIP-392, was removed in 2.6."""
    leading = Leading(rules_of(release))
    assert leading.fetch(0) == ([0] if told_at_once else [])  # In 2.4 and 2.5 even 0 is new to who was told nothing.
    leading.append()
    assert leading.fetch(0) == [0]
    assert leading.fetch(1) == []
    assert leading.fetch(1) == told_at_once
    assert leading.fetch(1) == []


@pytest.mark.parametrize(
    ("release", "error"),
    [("2.0", ErrorCode.NOT_LEADER_OR_FOLLOWER), ("2.1", ErrorCode.FENCED_LEADER_EPOCH)],
)
def test_a_held_fetch_is_fenced_by_its_epoch_only_where_fetches_carry_one(release: str, error: ErrorCode) -> None:
    """KIP-320, 2.1: before it a fetch had no leader epoch."""
    leading, out = Leading(rules_of(release)), Outbox()
    assert leading.fetch(0) == []
    leading.role.resign(attrs.evolve(partition((2,), leader=2), leader_epoch=LeaderEpoch(6)), out)
    assert [each.answer.error for _, each in out.sent if isinstance(each, FetchResponse)] == [error]


def test_a_member_that_lags_is_asked_to_leave_once_and_each_attempt_has_its_number() -> None:
    """Partition.maybeShrinkIsr: none while an AlterPartition is under way, sent again when its time is over."""
    leading = Leading(CURRENT)
    leading.append()
    assert leading.check_lag(NOW + LAG_MS_MAX) == []
    (asked,) = leading.check_lag(NOW + LAG_MS_MAX + 1)
    assert (asked.number, asked.request.members) == (1, ids(1))
    assert leading.check_lag(NOW + 2 * LAG_MS_MAX) == []
    out = Outbox()
    leading.role.begin_session(BrokerEpoch(4))
    leading.role.on_alter_partition_retry(AlterPartitionRetryDue(0, asked.request), out)
    again = [each for _, each in out.sent if isinstance(each, AlterPartition)]
    assert [(each.number, each.broker_epoch) for each in again] == [(2, 4)]  # Of the session in which it is sent.


def test_a_leader_alone_in_the_isr_commits_and_answers_a_write_at_once() -> None:
    """Partition.appendRecordsToLeader looks at the high watermark after each append."""
    leading, out = Leading(CURRENT, isr=(1,)), Outbox()
    for number in (1, 2):
        leading.role.on_produce(Produce(0, number, ACKS_ALL, BATCH), CLIENT, leading.moment, out)
        assert leading.role.log.log.high_watermark == number
    answers = [(receiver, each) for receiver, each in out.sent if isinstance(each, ProduceResponse)]
    assert answers == [
        (CLIENT, ProduceResponse(0, number, ACKS_ALL, ErrorCode.NONE, Offset(number - 1), appended=True))
        for number in (1, 2)
    ]

"""One follower: how its leader's answers change its log, and what it asks next."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker.error_codes import ErrorCode
from broker.ids import BrokerEpoch, BrokerId, LeaderEpoch, Offset
from broker.units import DurationMs, TimeMs
from log.batches.build import BatchSpec, build_batch
from log.record import Record
from replication.roles.follower import FollowerRole
from replication.roles.messages import (
    Fetch,
    FetchDue,
    FetchResponse,
    ListOffsets,
    ListOffsetsResponse,
    Message,
    OffsetsForLeaderEpoch,
    OffsetsForLeaderEpochResponse,
)
from replication.roles.outbox import Outbox
from replication.roles.settings import RoleSettings
from replication.roles.states.replica_role import ReplicaRole
from replication.rules.fetch import FetchAnswer
from replication.rules.leadership import Following
from replication.rules.partition import EpochEnd, FollowerState, PartitionEpoch
from replication.rules.settings import Moment, PartitionSettings
from replication.rules.switches import CURRENT, Rules, rules_of
from tests.replication.roles.test_replica_log import opened

NOW = TimeMs(1_000)
BATCH = build_batch(BatchSpec(), (Record(Offset(0), NOW, None, b"x"),))


class Follows:
    """Broker 1 follows broker 2 in epoch 7; its log has a record of each of `epochs`, of which one is committed."""

    def __init__(self, rules: Rules, *epochs: int) -> None:
        self.log = opened(rules)
        for epoch in epochs:
            self.log.append_as_leader(BATCH, LeaderEpoch(epoch), NOW)
        self.log.set_high_watermark(Offset(1))
        state = FollowerState(
            broker=BrokerId(1),
            leader=BrokerId(2),
            leader_epoch=LeaderEpoch(7),
            partition_epoch=PartitionEpoch(0),
        )
        self.settings = RoleSettings(settings=PartitionSettings(rules=rules))
        self.role = FollowerRole(0, state, self.log, BrokerEpoch(3), self.settings)
        self.woken: list[tuple[DurationMs, Message]] = []
        self.asked = self.sent(lambda out: self.role.follow(Following(state, restarts=True), Moment(NOW, {}), out))

    def sent(self, does: Callable[[Outbox], None]) -> Fetch | OffsetsForLeaderEpoch | ListOffsets | None:
        """Let the follower do something, and return its next request, None if it sends none."""
        out = Outbox()
        does(out)
        self.woken = out.woken
        assert len(out.sent) <= 1
        for _, asked in out.sent:
            assert isinstance(asked, Fetch | OffsetsForLeaderEpoch | ListOffsets)
            return asked
        return None

    def fetched(self, answer: FetchAnswer) -> Fetch | OffsetsForLeaderEpoch | ListOffsets | None:
        assert self.asked is not None
        response = FetchResponse(0, self.asked.number, answer, b"")
        return self.sent(lambda out: self.role.on_fetch_response(response, Moment(NOW, {}), out))

    def told_end(
        self, end: EpochEnd, error: ErrorCode = ErrorCode.NONE, *, late: int = 0
    ) -> Fetch | OffsetsForLeaderEpoch | ListOffsets | None:
        assert isinstance(self.asked, OffsetsForLeaderEpoch)
        response = OffsetsForLeaderEpochResponse(0, self.asked.number - late, error, end)
        return self.sent(lambda out: self.role.on_offsets_for_leader_epoch_response(response, Moment(NOW, {}), out))

    @property
    def bounds(self) -> tuple[int, int]:
        return self.log.log.log_start_offset, self.log.log.log_end_offset


def end_of(epoch: int, offset: int) -> EpochEnd:
    return EpochEnd(LeaderEpoch(epoch), Offset(offset))


def test_a_follower_is_cut_to_where_its_log_parts_from_the_leaders_and_fetches_from_there() -> None:
    """KIP-595: the leader of the fetch says that epoch 4, of which the follower has two records, ends at 1."""
    follows = Follows(CURRENT, 4, 4, 5)
    asked = follows.fetched(FetchAnswer(diverging=end_of(4, 1), high_watermark=Offset(1), start_offset=Offset(0)))
    assert follows.bounds == (0, 1)
    assert isinstance(asked, Fetch)
    assert (asked.request.offset, asked.request.last_fetched_epoch) == (1, 4)


@pytest.mark.parametrize(
    ("leaders", "bounds"), [((0, 2), (0, 2)), ((0, 3), (0, 3)), ((3, 9), (0, 3)), ((5, 9), (5, 5))]
)
def test_a_follower_out_of_range_is_cut_to_its_leaders_end_or_begins_at_its_start(
    leaders: tuple[int, int], bounds: tuple[int, int]
) -> None:
    """AbstractFetcherThread.fetchOffsetAndTruncate."""
    follows = Follows(CURRENT, 4, 4, 5)
    asked = follows.fetched(FetchAnswer(error=ErrorCode.OFFSET_OUT_OF_RANGE))
    assert isinstance(asked, ListOffsets)
    response = ListOffsetsResponse(0, asked.number, ErrorCode.NONE, Offset(leaders[0]), Offset(leaders[1]))
    again = follows.sent(lambda out: follows.role.on_list_offsets_response(response, Moment(NOW, {}), out))
    assert isinstance(again, Fetch)
    assert (follows.bounds, again.request.offset) == (bounds, bounds[1])


def test_until_0_10_2_a_follower_is_cut_to_its_own_high_watermark_before_it_fetches() -> None:
    """KIP-101 took this away, as it loses records."""
    follows = Follows(rules_of("0.10.2"), 4, 4, 5)
    assert isinstance(follows.asked, Fetch)
    assert (follows.bounds, follows.asked.request.offset) == ((0, 1), 1)


@pytest.mark.parametrize(
    ("end", "cut_to", "next_epoch"),
    [
        (end_of(5, 9), 3, None),
        (end_of(5, 2), 2, None),
        (end_of(4, 9), 2, None),
        (end_of(2, 1), 1, None),
        (end_of(3, 9), 1, 2),  # This log has no epoch 3: its epoch 2 is the next that both may have (KIP-279).
        (EpochEnd(), 1, None),  # Only what is committed is known to be common.
    ],
)
def test_from_2_0_to_2_7_a_follower_asks_where_its_last_epoch_ends_until_both_have_it(
    end: EpochEnd, cut_to: int, next_epoch: int | None
) -> None:
    follows = Follows(rules_of("2.7"), 2, 4, 5)
    assert isinstance(follows.asked, OffsetsForLeaderEpoch)
    assert (follows.asked.asked, follows.asked.believed) == (5, 7)
    asked = follows.told_end(end)
    assert follows.bounds == (0, cut_to)
    if next_epoch is None:
        assert isinstance(asked, Fetch)
        assert asked.request.offset == cut_to
    else:
        assert isinstance(asked, OffsetsForLeaderEpoch)
        assert asked.asked == next_epoch


@pytest.mark.parametrize(
    ("error", "state", "waits"),
    [
        (ErrorCode.FENCED_LEADER_EPOCH, ReplicaRole.PARKED, False),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ReplicaRole.TRUNCATING, True),
    ],
)
def test_a_follower_that_is_not_told_where_an_epoch_ends_keeps_its_log(
    error: ErrorCode, state: ReplicaRole, waits: bool
) -> None:
    follows = Follows(rules_of("2.7"), 2, 4, 5)
    assert follows.told_end(end_of(2, 1), late=1) is None
    assert follows.told_end(EpochEnd(), error) is None
    assert follows.asked is not None
    due = FetchDue(0, follows.asked.number)
    assert follows.woken == ([(follows.settings.fetch_backoff_ms, due)] if waits else [])
    assert (follows.bounds, follows.role.replica_role) == ((0, 3), state)
    again = follows.sent(lambda out: follows.role.on_fetch_due(due, out))
    assert isinstance(again, OffsetsForLeaderEpoch) is waits


def test_a_follower_fetches_with_the_broker_epoch_of_its_new_session() -> None:
    """KIP-903: else the leader would take it for its former incarnation."""
    follows = Follows(CURRENT, 4)
    assert isinstance(follows.asked, Fetch)
    assert follows.asked.request.broker_epoch == 3
    follows.role.begin_session(BrokerEpoch(8))
    again = follows.sent(lambda out: follows.role.on_fetch_due(FetchDue(0, follows.role._number), out))
    assert isinstance(again, Fetch)
    assert again.request.broker_epoch == 8

"""What producers and consumers are told, and who is listened to."""

from __future__ import annotations

import attrs
import pytest

from broker.error_codes import ErrorCode
from broker.ids import BrokerEpoch, BrokerId, Offset
from broker.units import DurationMs, TimeMs
from replication.rules.fencing import (
    StopProof,
    check_broker_epoch,
    check_control_request,
    is_clean_registration,
    is_session_valid,
    may_stop,
    proof_at_stop,
    proof_while_loading,
)
from replication.rules.follower_read import check_consumer_fetch, latest_offset, preferred_replica
from replication.rules.isr import propose_expand
from replication.rules.leadership import unassigned
from replication.rules.partition import BrokerStatus
from replication.rules.produce import ACKS_ALL, Fate, answer_waiting, check_append, fate
from replication.rules.switches import CURRENT, rules_of
from tests.replication.builders import follower, leader, log, moment, settings, statuses

E = ErrorCode
FOLLOWS = unassigned(BrokerId(1))
TWO = settings(min_isr=2)


@pytest.mark.parametrize(
    ("acks", "isr", "error"),
    [
        (0, (1,), E.NONE),
        (1, (1,), E.NONE),
        (ACKS_ALL, (1,), E.NOT_ENOUGH_REPLICAS),
        (ACKS_ALL, (1, 2), E.NONE),
        (2, (1, 2, 3), E.INVALID_REQUIRED_ACKS),
        (-2, (1, 2, 3), E.INVALID_REQUIRED_ACKS),
    ],
)
def test_whether_a_write_is_appended(acks: int, isr: tuple[int, ...], error: ErrorCode) -> None:
    assert check_append(leader(isr=isr), acks, TWO) is error


def test_a_follower_takes_no_write_and_answers_no_wait() -> None:
    assert check_append(FOLLOWS, 1, TWO) is E.NOT_LEADER_OR_FOLLOWER
    assert check_append(FOLLOWS, 7, TWO) is E.INVALID_REQUIRED_ACKS
    assert answer_waiting(FOLLOWS, Offset(4), Offset(9), TWO) is E.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("isr", "committed", "answer"),
    [((1, 2), 3, None), ((1, 2), 4, E.NONE), ((1,), 4, E.NOT_ENOUGH_REPLICAS_AFTER_APPEND), ((1,), 3, None)],
)
def test_how_a_waiting_write_ends(isr: tuple[int, ...], committed: int, answer: ErrorCode | None) -> None:
    assert answer_waiting(leader(isr=isr), Offset(4), Offset(committed), TWO) is answer


def test_who_is_being_added_counts_for_a_waiting_write() -> None:
    state = propose_expand(leader(isr=(1,)), BrokerId(2), BrokerEpoch(0))
    assert answer_waiting(state, Offset(4), Offset(4), TWO) is E.NONE


@pytest.mark.parametrize(
    ("answer", "appended", "expected"),
    [
        (E.NONE, True, Fate.ACKED),
        (E.NOT_ENOUGH_REPLICAS, False, Fate.FAILED),
        (E.INVALID_REQUIRED_ACKS, False, Fate.FAILED),
        (E.NOT_LEADER_OR_FOLLOWER, False, Fate.FAILED),
        (E.NOT_LEADER_OR_FOLLOWER, True, Fate.UNKNOWN),
        (E.REQUEST_TIMED_OUT, True, Fate.UNKNOWN),
        (E.NOT_ENOUGH_REPLICAS_AFTER_APPEND, True, Fate.UNKNOWN),
        (None, True, Fate.UNKNOWN),
        (None, False, Fate.UNKNOWN),
    ],
)
def test_what_a_producer_may_believe(answer: ErrorCode | None, appended: bool, expected: Fate) -> None:
    assert fate(answer, appended=appended) is expected


RACKS = {1: "b", 2: "a", 3: "a"}
IN_RACKS = moment(statuses(racks=RACKS))
STATE = leader(follower(2, 9), follower(3, 12), isr=(1, 2))


@pytest.mark.parametrize(
    ("offset", "rack", "replica"),
    [(9, "a", 2), (10, "a", None), (9, "b", None), (9, "", None), (9, "c", None)],
)
def test_where_a_consumer_reads(offset: int, rack: str, replica: int | None) -> None:
    assert preferred_replica(STATE, Offset(offset), rack, IN_RACKS, CURRENT) == replica


def test_of_two_near_replicas_the_one_that_has_more_is_read() -> None:
    both = attrs.evolve(STATE, isr=(*STATE.isr, BrokerId(3)))
    assert preferred_replica(both, Offset(4), "a", IN_RACKS, CURRENT) == 3
    equal = leader(follower(2, 9), follower(3, 9))
    assert preferred_replica(equal, Offset(4), "a", IN_RACKS, CURRENT) == 2


def test_nobody_is_sent_to_a_replica_whose_log_starts_later() -> None:
    late = leader(attrs.evolve(follower(2, 9), start_offset=Offset(5)), isr=(1, 2))
    assert preferred_replica(late, Offset(4), "a", IN_RACKS, CURRENT) is None


def test_nobody_is_sent_to_a_dead_broker() -> None:
    for brokers in (statuses(fenced=(2,), racks=RACKS), {}):
        assert preferred_replica(STATE, Offset(9), "a", moment(brokers), CURRENT) is None


@pytest.mark.parametrize(
    ("offset", "error"),
    [
        (1, E.OFFSET_OUT_OF_RANGE),
        (2, E.NONE),
        (4, E.NONE),
        (5, E.OFFSET_NOT_AVAILABLE),
        (9, E.OFFSET_NOT_AVAILABLE),
        (10, E.OFFSET_OUT_OF_RANGE),
    ],
)
def test_what_a_follower_tells_a_consumer(offset: int, error: ErrorCode) -> None:
    state = log(9, start=2, committed=4)
    assert check_consumer_fetch(FOLLOWS, state, Offset(offset), CURRENT) is error
    on_leader = E.NONE if error is E.OFFSET_NOT_AVAILABLE else error
    assert check_consumer_fetch(leader(), state, Offset(offset), CURRENT) is on_leader


def test_before_2_4_consumers_read_from_leaders() -> None:
    rules = rules_of("2.3")
    assert check_consumer_fetch(FOLLOWS, log(9), Offset(0), rules) is E.NOT_LEADER_OR_FOLLOWER
    assert preferred_replica(STATE, Offset(9), "a", IN_RACKS, rules) is None


@pytest.mark.parametrize(("committed", "answer"), [(5, (E.OFFSET_NOT_AVAILABLE, -1)), (6, (E.NONE, 6))])
def test_the_end_that_a_client_is_told(committed: int, answer: tuple[ErrorCode, int]) -> None:
    assert latest_offset(leader(epoch_start=6), log(9, committed=committed), CURRENT) == answer


def test_before_2_2_a_new_leader_told_an_end_that_went_back() -> None:
    assert latest_offset(leader(epoch_start=6), log(9, committed=5), rules_of("2.1")) == (E.NONE, 5)


def test_a_former_life_is_not_listened_to() -> None:
    status = BrokerStatus(epoch=BrokerEpoch(4))
    assert check_broker_epoch(status, BrokerEpoch(4)) is E.NONE
    assert check_broker_epoch(status, BrokerEpoch(3)) is E.STALE_BROKER_EPOCH
    assert check_broker_epoch(None, BrokerEpoch(3)) is E.STALE_BROKER_EPOCH


@pytest.mark.parametrize(("sent", "error"), [(3, E.STALE_BROKER_EPOCH), (4, E.NONE), (5, E.NONE), (-1, E.NONE)])
def test_an_order_counts_for_one_life(sent: int, error: ErrorCode) -> None:
    assert check_control_request(BrokerEpoch(4), BrokerEpoch(sent), CURRENT) is error


@pytest.mark.parametrize(("now", "valid"), [(9_000, True), (10_000, True), (10_001, False)])
def test_a_session_lasts_through_its_last_instant(now: int, valid: bool) -> None:
    assert is_session_valid(TimeMs(1_000), TimeMs(now), DurationMs(9_000)) is valid


@pytest.mark.parametrize(
    ("leaderships", "shutdown", "least", "stops"), [(0, 7, 7, True), (0, 8, 7, False), (1, 7, 7, False)]
)
def test_a_broker_stops_when_everybody_knows(leaderships: int, shutdown: int, least: int, stops: bool) -> None:
    assert may_stop(leaderships=leaderships, shutdown_offset=shutdown, least_metadata_offset=least) is stops


def test_a_clean_stop_is_proved_by_the_epoch() -> None:
    registered = BrokerStatus(epoch=BrokerEpoch(4))
    left = proof_at_stop(BrokerEpoch(4), logs_recovered=True, rules=CURRENT)
    assert is_clean_registration(left, registered)
    assert not is_clean_registration(StopProof(BrokerEpoch(3)), registered)
    assert not is_clean_registration(StopProof(), registered)
    assert not is_clean_registration(left, None)


def test_a_stop_before_the_logs_were_recovered_leaves_no_proof() -> None:
    assert proof_at_stop(BrokerEpoch(4), logs_recovered=False, rules=CURRENT) == StopProof()


def test_until_2_8_the_proof_lay_there_during_the_start() -> None:
    found = StopProof(BrokerEpoch(4))
    assert proof_while_loading(found, CURRENT) == StopProof()
    assert proof_while_loading(found, rules_of("2.7")) == found

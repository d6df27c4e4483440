"""What becomes of a consumer group whose changes are refused, or stand in the log without being replicated in time."""

from __future__ import annotations

import attrs
import pytest

from broker.error_codes import ErrorCode
from broker.group.consumer import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from broker.group.consumer.member import STATIC_LEAVING_EPOCH
from broker.group.members import InstanceId, MemberId
from broker.units import DurationMs, TimeMs
from tests.broker.group.test_service import Driver

SESSION_MS = 45_000
RETRY_MS = 500


def joining(name: str) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        member_id=MemberId(name),
        subscribed_topics=frozenset({"t"}),
        rebalance_timeout_ms=DurationMs(300_000),
        owned=frozenset(),
    )


def store_first(driver: Driver, error: ErrorCode) -> None:
    """Say of the oldest append how it went."""
    append = driver.appends.pop(0)
    driver.take(driver.service.stored(append.token, error, TimeMs(driver.now_ms)))


def test_what_is_refused_is_gone_and_what_was_appended_before_stays() -> None:
    """b's join is refused while a's is not yet replicated: the log holds a, and so does the coordinator."""
    driver = Driver()
    first = driver.send(joining("a"))
    second = driver.send(joining("b"))
    refused = driver.appends.pop(1)
    driver.take(driver.service.stored(refused.token, ErrorCode.NOT_ENOUGH_REPLICAS, TimeMs(0)))
    assert set(driver.service.consumer.group.members) == {"a"}
    store_first(driver, ErrorCode.NONE)
    answers = [driver.replies[ticket] for ticket in (first, second)]
    assert [answer.error for answer in answers if isinstance(answer, ConsumerGroupHeartbeatResponse)] == [
        ErrorCode.NONE,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ]


def test_what_is_not_replicated_in_time_stays_as_it_stays_in_the_log() -> None:
    driver = Driver()
    ticket = driver.send(joining("a"))
    store_first(driver, ErrorCode.REQUEST_TIMED_OUT)
    answer = driver.replies[ticket]
    assert isinstance(answer, ConsumerGroupHeartbeatResponse)
    assert answer.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert set(driver.service.consumer.group.members) == {"a"}


@pytest.mark.parametrize("refused_ms", [SESSION_MS, SESSION_MS + 400])
def test_a_member_whose_end_was_refused_is_removed_half_a_second_later(refused_ms: int) -> None:
    driver = Driver()
    driver.send(joining("a"))
    driver.store()
    driver.at(SESSION_MS)
    assert driver.service.consumer.group.members == {}
    driver.at(refused_ms)
    driver.store(ErrorCode.NOT_ENOUGH_REPLICAS)
    driver.at(refused_ms + RETRY_MS - 1)
    assert set(driver.service.consumer.group.members) == {"a"}
    driver.at(refused_ms + RETRY_MS)
    driver.store()
    assert driver.service.consumer.group.members == {}


def test_a_static_member_that_left_for_a_while_is_removed_as_well_when_its_end_was_refused() -> None:
    """Kafka's session timer is set again after each refusal, whatever the member's epoch."""
    driver = Driver()
    driver.send(attrs.evolve(joining("a"), instance_id=InstanceId("i")))
    driver.store()
    driver.send(
        ConsumerGroupHeartbeatRequest(member_id=MemberId("a"), instance_id=InstanceId("i"), epoch=STATIC_LEAVING_EPOCH)
    )
    driver.store()
    driver.at(SESSION_MS)
    driver.store(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert set(driver.service.consumer.group.members) == {"a"}
    driver.at(SESSION_MS + RETRY_MS)
    driver.store()
    assert driver.service.consumer.group.members == {}

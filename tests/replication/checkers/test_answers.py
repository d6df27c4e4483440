"""Refusals without a reason, and reasons without a refusal, are found (I30); what a healthy broker answers is not."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from broker.error_codes import ErrorCode
from broker.ids import BrokerId, LeaderEpoch, Offset
from broker.units import DurationMs, TimeMs
from log.storage.checkpoints import EpochEntry
from replication.checkers import StepChecker
from replication.checkers.answers import unfounded
from replication.roles.messages import (
    Address,
    ConsumerFetch,
    ConsumerFetchResponse,
    Fetch,
    FetchResponse,
    NodeId,
    Produce,
    ProduceResponse,
)
from replication.roles.outbox import Outbox
from replication.rules.fetch import FetchAnswer, FetchRequest
from replication.rules.partition import EpochEnd
from replication.simulation import quiet
from replication.simulation.cluster import Cluster
from replication.simulation.history import Trace

OPTIONS = quiet(1, DurationMs(8_000))
NONE, NOT_LEADER = ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER
FENCED, UNKNOWN = ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH
OUT_OF_RANGE, NOT_AVAILABLE = ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.OFFSET_NOT_AVAILABLE


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    """A healthy cluster whose partition 0 broker 0 leads in epoch 0, and 1 and 2 follow."""
    made = Cluster(OPTIONS, Trace())
    made.begin()
    made.run_until(TimeMs(5_000))
    return made


def wrongs(cluster: Cluster, broker: int, message: object, *sent: object) -> list[str]:
    """What is wrong with what a broker sent when it had handled a message."""
    out: Any = Outbox()
    out.sent.extend((Address(NodeId(1)), each) for each in sent)
    return [*unfounded(cluster.nodes[BrokerId(broker)], message, out, OPTIONS.settings)]  # type: ignore[arg-type] # Forged.


def fetch(offset: int, *, epoch: int = 0, last: int = 0, replica: int = 1) -> Fetch:
    request = FetchRequest(
        replica=BrokerId(replica),
        offset=Offset(offset),
        leader_epoch=LeaderEpoch(epoch),
        last_fetched_epoch=LeaderEpoch(last),
    )
    return Fetch(0, 7, request)


def fetched(error: ErrorCode, diverging: EpochEnd | None = None) -> FetchResponse:
    return FetchResponse(0, 7, FetchAnswer(error=error, diverging=diverging), b"")


@pytest.mark.parametrize(
    ("broker", "message", "right", "wrong"),
    [
        (0, fetch(0), NONE, FENCED),
        (0, fetch(0), NONE, NOT_LEADER),
        (0, fetch(0), NONE, OUT_OF_RANGE),
        (0, fetch(0, epoch=-1), NONE, FENCED),
        (0, fetch(0, epoch=1), UNKNOWN, NONE),
        (0, fetch(0, epoch=1), UNKNOWN, FENCED),
        (0, fetch(9_999), OUT_OF_RANGE, ErrorCode.KAFKA_STORAGE_ERROR),
        (0, fetch(0, last=5), OUT_OF_RANGE, UNKNOWN),
        (0, fetch(0, replica=4), UNKNOWN, OUT_OF_RANGE),
        (1, fetch(0), NOT_LEADER, NONE),
    ],
)
def test_a_fetch_is_refused_with_a_reason_and_whenever_there_is_one(
    cluster: Cluster, broker: int, message: Fetch, right: ErrorCode, wrong: ErrorCode
) -> None:
    assert wrongs(cluster, broker, message, fetched(right)) == []
    assert len(wrongs(cluster, broker, message, fetched(wrong))) == 1


def test_an_older_epoch_is_fenced_and_told_where_the_logs_part(cluster: Cluster) -> None:
    role = cluster.nodes[BrokerId(0)].role
    assert role is not None
    part = role.roles[0]
    kept = part.state, part.log.state
    end = part.log.log.log_end_offset

    part.state = attrs.evolve(part.state, leader_epoch=LeaderEpoch(3))
    part.log.state = attrs.evolve(
        part.log.state, epochs=(EpochEntry(LeaderEpoch(0), Offset(0)), EpochEntry(LeaderEpoch(3), Offset(2)))
    )
    try:
        assert wrongs(cluster, 0, fetch(0, epoch=2), fetched(FENCED)) == []
        assert len(wrongs(cluster, 0, fetch(0, epoch=2), fetched(UNKNOWN))) == 1
        parted = EpochEnd(LeaderEpoch(0), Offset(2))
        assert wrongs(cluster, 0, fetch(4, epoch=3, last=0), fetched(NONE, parted)) == []
        assert wrongs(cluster, 0, fetch(4, epoch=3, last=2), fetched(NONE, parted)) == []
        for wrong in (EpochEnd(LeaderEpoch(0), Offset(3)), EpochEnd(LeaderEpoch(3), end)):
            assert len(wrongs(cluster, 0, fetch(4, epoch=3, last=0), fetched(NONE, wrong))) == 1
        assert len(wrongs(cluster, 0, fetch(2, epoch=3, last=0), fetched(NONE, parted))) == 1
    finally:
        part.state, part.log.state = kept


@pytest.mark.parametrize(
    ("broker", "offset", "right"),
    [(0, 0, NONE), (1, 0, NONE), (0, 9_999, OUT_OF_RANGE), (1, 9_999, OUT_OF_RANGE)],
)
def test_a_consumer_is_refused_outside_the_log_only(
    cluster: Cluster, broker: int, offset: int, right: ErrorCode
) -> None:
    message = ConsumerFetch(0, 7, Offset(offset))
    for error in (NONE, OUT_OF_RANGE, NOT_AVAILABLE, NOT_LEADER):
        answer = ConsumerFetchResponse(0, 7, error, b"", Offset(0), Offset(0))
        assert bool(wrongs(cluster, broker, message, answer)) is (error is not right)


def refused(error: ErrorCode) -> ProduceResponse:
    return ProduceResponse(0, 7, -1, error, Offset(-1), appended=False)


def test_a_write_is_refused_by_who_does_not_lead_or_is_short_of_replicas(cluster: Cluster) -> None:
    write = Produce(0, 7, -1, b"")
    assert wrongs(cluster, 0, write) == []
    assert len(wrongs(cluster, 0, write, refused(ErrorCode.NOT_ENOUGH_REPLICAS))) == 1
    assert len(wrongs(cluster, 0, write, refused(NOT_LEADER))) == 1
    assert len(wrongs(cluster, 1, write)) == 1
    assert wrongs(cluster, 1, write, refused(NOT_LEADER)) == []
    assert wrongs(cluster, 1, Produce(0, 7, 0, b"")) == []


def test_a_write_to_too_few_in_sync_is_found_unless_it_is_refused(cluster: Cluster) -> None:

    role = cluster.nodes[BrokerId(0)].role
    assert role is not None
    part = role.roles[0]
    kept = part.state
    part.state = attrs.evolve(kept, isr=(BrokerId(0),))
    try:
        write = Produce(0, 7, -1, b"")
        assert len(wrongs(cluster, 0, write)) == 1
        assert wrongs(cluster, 0, write, refused(ErrorCode.NOT_ENOUGH_REPLICAS)) == []
        assert wrongs(cluster, 0, Produce(0, 7, 1, b"")) == []
    finally:
        part.state = kept


def test_the_checker_of_every_step_tells_it(cluster: Cluster) -> None:
    checker = StepChecker(OPTIONS.settings)
    out: Any = Outbox()
    out.sent.append((Address(NodeId(1)), fetched(FENCED)))
    checker.after(cluster, NodeId(0), fetch(0), out)
    assert "I30" in {finding.code for finding in checker.findings}

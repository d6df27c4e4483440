"""Each account sees a model that breaks it: what answers make of logs, restarts, sessions, producers and retention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs
import pytest

import log.partition.retention
import replication.roles.controller
import replication.roles.leader
import replication.rules.fetch
from broker.error_codes import ErrorCode
from broker.ids import BrokerId, LeaderEpoch, Offset
from broker.units import DurationMs, SizeBytes, TimeMs
from log.partition.epoch_cache import LeaderEpochCache
from log.partition.producer_state import ProducerState
from replication.checkers.followers import end_after
from replication.checkers.leaders import wrong_change
from replication.checkers.observed_log import Entry, Last
from replication.checkers.producers import must_accept
from replication.retention import Retention
from replication.roles.messages import AlterPartitionResponse
from replication.rules.alter_partition import Altered, Reaction
from replication.rules.partition import (
    AlterPartitionRequest,
    EpochEnd,
    EpochStart,
    Follower,
    IsrMember,
    LeaderState,
    PartitionEpoch,
    PartitionState,
)
from replication.rules.switches import CURRENT
from replication.simulation import Fault, FaultKind, Options, quiet, run
from replication.simulation.node import Node
from replication.simulation.retention import with_retention

STALE: Final = ErrorCode.STALE_BROKER_EPOCH
QUIET: Final = attrs.evolve(quiet(1, DurationMs(45_000)), is_idempotent=True)
KILLED: Final = (Fault(TimeMs(8_000), FaultKind.KILL, 1, DurationMs(1_000)),)
STOPPED: Final = (Fault(TimeMs(8_000), FaultKind.STOP, 1, DurationMs(1_000)),)
FAILED_OVER: Final = (
    Fault(TimeMs(8_000), FaultKind.KILL, 1, DurationMs(30_000)),
    Fault(TimeMs(9_000), FaultKind.CONTROLLER_FAILOVER, 0),
)
AGED: Final = with_retention(QUIET, Retention(retention_ms=DurationMs(20_000), segment_bytes=SizeBytes(500)))


def codes(plan: tuple[Fault, ...], options: Options = QUIET) -> set[str]:
    return {finding.code for finding in run(options, plan).findings}


def forgetting(kind: type, method: str, forget: Callable[[Any], None]) -> tuple[object, str, object]:
    """Return a patch of a method that forgets something once it is done."""
    real = getattr(kind, method)

    def done(self: Any, *given: Any, **named: Any) -> Any:
        result = real(self, *given, **named)
        forget(self)
        return result

    return kind, method, done


def flush_all(node: Node) -> None:
    node._recovery_points.update((partition, log.log.log_end_offset) for partition, log in node.logs.items())


def _is_out(leader: LeaderState, _log: object, follower: Follower, *_: object) -> bool:
    return leader.pending is None and follower.broker not in leader.isr


Patched = tuple[object, str, object]


@pytest.mark.parametrize(
    ("code", "patched", "plan", "options"),
    [
        ("I21", (ProducerState, "update", lambda *_, **__: None), (), QUIET),
        ("I24", (replication.roles.controller, "check_broker_epoch", lambda *_: STALE), (), QUIET),
        ("I12", (LeaderEpochCache, "truncate_from_start", lambda *_: None), (), AGED),
        ("I27", (replication.roles.leader, "react", lambda leader, *_: (Reaction.IGNORED, leader)), KILLED, QUIET),
        (
            "I27",
            (replication.rules.fetch, "may_join", _is_out),
            KILLED,
            QUIET,
        ),
        ("I33", (replication.rules.fetch, "_with_high_watermark", lambda kept, _: kept), (), QUIET),
        ("I34", forgetting(Node, "kill", lambda node: node._high_watermarks.clear()), KILLED, QUIET),
        ("I34", forgetting(Node, "stop", lambda node: node._high_watermarks.clear()), STOPPED, QUIET),
        ("I34", forgetting(Node, "kill", flush_all), KILLED, QUIET),
        ("I35", (replication.roles.controller, "is_session_valid", lambda *_: True), KILLED, QUIET),
        ("I35", (replication.roles.controller, "has_session", lambda *_, **__: False), FAILED_OVER, QUIET),
        ("K9", (log.partition.retention, "too_old", lambda *_: lambda _: True), (), AGED),
        ("K9", (log.partition.retention, "too_old", lambda *_: lambda _: False), (), AGED),
    ],
)
def test_an_account_sees_a_broken_model(
    monkeypatch: pytest.MonkeyPatch, code: str, patched: Patched, plan: tuple[Fault, ...], options: Options
) -> None:
    assert codes(plan, options) == set()
    monkeypatch.setattr(*patched)
    assert code in codes(plan, options)


EPOCHS: Final = (EpochStart(LeaderEpoch(1), Offset(0)), EpochStart(LeaderEpoch(3), Offset(5)))


@pytest.mark.parametrize(
    ("epoch", "end", "expected"),
    [
        (3, 7, 7),  # The leader's epoch 3 ends earlier than the log's.
        (3, 99, 9),  # Nothing of the log is later.
        (1, 4, 4),  # Epoch 3 goes, and the end of epoch 1.
        (1, 8, 5),  # Epoch 3 goes; the leader has more of epoch 1.
        (2, 3, 5),  # The log lacks epoch 2: where epoch 1 parts is asked for next.
        (0, 2, 0),  # All of the log is later.
        (4, 6, 6),  # All of the log is earlier.
    ],
)
def test_a_diverging_epoch_asks_for_one_end(epoch: int, end: int, expected: int) -> None:
    assert end_after(EPOCHS, 9, EpochEnd(LeaderEpoch(epoch), Offset(end))) == expected


def test_a_producer_goes_on_from_its_last_record_in_the_log() -> None:
    known = {7: Last(4, 10)}
    assert must_accept(known, Entry(0, 1, 7, 5), 0)
    assert not must_accept(known, Entry(0, 1, 7, 4), 0)
    assert not must_accept(known, Entry(0, 1, 7, 5), 11), "it may be forgotten"
    assert must_accept(known, Entry(0, 1, 7, 0, 1), 0), "a newer epoch begins at 0"
    assert not must_accept(known, Entry(0, 1, 7, 5, 1), 0), "a newer epoch begins at 0"
    assert must_accept({7: Last(2**31 - 1, 10, 1)}, Entry(0, 1, 7, 0, 1), 0), "numbers wrap"
    assert must_accept(known, Entry(0, 1, 8, 3), 0)
    assert not must_accept(known, Entry(0, 1, 8, 3), 1), "its records may have been deleted"


@pytest.mark.parametrize(
    ("error", "is_settled"),
    [
        (ErrorCode.INELIGIBLE_REPLICA, True),
        (ErrorCode.INVALID_UPDATE_VERSION, False),
        (ErrorCode.FENCED_LEADER_EPOCH, False),
        (ErrorCode.REQUEST_TIMED_OUT, False),
    ],
)
def test_only_a_change_that_was_certainly_not_made_is_given_up(error: ErrorCode, is_settled: bool) -> None:
    one, two, epoch = BrokerId(1), BrokerId(2), LeaderEpoch(3)
    request = AlterPartitionRequest(
        leader=one, leader_epoch=epoch, partition_epoch=PartitionEpoch(4), isr=(IsrMember(one), IsrMember(two))
    )
    waiting = LeaderState(one, epoch, PartitionEpoch(4), Offset(0), (one,), (Follower(two),), request)
    given_up = attrs.evolve(waiting, pending=None)
    partition = PartitionState(replicas=(one, two), isr=(one,), leader=one, leader_epoch=epoch)
    response = AlterPartitionResponse(0, request, Altered(error, partition))
    right, wrong = (given_up, waiting) if is_settled else (waiting, given_up)
    assert list(wrong_change(waiting, right, response, 0, CURRENT)) == []
    assert len(list(wrong_change(waiting, wrong, response, 0, CURRENT))) == 1

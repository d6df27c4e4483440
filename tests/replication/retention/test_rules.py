"""What a leader makes of an order to delete, what settings are allowed, and how records are known again."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from broker.error_codes import ErrorCode
from broker.errors import UsageError
from broker.ids import Offset
from broker.units import DurationMs, SizeBytes, TimeMs
from log.log_config import LogConfig
from replication.retention import AutoOffsetReset, Retention, identity_of, keyed_record
from replication.rules.partition import LeaderState, LogState
from replication.rules.produce import Deletion, low_watermark, take_order
from tests.replication.builders import follower, leader, moment, statuses

LOG = LogState(Offset(10), Offset(50), Offset(40), ())


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (25, Deletion(ErrorCode.NONE, Offset(25))),
        (40, Deletion(ErrorCode.NONE, Offset(40))),
        (5, Deletion(ErrorCode.NONE, Offset(5))),
        (-1, Deletion(ErrorCode.NONE, Offset(40))),
        (41, Deletion(ErrorCode.OFFSET_OUT_OF_RANGE)),
        (-2, Deletion(ErrorCode.OFFSET_OUT_OF_RANGE)),
    ],
)
def test_what_is_committed_may_be_deleted_and_nothing_else(offset: int, expected: Deletion) -> None:
    assert take_order(LOG, Offset(offset), deletes=True) == expected


def test_a_log_that_is_only_compacted_takes_no_order() -> None:
    assert take_order(LOG, Offset(25), deletes=False) == Deletion(ErrorCode.POLICY_VIOLATION)


def starts(**offsets: int) -> LeaderState:
    """Leader 1, and followers 2 to 4 whose logs begin so."""
    followers = (attrs.evolve(follower(int(name[1:])), start_offset=Offset(each)) for name, each in offsets.items())
    return leader(*followers)


def test_the_low_watermark_is_the_least_start_of_the_replicas_that_are_alive() -> None:
    state = starts(b2=7, b3=3, b4=12)
    assert low_watermark(state, LOG, moment()) == 3
    assert low_watermark(state, LOG, moment(statuses(fenced=(3,)))) == 7
    assert low_watermark(state, LOG, moment(statuses(fenced=(2, 3)))) == LOG.start_offset


def test_a_replica_that_has_not_fetched_yet_holds_the_low_watermark_down() -> None:
    assert low_watermark(starts(b2=-1), LOG, moment()) == -1


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"retention_ms": -2}, "retention.ms is -2; allowed are whole numbers from -1 to 9223372036854775807"),
        ({"segment_bytes": 499}, "segment.bytes is 499; allowed are whole numbers from 500 to 1048576"),
        ({"key_count": 0}, "the number of keys is 0; allowed are whole numbers from 1 to 1000000"),
        ({"deletes": False}, "cleanup.policy is empty; allowed are compact, delete, or both"),
    ],
)
def test_impossible_retention_is_refused(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as refused:
        Retention(**wrong)
    assert str(refused.value) == told


def test_a_log_is_configured_as_retention_says() -> None:
    retention = Retention(retention_ms=DurationMs(7), retention_bytes=SizeBytes(8), compacts=True, deletes=False)
    config = retention.log_config(LogConfig(index_interval_bytes=SizeBytes(77)))
    assert (config.retention_ms, config.retention_bytes, config.compacts, config.deletes) == (7, 8, True, False)
    assert (config.segment_size_bytes, config.index_interval_bytes) == (retention.segment_bytes, 77)


def test_upkeep_tells_what_it_is() -> None:
    assert str(Retention(compacts=True, reset=AutoOffsetReset.EARLIEST)) == (
        "cleanup.policy compact,delete, retention.ms -1, retention.bytes -1, segment.bytes 1000, looked at every "
        "5000 ms, 8 keys; auto.offset.reset earliest"
    )


def test_a_tombstone_is_known_again_by_its_number() -> None:
    records = [keyed_record(number.to_bytes(8, "big"), 3, 4, TimeMs(5)) for number in range(200)]
    assert [identity_of(record) for record in records] == list(range(200))
    assert {record.key for record in records} == {b"key-0", b"key-1", b"key-2"}
    assert 20 < sum(record.value is None for record in records) < 80

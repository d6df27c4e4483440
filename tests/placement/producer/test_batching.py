"""A producer's batches: when they close, when they leave, and what a partitioner does to them."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.entropy import SplitMix64
from broker.errors import UsageError
from broker.ids import BrokerId
from broker.units import DurationMs, SizeBytes
from placement.producer.batching import BATCH_OVERHEAD_BYTES, UNPLACED, Arrivals, ProducerOptions, Sent, send_all
from placement.producer.partitioners import AdaptivePartitioner, Partitioner, RoundRobinPartitioner, StickyPartitioner


def arrivals(*records: tuple[int, int] | tuple[int, int, int]) -> Arrivals:
    """Records as (time, size) or (time, size, partition)."""
    columns = np.array([(*record, UNPLACED)[:3] for record in records], np.int64).reshape(-1, 3)
    return Arrivals(columns[:, 0], columns[:, 1], columns[:, 2])


def sent(
    given_arrivals: Arrivals, *, leaders: tuple[int, ...] = (1,), by: Partitioner | None = None, **named: Any
) -> Sent:
    partitioner = RoundRobinPartitioner() if by is None else by
    return send_all(given_arrivals, tuple(map(BrokerId, leaders)), partitioner, ProducerOptions(**named))


def facts(result: Sent) -> list[tuple[int, int, int, int]]:
    """Each batch as (partition, created, sent, records)."""
    return [(batch.partition, batch.created_ms, batch.sent_ms, batch.record_count) for batch in result.batches]


FULL = SizeBytes(BATCH_OVERHEAD_BYTES + 30)


@pytest.mark.parametrize(
    ("records", "named", "expected"),
    [
        ([(0, 10), (3, 10), (6, 10)], {"linger_ms": 5}, [(0, 0, 5, 2), (0, 6, 11, 1)]),
        ([(0, 10), (1, 20), (2, 10)], {"linger_ms": 50, "batch_size_bytes": FULL}, [(0, 0, 1, 2), (0, 2, 52, 1)]),
        ([(0, 20), (1, 20)], {"linger_ms": 50, "batch_size_bytes": FULL}, [(0, 0, 1, 1), (0, 1, 51, 1)]),
        ([(0, 500)], {"linger_ms": 50, "batch_size_bytes": SizeBytes(100)}, [(0, 0, 0, 1)]),
        (
            [(0, 10, 0), (3, 10, 1), (3, 10, 2)],
            {"linger_ms": 5, "leaders": (1, 1, 2)},
            [(0, 0, 5, 1), (1, 3, 5, 1), (2, 3, 8, 1)],
        ),
        (
            [(0, 100, 0), (0, 100, 1)],
            {"linger_ms": 0, "leaders": (1, 1), "request_size_bytes_max": SizeBytes(50)},
            [(0, 0, 0, 1), (1, 0, 0, 1)],
        ),
        (
            [(0, 10), (1, 10), (2, 10)],
            {"linger_ms": 0, "in_flight_count_max": 1, "round_trip_ms": DurationMs(10)},
            [(0, 0, 0, 1), (0, 1, 10, 2)],
        ),
    ],
    ids=[
        "a batch leaves when its first record has waited for linger.ms",
        "a full batch does not wait",
        "a record that does not fit closes the batch and begins another",
        "a record larger than a batch has one of its own",
        "a request takes the waiting batches of the same broker along",
        "a request is no larger than its limit, but takes one batch always",
        "batches wait while as many requests as allowed are on their way",
    ],
)
def test_when_batches_close_and_leave(
    records: list[tuple[int, int]], named: dict[str, Any], expected: list[tuple[int, int, int, int]]
) -> None:
    result = sent(arrivals(*records), **named)
    assert facts(result) == expected
    assert result.request_count == min(len(records), 2)
    assert result.waited_ms.max() == max(left - created for _, created, left, _ in expected)


def test_the_example_of_the_module_holds() -> None:
    moment = arrivals(*[(0, 100)] * 100)
    leaders = tuple(range(10))
    assert [batch.record_count for batch in sent(moment, leaders=leaders).batches] == [10] * 10
    sticky = sent(moment, leaders=leaders, by=StickyPartitioner(SplitMix64(1)))
    assert [batch.record_count for batch in sticky.batches] == [100]


def test_sticky_and_adaptive_partitioning_make_fewer_and_larger_batches_than_round_robin() -> None:
    stream = arrivals(*((time, 100) for time in range(2000) for _ in range(2)))
    named: dict[str, Any] = {"leaders": (1, 2, 3) * 4, "linger_ms": DurationMs(5)}
    dealt = sent(stream, **named)
    sticky = sent(stream, by=StickyPartitioner(SplitMix64(1)), **named)
    adaptive = sent(stream, by=AdaptivePartitioner(SplitMix64(1), SizeBytes(16384)), **named)
    assert sticky.records_per_batch > 1.5 * dealt.records_per_batch
    assert adaptive.records_per_batch > 1.5 * dealt.records_per_batch
    assert sticky.request_count < dealt.request_count


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 400), st.integers(-1, 3)), max_size=60).map(sorted),
    st.integers(0, 20),
    st.integers(0, 800),
    st.integers(1, 3),
    st.sampled_from(["round-robin", "sticky", "adaptive"]),
)
def test_every_record_leaves_once_in_order_and_no_batch_is_too_large(
    records: list[tuple[int, int, int]], linger_ms: int, batch_size_bytes: int, in_flight_count_max: int, name: str
) -> None:
    by: dict[str, Partitioner] = {
        "round-robin": RoundRobinPartitioner(),
        "sticky": StickyPartitioner(SplitMix64(7)),
        "adaptive": AdaptivePartitioner(SplitMix64(7), SizeBytes(batch_size_bytes + 1)),
    }
    result = sent(
        arrivals(*records),
        leaders=(1, 2, 1, 2),
        by=by[name],
        linger_ms=DurationMs(linger_ms),
        batch_size_bytes=SizeBytes(batch_size_bytes),
        in_flight_count_max=in_flight_count_max,
    )
    assert sum(batch.record_count for batch in result.batches) == len(records) == len(result.waited_ms)
    assert sum(batch.size_bytes - BATCH_OVERHEAD_BYTES for batch in result.batches) == sum(
        size for _, size, _ in records
    )
    for batch in result.batches:
        assert batch.record_count == 1 or batch.size_bytes <= batch_size_bytes
        assert batch.sent_ms >= batch.created_ms
    for partition in range(4):
        created = [batch.created_ms for batch in result.batches if batch.partition == partition]
        assert created == sorted(created)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("linger_ms", -1, "^linger_ms is -1; at least 0 is allowed$"),
        ("in_flight_count_max", 0, "^in_flight_count_max is 0; at least 1 is allowed$"),
    ],
)
def test_impossible_options_are_refused(field: str, value: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        attrs.evolve(ProducerOptions(), **{field: value})


def test_a_record_for_a_partition_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^a record names a partition outside 0 to 0$"):
        sent(arrivals((0, 10, 1)))


@pytest.mark.parametrize(
    ("times", "sizes", "message"),
    [([2, 1], [1, 1], "must not fall"), ([1, 1], [1, 0], "at least 1 byte"), ([1], [], "differ")],
)
def test_arrivals_that_make_no_sense_are_refused(times: list[int], sizes: list[int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Arrivals(np.array(times, np.int64), np.array(sizes, np.int64), np.full(len(times), -1, np.int64))

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


def test_a_batch_leaves_when_its_first_record_has_waited_for_linger() -> None:
    result = sent(arrivals((0, 10), (3, 10), (6, 10)), linger_ms=DurationMs(5))
    assert facts(result) == [(0, 0, 5, 2), (0, 6, 11, 1)]
    assert result.waited_ms.tolist() == [5, 2, 5]


def test_a_full_batch_does_not_wait() -> None:
    size = SizeBytes(BATCH_OVERHEAD_BYTES + 30)
    result = sent(arrivals((0, 10), (1, 20), (2, 10)), batch_size_bytes=size, linger_ms=DurationMs(50))
    assert facts(result) == [(0, 0, 1, 2), (0, 2, 52, 1)]
    assert result.batches[0].size_bytes == size


def test_a_record_that_does_not_fit_closes_the_batch_and_begins_another() -> None:
    size = SizeBytes(BATCH_OVERHEAD_BYTES + 30)
    result = sent(arrivals((0, 20), (1, 20)), batch_size_bytes=size, linger_ms=DurationMs(50))
    assert facts(result) == [(0, 0, 1, 1), (0, 1, 51, 1)]


def test_a_record_larger_than_a_batch_has_one_of_its_own() -> None:
    result = sent(arrivals((0, 500)), batch_size_bytes=SizeBytes(100), linger_ms=DurationMs(50))
    assert facts(result) == [(0, 0, 0, 1)]


def test_a_request_takes_the_waiting_batches_of_the_same_broker_along() -> None:
    result = sent(arrivals((0, 10, 0), (3, 10, 1), (3, 10, 2)), leaders=(1, 1, 2), linger_ms=DurationMs(5))
    assert facts(result) == [(0, 0, 5, 1), (1, 3, 5, 1), (2, 3, 8, 1)]
    assert result.request_count == 2


def test_a_request_is_no_larger_than_its_limit_but_takes_one_batch_always() -> None:
    result = sent(
        arrivals((0, 100, 0), (0, 100, 1)),
        leaders=(1, 1),
        linger_ms=DurationMs(0),
        request_size_bytes_max=SizeBytes(50),
    )
    assert (facts(result), result.request_count) == ([(0, 0, 0, 1), (1, 0, 0, 1)], 2)


def test_batches_wait_while_as_many_requests_as_allowed_are_on_their_way() -> None:
    result = sent(
        arrivals((0, 10), (1, 10), (2, 10)),
        linger_ms=DurationMs(0),
        in_flight_count_max=1,
        round_trip_ms=DurationMs(10),
    )
    assert facts(result) == [(0, 0, 0, 1), (0, 1, 10, 2)]


def test_the_example_of_the_module_holds() -> None:
    moment = arrivals(*[(0, 100)] * 100)
    leaders = tuple(range(10))
    assert [batch.record_count for batch in sent(moment, leaders=leaders).batches] == [10] * 10
    sticky = sent(moment, leaders=leaders, by=StickyPartitioner(SplitMix64(1)))
    assert [batch.record_count for batch in sticky.batches] == [100]


@pytest.mark.parametrize("linger_ms", [0, 5, 50])
def test_sticky_and_adaptive_partitioning_make_fewer_and_larger_batches_than_round_robin(linger_ms: int) -> None:
    stream = arrivals(*((time, 100) for time in range(2000) for _ in range(2)))
    named: dict[str, Any] = {"leaders": (1, 2, 3) * 4, "linger_ms": DurationMs(linger_ms)}
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

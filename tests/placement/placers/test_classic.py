"""The classic placer: Kafka's layout, its refusals in order, and the compiled loop equal to the readable one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cluster import BrokerView, Int32Array
from broker.entropy import JavaRandom
from broker.errors import (
    AdminOperationError,
    IndexOutOfBoundsError,
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    RefusedError,
    UsageError,
)
from broker.ids import BrokerId
from placement.placers.broker_columns import BrokerColumns
from placement.placers.classic import (
    ClassicPlacer,
    ClassicStart,
    Ring,
    compiled_rows,
    grow_topic,
    rack_alternated_brokers,
    readable_rows,
    ring_of,
)
from placement.spec import PlacementSpec


def brokers(*racks: str | None) -> list[BrokerView]:
    return [BrokerView(id=BrokerId(number), rack=rack) for number, rack in enumerate(racks)]


def place(given: list[BrokerView], count: int, factor: int, start: int | None, first: int = 0) -> Int32Array:
    return ClassicPlacer(start).place(PlacementSpec(first, count, factor), given, JavaRandom(1))


def test_six_brokers_from_the_fifth_are_led_in_turn_and_followed_at_a_growing_distance() -> None:
    rows = place(brokers(*[None] * 6), 10, 3, 4)
    assert rows.dtype == np.int32
    assert rows[:, 0].tolist() == [4, 5, 0, 1, 2, 3, 4, 5, 0, 1]
    assert rows[:2].tolist() == [[4, 3, 5], [5, 4, 0]]
    assert rows[6].tolist() == [4, 5, 0]  # The first round is over: the shift is 5, a full tour of the others.


def test_a_ring_takes_one_broker_of_each_rack_in_turn() -> None:
    # Kafka's own example: rack1 {0, 1, 2}, rack2 {3, 4, 5}, rack3 {6, 7, 8}; here with unequal racks, shuffled.
    racks = {0: "b", 1: "a", 2: "a", 3: "c", 4: "a", 5: "b"}
    shuffled = [BrokerView(id=BrokerId(number), rack=racks[number]) for number in (5, 2, 0, 4, 3, 1)]
    assert rack_alternated_brokers(shuffled) == (1, 0, 3, 2, 5, 4)


def test_racks_sort_by_utf_16_unit() -> None:
    # U+FF5E is one unit, above the surrogates that U+1F600 begins with.
    assert rack_alternated_brokers(brokers("～", "\U0001f600", "_", "9", "10")) == (4, 3, 2, 1, 0)


def test_the_order_of_brokers_matters_without_racks_and_not_with_them() -> None:
    plain, racked = brokers(*[None] * 5), brokers(*"abcab")
    assert place(plain[::-1], 1, 1, 0).tolist() == [[4]]
    assert (place(racked, 20, 3, 2) == place(racked[::-1], 20, 3, 2)).all()


@pytest.mark.parametrize("start", [None, -1, -7])
def test_without_a_start_index_it_is_drawn_first_and_the_shift_second(start: int | None) -> None:
    random, twin = JavaRandom(9), JavaRandom(9)
    start_index, shift = twin.next_int_bound(7), twin.next_int_bound(7)
    spec = PlacementSpec(0, 20, 3)
    rows = ClassicPlacer(start).place(spec, brokers(*[None] * 7), random)
    ring = ring_of(BrokerColumns.of(brokers(*[None] * 7)))
    assert (rows == readable_rows(spec, ring, ClassicStart(start_index=start_index, shift=shift))).all()
    assert random.state == twin.state


@pytest.mark.parametrize(
    ("racks", "count", "factor", "error", "message"),
    [
        ((), 0, 0, InvalidPartitionsError, "Number of partitions must be larger than 0."),
        ((), 1, 0, InvalidReplicationFactorError, "Replication factor must be larger than 0."),
        ((), 1, 1, InvalidReplicationFactorError, "Replication factor: 1 larger than available brokers: 0."),
        (("a", None), 1, 3, InvalidReplicationFactorError, "Replication factor: 3 larger than available brokers: 2."),
        (
            ("a", None),
            1,
            1,
            AdminOperationError,
            "Not all brokers have rack information for replica rack aware assignment.",
        ),
    ],
)
def test_refusals_come_in_kafka_s_order_and_words_and_draw_nothing(
    racks: tuple[str | None, ...], count: int, factor: int, error: type[RefusedError], message: str
) -> None:
    random = JavaRandom(5)
    with pytest.raises(error) as refusal:
        ClassicPlacer().place(PlacementSpec(0, count, factor), brokers(*racks), random)
    assert str(refusal.value) == message
    assert random.state == JavaRandom(5).state


def test_a_count_beyond_any_cluster_is_refused_before_memory_is_taken() -> None:
    with pytest.raises(UsageError, match=r"^partition count is 1000000000000; the largest allowed is 10000000$"):
        place(brokers(None), 10**12, 1, 0)
    with pytest.raises(UsageError, match=r"^last partition is 2147483648; the largest allowed is 2147483647$"):
        place(brokers(None), 2, 1, 0, first=2**31 - 1)


def test_a_broker_listed_twice_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^broker 0 is listed more than once$"):
        place([*brokers(None), *brokers(None)], 1, 1, 0)


def test_a_sum_below_zero_with_racks_ends_where_kafka_gets_after_a_minute() -> None:
    brokers = [BrokerView(id=BrokerId(number), rack=rack) for number, rack in enumerate("aba")]
    placed = ClassicPlacer(fixed_start_index=1_073_741_825).place(PlacementSpec(0, 1, 2), brokers, JavaRandom(0))
    assert placed.tolist() == [[2, 1]]  # Kafka 4.0.1 needed 71 s for this answer.


def test_a_start_index_that_overflows_points_before_the_ring_as_in_java() -> None:
    with pytest.raises(IndexOutOfBoundsError) as refusal:
        place(brokers(*[None] * 5), 2, 1, 2**31 - 1)
    # 2^31 - 1 + 1 wraps to -2^31, and -2147483648 % 5 is -3 in Java.
    assert str(refusal.value) == "Index -3 out of bounds for length 5"
    assert refusal.value.kafka_class == "java.lang.IndexOutOfBoundsException"


def test_a_start_index_beyond_java_s_ints_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"^start index is 2147483648; allowed are whole numbers from 0 to 2147483647$"
    ):
        place(brokers(None), 1, 1, 2**31)


def test_growth_starts_at_the_leader_of_partition_0_and_restarts_the_shift() -> None:
    given = brokers(*[None] * 4)
    existing = place(given, 5, 2, 2)
    added = grow_topic("t", existing, 10, given[::-1])
    assert (added == place(given, 5, 2, 2, first=5)).all()
    assert added.tolist() != place(given, 10, 2, 2)[5:].tolist()


def test_growth_after_the_first_leader_left_starts_at_the_next_broker_or_at_the_first() -> None:
    given = brokers(*[None] * 4)
    assert grow_topic("t", np.array([[1, 2]], dtype=np.int32), 2, [given[0], *given[2:]])[0, 0] == 3
    assert grow_topic("t", np.array([[9, 2]], dtype=np.int32), 2, given)[0, 0] == 1


def test_growth_takes_the_factor_of_partition_0_pads_not_counted() -> None:
    assert grow_topic("t", np.array([[1, 2, -1], [1, 2, 3]], dtype=np.int32), 3, brokers(*[None] * 4)).shape == (1, 2)


def test_growth_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidPartitionsError) as refusal:
        grow_topic("t", np.array([[0]], dtype=np.int32), 1, brokers(None))
    assert str(refusal.value) == (
        "The number of partitions for a topic can only be increased. "
        "Topic t currently has 1 partitions, 1 would not be an increase."
    )
    with pytest.raises(UsageError, match=r"^topic t has no partition 0 to take the replication factor from$"):
        grow_topic("t", np.empty((0, 1), dtype=np.int32), 1, brokers(None))


@st.composite
def calls_on_one_ring(draw: st.DrawFn) -> tuple[Ring, PlacementSpec, ClassicStart]:
    count = draw(st.integers(1, 9))
    rack = st.none() if draw(st.booleans()) else st.sampled_from("abcd")
    views = brokers(*draw(st.lists(rack, min_size=count, max_size=count)))
    numbers = st.integers(0, 3 * count)
    spec = draw(st.builds(PlacementSpec, numbers, st.integers(1, 100), st.integers(1, count)))
    return ring_of(BrokerColumns.of(views)), spec, draw(st.builds(ClassicStart, start_index=numbers, shift=numbers))


@given(calls_on_one_ring())
def test_the_compiled_loop_equals_the_readable_rows(drawn: tuple[Ring, PlacementSpec, ClassicStart]) -> None:
    ring, spec, start = drawn
    places = np.arange(len(ring.positions), dtype=np.int32)
    assert compiled_rows(spec, ring, start, places).tolist() == readable_rows(spec, ring, start).tolist()

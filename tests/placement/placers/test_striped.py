"""The striped placer: its layout, its draws and refusals in order, and the compiled loop equal to the readable one."""

from __future__ import annotations

import subprocess
import sys

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.cluster import BrokerView, Int32Array
from broker.entropy import JAVA_INCREMENT, JAVA_MULTIPLIER, JavaRandom, RandomSource, SplitMix64
from broker.errors import IllegalCapacityError, InvalidReplicationFactorError, RefusedError, UsageError
from broker.ids import BrokerId
from broker.releases import Release
from placement.placers.broker_columns import BrokerColumns, PlacementCalls
from placement.placers.striped import (
    StripedPlacer,
    StripeLayout,
    Stripes,
    readable_rows,
    striped_positions,
    striped_topics,
)
from placement.spec import PlacementSpec


class Zeros:
    """Draws nothing but 0 and shuffles nothing, so that a layout shows itself; counts what is asked of it."""

    def __init__(self) -> None:
        self.bounds: list[int] = []
        self.shuffled: list[list[int]] = []

    def next_int(self) -> int:
        return 0

    def next_int_bound(self, bound: int) -> int:
        self.bounds.append(bound)
        return 0

    def shuffle(self, items: list[int]) -> None:
        self.shuffled.append(list(items))


def brokers(racks: str, fenced: str = "") -> list[BrokerView]:
    """One broker a letter of `racks` ("-" for none), those listed in `fenced` fenced."""
    return [
        BrokerView(id=BrokerId(number), rack=None if rack == "-" else rack, fenced=str(number) in fenced)
        for number, rack in enumerate(racks)
    ]


def place(given: list[BrokerView], count: int, factor: int, entropy: RandomSource) -> Int32Array:
    return StripedPlacer().place(PlacementSpec(0, count, factor), given, entropy)


def test_partitions_stripe_over_racks_and_within_racks_over_brokers() -> None:
    rows = place(brokers("aabbcc"), 4, 3, Zeros())
    assert rows.dtype == np.int32
    assert rows.tolist() == [[0, 2, 4], [3, 5, 1], [4, 0, 2], [1, 3, 5]]


def test_a_fenced_broker_serves_when_its_rack_has_no_other_and_never_leads() -> None:
    rows = place(brokers("aab", fenced="2"), 4, 2, Zeros())
    assert rows.tolist() == [[0, 2], [1, 2], [0, 2], [1, 2]]


def test_the_absent_rack_is_a_rack_and_the_first() -> None:
    assert place(brokers("a-"), 2, 2, Zeros()).tolist() == [[1, 0], [0, 1]]


def test_offsets_are_drawn_for_each_list_in_hash_order_then_for_the_ring() -> None:
    zeros = Zeros()
    # "p" and the absent rack share bin 0 of 16, in the order met; "a" is in bin 1. Fenced before unfenced, empty none.
    place(brokers("papp-aaa", fenced="0567"), 1, 1, zeros)
    assert zeros.bounds == [1, 2, 1, 3, 1, 3]


def test_a_full_round_shuffles_the_ring_then_each_list_in_hash_order() -> None:
    zeros = Zeros()
    place(brokers("aab", fenced="1"), 2, 1, zeros)
    assert zeros.shuffled == []
    place(brokers("aab", fenced="1"), 3, 1, zeros)
    assert zeros.shuffled == [[0, 1], [1], [0], [], [2]]


def test_with_one_unfenced_broker_nothing_is_ever_shuffled() -> None:
    zeros = Zeros()
    assert place(brokers("ab", fenced="1"), 5, 2, zeros).tolist() == [[0, 1]] * 5
    assert zeros.shuffled == []


NO_BROKER = "All brokers are currently fenced, or have all their log directories cordoned."


@pytest.mark.parametrize(
    ("racks", "fenced", "count", "factor", "error", "message"),
    [
        (
            "",
            "",
            -1,
            0,
            InvalidReplicationFactorError,
            "Invalid replication factor 0: the replication factor must be positive.",
        ),
        ("", "", -1, 1, InvalidReplicationFactorError, NO_BROKER),
        ("ab", "01", -1, 3, InvalidReplicationFactorError, NO_BROKER),
        (
            "ab",
            "0",
            -1,
            3,
            InvalidReplicationFactorError,
            "The target replication factor of 3 cannot be reached because only 2 broker(s) are registered "
            "or some brokers have all their log directories cordoned.",
        ),
        ("ab", "0", -2, 2, IllegalCapacityError, "Illegal Capacity: -2"),
    ],
)
def test_refusals_come_in_kafka_s_order_and_words_after_the_first_draws(
    racks: str, fenced: str, count: int, factor: int, error: type[RefusedError], message: str
) -> None:
    given, drawn = brokers(racks, fenced), JavaRandom(5)
    columns = BrokerColumns.of(given)
    StripeLayout.drawn(columns, drawn)
    placing, positioning = JavaRandom(5), JavaRandom(5)
    with pytest.raises(error) as refusal:
        place(given, count, factor, placing)
    assert str(refusal.value) == message
    with pytest.raises(error) as refusal:
        striped_positions(PlacementSpec(0, count, factor), columns, positioning)
    assert str(refusal.value) == message
    assert placing.state == positioning.state == drawn.state


@pytest.mark.parametrize(
    ("racks", "factor", "message"),
    [
        ("", 1, "All brokers are currently fenced."),
        ("a", 2, "The target replication factor of 2 cannot be reached because only 1 broker(s) are registered."),
    ],
)
def test_before_4_3_no_directory_can_be_cordoned(racks: str, factor: int, message: str) -> None:
    with pytest.raises(InvalidReplicationFactorError) as refusal:
        StripedPlacer(Release("4.2")).place(PlacementSpec(0, 1, factor), brokers(racks), JavaRandom(1))
    assert str(refusal.value) == message


def test_a_count_beyond_any_cluster_is_refused_before_memory_is_taken() -> None:
    with pytest.raises(UsageError, match=r"^partition count is 1000000000000; the largest allowed is 10000000$"):
        place(brokers("a"), 10**12, 1, JavaRandom(1))


def test_another_generator_takes_the_readable_path_at_any_size() -> None:
    given, random, twin = brokers("abab"), SplitMix64(3), SplitMix64(3)
    spec, columns = PlacementSpec(0, 10_001, 2), BrokerColumns.of(given)
    rows = StripedPlacer().place(spec, given, random)
    assert (rows == columns.ids[readable_rows(spec, StripeLayout.drawn(columns, twin), twin)]).all()
    assert random.next_int() == twin.next_int()


def random_about_to_draw(bits: int) -> JavaRandom:
    """A generator whose next 31 bits are `bits`."""
    random = JavaRandom(0)
    random.state = ((bits << 17) - JAVA_INCREMENT) * pow(JAVA_MULTIPLIER, -1, 1 << 48) % (1 << 48)
    return random


def test_a_draw_from_the_last_incomplete_run_is_drawn_again_on_both_paths() -> None:
    # nextInt(3) rejects 2^31 - 1, whose remainder is 1; 31 bits later comes 554,899,859, whose remainder is 2.
    spec, columns, bits = PlacementSpec(0, 1, 1), BrokerColumns.of(brokers("aaa")), 2**31 - 1
    compiled, readable, stepped = (random_about_to_draw(bits) for _ in range(3))
    assert striped_positions(spec, columns, compiled).tolist() == [[2]]
    assert readable_rows(spec, StripeLayout.drawn(columns, readable), readable).tolist() == [[2]]
    for _ in range(3):  # The one rejected, the one taken, and one for the ring of one rack.
        stepped.next_int()
    assert compiled.state == readable.state == stepped.state


@st.composite
def calls_on_some_brokers(draw: st.DrawFn) -> tuple[BrokerColumns, list[PlacementSpec]]:
    racks = draw(st.text("abcp-", min_size=1, max_size=9))
    fenced = draw(st.sets(st.integers(0, len(racks) - 1), max_size=len(racks) - 1))
    views = brokers(racks, "".join(map(str, sorted(fenced))))
    columns = BrokerColumns.of(draw(st.permutations(views)))
    specs = st.builds(PlacementSpec, st.just(0), st.integers(0, 40), st.integers(1, len(racks)))
    return columns, draw(st.lists(specs, min_size=1, max_size=3))


@settings(max_examples=30)
@given(calls_on_some_brokers(), st.integers(-(2**63), 2**63 - 1))
def test_the_compiled_loop_equals_the_readable_rows_and_leaves_the_generator_alike(
    drawn: tuple[BrokerColumns, list[PlacementSpec]], seed: int
) -> None:
    columns, specs = drawn
    together, single, readable = JavaRandom(seed), JavaRandom(seed), JavaRandom(seed)
    rows = striped_topics(
        PlacementCalls(
            start_partitions=[0] * len(specs),
            partition_counts=[spec.partition_count for spec in specs],
            replication_factors=[spec.replication_factor for spec in specs],
        ),
        Stripes.of(columns, np.arange(columns.count, dtype=np.int32)),
        together,
    )
    row = 0
    for spec in specs:
        expected = readable_rows(spec, StripeLayout.drawn(columns, readable), readable)
        assert (striped_positions(spec, columns, single) == expected).all()
        answer = rows[row : row + spec.partition_count]
        assert (answer[:, : spec.replication_factor] == expected).all()
        assert (answer[:, spec.replication_factor :] == -1).all()
        row += spec.partition_count
    assert together.state == single.state == readable.state


def test_calls_in_one_pass_are_refused_before_anything_is_drawn() -> None:
    columns, random = BrokerColumns.of(brokers("ab")), JavaRandom(2)
    calls = PlacementCalls(start_partitions=[0, 0], partition_counts=[1, 1], replication_factors=[1, 3])
    with pytest.raises(InvalidReplicationFactorError, match="factor of 3 cannot be reached"):
        striped_topics(calls, Stripes.of(columns, columns.ids), random)
    assert random.state == JavaRandom(2).state


@pytest.mark.parametrize("count", [3, 2_000])
def test_cordoned_brokers_get_nothing_since_4_3(count: int) -> None:
    given = brokers("aabb")
    given[1] = attrs.evolve(given[1], cordoned=True)
    spec, without = PlacementSpec(0, count, 3), [given[0], *given[2:]]
    rows = StripedPlacer().place(spec, given, JavaRandom(5))
    assert (rows == StripedPlacer().place(spec, without, JavaRandom(5))).all()
    before = StripedPlacer(Release("4.2")).place(spec, given, JavaRandom(5))
    assert (before == StripedPlacer().place(spec, brokers("aabb"), JavaRandom(5))).all()


@pytest.mark.parametrize("release", ["3.9", "4.3"])
def test_brokers_in_controlled_shutdown_get_nothing_until_they_are_fenced(release: str) -> None:
    given, spec = brokers("aabb"), PlacementSpec(0, 30, 3)
    placer = StripedPlacer(Release(release))
    given[1] = attrs.evolve(given[1], in_controlled_shutdown=True)
    rows = placer.place(spec, given, JavaRandom(5))
    assert (rows == placer.place(spec, [given[0], *given[2:]], JavaRandom(5))).all()
    given[1] = attrs.evolve(given[1], fenced=True)
    fenced = [given[0], BrokerView(id=given[1].id, rack=given[1].rack, fenced=True), *given[2:]]
    rows = placer.place(spec, given, JavaRandom(5))
    assert (rows == placer.place(spec, fenced, JavaRandom(5))).all()


def test_importing_the_placers_does_not_import_numba() -> None:
    check = (
        "import placement.placers.classic, placement.placers.striped, placement.balance.topic_spread, sys;"
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_more_than_is_ever_built_is_refused_before_memory_is_taken() -> None:
    def calls(count: int, factor: int) -> PlacementCalls:
        numbers = [2_000_000_000 if count < 0 else count] * 2
        return PlacementCalls(start_partitions=[0, 0], partition_counts=numbers, replication_factors=[factor, 1])

    message = r"^20000000 partitions of factor 1 are asked for at once; allowed are 10000000 partitions and 200000000"
    with pytest.raises(UsageError, match=message):
        calls(10_000_000, 1).empty_rows()
    with pytest.raises(UsageError, match=r"^4000000000 partitions of factor 3 are asked for at once"):
        calls(-1, 3).empty_rows()
    assert calls(2, 3).empty_rows().tolist() == [[-1, -1, -1]] * 4

"""The herd and the split brain, counted."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.entropy import SplitMix64
from broker.errors import UsageError
from broker.group.zookeeper import Herd, HerdOptions
from broker.group.zookeeper.herd import range_of
from broker.units import DurationMs
from broker.zookeeper import Session


def settled(**named: int) -> Herd:
    herd = Herd(HerdOptions(retry_count_max=100, **named), SplitMix64(1))  # type: ignore[arg-type]  # The names are checked by attrs.
    herd.start()
    return herd


def test_left_alone_the_group_owns_every_partition_in_ranges() -> None:
    herd = settled(consumer_count=4, partition_count=10)
    assert [herd.owners()[partition] for partition in range(10)] == [
        *["c0000"] * 3, *["c0001"] * 3, *["c0002"] * 2, *["c0003"] * 2
    ]  # fmt: skip


def test_one_consumer_that_dies_wakes_all_the_others() -> None:
    herd = settled(consumer_count=20)
    herd.crash("c0007")
    report = herd.settle()
    assert report.woken_count == 19
    assert report.rebalance_count >= 19
    assert set(herd.owners()) == set(range(60))
    assert report.settled_ms >= 6000
    assert report.unowned_partition_ms >= 3 * 6000  # Its three partitions, until ZooKeeper has noticed.


@pytest.mark.parametrize("happening", ["all come", "one dies"])
def test_the_reads_grow_with_the_square_of_the_group(happening: str) -> None:
    reads = []
    for count in (10, 40):
        herd = Herd(HerdOptions(consumer_count=count, partition_count=2 * count, retry_count_max=100), SplitMix64(1))
        report = herd.start()
        if happening == "one dies":
            herd.crash("c0000")
            report = herd.settle()
        reads.append(report.read_count)
    assert reads[1] > 12 * reads[0]


def test_consumers_that_have_read_different_groups_claim_what_others_have_not_let_go() -> None:
    herd = settled(consumer_count=20, notice_ms=500)
    herd.join("c0003x")
    report = herd.settle()
    assert report.disagreement_count > 0
    assert report.conflict_count > 0
    assert report.unowned_partition_ms > 60 * 500


def test_who_fails_too_often_owns_nothing_and_its_partitions_are_nobodys() -> None:
    herd = Herd(HerdOptions(consumer_count=30, notice_ms=DurationMs(500), retry_count_max=1), SplitMix64(3))
    report = herd.start()
    assert report.failed_consumer_count > 0
    assert len(herd.owners()) < 60


def test_the_same_seed_is_the_same_run() -> None:
    reports = [Herd(HerdOptions(consumer_count=15), SplitMix64(9)).start() for _ in range(2)]
    assert reports[0] == reports[1] != Herd(HerdOptions(consumer_count=15), SplitMix64(10)).start()


@given(st.integers(1, 12), st.integers(1, 30), st.integers(0, 2**32))
def test_no_partition_ever_has_two_owners(consumer_count: int, partition_count: int, seed: int) -> None:
    options = HerdOptions(consumer_count=consumer_count, partition_count=partition_count)
    herd = Herd(options, SplitMix64(seed))
    herd.start()
    held = [partition for consumer in herd._consumers.values() for partition in consumer.owned]
    assert len(held) == len(set(held))


@given(st.integers(1, 20), st.integers(1, 50))
def test_ranges_cover_every_partition_once(consumer_count: int, partition_count: int) -> None:
    ranges = [range_of(place, consumer_count, partition_count) for place in range(consumer_count)]
    assert [partition for start, end in ranges for partition in range(start, end)] == list(range(partition_count))
    assert max(end - start for start, end in ranges) - min(end - start for start, end in ranges) <= 1


def test_impossible_options_are_refused() -> None:
    with pytest.raises(UsageError, match=r"^consumer_count is 0; at least 1 is allowed$"):
        HerdOptions(consumer_count=0)


def test_a_consumer_that_may_try_once_fails_at_its_first_conflict() -> None:
    report = Herd(HerdOptions(consumer_count=30, notice_ms=DurationMs(500), retry_count_max=1), SplitMix64(3)).start()
    assert report.failed_consumer_count == report.conflict_count > 0


def test_a_group_that_is_left_alone_after_a_report_has_nothing_to_report() -> None:
    report = settled(consumer_count=4).settle()
    assert set(attrs.astuple(report)) == {0}


def test_the_first_active_consumer_is_one_that_has_not_given_up() -> None:
    herd = settled(consumer_count=3)
    assert herd.first_active() == "c0000"
    herd._consumers[Session("c0000")].has_failed = True
    assert herd.first_active() == "c0001"


def test_a_herd_begins_at_time_zero_and_who_is_woken_counts_its_attempts_anew() -> None:
    assert Herd(HerdOptions(), SplitMix64(1)).now_ms == 0
    herd = settled(consumer_count=3)
    consumer = herd._consumers[Session("c0001")]
    consumer.attempt = 7
    herd._begin(consumer)
    assert consumer.attempt == 0


def test_a_consumer_that_dies_as_it_begins_reads_nothing_and_claims_nothing() -> None:
    herd = settled(consumer_count=2, partition_count=4)
    herd.join("x")
    herd.crash("x")
    herd.settle()
    assert {str(owner) for owner in herd.owners().values()} == {"c0000", "c0001"}
    assert herd._consumers[Session("x")].view == ()

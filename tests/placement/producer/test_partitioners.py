"""The partitions of records without keys: counted, sticky and adaptive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.entropy import SplitMix64
from broker.errors import UsageError
from broker.ids import PartitionId
from broker.units import SizeBytes
from placement.producer.partitioners import (
    AdaptivePartitioner,
    QueueEnd,
    RoundRobinPartitioner,
    StickyPartitioner,
    TopicPartitions,
)

NO_ROOM = QueueEnd(has_room=False, is_full=True)
ROOM = QueueEnd(has_room=True, is_full=False)


@attrs.define
class Draws:
    """A generator whose draws are written down."""

    numbers: list[int]

    def next_int(self) -> int:
        return self.numbers.pop(0)

    def next_int_bound(self, bound: int) -> int:
        raise AssertionError("no partitioner of Kafka draws below a bound")


def partitions(*ids: int) -> tuple[PartitionId, ...]:
    return tuple(map(PartitionId, ids))


def test_round_robin_deals_the_available_partitions_in_turn() -> None:
    dealer = RoundRobinPartitioner()
    assert [dealer.partition(TopicPartitions(4, partitions(0, 3))) for _ in range(5)] == [0, 3, 0, 3, 0]


def test_round_robin_goes_on_past_the_greatest_int_as_javas_counter_wraps() -> None:
    dealer = RoundRobinPartitioner(count=2**31 - 1)
    topic = TopicPartitions.all_available(10)
    assert [dealer.partition(topic), dealer.partition(topic)] == [(2**31 - 1) % 10, 0]


def test_without_any_leader_every_partition_may_be_chosen() -> None:
    dealer = RoundRobinPartitioner()
    assert [dealer.partition(TopicPartitions(3, ())) for _ in range(4)] == [0, 1, 2, 0]


def test_sticky_keeps_its_partition_until_a_batch_is_begun() -> None:
    sticky = StickyPartitioner(Draws([7, 7, 6]))
    topic = TopicPartitions.all_available(5)
    assert [sticky.partition(topic), sticky.partition(topic)] == [2, 2]
    assert sticky.reconsidered(topic, PartitionId(2), ROOM) == 2
    # The first 7 gives partition 2 again and is thrown away.
    assert sticky.reconsidered(topic, PartitionId(2), NO_ROOM) == 1
    assert sticky.partition(topic) == 1


def test_a_negative_draw_loses_its_sign_bit_and_not_its_value() -> None:
    assert StickyPartitioner(Draws([-1])).partition(TopicPartitions.all_available(10)) == (2**31 - 1) % 10


@given(st.integers(0, 2**32), st.integers(2, 6))
def test_sticky_never_takes_the_same_partition_twice_when_another_is_available(seed: int, partition_count: int) -> None:
    sticky, topic = StickyPartitioner(SplitMix64(seed)), TopicPartitions.all_available(partition_count)
    taken = [sticky.partition(topic)]
    for _ in range(20):
        taken.append(sticky.reconsidered(topic, taken[-1], NO_ROOM))
        assert taken[-1] != taken[-2]


def test_sticky_stays_without_a_draw_when_only_one_is_available() -> None:
    sticky, topic = StickyPartitioner(Draws([])), TopicPartitions(3, partitions(2))
    assert sticky.partition(topic) == sticky.reconsidered(topic, PartitionId(2), NO_ROOM) == 2


def test_adaptive_changes_after_batch_size_bytes_once_the_batch_is_full() -> None:
    adaptive = AdaptivePartitioner(Draws([0, 1, 2]), SizeBytes(100))
    topic = TopicPartitions.all_available(3)
    assert adaptive.partition(topic) == 0
    adaptive.on_appended(topic, SizeBytes(100), batch_full=False)
    assert adaptive.partition(topic) == 0  # Enough bytes, but the batch is still being filled.
    adaptive.on_appended(topic, SizeBytes(0), batch_full=True)
    assert adaptive.partition(topic) == 1
    adaptive.on_appended(topic, SizeBytes(199), batch_full=False)
    assert adaptive.partition(topic) == 1
    adaptive.on_appended(topic, SizeBytes(1), batch_full=False)
    assert adaptive.partition(topic) == 2  # Twice the bytes: full or not.


def test_a_change_put_off_is_made_when_the_next_record_finds_the_batch_full() -> None:
    adaptive = AdaptivePartitioner(Draws([0, 1]), SizeBytes(100))
    topic = TopicPartitions.all_available(3)
    adaptive.partition(topic)
    adaptive.on_appended(topic, SizeBytes(120), batch_full=False)
    assert adaptive.reconsidered(topic, PartitionId(0), ROOM) == 0
    assert adaptive.reconsidered(topic, PartitionId(0), NO_ROOM) == 1


def drawn(queue_sizes: Sequence[int], all_count: int, draw_count: int) -> Counter[int]:
    """Count which partition each of the draws 0..draw_count-1 gives."""
    found: Counter[int] = Counter()
    for number in range(draw_count):
        adaptive = AdaptivePartitioner(Draws([number]), SizeBytes(1))
        adaptive.on_queues(queue_sizes, partitions(*range(10, 10 + len(queue_sizes))), all_count)
        found[adaptive.partition(TopicPartitions.all_available(20))] += 1
    return found


def test_a_short_queue_has_more_chances_than_a_long_one() -> None:
    assert drawn([0, 3, 1], 3, 8) == {10: 4, 11: 1, 12: 3}


def test_queues_of_one_length_leave_the_chances_equal() -> None:
    assert drawn([2, 2, 2], 3, 20) == dict.fromkeys(range(20), 1)


def test_a_partition_left_out_of_the_queues_is_never_drawn() -> None:
    assert drawn([2, 2], 3, 8) == {10: 4, 11: 4}


@pytest.mark.parametrize("partition_count", [0, -1])
def test_a_topic_without_partitions_is_refused(partition_count: int) -> None:
    with pytest.raises(
        UsageError, match=f"^a topic has {partition_count} partitions; at least 1 is needed to send to$"
    ):
        TopicPartitions(partition_count, ())


def test_an_available_partition_that_the_topic_has_not_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^partition 3 is available, but there are only 3$"):
        TopicPartitions(3, partitions(0, 3))


def test_an_adaptive_partitioner_needs_a_batch_size() -> None:
    with pytest.raises(UsageError, match=r"^batch.size is 0; an adaptive partitioner needs at least 1$"):
        AdaptivePartitioner(SplitMix64(1), SizeBytes(0))

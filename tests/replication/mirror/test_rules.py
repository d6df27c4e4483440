"""Names, bytes, syncs and translations: the parts of the mirror that are pure functions."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import CorruptDataError, UsageError
from broker.ids import Offset, PartitionId, TopicPartition
from replication.mirror.checkpoints import CheckpointStore
from replication.mirror.policy import (
    is_replicated,
    original_topic,
    target_partition,
    topic_source,
    upstream_topic,
    wanted_partitions,
)
from replication.mirror.records import (
    Checkpoint,
    OffsetSync,
    read_checkpoint,
    read_offset_sync,
)
from replication.mirror.syncs import OUTSTANDING_MAX, SYNC_COUNT, TOO_OLD, SyncQueue, SyncState, SyncStore, next_sync

PARTITION = TopicPartition("t", PartitionId(3))


def sync(upstream: int, downstream: int, partition: TopicPartition = PARTITION) -> OffsetSync:
    return OffsetSync(partition, Offset(upstream), Offset(downstream))


# Names.


@pytest.mark.parametrize(
    ("topic", "source", "upstream", "original"),
    [
        ("orders", None, None, "orders"),
        ("us.orders", "us", "orders", "orders"),
        ("eu.us.orders", "eu", "us.orders", "orders"),
        ("orders.", None, None, "orders."),
        (".orders", "", "orders", "orders"),
    ],
)
def test_a_name_has_every_hop(topic: str, source: str | None, upstream: str | None, original: str) -> None:
    assert (topic_source(topic), upstream_topic(topic)) == (source, upstream)
    assert original_topic(topic) == original


@pytest.mark.parametrize(
    ("topic", "is_copied"),
    [
        ("orders", True),
        ("ap.orders", True),
        ("us.orders", False),
        ("ap.us.orders", False),
        ("__consumer_offsets", False),
        ("ap.checkpoints.internal", False),
        ("connect-configs-internal", True),
        ("mm2-offset-syncs.us.internal", False),
    ],
)
def test_to_us_go_neither_topics_that_were_there_nor_internal_ones(topic: str, is_copied: bool) -> None:
    assert is_replicated(topic, "us") is is_copied


def test_partitions_are_made_where_the_target_lacks_them_and_never_taken_away() -> None:
    wanted = wanted_partitions("eu", {"a": 3, "b": 2, "c": 1}, {"eu.b": 5, "eu.c": 1, "a": 9})
    assert wanted == {"eu.a": 3}
    assert wanted_partitions("eu", {"b": 7}, {"eu.b": 5}) == {"eu.b": 7}
    copied = TopicPartition("us.orders", PartitionId(1))
    assert target_partition("eu", "us", copied) == TopicPartition("orders", PartitionId(1))


# Bytes.


def test_a_sync_has_the_bytes_that_its_module_says() -> None:
    assert sync(7, 9).key == bytes.fromhex("0001 74 00000003")
    assert sync(7, 9).value == bytes.fromhex("0000000000000007 0000000000000009")


@settings(max_examples=30)
@given(st.text(max_size=20), st.text(max_size=20), st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1))
def test_what_is_written_is_read_back(topic: str, group: str, number: int, offset: int) -> None:
    where = TopicPartition(topic, PartitionId(number))
    written = OffsetSync(where, Offset(offset), Offset(0))
    assert read_offset_sync(written.key, written.value) == written
    point = Checkpoint(group, where, Offset(offset), Offset(5), topic)
    assert read_checkpoint(point.key, point.value) == point


GOOD = Checkpoint("g", PARTITION, Offset(1), Offset(1))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "00017400",
            GOOD.value,
            "key of a checkpoint at byte 3: a field of 2 bytes does not fit into the 1 that are left",
        ),
        (
            "000174000175",
            GOOD.value,
            "key of a checkpoint at byte 6: a field of 4 bytes does not fit into the 0 that are left",
        ),
        ("ffff", GOOD.value, "key of a checkpoint at byte 2: non-nullable field group was serialized as null"),
        (GOOD.key.hex(), b"\0\1" + GOOD.value[2:], "value of a checkpoint at byte 0: version is 1; known is 0"),
    ],
)
def test_damaged_bytes_are_refused_with_their_place(key: str, value: bytes, message: str) -> None:
    with pytest.raises(CorruptDataError) as caught:
        read_checkpoint(bytes.fromhex(key), value)
    assert str(caught.value) == message


NUMBERS = st.binary(min_size=8, max_size=8)
STRINGS = st.sampled_from([b"\0\0", b"\0\1g", b"\0\2\xc3\xa9"])
TAILS = st.binary(max_size=20)
KEYS = st.one_of(TAILS, st.builds(b"".join, st.tuples(STRINGS, STRINGS, TAILS)))
VALUES = st.one_of(
    TAILS,
    st.builds(b"".join, st.tuples(st.sampled_from([b"", b"\0\0"]), NUMBERS, NUMBERS, STRINGS, TAILS)),
)


@settings(max_examples=100)
@given(KEYS, VALUES)
def test_bytes_are_refused_or_are_what_is_read_from_them(key: bytes, value: bytes) -> None:
    for read in (read_offset_sync, read_checkpoint):
        try:
            found = read(key, value)
        except CorruptDataError:
            continue
        if "\ufffd" not in str(found):  # As Java does, bytes that are not UTF-8 are replaced.
            assert key.startswith(found.key)
            assert value.startswith(found.value)


def test_a_name_too_long_for_its_length_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^topic has 40000 bytes; a string has at most 32767$"):
        _ = sync(0, 0, TopicPartition("a" * 40_000, PartitionId(0))).key


# When syncs are emitted.


def emitted(pairs: list[tuple[int, int]], lag_max: int = 100) -> list[int]:
    state, found = SyncState(), []
    for upstream, downstream in pairs:
        state, is_due = next_sync(state, Offset(upstream), Offset(downstream), lag_max)
        if is_due:
            found.append(upstream)
    return found


def test_offsets_in_step_are_emitted_at_first_and_then_every_hundred_and_first() -> None:
    assert emitted([(each, each) for each in range(251)]) == [0, 101, 202]
    assert emitted([(each, each) for each in range(5)], lag_max=0) == [0, 1, 2, 3, 4]


def test_a_gap_on_the_source_and_a_target_that_was_cut_are_emitted_at_once() -> None:
    assert emitted([(0, 0), (1, 1), (5, 2), (6, 3)]) == [0, 5]
    assert emitted([(0, 10), (1, 11), (2, 9), (3, 10)]) == [0, 2]
    assert emitted([(0, 0), (0, 1), (1, 2)]) == [0, 0]


def test_what_is_put_off_is_sent_with_the_next_commit_and_only_the_last_of_it() -> None:
    queue = SyncQueue(100)
    for offset in range(5):
        queue.copied(PARTITION, Offset(offset), Offset(offset))
    assert queue.take() == (sync(0, 0),)
    assert queue.take() == ()
    queue.on_commit()
    assert queue.take() == (sync(4, 4),)


def test_ten_syncs_are_under_way_at_most() -> None:
    queue = SyncQueue(100)
    for number in range(15):
        queue.copied(TopicPartition("t", PartitionId(number)), Offset(0), Offset(0))
    assert [len(queue.take()), len(queue.take())] == [OUTSTANDING_MAX, 0]
    queue.sent()
    assert len(queue.take()) == 1


# Translation.


def store_of(syncs: list[OffsetSync]) -> SyncStore:
    store = SyncStore(must_read_to_end=False)
    for each in syncs:
        store.add(each)
    store.read_to_end()
    return store


def test_an_offset_is_translated_by_the_last_sync_before_it_and_one_further_at_most() -> None:
    store = store_of([sync(0, 0), sync(100, 90), sync(200, 180)])
    found = [store.translate(PARTITION, Offset(each)) for each in (0, 50, 100, 150, 200, 999)]
    assert found == [0, 1, 90, 91, 180, 181]
    assert store_of([sync(50, 50)]).translate(PARTITION, Offset(49)) == TOO_OLD
    assert store.translate(TopicPartition("u", PartitionId(3)), Offset(1)) is None


def test_a_store_that_must_read_to_the_end_translates_only_then_and_keeps_the_last_sync_of_before() -> None:
    store = SyncStore(must_read_to_end=True)
    for offset in range(0, 500, 50):
        store.add(sync(offset, offset))
    assert store.translate(PARTITION, Offset(450)) is None
    store.read_to_end()
    assert store.translate(PARTITION, Offset(450)) == 450
    assert set(store.syncs_of(PARTITION)) == {sync(450, 450)}
    store.add(sync(500, 500))
    assert set(store.syncs_of(PARTITION)) == {sync(450, 450), sync(500, 500)}


def test_a_sync_that_goes_back_drops_all_others() -> None:
    store = store_of([sync(0, 0), sync(100, 100), sync(30, 101)])
    assert set(store.syncs_of(PARTITION)) == {sync(30, 101)}


def test_two_syncs_at_one_offset_of_a_truncated_target_are_translated_as_kafka_does() -> None:
    """Only a target that lost records gives one offset twice; OffsetSyncStore then goes back by one at the second."""
    store = store_of([sync(10, 5), sync(20, 5)])
    assert [store.translate(PARTITION, Offset(each)) for each in (10, 19, 20, 21)] == [5, 6, 5, 6]


STEPS = st.lists(st.tuples(st.integers(1, 300), st.integers(0, 300)), min_size=1, max_size=80)
RISING_STEPS = st.lists(st.tuples(st.integers(1, 300), st.integers(1, 300)), min_size=1, max_size=80)


@given(RISING_STEPS, st.lists(st.integers(0, 30_000), max_size=20))
def test_a_translation_is_never_ahead_and_never_goes_back_as_the_offset_rises(
    steps: list[tuple[int, int]], queries: list[int]
) -> None:
    syncs = [sync(up, down) for up, down in itertools.accumulate(steps, lambda a, b: (a[0] + b[0], a[1] + b[1]))]
    store = store_of(syncs)
    last = TOO_OLD
    for query in sorted(queries):
        found = store.translate(PARTITION, Offset(query))
        assert found is not None
        before = [each for each in syncs if each.upstream <= query]
        exact = [each.downstream for each in before if each.upstream == query]
        assert found <= (exact[0] if exact else max((each.downstream + 1 for each in before), default=TOO_OLD))
        assert found >= last
        last = found


@given(STEPS)
def test_kept_syncs_hold_what_kafka_says_they_hold(steps: list[tuple[int, int]]) -> None:
    syncs = [sync(up, down) for up, down in itertools.accumulate(steps, lambda a, b: (a[0] + b[0], a[1] + b[1]))]
    kept = store_of(syncs).syncs_of(PARTITION)
    assert len(kept) == SYNC_COUNT
    assert kept[0] == syncs[-1]
    for i, j in itertools.combinations(range(SYNC_COUNT), 2):
        if kept[i] is not kept[j]:
            assert kept[i].upstream <= kept[j].upstream + 2**j - 2**i
            assert kept[i].upstream >= kept[j].upstream + 2 ** max(i - 2, 0)


# Checkpoints.


@pytest.mark.parametrize(
    ("upstream", "downstream", "is_due"), [(70, 41, True), (70, 40, False), (70, 39, False), (30, 20, True)]
)
def test_a_checkpoint_goes_forward_or_follows_a_group_that_went_back(
    upstream: int, downstream: int, is_due: bool
) -> None:
    store = CheckpointStore()
    assert store.add(Checkpoint("g", PARTITION, Offset(50), Offset(40)))
    assert store.add(Checkpoint("g", PARTITION, Offset(upstream), Offset(downstream))) is is_due


def test_checkpoints_are_of_what_can_be_translated_and_each_once() -> None:
    far, near, other = (TopicPartition("t", PartitionId(number)) for number in (3, 4, 5))
    store, syncs = CheckpointStore(), store_of([sync(10, 10), sync(10, 7, near)])
    renamed = {each: target_partition("eu", "us", each) for each in (far, near, other)}
    committed = {far: Offset(5), near: Offset(10), other: Offset(1), TopicPartition("x", PartitionId(0)): Offset(1)}
    (only,) = store.emit("g", committed, syncs, renamed)
    assert only == Checkpoint("g", TopicPartition("eu.t", PartitionId(4)), Offset(10), Offset(7))
    assert list(store.emit("g", committed, syncs, renamed)) == []
    assert store.offsets_to_set("g", {}) == {only.target_partition: 7}
    assert store.offsets_to_set("h", {}) == {}


def test_offsets_of_a_group_on_the_target_never_go_back() -> None:
    one, two, three = (TopicPartition("t", PartitionId(number)) for number in range(3))
    store = CheckpointStore()
    for each in (one, two, three):
        store.add(Checkpoint("g", each, Offset(5), Offset(5)))
    assert store.offsets_to_set("g", {one: Offset(4), two: Offset(5)}) == {one: 5, three: 5}

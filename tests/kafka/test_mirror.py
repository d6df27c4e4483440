"""MirrorMaker's own classes on random input: the same syncs kept, the same offsets translated, the same bytes."""

from __future__ import annotations

import random

import pytest

from broker.ids import Offset, PartitionId, TopicPartition
from replication.mirror.policy import (
    is_cycle,
    is_internal,
    is_replicated,
    original_topic,
    remote_topic,
    topic_source,
    upstream_topic,
)
from replication.mirror.records import (
    Checkpoint,
    OffsetSync,
    read_checkpoint,
    read_offset_sync,
)
from replication.mirror.syncs import SYNC_COUNT, SyncState, SyncStore, next_sync
from tests.kafka.jvm import KafkaJvm
from tests.kafka.releases import WITH_MIRROR

pytestmark = pytest.mark.kafka
RELEASES = (WITH_MIRROR,)
PARTITION = TopicPartition("t", PartitionId(0))


def walk(chance: random.Random) -> list[tuple[int, int]]:
    """Syncs as they may come: mostly forward by one or by much, now and then back or the same again."""
    upstream, downstream, syncs = chance.choice([0, 0, 5, 2**40, 2**62, 2**63 - 400]), 0, []
    for _ in range(chance.choice([1, 3, 20, 120])):
        syncs.append((upstream, downstream))
        if chance.random() < 0.03:
            upstream = max(0, upstream - chance.choice([0, 1, 7, 1000]))
        else:
            upstream += chance.choice([0, 1, 1, 2, 3, 100, 100, 101, 2 ** chance.randrange(1, 30)])
        upstream = min(upstream, 2**63 - 1)
        downstream += chance.choice([0, 1, 1, 2, 90])
    return syncs


@pytest.mark.parametrize("seed", range(8))
def test_the_same_syncs_are_kept_and_every_offset_is_translated_to_the_same(kafka: KafkaJvm, seed: int) -> None:
    chance = random.Random(seed)
    translated = 0
    for _ in range(150):
        syncs = walk(chance)
        must_read_to_end = chance.random() < 0.5
        read_before = chance.randrange(len(syncs) + 1) if chance.random() < 0.5 else 0
        near = [upstream + chance.randrange(-2, 3) for upstream, _ in syncs]
        queries = [min(max(0, each), 2**63 - 1) for each in (*near, *(chance.randrange(2**20) for _ in range(9)))]
        store = SyncStore(must_read_to_end=must_read_to_end)
        for place, (upstream, downstream) in enumerate(syncs):
            if place == read_before:
                store.read_to_end()
            store.add(OffsetSync(PARTITION, Offset(upstream), Offset(downstream)))
        if read_before == len(syncs):
            store.read_to_end()
        asked = {"must_read_to_end": must_read_to_end, "read_before": read_before, "syncs": syncs, "queries": queries}
        kept = [[sync.upstream, sync.downstream] for sync in store.syncs_of(PARTITION)]
        assert len(kept) == SYNC_COUNT
        ours = [store.translate(PARTITION, Offset(each)) for each in queries]
        assert {"kept": kept, "translated": ours} == kafka.call("mirror", of="store", **asked)
        translated += sum(each is not None and each >= 0 for each in ours)
    assert translated > 1_000


def test_without_any_sync_nothing_is_translated(kafka: KafkaJvm) -> None:
    store = SyncStore()
    store.read_to_end()
    asked = {"must_read_to_end": True, "read_before": 0, "syncs": [], "queries": [0, 7]}
    assert kafka.call("mirror", of="store", **asked) == {"kept": [], "translated": [None, None]}
    assert [store.translate(PARTITION, Offset(each)) for each in (0, 7)] == [None, None]


@pytest.mark.parametrize("lag_max", [0, 1, 3, 100])
def test_the_same_offsets_are_emitted_at_once(kafka: KafkaJvm, lag_max: int) -> None:
    chance = random.Random(lag_max)
    for _ in range(60):
        upstream = downstream = chance.choice([0, 3, 1000])
        pairs = []
        for _ in range(400):
            pairs.append((upstream, downstream))
            upstream += chance.choice([1] * 60 + [2, 5, 0, -3])
            downstream = max(0, downstream + chance.choice([1] * 60 + [2, 40, 0, -2]))
            upstream = max(0, upstream)
        state, ours = SyncState(), []
        for up, down in pairs:
            state, is_due = next_sync(state, Offset(up), Offset(down), lag_max)
            ours.append(is_due)
        assert ours == kafka.call("mirror", of="rule", lag_max=lag_max, pairs=pairs)


NAMES = ("orders", "one", "two", "mm2-x", "checkpoints", "internal", "__x", "a-internal", "", "é")


def test_topics_get_the_same_names_and_the_same_are_copied(kafka: KafkaJvm) -> None:
    chance = random.Random(1)
    for _ in range(800):
        topic = ".".join(chance.choices(NAMES, k=chance.randrange(1, 5)))
        assert kafka.call("mirror", of="policy", topic=topic) == [
            remote_topic("one", topic),
            topic_source(topic),
            upstream_topic(topic),
            original_topic(topic),
            is_internal(topic),
            is_cycle(topic, "two"),
            is_replicated(topic, "two"),
        ], topic


def test_records_have_the_same_bytes_and_are_read_back(kafka: KafkaJvm) -> None:
    chance = random.Random(5)
    for _ in range(200):
        topic, group = (chance.choice(["t", "us.orders", "é" * 30, "a" * 249]) for _ in range(2))
        number, upstream, downstream = chance.randrange(2**31), chance.randrange(2**63), chance.randrange(-1, 2**63)
        where = TopicPartition(topic, PartitionId(number))
        sync = OffsetSync(where, Offset(upstream), Offset(downstream))
        fields = {"topic": topic, "partition": number, "upstream": upstream, "downstream": downstream}
        assert kafka.call("mirror", of="sync", **fields) == [sync.key.hex(), sync.value.hex()]
        assert read_offset_sync(sync.key, sync.value) == sync
        point = Checkpoint(group, where, Offset(upstream), Offset(downstream), chance.choice(["", "m", "ü"]))
        theirs = kafka.call("mirror", of="checkpoint", **fields, group=group, metadata=point.metadata)
        assert theirs == [point.key.hex(), point.value.hex()]
        assert read_checkpoint(point.key, point.value) == point

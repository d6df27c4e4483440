"""Uniform of Kafka 3.9 with different subscriptions: its answers, where it throws, and its order of partitions."""

from __future__ import annotations

import random

import pytest

from broker.java.hash_order import any_crowded, hash_places, uuid_hashes
from broker.java.hash_table import HashTable
from broker.releases import Release
from placement.consumer.errors import NoSuchElementError, PartitionAssignorError
from placement.consumer.group import Group
from placement.consumer.topic_ids import id_text, topic_ids
from placement.consumer.uniform.assignor import UniformAssignor
from placement.consumer.uniform.greedy import Moves
from placement.consumer.uniform.greedy_order import crowded, named_topics, sorted_partitions
from tests.placement.consumer.groups import answer, group

T, U, V = "ojpb3DqYWf1UAW1270hBmQ", "fEAct_6PmfUinpyZt2NtzQ", "46iO3CvFF-LjqI7cK8UX4w"
"""Topics named by their ids; in a table of 16 bins partitions of V come before those of T, and these before U's."""


def answered(asked: Group) -> dict[str, str]:
    """Return what the uniform assignor of 3.9 answers."""
    return answer(UniformAssignor(Release("3.9")), asked)


def ordered(asked: Group) -> list[str]:
    """Return all partitions in the order in which 3.9 assigns them."""
    ids = topic_ids(asked)
    return [str(asked.name_of(one)) for one in sorted_partitions(asked, named_topics(asked, ids), ids).tolist()]


# The expected answers below are those of Kafka 3.9.2.


def test_the_least_loaded_subscriber_gets_the_next_partition() -> None:
    asked = group({T: 3, U: 1}, {"a": T, "b": f"{T} {U}"})
    assert answered(asked) == {"a": f"{T}-0 {T}-2", "b": f"{U}-0 {T}-1"}


def test_topics_alike_are_met_in_the_order_of_kafkas_set() -> None:
    asked = group({T: 2, U: 2, V: 2}, {**dict.fromkeys("abc", f"{T} {U} {V}"), "d": ""})
    assert answered(asked) == {"a": f"{V}-0 {U}-1", "b": f"{V}-1 {U}-0", "c": f"{T}-0 {T}-1", "d": ""}


def test_partitions_move_one_by_one_until_all_is_balanced() -> None:
    held = {"b": f"{T}-0 {T}-1 {T}-2 {T}-3 {U}-0 {U}-1"}
    asked = group({T: 4, U: 2}, {"a": T, "b": f"{T} {U}"}, held)
    assert answered(asked) == {"a": f"{T}-0 {T}-1 {T}-2", "b": f"{U}-0 {U}-1 {T}-3"}


def test_more_partitions_of_a_subscriber_come_first_and_then_fewer_subscribers() -> None:
    asked = group({T: 2, U: 2, V: 1}, {"a": T, "b": f"{T} {U} {V}"})
    assert ordered(asked) == [f"{U}-0", f"{U}-1", f"{V}-0", f"{T}-0", f"{T}-1"]


def test_a_partition_that_moves_to_its_own_member_stays_there_for_good() -> None:
    # Both claim T-2, t33 owns it and has two more than the other, which has all that there is of T.
    held = {"consumer-874": f"{T}-2", "t33": f"{U}-1 {T}-2"}
    asked = group({T: 3, U: 1, V: 2}, {"consumer-874": T, "t33": f"{V} {T} {U}"}, held)
    after = {name: set(row.split()) for name, row in answered(asked).items()}
    assert after["consumer-874"] == {f"{T}-0", f"{T}-1", f"{T}-2"}
    assert after["t33"] == {f"{V}-0", f"{V}-1", f"{U}-0", f"{U}-1", f"{T}-2"}


@pytest.mark.parametrize(
    ("subscriptions", "held", "message"),
    [
        (
            {"consumer-874": T, "t33": f"{V} {T} {U}"},
            {"consumer-874": f"{T}-0 {T}-1 {T}-2", "t33": f"{T}-2 {U}-1 {V}-1 {V}-0 {U}-0 {U}-7"},
            f"No suitable new owner was found for the partition{T}:2",
        ),
        ({"a": U, "b": ""}, {"a": f"{U}-5 {U}-6"}, "Some partitions were left unassigned"),
        (
            {"a": U, "b": f"{U} Unknown"},
            {},
            f"Members are subscribed to topic {id_text(topic_ids(group({}, {'b': 'Unknown'}))[0])} which doesn't exist "
            "in the topic metadata.",
        ),
    ],
)
def test_what_kafka_throws_is_refused(subscriptions: dict[str, str], held: dict[str, str], message: str) -> None:
    with pytest.raises(PartitionAssignorError) as thrown:
        answered(group({T: 3, U: 1, V: 2}, subscriptions, held))
    assert str(thrown.value) == message


def test_a_move_the_other_way_round_makes_kafka_throw() -> None:
    held = {"b": f"{U}-1 {T}-1", "d": f"{V}-2 {U}-0 {U}-1 {T}-1 {T}-2"}
    subscriptions = {"a": f"{T} {V}", "b": f"{T} {U}", "c": T, "d": f"{T} {U} {V}"}
    with pytest.raises(PartitionAssignorError, match="Mismatch in partition movement record with respect to"):
        answered(group({V: 4, U: 1, T: 2}, subscriptions, held))


def test_no_member_that_can_take_more_makes_kafka_throw() -> None:
    # All members have as many partitions as their topics have, or claim more, after one of them has moved.
    held = {"a": f"{T}-0 {T}-1 {T}-5 {T}-6 {T}-7 {T}-8", "b": f"{U}-0 {U}-1"}
    with pytest.raises(NoSuchElementError) as thrown:
        answered(group({T: 2, U: 1}, {"a": T, "b": f"{T} {U}"}, held))
    assert thrown.value.kafka_class == "java.util.NoSuchElementException"


def test_hash_codes_are_walked_as_a_hash_map_does() -> None:
    codes = uuid_hashes([bytes([0] * 15 + [number * 7 % 251]) for number in range(200)])
    table = HashTable()
    for place, code in enumerate(codes.tolist()):
        table.add((code, True, place.to_bytes(8, "big")))
    assert hash_places(codes).tolist() == [int.from_bytes(key, "big") for _, _, key in table]
    assert not any_crowded(codes)


def test_a_bin_that_kafka_orders_by_addresses_is_told() -> None:
    # Ids whose hashes are all 0: nine partitions share each bin.
    alike = [id_text(bytes([number] * 8) * 2) for number in range(1, 10)]
    counts = dict.fromkeys(alike, 20)
    assert crowded(group(counts, {"a": " ".join(alike), "b": alike[0]}))
    assert not crowded(group(counts, {"a": " ".join(alike[:8]), "b": alike[0]}))


def plainly_balanced(moves: Moves) -> bool:
    """Return what Kafka asks for: no member that is not full lacks a partition of one with at least two more."""
    targets, group = moves.targets, moves.group
    open_sizes = [size for size, most in zip(targets.sizes, targets.most, strict=True) if size < most]
    return max(open_sizes) - min(open_sizes) <= 1 or not any(
        targets.sizes[targets.owners[partition]] > targets.sizes[member] + 1 and partition not in targets.held[member]
        for member, topics in enumerate(targets.topics)
        if targets.sizes[member] < targets.most[member]
        for topic in topics
        for partition in range(*group.partition_starts[topic : topic + 2].tolist())
    )


@pytest.mark.parametrize("doubled", [False, True])
def test_whether_all_is_balanced_is_told_after_every_move_as_by_looking_at_every_partition(
    doubled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {False: 0, True: 0}
    quick = Moves.is_balanced

    def both(moves: Moves) -> bool:
        answered_quickly = quick(moves)
        assert answered_quickly == plainly_balanced(moves)
        told[answered_quickly] += 1
        return answered_quickly

    monkeypatch.setattr(Moves, "is_balanced", both)
    # In the last three a member that two claim from has all of a topic, though its owner has two partitions more.
    for seed in (*range(400), 4048, 8072, 10021):
        try:
            answered(claimed_by_few(random.Random(seed), doubled=doubled))
        except (PartitionAssignorError, NoSuchElementError):
            continue
    assert min(told.values()) > 50, told


def claimed_by_few(chance: random.Random, *, doubled: bool) -> Group:
    """Return a group in which few members have most that they can; with `doubled`, some of it with another member."""
    topics = {id_text(chance.randbytes(16)): 1 + chance.randrange(6) for _ in range(1 + chance.randrange(6))}
    subscriptions = {}
    for number in range(3 + chance.randrange(5)):
        share = chance.choice((0.2, 0.5, 0.9))
        subscriptions[f"m{number}"] = [topic for topic in topics if chance.random() < share]
    held: dict[str, list[str]] = {name: [] for name in subscriptions}
    for topic, count in topics.items():
        for number in range(count):
            able = [name for name in held if topic in subscriptions[name]]
            for name in chance.sample(able, min(2, len(able))) if doubled and chance.random() < 0.5 else able[:1]:
                held[name].append(f"{topic}-{number}")
    joined = {name: " ".join(row) for name, row in subscriptions.items()}
    return group(topics, joined, {name: " ".join(row) for name, row in held.items()})

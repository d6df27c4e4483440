"""Answers about groups in DataFrames are those of the assignors and of the model of traffic, group by group."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest
from pyspark.sql import DataFrame, SparkSession

from broker.cluster import ClusterView
from broker.entropy import SplitMix64
from broker.errors import RefusedError, UsageError
from broker.ids import PartitionId, TopicPartition
from placement.consumer.group import Group, Member, Topic
from placement.consumer.measures import measure
from placement.consumer.optimum import optimum_of
from placement.consumer.registry import KAFKAS, load_assignor
from placement.traffic import Consumers, GroupPlan, ZonedPartitions, cost_of, group_traffic, sample_groups
from placement.traffic.consumers import NOW
from placement.traffic.crossing import NOTHING, even_shares
from placement.traffic.group_traffic import least_fetched, least_of
from placement.traffic.savings import add_readers, changes_of, no_readers
from spark_analysis.questions import groups, traffic
from tests.placement.traffic.naive import cluster
from tests.spark_analysis.frames.test_balance import found

NAMES = ("c1", "c2", "c3")
PARTITION_SCHEMA = (
    "cluster string, topic string, partition int, leader int, replicas array<int>, isr array<int>, "
    "racks array<string>, size_bytes long"
)
MEMBER_SCHEMA = "cluster string, group string, member_id string, topics array<string>, rack string, held array<string>"


def views() -> dict[str, ClusterView]:
    made = (cluster(seed, racks=seed != 2) for seed in (1, 2, 3))
    return {name: attrs.evolve(view, name=name) for name, view in zip(NAMES, made, strict=True)}


def members_of(name: str, view: ClusterView) -> dict[str, tuple[Member, ...]]:
    """Groups of one cluster: drawn ones, one whose members hold partitions, one that is different, one from afar."""
    drawn = {f"{name} {one}": some for one, some in sample_groups(ZonedPartitions.of(view), GroupPlan(5, 3, 2), seed=3)}
    topics = tuple(topic.name for topic in view.topics)
    drawn["holding"] = tuple(
        Member(id=f"h{number}", topics=topics[:1], rack="a", generation=1,
               owned=(TopicPartition(topics[0], PartitionId(0)),) if number == 0 else ())
        for number in range(2)
    )  # fmt: skip
    drawn["different"] = (Member(id="x", topics=topics), Member(id="y", topics=topics[-1:], rack="elsewhere"))
    drawn["nothing"] = (Member(id="z", topics=("missing",), rack="a"),)
    return drawn


def in_order(members: tuple[Member, ...]) -> tuple[Member, ...]:
    return tuple(sorted(members, key=lambda one: one.id))


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    members, partitions = [], []
    for name, view in views().items():
        for group, some in members_of(name, view).items():
            members += [
                (name, group, one.id, list(one.topics), one.rack, [str(each) for each in one.owned]) for one in some
            ]
        table, rack = view.partitions, {int(broker.id): broker.rack or "" for broker in view.brokers}
        assert table.leader is not None
        assert table.isr is not None
        assert table.size_bytes is not None
        for place in range(table.count):
            row = [one for one in table.replicas[place].tolist() if one >= 0]
            synced = [one for one in table.isr[place].tolist() if one >= 0]
            topic = view.topics[int(table.topic_index[place])].name
            numbers = (int(table.partition_ids[place]), int(table.leader[place]))
            size = int(table.size_bytes[place])
            # size_bytes of the DataFrame is of all replicas.
            partitions.append((name, topic, *numbers, row, synced, [rack[one] for one in row], size * len(row)))
    return spark.createDataFrame(members, MEMBER_SCHEMA), spark.createDataFrame(partitions, PARTITION_SCHEMA)


def all_groups() -> Iterator[tuple[str, str, tuple[Member, ...], ZonedPartitions, ClusterView]]:
    for name, view in views().items():
        for group, members in members_of(name, view).items():
            yield name, group, in_order(members), ZonedPartitions.of(view), view


def plain_group(members: tuple[Member, ...], view: ClusterView) -> Group:
    """The group without this library's columns: topics with the racks of each partition's replicas."""
    rack = {int(broker.id): broker.rack for broker in view.brokers}
    topics = []
    for index, topic in enumerate(view.topics):
        places = [place for place, of in enumerate(view.partitions.topic_index.tolist()) if of == index]
        places.sort(key=lambda place: int(view.partitions.partition_ids[place]))
        racks = tuple(
            tuple(found for one in view.partitions.replicas[place].tolist() if one >= 0 and (found := rack[one]))
            for place in places
        )
        topics.append(Topic(name=topic.name, partition_count=len(places), replica_racks=racks))
    named = {name for member in members for name in member.topics}
    return Group.of(members, [topic for topic in topics if topic.name in named])


def answered(ask: Callable[[], Any]) -> tuple[Any, str]:
    """What an assignor answers, or nothing and the class that Kafka's would throw."""
    try:
        return ask(), ""
    except RefusedError as refusal:
        return None, str(refusal.kafka_class)


def test_balance_and_assignments_are_those_of_the_assignors(frames: tuple[DataFrame, DataFrame]) -> None:
    rows = {(row["cluster"], row["group"], row["assignor"]): row for row in found(groups.balance(*frames))}
    given = {name: found(groups.assignments(*frames, assignor=name)) for name in KAFKAS}
    compared = refused = 0
    for name, group, members, _, view in all_groups():
        plain = plain_group(members, view)
        optimum = optimum_of(plain)
        assert optimum is not None
        for assignor in KAFKAS:
            row = rows[name, group, assignor]
            mine = [one for one in given[assignor] if (one["cluster"], one["group"]) == (name, group)]
            assignment, refusal = answered(lambda of=assignor, to=plain: load_assignor(of).assign(to, SplitMix64(0)))
            if assignment is None:
                assert refusal in row["fault"]
                assert [one["fault"] for one in mine] == [row["fault"]]
                refused += 1
                continue
            figures = measure(assignment, optimum)
            for column in ("size_min", "size_max", "best_size_min", "best_size_max", "matched_count", "racked_count"):
                assert row[column] == getattr(figures, column), (name, group, assignor, column)
            expected = {
                (member, one.topic, int(one.partition))
                for member, some in zip(plain.members, assignment.rows.lists(), strict=True)
                for one in assignment.named(some)
            }
            assert {(one["member_id"], one["topic"], one["partition"]) for one in mine} == expected
            assert row["assigned_count"] == len(expected)
            compared += 1
    assert len(rows) == 24 * 7
    assert compared > 100
    assert refused > 0


def test_traffic_of_groups_is_that_of_the_model(frames: tuple[DataFrame, DataFrame]) -> None:
    rows = {
        (row["cluster"], row["group"], row["assignor"]): row
        for row in found(traffic.groups(*frames, price_per_gib=2.0))
    }
    for name, group, members, partitions, _ in all_groups():
        consumers = Consumers.of(group, members, partitions)
        least_count, least_bytes = least_of(partitions, consumers)
        for assignor in (NOW, *KAFKAS):
            row = rows[name, group, assignor]
            expected, refusal = answered(lambda of=assignor, to=consumers, on=partitions: group_traffic(on, to, of))
            if expected is None:
                assert refusal in row["fault"]
                continue
            leader, closest = expected.leader, expected.closest
            assert (row["fetched_count"], row["unknown_count"]) == (leader.count, leader.unknown_count)
            assert (row["crossing_count"], row["crossing_bytes"]) == (leader.crossing_count, leader.crossing_bytes)
            assert (row["closest_count"], row["closest_bytes"]) == (closest.crossing_count, closest.crossing_bytes)
            assert row["fetched_bytes"] == leader.size_bytes
            assert (row["least_count"], row["least_bytes"]) == (least_count, least_bytes)
            assert (row["cost"], row["moved_count"]) == (cost_of(leader.crossing_bytes, 2.0), expected.moved_count)


def test_changes_of_clusters_are_those_of_the_model(frames: tuple[DataFrame, DataFrame]) -> None:
    assignors = ("range", "sticky")
    rows = {(row["cluster"], row["change"]): row for row in found(traffic.clusters(*frames, assignors=assignors))}
    for name, view in views().items():
        partitions = ZonedPartitions.of(view)
        readers, least = {one: no_readers(partitions) for one in (NOW, *assignors)}, NOTHING
        for group, members in members_of(name, view).items():
            consumers = Consumers.of(group, in_order(members), partitions)
            least = least.plus(least_fetched(partitions, consumers))
            for assignor, matrix in readers.items():
                one = group_traffic(partitions, consumers, assignor)
                add_readers(matrix, consumers.rows, one.reader_zones, one.is_read)
        changes = list(changes_of(partitions, even_shares(len(partitions.zones)), readers, least=least))
        assert {change.name for change in changes} == {change for of, change in rows if of == name}
        for change in changes:
            row = rows[name, change.name]
            for flow in ("produce", "replicate", "consume"):
                expected = getattr(change, flow)
                assert row[f"{flow}_count"] == pytest.approx(expected.crossing_count)
                assert row[f"{flow}_bytes"] == pytest.approx(expected.crossing_bytes)
            assert row["unknown_count"] == pytest.approx(change.total.unknown_count)
            assert row["cost"] == pytest.approx(cost_of(change.total.crossing_bytes))


def test_rows_that_cannot_be_used_are_faults_and_the_rest_is_answered(
    spark: SparkSession, frames: tuple[DataFrame, DataFrame]
) -> None:
    members, partitions = frames
    bad = spark.createDataFrame(
        [("c1", "bad", "m", None, None, None), ("c1", "odd", "m", ["t0"], "a", ["t0"])], MEMBER_SCHEMA
    )
    rows = found(groups.balance(members.union(bad), partitions, assignors=["range"]))
    faults = [row["fault"] for row in rows if row["fault"] is not None]
    assert sorted(faults)[0] == "1 without topics"
    assert len(rows) == 24 + 2
    assert sorted(faults)[1] == "a member holds 't0'; a partition is TOPIC-NUMBER, such as orders-0"
    gap = partitions.where("not (cluster = 'c2' and partition = 0)")
    rows = found(traffic.groups(members, gap, assignors=["range"]))
    assert {row["cluster"] for row in rows if row["fault"] is None and row["group"] != "nothing"} == {"c1", "c3"}
    assert any("partition 0 of topic" in (row["fault"] or "") for row in rows if row["cluster"] == "c2")


def test_lag_is_a_sum_by_hand(spark: SparkSession) -> None:
    rows: list[tuple[Any, ...]] = [
        ("c", "g", "t", 0, 5, 9, None), ("c", "g", "t", 1, 9, 9, None), ("c", "g", "t", 2, None, 7, None),
        ("c", "g", "t", 3, 12, 9, None), ("c", "g", None, None, None, None, "line 7 is cut off"),
        ("c", "h", "t", 0, None, None, None),
    ]  # fmt: skip
    schema = "cluster string, group string, topic string, partition int"
    schema += ", current_offset long, log_end_offset long, fault string"
    offsets = spark.createDataFrame(rows, schema)
    first, second = found(groups.lag(offsets))
    assert first == {
        "cluster": "c", "group": "g", "partition_count": 4, "lag": 4, "lag_max": 4, "lagging_count": 1,
        "unknown_count": 1, "rejected_count": 1, "fault": "line 7 is cut off",
    }  # fmt: skip
    assert (second["lag"], second["unknown_count"]) == (None, 1)
    assert first["partition_count"] + second["partition_count"] + first["rejected_count"] == len(rows)


def test_offsets_that_cannot_be_are_rejected_with_the_column(spark: SparkSession) -> None:
    schema = "cluster string, group string, topic string, partition long, current_offset long, log_end_offset long"
    good = [("c", "g", "t", 0, 5, 9), ("c", "g", "t", 1, None, 9)]
    for bad, fault in (
        (("c", "g", "t", None, 5, 9), "partition is null; allowed is 0 to 2147483647"),
        (("c", "g", "t", -1, 5, 9), "partition is -1; allowed is 0 to 2147483647"),
        (("c", "g", "t", 10**12, 5, 9), "partition is 1000000000000; allowed is 0 to 2147483647"),
        (("c", "g", None, 2, 5, 9), "topic is null; allowed is any text"),
        (("c", "g", "t", 2, -5, 9), "current_offset is -5; allowed is 0 to 9223372036854775807"),
        (("c", "g", "t", 2, 5, -9), "log_end_offset is -9; allowed is 0 to 9223372036854775807"),
    ):
        (row,) = found(groups.lag(spark.createDataFrame([*good, bad], schema)))
        assert (row["fault"], row["rejected_count"]) == (fault, 1)
        assert (row["partition_count"], row["lag"], row["lag_max"], row["unknown_count"]) == (2, 4, 4, 1)
    rows = found(groups.lag(spark.createDataFrame([*good, ("c", None, "t", 2, 5, 9)], schema)))
    assert {row["group"]: (row["partition_count"], row["rejected_count"], row["fault"]) for row in rows} == {
        "g": (2, 0, None),
        None: (0, 1, "group is null; allowed is any text"),
    }
    with pytest.raises(UsageError, match="column 'partition' of the DataFrame of offsets is double; int is needed"):
        groups.lag(
            spark.createDataFrame([("c", "g", "t", 0.5, 5, 9)], schema.replace("partition long", "partition double"))
        )


def test_what_does_not_fit_is_one_sentence(frames: tuple[DataFrame, DataFrame]) -> None:
    members, partitions = frames
    no_column = "the DataFrame of {} has no column '{}'"
    for call, sentence in (
        (lambda: groups.balance(members.drop("topics"), partitions), no_column.format("members", "topics")),
        (lambda: groups.balance(members, partitions.drop("replicas")), no_column.format("partitions", "replicas")),
        (lambda: groups.balance(members.drop("cluster"), partitions), no_column.format("members", "cluster")),
        (lambda: groups.balance(members, partitions, assignors=["fair"]), "fair"),
        (lambda: groups.balance(members, partitions, assignors=[]), "assignors are []; allowed is a list of one or"),
        (lambda: groups.moves(members, partitions, assignor="range", release="4.9"), "release '4.9' of Kafka is not"),
        (lambda: traffic.groups(members, partitions, price_per_gib=-1), "price_per_gib is -1; allowed is 0 or more"),
        (lambda: groups.balance(members, partitions, by=[]), "by is []; allowed is a list of one column or more"),
    ):
        with pytest.raises(UsageError) as caught:
            call()
        assert sentence in str(caught.value)

"""What a dump declares against what it lists: each way in which a cluster is not whole, and ways in which it is."""

from __future__ import annotations

import pytest

from broker.cluster import ClusterView, PartitionTable, TopicView

TWO = ([0, 1], [[1, 2], [2, 1]])
CASES = {
    "nothing is declared": ((None, None), TWO, None),
    "both agree": ((2, 2), TWO, None),
    "a partition is missing": ((3, 2), TWO, "t declares 3 partitions, 2 are listed"),
    "all but one are missing": ((1_200, 2), ([7], [[1, 2]]), "t declares 1,200 partitions, 1 is listed"),
    "one is too many": ((1, 2), TWO, "t declares 1 partition, 2 are listed"),
    "the factor differs": ((2, 3), TWO, "t declares 3 replicas of a partition, 2 are listed of its first"),
    "only a later partition has another factor": ((2, 2), ([0, 1], [[1, 2], [2, -1]]), None),
}


def view(
    declared: tuple[int | None, int | None], rows: tuple[list[int], list[list[int]]], **rest: object
) -> ClusterView:
    table = PartitionTable(topic_index=[0] * len(rows[0]), partition_ids=rows[0], replicas=rows[1], **rest)
    topics = (TopicView("t", *declared),)
    return ClusterView.build(name="n", source="s", format="f", partitions=table, topics=topics)


@pytest.mark.parametrize("name", CASES)
def test_declared_and_listed_are_compared(name: str) -> None:
    declared, rows, sentence = CASES[name]
    found = view(declared, rows).wholeness
    assert found.sentence == found.refusal == sentence
    assert found.is_whole == (sentence is None)


def test_a_replica_that_is_being_added_may_count_or_not() -> None:
    for factor in (2, 3):
        found = view((1, factor), ([0], [[1, 2, 3]]), adding=[[3]], removing=[[-1]])
        assert found.wholeness.is_whole
    assert not view((1, 1), ([0], [[1, 2, 3]]), adding=[[3]]).wholeness.is_whole


def test_topics_are_counted_and_one_without_a_line_is_missing_its_beginning() -> None:
    table = PartitionTable(topic_index=[0, 1, 2], partition_ids=[0, 0, 0], replicas=[[1], [1], [1]])
    topics = (TopicView("a"), TopicView("b", 2, 1), TopicView("c", 1, 1))
    found = ClusterView.build(name="n", source="s", format="f", partitions=table, topics=topics).wholeness
    assert found.reasons == (
        "no line declares how many partitions a has, 1 is listed",
        "b declares 2 partitions, 1 is listed",
    )
    assert found.sentence == "no line declares how many partitions a has, 1 is listed (and 1 more reason)"


def test_a_partial_cluster_that_is_accepted_is_not_refused_and_says_so() -> None:
    found = view((3, 2), TWO).as_partial()
    assert found.wholeness.refusal is None
    assert found.wholeness.sentence == "t declares 3 partitions, 2 are listed"
    assert found.partitions_complete

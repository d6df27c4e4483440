"""Dumps of a series: moments of the cluster with which they share topics, and of no other."""

from __future__ import annotations

import pytest

from broker.cluster import ClusterView
from spark_analysis.sources.dumps import BY_NAME, DumpInput
from spark_analysis.sources.series import IN_ORDER, continued, series_note
from tests.placement.formats.samples import parse


def described(topics: str, name: str) -> ClusterView:
    """Return a cluster of topics, each perhaps with an id after a colon."""
    rows = ""
    for topic, _, topic_id in (one.partition(":") for one in topics.split()):
        field = f"\tTopicId: {topic_id}" if topic_id else ""
        rows += f"Topic: {topic}{field}\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: \n"
        rows += f"\tTopic: {topic}\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n"
    return parse(rows, name=name).clusters[0]


@pytest.mark.parametrize("series", [BY_NAME, IN_ORDER, None])
@pytest.mark.parametrize(
    ("before", "after", "later"),
    [
        ("orders audit", "orders", True),
        ("orders", "audit", False),
        ("__consumer_offsets orders", "__consumer_offsets audit", False),
        ("__consumer_offsets", "__consumer_offsets", True),
        ("orders:a", "orders:a", True),
        ("orders:a", "orders:b", False),
        ("orders:a", "orders", True),
    ],
)
def test_dumps_without_a_common_topic_are_clusters_of_their_own(
    series: str | None, before: str, after: str, later: bool
) -> None:
    earlier, view = described(before, "1-east"), described(after, "2-west")
    given = DumpInput("2-west.txt", series=series)
    found = continued(given, view, {"1-east": earlier})
    assert found == ("1-east" if later and series is not None else None)
    if series is not None:
        note = series_note(given, view, earlier if later else None, earlier)
        assert note.startswith(
            "taken as the cluster of 1-east at a later moment" if later else "taken as a cluster of its"
        )


def test_the_cluster_that_shares_most_topics_is_continued() -> None:
    last = {"1": described("a b c", "1"), "2": described("c d", "2")}
    assert continued(DumpInput("3.txt", series=IN_ORDER), described("b c", "3"), last) == "1"


@pytest.mark.parametrize(
    ("topics", "continues"),
    [("orders:a audit:b", True), ("orders:a other:c", False), ("orders:x audit:y", False), ("orders audit", True)],
)
def test_a_cluster_of_another_name_has_most_topics_of_the_one_that_ended(topics: str, continues: bool) -> None:
    given = DumpInput("polar.txt", series="renamed", cluster="polar", successor_of=("north",))
    last = {"north": described("orders:a audit:b", "north"), "south": described("orders:a audit:b", "south")}
    assert continued(given, described(topics, "polar"), last) == ("north" if continues else None)

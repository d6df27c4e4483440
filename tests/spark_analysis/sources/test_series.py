"""Numbered dumps: moments of one cluster, unless they share no topic."""

from __future__ import annotations

import attrs
import pytest

from spark_analysis.sources.dumps import BY_NAME, DumpInput, is_later_moment, with_series_note
from tests.placement.formats.samples import parse


def described(topics: str) -> str:
    return "".join(
        f"Topic: {topic}\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: \n"
        f"\tTopic: {topic}\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n"
        for topic in topics.split()
    )


@pytest.mark.parametrize(
    ("series", "before", "after", "later"),
    [
        (BY_NAME, "orders audit", "orders", True),
        (BY_NAME, "orders", "audit", False),
        (BY_NAME, "__consumer_offsets orders", "__consumer_offsets audit", False),
        (BY_NAME, "__consumer_offsets", "__consumer_offsets", True),
        ("moments", "orders", "audit", True),
        (None, "orders", "orders", False),
    ],
)
def test_numbered_dumps_without_a_common_topic_are_clusters_of_their_own(
    series: str | None, before: str, after: str, later: bool
) -> None:
    earlier, dump = parse(described(before), name="1-east"), parse(described(after), name="2-west")
    given = DumpInput("2-west.txt", series=series)
    assert is_later_moment(given, earlier.clusters[0], dump.clusters[0]) is later
    noted = with_series_note(dump, given, earlier.clusters[0])
    if series != BY_NAME:
        assert noted == dump
    elif later:
        assert "taken as the cluster of 1-east at a later moment" in noted.notes[-1]
    else:
        assert noted.notes[-1].startswith("taken as a cluster of its own: the file names are numbered, but no topic")
    assert attrs.evolve(noted, notes=()) == attrs.evolve(dump, notes=())

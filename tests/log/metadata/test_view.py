"""The view of a moment: what kafka-topics said of a real cluster then, and what is offline or a default.

How: tests/real_data/kraft and kraft-4.3 have a real log each, and what `kafka-topics --describe` printed at six and
nine moments of it.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from broker.cluster import ClusterView
from broker.units import TimeMs
from log.metadata import MetadataRecord, Moment, RecordType, Replay, arrange, images_at, view_of
from log.metadata.image import LOST, UNASSIGNED
from placement.balance.comparison import compare
from placement.formats.read import read_dump
from tests.log.metadata.made import (
    ORDERS,
    REAL,
    REAL_NEWEST,
    broker,
    config,
    fenced,
    log_file,
    partition,
    real_files,
    topic,
)

RACKS = {REAL: ["east", "west", "north", "east"], REAL_NEWEST: ["zone-a", "zone-b", "zone-c"]}
MOMENTS = tuple(
    (folder, moment["describe"], int(moment["time_ms"]))
    for folder in RACKS
    for moment in csv.DictReader((folder / "describe" / "times.csv").open(encoding="utf-8"))
)


def rows(view: ClusterView) -> dict[tuple[str, int], dict[str, Any]]:
    """Return what both know of each partition; the order of eligible leaders is nobody's."""
    table = view.partitions
    found = {}
    for row, number in enumerate(table.partition_ids.tolist()):
        lists = {name: getattr(table, name)[row] for name in ("replicas", "isr", "elr", "last_known_elr")}
        members = {name: [each for each in column.tolist() if each >= 0] for name, column in lists.items()}
        members["elr"].sort()
        assert table.leader is not None
        found[view.topics[table.topic_index[row]].name, number] = {**members, "leader": int(table.leader[row])}
    return found


def topics(view: ClusterView) -> list[tuple[Any, ...]]:
    return sorted(
        (each.name, each.topic_id, each.partition_count, each.replication_factor, each.min_insync_replicas)
        for each in view.topics
    )


@pytest.mark.parametrize(
    ("folder", "describe", "time_ms"), MOMENTS, ids=[f"{folder.name} {name}" for folder, name, _ in MOMENTS]
)
def test_the_view_of_a_moment_is_what_kafka_topics_said_then(folder: Path, describe: str, time_ms: int) -> None:
    replay = Replay(arrange(real_files(folder)))
    (image,) = images_at(replay, (Moment(time_ms=TimeMs(time_ms)),))
    ours = view_of(image, name="c", source="log")
    (theirs,) = read_dump([(folder / "describe" / describe).read_bytes()], source="describe").clusters
    assert rows(ours) == rows(theirs)
    assert topics(ours) == topics(theirs)
    assert [each.rack for each in ours.brokers] == RACKS[folder]
    # The tool prints the brokers' settings too, which are no change of the topic's own.
    changed = [*compare(ours, theirs).topics, *compare(theirs, ours).topics]
    assert changed == []


def test_cordoned_brokers_are_noted_at_the_moments_at_which_they_were_cordoned() -> None:
    times = {describe: TimeMs(time_ms) for folder, describe, time_ms in MOMENTS if folder == REAL_NEWEST}
    replay = Replay(arrange(real_files(REAL_NEWEST)))
    images = images_at(replay, [Moment(time_ms=time_ms) for time_ms in times.values()])
    views = {describe: view_of(image, name="c", source="log") for describe, image in zip(times, images, strict=True)}
    note = "all directories cordoned, so that no new replica is placed: broker 3"
    assert {describe for describe, view in views.items() if view.notes} == {
        "5-broker-3-cordoned.txt",
        "6-reassigned.txt",
    }
    assert views["6-reassigned.txt"].notes == (note,)
    flagged = {describe: [broker.id for broker in view.brokers if broker.cordoned] for describe, view in views.items()}
    assert {describe: ids for describe, ids in flagged.items() if ids} == {
        "5-broker-3-cordoned.txt": [3],
        "6-reassigned.txt": [3],
    }
    cordoned = {describe: sum("cordoned" in value for _, value in view.facts) for describe, view in views.items()}
    assert cordoned == dict(zip(times, (0, 0, 0, 1, 3, 3, 1, 1, 1), strict=True))


def view(*records: MetadataRecord) -> ClusterView:
    replay = Replay(arrange([log_file(records)]))
    for _ in replay.steps():
        pass
    return view_of(replay.image(), name="c", source="log")


def offline(view: ClusterView) -> list[int]:
    assert view.partitions.offline is not None
    return [each for each in view.partitions.offline[0].tolist() if each >= 0]


def test_replicas_are_offline_on_brokers_that_are_fenced_or_gone_and_in_directories_that_are_lost() -> None:
    home, other = "A" * 20 + "Zw", "B" * 20 + "Zw"
    brokers = (broker(1, logDirs=(home,)), broker(2), broker(3, logDirs=(home,)), fenced(2), broker(5, logDirs=(home,)))
    held = partition(1, 2, 3, 4, 5, directories=(home, home, LOST, home, other))
    assert offline(view(*brokers, topic(), held)) == [2, 3, 4, 5]
    assert offline(view(*brokers, topic(), partition(1, 3, directories=(UNASSIGNED, home)))) == []
    assert offline(view(broker(1), topic(), partition(1, directories=(other,)))) == []
    assert offline(view(broker(1), topic(), partition(1, directories=(LOST,)))) == [1]


def test_min_insync_replicas_is_the_topics_then_the_clusters_then_kafkas() -> None:
    start = (broker(1), topic(), partition(1))
    default, own = config("min.insync.replicas", "3"), config("min.insync.replicas", "2", topic="orders")
    for records, expected in (((), 1), ((default,), 3), ((default, own), 2), ((own,), 2)):
        assert view(*start, *records).topics[0].min_insync_replicas == expected


def test_a_broker_with_a_min_isr_of_its_own_is_noted() -> None:
    own = MetadataRecord(
        RecordType.CONFIG_RECORD,
        0,
        {"resourceType": 4, "resourceName": "1", "name": "min.insync.replicas", "value": "2"},
    )
    feature = MetadataRecord(RecordType.FEATURE_LEVEL_RECORD, 0, {"name": "metadata.version", "featureLevel": 25})
    assert view(feature, broker(1), own).notes == (
        "min.insync.replicas that single brokers set are not looked at: broker 1",
    )
    assert view(feature, broker(1, inControlledShutdown=True)).notes == ("in controlled shutdown: broker 1",)
    assert view(broker(1)).notes == ("no metadata.version is set: the log holds less than a whole cluster's metadata",)


def test_topics_and_partitions_stand_in_order() -> None:
    found = view(broker(1), topic("z"), topic("a", "A" * 21 + "Q"), partition(1, number=1), partition(1, number=0))
    assert [each.name for each in found.topics] == ["a", "z"]
    assert found.partitions.partition_ids.tolist() == [0, 1]
    assert found.topics[1].topic_id == ORDERS

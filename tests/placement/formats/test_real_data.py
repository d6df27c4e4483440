"""Every published file is read, or refused with the name of what it is."""

from __future__ import annotations

import pytest

from broker.errors import InputError
from placement.formats.parsed import ParsedDump
from placement.formats.read import read_dump
from tests.placement.formats.samples import REAL_DATA, rows


def read(path: str) -> ParsedDump:
    return read_dump([(REAL_DATA / path).read_bytes()], source=path, name="c")


@pytest.mark.parametrize(
    ("path", "rows_in", "passed_over"),
    [
        ("multiregion/1-baseline.txt", 14, 7),
        ("multiregion/2-one-west-broker-stopped.txt", 14, 7),
        ("multiregion/3-west-region-stopped.txt", 14, 7),
        ("multiregion/4-after-unclean-election.txt", 4, 3),
        ("multiregion/5-placement-switched.txt", 2, 2),
    ],
)
def test_a_multiregion_dump_is_read_without_rejects(path: str, rows_in: int, passed_over: int) -> None:
    dump = read(path)
    assert (dump.rows_in, dump.rows_rejected, dump.lines_passed_over) == (rows_in, 0, passed_over)
    assert [broker.id for broker in dump.clusters[0].brokers] == [1, 2, 3, 4]


def test_the_region_lost_shows_no_leader_an_isr_of_one_and_the_offline_replicas() -> None:
    view = read("multiregion/3-west-region-stopped.txt").clusters[0]
    assert rows(view)[2] == (
        "multi-region-async",
        0,
        -1,
        {"replicas": (2, 1, 3, 4), "isr": (1,), "offline": (2, 1), "observers": (3, 4)},
    )
    assert [topic.min_insync_replicas for topic in view.topics] == [1, 1, 1, 2, 1, 1, 1]
    assert view.topics[0].configs[1][1] == (
        '{"version":1,"replicas":[{"count":2,"constraints":{"rack":"west"}}],"observers":[]}'
    )


def test_a_partition_under_another_topics_line_is_kept_and_noted() -> None:
    dump = read("multiregion/5-placement-switched.txt")
    assert dump.notes == (
        "topic multi-region-default declares 1 partition; 0 could be used",
        "line 5: a partition of multi-region-async stands under the line of topic multi-region-default",
        "2 lines are no rows and were passed over; the first: line 1, '...'",
    )
    assert [row[0] for row in rows(dump.clusters[0])] == ["multi-region-async"]


def test_the_duplicate_row_of_the_restored_region_is_put_aside_and_the_first_stays() -> None:
    dump = read("multiregion/6-region-restored.txt")
    assert [(reject.line, reject.reason) for reject in dump.rejects] == [
        (34, "partition 0 of multi-region-async is already described in line 14")
    ]
    assert (dump.rows_in, dump.rows_analysed) == (14, 13)
    assert next(row[3]["replicas"] for row in rows(dump.clusters[0]) if row[0] == "multi-region-async") == (2, 1, 3, 4)


@pytest.mark.parametrize(
    "name",
    [
        "placement-multi-region-async-op-under-min-isr",
        "placement-multi-region-async",
        "placement-multi-region-default-reverse",
        "placement-multi-region-sync",
    ],
)
def test_a_placement_constraint_is_named_and_refused(name: str) -> None:
    path = f"multiregion/{name}.json"
    with pytest.raises(InputError) as caught:
        read(path)
    assert str(caught.value) == (
        f"{path}:1: this is a Confluent placement constraint, for kafka-topics --replica-placement; "
        "nothing is placed in it"
    )


@pytest.mark.parametrize("name", ["CC-Rebalance-no-goals-verbose", "CC-User-task-rebalance-no-goals-verbose-Completed"])
def test_a_verbose_rebalance_gives_the_cluster_before_and_after(name: str) -> None:
    dump = read(f"cruise-control/responses/{name}.json")
    before, after = dump.clusters
    assert (before.name, after.name) == ("c (before)", "c (after)")
    assert before.totals is not None
    assert after.totals is not None
    assert before.totals.replica_count is not None
    assert before.totals.size_bytes is not None
    assert after.totals.leader_count is not None
    assert before.totals.replica_count.tolist() == [44, 43, 42]
    assert before.totals.size_bytes.tolist() == [2016742, 1229977, 1181957]
    assert after.totals.leader_count.tolist() == [1, 30, 34]
    assert ("numReplicaMovements", "19") in before.facts
    assert ("proposals", "40") in after.facts
    assert (dump.rows_in, dump.rows_rejected) == (46, 0)


def test_a_brief_rebalance_gives_only_the_cluster_after() -> None:
    dump = read("cruise-control/responses/CC-Rebalance-no-goals.json")
    assert [cluster.name for cluster in dump.clusters] == ["c (after)"]
    assert ("goal RackAwareGoal", "NO-ACTION") in dump.clusters[0].facts


@pytest.mark.parametrize("name", ["CC-State", "CC-State-verbose"])
def test_cruise_controls_own_state_is_facts_without_brokers(name: str) -> None:
    view = read(f"cruise-control/responses/{name}.json").clusters[0]
    assert view.brokers == ()
    assert ("monitor numTotalPartitions", "65") in view.facts
    assert view.notes == ("this answer describes Cruise Control, not the brokers: nothing can be measured",)


def test_an_error_of_cruise_control_is_told_as_such() -> None:
    path = "cruise-control/responses/CC-Rebalance-NotEnoughValidWindows-error.json"
    with pytest.raises(InputError) as caught:
        read(path)
    assert str(caught.value) == (
        f"{path}: Cruise Control answered with an error; this is no description of a cluster (found "
        "\"Error processing POST request '/rebalance' due to: 'com.linkedin.kafka.cruiseco…\")"
    )


@pytest.mark.parametrize(
    ("name", "partitions", "brokers"),
    [("nine_brokers", 9, 9), ("three_brokers", 9, 3), ("optimize_input", 256, 23), ("optimize_output", 256, 23)],
)
def test_a_topicmappr_map_is_a_reassignment(name: str, partitions: int, brokers: int) -> None:
    dump = read(f"topicmappr/{name}.json")
    assert (dump.format, dump.rows_rejected) == ("kafka-reassign-partitions", 0)
    assert (dump.clusters[0].partitions.count, len(dump.clusters[0].brokers)) == (partitions, brokers)

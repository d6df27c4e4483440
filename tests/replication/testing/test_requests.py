"""A served cluster answers writes and new topics as released Kafka does (4.4.0)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from broker.ids import Offset, ProducerEpoch, ProducerId
from broker.units import TimeMs
from log.batches.build import BatchSpec, build_batch
from log.record import Record
from replication.testing import ClusterSpec
from replication.testing.served_cluster import ServedCluster
from tests.kafka.protocol_draws import VERSIONS
from tests.kafka.protocol_ends import Simulated, ask


def asked(end: Simulated, broker: int, name: str, **values: Any) -> Any:
    """Return a broker's response to a request of the newest version served."""
    api, _, version = VERSIONS[name]
    return ask(end, broker, api, version, values)


def test_a_batch_that_was_there_before_is_answered_with_its_timestamp() -> None:
    """UnifiedLog.append; of a partition named twice in a request, the last batch is written, once."""
    served = ServedCluster(ClusterSpec(topics={"t": 1}))
    served.begin()
    end = Simulated(served)
    spec = BatchSpec(producer_id=ProducerId(1), producer_epoch=ProducerEpoch(0), base_sequence=0)
    partition = {"index": 0, "records": build_batch(spec, [Record(Offset(0), TimeMs(5_000), b"k", b"v")])}
    topic = {"name": "t", "partition_data": [partition, partition]}
    write = {"transactional_id": None, "acks": 1, "timeout": 1_000, "topic_data": [topic]}
    shown = asked(end, 0, "Metadata", topics=[{"name": "t"}], allow_auto_topic_creation=False)
    leader = shown["topics"][0]["partitions"][0]["leader_id"]
    found = []
    for _ in range(2):
        answer = asked(end, leader, "Produce", **write)
        found += [each["log_append_time"] for each in answer["responses"][0]["partition_responses"]]
    assert found == [None, datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC)]


def test_a_topic_that_is_only_validated_has_an_id() -> None:
    served = ServedCluster(ClusterSpec())
    served.begin()
    end = Simulated(served)
    topic = {"name": "t", "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
    answer = asked(end, 0, "CreateTopics", topics=[topic], timeout=1_000, validate_only=True)
    assert answer["topics"][0]["error_code"] == "none"
    assert answer["topics"][0]["topic_id"].version == 4


def test_coordinators_go_by_the_clock_of_the_cluster() -> None:
    """The record of a committed offset has the time that the brokers' clocks show."""
    served = ServedCluster(ClusterSpec(topics={"t": 1}, wall_clock_ms=1_900_000_000_000))
    served.begin()
    end = Simulated(served)
    found = asked(end, 0, "FindCoordinator", key_type=0, coordinator_keys=["g"])["coordinators"][0]
    partition = {"partition_index": 0, "committed_offset": 5, "committed_leader_epoch": -1, "committed_metadata": ""}
    commit = {"generation_id_or_member_epoch": -1, "member_id": "", "group_instance_id": None}
    topics = [{"name": "t", "partitions": [partition]}]
    before_ms = served.spec.wall_clock_ms + served.now_ms
    asked(end, found["node_id"], "OffsetCommit", group_id="g", topics=topics, **commit)
    number = served.topics.of_group("g")
    (record,) = served.records(*served.topics.place_of(number))
    assert before_ms <= record.timestamp <= served.spec.wall_clock_ms + served.now_ms


def pages(end: Simulated, broker: int, limit: int) -> list[list[tuple[str, list[int]]]]:
    """Return the pages of all topics: each topic's name and the indexes of its partitions there."""
    found, cursor = [], None
    for _ in range(9):
        answer = asked(end, broker, "DescribeTopicPartitions", topics=[], response_partition_limit=limit, cursor=cursor)
        found.append(
            [(each["name"], [one["partition_index"] for one in each["partitions"]]) for each in answer["topics"]]
        )
        cursor = answer["next_cursor"]
        if cursor is None:
            break
    return found


def test_topics_are_described_by_pages() -> None:
    served = ServedCluster(ClusterSpec(topics={"a": 2, "b": 3, "__consumer_offsets": 1}))
    served.begin()
    assert pages(Simulated(served), 0, 2) == [
        [("__consumer_offsets", [0]), ("a", [0])],
        [("a", [1]), ("b", [0])],
        [("b", [1, 2])],
    ]
    assert pages(Simulated(served), 0, 3) == [[("__consumer_offsets", [0]), ("a", [0, 1])], [("b", [0, 1, 2])]]


def test_a_described_partition_names_its_eligible_replicas() -> None:
    """KIP-966: the last member that left an ISR which is below min.insync.replicas may be elected."""
    served = ServedCluster(ClusterSpec(topics={"t": 1}))
    served.begin()
    leader, second, third = served.cluster.controller.image.partitions[served.number_of("t", 0)].replicas
    for broker in (third, second):
        served.cluster.nodes[broker].kill()
        served.advance(served.now_ms + 15_000)
    answer = asked(
        Simulated(served),
        leader,
        "DescribeTopicPartitions",
        topics=[{"name": "t"}, {"name": "u"}, {"name": "a/b"}],
        response_partition_limit=9,
        cursor=None,
    )
    errors = [(each["name"], each["error_code"]) for each in answer["topics"]]
    assert errors == [("a/b", "invalid_topic_exception"), ("t", "none"), ("u", "unknown_topic_or_partition")]
    (partition,) = answer["topics"][1]["partitions"]
    assert (partition["isr_nodes"], partition["eligible_leader_replicas"]) == ([leader], [second])

"""Sizes of replicas: what kafka-log-dirs printed, and the formats with one size a partition."""

from __future__ import annotations

import json

import attrs
import numpy as np
import pytest

from broker.cluster import ClusterView
from broker.errors import InputError
from placement.balance.loads import loads
from placement.balance.topic_spread import topic_spread
from placement.formats.sizes import Sizes, read_sizes
from tests.placement.formats.samples import PRINTED, parse


def cluster(text: str = "topics-describe.txt") -> ClusterView:
    return parse((PRINTED / text).read_bytes()).clusters[0]


def sizes(name: str) -> Sizes:
    return read_sizes([(PRINTED / name).read_bytes()], source=name)


def text_sizes(value: object) -> Sizes:
    return read_sizes([json.dumps(value).encode()], source="sizes.json")


def printed_sum(name: str, *, future: bool) -> dict[int, int]:
    """Return the bytes of each broker, added up from the JSON without the reader."""
    document = json.loads((PRINTED / name).read_text().splitlines()[-1])
    return {
        broker["broker"]: sum(
            each["size"] for one in broker["logDirs"] for each in one["partitions"] if future or not each["isFuture"]
        )
        for broker in document["brokers"]
    }


def test_the_bytes_of_every_broker_are_those_that_log_dirs_printed() -> None:
    view = sizes("log-dirs.txt").apply(cluster())
    held = loads(view).brokers.size_bytes
    assert held is not None
    assert dict(zip((1, 2, 3), held.tolist(), strict=True)) == printed_sum("log-dirs.txt", future=False)
    assert view.notes == cluster().notes
    spread = topic_spread(view).size_bytes
    assert spread is not None
    assert int(spread.sum()) == int(held.sum())
    offsets = [topic.name for topic in view.topics].index("__consumer_offsets")
    assert spread.tolist()[offsets] == 3 * (20_055 + 22_630)


def test_the_tools_lines_are_passed_over_and_each_replica_is_a_row() -> None:
    account = sizes("log-dirs.txt").account
    assert (account.format, account.rows_in, account.rows_rejected, account.lines_passed_over) == (
        "kafka-log-dirs", 35, 0, 2,
    )  # fmt: skip


def test_a_future_replica_fills_its_directory_and_is_no_replica() -> None:
    found = sizes("log-dirs-moving.txt")
    of_broker_1 = [each for each in found.log_dirs if each.broker_id == 1]
    assert [(each.path, each.replica_count, each.future_replica_count) for each in of_broker_1] == [
        ("/disk-a/kafka", 7, 2),
        ("/disk-b/kafka", 6, 0),
    ]
    assert sum(each.size_bytes for each in of_broker_1) == printed_sum("log-dirs-moving.txt", future=True)[1]
    assert found.by_partition["orders", 5][1] == 276_573


def test_a_replica_on_a_broker_that_was_not_asked_takes_the_size_of_its_partition_and_a_note_says_so() -> None:
    view = sizes("after-log-dirs.txt").apply(cluster("after-topics-describe.txt"))
    held = loads(view).brokers.size_bytes
    assert held is not None
    assert held.tolist()[2] > 0
    assert any(
        "on brokers 3" in note and "the largest of the partition's other replicas" in note for note in view.notes
    )


def test_a_partition_without_a_size_leaves_the_bytes_unknown_and_is_counted() -> None:
    view = sizes("log-dirs-one-broker.txt").apply(cluster())
    assert loads(view).brokers.size_bytes is None
    assert any("partitions have no size" in note for note in view.notes)
    assert view.partitions.size_bytes is not None
    assert int(np.count_nonzero(view.partitions.size_bytes < 0)) == 3  # audit-log, and eu-west-1.payments-2.


def test_replicas_of_no_partition_are_told() -> None:
    given = {"brokers": [{"broker": 9, "logDirs": [{"logDir": "/d", "error": None, "partitions": [
        {"partition": "gone-0", "size": 5, "offsetLag": 0, "isFuture": False},
        {"partition": "orders-0", "size": 5, "offsetLag": 0, "isFuture": False},
    ]}]}]}  # fmt: skip
    with pytest.raises(InputError, match=r"sizes.json: has no size of any partition of cluster dump"):
        text_sizes(given).apply(cluster())
    given["brokers"][0]["broker"] = 1
    notes = text_sizes(given).apply(cluster()).notes
    assert "1 replicas in sizes.json belong to no partition of the cluster: gone-0 on broker 1" in notes


def test_a_directory_that_answers_with_an_error_is_kept_and_told() -> None:
    error = "org.apache.kafka.common.errors.KafkaStorageException"
    full = [{"partition": "orders-0", "size": 5, "isFuture": False}]
    given = {"brokers": [{"broker": 1, "logDirs": [
        {"logDir": "/bad", "error": error, "partitions": []}, {"logDir": "/good", "error": None, "partitions": full},
    ]}]}  # fmt: skip
    view = text_sizes(given).apply(cluster())
    assert [(each.path, each.error) for each in view.log_dirs] == [("/bad", error), ("/good", None)]
    assert f"broker 1: log directory /bad answers with {error}" in view.notes


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"partition": "orders-0", "size": -1}, "size is -1"),
        ({"partition": "orders-0", "size": 1.5}, "size is 1.5"),
        ({"partition": "orders", "size": 1}, "topic"),
        ({"partition": "orders-x", "size": 1}, "a partition's name ends with its number"),
        ({"partition": 7, "size": 1}, "partition is no text"),
        ({"partition": "eu-orders-3", "size": 1}, "already listed this replica"),
        ("orders-0", "partition is no text"),
    ],
)
def test_a_damaged_entry_is_rejected_with_its_place(entry: object, reason: str) -> None:
    good = {"partition": "eu-orders-3", "size": 1, "isFuture": False}
    found = text_sizes({"brokers": [{"broker": 1, "logDirs": [{"logDir": "/d", "partitions": [good, entry]}]}]})
    assert (found.account.rows_analysed, found.account.rows_rejected) == (1, 1)
    assert found.account.rejects[0].reason.startswith("brokers[0].logDirs[0].partitions[1]: ")
    assert reason in found.account.rejects[0].reason


@pytest.mark.parametrize(
    ("value", "format_name"),
    [
        ({"orders": {"0": {"Size": 7.0}, "1": {"Size": 9}}}, "topicmappr-partitionmeta"),
        ({"version": 1, "records": [
            {"topic": "orders", "partition": 0, "leader": 1, "followers": [2], "disk": 7 / 2**20},
            {"topic": "orders", "partition": 1, "leader": 1, "followers": [2], "disk": 9 / 2**20},
        ]}, "cruise-control-partition-load"),
    ],
)  # fmt: skip
def test_one_size_a_partition_is_the_size_of_each_of_its_replicas(value: object, format_name: str) -> None:
    found = text_sizes(value)
    assert found.account.format == format_name
    view = found.apply(parse('{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2]},'
                             '{"topic":"orders","partition":1,"replicas":[2,3]}]}').clusters[0])  # fmt: skip
    held = loads(view).brokers.size_bytes
    assert held is not None
    assert held.tolist() == [7, 16, 9]
    assert not [note for note in view.notes if "size" in note]


def test_a_matrix_of_sizes_must_have_the_shape_of_the_replicas() -> None:
    table = cluster().partitions
    with pytest.raises(Exception, match="replica_size_bytes has shape"):
        attrs.evolve(table, replica_size_bytes=np.zeros((1, 1), dtype=np.int64))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"hello", "holds no JSON object; sizes are read from kafka-log-dirs"),
        (b'{"a":1}', "a JSON object without sizes; sizes are read from kafka-log-dirs"),
        (b'{"brokers":[{"broker":1,"logDirs":[]}]}', "nothing in this kafka-log-dirs input"),
    ],
)
def test_a_file_without_sizes_is_one_error(text: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_sizes([text], source="sizes.json")

"""kcat, kafka-reassign-partitions and Cruise Control: what is read, what is put aside, what is refused."""

from __future__ import annotations

import json

import pytest

from broker.errors import InputError, UsageError
from placement.formats import documents
from placement.formats.reassign import write_reassignment
from placement.spec import Assignment
from tests.placement.formats.samples import parse, rows

PLAN = {"topic": "a", "partition": 0, "replicas": [1, 2]}


def plan(*entries: object, version: object = 1) -> str:
    return json.dumps({"version": version, "partitions": list(entries)})


def kcat(*partitions: object, **rest: object) -> str:
    return json.dumps(
        {"brokers": [{"id": 1, "name": "b1:9092"}], "topics": [{"topic": "a", "partitions": list(partitions)}], **rest}
    )


def test_a_reassignment_has_replicas_and_says_nothing_of_leaders() -> None:
    dump = parse(plan(PLAN, {**PLAN, "partition": 1, "log_dirs": ["any", "/d1"]}))
    assert rows(dump.clusters[0]) == [("a", 0, None, {"replicas": (1, 2)}), ("a", 1, None, {"replicas": (1, 2)})]
    assert dump.notes == ("1 partition with log directories, which are not kept",)


def test_generate_prints_two_documents_that_become_two_clusters() -> None:
    current = f"Current partition replica assignment\n{plan(PLAN)}\n"
    text = f"{current}\nProposed partition reassignment configuration\n{plan(PLAN)}\n"
    dump = parse(text, name="c")
    assert [cluster.name for cluster in dump.clusters] == ["c (current)", "c (proposed)"]
    assert (dump.rows_in, dump.lines_passed_over) == (2, 0)


def test_two_documents_without_captions_are_numbered() -> None:
    dump = parse(plan(PLAN) + "\n" + plan(PLAN), name="c")
    assert [cluster.name for cluster in dump.clusters] == ["c (document 1)", "c (document 2)"]


WHOLE = "allowed are whole numbers from 0 to"


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({**PLAN, "replicas": ["1", "2"]}, f"a broker id in replicas is the text '1'; {WHOLE} 2147483647"),
        ({**PLAN, "topic": ["a"]}, "topic is a list; a topic's name is text"),
        ({**PLAN, "partition": 10**12}, f"partition is 1000000000000; {WHOLE} 10000000"),
        ({**PLAN, "partition": True}, f"partition is true; {WHOLE} 10000000"),
        ({**PLAN, "partition": 1.0}, f"partition is 1.0; {WHOLE} 10000000"),
        ({**PLAN, "replicas": [True]}, f"a broker id in replicas is true; {WHOLE} 2147483647"),
        ({**PLAN, "replicas": []}, "the list of replicas is empty"),
        ({**PLAN, "replicas": [1, 1]}, "replicas names broker 1 twice"),
        ({"topic": "a", "partition": 0}, "replicas is missing; it is a list of broker ids"),
        ({**PLAN, "log_dirs": ["any"]}, "log_dirs is not a list as long as replicas"),
        ({**PLAN, "log_dirs": ["any", "d"]}, 'log_dirs holds something other than "any" and absolute paths'),
        (7, "topic is missing; a topic's name is text"),
        ({**PLAN, "topic": "good"}, "partition 0 of good is already given by partitions[0]"),
    ],
)
def test_what_kafkas_tool_refuses_is_put_aside(entry: object, reason: str) -> None:
    dump = parse(plan({**PLAN, "topic": "good"}, entry))
    assert [reject.reason for reject in dump.rejects] == [f"partitions[1]: {reason}"]
    assert (dump.rows_in, dump.rows_analysed) == (2, 1)


def test_kcat_tells_leaders_isr_brokers_and_who_is_away() -> None:
    row = {"partition": 0, "leader": 1, "replicas": [{"id": 1}, {"id": 4}], "isrs": [{"id": 1}]}
    dump = parse(kcat(row, {**row, "partition": 1, "leader": -1, "isrs": []}, controllerid=1))
    view = dump.clusters[0]
    assert rows(view) == [("a", 0, 1, {"replicas": (1, 4), "isr": (1,)}), ("a", 1, -1, {"replicas": (1, 4), "isr": ()})]
    assert [(broker.id, broker.host) for broker in view.brokers] == [(1, "b1:9092"), (4, None)]
    assert view.facts == (("controller", "1"),)
    assert dump.notes == ("broker 4 holds replicas but is not in the list of brokers",)


@pytest.mark.parametrize("identity", [[], {}, [1], None, "1", 1.5, True, 2**31, -1])
def test_a_kcat_broker_whose_id_is_none_is_put_aside(identity: object) -> None:
    row = {"partition": 0, "leader": 1, "replicas": [{"id": 1}], "isrs": [{"id": 1}]}
    dump = parse(kcat(row, brokers=[{"id": 1, "name": "a:9092"}, {"id": identity, "name": "b:9092"}]))
    assert [broker.id for broker in dump.clusters[0].brokers] == [1]
    (reject,) = dump.rejects
    assert reject.reason.startswith("brokers[1]: id ")


def test_a_damaged_kcat_partition_is_put_aside() -> None:
    row = {"partition": 0, "leader": 3, "replicas": [{"id": 1}], "isrs": [{"id": 1}]}
    dump = parse(kcat(row))
    assert [(reject.line, reject.reason) for reject in dump.rejects] == [
        (None, "topics[0].partitions[0]: Leader 3 is no replica (1)")
    ]


LOAD = {"Broker": 0, "Rack": "az1", "Host": "b0", "BrokerState": "ALIVE", "Replicas": 44, "Leaders": 23, "DiskMB": 1.5}


def test_a_load_gives_totals_racks_and_bytes_of_two_to_the_twentieth() -> None:
    dump = parse(
        json.dumps({"version": 1, "hosts": [], "brokers": [LOAD, {**LOAD, "Broker": 1, "BrokerState": "DEAD"}]})
    )
    view = dump.clusters[0]
    assert [(broker.id, broker.rack, broker.host) for broker in view.brokers] == [(0, "az1", "b0"), (1, "az1", "b0")]
    assert view.totals is not None
    assert view.totals.size_bytes is not None
    assert view.totals.size_bytes.tolist() == [1572864, 1572864]
    assert not view.partitions_complete
    assert dump.notes == ("broker 1 is DEAD",)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"Broker": "1"}, f"Broker is the text '1'; {WHOLE} 2147483647"),
        ({"Broker": 0}, "broker 0 is already listed"),
        ({"Replicas": -1}, f"Replicas is -1; {WHOLE} 1099511627776"),
        ({"Leaders": 45}, "Leaders is 45, more than Replicas, 44"),
        ({"DiskMB": -0.5}, "DiskMB is -0.5; allowed are numbers from 0 to 8796093022207"),
    ],
)
def test_a_damaged_broker_of_a_load_is_put_aside(change: dict[str, object], reason: str) -> None:
    dump = parse(json.dumps({"brokers": [LOAD, {**LOAD, "Broker": 1, **change}]}))
    assert [reject.reason for reject in dump.rejects] == [f"brokers[1]: {reason}"]


PARTITION = {
    "topic": "a",
    "partition": 0,
    "leader": 1,
    "replicas": [1, 2],
    "in-sync": [1],
    "out-of-sync": [2],
    "offline": [2],
    "min-isr": 2,
}


def state(replicas: dict[str, int], **lists: list[object]) -> str:
    counts = {"ReplicaCountByBrokerId": replicas, "LeaderCountByBrokerId": {"1": 1}, "Summary": {"Brokers": 2}}
    return json.dumps(
        {"KafkaBrokerState": counts, "KafkaPartitionState": {key.replace("_", "-"): lists[key] for key in lists}}
    )


def test_a_partition_in_two_problem_lists_is_one_partition() -> None:
    view = parse(state({"1": 1, "2": 1}, urp=[PARTITION], under_min_isr=[PARTITION], other=[])).clusters[0]
    assert rows(view) == [("a", 0, 1, {"replicas": (1, 2), "isr": (1,), "offline": (2,)})]
    assert view.topics[0].min_insync_replicas == 2
    assert view.partitions_complete
    assert view.facts == (("summary Brokers", "2"),)


def test_problem_lists_alone_leave_the_counts_whole() -> None:
    view = parse(state({"1": 10, "2": 9}, urp=[PARTITION])).clusters[0]
    assert not view.partitions_complete
    assert view.totals is not None
    assert view.totals.replica_count is not None
    assert view.totals.leader_count is not None
    assert view.totals.replica_count.tolist() == [10, 9]
    assert view.totals.leader_count.tolist() == [1, 0]


def test_keys_of_another_case_are_the_same_keys() -> None:
    shouted = (
        state({"1": 1, "2": 1}, urp=[PARTITION])
        .replace("in-sync", "inSync")
        .replace("KafkaBrokerState", "kafkaBrokerState")
    )
    assert rows(parse(shouted).clusters[0]) == rows(parse(state({"1": 1, "2": 1}, urp=[PARTITION])).clusters[0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"version":1,"partitions":[', "dump:1: the JSON is damaged at column 28: Expecting value"),
        ('\n{"a":NaN}', "dump:2: the JSON has a number that cannot be read: NaN is no JSON number"),
        ('{"a":' + "[" * 100_000, "dump:1: the JSON is nested more deeply than any known format"),
        ("[[]]", "dump:1: the JSON is a list; every known format is an object"),
        (plan(PLAN, version=2), "dump:1: the reassignment's version is not 1, the only one there is (found '2')"),
        (plan(), "dump: nothing in this kafka-reassign-partitions input describes a cluster"),
        (
            plan({**PLAN, "replicas": ["1"]}),
            f"dump: nothing can be used: partitions[0]: a broker id in replicas is the text '1'; {WHOLE} 2147483647 "
            '(found \'{"topic": "a", "partition": 0, "replicas": ["1"]}\')',
        ),
        (
            '{"version":1,"topics":[{"topic":"a"}]}',
            "dump:1: this is a list of topics to move, for kafka-reassign-partitions --generate; "
            "nothing is placed in it",
        ),
        (
            '{"topics":[{"topic":"a","partitions":[{"partition":0,"replicas":[{"id":1}]}]}]}',
            "dump:1: this is a list of topics and partitions without brokers, as kcat -L -J prints it with its "
            "'brokers', which are needed",
        ),
        (
            '{"topics":["a"]}',
            "dump:1: a JSON object of no known format; known are kafka-topics, kcat, kafka-reassign-partitions, "
            'cruise-control, zookeeper, aws-kafka, rpk, brokerside-snapshot (found \'{"topics": ["a"]}\')',
        ),
        (
            '{"x":1}',
            "dump:1: a JSON object of no known format; known are kafka-topics, kcat, kafka-reassign-partitions, "
            "cruise-control, zookeeper, aws-kafka, rpk, brokerside-snapshot (found '{\"x\": 1}')",
        ),
        (
            '{"userTasks":[{"originalResponse":"{"}]}',
            "dump: nothing can be used: userTasks[0]: the JSON is damaged at column 2: Expecting property name "
            "enclosed in double quotes (found '{')",
        ),
    ],
)
def test_json_that_cannot_be_used_is_one_clear_error(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text)
    assert str(caught.value) == message


def test_json_beyond_the_limit_is_refused_before_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "JSON_BYTES_MAX", 10)
    with pytest.raises(InputError, match="dump: the JSON text is larger than 10 bytes, the most that is read"):
        parse(plan(PLAN))


def test_a_named_format_is_held_to_and_an_unknown_one_refused() -> None:
    with pytest.raises(InputError) as caught:
        parse(plan(PLAN), format="kcat")
    assert str(caught.value).startswith("dump:1: a JSON object of no known format; it was to be kcat (found ")
    with pytest.raises(UsageError) as refused:
        parse("", format="xml")
    assert str(refused.value) == (
        "format is 'xml'; allowed are kafka-topics, kcat, kafka-reassign-partitions, cruise-control, "
        "zookeeper, aws-kafka, rpk, brokerside-snapshot"
    )


def test_lone_surrogates_never_reach_the_tables() -> None:
    text = plan(PLAN, {**PLAN, "topic": "X"}).replace('"X"', '"\\ud800"')
    value = parse(text).rejects[0].value
    assert value.encode("utf-8") == b'{"topic": "\\ud800", "partition": 0, "replicas": [1, 2]}'


def test_a_reassignment_is_written_as_kafka_prints_it() -> None:
    written = write_reassignment(Assignment(("b", "a"), [0, 1, 0], [1, 0, 0], [[1, 2], [2, -1], [2, 1]]))
    assert written == (
        '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[2],"log_dirs":["any"]},'
        '{"topic":"b","partition":0,"replicas":[2,1],"log_dirs":["any","any"]},'
        '{"topic":"b","partition":1,"replicas":[1,2],"log_dirs":["any","any"]}]}'
    )


def test_compact_json_of_a_large_cluster_is_read_and_a_text_of_empty_objects_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without the floor of 512 MiB, for a text of any length."""
    monkeypatch.setattr(documents, "OBJECTS_BYTES_MAX", 0)
    held = [{"id": broker} for broker in (1, 2, 3)]
    parts = [{"partition": number, "leader": 1, "replicas": held, "isrs": held} for number in range(50)]
    compact = json.dumps({"topics": [{"topic": "t", "partitions": parts}]}, separators=(",", ":"))
    documents.check_objects(compact, source="x")
    for text in ("{}," * 99, '{"a":1},' * 99, "[]," * 99):
        with pytest.raises(InputError, match="more than fit in memory"):
            documents.check_objects(text, source="x")

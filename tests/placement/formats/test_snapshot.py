"""The JSON of `brokerside snapshot`: what is read of it, and what is put aside."""

from __future__ import annotations

import json
from typing import Any

import pytest

from broker.cluster import MinIsrSource, SettingsShown
from broker.errors import InputError
from broker.liveness import Liveness
from placement.consumer.printed_groups import read_printed_members
from placement.formats.parsed import ParsedDump
from placement.formats.read import read_dump
from placement.formats.snapshot_groups import read_groups_text

MIN_ISR = {"min.insync.replicas": {"value": "2", "source": "DYNAMIC_DEFAULT_BROKER_CONFIG"}}
ROW: dict[str, Any] = {
    "partition": 0,
    "leader": 1,
    "replicas": [{"id": 1}, {"id": 2}],
    "isrs": [{"id": 1}],
    "elr": [2],
    "last_known_elr": [],
}
SIZES = {
    "version": 1,
    "brokers": [
        {"broker": 1, "logDirs": [{"logDir": "/d", "error": None, "partitions": [{"partition": "t-0", "size": 7}]}]}
    ],
}
MEMBER = {
    "member_id": "c-1",
    "client_id": "c",
    "host": "/h",
    "group_instance_id": None,
    "assignment": [{"topic": "t", "partition": 0}],
    "target": None,
}
GROUP: dict[str, Any] = {
    "group": "g",
    "state": "STABLE",
    "assignor": "range",
    "coordinator": "b1:9092 (1)",
    "members": [MEMBER],
    "offsets": [{"topic": "t", "partition": 0, "offset": 5, "end_offset": 9, "lag": 4}],
}


def document(*rows: Any, **rest: Any) -> dict[str, Any]:
    return {
        "brokerside_snapshot": 1,
        "taken_at": "2026-11-29T01:30:00Z",
        "cluster_id": "abc",
        "controllerid": 1,
        "brokers": [{"id": 1, "name": "b1:9092", "rack": "a", "configs": MIN_ISR}],
        "topics": [{"topic": "t", "configs": MIN_ISR, "partitions": list(rows or (ROW,))}],
        "log_dirs": SIZES,
        "groups": [GROUP],
        "notes": ["ListGroups was not answered by every broker"],
    } | rest


def read(value: dict[str, Any]) -> ParsedDump:
    return read_dump([json.dumps(value).encode()], source="s.json", name="s")


def test_a_snapshot_says_racks_settings_elr_sizes_and_who_is_down() -> None:
    dump = read(document())
    (view,) = dump.clusters
    assert (dump.format, view.format, view.racks) == ("brokerside-snapshot", "brokerside-snapshot", ("a",))
    assert view.down == {2: Liveness.FENCED}
    assert view.brokers[0].stated is Liveness.ALIVE
    assert view.topics[0].min_insync_replicas == 2
    assert view.topics[0].min_isr_source is MinIsrSource.CLUSTER_DEFAULT
    assert view.settings_shown is SettingsShown.EFFECTIVE
    assert view.partitions.elr is not None
    assert view.partitions.elr.tolist() == [[2]]
    assert view.partitions.size_bytes is not None
    assert view.partitions.size_bytes.tolist() == [7]
    assert ("cluster id", "abc") in view.facts
    assert ("min.insync.replicas of the brokers", "2") in view.facts
    assert "ListGroups was not answered by every broker" in view.notes
    assert (dump.rows_in, dump.rows_analysed, dump.rows_rejected) == (3, 3, 0)


def test_what_a_snapshot_lacks_is_not_invented() -> None:
    bare = {key: value for key, value in ROW.items() if "elr" not in key}
    topics = [{"topic": "t", "configs": None, "partitions": [bare]}]
    (view,) = read(document(topics=topics, log_dirs=None, notes=None, cluster_id=None)).clusters
    assert (view.partitions.elr, view.partitions.last_known_elr, view.partitions.size_bytes) == (None, None, None)
    assert view.topics[0].min_isr_source is MinIsrSource.UNKNOWN
    assert view.settings_shown is SettingsShown.NONE


def test_a_default_is_no_setting_of_a_topic() -> None:
    default = {"min.insync.replicas": {"value": "1", "source": "DEFAULT_CONFIG"}}
    (view,) = read(document(topics=[{"topic": "t", "configs": default, "partitions": [ROW]}])).clusters
    assert (view.topics[0].configs, view.topics[0].min_insync_replicas) == ((), 1)
    assert view.topics[0].min_isr_source is MinIsrSource.KAFKA_DEFAULT


def test_a_damaged_partition_and_a_damaged_size_are_put_aside() -> None:
    sizes = json.loads(json.dumps(SIZES).replace('"size": 7', '"size": -7'))
    dump = read(document(ROW, {**ROW, "partition": 1, "leader": 9}, log_dirs=sizes))
    assert (dump.rows_in, dump.rows_analysed, dump.rows_rejected) == (3, 2, 1)
    assert dump.rejects[0].reason == "topics[0].partitions[1]: Leader 9 is no replica (1,2)"
    assert dump.clusters[0].wholeness.refusal is not None


@pytest.mark.parametrize(
    "damage",
    [
        {"brokers": "x"},
        {"groups": {}},
        {"notes": [1, None]},
        {"log_dirs": {"brokers": [1]}},
        {"cluster_id": 5},
        {"topics": [{"topic": "t", "configs": [], "partitions": [{**ROW, "elr": ["x", 2, None]}]}]},
    ],
)
def test_a_damaged_key_costs_no_more_than_what_it_says(damage: dict[str, Any]) -> None:
    assert read(document(**damage)).clusters[0].partitions.count == 1


def test_the_groups_of_a_snapshot_are_those_of_the_tool() -> None:
    text = json.dumps(document(groups=[GROUP, {"group": "idle", "state": "EMPTY", "members": [], "offsets": []}]))
    tables = read_groups_text(text, source="s.json")
    assert [(row.group, row.member_id, row.host) for row in tables.members] == [("g", "c-1", "h")]
    assert [(row.current_offset, row.log_end_offset, row.lag) for row in tables.offsets] == [(5, 9, 4)]
    states = [(row.group, row.state, row.member_count) for row in tables.states]
    assert states == [("g", "STABLE", 1), ("idle", "EMPTY", 0)]
    assert tables.empty == {"idle"}
    assert read_printed_members(text, source="s.json").empty == ("idle",)


def test_rows_of_groups_that_cannot_be_used_are_rejected_and_no_groups_are_said() -> None:
    bad = {**GROUP, "members": [{}], "offsets": [{"topic": "t", "partition": 0, "offset": -4}]}
    tables = read_groups_text(json.dumps(document(groups=[bad])), source="s.json")
    assert [reject.reason for _, reject in tables.rejects] == [
        "a member has no member_id",
        "offset is -4; allowed are whole numbers from 0 to 9223372036854775807",
    ]
    assert (tables.account.rows_in, tables.account.rows_rejected) == (3, 2)
    with pytest.raises(InputError, match=r"^s.json: the snapshot has no groups; its notes say why$"):
        read_groups_text(json.dumps(document(groups=None)), source="s.json")

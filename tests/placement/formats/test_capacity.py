"""Capacity files: Cruise Control's forms, CSV, what stays unknown, and the first mistake named."""

from __future__ import annotations

import json

import pytest

from broker.cluster import ClusterView, PartitionTable, TopicView
from broker.errors import InputError
from broker.ids import BrokerId
from broker.units import KIB, MIB
from placement.formats.capacity import Capacity, LogDirCapacity, read_capacities


def of_cruise_control(*entries: tuple[object, object]) -> bytes:
    listed = [{"brokerId": broker, "capacity": capacity, "doc": "ours"} for broker, capacity in entries]
    return json.dumps({"brokerCapacities": listed}).encode()


def test_cruise_controls_default_holds_for_brokers_it_does_not_name() -> None:
    plain = {"DISK": "100000", "CPU": "100", "NW_IN": "10000", "NW_OUT": "20000"}
    found = read_capacities(
        of_cruise_control(("-1", plain), ("0", plain | {"DISK": "500000", "CPU": {"num.cores": "16"}})), source="c"
    )
    assert found.of(BrokerId(7)) == Capacity(
        disk_bytes=100000 * MIB,
        network_in_bytes_per_second=10000 * KIB,
        network_out_bytes_per_second=20000 * KIB,
    )
    assert found.of(BrokerId(0)).disk_bytes == 500000 * MIB


def test_a_disk_of_several_directories_is_known_each_and_summed() -> None:
    found = read_capacities(of_cruise_control((1, {"DISK": {"/b": "250000", "/a": 1.5}})), source="c")
    assert found.of(BrokerId(1)).disk_bytes == 250000 * MIB + 3 * MIB // 2
    assert found.of(BrokerId(1)).log_dirs == (
        LogDirCapacity(path="/a", disk_bytes=3 * MIB // 2),
        LogDirCapacity(path="/b", disk_bytes=250000 * MIB),
    )
    assert found.of(BrokerId(1)).network_in_bytes_per_second is None
    assert found.of(BrokerId(2)) == Capacity()


@pytest.mark.parametrize(
    "text",
    [
        "3,2000,50,60\n-1,1000\n",
        "Broker,disk_bytes,network_in,network_out\n3,2000,50,60\n\n# a comment\n-1,1000,,\n",
        "\ufeffnetwork_out,network_in,disk_bytes,broker\r\n60,50,2000,3\r\n,,1000,-1\r\n",
    ],
)
def test_csv_is_read_with_and_without_a_heading(text: str) -> None:
    found = read_capacities(text.encode(), source="c")
    assert found.of(BrokerId(3)) == Capacity(
        disk_bytes=2000, network_in_bytes_per_second=50, network_out_bytes_per_second=60
    )
    assert found.of(BrokerId(4)) == Capacity(disk_bytes=1000)


def test_columns_hold_minus_one_and_never_zero_for_what_is_not_known() -> None:
    table = PartitionTable(topic_index=[0], partition_ids=[0], replicas=[[1, 2]], size_bytes=[300])
    view = ClusterView.build(name="n", source="s", format="f", partitions=table, topics=(TopicView("t"),))
    found = read_capacities(b"broker,disk_bytes,free_bytes,ingress\n1,1000,,\n2,,40,7\n", source="c")
    assert found.column(view, "disk_bytes").tolist() == [1000, -1]
    assert found.column(view, "ingress_bytes_per_second").tolist() == [-1, 7]
    assert found.free_disk_bytes(view).tolist() == [700, 40]
    without_sizes = ClusterView.build(
        name="n",
        source="s",
        format="f",
        partitions=PartitionTable(topic_index=[0], partition_ids=[0], replicas=[[1, 2]]),
        topics=(TopicView("t"),),
    )
    assert found.free_disk_bytes(without_sizes).tolist() == [-1, 40]


def test_fields_may_be_quoted() -> None:
    found = read_capacities(b'"broker","disk_bytes"\n"1","1000"\n', source="c")
    assert found.of(BrokerId(1)).disk_bytes == 1000


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "c: the capacity file names no broker"),
        (b"1,5\n1,6\n", "c:2: broker 1 has a capacity already"),
        (b"1,-5\n", "c:1: disk_bytes is not a number from 0 to 9223372036854775807 (found '-5')"),
        (b"1,nan\n", "c:1: disk_bytes is not a number from 0 to 9223372036854775807 (found 'nan')"),
        (b"1,1e30\n", "c:1: disk_bytes is not a number from 0 to 9223372036854775807 (found '1e30')"),
        (
            b"x,5\n",
            "c:1: a broker id is not a whole number from 0 to 2147483647, nor -1 for every other broker (found 'x')",
        ),
        (b"1\n", "c:1: a line of a capacity file is broker,disk_bytes,network_in,network_out (found '1')"),
        (
            b"broker,disk\n1,5\n",
            "c:1: the heading is not broker and others of disk_bytes, network_in, network_out, "
            "free_bytes, ingress, once each (found 'broker,disk')",
        ),
        (
            b'{"brokers":[]}',
            'c: the JSON is not one object with a list "brokerCapacities", as in Cruise Control\'s '
            "capacity.json (found '{\"brokers\":[]}')",
        ),
        (of_cruise_control((0, {"DISK": {}})), "c: brokerCapacities[0] DISK names no capacity (found '{}')"),
        (
            of_cruise_control((0, {"DISK": {"/a": None}})),
            "c: brokerCapacities[0] DISK names no capacity (found '{\"/a\": null}')",
        ),
        (
            of_cruise_control((0, {"DISK": "many"})),
            "c: brokerCapacities[0] DISK is not a number from 0 to 8796093022207 (found 'many')",
        ),
        (
            of_cruise_control((True, {"DISK": "1"})),
            "c: a broker id is not a whole number from 0 to 2147483647, nor -1 for every other broker (found 'true')",
        ),
        (b'{"brokerCapacities":[3]}', "c: brokerCapacities[0] has no object \"capacity\" (found '3')"),
    ],
)
def test_the_first_mistake_is_named(data: bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_capacities(data, source="c")
    assert str(caught.value) == message

"""Files that users write by hand: racks, zones of consumers and capacities, in every form, and their first mistake."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from broker.cluster import ClusterView, PartitionTable, TopicView
from broker.errors import InputError
from broker.ids import BrokerId
from broker.units import KIB, MIB
from placement.formats import capacity, member_zones, racks
from placement.formats.capacity import Capacity, LogDirCapacity, read_capacities
from placement.formats.member_zones import read_member_zones
from placement.formats.racks import read_racks


@pytest.mark.parametrize(
    "data",
    [
        b'{"1":"west","2":"east"}',
        b'{"rackByBroker":{"1":"west","2":"east"}}',
        b'{"lisbon":{"1":"west","2":"east"}}',
        b'{"1":"north","2":"east","lisbon":{"1":"west"}}',
        b"1,west\n2,east\n",
        b"\xef\xbb\xbfbroker,rack\r\n1, west\r\n# a comment\r\n\r\n2 ,east",
        b"Cluster,Broker,Rack\nlisbon,1,west\nporto,1,south\nlisbon,2,east\n",
        "1,west\n2,east\n".encode("utf-16"),
        b'"broker","rack"\r\n"1","west"\r\n"2" , "east" \r\n',
        b'"lisbon","1",west\n"lisbon",2,"east"\n',
    ],
)
def test_each_shape_gives_the_racks_of_the_cluster(data: bytes) -> None:
    assert read_racks(data, source="racks").for_cluster("lisbon") == ((1, "west"), (2, "east"))


def test_a_cluster_that_is_not_named_has_only_the_common_racks() -> None:
    found = read_racks(b'{"1":"north","lisbon":{"1":"west"}}', source="racks")
    assert found.for_cluster("porto") == ((1, "north"),)


ZONES = b"""# consumers
host,zone
10.1.*,west
/10.1.0.7,north
billing-1,south
billing-*,east
billing-2*,"far, ""east"
stage,10.1.0.7,lab
"""


@pytest.mark.parametrize(
    ("cluster", "host", "client_id", "zone"),
    [
        ("prod", "10.1.0.7", "billing-1", "north"),
        ("prod", "10.1.0.8", "billing-1", "south"),
        ("prod", "10.1.0.8", "billing-3", "east"),
        ("prod", "10.1.0.8", "billing-22", 'far, "east'),
        ("prod", "10.1.0.8", "other", "west"),
        ("prod", "10.2.0.8", "other", None),
        ("stage", "10.1.0.7", "billing-1", "lab"),
        ("stage", "10.1.0.8", "billing-1", "south"),
    ],
)
def test_the_zone_of_a_member(cluster: str, host: str, client_id: str, zone: str | None) -> None:
    assert read_member_zones(ZONES, source="z").zone_of(cluster, host, client_id) == zone


def of_cruise_control(*entries: tuple[object, object]) -> bytes:
    listed = [{"brokerId": broker, "capacity": capacity, "doc": "ours"} for broker, capacity in entries]
    return json.dumps({"brokerCapacities": listed}).encode()


def test_cruise_controls_default_holds_for_brokers_it_does_not_name() -> None:
    plain = {"DISK": "100000", "CPU": "100", "NW_IN": "10000", "NW_OUT": "20000"}
    own = plain | {"DISK": "500000", "CPU": {"num.cores": "16"}}
    found = read_capacities(of_cruise_control(("-1", plain), ("0", own)), source="c")
    network = {"network_in_bytes_per_second": 10000 * KIB, "network_out_bytes_per_second": 20000 * KIB}
    assert found.of(BrokerId(7)) == Capacity(disk_bytes=100000 * MIB, **network)
    assert found.of(BrokerId(0)).disk_bytes == 500000 * MIB


def test_a_disk_of_several_directories_is_known_each_and_summed() -> None:
    found = read_capacities(of_cruise_control((1, {"DISK": {"/b": "250000", "/a": 1.5}})), source="c")
    dirs = (LogDirCapacity(path="/a", disk_bytes=3 * MIB // 2), LogDirCapacity(path="/b", disk_bytes=250000 * MIB))
    assert found.of(BrokerId(1)) == Capacity(disk_bytes=250000 * MIB + 3 * MIB // 2, log_dirs=dirs)
    assert found.of(BrokerId(2)) == Capacity()


@pytest.mark.parametrize(
    "text",
    [
        "3,2000,50,60\n-1,1000\n",
        '"Broker",disk_bytes,network_in,network_out\n3,"2000",50,60\n\n# a comment\n-1,1000,,\n',
        "\ufeffnetwork_out,network_in,disk_bytes,broker\r\n60,50,2000,3\r\n,,1000,-1\r\n",
    ],
)
def test_capacities_are_read_with_and_without_a_heading(text: str) -> None:
    found = read_capacities(text.encode(), source="c")
    own = Capacity(disk_bytes=2000, network_in_bytes_per_second=50, network_out_bytes_per_second=60)
    assert (found.of(BrokerId(3)), found.of(BrokerId(4))) == (own, Capacity(disk_bytes=1000))


@pytest.mark.parametrize(("sizes", "free"), [([300], [700, 40]), (None, [-1, 40])])
def test_columns_hold_minus_one_and_never_zero_for_what_is_not_known(sizes: list[int] | None, free: list[int]) -> None:
    table = PartitionTable(topic_index=[0], partition_ids=[0], replicas=[[1, 2]], size_bytes=sizes)
    view = ClusterView.build(name="n", source="s", format="f", partitions=table, topics=(TopicView("t"),))
    found = read_capacities(b"broker,disk_bytes,free_bytes,ingress\n1,1000,,\n2,,40,7\n", source="c")
    assert found.column(view, "disk_bytes").tolist() == [1000, -1]
    assert found.column(view, "ingress_bytes_per_second").tolist() == [-1, 7]
    assert found.free_disk_bytes(view).tolist() == free


WHOLE = "is not a whole number from 0 to 2147483647"
ZONE_LINE = "a line of a zones file is host,zone or client id,zone, or these after a cluster"
DISK = "disk_bytes is not a number from 0 to 9223372036854775807"
DIRECTORIES = "brokerCapacities[0] DISK names no capacity"
EVERY = "nor -1 for every other broker"


@pytest.mark.parametrize(
    ("read", "data", "message"),
    [
        (read_racks, b"", "f: the racks file names no broker"),
        (read_racks, b"1,west\nx,east\n", f"f:2: a broker id {WHOLE} (found 'x')"),
        (read_racks, b"4294967296,west", f"f:1: a broker id {WHOLE} (found '4294967296')"),
        (read_racks, b"\xff\xfe,\\\x00\n"[1:], f"f:1: a broker id {WHOLE} (found '\\xfe')"),
        (read_racks, b"1,west\n1,east\n", "f:2: broker 1 already stands in rack 'west' (found 'east')"),
        (read_racks, b"1,\n", "f:1: the rack of broker 1 is not a text of 1 to 249 characters (found '')"),
        (read_racks, b'{"1":7}', "f: the rack of broker 1 is not a text of 1 to 249 characters (found '7')"),
        (
            read_racks,
            b"1,west,a,b\n",
            "f:1: a line of a racks file is broker,rack or cluster,broker,rack (found '1,west,a,b')",
        ),
        (read_racks, b'{"1":', "f:1: the JSON is damaged at column 6: Expecting value"),
        (
            read_racks,
            b'1,west\n"2,"east\n',
            "f:2: the quotes of a field are not closed, or not around the whole of it (found '\"2,\"east')",
        ),
        (read_racks, b"[]", "f: the JSON is not a map of brokers to racks (found '[]')"),
        (read_racks, b'{"a":' * 50_000, "f: the JSON is nested too deeply or holds a number too long"),
        (read_member_zones, b"a,b\nhost\n", f"f:2: {ZONE_LINE} (found 'host')"),
        (read_member_zones, b"a,\n", f"f:1: {ZONE_LINE} (found 'a,')"),
        (read_member_zones, b"a,east\na,west\n", "f:2: 'a' is in zone 'east' already (found 'west')"),
        (read_member_zones, b"# nothing\n", "f: the zones file names no host and no client"),
        (read_capacities, b"", "f: the capacity file names no broker"),
        (read_capacities, b"1,5\n1,6\n", "f:2: broker 1 has a capacity already"),
        (read_capacities, b"1,-5\n", f"f:1: {DISK} (found '-5')"),
        (read_capacities, b"1,nan\n", f"f:1: {DISK} (found 'nan')"),
        (read_capacities, b"1,1e30\n", f"f:1: {DISK} (found '1e30')"),
        (read_capacities, b"x,5\n", f"f:1: a broker id {WHOLE}, {EVERY} (found 'x')"),
        (
            read_capacities,
            b"1\n",
            "f:1: a line of a capacity file is broker,disk_bytes,network_in,network_out (found '1')",
        ),
        (
            read_capacities,
            b"broker,disk\n1,5\n",
            "f:1: the heading is not broker and others of disk_bytes, network_in, network_out, "
            "free_bytes, ingress, once each (found 'broker,disk')",
        ),
        (
            read_capacities,
            b'{"brokers":[]}',
            'f: the JSON is not one object with a list "brokerCapacities", as in Cruise Control\'s '
            "capacity.json (found '{\"brokers\":[]}')",
        ),
        (read_capacities, of_cruise_control((0, {"DISK": {}})), f"f: {DIRECTORIES} (found '{{}}')"),
        (
            read_capacities,
            of_cruise_control((0, {"DISK": {"/a": None}})),
            f"f: {DIRECTORIES} (found '{{\"/a\": null}}')",
        ),
        (
            read_capacities,
            of_cruise_control((0, {"DISK": "many"})),
            "f: brokerCapacities[0] DISK is not a number from 0 to 8796093022207 (found 'many')",
        ),
        (
            read_capacities,
            of_cruise_control((True, {"DISK": "1"})),
            f"f: a broker id {WHOLE}, {EVERY} (found 'true')",
        ),
        (
            read_capacities,
            b'{"brokerCapacities":[3]}',
            "f: brokerCapacities[0] has no object \"capacity\" (found '3')",
        ),
    ],
)
def test_the_first_mistake_is_named(read: Callable[..., object], data: bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read(data, source="f")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("module", "limit", "read", "what"),
    [
        (racks, "RACKS_BYTES_MAX", read_racks, "racks"),
        (member_zones, "ZONES_BYTES_MAX", read_member_zones, "zones"),
        (capacity, "CAPACITY_BYTES_MAX", read_capacities, "capacity"),
    ],
)
def test_a_file_beyond_its_limit_is_refused(
    module: object, limit: str, read: Callable[..., object], what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, limit, 3)
    with pytest.raises(InputError, match=f"^f: the {what} file is larger than 3 bytes$"):
        read(b"1,a\n", source="f")
